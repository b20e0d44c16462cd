"""Sweeps: the cells of an experiment on the workers of an executor.

A task is a few cells and the experiment's texts, so a worker needs this package and nothing else; recordings
that an experiment names are read where they are. Each cell has its own machines and seeds. So the results are
those of one process, byte for byte, whichever worker ran a cell, and however often.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from ._native import Results, Sweep, run_cells
from ._workers import Run, pools_of

#: Tasks that a sweep is cut into if its cells are short: enough that workers end together.
TASKS = 128

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
            task = plan.task
            with pools_of(executor, len(tasks)) as pools:
                run = Run[Cells, list[str]](
                    pools,
                    retries,
                    submit=lambda pool, cells: pool.submit(run_cells, task, cells),
                    take=lambda cells, documents: _take(plan, progress, cells, documents),
                    named=_named,
                )
                run.all(tasks)
        return plan.finish()
    finally:
        plan.close()


def _take(
    plan: Sweep,
    progress: Callable[[int, int], object] | None,
    cells: Cells,
    documents: list[str],
) -> None:
    for cell, document in zip(cells, documents, strict=True):
        plan.accept(cell, document)
    if progress is not None:
        progress(len(plan) - len(plan.todo), len(plan))


def _named(cells: Cells) -> str:
    return "cells " + ", ".join(map(str, cells[:8])) + (", .." if len(cells) > 8 else "")


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
