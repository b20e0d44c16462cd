#!/usr/bin/env python3
"""Applies one-token changes to a crate's sources, one at a time, runs the crate's own tests on each, and prints
whether a test caught the change.

    scripts/mutations.py slabs                  # scripts/mutations/slabs.toml, all of them
    scripts/mutations.py slabs --only 3,7-9     # by number
    scripts/mutations.py vm --list              # numbers, places, changes and rules; runs nothing

The changes are data: a table says which tests run, and each `[[mutation]]` names a file, a token `before`, the
token `after`, the `line` near which it stands, and the rule that it breaks. A list is written before its author
looks at which tests catch what, and holds no change that leaves the program's behaviour as it is. A change that
a person finds to be equivalent later stays in the list, with the proof as `equivalent`: it may survive.

The tests run in a copy of the tree, target/mutations/tree, so the sources themselves are never changed and an
interrupted run leaves nothing to undo. A test that hangs is ended after --timeout seconds and counts as caught.
Exit 0: all are caught. 1: some survived. 2: the list or the unchanged tests are wrong.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "target/mutations"
TREE = WORK / "tree"


def fail(message):
    print(f"mutations.py: {message}", file=sys.stderr)
    sys.exit(2)


def numbers(text, count):
    """The numbers that `text` names ("3,7-9"); all of them without a text."""
    if text is None:
        return list(range(1, count + 1))
    chosen = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        chosen += range(int(first), int(last or first) + 1)
    wrong = [number for number in chosen if not 1 <= number <= count]
    return fail(f"no mutation {wrong[0]}; the list has 1 to {count}") if wrong else chosen


def applied(mutation, text):
    """The file's text with the change, and the number of its line. The line nearest to `line` that holds `before`
    is meant, so that the list outlives small edits of the file; there `before` stands once."""
    lines = text.splitlines(keepends=True)
    holds = [index for index, line in enumerate(lines) if mutation["before"] in line]
    if not holds:
        fail(f"{mutation['file']}: no line holds {mutation['before']!r}")
    index = min(holds, key=lambda index: abs(index + 1 - mutation["line"]))
    if lines[index].count(mutation["before"]) != 1:
        fail(f"{mutation['file']}:{index + 1}: {mutation['before']!r} stands there more than once; give more of the line")
    lines[index] = lines[index].replace(mutation["before"], mutation["after"])
    return "".join(lines), index + 1


def copy_tree():
    """Brings target/mutations/tree up to date with the files of the repository. Unchanged files keep their times, so
    that cargo builds only what differs."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True
    ).stdout.decode().split("\0")
    wanted = {name for name in listed if name and (ROOT / name).exists()}
    for name in wanted:
        source, target = ROOT / name, TREE / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            target.unlink(missing_ok=True)
            target.symlink_to(os.readlink(source))
        elif not target.is_file() or target.read_bytes() != source.read_bytes():
            shutil.copy(source, target)
    for path in list(TREE.rglob("*")):
        if (path.is_symlink() or path.is_file()) and str(path.relative_to(TREE)) not in wanted:
            path.unlink()


def run_tests(test, timeout):
    """The outcome of the tests ("passed", "failed", "hung", "broken": does not compile), and their output."""
    environment = {**os.environ, "CARGO_TARGET_DIR": str(WORK / "build"), "RUSTFLAGS": "--cap-lints=warn"}
    built = subprocess.run(["cargo", "test", "--no-run", "--quiet", *test], cwd=TREE, env=environment,
                           capture_output=True, text=True, errors="replace")
    if built.returncode:
        return "broken", built.stderr
    # A session of its own, so that a test that hangs is ended with all of its processes.
    child = subprocess.Popen(["cargo", "test", *test], cwd=TREE, env=environment, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    try:
        output, _ = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        return "hung", child.communicate()[0]
    return ("failed" if child.returncode else "passed"), output


def first_failure(output):
    """The name of the first test that failed."""
    found = re.search(r"^test (.+?) \.\.\. FAILED", output, re.MULTILINE)
    return found.group(1) if found else "the test program ended early"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("list", help="a file NAME.toml in scripts/mutations")
    parser.add_argument("--only", metavar="NUMBERS", help="these mutations, such as 3,7-9")
    parser.add_argument("--list", action="store_true", dest="show", help="print the mutations and run nothing")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for the tests of a mutation [300]")
    arguments = parser.parse_args()

    table = ROOT / "scripts/mutations" / f"{arguments.list}.toml"
    if not table.is_file():
        fail(f"no list {table.relative_to(ROOT)}; there are {', '.join(sorted(p.stem for p in table.parent.glob('*.toml')))}")
    contents = tomllib.loads(table.read_text())
    mutations = contents["mutation"]
    changes = []
    for number in numbers(arguments.only, len(mutations)):
        mutation = mutations[number - 1]
        text, line = applied(mutation, (ROOT / mutation["file"]).read_text())
        place = f"{mutation['file']}:{line}"
        changes.append((number, mutation, text, f"{place} `{mutation['before']}` -> `{mutation['after']}`"))
    if arguments.show:
        for number, mutation, _, what in changes:
            print(f"{number:3} {what}\n    {mutation['rule']}")
        return 0

    copy_tree()
    outcome, output = run_tests(contents["test"], None)
    if outcome != "passed":
        fail(f"the tests of the unchanged tree: {outcome}\n{output[-4000:]}")
    survivors, caught, wrong = [], 0, 0
    for number, mutation, text, what in changes:
        source, target = ROOT / mutation["file"], TREE / mutation["file"]
        began = time.monotonic()
        target.write_text(text)
        try:
            outcome, output = run_tests(contents["test"], arguments.timeout)
        finally:
            # The time of the restored file is new, so that cargo builds it again.
            target.write_text(source.read_text())
        (WORK / f"{arguments.list}-{number}.log").write_text(output)
        word, why = {
            "failed": ("caught", first_failure(output)),
            "hung": ("caught", f"no end after {arguments.timeout:g} s"),
            "broken": ("BROKEN", "does not compile"),
            "passed": ("equivalent", mutation["equivalent"]) if "equivalent" in mutation else ("SURVIVED", mutation["rule"]),
        }[outcome]
        caught += word == "caught"
        wrong += word == "BROKEN"
        survivors += [number] if word == "SURVIVED" else []
        print(f"{number:3} {word:10} {what} ({why}; {time.monotonic() - began:.0f} s)", flush=True)
    print(f"{caught} of {len(changes)} caught; survived: {', '.join(map(str, survivors)) or 'none'}")
    return 2 if wrong else int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main())
