//! The answers as text tables, pages, JSON, CSV. A fact has one name in all of them.

mod alloc_trace;
mod builds;
mod comparison;
mod describe;
mod experiment;
mod explain;
mod finding;
mod functions;
mod joined;
mod locks;
mod memory;
mod merit;
mod pressure;
mod reproduce;
mod rows;
mod run_page;
mod series;
mod shown;
mod slabs;
mod suite;
mod trace;

pub use alloc_trace::allocation_trace;
pub use describe::description_answer;
pub use experiment::{Look, experiment_answer, experiment_frame};
pub use explain::{explain_cells_answer, explain_script_answer};
pub use joined::joined_answer;
pub use locks::{LOCKS, locks_table};
pub use memory::{Column, meminfo_log, processes_table, vmstat_log};
pub use pressure::{judgement_answer, killed, records_answer, run_answer};
pub use reproduce::reproduce_answer;
pub use series::series_answer;
pub use slabs::{slabinfo, slabinfo_activity};
pub use suite::{SuiteLook, suite_answer, suite_list};
pub use trace::write_perfetto;

use slablab_report::document::Named;

/// The schemas of these answers.
pub fn schemas() -> Vec<Named> {
    let of_runs =
        [describe::schema(), experiment::schema(), joined::schema(), reproduce::schema(), suite::schema()];
    let of_runs = of_runs.into_iter().chain([series::schema()]);
    of_runs.chain(explain::schemas()).chain(pressure::schemas()).collect()
}
