#!/usr/bin/env python3
"""Writes the slab caches of a vmcore, or of the running kernel, as a dump that slablab reads.

    drgn -c vmcore -s vmlinux scripts/vmcore.py -- slabs.tar
    slablab doctor slabs.tar

Needs drgn (https://drgn.readthedocs.io) 0.0.25 or later, and the kernel's debugging information. The dump has
/proc/slabinfo, the attributes of /sys/kernel/slab that a vmcore has, and what meminfo says of slabs. It counts
what the kernel's own files count: objects in CPU slabs and sheaves are in use.
"""

import io
import os
import sys
import tarfile

# Flags of kmem_cache->flags before 6.9, where they were macros; later they are numbers of bits in an enum.
MACROS = {
    "CONSISTENCY_CHECKS": 0x100,
    "RED_ZONE": 0x400,
    "POISON": 0x800,
    "HWCACHE_ALIGN": 0x2000,
    "CACHE_DMA": 0x4000,
    "STORE_USER": 0x10000,
    "RECLAIM_ACCOUNT": 0x20000,
    "TYPESAFE_BY_RCU": 0x80000,
}
# File in /sys/kernel/slab/CACHE, and the flag that it shows.
FLAGS = {
    "sanity_checks": "CONSISTENCY_CHECKS",
    "red_zone": "RED_ZONE",
    "poison": "POISON",
    "hwcache_align": "HWCACHE_ALIGN",
    "cache_dma": "CACHE_DMA",
    "store_user": "STORE_USER",
    "reclaim_account": "RECLAIM_ACCOUNT",
    "destroy_by_rcu": "TYPESAFE_BY_RCU",
}
# File, and the member of struct kmem_cache that it shows. A kernel may lack some.
MEMBERS = {
    "object_size": "object_size",
    "slab_size": "size",
    "align": "align",
    "usersize": "usersize",
    "min_partial": "min_partial",
    "cpu_partial": "cpu_partial",
    "sheaf_capacity": "sheaf_capacity",
}
HEAD = (
    "slabinfo - version: 2.1\n"
    "# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab>"
    " : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n"
)


def flag(prog, name):
    """The bit of a flag in kmem_cache->flags."""
    try:
        return 1 << int(prog.constant("_SLAB_" + name))
    except LookupError:
        return MACROS[name]


def attributes(prog, cache, per_slab, order):
    """Files of /sys/kernel/slab/CACHE, and their content."""
    files = {"objs_per_slab": per_slab, "order": order}
    for file, member in MEMBERS.items():
        try:
            files[file] = int(getattr(cache, member))
        except AttributeError:
            pass
    flags = int(cache.flags)
    for file, name in FLAGS.items():
        files[file] = int(flags & flag(prog, name) != 0)
    return files


def id_list(ids):
    """0-3,8 of 0 1 2 3 8."""
    ranges = []
    for one in sorted(ids):
        if ranges and ranges[-1][1] == one - 1:
            ranges[-1][1] = one
        else:
            ranges.append([one, one])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)


def machine(prog):
    """Files outside of /sys/kernel/slab. What a kernel does not tell is left out."""
    from drgn.helpers.linux.cpumask import for_each_online_cpu, for_each_possible_cpu, for_each_present_cpu
    from drgn.helpers.linux.mm import totalram_pages
    from drgn.helpers.linux.slab import slab_total_usage

    release = prog["UTS_RELEASE"].string_().decode()
    files = {"proc/version": f"Linux version {release}", "proc/sys/kernel/osrelease": release}
    page = int(prog["PAGE_SIZE"])
    usage = slab_total_usage(prog)
    pages = {
        "MemTotal": int(totalram_pages(prog)),
        "Slab": usage.reclaimable_pages + usage.unreclaimable_pages,
        "SReclaimable": usage.reclaimable_pages,
        "SUnreclaim": usage.unreclaimable_pages,
    }
    lines = (f"{name + ':':<15} {count * page // 1024:>8} kB" for name, count in pages.items())
    files["proc/meminfo"] = "\n".join(lines)
    each = {"online": for_each_online_cpu, "possible": for_each_possible_cpu, "present": for_each_present_cpu}
    for name, cpus in each.items():
        files[f"sys/devices/system/cpu/{name}"] = id_list(int(cpu) for cpu in cpus(prog))
    try:
        files["proc/cmdline"] = prog["saved_command_line"].string_().decode()
    except LookupError:
        pass
    return files


def caches(prog, progress):
    """Rows of slabinfo, and files and links of /sys/kernel/slab."""
    from drgn.helpers.linux import slab

    rows, files, links = [], {}, {}
    all_caches = list(slab.for_each_slab_cache(prog))
    for number, cache in enumerate(all_caches):
        name = cache.name.string_().decode(errors="replace")
        progress(f"{number + 1} of {len(all_caches)} caches: {name}")
        usage = slab.slab_cache_usage(cache)
        per_slab = int(slab.slab_cache_objects_per_slab(cache))
        order = int(slab.slab_cache_order(cache))
        active = usage.num_objs - usage.free_objs
        rows.append(
            f"{name:<17} {active:>6} {usage.num_objs:>6} {int(cache.size):>6} {per_slab:>4} {1 << order:>4}"
            f" : tunables    0    0    0 : slabdata {usage.num_slabs:>6} {usage.num_slabs:>6}      0\n"
        )
        if "/" in name:
            continue
        for file, value in attributes(prog, cache, per_slab, order).items():
            files[f"sys/kernel/slab/{name}/{file}"] = str(value)
    for alias, name in slab.get_slab_cache_aliases(prog).items():
        if "/" not in alias:
            links[f"sys/kernel/slab/{alias}"] = name
    files["proc/slabinfo"] = HEAD + "".join(rows)
    return files, links


def write(path, files, links):
    """Writes the tar beside its place, then renames it."""
    beside = f"{path}.{os.getpid()}.part"
    try:
        with tarfile.open(beside, "w") as tar:
            for name, text in sorted(files.items()):
                data = text.rstrip("\n").encode() + b"\n"
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
            for name, target in sorted(links.items()):
                member = tarfile.TarInfo(name)
                member.type, member.linkname = tarfile.SYMTYPE, target
                tar.addfile(member)
        os.replace(beside, path)
    finally:
        if os.path.exists(beside):
            os.unlink(beside)


def main(prog, arguments):
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.exit("vmcore.py: expected one argument, the tar to write: drgn -c vmcore scripts/vmcore.py -- slabs.tar")
    shown = sys.stderr.isatty()

    def progress(text):
        if shown:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    try:
        files, links = caches(prog, progress)
    except KeyboardInterrupt:
        sys.exit(130)
    progress("")
    files.update(machine(prog))
    write(arguments[0], files, links)
    print(f"{arguments[0]}: {sum(name.endswith('/order') for name in files)} caches", file=sys.stderr)


if __name__ == "__main__":
    try:
        from drgn import get_default_prog
    except ModuleNotFoundError:
        sys.exit("vmcore.py: drgn is not installed; expected drgn -c vmcore -s vmlinux scripts/vmcore.py -- slabs.tar")
    main(get_default_prog(), [argument for argument in sys.argv[1:] if argument != "--"])
