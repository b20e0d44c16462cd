//! The report as text, JSON, CSV, Prometheus metrics and a page.

mod columns;
mod csv;
mod json;
mod page;
mod parts;
mod prometheus;
mod table;
mod words;

pub use csv::{doctor_csv, doctor_frame};
pub use json::doctor_json;
pub use page::doctor_page;
pub use prometheus::doctor_prometheus;
pub use table::{Shown, doctor_table};
pub(super) use words::{machine, title};
