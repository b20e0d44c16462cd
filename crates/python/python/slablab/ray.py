"""Ray's cluster as an executor, for :func:`slablab.sweep` and :func:`slablab.fleet`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

import ray

P = ParamSpec("P")
T = TypeVar("T")


class RayExecutor(Executor):
    """Runs each call as a task of Ray, on the cluster that ``ray.init`` joined (or started).

    ``options`` are those of a Ray task, for example ``num_cpus=1`` or ``runtime_env={"pip": ["slablab"]}``.
    Ray repeats a task whose worker is lost ``max_retries`` times, before :func:`slablab.sweep` does.
    """

    def __init__(self, **options: Any) -> None:
        if not ray.is_initialized():
            ray.init()
        self._call: Any = ray.remote(_call).options(**{"num_cpus": 1, **options})
        self._going: dict[Future[Any], ray.ObjectRef] = {}
        self._ended = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        if self._ended:
            raise RuntimeError("cannot schedule new futures after shutdown")
        reference = self._call.remote(fn, args, kwargs)
        future: Future[T] = reference.future()
        self._going[future] = reference
        future.add_done_callback(lambda ended: self._going.pop(ended, None))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes no more calls. The cluster stays: ``ray.shutdown()`` leaves it."""
        self._ended = True
        going = list(self._going.items())
        for future, reference in going:
            if cancel_futures:
                ray.cancel(reference)
            if wait and not cancel_futures:
                future.exception()


def _call(fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
    return fn(*args, **kwargs)
