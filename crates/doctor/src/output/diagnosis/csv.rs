//! CSV: one row per cache.

use super::columns;
use crate::diagnosis::Report;

/// Every cache in the order of the input. An unknown value is empty.
pub fn doctor_csv(report: &Report) -> String {
    columns::caches().csv(&report.lines)
}
