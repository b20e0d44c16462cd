// SPDX-License-Identifier: MIT OR Apache-2.0
/* What the program asks of the allocator. */
#include <linux/slab.h>
#include <linux/mm.h>
#include <linux/string.h>
#include "slab.h"
#include "host.h"

/* The program's flags of caches, from bit 0 on. */
static const slab_flags_t flag_of[] = {
	SLAB_HWCACHE_ALIGN, SLAB_RECLAIM_ACCOUNT, SLAB_CACHE_DMA, SLAB_TYPESAFE_BY_RCU,
};

static void constructor(void *object)
{
}

struct kmem_cache *slablab_create(const char *name, u32 size, u32 align, u32 flags)
{
	slab_flags_t native = 0;
	struct kmem_cache *cache;
	u32 bit;

	for (bit = 0; bit < ARRAY_SIZE(flag_of); bit++)
		if (flags & 1u << bit)
			native |= flag_of[bit];
	/* Caches are merged by the program, which knows their names. */
#ifdef SLAB_NO_MERGE
	native |= SLAB_NO_MERGE;
#endif
	slablab_set_clock();
	cache = kmem_cache_create(name, size, align, native, flags & 1u << 6 ? constructor : NULL);
	slablab_made(cache);
	return cache;
}

/* The first byte that is not the value, and above bit 32 what it is; ~0: there is none. */
u64 slablab_differs(const u8 *bytes, u64 count, u64 value)
{
	u64 at;

	for (at = 0; at < count; at++)
		if (bytes[at] != (u8)value)
			return at | (u64)bytes[at] << 32;
	return ~0ull;
}

u64 slablab_fill(void *bytes, u64 count, u64 value)
{
	memset(bytes, value, count);
	return 0;
}

#ifdef SLABLAB_SLUB
/*
 * What a lock is of. It is the given cache's if the cache's structure points to what the lock lies in; an object
 * that is no cache's node is a barn.
 */
u64 slablab_lock_kind(const void *lock, const struct kmem_cache *cache)
{
	struct slab *slab = virt_addr_valid(lock) ? virt_to_slab(lock) : NULL;
	struct slab *of_cache = virt_to_slab(cache);
	unsigned long first, word, bytes = of_cache ? of_cache->slab_cache->object_size : 0;
	u64 kind;

	if (!slab)
		return SLABLAB_OTHER;
	kind = strcmp(slab->slab_cache->name, "kmem_cache_node") ? SLABLAB_BARN : SLABLAB_NODE;
	first = (unsigned long)slab_address(slab);
	first += ((unsigned long)lock - first) / slab->slab_cache->size * slab->slab_cache->size;
	for (word = 0; word + sizeof(first) <= bytes; word += sizeof(first))
		if (*(const unsigned long *)((const char *)cache + word) == first)
			return kind | SLABLAB_OWN;
	return kind;
}

void slablab_made(struct kmem_cache *cache)
{
}

void *slablab_alloc(struct kmem_cache *cache, u32 gfp, s32 node)
{
	gfp_t native = (__force gfp_t)slablab_native_gfp(gfp);

	return node < 0 ? kmem_cache_alloc(cache, native) : kmem_cache_alloc_node(cache, native, node);
}

u64 slablab_free(struct kmem_cache *cache, void *object)
{
	kmem_cache_free(cache, object);
	return 0;
}

/* Whether all were allocated: else none was. */
u64 slablab_alloc_bulk(struct kmem_cache *cache, u32 gfp, u64 count, void **objects)
{
	return !!kmem_cache_alloc_bulk(cache, (__force gfp_t)slablab_native_gfp(gfp), count, objects);
}

u64 slablab_free_bulk(struct kmem_cache *cache, u64 count, void **objects)
{
	kmem_cache_free_bulk(cache, count, objects);
	return 0;
}

/* Whether the CPU's sheaf took the object, which is freed after a grace period. */
u64 slablab_free_rcu(struct kmem_cache *cache, void *object)
{
#ifdef SLAB_FREE_DEFAULT
	return __kfree_rcu_sheaf(cache, object, SLAB_FREE_DEFAULT);
#else
	return 0;
#endif
}

u64 slablab_shrink(struct kmem_cache *cache)
{
	return kmem_cache_shrink(cache);
}

/* Whether objects are in use. The structure stays, with its counts. */
u64 slablab_destroy(struct kmem_cache *cache)
{
	return !!__kmem_cache_shutdown(cache);
}

void slablab_run(void (*function)(void *), void *argument)
{
	function(argument);
}

/* The allocator, as the program numbers them: SLUB, SLAB, SLOB. */
const u64 slablab_allocator = 0;
#endif

#ifndef SLABLAB_SLUB
/* The program calls these for SLUB alone: the others' calls are counted one by one. */
u64 slablab_alloc_bulk(struct kmem_cache *cache, u32 gfp, u64 count, void **objects)
{
	return 0;
}

u64 slablab_free_bulk(struct kmem_cache *cache, u64 count, void **objects)
{
	return 0;
}

u64 slablab_free_rcu(struct kmem_cache *cache, void *object)
{
	return 0;
}
#endif

#ifdef SLABLAB_SLOB
struct kmem_cache *slablab_cache_of(const void *address)
{
	return NULL;
}
#else
/* The cache whose slab an address is in; NULL: it is in none. */
struct kmem_cache *slablab_cache_of(const void *address)
{
	struct slab *slab = virt_to_slab(address);

	return slab ? slab->slab_cache : NULL;
}

/* Caches of kmalloc are caches like others. */
void *slablab_kmalloc(struct kmem_cache *cache, u32 gfp, s32 node, u32 bytes)
{
	return slablab_alloc(cache, gfp, node);
}

u64 slablab_kfree(struct kmem_cache *cache, void *object)
{
	return slablab_free(cache, object);
}

u64 slablab_free_later(struct rcu_head *head, void (*function)(struct rcu_head *), struct kmem_cache *cache)
{
	function(head);
	return 0;
}
#endif
