#!/usr/bin/env python3
"""Five programs under three allocators, timed by `slablab bench --` and by hyperfine: wall times and their ratios.

    scripts/hyperfine.py --program target/release/slablab

Both tools run each program as often, in rounds: one tool, then the other. Of each round the median is taken; the table
has the medians of the rounds, and ratios over glibc with the least and the greatest of the rounds. Needs hyperfine, perl, python3, sqlite3, jq, gcc, and Debian's libjemalloc2 and
libmimalloc2.0.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

LIBRARIES = {"glibc": None, "jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2"}
SQL = (
    "with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000)"
    " select count(*), max(length(k)) from (select hex(i * 7919 % 100003) || i as k from n order by k)"
)
PROGRAMS = {
    "perl": ["perl", "-e", "my %h; $h{$_ * 7919 % 1000003} = [$_, \"x$_\"] for 1 .. 300000; print scalar keys %h"],
    # Itself: what PATH has may be a script.
    "python": [sys.executable, "-c", "print(len({str(i): [i] * (i % 9) for i in range(400000)}))"],
    "sqlite": ["sqlite3", ":memory:", SQL],
    "jq": ["jq", "-n", "[range(200000) | {a: ., b: (. | tostring)}] | map(.b | length) | add"],
    "gcc": ["gcc", "-O2", "-S", "-o", "-", "@SOURCE@"],
}


def source(folder):
    """A file for the compiler."""
    path = pathlib.Path(folder, "source.c")
    each = "int f{0}(int *a, int n) {{ int s = {0}; for (int i = 0; i < n; i++) s += a[i] * {0} ^ s >> 3; return s; }}\n"
    path.write_text("".join(map(each.format, range(400))))
    return path


def library(name):
    """The file that the dynamic linker has under a name."""
    lines = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout.splitlines()
    found = [line.split("=> ")[1] for line in lines if line.strip().startswith(f"{name} ")]
    return found[0] if found else sys.exit(f"{name}: not installed (Debian: libjemalloc2, libmimalloc2.0)")


def by_slablab(program, words, runs, folder):
    out = pathlib.Path(folder, "slablab.json")
    options = ["--allocators", ",".join(LIBRARIES), "--repeats", str(runs), "--format", "hyperfine", "-o", str(out)]
    subprocess.run([program, "bench", *options, "--", *words], check=True, capture_output=True)
    results = json.loads(out.read_text())["results"]
    # The first allocator is there twice: its twin shows what the machine alone changes.
    return {name: next(r["times"] for r in results if r["parameters"]["allocator"] == name) for name in LIBRARIES}


def by_hyperfine(words, runs, folder):
    out = pathlib.Path(folder, "hyperfine.json")
    # One shell word each: hyperfine splits them as a shell does, but starts none.
    quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
    preloads = {name: f"env LD_PRELOAD={library(file)} " if file else "env " for name, file in LIBRARIES.items()}
    options = ["-N", "--warmup", "1", "--runs", str(runs), "--export-json", str(out)]
    commands = [preload + quoted for preload in preloads.values()]
    subprocess.run(["hyperfine", *options, *commands], check=True, capture_output=True)
    return dict(zip(LIBRARIES, (result["times"] for result in json.loads(out.read_text())["results"])))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/release/slablab")
    parser.add_argument("--runs", type=int, default=4, help="runs of each program, tool and allocator in a round")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    needed = ["hyperfine", *(words[0] for words in PROGRAMS.values())]
    absent = [name for name in needed if not shutil.which(name)]
    if absent:
        sys.exit(f"not installed: {', '.join(absent)}")
    if not shutil.which(given.program):
        parser.error(f"{given.program}: no such program; `cargo build --release` makes target/release/slablab")
    print("| program | allocator | ms, `bench --` | ms, hyperfine | over glibc, `bench --` | over glibc, hyperfine |")
    print("|---|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        at = str(source(folder))
        for name, words in PROGRAMS.items():
            words = [at if word == "@SOURCE@" else word for word in words]
            tools = [[], []]
            for _ in range(given.rounds):
                tools[0].append(by_slablab(given.program, words, given.runs, folder))
                tools[1].append(by_hyperfine(words, given.runs, folder))
            middle = [[{of: statistics.median(times) for of, times in each.items()} for each in tool] for tool in tools]
            for allocator in LIBRARIES:
                ms = [statistics.median(each[allocator] * 1000 for each in tool) for tool in middle]
                over = [sorted(each[allocator] / each["glibc"] for each in tool) for tool in middle]
                ratios = [f"{statistics.median(rounds):.3f} ({rounds[0]:.3f} to {rounds[-1]:.3f})" for rounds in over]
                print(f"| {name} | {allocator} | {ms[0]:.1f} | {ms[1]:.1f} | {ratios[0]} | {ratios[1]} |", flush=True)


if __name__ == "__main__":
    main()
