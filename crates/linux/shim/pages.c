// SPDX-License-Identifier: MIT OR Apache-2.0
/* Pages: blocks are the program's; here a block gets the struct pages that the tree expects. */
#include <linux/gfp.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/page-flags.h>
#include <linux/vmstat.h>
#include "slab.h"
#include "internal.h"
#include "host.h"

/* The bits of the program's flags, from bit 0 on; 0 for a flag that the tree does not have. */
static const u32 native[] = {
	(__force u32)__GFP_DMA, (__force u32)__GFP_HIGHMEM, (__force u32)__GFP_DMA32, (__force u32)__GFP_MOVABLE,
	(__force u32)__GFP_RECLAIMABLE, (__force u32)__GFP_HIGH, (__force u32)__GFP_IO, (__force u32)__GFP_FS,
	(__force u32)__GFP_ZERO, (__force u32)__GFP_DIRECT_RECLAIM, (__force u32)__GFP_KSWAPD_RECLAIM,
	(__force u32)__GFP_WRITE, (__force u32)__GFP_NOWARN, (__force u32)__GFP_RETRY_MAYFAIL,
	(__force u32)__GFP_NOFAIL, (__force u32)__GFP_NORETRY, (__force u32)__GFP_MEMALLOC,
	(__force u32)__GFP_COMP, (__force u32)__GFP_NOMEMALLOC, (__force u32)__GFP_HARDWALL,
	(__force u32)__GFP_THISNODE, (__force u32)__GFP_ACCOUNT,
#ifdef __GFP_ATOMIC
	(__force u32)__GFP_ATOMIC,
#else
	0,
#endif
};

u32 slablab_native_gfp(u32 gfp)
{
	static u32 last = ~0, found;
	u32 bit, sum = 0;

	if (gfp == last)
		return found;
	for (bit = 0; bit < ARRAY_SIZE(native); bit++)
		if (gfp & 1u << bit)
			sum |= native[bit];
	last = gfp;
	found = sum;
	return sum;
}

u32 slablab_neutral_gfp(u32 gfp)
{
	static u32 last = ~0, found;
	u32 bit, sum = 0;

	if (gfp == last)
		return found;
	for (bit = 0; bit < ARRAY_SIZE(native); bit++)
		if (native[bit] && (gfp & native[bit]) == native[bit])
			sum |= 1u << bit;
	last = gfp;
	found = sum;
	return sum;
}

/* Compound pages, by release. Since 6.14 slabs are pages without a count. */
#if SLABLAB_RELEASE < 0x060600
#define set_order(page, order) set_compound_order(page, order)
#else
#define set_order(page, order) folio_set_order((struct folio *)(page), order)
#endif
#if SLABLAB_RELEASE < 0x070100
#define set_head(tail, page, order) set_compound_head(tail, page)
#else
#define set_head(tail, page, order) set_compound_head(tail, page, order)
#endif
#define FROZEN (SLABLAB_RELEASE >= 0x060e00)

static struct page *prepare(u64 pfn, u32 node, u32 order, gfp_t gfp)
{
	struct page *page = pfn_to_page(pfn);
	u32 at;

	memset(page, 0, sizeof(struct page) << order);
	for (at = 0; at < 1u << order; at++) {
		set_page_zone(page + at, ZONE_NORMAL);
		set_page_node(page + at, node);
	}
	set_page_count(page, FROZEN ? 0 : 1);
	if (order && (gfp & __GFP_COMP)) {
		__SetPageHead(page);
		for (at = 1; at < 1u << order; at++)
			set_head(page + at, page, order);
		set_order(page, order);
	}
	if (gfp & __GFP_ZERO)
		memset(page_address(page), 0, PAGE_SIZE << order);
	return page;
}

static struct page *take(gfp_t gfp, u32 order, int node)
{
	u64 block = host_pages_alloc(slablab_neutral_gfp((__force u32)gfp), order, node);
	struct page *page = block ? prepare((u32)block, block >> 32, order, gfp) : NULL;

	slablab_took(page);
	return page;
}

static void give(struct page *page, u32 order)
{
	slablab_gave(page);
	host_pages_free(page_to_pfn(page), order);
}

#if FROZEN
#ifdef CONFIG_NUMA
struct page *alloc_frozen_pages_noprof(gfp_t gfp, unsigned int order)
{
	return take(gfp, order, NUMA_NO_NODE);
}
#endif

struct page *__alloc_frozen_pages_noprof(gfp_t gfp, unsigned int order, int nid, nodemask_t *nodemask)
{
	return take(gfp, order, nid);
}

struct page *alloc_frozen_pages_nolock_noprof(gfp_t gfp, int nid, unsigned int order)
{
	return take(gfp, order, nid);
}

void free_frozen_pages(struct page *page, unsigned int order)
{
	give(page, order);
}

void free_frozen_pages_nolock(struct page *page, unsigned int order)
{
	give(page, order);
}
#elif SLABLAB_RELEASE < 0x060a00
struct page *alloc_pages(gfp_t gfp, unsigned int order)
{
	return take(gfp, order, NUMA_NO_NODE);
}

struct page *__alloc_pages(gfp_t gfp, unsigned int order, int preferred_nid, nodemask_t *nodemask)
{
	return take(gfp, order, preferred_nid);
}
#else
struct page *alloc_pages_noprof(gfp_t gfp, unsigned int order)
{
	return take(gfp, order, NUMA_NO_NODE);
}

struct page *__alloc_pages_noprof(gfp_t gfp, unsigned int order, int preferred_nid, nodemask_t *nodemask)
{
	return take(gfp, order, preferred_nid);
}
#endif

void __free_pages(struct page *page, unsigned int order)
{
	give(page, order);
}

#ifdef __get_free_pages
unsigned long get_free_pages_noprof(gfp_t gfp, unsigned int order)
#else
unsigned long __get_free_pages(gfp_t gfp, unsigned int order)
#endif
{
	struct page *page = take(gfp, order, NUMA_NO_NODE);

	return page ? (unsigned long)page_address(page) : 0;
}

void free_pages(unsigned long addr, unsigned int order)
{
	if (addr)
		give(virt_to_page((void *)addr), order);
}

bool __virt_addr_valid(unsigned long addr)
{
	return addr >= page_offset_base;
}

bool gfp_pfmemalloc_allowed(gfp_t gfp)
{
	return !!(gfp & __GFP_MEMALLOC);
}

/* Statistics of zones and groups: nobody reads them here. */
void mod_node_page_state(struct pglist_data *pgdat, enum node_stat_item item, long delta)
{
}

#ifdef CONFIG_MEMCG
#if SLABLAB_RELEASE < 0x060e00
void __mod_lruvec_page_state(struct page *page, enum node_stat_item idx, int val)
#else
void lruvec_stat_mod_folio(struct folio *folio, enum node_stat_item idx, int val)
#endif
{
}
#endif

/* Accounting is not modelled. The option was a part of MEMCG since 6.11. */
#if defined(CONFIG_MEMCG_KMEM) || (defined(CONFIG_MEMCG) && SLABLAB_RELEASE >= 0x060b00)
bool mem_cgroup_kmem_disabled(void)
{
	return true;
}
#endif

/* Bytes of a struct page. */
const u64 slablab_page_bytes = sizeof(struct page);
