"""Types of the compiled part."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, final

from typing_extensions import disjoint_base

from . import documents

_T = TypeVar("_T")
_Path: TypeAlias = str | os.PathLike[str]
_OneOrMore: TypeAlias = _T | Sequence[_T]
_Progress: TypeAlias = Callable[[int, int], object]

@final
class Table:
    """Rows with typed columns, as Arrow."""

    @property
    def columns(self) -> list[str]: ...
    @property
    def num_rows(self) -> int: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: str, /) -> list[Any]: ...
    def to_dict(self) -> dict[str, list[Any]]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Rows:
    """Some columns of a recording's rows, as an Arrow stream."""

    @property
    def columns(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Recording:
    """A recording of a kernel's allocations."""

    @property
    def path(self) -> Path: ...
    @property
    def metadata(self) -> dict[str, Any]: ...
    @property
    def events_lost(self) -> int: ...
    def __len__(self) -> int: ...
    def rows(self, columns: Sequence[str] | None = None) -> Rows: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@disjoint_base
class Answer:
    """What all answers have: each form that the program prints."""

    @property
    def sentence(self) -> str: ...
    @property
    def remarks(self) -> list[str]: ...
    @property
    def is_incomplete(self) -> bool: ...
    @property
    def rows(self) -> Table | None: ...
    def to_dict(self) -> Mapping[str, Any]: ...
    def json(self) -> str: ...
    def html(self) -> str: ...
    def text(self, format: str = "table", *, wide: bool = False) -> str: ...

@final
class Replay(Answer):
    """The answer of a replay."""

    def to_dict(self) -> documents.Replay1: ...
    @property
    def engines(self) -> Table: ...
    @property
    def caches(self) -> Table: ...
    @property
    def timeline(self) -> Table: ...
    @property
    def elapsed_s(self) -> list[tuple[str, float]]: ...
    def cache(self, name: str) -> documents.Replay1: ...
    def map(
        self,
        cache: str | None = None,
        *,
        at: str | None = None,
        format: str = "html",
        progress: _Progress | None = None,
    ) -> str: ...

@final
class Explanation(Answer):
    """The part of each policy in the difference between two presets."""

    def to_dict(self) -> documents.Explain1: ...
    @property
    def parts(self) -> Table: ...
    @property
    def pairs(self) -> Table: ...
    @property
    def is_exact(self) -> bool: ...

@final
class Dump:
    """The slab memory of a machine at a moment."""

    @property
    def path(self) -> Path: ...
    @property
    def release(self) -> str | None: ...
    @property
    def page_size_bytes(self) -> int: ...
    @property
    def cpus_online(self) -> int | None: ...
    @property
    def caches(self) -> Table: ...
    @property
    def missing(self) -> list[tuple[str, str, str, str | None]]: ...
    def __len__(self) -> int: ...

@final
class Diagnosis(Answer):
    """The uses of a machine's slab memory, and what would help."""

    def to_dict(self) -> documents.Doctor1: ...
    @property
    def caches(self) -> Table: ...
    @property
    def findings(self) -> list[documents.Doctor1Finding]: ...
    @property
    def actions(self) -> list[documents.Doctor1Action]: ...

@final
class Whatif(Answer):
    """Predictions of slab memory with something changed."""

    def to_dict(self) -> documents.Whatif1: ...
    @property
    def changes(self) -> Table: ...
    @property
    def caches(self) -> Table: ...

@final
class Leak(Answer):
    """What grew on a machine, who holds it, and which code allocates it."""

    def to_dict(self) -> documents.Leak1: ...
    @property
    def suspects(self) -> list[documents.Leak1Suspect]: ...
    @property
    def table(self) -> Table: ...

@final
class Fleet(Answer):
    """Slab memory of many machines."""

    def to_dict(self) -> documents.Fleet1: ...
    @property
    def machines(self) -> Table: ...
    @property
    def outliers(self) -> list[documents.Fleet1Outlier]: ...
    @property
    def unread(self) -> list[documents.Fleet1UnreadItem]: ...

@final
class FleetPlan:
    """The dumps of a fleet, and what is asked of them."""

    def __new__(
        cls,
        dumps: Sequence[_Path],
        *,
        by: str = "release",
        max_order: _OneOrMore[int] | None = None,
        engine: _OneOrMore[str] | None = None,
    ) -> FleetPlan: ...
    @property
    def paths(self) -> list[Path]: ...
    @property
    def task(self) -> str: ...
    def finish(self, parts: Sequence[str], lines: int) -> Fleet: ...

@final
class Results(Answer):
    """The results of an experiment."""

    def to_dict(self) -> documents.Experiment1: ...
    @property
    def cells(self) -> Table: ...
    @property
    def samples(self) -> Table: ...
    @property
    def computed(self) -> int: ...
    @property
    def failures(self) -> list[tuple[int, str]]: ...
    def parquet(self) -> bytes: ...
    def write(self, folder: _Path) -> None: ...
    def text(self, format: str = "table", *, wide: bool = False, wrap: int | None = None) -> str: ...
    def locks(self, *, wrap: int | None = None) -> str: ...

@final
class Sweep:
    """The cells of an experiment, of which some have run."""

    def __new__(
        cls,
        experiment: _Path,
        *,
        size: str | None = None,
        repeats: int | None = None,
        seed: int | None = None,
        folder: _Path | None = None,
    ) -> Sweep: ...
    def __len__(self) -> int: ...
    @property
    def todo(self) -> list[tuple[int, int]]: ...
    @property
    def task(self) -> str: ...
    def accept(self, cell: int, document: str) -> None: ...
    def close(self) -> None: ...
    def finish(self) -> Results: ...

def read_recording(
    path: _Path, *, recording: str | None = None, formats: _Path | None = None
) -> Recording: ...
def import_recording(
    path: _Path, output: _Path, *, recording: str | None = None, formats: _Path | None = None
) -> Recording: ...
def replay(
    recording: Recording | _Path,
    engines: Sequence[str] | None = None,
    *,
    before: Sequence[_Path] = ...,
    machine: _Path | None = None,
    release: str | None = None,
    force: bool = False,
    at: Sequence[tuple[str, str]] = ...,
    threads: int | None = None,
    progress: _Progress | None = None,
) -> Replay: ...
def explain(
    recording: Recording | _Path,
    a: str,
    b: str,
    *,
    cache: str | None = None,
    before: Sequence[_Path] = ...,
    machine: _Path | None = None,
    release: str | None = None,
    force: bool = False,
    exact: int = ...,
    samples: int = ...,
    threads: int | None = None,
    progress: _Progress | None = None,
) -> Explanation: ...
def read_dump(
    path: _Path | None = None, *, page_size: int | None = None, cpus: int | None = None
) -> Dump: ...
def doctor(
    dump: Dump | _Path | None = None,
    *,
    since: Sequence[Dump | _Path] = ...,
    hours: float | None = None,
    force: bool = False,
    recording: Recording | _Path | None = None,
    sort: str | None = None,
    lines: int = ...,
    aliases: bool = False,
    bytes: bool = False,
) -> Diagnosis: ...
def whatif(
    dump: Dump | _Path | None = None,
    *,
    engine: _OneOrMore[str] | None = None,
    policy: _OneOrMore[str] | None = None,
    max_order: _OneOrMore[int] | None = None,
    min_order: _OneOrMore[int] | None = None,
    min_objects: _OneOrMore[int] | None = None,
    page_size: _OneOrMore[int] | None = None,
    cpus: _OneOrMore[int] | None = None,
    merge: _OneOrMore[bool] | None = None,
    debug: _OneOrMore[str] | None = None,
    sheaf_capacity: _OneOrMore[str] | None = None,
    config: _OneOrMore[str] | None = None,
    calibrate: Sequence[Dump | _Path] = ...,
    against: Dump | _Path | None = None,
) -> Whatif: ...
def run(
    experiment: _Path,
    *,
    size: str | None = None,
    repeats: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    force: bool = False,
    folder: _Path | None = None,
    progress: _Progress | None = None,
) -> Results: ...
def leak(
    input: _Path,
    *,
    since: Sequence[_Path] = ...,
    top: int = 5,
    progress: _Progress | None = None,
) -> Leak: ...
def read_dumps(
    task: str, paths: Sequence[_Path], *, threads: int | None = 1, progress: _Progress | None = None
) -> str: ...
def run_cells(task: str, cells: Sequence[int]) -> list[str]: ...
def engines() -> list[str]: ...
def machines() -> list[str]: ...
def experiments() -> list[tuple[str, str]]: ...
def version() -> str: ...
