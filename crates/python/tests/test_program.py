"""The package and the program give the same answers, byte for byte."""

import json
import subprocess

import pytest
import slablab
from conftest import DUMP, RECORDING, TRACE


def printed(program: str, *words: object) -> str:
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    # 3: done, but the input was incomplete.
    assert done.returncode in (0, 3), done.stderr
    return done.stdout


CASES = {
    "replay": (
        lambda: slablab.replay(RECORDING, ["slub@6.1", "slub@7.1"]),
        ["replay", RECORDING, "--engine", "slub@6.1", "--engine", "slub@7.1"],
    ),
    "replay of a file that was opened": (
        lambda: slablab.replay(slablab.read_recording(TRACE), machine="numa8-full"),
        ["replay", TRACE, "--machine", "numa8-full"],
    ),
    "replay from a dump, with CPUs that go off": (
        lambda: slablab.replay(
            RECORDING,
            ["slub@6.18"],
            before=[RECORDING.with_name("hackbench-6.18.before.tar.xz")],
            at=[("0.1s", "cpu1=off")],
            threads=1,
        ),
        ["replay", RECORDING, "--engine", "slub@6.18"]
        + ["--before", RECORDING.with_name("hackbench-6.18.before.tar.xz"), "--at", "0.1s", "cpu1=off"],
    ),
    "explain": (
        lambda: slablab.explain(TRACE, "slub@6.1", "slub@6.12", cache="dentry"),
        ["explain", TRACE, "slub@6.1", "slub@6.12", "--cache", "dentry"],
    ),
    "doctor": (lambda: slablab.doctor(DUMP), ["doctor", DUMP]),
    "whatif": (
        lambda: slablab.whatif(DUMP, max_order=[0, 1], page_size=65536, merge=False),
        ["whatif", DUMP, "--max-order", "0,1", "--page-size", "64K", "--merge", "off"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_documents_are_the_same(program, name) -> None:
    answer, words = CASES[name]
    found = answer()
    text = printed(program, *words, "--format", "json")
    assert found.json() == text
    assert found.to_dict() == json.loads(text)


def test_an_experiments_results_are_the_same(program, tmp_path) -> None:
    words = ["run", "micro", "--quick", "--repeats", "1", "-o", tmp_path / "p", "--format", "json"]
    text = printed(program, *words)
    results = slablab.run("micro", size="quick", repeats=1)
    assert results.text("json") == text
    assert results.parquet() == (tmp_path / "p" / "samples.parquet").read_bytes()
