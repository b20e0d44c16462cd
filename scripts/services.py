#!/usr/bin/env python3
"""What users of a service meet, under several allocators as they are packaged, by LD_PRELOAD: how long single calls take,
how much memory a service and redis hold over their day, and what a process keeps that freed everything and sleeps.

    cargo build --profile dist -p slablab -p slablab-c
    scripts/services.py                                   # all tables: 6 minutes on 2 CPUs
    scripts/services.py latency --calls 100000000 --repeats 2
    scripts/services.py service --seconds 150 --allocators glibc,slablab
    scripts/services.py idle --library target/debug/libslablab.so --format json

Allocators and their names are those of scripts/programs.py.

latency    the workloads `latency` and `latency-threads` of `slablab bench`, called as the C library's malloc. In each
           block every allocator runs once, in random order. Each figure is the least of all blocks: other load only
           adds. Calls during which the kernel switched the thread out are left out. `none` is the clock alone
service    the workload `service` of `slablab bench`. All allocators run side by side, each at the same pace, so that each
           has the same share of the machine
idle       scripts/programs/idle.c, whose first lines say what it does; one run each
redis      the memory of a redis server after each step of a script: fills, deletes, overwrites, collections, churn,
           FLUSHALL; one run each, one after the other

Exit code 3: an allocator or redis-server is not installed, and left out. Run as root, redis is installed.
"""

import argparse
import itertools
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import programs

PARTS = ["latency", "service", "idle", "redis"]
# What idle.c frees: the least and the most bytes of a block, and one of how many blocks stays.
FREED = {"small": (16, 1000, 0), "1 of 20 kept": (16, 1000, 20), "8 to 32 KB": (8000, 32000, 0), "100 to 300 KB": (100_000, 300_000, 0)}
# Of the 20 parts of a service's day.
SHOWN = [0.3, 0.6, 0.65, 0.75, 1.0]
# Steps of the workload `service` in a second.
STEPS = 20


def built(folder):
    """Builds idle.c, and returns where it is."""
    source = programs.ROOT / "scripts/programs/idle.c"
    subprocess.run(["cc", "-O2", str(source), "-o", str(folder / "idle")], check=True)
    return folder / "idle"


def started(command, allocator):
    """Starts a program under an allocator."""
    environment = {**os.environ, **programs.environment_of(allocator)}
    return subprocess.Popen([*map(str, command)], env=environment, stdout=subprocess.PIPE, text=True)


def workload(options, name, amount, allocator, contestant="glibc"):
    """Starts a workload of `slablab bench`, which calls the malloc that is preloaded as the C library's."""
    words = [options.slablab, "bench", "--memory-of", f"{name}/{contestant}", amount, options.seed]
    return started(words, allocator)


def result(process):
    """The JSON that a program printed."""
    said, _ = process.communicate()
    if process.returncode != 0:
        sys.exit(f"{process.args}: exit code {process.returncode}; expected 0")
    return json.loads(said)


def check_served(command, allocator):
    """Ends this program if another library serves malloc: the dynamic linker is asked."""
    environment = {**os.environ, **programs.environment_of(allocator), "LD_BIND_NOW": "1", "LD_DEBUG": "bindings"}
    said = subprocess.run([*map(str, command)], env=environment, capture_output=True, text=True, check=False).stderr
    bound = {os.path.realpath(path) for path in re.findall(r" to (\S+) \[0\]: normal symbol `malloc'", said)}
    expected = os.path.realpath(programs.find(programs.ALLOCATORS[allocator][0]))
    if expected not in bound:
        sys.exit(f"{allocator}: malloc is {', '.join(sorted(bound)) or 'not bound'}; expected {expected}")


def latency(allocators, options):
    """The least of each figure, by allocator, threads and call; `none` is a run without an allocator."""
    chance = random.Random(options.seed)
    found = {}
    for _ in range(options.repeats):
        order = [(name, threads) for name in ["none", *allocators] for threads in (1, 2)]
        chance.shuffle(order)
        for name, threads in order:
            what = "latency" if threads == 1 else "latency-threads"
            by, contestant = (allocators[0], "harness") if name == "none" else (name, "glibc")
            for call, figures in result(workload(options, what, options.calls, by, contestant))["calls"].items():
                least = found.setdefault(name, {}).setdefault(f"{call}, {threads}", figures)
                for key, value in figures.items():
                    least[key] = min(least[key], value)
    return found


def service(allocators, options):
    """The day of a service, by allocator."""
    running = {name: workload(options, "service", round(options.seconds * STEPS), name) for name in allocators}
    return {name: day_of(result(process)) for name, process in running.items()}


def day_of(sample):
    moments = sample["day"]["moments"]
    return {
        "parts": moments,
        "most_mb": max(moment["resident_mb"] for moment in moments),
        "over": sum(moment["resident_mb"] / moment["live_mb"] for moment in moments) / len(moments),
        "cpu_s": sample["cpu_ns"] / 1e9,
        "faults": sample["costs"]["faults"],
    }


def idle(allocators, options):
    """What idle.c says, by allocator and by what is freed."""
    with tempfile.TemporaryDirectory() as place:
        program = built(Path(place))
        for name in allocators:
            check_served([program, 1, 0, *FREED["small"]], name)

        def run(name, freed):
            return result(started([program, options.megabytes, options.sleep, *FREED[freed]], name))
        return {name: {freed: run(name, freed) for freed in FREED} for name in allocators}


class Redis:
    """A redis server under an allocator, and a client that sends it commands in batches."""

    BATCH = 500

    def __init__(self, folder, allocator):
        place = folder / f"{allocator.replace('/', '-')}.socket"
        command = ["redis-server", "--port", "0", "--unixsocket", str(place), "--save", "", "--appendonly", "no",
                   "--dir", str(folder), "--activedefrag", "no", "--logfile", str(folder / "log")]
        environment = {**os.environ, **programs.environment_of(allocator)}
        self.server = subprocess.Popen(command, env=environment)
        self.socket = socket.socket(socket.AF_UNIX)
        for _ in range(500):
            try:
                self.socket.connect(str(place))
                break
            except OSError:
                time.sleep(0.02)
        else:
            self.end()
            sys.exit(f"redis-server under {allocator}: it does not answer at its socket")
        self.replies = self.socket.makefile("rb")
        library = os.path.realpath(programs.find(programs.ALLOCATORS[allocator][0]))
        if library not in Path(f"/proc/{self.server.pid}/maps").read_text():
            self.end()
            sys.exit(f"redis-server did not load {library}")

    def end(self):
        self.server.terminate()
        self.server.wait()

    def reply(self):
        line = self.replies.readline()
        if line[:1] == b"$" and int(line[1:]) >= 0:
            return self.replies.read(int(line[1:]) + 2)[:-2]
        if line[:1] not in (b"$", b":", b"+"):
            sys.exit(f"redis-server answers {line!r}")
        return line[1:-2]

    def send(self, commands):
        commands = iter(commands)
        while batch := list(itertools.islice(commands, self.BATCH)):
            words = [b"*%d\r\n%s" % (len(one), b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in one)) for one in batch]
            self.socket.sendall(b"".join(words))
            for _ in batch:
                last = self.reply()
        return last

    def figures(self):
        """MB resident for good, MB that the server counts as used, CPU seconds so far."""
        said = self.send([(b"INFO", b"memory")]).decode()
        used = int(re.search(r"used_memory:(\d+)", said)[1]) / 1e6
        maps = Path(f"/proc/{self.server.pid}/smaps_rollup").read_text()
        anonymous, lazy = (int(re.search(rf"{key}:\s+(\d+)", maps)[1]) for key in ["Anonymous", "LazyFree"])
        times = Path(f"/proc/{self.server.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (anonymous - lazy) * 1024 / 1e6, used, (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")


def redis_steps(keys):
    """The script: name, commands, seconds to wait behind them. Every server gets the same."""
    chance = random.Random(3)
    value = b"x" * 1000

    def key(number):
        return b"key:%d" % number

    def sets(least, most, numbers):
        return ((b"SET", key(number), value[:chance.randrange(least, most)]) for number in numbers)

    def deletes(share, numbers):
        return ((b"DEL", key(number)) for number in numbers if chance.random() < share)

    def collections():
        for number in range(keys // 2):
            one = number % 5000
            yield b"HSET", b"h:%d" % one, b"f%d" % (number // 5000), value[:chance.randrange(8, 120)]
            yield b"ZADD", b"z:%d" % one, b"%d" % chance.randrange(10**6), b"m%d" % number
            if number % 4 == 0:
                yield b"RPUSH", b"l:%d" % one, value[:chance.randrange(8, 60)]
            if number % 10 == 0:
                yield b"APPEND", b"a:%d" % (number % 2000), value[:chance.randrange(1, 300)]

    def churn():
        for number in range(2 * keys):
            some = key(chance.randrange(keys))
            yield (b"SET", some, value[:chance.randrange(16, 1000)]) if number % 2 else (b"DEL", some)

    later = range(keys, 2 * keys)
    yield "fill 16-400 B", sets(16, 400, range(keys)), 0
    yield "3 of 4 deleted", deletes(0.75, range(keys)), 2
    yield "fill 200-600 B", sets(200, 600, later), 0
    yield "1 of 2 overwritten", sets(600, 1000, (number for number in later if chance.random() < 0.5)), 0
    yield "9 of 10 deleted", deletes(0.9, range(2 * keys)), 2
    yield "collections", collections(), 0
    yield "half of them deleted", ((b"DEL", b"%s:%d" % (kind, number)) for kind in (b"h", b"z", b"l") for number in range(5000) if number % 2), 2
    yield "churn", churn(), 0
    yield "FLUSHALL", [(b"FLUSHALL",)], 4


def redis(allocators, options):
    """The figures of a server after each step, by allocator."""
    found = {}
    with tempfile.TemporaryDirectory() as place:
        for name in allocators:
            server = Redis(Path(place), name)
            try:
                steps = found[name] = []
                for step, commands, wait in redis_steps(options.keys):
                    server.send(commands)
                    time.sleep(wait)
                    resident, used, cpu = server.figures()
                    steps.append({"step": step, "resident_mb": resident, "used_mb": used, "cpu_s": cpu})
            finally:
                server.end()
    return found


def print_table(head, rows):
    widths = [max(len(str(row[at])) for row in [head, *rows]) for at in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(str(cell).ljust(width) if at == 0 else str(cell).rjust(width) for at, (cell, width) in enumerate(zip(row, widths))))
    print()


def print_latency(found):
    for call in next(iter(found.values())):
        print(f"{call.replace(', ', ' by ')} thread{'' if call.endswith('1') else 's'}, ns")
        keys = ["mean_ns", "p50_ns", "p99_ns", "p99_9_ns", "p99_99_ns", "p99_999_ns", "longest_ns"]
        head = ["", "mean", "p50", "p99", "p99.9", "p99.99", "p99.999", "longest", "above 10 us"]
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


def print_redis(found):
    first = next(iter(found.values()))
    head = ["MB resident after", "used", *found]
    rows = [[step["step"], f"{step['used_mb']:.0f}", *(f"{of[at]['resident_mb']:.0f}" for of in found.values())] for at, step in enumerate(first)]
    print_table(head, [*rows, ["CPU s", "", *(f"{of[-1]['cpu_s']:.1f}" for of in found.values())]])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all if none is named")
    parser.add_argument("--allocators", help=f"of {', '.join(programs.ALLOCATORS)}; without: {', '.join(programs.USUAL)}")
    parser.add_argument("--library", type=Path, help="a libslablab.so; without: target/dist/libslablab.so")
    parser.add_argument("--slablab", type=Path, default=programs.ROOT / "target/dist/slablab", help="the program; without: target/dist/slablab")
    parser.add_argument("--calls", type=int, default=10_000_000, help="steps of each run of latency")
    parser.add_argument("--repeats", type=int, default=2, help="blocks of latency")
    parser.add_argument("--seconds", type=float, default=60, help="the day of service")
    parser.add_argument("--keys", type=int, default=400_000, help="keys of redis's first fill")
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
    if {"latency", "service"} & set(parts):
        if not options.slablab.is_file():
            sys.exit(f"--slablab {options.slablab}: no such file; `cargo build --profile dist -p slablab` writes target/dist/slablab")
        for name in allocators:
            check_served([options.slablab, "bench", "--memory-of", "latency/glibc", 1000, 1], name)
    if "redis" in parts and not shutil.which("redis-server"):
        programs.install(["redis-server"])
        if not shutil.which("redis-server"):
            parts.remove("redis")
            missing.append("redis-server")
    found = {part: globals()[part](allocators, options) for part in parts}
    if options.format == "json":
        versions = ", ".join(map(programs.version, allocators))
        print(json.dumps({"schema": "slablab.services.2", "allocators": versions, "missing": missing, **found}, indent=1))
    else:
        print(f"{', '.join(map(programs.version, allocators))}; load {os.getloadavg()[0]:.1f}\n")
        for part, results in found.items():
            globals()[f"print_{part}"](results)
        for name in missing:
            print(f"{name} is not installed: left out")
    sys.exit(3 if missing else 0)


if __name__ == "__main__":
    main()
