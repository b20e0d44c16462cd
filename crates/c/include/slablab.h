/* Object caches and heaps from the kernel's slab allocators: docs/objects.md, docs/native.md. Made by cbindgen; do not edit:
 * SLABLAB_WRITE_HEADER=1 cargo test -p slablab-c --test header
 *
 * malloc and its relatives are in stdlib.h as ever: linked, or preloaded, the library serves them. */

#ifndef SLABLAB_H
#define SLABLAB_H

#include <stddef.h>

/*
 Aligns objects so that each lies in as few cache lines as possible; for `flags` of `kmem_cache_create`.
 */
#define KMEM_HWCACHE_ALIGN 8192

/*
 Checks that a freed object belongs to the cache and is allocated (letter F of `debug=`); for `flags` of
 `kmem_cache_create`.
 */
#define KMEM_CONSISTENCY_CHECKS 256

/*
 Puts red zones around objects (Z). A write to one is reported when the object is freed or allocated next.
 */
#define KMEM_RED_ZONE 1024

/*
 Poisons free objects (P). A write to one is reported when it is allocated next. Not with a constructor.
 */
#define KMEM_POISON 2048

/*
 Records the stacks that allocate and free an object (U), for reports.
 */
#define KMEM_STORE_USER 65536

/*
 For `flags` of the functions that allocate: fills the object with zeros. Invalid if the cache has a
 constructor. `kmem_cache_create` has no flag of this value.
 */
#define KMEM_ZERO 1

/*
 A cache of objects of one size.
 */
struct kmem_cache;

/*
 A registered shrinker.
 */
struct kmem_shrinker;

/*
 A malloc of its own, beside that of the process.
 */
struct slab_heap;

/*
 Objects that were allocated in advance.
 */
struct slab_sheaf;

/*
 Options of a new cache. Zeros are the defaults.
 */
struct kmem_cache_args {
  /*
   Alignment in bytes, a power of two; 0 for 8 bytes.
   */
  size_t align;
  /*
   `KMEM_HWCACHE_ALIGN`, and the flags that debug this cache; or 0.
   */
  unsigned int flags;
  /*
   Constructor: called once for an object, before it is first allocated. The contents survive frees. May
   be null.
   */
  void (*ctor)(void*);
  /*
   Destructor: called for each object that the constructor initialised, when the memory of its slab goes
   back: in a later call for this cache that takes a slow path, in `kmem_cache_shrink` or in
   `kmem_cache_destroy`, in any thread, with no lock held. It may call functions of caches. Not called
   for what is left when the process ends. May be null; only with a constructor.
   */
  void (*dtor)(void*);
  /*
   The number of objects that may be live at a time; 0 for no limit.
   */
  size_t max_objects;
  /*
   Bytes that live objects may take, each with the padding that its cache puts around it; 0 for no limit.
   Only if `max_objects` is 0.
   */
  size_t max_bytes;
  /*
   The engine, in the grammar of `SLABLAB_ENGINE`; null for the process's own.
   */
  const char *engine;
};

/*
 Statistics of a cache. The values are not consistent while other threads use it.
 */
struct kmem_cache_stats {
  /*
   Requested bytes of an object.
   */
  size_t object_bytes;
  /*
   Bytes from one object to the next.
   */
  size_t spaced_bytes;
  /*
   Objects in a slab.
   */
  size_t objects_per_slab;
  /*
   Bytes of a slab.
   */
  size_t slab_bytes;
  /*
   Number of slabs.
   */
  size_t slabs;
  /*
   Objects that the slabs can hold.
   */
  size_t objects;
  /*
   Allocated objects. Without a limit the free objects in other threads' slots are counted too.
   */
  size_t active;
  /*
   Most objects that may be allocated at a time; 0 without a limit.
   */
  size_t limit;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Creates a cache. `name` is copied. Returns null and sets `errno` to `EINVAL` if a size, an alignment, a
 flag or the name is invalid, to `ENOMEM` if there is no memory or the process has the largest number of
 caches.

 # Safety
 `name` is a string that ends with 0, or null; `ctor` may be called with any object of this cache.
 */
struct kmem_cache *kmem_cache_create(const char *name,
                                     size_t size,
                                     size_t align,
                                     unsigned int flags,
                                     void (*ctor)(void*));

/*
 Creates a cache as `kmem_cache_create` does, with the options of `args`, which may be null.

 # Safety
 As [`kmem_cache_create`]; `args` and its texts can be read; `dtor` may be called once with each object
 that `ctor` initialised.
 */
struct kmem_cache *kmem_cache_create_args(const char *name, size_t size, const struct kmem_cache_args *args);

/*
 Allocates an object. Returns null and sets `errno`: `ENOMEM` without memory, `EDQUOT` at the cache's
 limit, `EINVAL` for an invalid flag, `EAGAIN` in a signal handler that interrupted an allocation or a
 free.

 # Safety
 `cache` came from `kmem_cache_create`.
 */
void *kmem_cache_alloc(struct kmem_cache *cache, unsigned int flags);

/*
 Allocates `count` objects, all or none. Returns `count`; or 0, and sets `errno` as [`kmem_cache_alloc`]
 does.

 # Safety
 `cache` came from `kmem_cache_create`; `objects` has room for `count` addresses.
 */
size_t kmem_cache_alloc_bulk(struct kmem_cache *cache, unsigned int flags, size_t count, void **objects);

/*
 Frees an object; does nothing if `object` is null. An address that is no live object of this cache ends
 the process with a report.

 # Safety
 `cache` came from `kmem_cache_create`; no thread uses the object any more.
 */
void kmem_cache_free(struct kmem_cache *cache, void *object);

/*
 Frees `count` objects, none of them null.

 # Safety
 As [`kmem_cache_free`]; `objects` has `count` addresses.
 */
void kmem_cache_free_bulk(struct kmem_cache *cache, size_t count, void **objects);

/*
 Frees every slab without a live object, as far as this thread can reach. Returns 0 if no slab is left.

 # Safety
 `cache` came from `kmem_cache_create`.
 */
int kmem_cache_shrink(struct kmem_cache *cache);

/*
 Destroys a cache; does nothing if `cache` is null. Returns 0, or -1 with `EBUSY` if objects remain: their
 number is reported on standard error, and the cache stays.

 # Safety
 `cache` came from `kmem_cache_create`. If 0 is returned, no thread uses it any more.
 */
int kmem_cache_destroy(struct kmem_cache *cache);

/*
 Bytes of an object.

 # Safety
 `cache` came from `kmem_cache_create`.
 */
size_t kmem_cache_size(const struct kmem_cache *cache);

/*
 The cache's name. The string is valid as long as the cache.

 # Safety
 `cache` came from `kmem_cache_create`.
 */
const char *kmem_cache_name(const struct kmem_cache *cache);

/*
 Writes the statistics of a cache to `stats`.

 # Safety
 `cache` came from `kmem_cache_create`; `stats` can be written.
 */
void kmem_cache_get_stats(const struct kmem_cache *cache, struct kmem_cache_stats *stats);

/*
 Allocates `count` objects in advance, for a section that must not fail, and runs the constructor for those
 that are new. Returns null, and sets `errno` as [`kmem_cache_alloc`] does, if not all could be allocated.

 # Safety
 `cache` came from `kmem_cache_create`.
 */
struct slab_sheaf *kmem_cache_prefill_sheaf(struct kmem_cache *cache, unsigned int flags, size_t count);

/*
 Takes one of the objects that were allocated in advance. Returns null if none is left.

 # Safety
 `cache` came from `kmem_cache_create`, and the sheaf came from it.
 */
void *kmem_cache_alloc_from_sheaf(struct kmem_cache *cache, unsigned int flags, struct slab_sheaf *sheaf);

/*
 The number of objects left in a sheaf.

 # Safety
 The sheaf came from `kmem_cache_prefill_sheaf`.
 */
size_t kmem_cache_sheaf_size(const struct slab_sheaf *sheaf);

/*
 Frees a sheaf and the objects that are left in it; does nothing if `sheaf` is null.

 # Safety
 `cache` came from `kmem_cache_create`, and the sheaf came from it.
 */
void kmem_cache_return_sheaf(struct kmem_cache *cache, unsigned int _flags, struct slab_sheaf *sheaf);

/*
 Registers a function of a program that keeps objects for later. `ask` is called with the number of objects
 that are wanted and with `argument`, in the thread that wants memory; it returns the number of objects
 that it freed. It is called when memory is short, and when `cache`, which may be null, is at its limit.
 Returns null and sets `errno` to `EINVAL` if `ask` is null.

 # Safety
 `cache` came from `kmem_cache_create`, or is null; `ask` may be called with `argument` in any thread until
 `kmem_unregister_shrinker` returned.
 */
struct kmem_shrinker *kmem_register_shrinker(struct kmem_cache *cache,
                                             size_t (*ask)(size_t, void*),
                                             void *argument);

/*
 Unregisters a shrinker; does nothing if `shrinker` is null. Waits for every call of its function that runs
 in another thread: once this returned, `argument` may be freed. The function may itself unregister its
 shrinker; its own call is then not waited for.

 # Safety
 `shrinker` came from `kmem_register_shrinker`, and is not used any more.
 */
void kmem_unregister_shrinker(struct kmem_shrinker *shrinker);

/*
 Calls every shrinker for all that it can free, and has every heap and cache give back the free memory that
 it keeps. Returns the bytes that went back to the system.
 */
size_t kmem_shrink_all(void);

/*
 Creates a heap of an engine with its knobs: `slub@6.1`, `slab@6.1,debug=FZPU`; the names of `slablab
 engines`. The heap stays until the process ends. Returns null and sets `errno` to `EINVAL` if no engine
 has this name or the engine cannot serve malloc, to `ENOMEM` if there is no memory or the process has the
 largest number of heaps and caches.

 A block is freed and resized by the heap that allocated it: another heap, malloc's too, reports such a
 block and ends the process. The functions may not be called in signal handlers.

 # Safety
 `engine` is a string that ends with 0, or null.
 */
struct slab_heap *slab_heap_create(const char *engine);

/*
 Allocates `bytes` bytes, aligned to 16. Returns null and sets `errno` to `ENOMEM` without memory.

 # Safety
 `heap` came from `slab_heap_create`.
 */
void *slab_heap_malloc(struct slab_heap *heap, size_t bytes);

/*
 Allocates `count` times `bytes` bytes of zeros. Returns null and sets `errno` to `ENOMEM` without memory,
 and if the product does not fit.

 # Safety
 `heap` came from `slab_heap_create`.
 */
void *slab_heap_calloc(struct slab_heap *heap, size_t count, size_t bytes);

/*
 Allocates `bytes` bytes, aligned to `align`. Returns null and sets `errno` to `EINVAL` if `align` is no
 power of two, to `ENOMEM` without memory.

 # Safety
 `heap` came from `slab_heap_create`.
 */
void *slab_heap_aligned_alloc(struct slab_heap *heap, size_t align, size_t bytes);

/*
 Gives a block another size, where it is or elsewhere, as C's `realloc`: null is allocated, and a size of 0
 frees. Without memory the function returns null, sets `errno` to `ENOMEM`, and the block stays as it is.

 # Safety
 `heap` came from `slab_heap_create`; no thread uses the block any more, unless null is returned.
 */
void *slab_heap_realloc(struct slab_heap *heap, void *block, size_t bytes);

/*
 Frees a block of the heap; null is allowed.

 # Safety
 `heap` came from `slab_heap_create`; no thread uses the block any more.
 */
void slab_heap_free(struct slab_heap *heap, void *block);

/*
 Bytes that may be used at the start of a block; 0 for null.

 # Safety
 `heap` came from `slab_heap_create`.
 */
size_t slab_heap_usable_size(struct slab_heap *heap, void *block);

/*
 Gives all memory that no object needs back to the system: that of malloc, of every heap and object cache,
 and of every thread. Returns the bytes. Another thread's slot is emptied by that thread on its next slow
 path, after 2,039 allocations at most: the number of threads that have not done so yet goes to `threads`,
 unless that is null. With slots per CPU it is 0.

 # Safety
 `threads` can be written, or is null.
 */
size_t slab_purge(size_t *threads);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SLABLAB_H */
