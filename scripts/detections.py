#!/usr/bin/env python3
"""Commits the faults of crates/c/tests/detections.c under several allocators by LD_PRELOAD, and prints which of
them each allocator finds, and when.

    cargo build --profile dist -p slablab-c
    scripts/detections.py                   # the allocators that are installed, as a table in Markdown
    scripts/detections.py --allocators glibc,slablab,hardened --library target/debug/libslablab.so
    scripts/detections.py --format json     # the steps, the verdict, the signal and the report of each run

A cell names the step during which the allocator or the processor ended the process: `free`, `alloc`, `write`,
`realloc`. Other cells are the program's own verdict. `missed`: the program went on to its end. Each cell is the
commonest of some runs (--repeats), because some allocators draw numbers; "3/5" stands behind it if that is not
all of them. Scudo's library is part of Debian's libclang-rt-*-dev.
"""

import argparse
import collections
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "crates/c/tests/detections.c"
LIBRARIES = Path("/usr/lib") / f"{os.uname().machine}-linux-gnu"
OURS = "ours"


def newest(pattern):
    """The library of the newest release that is installed; None without one."""
    return next(iter(sorted(Path("/usr/lib").glob(pattern), reverse=True)), None)


# Name: library, further environment.
ALLOCATORS = {
    "glibc": (None, {}),
    "slablab": (OURS, {}),
    "hardened": (OURS, {"SLABLAB_ENGINE": "slub@7.1,harden=on"}),
    "debug=FZPU": (OURS, {"SLABLAB_ENGINE": "slub@7.1,debug=FZPU"}),
    "scudo": (newest(f"llvm-*/lib/clang/*/lib/linux/libclang_rt.scudo_standalone-{os.uname().machine}.so"), {}),
    "mimalloc": (LIBRARIES / "libmimalloc.so.2", {}),
    "jemalloc": (LIBRARIES / "libjemalloc.so.2", {}),
    "tcmalloc": (LIBRARIES / "libtcmalloc_minimal.so.4", {}),
}
STEPS = {"alloc", "free", "write", "realloc"}


def run(program, fault, library, further):
    """The steps, the verdict and the signal of a run, and what it wrote on standard error."""
    environment = {**os.environ, **further, **({"LD_PRELOAD": str(library)} if library else {})}
    done = subprocess.run([program, fault], env=environment, capture_output=True, text=True, errors="replace", timeout=60)
    words = done.stdout.splitlines()
    steps = [word for word in words if word in STEPS]
    verdict = next((word for word in words if word not in STEPS), None)
    # A debugging allocator that reports and goes on has found the fault too.
    reported = any(line.startswith(("BUG ", "slablab: sized free")) for line in done.stderr.splitlines())
    name = signal.Signals(-done.returncode).name if done.returncode < 0 else None
    return {"steps": steps, "verdict": verdict, "signal": name, "exit": done.returncode, "reported": reported, "said": done.stderr.strip()}


def cell(result):
    """What the table says of a run."""
    last = result["steps"][-1] if result["steps"] else "start"
    if result["exit"] != 0:
        return f"found: {last}"
    if result["reported"]:
        return "reported"
    return result["verdict"] or "missed"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--allocators", help="names, with commas: " + ", ".join(ALLOCATORS))
    parser.add_argument("--library", type=Path, default=ROOT / "target/dist/libslablab.so", help="libslablab.so to run")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each fault")
    parser.add_argument("--format", choices=["markdown", "json"], default="markdown")
    arguments = parser.parse_args()
    names = arguments.allocators.split(",") if arguments.allocators else list(ALLOCATORS)
    unknown = [name for name in names if name not in ALLOCATORS]
    if unknown:
        sys.exit(f"detections.py: no such allocator: {', '.join(unknown)}; there are {', '.join(ALLOCATORS)}")
    chosen = {}
    for name in names:
        library, further = ALLOCATORS[name]
        library = arguments.library.resolve() if library == OURS else library
        if name == "glibc" or library and library.exists():
            chosen[name] = (library, further)
        elif arguments.allocators or library == arguments.library.resolve():
            sys.exit(f"detections.py: {name}: no library {library}")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "detections"
        subprocess.run(["cc", "-std=gnu11", "-O1", "-fno-builtin", SOURCE, "-o", program, "-ldl"], check=True)
        faults = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
        results = {
            fault: {name: [run(program, fault, *chosen[name]) for _ in range(arguments.repeats)] for name in chosen}
            for fault in faults
        }
    if arguments.format == "json":
        json.dump(results, sys.stdout, indent=1)
        print()
        return
    print("| fault | " + " | ".join(chosen) + " |")
    print("|---" * (len(chosen) + 1) + "|")
    for fault, of in results.items():
        cells = []
        for name in chosen:
            (common, count), *_ = collections.Counter(map(cell, of[name])).most_common(1)
            cells.append(common if count == arguments.repeats else f"{common} {count}/{arguments.repeats}")
        print(f"| {fault} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
