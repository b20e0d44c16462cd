//! `slablab._native`: the laboratory for Python.
//!
//! ```text
//! recording ── replay, explain ┐
//! dump ── doctor, whatif, leak ├── table      an answer's rows as Arrow
//! dumps ── fleet               │
//! experiment ── sweep          ┘
//!    └── work     a thread does the work, the calling one looks for signals
//!          └── errors     what is wrong becomes an exception with its place
//! ```
//!
//! The package's own modules are in `python/slablab`, its types in `_native.pyi` there. Every function calls
//! one of `doctor`, `replay` or `experiment`, as the verb of the same name does. Deliberately absent:
//! decisions, `unsafe`, and numbers that the program does not print.

mod answer;
mod dump;
mod errors;
mod experiment;
mod explain;
mod fleet;
mod leak;
mod lists;
mod opened;
mod recording;
mod replay;
mod rows;
mod sweep;
mod table;
mod values;
mod work;

use pyo3::prelude::*;

/// What the package's Python modules import.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::answer::Answer;
    #[pymodule_export]
    use crate::dump::{Diagnosis, Dump, Whatif, doctor, read_dump, whatif};
    #[pymodule_export]
    use crate::experiment::{Results, run};
    #[pymodule_export]
    use crate::explain::{Explanation, explain};
    #[pymodule_export]
    use crate::fleet::{Fleet, FleetPlan, read_dumps};
    #[pymodule_export]
    use crate::leak::{Leak, leak};
    #[pymodule_export]
    use crate::lists::{engines, experiments, machines, version};
    #[pymodule_export]
    use crate::recording::{Recording, import_recording, read_recording};
    #[pymodule_export]
    use crate::replay::{Replay, replay};
    #[pymodule_export]
    use crate::rows::Rows;
    #[pymodule_export]
    use crate::sweep::{Sweep, run_cells};
    #[pymodule_export]
    use crate::table::Table;
}
