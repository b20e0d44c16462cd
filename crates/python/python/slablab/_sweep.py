"""Sweeps: the cells of an experiment on the workers of an executor.

A task is a few cells and the experiment's texts, so a worker needs this package and nothing else; recordings
that an experiment names are read where they are. Each cell has its own machines and seeds. So the results are
those of one process, byte for byte, whichever worker ran a cell, and however often.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager

from ._errors import Error, SweepError
from ._native import Results, Sweep, run_cells

#: Tasks that a sweep is cut into if its cells are short: enough that workers end together.
TASKS = 128
#: Seconds between two looks for Ctrl-C.
LOOK_EVERY_S = 0.1

Cells = list[int]


def sweep(
    experiment: str | os.PathLike[str],
    *,
    executor: Executor | Callable[[], Executor] | int | None = None,
    size: str | None = None,
    repeats: int | None = None,
    seed: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    retries: int = 3,
    progress: Callable[[int, int], object] | None = None,
) -> Results:
    """Run an experiment's cells on the workers of ``executor``.

    ``executor`` is any ``concurrent.futures.Executor`` (a process pool, ``dask.distributed.Client(...)
    .get_executor()``, ``slablab.ray.RayExecutor()``), a function that makes one, or a number of processes on
    this machine; ``None`` for a process for each CPU. An executor that was passed is not shut down.

    A task whose worker is lost is repeated, at most ``retries`` times. If the whole executor is broken, as a
    process pool is after the loss of one process, its tasks are repeated in a new one: from the function, or a
    process pool of the same size.

    With ``folder`` finished cells are kept there, and a sweep that was interrupted goes on behind them.
    ``progress`` is called with cells that are done, and all of them.
    """
    if retries < 0:
        raise ValueError(f"retries {retries}: expected 0 or more")
    plan = Sweep(experiment, size=size, repeats=repeats, seed=seed, folder=folder)
    tasks = _tasks(plan.todo)
    try:
        if progress is not None:
            progress(len(plan) - sum(map(len, tasks)), len(plan))
        if tasks:
            with _pools(executor, len(tasks)) as pools:
                _Run(plan, pools, retries, progress).all(tasks)
        return plan.finish()
    finally:
        plan.close()


def _tasks(todo: Sequence[tuple[int, int]]) -> list[Cells]:
    """Cuts cells into tasks of about the same estimated time, none larger than a part of :data:`TASKS`."""
    most = sum(ns for _, ns in todo) // TASKS
    tasks: list[Cells] = []
    room = 0
    for cell, ns in todo:
        if not tasks or ns > room:
            tasks.append([])
            room = most
        tasks[-1].append(cell)
        room -= ns
    return tasks


class _Pools:
    """An executor, and the next one if it breaks."""

    def __init__(self, current: Executor, renew: Callable[[], Executor] | None, is_ours: bool) -> None:
        self.current = current
        self._renew = renew
        self.is_ours = is_ours

    def replace(self, broken: Executor, why: BaseException) -> None:
        """Puts another executor in the place of a broken one, once."""
        if broken is not self.current:
            return
        if self._renew is None:
            raise SweepError(f"{type(broken).__name__} is broken, and cannot be made again: {why}") from why
        self.close()
        self.current = self._renew()
        self.is_ours = True

    def close(self) -> None:
        """Ends an executor that the sweep made. Tasks that still run have no use: their processes end."""
        if not self.is_ours:
            return
        # Public since Python 3.14, as `terminate_workers`.
        processes = list((getattr(self.current, "_processes", None) or {}).values())
        self.current.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()


@contextmanager
def _pools(given: Executor | Callable[[], Executor] | int | None, tasks: int) -> Iterator[_Pools]:
    pools = _open(given, tasks)
    try:
        yield pools
    finally:
        pools.close()


def _open(given: Executor | Callable[[], Executor] | int | None, tasks: int) -> _Pools:
    if given is None:
        given = min(_cpus(), tasks)
    if isinstance(given, int):
        count = given
        given = lambda: ProcessPoolExecutor(count)  # noqa: E731
    if isinstance(given, ProcessPoolExecutor):
        # The pool's arguments are not public, and another pool has no others that matter here.
        count = getattr(given, "_max_workers", _cpus())
        context = getattr(given, "_mp_context", None)
        return _Pools(given, lambda: ProcessPoolExecutor(count, mp_context=context), False)
    if isinstance(given, Executor):
        return _Pools(given, None, False)
    return _Pools(given(), given, True)


def _cpus() -> int:
    return len(os.sched_getaffinity(0))


class _Run:
    """Tasks on their way, and how often each was lost."""

    def __init__(
        self,
        plan: Sweep,
        pools: _Pools,
        retries: int,
        progress: Callable[[int, int], object] | None,
    ) -> None:
        self._plan = plan
        self._task = plan.task
        self._pools = pools
        self._retries = retries
        self._progress = progress
        self._going: dict[Future[list[str]], tuple[Cells, Executor]] = {}
        self._lost: dict[int, int] = {}

    def all(self, tasks: list[Cells]) -> None:
        """Runs every task to its end."""
        try:
            for cells in tasks:
                self._submit(cells)
            while self._going:
                ended, _ = wait(self._going, timeout=LOOK_EVERY_S, return_when=FIRST_COMPLETED)
                for future in ended:
                    self._take(future)
        except BaseException:
            # The tasks of an executor that the sweep made end with it.
            if not self._pools.is_ours:
                for future in self._going:
                    future.cancel()
            raise

    def _submit(self, cells: Cells) -> None:
        pool = self._pools.current
        try:
            future = pool.submit(run_cells, self._task, cells)
        except BrokenExecutor as why:
            self._count(cells, why)
            self._pools.replace(pool, why)
            self._submit(cells)
            return
        self._going[future] = (cells, pool)

    def _take(self, future: Future[list[str]]) -> None:
        cells, pool = self._going.pop(future)
        try:
            documents = future.result()
        except Error:
            # The worker says what is wrong; another one would say the same.
            raise
        except Exception as why:
            self._count(cells, why)
            if isinstance(why, BrokenExecutor):
                self._pools.replace(pool, why)
            self._submit(cells)
            return
        for cell, document in zip(cells, documents, strict=True):
            self._plan.accept(cell, document)
        if self._progress is not None:
            self._progress(len(self._plan) - len(self._plan.todo), len(self._plan))

    def _count(self, cells: Cells, why: BaseException) -> None:
        lost = self._lost[cells[0]] = self._lost.get(cells[0], 0) + 1
        if lost > self._retries:
            named = ", ".join(map(str, cells[:8])) + (", .." if len(cells) > 8 else "")
            # A pool of processes does not say which task its lost process had.
            which = "their pool lost a worker" if isinstance(why, BrokenExecutor) else "their worker was lost"
            raise SweepError(f"cells {named}: {which} {lost} times: {why!r}") from why
