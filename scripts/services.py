#!/usr/bin/env python3
"""What users of a service meet, under several allocators by LD_PRELOAD: how long single calls take, how much memory a
service holds over its day, and what a process keeps that freed everything and sleeps.

    cargo build --profile dist -p slablab-c
    scripts/services.py                                   # all three tables: 4 minutes on 2 CPUs
    scripts/services.py latency --calls 100000000 --repeats 2
    scripts/services.py service --seconds 150 --allocators glibc,slablab
    scripts/services.py idle --library target/debug/libslablab.so --format json

The programs are scripts/programs/latency.c, service.c and idle.c, whose first lines say what they do. Allocators and
their names are those of scripts/programs.py.

latency    in each block every allocator runs once, in random order. Each figure is the least of all blocks: other
           load only adds. Calls during which the kernel switched the thread out are left out
service    all allocators run side by side, each at the same pace, so that each has the same share of the machine
idle       one run each

Exit code 3: an allocator is not installed, and left out.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import programs

PARTS = ["latency", "service", "idle"]
# What idle.c frees: the least and the most bytes of a block, and one of how many blocks stays.
FREED = {"small": (16, 1000, 0), "1 of 20 kept": (16, 1000, 20), "8 to 32 KB": (8000, 32000, 0), "100 to 300 KB": (100_000, 300_000, 0)}
# Of service.c's 20 parts.
SHOWN = [0.3, 0.6, 0.65, 0.75, 1.0]


def built(folder):
    """Builds the programs, and returns where they are."""
    for name in PARTS:
        source = programs.ROOT / f"scripts/programs/{name}.c"
        subprocess.run(["cc", "-O2", "-pthread", str(source), "-o", str(folder / name)], check=True)
    return folder


def started(folder, name, arguments, allocator):
    """Starts a program under an allocator."""
    environment = {**os.environ, **programs.environment_of(allocator)}
    return subprocess.Popen([str(folder / name), *map(str, arguments)], env=environment, stdout=subprocess.PIPE, text=True)


def result(process):
    """The JSON that a program printed."""
    said, _ = process.communicate()
    if process.returncode != 0:
        sys.exit(f"{process.args}: exit code {process.returncode}; expected 0")
    return json.loads(said)


def check_served(folder, allocator):
    """Ends this program if another library serves malloc: the dynamic linker is asked."""
    environment = {**os.environ, **programs.environment_of(allocator), "LD_BIND_NOW": "1", "LD_DEBUG": "bindings"}
    said = subprocess.run([str(folder / "latency")], env=environment, capture_output=True, text=True, check=False).stderr
    bound = {os.path.realpath(path) for path in re.findall(r" to (\S+) \[0\]: normal symbol `malloc'", said)}
    expected = os.path.realpath(programs.find(programs.ALLOCATORS[allocator][0]))
    if expected not in bound:
        sys.exit(f"{allocator}: malloc is {', '.join(sorted(bound)) or 'not bound'}; expected {expected}")


def latency(folder, allocators, options):
    """The least of each figure, by allocator, threads and call; `none` is a run without an allocator."""
    chance = random.Random(options.seed)
    found = {}
    for _ in range(options.repeats):
        order = [(name, threads) for name in ["none", *allocators] for threads in (1, 2)]
        chance.shuffle(order)
        for name, threads in order:
            without = ["none"] if name == "none" else []
            by = allocators[0] if without else name
            for call, figures in result(started(folder, "latency", [options.calls, threads, *without], by)).items():
                least = found.setdefault(name, {}).setdefault(f"{call}, {threads}", figures)
                for key, value in figures.items():
                    least[key] = min(least[key], value)
    return found


def service(folder, allocators, options):
    """What service.c says, by allocator."""
    running = {name: started(folder, "service", [options.seconds], name) for name in allocators}
    return {name: result(process) for name, process in running.items()}


def idle(folder, allocators, options):
    """What idle.c says, by allocator and by what is freed."""
    def run(name, freed):
        return result(started(folder, "idle", [options.megabytes, options.sleep, *FREED[freed]], name))
    return {name: {freed: run(name, freed) for freed in FREED} for name in allocators}


def print_table(head, rows):
    widths = [max(len(str(row[at])) for row in [head, *rows]) for at in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(str(cell).ljust(width) if at == 0 else str(cell).rjust(width) for at, (cell, width) in enumerate(zip(row, widths))))
    print()


def print_latency(found):
    for call in next(iter(found.values())):
        print(f"{call.replace(', ', ' by ')} thread{'' if call.endswith('1') else 's'}, ns")
        keys = ["mean_ns", "p50_ns", "p99.9_ns", "p99.99_ns", "p99.999_ns", "max_ns"]
        head = ["", "mean", "p50", "p99.9", "p99.99", "p99.999", "longest", "above 10 us"]
        rows = [[name, *(f"{of[call][key]:,.0f}" for key in keys), of[call]["above_10_us"]] for name, of in found.items()]
        print_table(head, rows)


def print_service(found):
    head = ["MB resident at", *(f"{at:.2f}" for at in SHOWN), "most", "over live", "CPU s", "faults"]
    def part(of, at, key):
        return f"{next(part for part in of['parts'] if abs(part['at'] - at) < 0.01)[key]:.0f}"
    first = next(iter(found.values()))
    rows = [["live", *(part(first, at, "live_mb") for at in SHOWN), "", "1", "", ""]]
    for name, of in found.items():
        shown = [part(of, at, "resident_mb") for at in SHOWN]
        rows.append([name, *shown, f"{of['most_mb']:.0f}", f"{of['over']:.2f}", f"{of['cpu_s']:.2f}", of["faults"]])
    print_table(head, rows)


def print_idle(found):
    head = ["MB resident, asleep", *FREED]
    rows = [[name, *(f"{of[freed]['asleep_mb']:.0f} of {of[freed]['most_mb']:.0f}" for freed in FREED)] for name, of in found.items()]
    print_table(head, rows)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all if none is named")
    parser.add_argument("--allocators", help=f"of {', '.join(programs.ALLOCATORS)}; without: {', '.join(programs.USUAL)}")
    parser.add_argument("--library", type=Path, help="a libslablab.so; without: target/dist/libslablab.so")
    parser.add_argument("--calls", type=int, default=10_000_000, help="calls of each run of latency")
    parser.add_argument("--repeats", type=int, default=2, help="blocks of latency")
    parser.add_argument("--seconds", type=float, default=60, help="the day of service")
    parser.add_argument("--megabytes", type=int, default=400, help="what idle allocates and frees")
    parser.add_argument("--sleep", type=float, default=3, help="seconds that idle sleeps")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", choices=["table", "json"], default="table")
    return parser.parse_args()


def main():
    options = arguments()
    if options.library:
        if not options.library.is_file():
            sys.exit(f"--library {options.library}: no such file; expected a libslablab.so")
        for name, (library, package, more) in programs.ALLOCATORS.items():
            if library == programs.OURS:
                programs.ALLOCATORS[name] = (options.library.resolve(), package, more)
    parts = programs.chosen(",".join(options.parts) or None, PARTS, PARTS, "PART")
    wanted = programs.chosen(options.allocators, programs.ALLOCATORS, programs.USUAL, "--allocators")
    allocators = [name for name in wanted if programs.find(programs.ALLOCATORS[name][0])]
    missing = [name for name in wanted if name not in allocators]
    if not allocators:
        sys.exit(f"no such library: {', '.join(missing)}; `cargo build --profile dist -p slablab-c` builds slablab's")
    with tempfile.TemporaryDirectory() as place:
        folder = built(Path(place))
        for name in allocators:
            check_served(folder, name)
        found = {part: globals()[part](folder, allocators, options) for part in parts}
    if options.format == "json":
        versions = ", ".join(map(programs.version, allocators))
        print(json.dumps({"schema": "slablab.services.1", "allocators": versions, "missing": missing, **found}, indent=1))
    else:
        print(f"{', '.join(map(programs.version, allocators))}; load {os.getloadavg()[0]:.1f}\n")
        for part, results in found.items():
            globals()[f"print_{part}"](results)
        for name in missing:
            print(f"{name} is not installed: left out")
    sys.exit(3 if missing else 0)


if __name__ == "__main__":
    main()
