"""A sweep of 200 cells in one process, on processes, Dask and Ray of this machine: seconds, and whether the
bytes are the same. One process more is killed in the middle of a sweep.

    python crates/python/benches/sweep.py [--rounds 3] [--only NAME]...
"""

import argparse
import os
import signal
import statistics
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import slablab

#: 5 engines, 2 patterns, 4 sizes, 5 numbers of objects: 200 cells.
TEXT = """
name = "two-hundred"
title = "200 cells of micro"
machines = ["numa8-full"]
engines = ["slub@2.6.32", "slub@6.1", "slub@6.18", "slub@7.1", "slab@6.1"]
workload = "micro"
repeats = 2
seed = 1
[parameters]
pattern = ["batch", "one-way"]
bytes = [64, 128, 256, 512]
objects = [20000, 40000, 60000, 80000, 100000]
"""


def alone(path: Path) -> slablab.Results:
    return slablab.run(path, threads=1)


def processes(count: int):
    def sweep(path: Path) -> slablab.Results:
        with ProcessPoolExecutor(count) as pool:
            return slablab.sweep(path, executor=pool)

    return sweep


def killed(path: Path) -> slablab.Results:
    """One of two processes is killed in the middle."""
    with ProcessPoolExecutor(2) as pool:
        once = threading.Event()

        def progress(done: int, whole: int) -> None:
            if done > whole // 2 and not once.is_set():
                once.set()
                os.kill(next(iter(pool._processes)), signal.SIGKILL)

        results = slablab.sweep(path, executor=pool, progress=progress)
        assert once.is_set()
        return results


def dask(path: Path) -> slablab.Results:
    return slablab.sweep(path, executor=CLUSTERS["dask"].get_executor())


def ray(path: Path) -> slablab.Results:
    return slablab.sweep(path, executor=CLUSTERS["ray"]())


CLUSTERS: dict[str, object] = {}
WAYS = {
    "one process": alone,
    "1 worker process": processes(1),
    "2 worker processes": processes(2),
    "2, one killed": killed,
    "dask, 2 workers": dask,
    "ray, 2 workers": ray,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", choices=WAYS)
    given = parser.parse_args()
    ways = {name: way for name, way in WAYS.items() if not given.only or name in given.only}
    if "dask, 2 workers" in ways:
        from distributed import Client, LocalCluster

        CLUSTERS["dask"] = Client(LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None))
    if "ray, 2 workers" in ways:
        from ray import init
        from slablab.ray import RayExecutor

        init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        CLUSTERS["ray"] = RayExecutor
    path = Path(tempfile.mkdtemp()) / "two-hundred.toml"
    path.write_text(TEXT)
    expected = alone(path)
    print(f"{len(expected.to_dict()['cells'])} cells, {len(expected.parquet())} bytes of samples")
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(given.rounds):
        for name, way in ways.items():
            start = time.perf_counter()
            results = way(path)
            seconds[name].append(time.perf_counter() - start)
            assert results.parquet() == expected.parquet() and results.to_dict() == expected.to_dict(), name
    for name, each in seconds.items():
        print(f"{name:22}{statistics.median(each):8.2f} s ({min(each):.2f} to {max(each):.2f}), same bytes")


if __name__ == "__main__":
    main()
