from collections import namedtuple

from drgn import Cache

Usage = namedtuple("Usage", "num_slabs num_objs free_objs")
Total = namedtuple("Total", "reclaimable_pages unreclaimable_pages")


def for_each_slab_cache(prog):
    yield Cache(b"dentry", 192, 192, 0x20000, Usage(100, 2100, 50), 21, 0)
    yield Cache(b"kmalloc-512", 512, 512, 0, Usage(10, 160, 0), 16, 1)


def slab_cache_usage(cache):
    return cache.usage


def slab_cache_objects_per_slab(cache):
    return cache.per_slab


def slab_cache_order(cache):
    return cache.order


def get_slab_cache_aliases(prog):
    return {"skbuff_small": "kmalloc-512"}


def slab_total_usage(prog):
    return Total(100, 20)
