#!/usr/bin/env python3
"""Makes the table of what a kernel's slab caches hold after boot, from dumps of machines that only booted.

    scripts/boots.py DUMP.tar.xz ... > crates/sim/data/boots.csv

A dump is a support bundle with /proc and /sys/kernel/slab (examples/dumps, examples/releases). A row is a cache
that holds slabs. Dumps of one release, page size and number of CPUs are averaged.

The kernel counts each object of a slab that a CPU holds as allocated. How many of them are free is in no dump:
half, here. The other columns are counts of the dump.
"""

import collections
import re
import sys
import tarfile

COLUMNS = [
    "release", "page_size_bytes", "cpus", "cache", "aliases", "object_bytes", "align_bytes", "aligned",
    "reclaimable", "by_rcu", "constructor", "objects", "cpu_slabs", "partial_slabs", "partial_objects",
    "slabs", "objects_per_slab",
]


def online(text):
    ranges = [part.split("-") for part in text.strip().split(",")]
    return sum(int(part[-1]) - int(part[0]) + 1 for part in ranges)


def version(bundle):
    for name in ["proc/sys/kernel/osrelease", "proc/version", "sos_commands/kernel/uname_-a"]:
        if name in bundle.getnames():
            return bundle.extractfile(name).read().decode()
    sys.exit(f"{bundle.name}: no /proc/version: which kernel is it?")


def caches(bundle):
    """The files of each directory of /sys/kernel/slab, and the names that lead to it."""
    files, names = collections.defaultdict(dict), collections.defaultdict(list)
    for member in bundle.getmembers():
        path = member.name.removeprefix("./")
        if not path.startswith("sys/kernel/slab/"):
            continue
        parts = path.split("/")
        if member.issym():
            names[member.linkname.split("/")[-1]].append(parts[3])
        elif member.isfile() and len(parts) == 5:
            files[parts[3]][parts[4]] = bundle.extractfile(member).read().decode().strip()
    return files, names


def rows(path):
    with tarfile.open(path) as bundle:
        read = lambda name: bundle.extractfile(name).read().decode()
        release = re.search(r"(\d+\.\d+)", version(bundle)).group(1)
        cpus = online(read("sys/devices/system/cpu/online"))
        info = [line.split() for line in read("proc/slabinfo").splitlines() if line[0] not in "s#"]
        files, names = caches(bundle)
        shown = {line[0]: line for line in info}
        found = []
        for directory, file in files.items():
            number = lambda name: int(file.get(name, "0").split()[0])
            every = sorted([directory, *names[directory]], key=lambda name: (name not in shown, name))
            every = [name for name in every if not name.startswith(":")]
            if not every:
                continue
            # Reading /sys/kernel/slab allocates: /proc/slabinfo was read before it.
            line = shown.get(every[0])
            slabs = int(line[-2]) if line else number("slabs")
            allocated = int(line[1]) if line else number("objects")
            if slabs == 0:
                continue
            of_cpus = min(number("cpu_slabs"), slabs)
            partial = min(number("partial"), slabs - of_cpus)
            objects = allocated - of_cpus * number("objs_per_slab") // 2
            found.append({
                "cache": every[0], "aliases": " ".join(every[1:]), "object_bytes": number("object_size"),
                "align_bytes": number("align"), "aligned": number("hwcache_align"),
                "reclaimable": number("reclaim_account"), "by_rcu": number("destroy_by_rcu"),
                "constructor": int(bool(file.get("ctor"))), "objects": max(objects, 0),
                "cpu_slabs": of_cpus, "partial_slabs": partial,
                "partial_objects": number("objects_partial") if partial == number("partial") else 0,
                "slabs": slabs,
                "objects_per_slab": number("objs_per_slab"), "order": number("order"),
                "bytes": number("slab_size"),
            })
    # No file says how large a page is; some slab's objects fill its pages.
    page = max(row["objects_per_slab"] * row["bytes"] >> row["order"] for row in found)
    return [{"release": release, "page_size_bytes": page, "cpus": cpus, **row} for row in found]


def main():
    counted = ["objects", "cpu_slabs", "partial_slabs", "partial_objects", "slabs"]
    groups = collections.defaultdict(list)
    boots = collections.Counter()
    for path in sys.argv[1:]:
        read = rows(path)
        boots[tuple(read[0][name] for name in COLUMNS[:3])] += 1
        for row in read:
            groups[tuple(row[name] for name in COLUMNS[:4])].append(row)
    print(",".join(COLUMNS))
    number = lambda release: tuple(int(part) for part in release.split("."))
    for key in sorted(groups, key=lambda key: (key[1], number(key[0]), key[2], key[3])):
        group = groups[key]
        of = boots[key[:3]]
        mean = {name: round(sum(row[name] for row in group) / of) for name in counted}
        if mean["slabs"] > 0:
            print(",".join(str({**group[0], **mean}[name]) for name in COLUMNS))


if __name__ == "__main__":
    main()
