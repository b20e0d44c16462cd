"""What can go wrong, with its place. All of them travel between processes."""

from __future__ import annotations

from pathlib import Path


class Error(Exception):
    """Something that cannot be done. ``str(error)`` names what was found and what was expected."""

    def __init__(
        self,
        message: str,
        path: str | Path | None = None,
        line: int | None = None,
        offset: int | None = None,
    ) -> None:
        super().__init__(message)
        #: The file, or the option, that is wrong.
        self.path = None if path is None else Path(path)
        #: The line in it, from 1.
        self.line = line
        #: The byte in it, from 0; of compressed data, in what it decompresses to.
        self.offset = offset

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return (type(self), (str(self), self.path, self.line, self.offset))


class InputError(Error):
    """A file that cannot be read or understood."""


class UsageError(Error, ValueError):
    """A wrong argument: the name of an engine, a size, a column."""


class SweepError(Error):
    """Cells of a sweep whose workers were lost again and again. The last loss is the cause."""
