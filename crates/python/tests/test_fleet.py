"""Fleets: the answer of one process, whoever reads the dumps."""

from concurrent.futures import Executor, Future, ThreadPoolExecutor

import pytest
import slablab
from conftest import DUMPS
from slablab import _fleet


@pytest.fixture(scope="module")
def alone() -> slablab.Fleet:
    return slablab.fleet([DUMPS])


@pytest.mark.parametrize("of_task", [1, 3, 7, 1000])
def test_the_bytes_do_not_depend_on_tasks(alone, monkeypatch, of_task) -> None:
    monkeypatch.setattr(_fleet, "DUMPS", of_task)
    with ThreadPoolExecutor(2) as pool:
        found = slablab.fleet([DUMPS], executor=pool)
    assert (found.json(), found.text("csv"), str(found)) == (alone.json(), alone.text("csv"), str(alone))


def test_processes_and_an_executor_of_ones_own(alone, monkeypatch) -> None:
    monkeypatch.setattr(_fleet, "DUMPS", 9)
    seen: list[tuple[int, int]] = []
    found = slablab.fleet([DUMPS], executor=2, progress=lambda *at: seen.append(at))
    assert found.json() == alone.json()
    assert seen[-1][0] == seen[-1][1] and seen == sorted(seen)

    class Here(Executor):
        def submit(self, fn, /, *args, **kwargs):
            future: Future = Future()
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)
            return future

    assert slablab.fleet([DUMPS], executor=Here).json() == alone.json()


def test_what_it_has(alone) -> None:
    assert len(alone.machines) == len(alone.to_dict()["machines"]) > 30
    # The folder has a page about itself.
    assert alone.is_incomplete and [one["dump"] for one in alone.unread] == [str(DUMPS / "README.md")]
    assert alone.outliers == alone.to_dict()["outliers"]


def test_what_is_wrong(tmp_path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("nothing of slabs\n")
    with pytest.raises(slablab.UsageError, match="none of 1 dumps could be read"):
        slablab.fleet([notes], executor=1)
    found = slablab.fleet([notes, DUMPS / "amd64_smp4.after.tar.xz"], executor=1)
    assert found.is_incomplete and found.unread[0]["dump"] == str(notes)
    with pytest.raises(slablab.UsageError, match="expected one of release, cpus, arch, folder"):
        slablab.fleet([DUMPS], by="colour")
    with pytest.raises(slablab.UsageError, match="engine slib"):
        slablab.fleet([DUMPS], engine="slib")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(slablab.UsageError, match="none of 0 dumps"):
        slablab.fleet([empty], executor=2)
    with pytest.raises(ValueError, match="retries -1"):
        slablab.fleet([DUMPS], retries=-1)


def test_a_worker_of_another_build_refuses() -> None:
    with pytest.raises(slablab.UsageError, match="expected the same build"):
        slablab._native.read_dumps('{"program": "0.0.0"}', [DUMPS])


def test_a_leak() -> None:
    found = slablab.leak(DUMPS / "amd64_smp4.after.tar.xz", since=[DUMPS / "amd64_smp4.before.tar.xz"])
    assert found.suspects[0]["caches"] == ["shmem_inode_cache"]
    assert len(found.table) == len(found.suspects)
