#!/usr/bin/env python3
"""The table of docs/results/replay.md: `slablab verify` on recordings, with their snapshots and without.

    scripts/recordings.py SLABLAB SEEDS RECORDING...

A RECORDING is a file of `slablab record`, or a folder with a recording (perf.data.xz, trace.dat.xz), a dump of
before it (before.tar.xz) and /proc/slabinfo at its start and end (slabinfo_in_start.txt, slabinfo_in_end.txt).
Rows of Markdown go to standard output, one for each recording and start: the first draw, and in brackets the
median and the range of SEEDS draws. A start that was read has one draw here. With 20 SEEDS eight recordings without
snapshots take some ten minutes of CPU time; one with 411,000 slabs takes much longer.
"""

import json
import pathlib
import subprocess
import sys

HEAD = ["recording", "start", "skill (median: range)", "traced alone", "active", "balance: slabs, active",
        "taken: real, predicted", "returned: real, predicted (median: range)", "holds", "pages off", "balance's"]


def arguments(path):
    """The recording and its dumps, as verify takes them."""
    if path.is_file():
        return [str(path)]
    events = next(path / name for name in ("perf.data.xz", "trace.dat.xz") if (path / name).exists())
    before = path / "before.tar.xz"
    if not before.exists():
        before = next(path.glob("../*/before.tar.xz"), None)
    dumps = ["--before", str(path / "slabinfo_in_start.txt"), "--after", str(path / "slabinfo_in_end.txt")]
    return [str(events)] + (["--before", str(before)] if before else []) + dumps


def verified(program, seeds, words):
    run = subprocess.run([program, "verify", *words, "--seeds", seeds, "--format", "json"],
                         capture_output=True, text=True)
    if run.returncode not in (0, 1, 3):
        print(" ".join(words), run.stderr.strip(), file=sys.stderr)
        return None
    return json.loads(run.stdout)


def number(value, places=3):
    return "-" if value is None else f"{value:.{places}f}"


def spread(answer, name, places=3):
    found = answer["seeds"].get(name)
    if not found or len(found["by_rank"]) < 2:
        return ""
    median, least, most = (f"{found[name]:.{places}f}" for name in ("median", "least", "most"))
    return f" ({median}: {least} to {most})"


def slabs(answer, name):
    """Of all orders together; None without page events."""
    pages = answer["slab_pages"]
    return None if pages is None else sum(order[name] for order in pages["orders"])


def row(name, start, answer):
    pages, null = answer["slab_pages"] or {}, answer["null_models"]["own_balance"]
    returned, real = answer["seeds"].get("slabs_returned"), slabs(answer, "slabs_returned_real")
    holds = "-" if not returned or len(returned["by_rank"]) < 2 or real is None else "yes" if returned["least"] <= real <= returned["most"] else "no"
    return [
        name, start,
        number(answer["skill_slab_bytes"]) + spread(answer, "skill_slab_bytes"),
        number(answer["traced"][0]["skill_slab_bytes"]), number(answer["skill_active_bytes"], 2),
        f"{number(null['skill_slab_bytes'], 2)}, {number(null['skill_active_bytes'], 2)}",
        f"{slabs(answer, 'slabs_taken_real')}, {slabs(answer, 'slabs_taken_predicted')}",
        f"{real}, {slabs(answer, 'slabs_returned_predicted')}" + spread(answer, "slabs_returned", 0),
        holds,
        f"{number(pages.get('error_percent'), 1)} %", f"{number(pages.get('error_percent_own_balance'), 1)} %",
    ]


def main():
    program, seeds, *recordings = sys.argv[1:]
    print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD))
    for path in map(pathlib.Path, recordings):
        words = arguments(path)
        name = path.name if path.is_file() else path.parent.name if path.name in ("perf", "tracefs") else path.name
        starts = [("guessed", seeds, words)]
        if path.is_file():
            starts = [("read", "1", words), ("guessed", seeds, [*words, "--no-snapshot"])]
        for start, draws, words in starts:
            if answer := verified(program, draws, words):
                print("| " + " | ".join(row(name, start, answer)) + " |", flush=True)


if __name__ == "__main__":
    main()
