"""Sweeps on clusters of this machine: Dask's and Ray's. Without them these tests are skipped."""

import os
import signal
import threading
import time

import pytest
import slablab
from conftest import DUMPS
from slablab import _native

pytestmark = pytest.mark.cluster

OF = dict(size="quick", repeats=1)
#: Long enough for the loss of a worker in its middle.
LONGER = dict(size="standard", repeats=2)


@pytest.fixture(scope="module")
def alone() -> bytes:
    return slablab.run("micro", threads=1, **OF).parquet()


def test_dask(alone) -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster, distributed.Client(cluster) as client:
        assert slablab.sweep("micro", executor=client.get_executor(), **OF).parquet() == alone
        assert slablab.fleet([DUMPS], executor=client.get_executor()).json() == slablab.fleet([DUMPS]).json()
        # A worker that says what is wrong is not asked again.
        with pytest.raises(slablab.UsageError, match="no cell 99"):
            client.get_executor().submit(_native.run_cells, task(), [99]).result()
        victims = [worker.pid for worker in cluster.workers.values()]
        results = _killing(victims[0], client.get_executor())
    assert results.parquet() == slablab.run("micro", threads=1, **LONGER).parquet()


def test_ray(alone) -> None:
    ray = pytest.importorskip("ray")
    from slablab.ray import RayExecutor

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with RayExecutor() as executor:
            assert slablab.sweep("micro", executor=executor, **OF).parquet() == alone
            assert slablab.fleet([DUMPS], executor=executor).json() == slablab.fleet([DUMPS]).json()
            with pytest.raises(slablab.UsageError, match="no cell 99"):
                executor.submit(_native.run_cells, task(), [99]).result()
        with pytest.raises(RuntimeError):
            executor.submit(os.getpid)
        with RayExecutor(max_retries=0) as executor:
            results = _killing(executor.submit(os.getpid).result(), executor)
    finally:
        ray.shutdown()
    assert results.parquet() == slablab.run("micro", threads=1, **LONGER).parquet()


def task() -> str:
    return _native.Sweep("micro", **OF).task


def _killing(pid: int, executor) -> slablab.Results:
    """A sweep during which a worker is killed."""
    killed = threading.Event()

    def progress(done: int, whole: int) -> None:
        if done > 1 and not killed.is_set():
            os.kill(pid, signal.SIGKILL)
            killed.set()

    results = slablab.sweep("micro", executor=executor, progress=progress, **LONGER)
    assert killed.is_set()
    time.sleep(0.1)
    return results
