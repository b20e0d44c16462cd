"""Tasks on the workers of an executor: what is lost with its worker is repeated, by another executor if need be."""

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
from typing import Generic, TypeVar

from ._errors import Error, SweepError

T = TypeVar("T")
R = TypeVar("R")

#: Seconds between two looks for Ctrl-C.
LOOK_EVERY_S = 0.1


class Pools:
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
        """Ends an executor that was made here. Tasks that still run have no use: their processes end."""
        if not self.is_ours:
            return
        # Public since Python 3.14, as `terminate_workers`.
        processes = list((getattr(self.current, "_processes", None) or {}).values())
        self.current.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()


@contextmanager
def pools_of(given: Executor | Callable[[], Executor] | int | None, tasks: int) -> Iterator[Pools]:
    pools = _open(given, tasks)
    try:
        yield pools
    finally:
        pools.close()


def _open(given: Executor | Callable[[], Executor] | int | None, tasks: int) -> Pools:
    if given is None:
        given = min(cpus(), tasks)
    if isinstance(given, int):
        count = given
        given = lambda: ProcessPoolExecutor(count)  # noqa: E731
    if isinstance(given, ProcessPoolExecutor):
        # The pool's arguments are not public, and another pool has no others that matter here.
        count = getattr(given, "_max_workers", cpus())
        context = getattr(given, "_mp_context", None)
        return Pools(given, lambda: ProcessPoolExecutor(count, mp_context=context), False)
    if isinstance(given, Executor):
        return Pools(given, None, False)
    return Pools(given(), given, True)


def cpus() -> int:
    return len(os.sched_getaffinity(0))


class Run(Generic[T, R]):
    """Tasks on their way, and how often each was lost."""

    def __init__(
        self,
        pools: Pools,
        retries: int,
        *,
        submit: Callable[[Executor, T], Future[R]],
        take: Callable[[T, R], None],
        named: Callable[[T], str],
    ) -> None:
        self._pools = pools
        self._retries = retries
        self._submit_to = submit
        self._done = take
        self._named = named
        self._tasks: Sequence[T] = ()
        self._going: dict[Future[R], tuple[int, Executor]] = {}
        self._lost: dict[int, int] = {}

    def all(self, tasks: Sequence[T]) -> None:
        """Runs every task to its end."""
        self._tasks = tasks
        try:
            for at in range(len(tasks)):
                self._submit(at)
            while self._going:
                ended, _ = wait(self._going, timeout=LOOK_EVERY_S, return_when=FIRST_COMPLETED)
                for future in ended:
                    self._take(future)
        except BaseException:
            # The tasks of an executor that was made here end with it.
            if not self._pools.is_ours:
                for future in self._going:
                    future.cancel()
            raise

    def _submit(self, at: int) -> None:
        pool = self._pools.current
        try:
            future = self._submit_to(pool, self._tasks[at])
        except BrokenExecutor as why:
            self._count(at, why)
            self._pools.replace(pool, why)
            self._submit(at)
            return
        self._going[future] = (at, pool)

    def _take(self, future: Future[R]) -> None:
        at, pool = self._going.pop(future)
        try:
            result = future.result()
        except Error:
            # The worker says what is wrong; another one would say the same.
            raise
        except Exception as why:
            self._count(at, why)
            if isinstance(why, BrokenExecutor):
                self._pools.replace(pool, why)
            self._submit(at)
            return
        self._done(self._tasks[at], result)

    def _count(self, at: int, why: BaseException) -> None:
        lost = self._lost[at] = self._lost.get(at, 0) + 1
        if lost > self._retries:
            # A pool of processes does not say which task its lost process had.
            which = "their pool lost a worker" if isinstance(why, BrokenExecutor) else "their worker was lost"
            raise SweepError(f"{self._named(self._tasks[at])}: {which} {lost} times: {why!r}") from why
