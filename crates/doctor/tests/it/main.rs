//! Tests of the doctor on real dumps, on real dumps with one thing changed, and on damaged ones.

mod accounting;
mod answers;
#[path = "../../../report/tests/it/csv_check.rs"]
mod csv_check;
mod diagnosis;
mod fleet;
mod hostile_names;
#[path = "../../../report/tests/it/name_check.rs"]
mod name_check;
mod normal;
#[path = "../../../report/tests/it/page_check.rs"]
mod page_check;
mod pages;
mod pasted;
mod state;
mod what;
mod whatif;
mod whatif_errors;
mod whatif_releases;
