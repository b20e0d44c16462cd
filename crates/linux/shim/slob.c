// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * SLOB: what it does is seen from outside, as it counts nothing: by the pages that it takes and gives, and by
 * the flag of a page that has room. Caches share pages; what the program counts of a cache are its own calls.
 */
#ifdef SLABLAB_SLOB
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/page-flags.h>
#include <linux/slab.h>
#include "slab.h"
#include "host.h"

enum count {
	ALLOCS, FREES, FROM_LISTED, PAGES_TAKEN, PAGES_GIVEN, LISTED, UNLISTED, HEAP_LOCKS, COUNTS
};

/*
 * A cache of the program: by its CPUs what happened, by its nodes the bytes of objects in shared pages, and how
 * many objects have pages of their own.
 */
struct seen {
	struct kmem_cache *cache;
	u64 __percpu *counts;
	s64 *bytes;
	s64 *large;
};

#define CACHES 4096
static struct seen caches[CACHES];

/* What was seen of a call. Calls of other CPUs may run while it waits for the lock or for pages. */
struct call {
	struct seen *running;
	struct page *fresh[64];
	u32 fresh_count, taken, given;
};

/* A start, a new cache: nothing runs beside them, and what they do counts for no cache. */
static struct call outside;

static struct call *current_call(void)
{
	struct call *call = slablab_current->own;

	return call ? call : &outside;
}

static u32 place_of(const void *address)
{
	return ((u64)address >> 3) * 0x9E3779B97F4A7C15ull >> 40 & (CACHES - 1);
}

static struct seen *seen_of(const struct kmem_cache *cache)
{
	u32 at = place_of(cache);

	while (caches[at].cache && caches[at].cache != cache)
		at = (at + 1) % CACHES;
	return caches[at].cache ? &caches[at] : NULL;
}

static void count(enum count what, u64 by)
{
	struct seen *seen = current_call()->running;

	if (seen)
		this_cpu_add(seen->counts[what], by);
}

static void begin(struct call *call, struct seen *seen)
{
	*call = (struct call){ .running = seen };
	slablab_current->own = call;
}

static void end(void)
{
	slablab_current->own = NULL;
}

void slablab_locked(void *lock)
{
	count(HEAP_LOCKS, 1);
}

void slablab_unlocked(void *lock)
{
}

void slablab_took(struct page *page)
{
	struct call *call = current_call();

	if (!page)
		return;
	call->taken++;
	if (call->fresh_count == ARRAY_SIZE(call->fresh))
		slablab_end(SLABLAB_PANIC, "slablab: a call took more pages than the shim holds", 0);
	call->fresh[call->fresh_count++] = page;
}

void slablab_gave(struct page *page)
{
	current_call()->given++;
}

/*
 * After a start or a new cache: the program's objects lie in the machine's memory, so the pages that were
 * taken here leave the lists.
 */
void slablab_made(struct kmem_cache *cache)
{
	static u32 known;
	u32 at;

	for (at = 0; at < outside.fresh_count; at++)
		if (PageSlobFree(outside.fresh[at])) {
			list_del(&((struct slab *)outside.fresh[at])->slab_list);
			__ClearPageSlobFree(outside.fresh[at]);
		}
	outside.fresh_count = 0;
	if (!cache || seen_of(cache))
		return;
	if (++known == CACHES)
		slablab_end(SLABLAB_PANIC, "slablab: more caches than the shim holds", 0);
	for (at = place_of(cache); caches[at].cache; at = (at + 1) % CACHES)
		;
	caches[at].counts = slablab_percpu_alloc(COUNTS * sizeof(u64), 8);
	if (!caches[at].counts)
		slablab_end(SLABLAB_PANIC, "slablab: the CPUs' areas are used up", 0);
	caches[at].bytes = slablab_arena(nr_node_ids * sizeof(s64));
	caches[at].large = slablab_arena(nr_node_ids * sizeof(s64));
	caches[at].cache = cache;
}

/* `bytes`: of an object that is allocated, or negative. */
static void tally(void *object, s64 bytes)
{
	struct page *page = virt_to_head_page(object);
	struct seen *seen = current_call()->running;

	if (!seen)
		return;
	if (PageSlab(page))
		seen->bytes[page_to_nid(page)] += bytes;
	else
		seen->large[page_to_nid(page)] += bytes < 0 ? -1 : 1;
}

static void *done(void *object, u64 bytes)
{
	u32 taken = current_call()->taken;

	count(ALLOCS, 1);
	count(PAGES_TAKEN, taken);
	if (object) {
		count(FROM_LISTED, !taken);
		tally(object, ALIGN(bytes, 2));
	}
	end();
	return object;
}

void *slablab_alloc(struct kmem_cache *cache, u32 gfp, s32 node)
{
	gfp_t native = (__force gfp_t)slablab_native_gfp(gfp);
	struct call call;

	begin(&call, seen_of(cache));
	return done(node < 0 ? kmem_cache_alloc(cache, native) : kmem_cache_alloc_node(cache, native, node),
		    cache->size);
}

/* The bytes in front of an object of kmalloc. */
#define HEADER max_t(u64, ARCH_KMALLOC_MINALIGN, ARCH_SLAB_MINALIGN)

void *slablab_kmalloc(struct kmem_cache *account, u32 gfp, s32 node, u32 bytes)
{
	gfp_t native = (__force gfp_t)slablab_native_gfp(gfp);
	struct call call;

	begin(&call, seen_of(account));
	return done(node < 0 ? __kmalloc(bytes, native) : __kmalloc_node(bytes, native, node), bytes + HEADER);
}

static void freed(struct page *page, bool was_listed)
{
	u32 given = current_call()->given;

	count(PAGES_GIVEN, given);
	count(UNLISTED, given && was_listed);
	count(LISTED, !given && !was_listed && PageSlobFree(page));
	end();
}

u64 slablab_free(struct kmem_cache *cache, void *object)
{
	struct page *page = virt_to_head_page(object);
	bool was_listed = PageSlobFree(page);
	struct call call;

	begin(&call, seen_of(cache));
	count(FREES, 1);
	if (!(cache->flags & SLAB_TYPESAFE_BY_RCU) || !PageSlab(page))
		tally(object, -(s64)ALIGN(cache->size, 2));
	kmem_cache_free(cache, object);
	freed(page, was_listed);
	return 0;
}

u64 slablab_kfree(struct kmem_cache *account, void *object)
{
	struct page *page = virt_to_head_page(object);
	bool was_listed = PageSlobFree(page);
	struct call call;

	begin(&call, seen_of(account));
	count(FREES, 1);
	tally(object, -(s64)ALIGN(__ksize(object) + HEADER, 2));
	kfree(object);
	freed(page, was_listed);
	return 0;
}

/* An object whose readers have ended. */
u64 slablab_free_later(struct rcu_head *head, void (*function)(struct rcu_head *), struct kmem_cache *cache)
{
	struct page *page = virt_to_head_page(head);
	bool was_listed = PageSlobFree(page);
	struct call call;

	begin(&call, seen_of(cache));
	if (PageSlab(page))
		tally(head, -(s64)ALIGN(cache->size, 2));
	function(head);
	freed(page, was_listed);
	return 0;
}

u64 slablab_shrink(struct kmem_cache *cache)
{
	return kmem_cache_shrink(cache);
}

u64 slablab_destroy(struct kmem_cache *cache)
{
	return !!__kmem_cache_shutdown(cache);
}

void slablab_run(void (*function)(void *), void *argument)
{
	function(argument);
}

u64 slablab_lock_kind(const void *lock, const struct kmem_cache *cache)
{
	return SLABLAB_HEAP;
}

static const char *const counted[COUNTS] = {
	[ALLOCS] = "alloc_slowpath", [FREES] = "free_slowpath", [FROM_LISTED] = "alloc_from_partial",
	[PAGES_TAKEN] = "alloc_slab", [PAGES_GIVEN] = "free_slab", [LISTED] = "free_add_partial",
	[UNLISTED] = "free_remove_partial", [HEAP_LOCKS] = "lock_heap",
};

u64 slablab_show(struct kmem_cache *cache, const char *name, char *out, u64 bytes)
{
	struct seen *seen = seen_of(cache);
	u64 length, sum = 0;
	u32 at;
	int cpu;

	if (!strcmp(name, "slab_size"))
		return scnprintf(out, bytes, "%u\n", cache->size);
	if (!strcmp(name, "object_size"))
		return scnprintf(out, bytes, "%u\n", cache->object_size);
	if (!strcmp(name, "align"))
		return scnprintf(out, bytes, "%u\n", cache->align);
	if (seen && (!strcmp(name, "shared_bytes") || !strcmp(name, "large_objects"))) {
		const s64 *of = *name == 's' ? seen->bytes : seen->large;

		for (at = 0; at < nr_node_ids; at++)
			sum += of[at];
		length = scnprintf(out, bytes, "%llu", sum);
		for (at = 0; at < nr_node_ids; at++)
			length += scnprintf(out + length, bytes - length, " N%u=%llu", at, of[at]);
		return length;
	}
	for (at = 0; seen && at < COUNTS; at++) {
		if (strcmp(name, counted[at]))
			continue;
		for_each_possible_cpu(cpu)
			sum += per_cpu_ptr(seen->counts, cpu)[at];
		length = scnprintf(out, bytes, "%llu", sum);
		for_each_possible_cpu(cpu)
			if (per_cpu_ptr(seen->counts, cpu)[at])
				length += scnprintf(out + length, bytes - length, " C%d=%llu", cpu,
						    per_cpu_ptr(seen->counts, cpu)[at]);
		return length;
	}
	return -1;
}

u64 slablab_store(struct kmem_cache *cache, const char *name, const char *value)
{
	return -1;
}

const u64 slablab_allocator = 2;
#endif
