"""Prints the requirements of optional parts of the package, as `.ci/python` installs them without its wheel.

Python 3.10 has no reader of TOML: pip's own is used there.
"""

import sys
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:
    from pip._vendor import tomli as tomllib

text = (Path(__file__).resolve().parents[1] / "pyproject.toml").read_text()
parts = tomllib.loads(text)["project"]["optional-dependencies"]
print(*(requirement for part in sys.argv[1].split(",") for requirement in parts[part]))
