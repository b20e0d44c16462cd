#!/usr/bin/env python3
"""Runs real programs under several allocators by LD_PRELOAD. Measures CPU time and peak memory, and compares
the output.

    cargo build --profile dist -p slablab-c
    scripts/programs.py                     # all programs; glibc, slablab and three others; 5 blocks: 12 minutes on 2 CPUs
    scripts/programs.py --programs sqlite,gcc --allocators glibc,slablab,slub@6.1 --repeats 11 --format json
    scripts/programs.py --library target/debug/libslablab.so --programs espresso,gcc

The first run of each program is not counted. Then, in each block, every program runs once under every
allocator, in random order. CPU time is the user and system time of the program and its children; for redis
and postgres, of the server only. Peak memory is the largest resident set of one of these processes. For each ratio, the two
runs of one block are divided. The table has the median over all blocks, with an interval that contains the
true median with a probability of at least 90 % (order statistics; with 5 blocks, the smallest and the largest
ratio).

A program must print the same output under every allocator as under the first one. A difference is an error
(exit 1). It is also an error if the dynamic linker binds a program's malloc to another library than the
allocator's. Debian's redis-server is linked with jemalloc, so glibc is preloaded too. If programs or
allocators are missing, the script installs them by apt when it runs as root. Otherwise it names them (exit
3). PostgreSQL is never installed, because its package starts a server: without it, postgres is left out. As
root the server runs as the user nobody, who must be able to read the allocators' libraries.
"""

import argparse
import csv
import ctypes
import hashlib
import itertools
import json
import math
import os
import platform
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = [Path("/usr/lib") / f"{os.uname().machine}-linux-gnu", Path("/usr/lib64"), Path("/usr/lib")]
OURS = ROOT / "target/dist/libslablab.so"
# Name: library, Debian package, further environment.
ALLOCATORS = {
    "glibc": ("libc.so.6", "libc6", {}),
    "slablab": (OURS, None, {}),
    "slub@6.1": (OURS, None, {"SLABLAB_ENGINE": "slub@6.1"}),
    "slqb": (OURS, None, {"SLABLAB_ENGINE": "slqb@2009-09"}),
    "slab": (OURS, None, {"SLABLAB_ENGINE": "slab@6.1"}),
    "slablab-hardened": (OURS, None, {"SLABLAB_ENGINE": "slub@7.1,harden=on"}),
    "slablab-background": (OURS, None, {"SLABLAB_BACKGROUND": "1"}),
    "slots-per-cpu": (OURS, None, {"SLABLAB_SLOTS": "cpu"}),
    "mimalloc": ("libmimalloc.so.2", "libmimalloc2.0", {}),
    "jemalloc": ("libjemalloc.so.2", "libjemalloc2", {}),
    "tcmalloc": ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4", {}),
}
USUAL = ["glibc", "slablab", "mimalloc", "jemalloc", "tcmalloc"]
# `python3` on PATH may be a shell script, which cannot be measured. So use Debian's Python if it is
# installed.
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
# Debian installs several releases beside each other, outside of PATH.
POSTGRES_PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: int(re.sub(r"\D", "", place.parent.name) or 0))
POSTGRES, INITDB = [str(POSTGRES_PLACES[-1] / name) if POSTGRES_PLACES else name for name in ["postgres", "initdb"]]
# Not installed by this script.
NEVER_INSTALLED = {"postgres"}
# Name: Debian packages, commands. The first command is the measured one; it knows the option --version.
PROGRAMS = {
    "redis": (["redis-server", "redis-tools"], ["redis-server", "redis-cli", "redis-benchmark"]),
    "sqlite": (["sqlite3"], ["sqlite3"]),
    "python": (["python3"], [PYTHON]),
    "python-malloc": (["python3"], [PYTHON]),
    "gcc": (["gcc"], ["gcc"]),
    "espresso": (["gcc"], ["gcc"]),
    "lua": (["lua5.4"], ["lua5.4"]),
    "z3": (["z3"], ["z3"]),
    "postgres": (["postgresql"], [POSTGRES, INITDB, "psql"]),
    "xz": (["xz-utils"], ["xz"]),
    "zstd": (["zstd"], ["zstd"]),
}

SQL = """
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, grp INTEGER, body BLOB);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120000)
  INSERT INTO item SELECT i, 'name ' || (i * 7919 % 120000), i % 977, zeroblob(i * 31 % 200) FROM n;
CREATE INDEX by_name ON item(name);
CREATE INDEX by_group ON item(grp, name);
SELECT count(*), sum(length(body)), min(name), max(name) FROM item;
SELECT grp, count(*), group_concat(substr(name, 6, 3)) FROM item WHERE id % 50 = 0 GROUP BY grp ORDER BY grp LIMIT 300;
SELECT a.name, b.name FROM item a JOIN item b ON b.name = 'name ' || (a.id + 1) WHERE a.grp = 7 ORDER BY a.name;
UPDATE item SET name = upper(name) || id WHERE grp % 3 = 0;
DELETE FROM item WHERE id % 5 = 0;
PRAGMA integrity_check;
SELECT count(*), sum(length(name)) FROM item;
"""

SCRIPT = """
import json, hashlib, collections, re
digest = hashlib.sha256()
for turn in range(6):
    rows = [{"id": i, "name": "name %d" % (i * 7919 % 10007), "tags": ["t%d" % (i % k) for k in range(2, 9)],
             "nested": {"a": i / 7, "b": [i] * (i % 13)}} for i in range(10000)]
    text = json.dumps(rows, sort_keys=True)
    back = json.loads(text)
    words = collections.Counter(re.findall(r"[a-z]+ [0-9]+", text))
    digest.update(text.encode())
    digest.update(repr(sorted(words.items())[:500]).encode())
    assert back == rows
print(digest.hexdigest())
"""

# Binary trees, as in the benchmark game, and strings: Lua asks for all memory by realloc.
LUA = """
local function tree(depth) if depth == 0 then return {} end return {tree(depth - 1), tree(depth - 1)} end
local function count(node) if node[1] then return 1 + count(node[1]) + count(node[2]) end return 1 end
for depth = 4, 14, 2 do
  local sum = 0
  for _ = 1, 1 << (18 - depth) do sum = sum + count(tree(depth)) end
  print(depth, sum)
end
local words = {}
for i = 1, 200000 do words[#words + 1] = ("s" .. i):rep(i % 7) end
print(#words)
"""


# Temporary tables only: the cluster is the same before each run.
POSTGRES_SQL = """
SET work_mem = '32MB';
CREATE TEMP TABLE item AS SELECT i AS id, 'name ' || (i * 7919 % 60000) AS name, i % 977 AS grp, repeat('x', i * 31 % 200) AS body
  FROM generate_series(1, 60000) AS n(i);
CREATE INDEX ON item(name);
ANALYZE item;
SELECT count(*), sum(length(body)), min(name), max(name) FROM item;
SELECT grp, count(*), md5(string_agg(name, ',' ORDER BY id)) FROM item GROUP BY grp ORDER BY grp LIMIT 200;
SELECT count(*), md5(string_agg(a.name || b.body, ',' ORDER BY a.id, b.id)) FROM item a JOIN item b ON b.name = 'name ' || (a.id % 20000);
SELECT md5(string_agg(value::text, ',' ORDER BY id)) FROM
  (SELECT id, jsonb_build_object('id', id, 'name', name, 'tags', jsonb_build_array(grp, grp + 1, body)) || '{"a": {"b": [1, 2, 3]}}' AS value
   FROM item WHERE id % 2 = 0) AS made;
UPDATE item SET name = upper(name) || id WHERE grp % 3 = 0;
DO $$ DECLARE row record; words text[] := '{}'; BEGIN
  FOR row IN SELECT name FROM item WHERE id % 20 = 0 ORDER BY id LOOP words := words || regexp_split_to_array(row.name, ' ');
    IF array_length(words, 1) > 500 THEN words := '{}'; END IF; END LOOP; END $$;
SELECT count(*), md5(string_agg(name, ',' ORDER BY id)) FROM item;
"""


def c_source():
    """Returns a C file with many functions. The text is the same in every run."""
    lines = ["#include <stdio.h>", "#include <stdlib.h>", "#include <string.h>", "struct pair { long a, b; char name[40]; };"]
    for i in range(300):
        lines.append(
            f"static long f{i}(struct pair *p, long n) {{ long s = {i}; for (long i = 0; i < n; i++) "
            f"{{ if (p[i].a % {i % 13 + 2}) s += p[i].b * {i}; else s ^= strlen(p[i].name) << {i % 7}; "
            f"switch (s & 7) {{ case 0: s += {i}; break; case 3: s -= p[i].a; break; default: s *= 3; }} }} return s; }}"
        )
    calls = "".join(f"s += f{i}(p, n % {i + 3});" for i in range(300))
    lines.append(f"long all(struct pair *p, long n) {{ long s = 0; {calls} return s; }}")
    return "\n".join(lines) + "\n"


def formula():
    """Returns constraints on words of 24 bits for an SMT solver. The text is the same in every run."""
    chance = random.Random(5)
    names = [f"x{i}" for i in range(24)]
    lines = ["(set-logic QF_BV)"] + [f"(declare-const {name} (_ BitVec 24))" for name in names]
    for _ in range(90):
        a, b, c = chance.sample(names, 3)
        operation = chance.choice(["bvadd", "bvmul", "bvxor", "bvand"])
        relation = chance.choice(["bvult", "bvslt", "distinct"])
        lines.append(f"(assert ({relation} ({operation} {a} {b}) {c}))")
    return "\n".join(lines + ["(check-sat)"]) + "\n"


def sample_text():
    """Returns 24 MiB of text with a medium compression ratio. The text is the same in every run."""
    chance = random.Random(1)
    words = ["".join(chance.choice("etaoinshrdlu") for _ in range(chance.randint(2, 9))) for _ in range(5000)]
    return " ".join(chance.choices(words, k=4_000_000)).encode()[: 24 << 20]


def redis_script():
    """Returns redis commands. Their replies depend only on the order of the commands."""
    lines = []
    for i in range(20000):
        lines += [f"SET key:{i % 5000} {'v' * (i * 13 % 300)}{i}", f"LPUSH list:{i % 50} item{i}", f"SADD set:{i % 70} m{i % 900}",
                  f"HSET hash:{i % 90} field{i % 400} {i}", f"APPEND text:{i % 20} {i}"]
        if i % 7 == 0:
            lines += [f"GET key:{i % 5000}", f"LPOP list:{i % 50}", f"SCARD set:{i % 70}", f"STRLEN text:{i % 20}", f"DEL key:{i % 3000}"]
    return "\n".join(lines + ["DBSIZE"]) + "\n"


# postgres refuses to run as root.
AS_NOBODY = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []


class Run:
    """One run of a program under an allocator: its costs, and the digest of its output."""

    # A shell script that starts a program in the background, prints its process id and ends. The kernel's
    # peak of a process is at least the peak of the process that forked it. The shell's peak is small,
    # Python's is not.
    STARTER = 'exec 3<&0; env "$@" <&3 3<&- 2> /dev/null & echo $! >&2'

    def __init__(self, folder, environment):
        self.folder = folder
        self.environment = environment
        self.said = hashlib.sha256()
        self.failed = None
        self.took = {}

    def start(self, command, stdin=None, stdout=None):
        """Starts a program as a child of this process, which adopts orphans. Returns the process id."""
        self.began = time.monotonic()
        new = [f"{name}={value}" for name, value in self.environment.items()]
        starter = subprocess.run(["/bin/sh", "-c", self.STARTER, "sh", *new, *command], cwd=self.folder, stdin=stdin,
                                 stdout=stdout, stderr=subprocess.PIPE, check=True)
        return int(starter.stderr)

    def end(self, number, command):
        _, status, usage = os.wait4(number, 0)
        self.took = {"cpu_s": usage.ru_utime + usage.ru_stime, "system_s": usage.ru_stime, "wall_s": time.monotonic() - self.began,
                     "peak_mib": usage.ru_maxrss / 1024, "faults": usage.ru_minflt + usage.ru_majflt}
        if status:
            self.failed = f"{command[0]} ended with {os.waitstatus_to_exitcode(status)}"

    def simple(self, command, stdin=None, says=None):
        """Runs a program to its end. Its output is its standard output and, if `says` is given, that file."""
        said = self.folder / "said"
        with open(said, "wb") as out, open(stdin or os.devnull, "rb") as given:
            self.end(self.start(command, given, out), command)
        for file in [said] + ([self.folder / says] if says else []):
            self.said.update(file.read_bytes() if file.exists() else b"missing")

    def sqlite(self):
        self.simple(["sqlite3", ":memory:"], stdin=self.folder / "script.sql")

    def python(self):
        """Python's own allocator serves small objects. It takes its arenas from mmap."""
        self.simple([PYTHON, "-S", "script.py"])

    def python_malloc(self):
        """malloc serves every object of Python."""
        self.environment = {**self.environment, "PYTHONMALLOC": "malloc"}
        self.python()

    def gcc(self):
        self.simple(["gcc", "-O1", "-c", "source.c", "-o", "out.o"], says="out.o")

    def espresso(self):
        """A small program of this repository: many short lists of small blocks."""
        self.simple([str(self.folder / "espresso")])

    def lua(self):
        self.simple(["lua5.4", "script.lua"])

    def z3(self):
        self.simple(["z3", "formula.smt2"])

    def postgres(self):
        """Only the server and its children are measured. The client runs without the allocator."""
        settings = ["fsync=off", "autovacuum=off", "jit=off", "max_parallel_workers_per_gather=0", "listen_addresses=",
                    f"unix_socket_directories={self.folder}", "shared_buffers=32MB", "logging_collector=off"]
        command = [POSTGRES, "-D", str(self.folder / "cluster"), *[word for setting in settings for word in ("-c", setting)]]
        server = self.start(AS_NOBODY + command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            client = ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", str(self.folder), "-U", "slablab", "-d", "postgres"]
            for _ in range(500):
                if subprocess.run([*client, "-c", "SELECT 1"], capture_output=True, check=False).returncode == 0:
                    break
                time.sleep(0.02)
            maps = Path(f"/proc/{server}/maps").read_text()
            loaded = os.path.realpath(self.environment["LD_PRELOAD"]) in maps
            for _ in range(3):
                asked = subprocess.run([*client, "-f", str(self.folder / "postgres.sql")], stdout=subprocess.PIPE, check=True)
                self.said.update(asked.stdout)
        finally:
            os.kill(server, signal.SIGINT)
            self.end(server, command)
        if not loaded:
            self.failed = f"the server did not load {self.environment['LD_PRELOAD']}: may the user nobody read it?"

    def xz(self):
        self.simple(["xz", "-T2", "-0", "--block-size=4MiB", "-k", "-f", "-c", "text"])

    def zstd(self):
        self.simple(["zstd", "-q", "-T2", "-9", "-B2MiB", "-c", "text"])

    def redis(self):
        """Only the server is measured. The clients run without the allocator."""
        socket = self.folder / "socket"
        socket.unlink(missing_ok=True)
        command = ["redis-server", "--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no", "--daemonize", "no"]
        server = self.start(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            for _ in range(500):
                if socket.exists():
                    break
                time.sleep(0.02)
            with open(self.folder / "commands", "rb") as commands:
                said = subprocess.run(["redis-cli", "-s", str(socket)], stdin=commands, stdout=subprocess.PIPE, check=True).stdout
            self.said.update(said)
            subprocess.run(["redis-benchmark", "-s", str(socket), "-q", "-n", "40000", "-c", "20", "-P", "16", "-r", "20000",
                            "-d", "200", "-t", "set,get,incr,lpush,lpop,sadd,hset,zadd,lrange_100"],
                           stdout=subprocess.DEVNULL, check=True)
        finally:
            os.kill(server, signal.SIGTERM)
            self.end(server, command)


def find(library):
    if isinstance(library, Path):
        return library if library.exists() else None
    places = [folder / library for folder in LIBRARIES]
    return next((place for place in places if place.exists()), None)


def install(packages):
    """Installs packages if this process is root and the machine has apt."""
    if packages and os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "-qq"], env=environment, stdout=subprocess.DEVNULL, check=False)
        for package in packages:
            subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", package], env=environment,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def environment_of(name):
    library, _, more = ALLOCATORS[name]
    return {"LC_ALL": "C", "PYTHONHASHSEED": "0", **more, "LD_PRELOAD": str(find(library))}


def served(program, name, folder):
    """Returns the libraries to which the dynamic linker binds malloc in a program and in its libraries."""
    command = PROGRAMS[program][1][0]
    if program == "espresso":
        command = str(folder / "espresso")
    if program == "gcc":
        command = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True).stdout.strip()
    environment = {**os.environ, **environment_of(name), "LD_BIND_NOW": "1", "LD_DEBUG": "bindings"}
    said = subprocess.run([command, "--version"], env=environment, capture_output=True, text=True, check=False).stderr
    bound = {os.path.realpath(path) for path in re.findall(r" to (\S+) \[0\]: normal symbol `malloc'", said)}
    # If a program is not position-independent, its libraries bind malloc to a jump in the program, which
    # leads to the library that the program is bound to. So the program itself does not count.
    return bound - {os.path.realpath(shutil.which(command))}


def version(name):
    """Returns an allocator's name, with its version if a package has it."""
    package = ALLOCATORS[name][1]
    if name == "glibc":
        return f"glibc {platform.libc_ver()[1]}"
    if package is None or not shutil.which("dpkg-query"):
        return name
    asked = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=False)
    return f"{name} {asked.stdout}"


def interval(values):
    """Returns the median, and the closest order statistics that contain the true one with 90 %."""
    ordered, cut = sorted(values), 0
    while 2 * sum(math.comb(len(values), k) for k in range(cut + 2)) <= 0.1 * 2 ** len(values):
        cut += 1
    return statistics.median(ordered), ordered[cut], ordered[-1 - cut]


class Table:
    """The measurements, and a function for each output format."""

    FIGURES = [("cpu_s", "CPU s"), ("peak_mib", "peak MiB")]
    # Page faults and system time are printed but not compared. They explain CPU time and peak memory.
    ALL = ["cpu_s", "system_s", "wall_s", "peak_mib", "faults"]

    def __init__(self, results, allocators):
        self.results = results
        self.allocators = allocators
        self.base = allocators[0]
        self.ours = [name for name in allocators if isinstance(ALLOCATORS[name][0], Path)]
        self.others = [name for name in allocators if name not in self.ours]

    def over(self, program, figure, name, other):
        runs = self.results[program]
        middle, low, high = interval([a[figure] / b[figure] for a, b in zip(runs[name], runs[other])])
        return f"{middle:.2f} [{low:.2f} {high:.2f}]", "won" if high < 1 else "LOST" if low > 1 else "even"

    def rows(self, figure):
        """Yields one row of texts per program: median and ratio of each allocator, the best allocator that is
        not slablab's, and the ratios of slablab's allocators over it."""
        for program, runs in self.results.items():
            middle = {name: statistics.median(run[figure] for run in runs[name]) for name in self.allocators}
            row = [program]
            for name in self.allocators:
                ratio = "" if name == self.base else " " + self.over(program, figure, name, self.base)[0]
                row.append(f"{middle[name]:.3g}{ratio}")
            best = min(self.others, key=middle.get, default=None)
            for name in self.ours if best else []:
                row += ([best] if name == self.ours[0] else []) + [" ".join(self.over(program, figure, name, best))]
            yield row

    def heads(self, unit):
        heads = [unit] + [name if name == self.base else f"{name} over {self.base}" for name in self.allocators]
        if self.ours and self.others:
            heads += ["best other"] + [f"{name} over it" for name in self.ours]
        return heads

    def text(self):
        for figure, unit in self.FIGURES:
            lines = [self.heads(unit)] + list(self.rows(figure))
            widths = [max(map(len, column)) for column in zip(*lines)]
            for first, *rest in lines:
                print(first.ljust(widths[0]) + "".join("  " + cell.rjust(width) for cell, width in zip(rest, widths[1:])))
            print()

    def markdown(self):
        for figure, unit in self.FIGURES:
            lines = [self.heads(unit), ["---"] * len(self.heads(unit))] + list(self.rows(figure))
            print("\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n")

    def csv(self):
        out = csv.writer(sys.stdout, lineterminator="\n")
        out.writerow(["program", "allocator", "block"] + self.ALL)
        for program, runs in self.results.items():
            for name in self.allocators:
                for block, run in enumerate(runs[name]):
                    out.writerow([program, name, block] + [f"{run[figure]:.7g}" for figure in self.ALL])


def prepare(folder, programs):
    """Writes the input files of the programs, and what only some of them need."""
    if "espresso" in programs:
        source = ROOT / "scripts/programs/espresso.c"
        subprocess.run(["gcc", "-O2", "-o", str(folder / "espresso"), str(source)], check=True)
    if "postgres" in programs:
        cluster = folder / "cluster"
        cluster.mkdir(mode=0o700)
        if AS_NOBODY:
            # The server makes its socket in the folder.
            folder.chmod(0o777)
            shutil.chown(cluster, "nobody", "nogroup")
        command = [*AS_NOBODY, INITDB, "-D", str(cluster), "-U", "slablab", "-A", "trust", "-N", "--no-locale", "-E", "UTF8"]
        subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    (folder / "postgres.sql").write_text(POSTGRES_SQL)
    (folder / "script.sql").write_text(SQL)
    (folder / "script.py").write_text(SCRIPT)
    (folder / "script.lua").write_text(LUA)
    (folder / "formula.smt2").write_text(formula())
    (folder / "source.c").write_text(c_source())
    (folder / "text").write_bytes(sample_text())
    (folder / "commands").write_text(redis_script())


def chosen(text, known, usual, what):
    names = text.split(",") if text else list(usual)
    for name in names:
        if name not in known:
            sys.exit(f"{what} {name}: expected some of {', '.join(known)}")
    return names


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", help="names, with commas: " + ", ".join(PROGRAMS))
    parser.add_argument("--allocators", help="names, with commas; the others are compared with the first: " + ", ".join(ALLOCATORS))
    parser.add_argument("--library", type=Path, help="libslablab.so to run instead of target/dist/libslablab.so")
    parser.add_argument("--repeats", type=int, default=5, help="number of blocks")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random order")
    parser.add_argument("--format", choices=["text", "markdown", "csv", "json"], default="text")
    return parser.parse_args()


def present(programs, allocators):
    """Returns the installed programs and allocators, and a message for each that is missing."""
    absent = lambda program: not all(map(shutil.which, PROGRAMS[program][1]))
    missing = [package for program in programs if absent(program) and program not in NEVER_INSTALLED
               for package in PROGRAMS[program][0]]
    missing += [ALLOCATORS[name][1] for name in allocators if ALLOCATORS[name][1] and find(ALLOCATORS[name][0]) is None]
    install(missing)
    said = [f"{program} is left out, because it is not installed: install {' '.join(PROGRAMS[program][0])}"
            for program in programs if absent(program)]
    for name in allocators:
        if find(ALLOCATORS[name][0]) is None:
            package = ALLOCATORS[name][1]
            said.append(f"{name} is missing: " + (f"install {package}" if package else "cargo build --profile dist -p slablab-c"))
    return [program for program in programs if not absent(program)], [name for name in allocators if find(ALLOCATORS[name][0])], said


def main():
    options = arguments()
    if options.library:
        if not options.library.is_file():
            sys.exit(f"--library {options.library}: no such file; expected a libslablab.so, which "
                     "`cargo build --profile dist -p slablab-c` writes to target/dist")
        for name, (library, package, more) in ALLOCATORS.items():
            if library == OURS:
                ALLOCATORS[name] = (options.library.resolve(), package, more)
    programs = chosen(options.programs, PROGRAMS, PROGRAMS, "--programs")
    allocators = chosen(options.allocators, ALLOCATORS, USUAL, "--allocators")
    programs, allocators, missing = present(programs, allocators)
    if not programs or not allocators:
        sys.exit("\n".join(missing))
    wrong = []
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    results = {program: {name: [] for name in allocators} for program in programs}
    said = {}
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        prepare(folder, programs)
        for program, name in itertools.product(programs, allocators):
            by = served(program, name, folder)
            if by != {os.path.realpath(find(ALLOCATORS[name][0]))}:
                wrong.append(f"{program} under {name}: malloc is {', '.join(sorted(by)) or 'not bound'}")
        for block in range(-1, options.repeats):
            order = [(program, name) for program in programs for name in (allocators if block >= 0 else allocators[:1])]
            chance.shuffle(order)
            for program, name in order:
                run = Run(folder, environment_of(name))
                getattr(run, program.replace("-", "_"))()
                if run.failed:
                    wrong.append(f"{program} under {name}: {run.failed}")
                said.setdefault((program, name), set()).add(run.said.hexdigest())
                if block >= 0:
                    results[program][name].append(run.took)
    for (program, name), ways in sorted(said.items()):
        if ways != said[(program, allocators[0])] or len(ways) > 1:
            wrong.append(f"{program} under {name}: the output differs from the output under {allocators[0]}")
    table = Table(results, allocators)
    versions = ", ".join(map(version, allocators))
    if options.format == "json":
        print(json.dumps({"schema": "slablab.programs.2", "seed": options.seed, "base": allocators[0], "allocators": versions,
                          "results": results, "wrong": wrong, "missing": missing}, indent=1))
    elif options.format == "csv":
        table.csv()
        print("\n".join(wrong + missing), end="", file=sys.stderr)
    else:
        print(f"{versions}; {options.repeats} blocks, load {os.getloadavg()[0]:.1f}\n")
        getattr(table, options.format)()
        print("\n".join(wrong or ["every program has the same output under every allocator"]) + "".join("\n" + line for line in missing))
    sys.exit(1 if wrong else 3 if missing else 0)


if __name__ == "__main__":
    main()
