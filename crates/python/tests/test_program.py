"""The package and the program give the same answers, byte for byte."""

import json
import re
import subprocess

import pytest
import slablab
from conftest import DUMP, RECORDING, TRACE

EARLIER = DUMP.with_name("amd64_smp4.before.tar.xz")
MAX_ORDER_0 = DUMP.with_name("amd64_smp4_maxorder0.after.tar.xz")


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
        lambda: slablab.explain(RECORDING, "slub@6.1", "slub@6.12", cache="dentry"),
        ["explain", RECORDING, "slub@6.1", "slub@6.12", "--cache", "dentry"],
    ),
    "fleet": (
        lambda: slablab.fleet([DUMP.parent], by="cpus", max_order=[0, 1], engine="slub@7.1", lines=3),
        ["fleet", DUMP.parent, "--by", "cpus", "--max-order", "0", "--max-order", "1"]
        + ["--engine", "slub@7.1", "-N", "3"],
    ),
    "leak of two dumps": (
        lambda: slablab.leak(DUMP, since=[EARLIER], top=3),
        ["leak", DUMP, "--since", EARLIER, "--top", "3"],
    ),
    "doctor": (lambda: slablab.doctor(DUMP), ["doctor", DUMP]),
    "doctor with an earlier dump": (
        lambda: slablab.doctor(DUMP, since=[EARLIER], hours=2, sort="n", lines=20, bytes=True),
        ["doctor", DUMP, "--since", EARLIER, "--hours", "2", "-s", "n", "-N", "20", "-B"],
    ),
    "whatif": (
        lambda: slablab.whatif(DUMP, max_order=[0, 1], page_size=65536, merge=False),
        ["whatif", DUMP, "--max-order", "0,1", "--page-size", "64K", "--merge", "off"],
    ),
    "whatif beside a boot": (
        lambda: slablab.whatif(DUMP, max_order=0, against=MAX_ORDER_0),
        ["whatif", DUMP, "--max-order", "0", "--against", MAX_ORDER_0],
    ),
}
#: Those whose text is the program's, whole.
TEXTS = ["doctor", "doctor with an earlier dump", "whatif", "whatif beside a boot"]


@pytest.mark.parametrize("name", CASES)
def test_the_documents_are_the_same(program, name) -> None:
    answer, words = CASES[name]
    found = answer()
    text = printed(program, *words, "--format", "json")
    assert found.json() == text
    assert found.to_dict() == json.loads(text)


@pytest.mark.parametrize("name", TEXTS)
def test_the_texts_are_the_same(program, name) -> None:
    answer, words = CASES[name]
    assert str(answer()) == printed(program, *words)


def test_a_recording_has_its_start(program, recorded) -> None:
    for given in recorded, slablab.read_recording(recorded):
        found = slablab.replay(given, ["slub@6.18"])
        assert found.json() == printed(program, "replay", recorded, "--engine", "slub@6.18", "--format", "json")
    # The state of before is that in the file: other memory than from an empty start.
    without = slablab.replay(RECORDING, ["slub@6.18"])
    assert found.engines["slab_peak_bytes"] != without.engines["slab_peak_bytes"]
    diagnosis = slablab.doctor(recorded, since=[recorded], force=True)
    words = ["doctor", recorded, "--since", recorded, "--force", "--format", "json"]
    assert diagnosis.json() == printed(program, *words)


def test_a_caches_counters_are_the_same(program) -> None:
    found = slablab.replay(RECORDING, ["slub@6.1"]).cache("dentry")
    words = ["replay", RECORDING, "--engine", "slub@6.1", "--cache", "dentry", "--format", "json"]
    assert found == json.loads(printed(program, *words))


@pytest.mark.parametrize("format", ["html", "svg"])
def test_a_slab_map_is_the_same(program, tmp_path, format) -> None:
    map = slablab.replay(TRACE, ["slub@6.1"]).map("malloc-64", at="1ms", format=format)
    path = tmp_path / f"map.{format}"
    words = ["replay", TRACE, "--engine", "slub@6.1", "--cache", "malloc-64", "--map", path, "--map-at", "1ms"]
    printed(program, *words)
    # A page names the command that made it.
    command = re.compile('<pre class="command">.*?</pre>')
    mine, programs = (command.sub("", text) for text in (map, path.read_text()))
    assert mine == programs


def test_an_experiments_results_are_the_same(program, tmp_path) -> None:
    words = ["run", "micro", "--quick", "--repeats", "1", "-o", tmp_path / "p", "--format", "json"]
    text = printed(program, *words)
    results = slablab.run("micro", size="quick", repeats=1)
    assert results.text("json") == text
    assert results.text("avgstd", wrap=72) == printed(program, *words[:-1], "avgstd", "--wrap", "72")
    assert str(results) == printed(program, *words[:-2])
    table = results.locks().split("\n", 1)[1]
    assert table in printed(program, *words[:-2], "--locks", "--wide")
    assert results.parquet() == (tmp_path / "p" / "samples.parquet").read_bytes()
