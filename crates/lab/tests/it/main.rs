//! Tests of the lab: import of recordings, replays, and models compared with real kernels.

mod apart;
mod builds;
mod config;
mod ends;
mod experiment;
mod explain;
mod explain_cells;
mod hostile_names;
mod identities;
mod import;
mod linear;
mod look;
mod looked;
mod map;
mod merit;
#[path = "../../../report/tests/it/name_check.rs"]
mod name_check;
#[path = "../../../report/tests/it/page_check.rs"]
mod page_check;
mod pages;
mod pairs;
mod pressure;
mod published;
mod real;
mod recording;
mod relations;
mod repeats;
mod replay;
mod rounding;
mod shown;
mod sites;
mod suite;
mod trace;
#[path = "../../../report/tests/it/trace_decode.rs"]
mod trace_decode;
