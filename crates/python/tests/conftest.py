"""Where the data is, and what a continuous integration requires."""

import io
import lzma
import os
import shutil
import tarfile
from pathlib import Path

import pyarrow as pa
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


@pytest.fixture(scope="session")
def recorded(tmp_path_factory) -> Path:
    """A recording with the states around it, as `slablab record` writes it, of the bundled files."""
    near = RECORDING.parent
    state = lzma.decompress((near / "hackbench-6.18.before.tar.xz").read_bytes())

    def zst(content: bytes) -> bytes:
        return pa.Codec("zstd").compress(content, asbytes=True)

    members = {
        "slablab-recording.json": b'{"schema": "slablab.recording.1", "recorder": "perf", "clock": "mono"}',
        "before.tar.zst": zst(state),
        "after.tar.zst": zst(state),
        "slabinfo.start": (near / "hackbench-6.18.slabinfo-start.txt").read_bytes(),
        "slabinfo.end": (near / "hackbench-6.18.slabinfo-end.txt").read_bytes(),
        "perf.data.zst": zst(lzma.decompress(RECORDING.read_bytes())),
    }
    path = tmp_path_factory.mktemp("recorded") / "hackbench.tar"
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path
