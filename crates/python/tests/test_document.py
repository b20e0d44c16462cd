"""docs/python.md: its examples run, and it names every function and argument."""

import inspect
import os
import re

import slablab
from conftest import ROOT

PAGE = (ROOT / "docs" / "python.md").read_text()


def test_the_examples_run(capsys, monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    assert len(examples) >= 12
    names: dict[str, object] = {}
    for example in examples:
        exec(compile(example, "docs/python.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "193094" in printed and "100 %" in printed and "mine.toml 3" in printed
    assert os.getcwd() == str(ROOT)


def test_every_function_is_there_with_its_arguments() -> None:
    text = re.sub(r"\s+", " ", PAGE)
    for name in slablab.__all__:
        assert f"`{name}" in text or f"slablab.{name}" in text or f"-> {name}" in text, name
        function = getattr(slablab, name)
        if inspect.isclass(function) or not (found := re.search(rf"`{name}\(([^`]*)\)( ->|`)", text)):
            continue
        named = {part.split("=")[0].strip() for part in found[1].split(",")} - {"*", ""}
        assert named == set(inspect.signature(function).parameters), name
