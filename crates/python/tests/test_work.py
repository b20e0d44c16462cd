"""Long calls: the interpreter's lock is free, Ctrl-C and a callback's exception end them, forks work."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
import slablab
from conftest import RECORDING, TRACE

#: Minutes of one core.
LONG = "dict(size='full', repeats=50, threads=1, force=True)"


def test_other_threads_run_meanwhile() -> None:
    recording = slablab.read_recording(RECORDING)
    done = threading.Event()
    counted = 0

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    slablab.replay(recording, ["slub@6.1", "slub@7.1", "slab@6.1"], threads=1)
    done.set()
    thread.join()
    assert counted > 20


@pytest.mark.parametrize(
    "call",
    [
        f"slablab.run('003-hackbench', **{LONG})",
        f"slablab.replay({str(RECORDING)!r}, ['slub'] * 500)",
        f"slablab.explain({str(RECORDING)!r}, 'slub@2.6.32', 'slub@7.1', exact=0, samples=5000)",
        "slablab.sweep('003-hackbench', executor=1, size='full', repeats=50)",
    ],
    ids=["run", "replay", "explain", "sweep"],
)
def test_an_interrupt_ends_it(call) -> None:
    script = f"""
        import slablab, sys
        if __name__ == "__main__":
            print("begin", flush=True)
            try:
                {call}
            except KeyboardInterrupt:
                print("interrupted", flush=True)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stdout is not None and child.stdout.readline() == "begin\n"
    time.sleep(1.0)
    # As a terminal does it: to all processes of the group.
    os.killpg(child.pid, signal.SIGINT)
    try:
        out, _ = child.communicate(timeout=10)
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
    assert out == "interrupted\n" and child.returncode == 0


def test_an_exception_of_the_callback_ends_it() -> None:
    class Enough(Exception):
        pass

    seen = []

    def progress(done: int, whole: int) -> None:
        seen.append((done, whole))
        raise Enough

    with pytest.raises(Enough):
        slablab.run("003-hackbench", size="full", repeats=50, threads=1, force=True, progress=progress)
    assert len(seen) == 1


def test_runs_that_were_cancelled_leave_no_memory() -> None:
    class Enough(Exception):
        pass

    def progress(done: int, whole: int) -> None:
        raise Enough

    def cancelled(runs: int) -> int:
        """Ends runs of thousands of tasks, each of which has a stack; returns the process's mappings."""
        for _ in range(runs):
            with pytest.raises(Enough):
                slablab.run("003-hackbench", size="full", repeats=50, threads=2, force=True, progress=progress)
        return len(Path("/proc/self/maps").read_bytes().splitlines())

    # The first ones make what stays, as the allocator's arenas.
    before = cancelled(5)
    assert cancelled(100) < before + 50


def test_progress_grows_to_the_whole() -> None:
    seen: list[tuple[int, int]] = []
    slablab.replay(TRACE, ["slub@6.1"], progress=lambda done, whole: seen.append((done, whole)))
    assert seen and seen[-1][0] == seen[-1][1] == len(slablab.read_recording(TRACE))
    assert seen == sorted(seen)


def replayed(_: object) -> str:
    return slablab.replay(TRACE, ["slub@6.1", "slub@7.1"]).json()


def test_a_forked_process_works_too() -> None:
    expected = replayed(None)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.map_async(replayed, [None]).get(timeout=60) == [expected]
