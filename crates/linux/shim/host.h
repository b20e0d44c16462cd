/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the program and the image tell each other. `image/host.rs` has the same structures, field by field.
 *
 * The image never calls the program directly: the kernel's stack is aligned to 8 bytes, and a call that is
 * suspended may go on after calls of other CPUs. The functions `host_*` in thunks.S align the stack, and
 * restore the CPU (the base of GS) and the running call afterwards.
 */
#ifndef SLABLAB_HOST_H
#define SLABLAB_HOST_H

#ifndef __ASSEMBLY__
#include <linux/types.h>

/* The modelled machine, as it is when the image starts. */
struct slablab_machine {
	u64 page_offset;	/* Address of frame 0's memory. */
	u64 struct_pages;	/* Address of frame 0's struct page. */
	u64 percpu;		/* Address of CPU 0's area; it holds a copy of the image's section. */
	u64 percpu_stride;	/* Bytes from one CPU's area to the next. */
	u64 arena;		/* Zeroed memory of the shim's own. */
	u64 arena_bytes;
	u32 cpus;
	u32 nodes;
	const u16 *cpu_node;	/* The node of each CPU. */
	const u8 *cpu_online;	/* 1 for a CPU that is up. */
	const u8 *node_memory;	/* 1 for a node that has memory. */
	const u16 *zonelists;	/* For each node its zonelist: pairs of node and zone, ended by SLABLAB_END. */
	u32 zonelist_stride;	/* Numbers from one node's list to the next. */
	u64 frames;		/* Frames of the machine. */
};

#define SLABLAB_END 0xffff

/* What a lock is of, and whether that is the cache's whose call takes it. */
enum slablab_lock {
	SLABLAB_OTHER, SLABLAB_NODE, SLABLAB_BARN, SLABLAB_ALIEN, SLABLAB_HEAP, SLABLAB_OWN = 8,
};

/* What ends or marks a run. */
enum slablab_report {
	SLABLAB_PRINTED,	/* A message of the kernel. */
	SLABLAB_WARNING,
	SLABLAB_BUG,
	SLABLAB_PANIC,
	SLABLAB_MISSING,	/* A symbol was called that has no meaning. */
};

struct kmem_cache;
/* Calls of the program, in the order of slablab_host_table. */
u64 host_pages_alloc(u32 gfp, u32 order, s32 node);	/* A frame's number and, above bit 32, its node; 0: none. */
void host_pages_free(u64 pfn, u32 order);
void host_lock(void *lock, u64 caller);
u32 host_trylock(void *lock, u64 caller);
void host_unlock(void *lock);
void host_after_grace_period(void *head, void *function);
void host_barrier(void);				/* Runs what waits for a grace period. */
void host_report(u32 kind, const char *text, u64 caller);
u64 host_jiffies(void);
u32 host_random(void);
void host_defer(u32 cpu, void *work, u64 ns);		/* slablab_later(work) is due on the CPU. */
void host_owner(u64 pfn, struct kmem_cache *cache);	/* The cache that a block is of; NULL: not one of the program. */
void host_reports(void);				/* Takes what the code reported. */

/* Leaves the running call of the program for good. */
void slablab_escape(void *call) __attribute__((noreturn));

/* A running call, as the shim's C code knows it. */
struct slablab_call {
	u64 of_thunks[11];
	void *own;		/* What slab.c or slob.c has seen of it; NULL before they begin. */
};
extern struct slablab_call *slablab_current;

/* Memory of the shim's own, zeroed; never freed. */
void *slablab_arena(u64 bytes);
u32 slablab_native_gfp(u32 gfp);
u32 slablab_neutral_gfp(u32 gfp);
void slablab_end(u32 kind, const char *text, u64 caller) __attribute__((noreturn));
extern const struct slablab_machine *slablab_machine;

/* Functions that the program calls. */
struct rcu_head;
struct bug_entry;
u64 slablab_prepare(const struct slablab_machine *m);
u64 slablab_parameter(const char *name, const char *value);
u64 slablab_boot(void);
u64 slablab_set_online(u32 cpu, u32 online);
u64 slablab_cpu_steps(u32 cpu, u32 up);
u64 slablab_free_later(struct rcu_head *head, void (*function)(struct rcu_head *), struct kmem_cache *cache);
u64 slablab_later(void *work);
struct kmem_cache *slablab_create(const char *name, u32 size, u32 align, u32 flags);
void *slablab_alloc(struct kmem_cache *cache, u32 gfp, s32 node);
u64 slablab_free(struct kmem_cache *cache, void *object);
u64 slablab_alloc_bulk(struct kmem_cache *cache, u32 gfp, u64 count, void **objects);
u64 slablab_free_bulk(struct kmem_cache *cache, u64 count, void **objects);
u64 slablab_free_rcu(struct kmem_cache *cache, void *object);
u64 slablab_shrink(struct kmem_cache *cache);
u64 slablab_destroy(struct kmem_cache *cache);
u64 slablab_fill(void *bytes, u64 count, u64 value);
u64 slablab_differs(const u8 *bytes, u64 count, u64 value);
struct kmem_cache *slablab_cache_of(const void *address);
void *slablab_kmalloc(struct kmem_cache *account, u32 gfp, s32 node, u32 bytes);
u64 slablab_kfree(struct kmem_cache *account, void *object);
u64 slablab_lock_kind(const void *lock, const struct kmem_cache *cache);
u64 slablab_show(struct kmem_cache *cache, const char *name, char *out, u64 bytes);
u64 slablab_store(struct kmem_cache *cache, const char *name, const char *value);
u64 slablab_find_bug(u64 address, const char **file, u32 *line);
void slablab_warn(struct bug_entry *bug);
void *slablab_percpu_alloc(size_t size, size_t align);

/* What one part of the shim tells another. */
void slablab_made(struct kmem_cache *cache);	/* A cache was made; NULL: the allocator was started. */
void slablab_run(void (*function)(void *), void *argument);
void slablab_on_cpu(u32 cpu, void (*function)(void *), void *argument);
void slablab_set_clock(void);
void slablab_run_steps(u32 cpu, u32 up);
#ifdef SLABLAB_SLUB
#define slablab_locked(lock)
#define slablab_unlocked(lock)
#define slablab_took(page)
#define slablab_gave(page)
#else
struct page;
void slablab_locked(void *lock);
void slablab_unlocked(void *lock);
void slablab_took(struct page *page);		/* NULL: none was left. */
void slablab_gave(struct page *page);
#endif
#ifdef SLABLAB_SLAB
void slablab_cpu_coming(u32 cpu);
void slablab_cpu_gone(u32 cpu);
#endif
#endif
#endif
