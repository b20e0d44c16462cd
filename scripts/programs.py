#!/usr/bin/env python3
"""Real programs under other allocators, by LD_PRELOAD: CPU time, peak memory, and whether they say the same.

    cargo build --release -p slablab-c
    scripts/programs.py                     # all programs and allocators, 5 blocks
    scripts/programs.py --programs sqlite,gcc --allocators glibc,slablab --repeats 11 --format json

In each block every program runs once under every allocator, in an order of chance. CPU time is user and system time of the
program and its children; peak memory is the largest resident set of one of them. What a program says under an allocator must
be what it says without: a difference is an error (exit 1). Programs and allocators that are missing are installed by apt when
run as root, else named (exit 3).
"""

import argparse
import hashlib
import json
import os
import random
import resource
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
# Name: library, Debian package, further environment.
ALLOCATORS = {
    "glibc": (None, None, {}),
    "slablab": (ROOT / "target/release/libslablab.so", None, {}),
    "slub@6.1": (ROOT / "target/release/libslablab.so", None, {"SLABLAB_ENGINE": "slub@6.1"}),
    "slqb": (ROOT / "target/release/libslablab.so", None, {"SLABLAB_ENGINE": "slqb@2009-09"}),
    "slab": (ROOT / "target/release/libslablab.so", None, {"SLABLAB_ENGINE": "slab@6.1"}),
    "mimalloc": ("libmimalloc.so.2", "libmimalloc2.0", {}),
    "jemalloc": ("libjemalloc.so.2", "libjemalloc2", {}),
    "tcmalloc": ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4", {}),
}
PACKAGES = {
    "redis": ["redis-server", "redis-tools"],
    "sqlite": ["sqlite3"],
    "python": ["python3"],
    "gcc": ["gcc"],
    "xz": ["xz-utils"],
    "zstd": ["zstd"],
}
COMMANDS = {
    "redis": ["redis-server", "redis-cli", "redis-benchmark"],
    "sqlite": ["sqlite3"],
    "python": ["python3"],
    "gcc": ["gcc"],
    "xz": ["xz"],
    "zstd": ["zstd"],
}

SQL = """
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, grp INTEGER, body BLOB);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
  INSERT INTO item SELECT i, 'name ' || (i * 7919 % 40000), i % 977, zeroblob(i * 31 % 200) FROM n;
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

PYTHON = """
import json, hashlib, collections, re
digest = hashlib.sha256()
for turn in range(6):
    rows = [{"id": i, "name": "name %d" % (i * 7919 % 10007), "tags": ["t%d" % (i % k) for k in range(2, 9)],
             "nested": {"a": i / 7, "b": [i] * (i % 13)}} for i in range(8000)]
    text = json.dumps(rows, sort_keys=True)
    back = json.loads(text)
    words = collections.Counter(re.findall(r"[a-z]+ [0-9]+", text))
    digest.update(text.encode())
    digest.update(repr(sorted(words.items())[:500]).encode())
    assert back == rows
print(digest.hexdigest())
"""


def c_source():
    """A C file of many functions, always the same."""
    lines = ["#include <stdio.h>", "#include <stdlib.h>", "#include <string.h>", "struct pair { long a, b; char name[40]; };"]
    for i in range(400):
        lines.append(
            f"static long f{i}(struct pair *p, long n) {{ long s = {i}; for (long i = 0; i < n; i++) "
            f"{{ if (p[i].a % {i % 13 + 2}) s += p[i].b * {i}; else s ^= strlen(p[i].name) << {i % 7}; "
            f"switch (s & 7) {{ case 0: s += {i}; break; case 3: s -= p[i].a; break; default: s *= 3; }} }} return s; }}"
        )
    calls = "".join(f"s += f{i}(p, n % {i + 3});" for i in range(400))
    lines.append(f"long all(struct pair *p, long n) {{ long s = 0; {calls} return s; }}")
    return "\n".join(lines) + "\n"


def sample_text():
    """24 MB that compress neither well nor badly, always the same."""
    chance = random.Random(1)
    words = ["".join(chance.choice("etaoinshrdlu") for _ in range(chance.randint(2, 9))) for _ in range(5000)]
    part = " ".join(chance.choice(words) for _ in range(400_000)).encode()
    return b"".join(part[k * 1000:] + part[: k * 1000] for k in range(10))[: 24 << 20]


def redis_script():
    """Commands whose answers depend on nothing but their order."""
    lines = []
    for i in range(20000):
        lines += [f"SET key:{i % 5000} {'v' * (i * 13 % 300)}{i}", f"LPUSH list:{i % 50} item{i}", f"SADD set:{i % 70} m{i % 900}",
                  f"HSET hash:{i % 90} field{i % 400} {i}", f"APPEND text:{i % 20} {i}"]
        if i % 7 == 0:
            lines += [f"GET key:{i % 5000}", f"LPOP list:{i % 50}", f"SCARD set:{i % 70}", f"STRLEN text:{i % 20}", f"DEL key:{i % 3000}"]
    return "\n".join(lines + ["DBSIZE"]) + "\n"


class Run:
    """One program under one allocator: CPU seconds, peak KiB, and what it said."""

    def __init__(self, folder, environment):
        self.folder = folder
        self.environment = environment
        self.said = hashlib.sha256()
        self.failed = None

    def start(self, command, stdin=None, stdout=None):
        return subprocess.Popen(command, cwd=self.folder, env=self.environment, stdin=stdin, stdout=stdout,
                                stderr=subprocess.DEVNULL)

    def end(self, process):
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss

    def simple(self, command, stdin=None, says=None):
        """A program that runs to its end; it says its standard output, or a file."""
        said = self.folder / "said"
        with open(said, "wb") as out, open(stdin or os.devnull, "rb") as given:
            code, cpu, peak = self.end(self.start(command, given, out))
        if code:
            self.failed = f"{command[0]} ended with {code}"
        for file in [said] + ([self.folder / says] if says else []):
            self.said.update(file.read_bytes() if file.exists() else b"missing")
        return cpu, peak

    def sqlite(self):
        return self.simple(["sqlite3", ":memory:"], stdin=self.folder / "script.sql")

    def python(self):
        return self.simple(["python3", "-S", "script.py"])

    def gcc(self):
        return self.simple(["gcc", "-O1", "-c", "source.c", "-o", "out.o"], says="out.o")

    def xz(self):
        return self.simple(["xz", "-T2", "-0", "--block-size=4MiB", "-k", "-f", "-c", "text"])

    def zstd(self):
        return self.simple(["zstd", "-q", "-T2", "-9", "-c", "text"])

    def redis(self):
        """CPU and memory are the server's; the clients run without the allocator."""
        socket = self.folder / "socket"
        socket.unlink(missing_ok=True)
        server = self.start(["redis-server", "--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no",
                             "--daemonize", "no"], stdout=subprocess.DEVNULL)
        try:
            for _ in range(500):
                if socket.exists():
                    break
                time.sleep(0.02)
            client = ["redis-cli", "-s", str(socket)]
            with open(self.folder / "commands", "rb") as commands:
                said = subprocess.run(client, stdin=commands, stdout=subprocess.PIPE, check=True).stdout
            self.said.update(said)
            subprocess.run(["redis-benchmark", "-s", str(socket), "-q", "-n", "60000", "-c", "20", "-P", "16", "-r", "20000",
                            "-d", "200", "-t", "set,get,incr,lpush,lpop,sadd,hset,zadd,lrange_100"],
                           stdout=subprocess.DEVNULL, check=True)
        finally:
            server.send_signal(signal.SIGTERM)
            code, cpu, peak = self.end(server)
        if code:
            self.failed = f"redis-server ended with {code}"
        return cpu, peak


def find(library):
    if library is None:
        return None
    if isinstance(library, Path):
        return library if library.exists() else None
    places = [folder / library for folder in LIBRARIES]
    return next((place for place in places if place.exists()), None)


def install(packages):
    """Installs what is missing, as root on a machine with apt."""
    if packages and os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "-qq"], env=environment, stdout=subprocess.DEVNULL, check=False)
        for package in packages:
            subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", package], env=environment,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def loaded(path, environment):
    """Whether a program really has the library: a preload that fails is only a warning."""
    said = subprocess.run(["cat", "/proc/self/maps"], env=environment, capture_output=True, text=True, check=False).stdout
    return path is None or os.path.realpath(path) in said


def environment_of(name):
    library, _, more = ALLOCATORS[name]
    path = find(library)
    environment = {**os.environ, "LC_ALL": "C", "PYTHONHASHSEED": "0", "PYTHONMALLOC": "malloc", **more}
    environment.pop("LD_PRELOAD", None)
    if path is not None:
        environment["LD_PRELOAD"] = str(path)
    return path, environment


def prepare(folder):
    """Writes what programs read, in a process of its own: a child's peak is never below that of the process it comes from."""
    child = os.fork()
    if child:
        if os.waitpid(child, 0)[1]:
            sys.exit("the input of programs cannot be written")
        return
    (folder / "script.sql").write_text(SQL)
    (folder / "script.py").write_text(PYTHON)
    (folder / "source.c").write_text(c_source())
    (folder / "text").write_bytes(sample_text())
    (folder / "commands").write_text(redis_script())
    os._exit(0)


def chosen(text, known, what):
    names = text.split(",") if text else list(known)
    for name in names:
        if name not in known:
            sys.exit(f"{what} {name}: expected some of {', '.join(known)}")
    return names


def table(results, programs, allocators, base):
    for figure, unit in [("cpu_s", "CPU s"), ("peak_mib", "peak MiB")]:
        print(f"{unit:<10}" + "".join(f"{name:>18}" for name in allocators))
        for program in programs:
            cells = []
            for name in allocators:
                runs = results[program].get(name)
                if not runs:
                    cells.append("")
                    continue
                values = [run[figure] for run in runs]
                ratios = [value / other[figure] for value, other in zip(values, results[program].get(base, runs))]
                cells.append(f"{statistics.median(values):.3g} ({statistics.median(ratios):.2f})")
            print(f"{program:<10}" + "".join(f"{cell:>18}" for cell in cells))
        print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", help="names, with commas: " + ", ".join(PACKAGES))
    parser.add_argument("--allocators", help="names, with commas: " + ", ".join(ALLOCATORS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", choices=["text", "json"], default="text")
    options = parser.parse_args()
    programs = chosen(options.programs, PACKAGES, "--programs")
    allocators = chosen(options.allocators, ALLOCATORS, "--allocators")
    missing = [package for name in programs if not all(map(shutil.which, COMMANDS[name])) for package in PACKAGES[name]]
    missing += [ALLOCATORS[name][1] for name in allocators if ALLOCATORS[name][1] and find(ALLOCATORS[name][0]) is None]
    install(missing)
    incomplete = []
    for name in list(programs):
        if not all(map(shutil.which, COMMANDS[name])):
            incomplete.append(f"{name} is not there: install {' '.join(PACKAGES[name])}")
            programs.remove(name)
    for name in list(allocators):
        path, environment = environment_of(name)
        library, package, _ = ALLOCATORS[name]
        if (library is not None and path is None) or not loaded(path, environment):
            how = f"install {package}" if package else "cargo build --release -p slablab-c"
            incomplete.append(f"{name} cannot be loaded: {how}")
            allocators.remove(name)
    results = {program: {} for program in programs}
    said, different = {}, []
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        prepare(folder)
        for _ in range(options.repeats):
            order = [(program, name) for program in programs for name in allocators]
            chance.shuffle(order)
            for program, name in order:
                run = Run(folder, environment_of(name)[1])
                cpu, peak = getattr(run, program)()
                if run.failed:
                    different.append(f"{program} under {name}: {run.failed}")
                results[program].setdefault(name, []).append({"cpu_s": cpu, "peak_mib": peak / 1024})
                said.setdefault((program, name), set()).add(run.said.hexdigest())
    base = allocators[0]
    for (program, name), ways in sorted(said.items()):
        if ways != said[(program, base)] or len(ways) > 1:
            different.append(f"{program} under {name} does not say what it says under {base}")
    if options.format == "json":
        print(json.dumps({"schema": "slablab.programs.1", "seed": options.seed, "base": base, "results": results,
                          "different": different, "missing": incomplete}, indent=1))
    else:
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{options.repeats} blocks, load {os.getloadavg()[0]:.1f}; medians, in brackets over {base} in the same block; "
              f"peaks below {own:.0f} MiB cannot be told\n")
        table(results, programs, allocators, base)
        same = "every program says the same under every allocator" if not different else "\n".join(different)
        print("\n".join([same] + incomplete))
    sys.exit(1 if different else 3 if incomplete else 0)


if __name__ == "__main__":
    main()
