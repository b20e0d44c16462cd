//! Tests of experiments: plans, runs, verdicts, explanations, memory pressure.

mod apart;
mod boot;
mod builds;
mod config;
mod ends;
mod experiment;
mod explain_cells;
mod group;
mod identities;
mod linear;
mod look;
mod looked;
mod merit;
#[path = "../../../report/tests/it/name_check.rs"]
mod name_check;
#[path = "../../../report/tests/it/page_check.rs"]
mod page_check;
mod pairs;
mod pinned;
mod pressure;
mod recording;
mod relations;
mod repeats;
mod sentences;
mod shown;
mod suite;
mod trace;
#[path = "../../../report/tests/it/trace_decode.rs"]
mod trace_decode;
mod workloads;
