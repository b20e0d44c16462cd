/* Object caches from the kernel's slab allocators: docs/objects.md. Made by cbindgen; do not edit:
 * SLABLAB_WRITE_HEADER=1 cargo test -p slablab-c --test header
 *
 * malloc and its relatives are in stdlib.h as ever: linked, or preloaded, the library serves them. */

#ifndef SLABLAB_H
#define SLABLAB_H

#include <stddef.h>

/*
 Aligns objects so that none lies in more cache lines than it must; for `flags` of `kmem_cache_create`.
 */
#define KMEM_HWCACHE_ALIGN 8192

/*
 Looks whose object is freed and whether it is allocated, with the letter F of `debug=`; for `flags` of `kmem_cache_create`.
 */
#define KMEM_CONSISTENCY_CHECKS 256

/*
 Puts red zones around objects (Z): what is written there is reported when the object is freed, or allocated next.
 */
#define KMEM_RED_ZONE 1024

/*
 Poisons free objects (P): what is written to one is reported when it is allocated next. Not with a constructor.
 */
#define KMEM_POISON 2048

/*
 Notes who allocates and who frees an object (U), for reports.
 */
#define KMEM_STORE_USER 65536

/*
 Fills the object with zeros; for `flags` of the functions that allocate. Not with a constructor. No flag of
 `kmem_cache_create` has this value.
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
 Objects taken in advance.
 */
struct slab_sheaf;

/*
 What else a cache is asked to be. Zeros ask for nothing.
 */
struct kmem_cache_args {
  /*
   Bytes of alignment, a power of two; 0 for a word's.
   */
  size_t align;
  /*
   `KMEM_HWCACHE_ALIGN`, and the flags that debug this cache; or 0.
   */
  unsigned int flags;
  /*
   Makes an object before it is first handed out; what it made survives frees. May be null.
   */
  void (*ctor)(void*);
  /*
   Most objects at a time; 0 for no limit.
   */
  size_t max_objects;
  /*
   As many objects as fit in so many bytes, each with what its cache puts around it; 0 for no limit. Only if
   `max_objects` is 0.
   */
  size_t max_bytes;
  /*
   The engine, in the words of `SLABLAB_ENGINE`; null for the process's own.
   */
  const char *engine;
};

/*
 What a cache holds. Racy while other threads use it.
 */
struct kmem_cache_stats {
  /*
   Bytes of an object, as asked.
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
   Slabs there are.
   */
  size_t slabs;
  /*
   Objects they can hold.
   */
  size_t objects;
  /*
   Objects handed out; without a limit, those that other threads' slots keep are among them.
   */
  size_t active;
  /*
   The most objects at a time; 0 without a limit.
   */
  size_t limit;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Makes a cache. `name` is copied. Null and `EINVAL` for a size, alignment, flag or name that cannot be, `ENOMEM` without memory
 or if there are too many caches.

 # Safety
 `name` is a text that ends with 0, or null; `ctor` may be called with any object of this cache.
 */
struct kmem_cache *kmem_cache_create(const char *name,
                                     size_t size,
                                     size_t align,
                                     unsigned int flags,
                                     void (*ctor)(void*));

/*
 The same, asked for more; `args` may be null.

 # Safety
 As [`kmem_cache_create`]; `args` and the texts it names can be read.
 */
struct kmem_cache *kmem_cache_create_args(const char *name, size_t size, const struct kmem_cache_args *args);

/*
 An object. Null and `ENOMEM` without memory, `EDQUOT` at the cache's limit, `EINVAL` for a flag that cannot be, `EAGAIN` in a
 signal handler that came in the middle of an allocation or a free.

 # Safety
 The cache is one.
 */
void *kmem_cache_alloc(struct kmem_cache *cache,
                       unsigned int flags);

/*
 `count` objects, all or none. Answers `count`, or 0 and an error number as [`kmem_cache_alloc`].

 # Safety
 The cache is one; `objects` has room for `count` addresses.
 */
size_t kmem_cache_alloc_bulk(struct kmem_cache *cache, unsigned int flags, size_t count, void **objects);

/*
 Gives an object back; null is nothing. An address that is no live object of this cache ends the process with a report.

 # Safety
 The cache is one; nobody uses the object any more.
 */
void kmem_cache_free(struct kmem_cache *cache,
                     void *object);

/*
 Gives `count` objects back, none of them null.

 # Safety
 As [`kmem_cache_free`]; `objects` has `count` addresses.
 */
void kmem_cache_free_bulk(struct kmem_cache *cache, size_t count, void **objects);

/*
 Gives back what is kept for nobody. 0 if no slab is left.

 # Safety
 The cache is one.
 */
int kmem_cache_shrink(struct kmem_cache *cache);

/*
 Ends a cache; null is nothing. 0, or -1 and `EBUSY` if objects remain: that is reported with their number, and the cache stays.

 # Safety
 The cache is one, and nobody uses it any more unless it stays.
 */
int kmem_cache_destroy(struct kmem_cache *cache);

/*
 Bytes of an object.

 # Safety
 The cache is one.
 */
size_t kmem_cache_size(const struct kmem_cache *cache);

/*
 The cache's name; lives as long as the cache.

 # Safety
 The cache is one.
 */
const char *kmem_cache_name(const struct kmem_cache *cache);

/*
 What a cache holds.

 # Safety
 The cache is one; `stats` can be written.
 */
void kmem_cache_get_stats(const struct kmem_cache *cache, struct kmem_cache_stats *stats);

/*
 Takes `count` objects in advance, and makes those that were never made; for sections that may not fail. Null and an error
 number as [`kmem_cache_alloc`].

 # Safety
 The cache is one.
 */
struct slab_sheaf *kmem_cache_prefill_sheaf(struct kmem_cache *cache,
                                            unsigned int flags,
                                            size_t count);

/*
 One of the objects in advance; null when none is left.

 # Safety
 The cache is one, and the sheaf came from it.
 */
void *kmem_cache_alloc_from_sheaf(struct kmem_cache *cache, unsigned int flags, struct slab_sheaf *sheaf);

/*
 Objects left in a sheaf.

 # Safety
 The sheaf is one.
 */
size_t kmem_cache_sheaf_size(const struct slab_sheaf *sheaf);

/*
 Gives a sheaf back, with what is left in it; null is nothing.

 # Safety
 The cache is one, and the sheaf came from it.
 */
void kmem_cache_return_sheaf(struct kmem_cache *cache, unsigned int _flags, struct slab_sheaf *sheaf);

/*
 Registers a function of a program that keeps objects for later. `ask` is called with the number of objects that are
 wanted and with `argument`, in the thread that wants memory; it returns the number of objects that it freed. It is called
 when memory is short, and when `cache`, which may be null, is at its limit. Null and `EINVAL` if `ask` is null.

 # Safety
 `cache` came from `kmem_cache_create`, or is null; `ask` may be called with `argument` in any thread until
 `kmem_unregister_shrinker` returned.
 */
struct kmem_shrinker *kmem_register_shrinker(struct kmem_cache *cache,
                                             size_t (*ask)(size_t, void*),
                                             void *argument);

/*
 Unregisters a shrinker; does nothing if `shrinker` is null. Waits for every call of its function that runs in another
 thread: once this returned, `argument` may be freed. The function may itself unregister its shrinker; its own call is then
 not waited for.

 # Safety
 `shrinker` came from `kmem_register_shrinker`, and is not used any more.
 */
void kmem_unregister_shrinker(struct kmem_shrinker *shrinker);

/*
 Asks every shrinker for all it can let go, and gives back what is kept for nobody. Answers the bytes that went back to the
 system.
 */
size_t kmem_shrink_all(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SLABLAB_H */
