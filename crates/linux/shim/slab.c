// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * SLAB: what it does is seen from outside. Its own statistics are compiled with CONFIG_DEBUG_SLAB alone, which
 * changes arrays and layout. So calls are counted here, by what changed of the state that headers have: a
 * CPU's array, the nodes' lists. With that option the files `tree_*` are the tree's own statistics, for a
 * comparison.
 */
#ifdef SLABLAB_SLAB
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/topology.h>
#include "slab.h"
#include "host.h"

/*
 * The begin of an array of objects, as the compiled code reads it. An array of another node's objects is
 * behind its lock.
 */
struct array {
	u32 avail;
	u32 limit;
	u32 batchcount;
	u32 touched;
};

struct alien {
	spinlock_t lock;
	struct array array __aligned(8);
};

enum count {
	ALLOCS, HITS, MISSES, FREE_HITS, FREE_MISSES, NODE_ALLOCS, NODE_FREES, OVERFLOWS, GROWN, GROW_TRIES,
	FALLBACKS, LIST_LOCKS, ALIEN_LOCKS, REAPED, COUNTS
};

/* A cache of the program. */
struct seen {
	struct kmem_cache *cache;
	u64 __percpu *counts;
};

/* Caches by address, and their nodes' locks: tables of linked places, a power of two long. */
#define CACHES 4096
#define LOCKS 65536
static struct seen caches[CACHES];
static struct {
	const void *lock;
	struct seen *seen;
} locks[LOCKS];

/* What was seen of a call. Calls of other CPUs may run while it waits for a lock or for pages. */
struct call {
	struct seen *running;
	u32 pending_aliens;
	struct page *fresh[16];
	u32 fresh_count, failed;
	/* The array that an object of another node is put into, and whether it was full. */
	const struct alien *alien;
	bool alien_was_full;
	/* A timer runs. What the node had whose lists are locked: a slab that goes alone, no objects come. */
	bool reaping;
	unsigned long free_before, slabs_before;
};

/* A start, a new cache: nothing runs beside them, and what they do counts for no cache. */
static struct call outside;

static struct call *current_call(void)
{
	struct call *call = slablab_current->own;

	return call ? call : &outside;
}

static u32 place_of(const void *address, u32 places)
{
	return ((u64)address >> 6) * 0x9E3779B97F4A7C15ull >> 40 & (places - 1);
}

static struct seen *seen_of(const struct kmem_cache *cache)
{
	u32 at = place_of(cache, CACHES);

	while (caches[at].cache && caches[at].cache != cache)
		at = (at + 1) % CACHES;
	return caches[at].cache ? &caches[at] : NULL;
}

static void count(struct seen *seen, enum count what, u64 by)
{
	if (seen)
		this_cpu_add(seen->counts[what], by);
}

static struct seen *know(struct kmem_cache *cache)
{
	static u32 known;
	u32 at = place_of(cache, CACHES);

	if (++known == CACHES)
		slablab_end(SLABLAB_PANIC, "slablab: more caches than the shim holds", 0);
	while (caches[at].cache)
		at = (at + 1) % CACHES;
	caches[at].counts = slablab_percpu_alloc(COUNTS * sizeof(u64), 8);
	if (!caches[at].counts)
		slablab_end(SLABLAB_PANIC, "slablab: the CPUs' areas are used up", 0);
	caches[at].cache = cache;
	return &caches[at];
}

/* The locks of all caches' nodes: any other lock of SLAB is of an array for another node's objects. */
static void know_locks(void)
{
	struct kmem_cache *cache;
	struct kmem_cache_node *n;
	static u32 known;
	int node;

	list_for_each_entry(cache, &slab_caches, list)
		for_each_kmem_cache_node(cache, node, n) {
			u32 at = place_of(&n->list_lock, LOCKS);

			while (locks[at].lock && locks[at].lock != &n->list_lock)
				at = (at + 1) % LOCKS;
			if (!locks[at].lock && ++known == LOCKS)
				slablab_end(SLABLAB_PANIC, "slablab: more locks than the shim holds", 0);
			locks[at].lock = &n->list_lock;
			locks[at].seen = seen_of(cache);
		}
}

/* SLAB looks whether a lock of its lists is held. */
static void mark(void *lock, int held)
{
	atomic_set(&((raw_spinlock_t *)lock)->raw_lock.val, held);
}

/* The arrays for other nodes' objects that a node has whose CPU goes: by then the node does not know them. */
static struct {
	const void *lock;
	struct seen *seen;
} leaving[LOCKS];
static u32 leaving_count;

static void know_leaving(u32 cpu)
{
	struct kmem_cache *cache;
	int other;

	memset(leaving, 0, sizeof(leaving));
	leaving_count = 0;
	list_for_each_entry(cache, &slab_caches, list) {
		struct kmem_cache_node *n = get_node(cache, cpu_to_mem(cpu));
		struct alien **aliens = n ? (struct alien **)n->alien : NULL;

		for_each_online_node(other) {
			u32 at = place_of(aliens ? aliens[other] : NULL, LOCKS);

			if (!aliens || !aliens[other] || !seen_of(cache) || leaving_count == LOCKS / 2)
				continue;
			while (leaving[at].lock)
				at = (at + 1) % LOCKS;
			leaving[at].lock = &aliens[other]->lock;
			leaving[at].seen = seen_of(cache);
			leaving_count++;
		}
	}
}

static struct seen *owner_of(const void *lock)
{
	u32 at = place_of(lock, LOCKS);

	while (leaving[at].lock && leaving[at].lock != lock)
		at = (at + 1) % LOCKS;
	return leaving[at].seen;
}

static u32 known_as(void *lock)
{
	u32 at = place_of(lock, LOCKS);

	while (locks[at].lock && locks[at].lock != lock)
		at = (at + 1) % LOCKS;
	return at;
}

void slablab_unlocked(void *lock)
{
	struct kmem_cache_node *n = container_of(lock, struct kmem_cache_node, list_lock);
	const struct call *call = current_call();
	u32 at = known_as(lock);

	mark(lock, 0);
	if (call->reaping && locks[at].seen && n->total_slabs + 1 == call->slabs_before &&
	    n->free_objects + locks[at].seen->cache->num == call->free_before)
		count(locks[at].seen, REAPED, 1);
}

void slablab_locked(void *lock)
{
	struct kmem_cache_node *n = container_of(lock, struct kmem_cache_node, list_lock);
	struct call *call = current_call();
	u32 at = known_as(lock);

	mark(lock, 1);
	if (!locks[at].lock) {
		if (call->alien && lock == &call->alien->lock)
			call->alien_was_full = call->alien->array.avail >= call->alien->array.limit;
		/* In a timer the cache is that of the lock which is taken next. */
		if (call->running)
			count(call->running, ALIEN_LOCKS, 1);
		else if (call->reaping)
			call->pending_aliens++;
		else
			count(owner_of(lock), ALIEN_LOCKS, 1);
		return;
	}
	call->slabs_before = n->total_slabs;
	call->free_before = n->free_objects;
	count(locks[at].seen, LIST_LOCKS, 1);
	count(locks[at].seen, ALIEN_LOCKS, call->pending_aliens);
	call->pending_aliens = 0;
}

void slablab_took(struct page *page)
{
	struct call *call = current_call();

	if (!page)
		call->failed++;
	else if (call->fresh_count < ARRAY_SIZE(call->fresh))
		call->fresh[call->fresh_count++] = page;
}

void slablab_gave(struct page *page)
{
	struct call *call = current_call();
	u32 at;

	for (at = 0; at < call->fresh_count; at++)
		if (call->fresh[at] == page) {
			call->fresh[at] = call->fresh[--call->fresh_count];
			call->failed++;
		}
}

static void begin(struct call *call, struct seen *seen)
{
	*call = (struct call){ .running = seen };
	slablab_current->own = call;
}

/* Whose the call's new slabs are is known when they are slabs. */
static void end(struct call *call)
{
	u32 at;

	slablab_current->own = NULL;
	for (at = 0; at < call->fresh_count; at++) {
		struct kmem_cache *cache = ((struct slab *)call->fresh[at])->slab_cache;
		struct seen *owner = seen_of(cache);

		count(owner, GROWN, 1);
		count(owner, GROW_TRIES, 1);
		if (owner != call->running)
			host_owner(page_to_pfn(call->fresh[at]), owner ? owner->cache : NULL);
	}
	count(call->running, GROW_TRIES, call->failed);
}

static struct array *array_of(struct kmem_cache *cache)
{
	return this_cpu_ptr((struct array __percpu *)cache->cpu_cache);
}

void slablab_made(struct kmem_cache *cache)
{
	if (cache && !seen_of(cache))
		know(cache);
	know_locks();
}

void *slablab_alloc(struct kmem_cache *cache, u32 gfp, s32 node)
{
	gfp_t native = (__force gfp_t)slablab_native_gfp(gfp);
	struct seen *seen = seen_of(cache);
	int here = numa_mem_id();
	bool local = node < 0 || node == here;
	bool hit = local && array_of(cache)->avail;
	struct call call;
	void *object;

	begin(&call, seen);
	object = node < 0 ? kmem_cache_alloc(cache, native) : kmem_cache_alloc_node(cache, native, node);
	count(seen, ALLOCS, 1);
	count(seen, hit ? HITS : MISSES, local);
	if (object && !hit) {
		int from = page_to_nid(virt_to_page(object));

		/* An array has objects of its own node, unless there are no arrays for other nodes' objects. */
		if (!local || (from != here && cache->node[here] && cache->node[here]->alien))
			count(seen, NODE_ALLOCS, 1);
		count(seen, FALLBACKS, from != (local ? here : node));
	}
	/* What fails has tried other nodes, if it may. */
	if (!object)
		count(seen, FALLBACKS, !(native & __GFP_THISNODE));
	end(&call);
	return object;
}

u64 slablab_free(struct kmem_cache *cache, void *object)
{
	struct seen *seen = seen_of(cache);
	int from = page_to_nid(virt_to_page(object)), here = numa_mem_id();
	struct call call;

	begin(&call, seen);
	if (nr_online_nodes > 1 && from != here) {
		struct alien **aliens = cache->node[here] ? (struct alien **)cache->node[here]->alien : NULL;

		call.alien = aliens ? aliens[from] : NULL;
		kmem_cache_free(cache, object);
		count(seen, NODE_FREES, 1);
		count(seen, OVERFLOWS, call.alien_was_full);
	} else {
		struct array *array = array_of(cache);
		bool full = array->avail >= array->limit;

		kmem_cache_free(cache, object);
		count(seen, full ? FREE_MISSES : FREE_HITS, 1);
	}
	end(&call);
	return 0;
}

u64 slablab_shrink(struct kmem_cache *cache)
{
	struct call call;

	begin(&call, seen_of(cache));
	kmem_cache_shrink(cache);
	end(&call);
	return 0;
}

u64 slablab_destroy(struct kmem_cache *cache)
{
	struct call call;
	u64 busy;

	begin(&call, seen_of(cache));
	busy = !!__kmem_cache_shutdown(cache);
	end(&call);
	return busy;
}

void slablab_run(void (*function)(void *), void *argument)
{
	struct call call;

	begin(&call, NULL);
	call.reaping = true;
	function(argument);
	end(&call);
}

/* Any lock that is not of a node's lists is of an array of another node's objects. */
u64 slablab_lock_kind(const void *lock, const struct kmem_cache *cache)
{
	u32 at = known_as((void *)lock);

	if (!locks[at].lock)
		return SLABLAB_ALIEN;
	return SLABLAB_NODE | (locks[at].seen == seen_of(cache) ? SLABLAB_OWN : 0);
}

/* The files of a cache, by the names of SLUB's where they say the same. */

static u64 number_of(struct kmem_cache *cache, const char *name, bool *known)
{
	*known = true;
	if (!strcmp(name, "slab_size"))
		return cache->size;
	if (!strcmp(name, "object_size"))
		return cache->object_size;
	if (!strcmp(name, "order"))
		return cache->gfporder;
	if (!strcmp(name, "objs_per_slab"))
		return cache->num;
	if (!strcmp(name, "limit"))
		return cache->limit;
	if (!strcmp(name, "batchcount"))
		return cache->batchcount;
	if (!strcmp(name, "shared"))
		return cache->shared;
	/* Of the timer's next visit of node 0, in ticks of the tree's clock. */
	if (!strcmp(name, "next_reap"))
		return get_node(cache, 0)->next_reap;
#ifdef CONFIG_DEBUG_SLAB
	if (!strcmp(name, "tree_grown"))
		return cache->grown;
	if (!strcmp(name, "tree_reaped"))
		return cache->reaped;
	if (!strcmp(name, "tree_node_allocs"))
		return cache->node_allocs;
	if (!strcmp(name, "tree_node_frees"))
		return cache->node_frees;
	if (!strcmp(name, "tree_node_overflow"))
		return cache->node_overflow;
	if (!strcmp(name, "tree_allochit"))
		return atomic_read(&cache->allochit);
	if (!strcmp(name, "tree_allocmiss"))
		return atomic_read(&cache->allocmiss);
	if (!strcmp(name, "tree_freehit"))
		return atomic_read(&cache->freehit);
	if (!strcmp(name, "tree_freemiss"))
		return atomic_read(&cache->freemiss);
#endif
	*known = false;
	return 0;
}

static u64 length_of(struct list_head *list)
{
	struct list_head *at;
	u64 length = 0;

	list_for_each(at, list)
		length++;
	return length;
}

static u64 of_node(struct kmem_cache *cache, struct kmem_cache_node *n, const char *name, bool *known)
{
	*known = true;
	if (!strcmp(name, "slabs"))
		return n->total_slabs;
	if (!strcmp(name, "total_objects"))
		return n->total_slabs * cache->num;
	/* As SLUB's file: those that no list has free. */
	if (!strcmp(name, "objects"))
		return n->total_slabs * cache->num - n->free_objects;
	if (!strcmp(name, "partial"))
		return length_of(&n->slabs_partial) + n->free_slabs;
	*known = false;
	return 0;
}

static const struct {
	const char *name;
	enum count of[2];
	s8 sign;	/* Of the second one; 0 without one. */
} counted[] = {
	{ "alloc_fastpath", { HITS } },
	{ "alloc_slowpath", { ALLOCS, HITS }, -1 },
	{ "free_fastpath", { FREE_HITS } },
	{ "free_slowpath", { FREE_MISSES, NODE_FREES }, 1 },
	{ "alloc_slab", { GROWN } },
	{ "allochit", { HITS } },
	{ "allocmiss", { MISSES } },
	{ "freehit", { FREE_HITS } },
	{ "freemiss", { FREE_MISSES } },
	{ "node_allocs", { NODE_ALLOCS } },
	{ "node_frees", { NODE_FREES } },
	{ "node_overflow", { OVERFLOWS } },
	{ "grown", { GROWN } },
	{ "reaped", { REAPED } },
	{ "grow_tries", { GROW_TRIES } },
	{ "fallback_alloc", { FALLBACKS } },
	{ "lock_node_list", { LIST_LOCKS } },
	{ "lock_alien", { ALIEN_LOCKS } },
};

static u64 of_cpu(struct seen *seen, u32 which, u32 cpu)
{
	u64 *counts = per_cpu_ptr(seen->counts, cpu);

	return counts[counted[which].of[0]] + counted[which].sign * counts[counted[which].of[1]];
}

u64 slablab_show(struct kmem_cache *cache, const char *name, char *out, u64 bytes)
{
	struct seen *seen = seen_of(cache);
	struct kmem_cache_node *n;
	u64 sum = 0, length, at;
	bool known;
	int node, cpu;

	sum = number_of(cache, name, &known);
	if (known)
		return scnprintf(out, bytes, "%llu\n", sum);
	for_each_kmem_cache_node(cache, node, n)
		sum += of_node(cache, n, name, &known);
	if (known) {
		length = scnprintf(out, bytes, "%llu", sum);
		for_each_kmem_cache_node(cache, node, n)
			length += scnprintf(out + length, bytes - length, " N%d=%llu", node,
					    of_node(cache, n, name, &known));
		return length;
	}
	for (at = 0; seen && at < ARRAY_SIZE(counted); at++) {
		if (strcmp(name, counted[at].name))
			continue;
		for_each_possible_cpu(cpu)
			sum += of_cpu(seen, at, cpu);
		length = scnprintf(out, bytes, "%llu", sum);
		for_each_possible_cpu(cpu)
			if (of_cpu(seen, at, cpu))
				length += scnprintf(out + length, bytes - length, " C%d=%llu", cpu,
						    of_cpu(seen, at, cpu));
		return length;
	}
	return -1;
}

u64 slablab_store(struct kmem_cache *cache, const char *name, const char *value)
{
	return -1;
}

/* CPUs that come and go: the tree's functions, in the kernel's order. */
void slablab_cpu_coming(u32 cpu)
{
	struct call call;

	begin(&call, NULL);
	slab_prepare_cpu(cpu);
	end(&call);
	know_locks();
}

void slablab_cpu_gone(u32 cpu)
{
	struct call call;

	begin(&call, NULL);
	know_leaving(cpu);
	slab_dead_cpu(cpu);
	end(&call);
}

void on_each_cpu_cond_mask(smp_cond_func_t cond, smp_call_func_t func, void *info, bool wait,
			   const struct cpumask *mask)
{
	int cpu;

	for_each_cpu(cpu, mask) {
		if (!cpu_online(cpu) || (cond && !cond(cpu, info)))
			continue;
		slablab_on_cpu(cpu, func, info);
	}
}

void kick_all_cpus_sync(void)
{
}

const u64 slablab_allocator = 1;
#endif
