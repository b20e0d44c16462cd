"""The types: mypy is content with the package and with its use, and the stubs are what is there."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import missing

USE = '''
import slablab

replay: slablab.Replay = slablab.replay("a.perf.data", ["slub"], progress=print)
size: list[object] = list(replay.caches["slab_bytes"])
slablab.sweep("micro", executor=2, size="quick")
slablab.whatif(max_order=[0, 1], page_size=65536)
slablab.replay("a", engines="slub@6.1", threads="2")  # type: ignore[arg-type]
slablab.doctor().findings[0]["kind"]
'''


def mypy(*words: object) -> None:
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", *map(str, words)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_and_its_use(tmp_path) -> None:
    use = tmp_path / "use.py"
    use.write_text(USE)
    mypy("mypy", "--strict", "--warn-unused-ignores", "--cache-dir", tmp_path / "c", use)
    if subprocess.run([sys.executable, "-c", "import mypy"], capture_output=True).returncode:
        missing("no mypy")


def test_the_stubs_are_what_is_there(tmp_path) -> None:
    allowed = tmp_path / "allowed"
    config = Path(__file__).parents[1] / "pyproject.toml"
    # Ray is not always installed; the compiled module lists its names.
    allowed.write_text("slablab\\.ray\nslablab\\._native\\.__all__\n")
    mypy("mypy.stubtest", "slablab", "--allowlist", allowed, "--ignore-unused-allowlist", "--mypy-config-file", config)
