//! Tests of the lab: recordings that become traces, replays, and models beside real kernels.

mod explain;
mod hostile_names;
mod import;
#[path = "../../../report/tests/it/name_check.rs"]
mod name_check;
#[path = "../../../report/tests/it/page_check.rs"]
mod page_check;
mod pages;
mod published;
mod real;
mod replay;
mod rounding;
