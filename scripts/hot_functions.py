#!/usr/bin/env python3
"""Writes crates/c/hot-functions: the functions of libslablab.so that programs run, for the linker to put together.

    scripts/hot_functions.py                                 # builds the library in four ways: 2 minutes
    scripts/hot_functions.py target/dist/libslablab.so ...   # with these builds of it

To be run after changes to what a process does at its start: a function that is not in the list costs each
process up to 64 KiB.

Runs some programs with each library preloaded under valgrind's callgrind, which records the address of every
instruction that ran. A function is written as its symbol, in which `*` stands for hashes that change with the
compiler. Functions of the first library come first: others' names, between them, cost each of its processes 64
KiB. Then those that most programs ran; of those as popular, the ones that stand for many functions that did not
run come last.
"""

import argparse
import bisect
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "crates/c/hot-functions"
SQL = """create table t(a, b);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 500) insert into t select x, x * 7 % 101 from c;
select count(*), sum(b) from t group by b limit 3;"""
TEXT = "".join(f"{n} {n * n} word{n}\n" for n in range(2000))


# Profiles as users, tests and CI build them: each inlines other functions.
BUILDS = [
    ("dist", [], {}),
    ("release", [], {}),
    ("debug", ["--profile", "dev"], {}),
    ("whole/debug", ["--profile", "dev", "--target-dir", "target/whole"], {"CARGO_INCREMENTAL": "0"}),
]


def build() -> list[str]:
    """Builds the library in each way. Returns the files."""
    for folder, arguments, variables in BUILDS:
        command = ["cargo", "build", "-p", "slablab-c", *(arguments or ["--profile", folder])]
        subprocess.run(command, check=True, cwd=ROOT, env=os.environ | variables)
    return [str(ROOT / "target" / folder / "libslablab.so") for folder, _, _ in BUILDS]


def libraries() -> list[Path]:
    """The libraries that the user names, or all that `build` makes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", nargs="*", type=Path, help="a build of libslablab.so; none: build it in each way")
    given = [path.resolve() for path in parser.parse_args().library]
    for path in given:
        if not path.is_file():
            parser.error(f"{path}: no such file; expected a build of libslablab.so (cargo build -p slablab-c)")
        if not any(name == "kmem_cache_create" for _, _, name in symbols(path)):
            parser.error(f"{path}: no build of libslablab.so: it has no function kmem_cache_create")
    for tool in ["valgrind", "nm", "cc"]:
        if not shutil.which(tool):
            parser.error(f"{tool} is not installed; expected valgrind, nm and cc")
    return given or [Path(path) for path in build()]


def programs(folder: Path) -> list[list[str]]:
    """Commands: a program that allocates little, usual ones, and one with threads."""
    (folder / "text").write_text(TEXT)
    (folder / "small.c").write_text("int f(int x) { return x * 2; }\n")
    threads = folder / "threads"
    source = ROOT / "crates/c/tests/threads.c"
    subprocess.run(["cc", "-O1", "-pthread", source, "-o", threads], check=True)
    (folder / "little.c").write_text("#include <stdlib.h>\nint main(void) { free(malloc(9)); return 0; }\n")
    subprocess.run(["cc", "-O0", folder / "little.c", "-o", folder / "little"], check=True)
    cc1 = subprocess.run(["cc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True).stdout
    commands = [
        [str(folder / "little")],
        ["sh", "-c", "for i in 1 2 3; do echo $i; done"],
        ["awk", "{ count[$2] += $1 } END { for (n in count) print n, count[n] }", str(folder / "text")],
        ["sed", "-n", "s/word/&s/gp", str(folder / "text")],
        ["sort", "-k2", str(folder / "text")],
        ["xz", "-k", "-c", str(folder / "text")],
        [sys.executable, "-S", "-c", "import json; print(json.dumps([str(i) * 9 for i in range(3000)])[-9:])"],
        [cc1.strip(), "-quiet", str(folder / "small.c"), "-o", "/dev/null"],
        ["sqlite3", ":memory:", SQL],
        [str(threads), "rounds", "1"],
    ]
    return [command for command in commands if shutil.which(command[0])]


def addresses(library: Path, command: list[str], folder: Path) -> set[int]:
    """Addresses in `library` of the instructions that ran."""
    out = folder / "callgrind.out"
    valgrind = ["valgrind", "--tool=callgrind", "--dump-instr=yes", f"--callgrind-out-file={out}"]
    run = ["env", f"LD_PRELOAD={library}", *valgrind, *command]
    subprocess.run(run, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    names: dict[str, str] = {}
    found, here, at = set(), False, 0
    for line in out.read_text(errors="replace").splitlines():
        if match := re.match(r"c?ob=\((\d+)\) ?(.*)", line):
            number, name = match.groups()
            names.setdefault(number, name)
            here = names[number] == str(library) if line.startswith("ob") else here
        elif match := re.match(r"(0x[0-9a-f]+|[+-]\d+|\*) ", line):
            step = match[1]
            at = int(step, 16) if step.startswith("0x") else at + (0 if step == "*" else int(step))
            if here:
                found.add(at)
    return found


def symbols(library: Path) -> list[tuple[int, int, str]]:
    """Address, bytes and name of every function."""
    lines = subprocess.run(["nm", "-S", library], capture_output=True, text=True, check=False).stdout
    fields = (line.split() for line in lines.splitlines())
    return sorted((int(f[0], 16), int(f[1], 16), f[3]) for f in fields if len(f) == 4 and f[2] in "tTwW")


def functions(table: list[tuple[int, int, str]], ran: set[int]) -> set[int]:
    """The addresses of the functions that ran."""
    starts = [start for start, _, _ in table]
    indices = (bisect.bisect_right(starts, at) - 1 for at in ran)
    return {table[i][0] for at, i in zip(ran, indices) if i >= 0 and at < sum(table[i][:2])}


def start_of(symbol: str) -> str:
    """The part of a symbol that stays from compiler to compiler, with `*` for hashes within it."""
    return re.sub(r"Cs[0-9A-Za-z]+_", "Cs*_", re.sub(r"(17h[0-9a-f]{16}E)?(\.llvm\.\d+)?$", "", symbol))


def main() -> None:
    runs: dict[str, int] = {}
    shipped: set[str] = set()
    idle: dict[str, int] = {}
    found = libraries()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commands = programs(folder)
        for library in found:
            table = symbols(library)
            ran = Counter(at for command in commands
                          for at in functions(table, addresses(library, command, folder)))
            # Some functions have several symbols.
            hot = {start_of(symbol) for at, _, symbol in table if ran[at]}
            sizes, unused = {}, Counter()
            for at, size, symbol in table:
                if (start := start_of(symbol)) in hot:
                    sizes[at] = size
                    unused[start] += 0 if ran[at] else size
                    # How popular one is there is what the first library says.
                    if start not in shipped:
                        runs[start] = max(runs.get(start, 0), ran[at])
            idle |= {start: max(idle.get(start, 0), unused[start]) for start in hot}
            shipped = shipped or hot
            print(f"{library}: {len(hot)} names, of functions of {sum(sizes.values())} bytes,",
                  f"of which {sum(sizes[at] for at in ran)} ran")
    if not idle:
        sys.exit("hot_functions.py: callgrind saw no function of the library run; the list stays")
    order = sorted(idle, key=lambda start: (start not in shipped, -runs[start], idle[start], start))
    LIST.write_text("".join(f"{start}\n" for start in order))


main()
