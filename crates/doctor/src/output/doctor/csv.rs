//! CSV and typed columns: one row per cache.

use super::columns;
use crate::act::Report;
use slablab_report::frame::Frame;

/// Every cache in the order of the input. An unknown value is empty.
pub fn doctor_csv(report: &Report) -> String {
    doctor_frame(report).csv()
}

/// The rows of [`doctor_csv`].
pub fn doctor_frame(report: &Report) -> Frame {
    columns::caches().frame(&report.measured.lines)
}
