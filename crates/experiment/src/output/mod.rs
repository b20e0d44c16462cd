//! The answers as text tables, pages, JSON, CSV. A fact has one name in all of them.

mod alloc_trace;
mod builds;
mod comparison;
mod describe;
mod experiment;
mod explain_cells;
mod joined;
mod locks;
mod memory;
mod merit;
mod pressure;
mod reproduce;
mod run_page;
mod shown;
mod suite;
mod suite_page;
mod trace;

pub use alloc_trace::allocation_trace;
pub use comparison::{
    comparison_avg_std, comparison_csv, comparison_json, comparison_markdown, comparison_mmtests,
    comparison_table,
};
pub use describe::experiment_description_json;
pub use experiment::{
    experiment_avg_std, experiment_csv, experiment_description, experiment_frame, experiment_json,
    experiment_markdown, experiment_mmtests, experiment_table, experiments_list,
};
pub use explain_cells::{explain_cells_json, explain_cells_table, explain_script_json, explain_script_table};
pub use joined::{joined_json, joined_markdown, joined_table};
pub use locks::locks_table;
pub use memory::{Column, meminfo_log, memory_page, mmtests_vmstat, processes_table, vmstat_log};
pub use pressure::{
    Named, judgement_csv, judgement_differences, judgement_json, judgement_page, judgement_pages_csv,
    judgement_summary, pressure_records_csv, pressure_records_json, pressure_records_table,
};
pub use reproduce::{reproduce_csv, reproduce_json, reproduce_markdown, reproduce_table};
pub use run_page::experiment_page;
pub use suite::{
    suite_avg_std, suite_csv, suite_json, suite_list, suite_markdown, suite_mmtests, suite_table,
};
pub use suite_page::suite_page;
pub use trace::write_perfetto;
