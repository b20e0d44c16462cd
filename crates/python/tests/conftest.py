"""Where the data is, and what a continuous integration requires."""

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "examples" / "data"
DUMPS = ROOT / "examples" / "dumps"
RECORDING = DATA / "hackbench-6.18.perf.data.xz"
TRACE = DATA / "git-grep.trace.parquet"
DUMP = DUMPS / "amd64_smp4.after.tar.xz"

#: Set in continuous integration: what is missing there is an error, not a skipped test.
REQUIRED = "SLABLAB_PYTHON_REQUIRED" in os.environ


def missing(what: str) -> None:
    """Skips the test, or fails it where everything is required."""
    if REQUIRED:
        pytest.fail(f"{what}, and SLABLAB_PYTHON_REQUIRED is set")
    pytest.skip(what)


@pytest.fixture(scope="session")
def program() -> str:
    """The program: SLABLAB_PROGRAM, or a debug build in target/."""
    named = os.environ.get("SLABLAB_PROGRAM")
    found = shutil.which(named) if named else shutil.which(ROOT / "target" / "debug" / "slablab")
    if found is None:
        missing("no program: cargo build -p slablab, or SLABLAB_PROGRAM=/path/of/slablab")
    assert found is not None
    return found
