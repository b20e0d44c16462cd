"""A replay from Python beside the program's, in turn: wall and CPU time, and the median ratio.

    python crates/python/benches/replay.py RECORDING [--rounds 11] [--engine slub@6.18]

The program is SLABLAB_PROGRAM, or target/dist/slablab; the wheel that is installed should be of the same profile
(`maturin build --profile dist`). Both read the same file, replay it and print JSON. The interpreter's start and
the imports are in Python's time; `call` is the call alone.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CHILD = """
import sys, time
import slablab
start, busy = time.perf_counter(), time.process_time()
text = slablab.replay(sys.argv[1], [sys.argv[2]]).json()
done, spent = time.perf_counter() - start, time.process_time() - busy
sys.stdout.write(text)
print(done, spent, file=sys.stderr)
"""


def child(*words: str) -> tuple[float, float, str, str]:
    """Wall seconds, CPU seconds, and what was printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode in (0, 3), done.stderr
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return wall, cpu, done.stdout, done.stderr


def spread(values: list[float]) -> str:
    low, _, high = statistics.quantiles(values, n=4)
    return f"{statistics.median(values):.3f} ({low:.3f} to {high:.3f})"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("recording")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--engine", default="slub@6.18")
    given = parser.parse_args()
    program = os.environ.get("SLABLAB_PROGRAM", str(ROOT / "target" / "dist" / "slablab"))
    replayed = [program, "replay", given.recording, "--engine", given.engine, "--format", "json"]
    called = [sys.executable, "-c", CHILD, given.recording, given.engine]
    rows: list[list[float]] = []
    for at in range(given.rounds):
        found = {}
        for words in (replayed, called) if at % 2 else (called, replayed):
            found[words is called] = child(*words)
        assert found[True][2] == found[False][2], "both print the same document"
        call = map(float, found[True][3].split())
        rows.append([found[False][0], found[False][1], found[True][0], found[True][1], *call])
    names = ["program wall s", "program CPU s", "python wall s", "python CPU s", "call wall s", "call CPU s"]
    for at, name in enumerate(names):
        print(f"{name:24}{spread([row[at] for row in rows])}")
    for name, over, under in (("wall", 2, 0), ("CPU", 3, 1), ("call, wall", 4, 0), ("call, CPU", 5, 1)):
        print(f"{'ratio, ' + name:24}{spread([row[over] / row[under] for row in rows])}")


if __name__ == "__main__":
    main()
