"""Sweeps: the results of one process, whatever happens to workers."""

import os
import signal
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
import slablab

OF = dict(size="quick", repeats=1)


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Path:
    """The folder of one process."""
    folder = tmp_path_factory.mktemp("alone") / "results"
    slablab.run("micro", threads=1, folder=folder, **OF)
    return folder


def files(folder: Path) -> dict[str, bytes]:
    """Every file's bytes, but of the one that names the host, and of the lock."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    found.pop("host.json", None)
    del found[".lock"]
    return found


def check(alone: Path, folder: Path, results: slablab.Results) -> None:
    assert files(folder) == files(alone)
    assert results.parquet() == (alone / "samples.parquet").read_bytes()


@pytest.mark.parametrize("workers", [1, 2, None])
def test_processes_give_the_same_bytes(alone, tmp_path, workers) -> None:
    folder = tmp_path / "f"
    seen: list[tuple[int, int]] = []
    results = slablab.sweep(
        "micro", executor=workers, folder=folder, progress=lambda *at: seen.append(at), **OF
    )
    check(alone, folder, results)
    assert seen[0] == (0, 15) and seen[-1] == (15, 15) and seen == sorted(seen)
    assert results.computed == 15


def test_threads_and_an_executor_of_ones_own(alone, tmp_path) -> None:
    with ThreadPoolExecutor(2) as pool:
        check(alone, tmp_path / "f", slablab.sweep("micro", executor=pool, folder=tmp_path / "f", **OF))

    class Here(Executor):
        def submit(self, fn, /, *args, **kwargs):
            future: Future = Future()
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)
            return future

    check(alone, tmp_path / "g", slablab.sweep("micro", executor=Here, folder=tmp_path / "g", **OF))


def dying(marks: str, most: int, fn, /, *args):
    """Kills its process the first times."""
    died = len(os.listdir(marks))
    if died < most:
        (Path(marks) / str(died)).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return fn(*args)


class Killed(ProcessPoolExecutor):
    """Its workers are killed the first times."""

    def __init__(self, marks: Path, most: int) -> None:
        super().__init__(2)
        self.marks, self.most = str(marks), most

    def submit(self, fn, /, *args, **kwargs):
        return super().submit(dying, self.marks, self.most, fn, *args, **kwargs)


def test_a_lost_worker_is_repeated(alone, tmp_path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    with Killed(marks, 1) as pool:
        results = slablab.sweep("micro", executor=pool, folder=tmp_path / "f", **OF)
    assert len(os.listdir(marks)) >= 1
    check(alone, tmp_path / "f", results)


def test_workers_that_are_always_lost_are_an_error(tmp_path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    with pytest.raises(slablab.SweepError, match="their pool lost a worker 3 times: BrokenProcessPool"):
        slablab.sweep("micro", executor=lambda: Killed(marks, 1000), retries=2, **OF)


def test_an_interrupted_sweep_goes_on(alone, tmp_path) -> None:
    class Enough(Exception):
        pass

    def progress(done: int, whole: int) -> None:
        if done >= 5:
            raise Enough

    folder = tmp_path / "f"
    with pytest.raises(Enough):
        slablab.sweep("micro", executor=1, folder=folder, progress=progress, **OF)
    kept = len(list((folder / "cells").iterdir()))
    assert 5 <= kept < 15
    results = slablab.sweep("micro", executor=1, folder=folder, **OF)
    assert results.computed == 15 - kept
    check(alone, folder, results)


def test_a_worker_of_another_build_is_refused() -> None:
    import json

    from slablab import _native

    task = json.loads(_native.Sweep("micro", **OF).task)
    task["program"] = "0.0.1 abcdef"
    with pytest.raises(slablab.UsageError, match="expected the same build"):
        _native.run_cells(json.dumps(task), [0])
    with pytest.raises(slablab.UsageError, match="another cell or build"):
        sweep = _native.Sweep("micro", **OF)
        sweep.accept(1, _native.run_cells(sweep.task, [0])[0])
