//! Tests of recordings: import, replays, and models compared with real kernels.

mod answers;
#[path = "../../../report/tests/it/csv_check.rs"]
mod csv_check;
mod explain;
mod hostile_names;
mod import;
mod map;
#[path = "../../../report/tests/it/name_check.rs"]
mod name_check;
#[path = "../../../report/tests/it/page_check.rs"]
mod page_check;
mod pages;
mod partitions;
mod published;
mod real;
mod replay;
mod rounding;
mod sites;
