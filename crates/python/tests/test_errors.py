"""Wrong inputs and arguments: the class, the message, the file and the place."""

import pickle
import tarfile

import pytest
import slablab
from conftest import DUMP, TRACE


def check(call, kind: type, words: str, *, path=None, line=None, offset=None) -> None:
    with pytest.raises(kind) as raised:
        call()
    again = pickle.loads(pickle.dumps(raised.value))
    for error in (raised.value, again):
        assert isinstance(error, slablab.Error) and type(error) is kind
        assert words in str(error)
        assert (error.path, error.line, error.offset) == (path, line, offset), str(error)


def test_files(tmp_path) -> None:
    nothing = tmp_path / "nothing"
    check(lambda: slablab.read_recording(nothing), slablab.InputError, "No such file", path=nothing)
    text = tmp_path / "text"
    text.write_text("hello\n")
    check(lambda: slablab.replay(text), slablab.InputError, "expected a perf.data", path=text)
    check(lambda: slablab.read_dump(text), slablab.InputError, "text", path=text)
    toml = tmp_path / "mine.toml"
    toml.write_text('name = "mine"\ntitle = "t"\nmachine = ["laptop"]\n')
    check(lambda: slablab.run(toml), slablab.InputError, "near it: machines", path=toml, line=3)
    check(lambda: slablab.sweep(toml), slablab.InputError, "near it: machines", path=toml, line=3)
    machine = tmp_path / "machine.toml"
    machine.write_text("page_size = 5000\n")
    check(
        lambda: slablab.replay(TRACE, machine=machine),
        slablab.InputError,
        "5000",
        path=machine,
        line=1,
    )


def test_places(tmp_path) -> None:
    csv = tmp_path / "events.csv"
    csv.write_text("t_us,cpu,event,name,ptr,req,alloc,gfp,node\nx\n")
    with pytest.raises(slablab.InputError) as raised:
        slablab.read_recording(csv)
    assert raised.value.line is not None and f"line {raised.value.line}" in str(raised.value)
    damaged = tmp_path / "damaged.tar"
    with tarfile.open(damaged, "w") as tar:
        tar.addfile(tarfile.TarInfo("proc/version"))
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:512] + b"x" * 512 + whole[1024:])
    with pytest.raises(slablab.InputError) as raised:
        slablab.read_dump(damaged)
    assert raised.value.offset == 512 and "byte 512" in str(raised.value)


def test_arguments() -> None:
    usage = slablab.UsageError
    check(lambda: slablab.replay(TRACE, ["slbu"]), usage, "near it: slub")
    check(lambda: slablab.replay(TRACE, ["slub,max_ordr=1"]), usage, "max_order")
    check(lambda: slablab.replay(TRACE, release="new"), usage, "release new")
    check(lambda: slablab.replay(TRACE, at=[("1", "cpu0")]), usage, "at 1 cpu0")
    check(lambda: slablab.explain(TRACE, "slub", "slub@x"), usage, "b slub@x")
    check(lambda: slablab.explain(TRACE, "slub", "slab", samples=1), usage, "samples 1")
    check(lambda: slablab.whatif(DUMP, page_size=5000), usage, "5000")
    check(lambda: slablab.whatif(DUMP, policy="fast"), usage, "policy fast")
    check(lambda: slablab.run("micro", size="small"), usage, "size small")
    check(lambda: slablab.doctor(DUMP).caches["x"], usage, "expected one of cache")
    check(lambda: slablab.doctor(DUMP, sort="x"), usage, "expected one of: a active objects")
    check(lambda: slablab.doctor(DUMP, hours=1), usage, "expected an earlier snapshot")
    check(lambda: slablab.whatif(DUMP, max_order=[0, 1], against=DUMP), usage, "one change, not a list")
    check(lambda: slablab.replay(TRACE, ["slub"]).map(format="png"), usage, "expected html or svg")
    check(lambda: slablab.replay(TRACE, ["slub"]).map(at="soon"), usage, "expected a time as 1.5s")
    check(lambda: slablab.replay(TRACE, ["slub"]).cache("x"), usage, "no cache is called x")
    recording = slablab.read_recording(TRACE)
    check(lambda: recording.rows(["x"]), usage, "expected one of time_ns")
    check(lambda: recording.rows([]), usage, "expected at least one")
    check(lambda: recording.rows(["cpu", "cpu"]), usage, "column cpu is given twice")
    # It is a ValueError too, as Python's own functions raise.
    with pytest.raises(ValueError, match="near it: micro"):
        try:
            slablab.run("mikro")
        except slablab.InputError as error:
            raise ValueError(str(error)) from error
    with pytest.raises(ValueError):
        slablab.replay(TRACE, ["slbu"])
