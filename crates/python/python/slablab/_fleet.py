"""Fleets: many dumps, read on the workers of an executor.

A task is the paths of some dumps; a worker reads them where they are, and gives the sums of each. The answer has
the bytes of one process, whichever worker read a dump, and however often.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path

from ._native import Fleet, FleetPlan, read_dumps
from ._workers import Run, pools_of

#: Dumps of a task: a second of work, so that workers end together.
DUMPS = 200

#: The number of a task, and its dumps.
Task = tuple[int, list[Path]]


def fleet(
    dumps: Sequence[str | os.PathLike[str]],
    *,
    by: str = "release",
    max_order: int | Sequence[int] | None = None,
    engine: str | Sequence[str] | None = None,
    lines: int = 15,
    executor: Executor | Callable[[], Executor] | int | None = None,
    retries: int = 3,
    progress: Callable[[int, int], object] | None = None,
) -> Fleet:
    """What many machines have together, and which stand out.

    ``dumps`` are files, folders of a machine, and folders of those. ``executor`` is as for :func:`slablab.sweep`, and
    without it this process reads them on all its CPUs. ``progress`` is called with dumps that are read, and all.
    """
    if retries < 0:
        raise ValueError(f"retries {retries}: expected 0 or more")
    plan = FleetPlan(dumps, by=by, max_order=max_order, engine=engine)
    paths = plan.paths
    if executor is None or not paths:
        part = read_dumps(plan.task, paths, threads=None, progress=progress)
        return plan.finish([part], lines)
    tasks: list[Task] = [(at, paths[at : at + DUMPS]) for at in range(0, len(paths), DUMPS)]
    parts: dict[int, str] = {}
    done = 0

    def take(task: Task, part: str) -> None:
        nonlocal done
        parts[task[0]] = part
        done += len(task[1])
        if progress is not None:
            progress(done, len(paths))

    text = plan.task
    with pools_of(executor, len(tasks)) as pools:
        run = Run[Task, str](
            pools,
            retries,
            submit=lambda pool, task: pool.submit(read_dumps, text, task[1]),
            take=take,
            named=lambda task: f"dumps {task[1][0]}, ..",
        )
        run.all(tasks)
    return plan.finish([parts[at] for at, _ in tasks], lines)
