//! The names of CSV files that a spreadsheet would compute.

/// The cells of a CSV file that begin with an apostrophe.
pub(crate) fn with_apostrophe(csv: &str) -> Vec<&str> {
    csv.split(['\n', ','])
        .map(|cell| cell.trim_start_matches('"'))
        .filter(|cell| cell.starts_with('\''))
        .collect()
}
