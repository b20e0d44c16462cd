//! CSV: one row per cache.

use super::columns;
use crate::diagnosis::Report;
use slablab_report::csv::Csv;

/// Every cache in the order of the input. An unknown value is empty.
pub fn doctor_csv(report: &Report) -> String {
    let columns = columns::caches();
    let mut out = Csv::new(columns.keys());
    for line in &report.lines {
        out.row(columns.cells(line));
    }
    out.finish()
}
