"""The Linux slab allocators outside the kernel, and a laboratory around them.

Inputs are files: a recording (perf.data, trace.dat, text, CSV, a trace), a dump of a machine (a folder, a tar,
a support bundle, slabinfo), an experiment (TOML). Tables are Arrow tables: ``pyarrow.table(t)``,
``polars.from_arrow(t)`` and ``pandas.DataFrame.from_arrow(t)`` take them without a copy.

What is wrong with an input is an :class:`Error` with the file and the place. Long calls release the
interpreter's lock, end on Ctrl-C, and call ``progress(done, whole)``.
"""

from ._errors import Error, InputError, SweepError, UsageError
from ._fleet import fleet
from ._native import (
    Answer,
    Diagnosis,
    Dump,
    Explanation,
    Fleet,
    Leak,
    Recording,
    Replay,
    Results,
    Rows,
    Table,
    Whatif,
    doctor,
    engines,
    experiments,
    explain,
    import_recording,
    leak,
    machines,
    read_dump,
    read_recording,
    replay,
    run,
    version,
    whatif,
)
from ._sweep import sweep

__version__ = version()

__all__ = [
    "Answer",
    "Diagnosis",
    "Dump",
    "Error",
    "Explanation",
    "Fleet",
    "InputError",
    "Leak",
    "Recording",
    "Replay",
    "Results",
    "Rows",
    "SweepError",
    "Table",
    "UsageError",
    "Whatif",
    "doctor",
    "engines",
    "experiments",
    "explain",
    "fleet",
    "import_recording",
    "leak",
    "machines",
    "read_dump",
    "read_recording",
    "replay",
    "run",
    "sweep",
    "version",
    "whatif",
]
