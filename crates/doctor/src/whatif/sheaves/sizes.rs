//! Objects that have other sizes in other releases.

use slablab_slabs::Release;

const BUILTIN: &str = include_str!("../../../data/object-sizes.csv");

/// The column of a release: its own, or for one between two columns with one size, that size.
fn size(row: &[&str], columns: &[&str], release: Release) -> Option<u64> {
    let own = format!("{}.{}", release.major, release.minor);
    let number = |at: usize| row.get(at).and_then(|cell| cell.parse::<u64>().ok());
    if let Some(at) = columns.iter().position(|column| *column == own) {
        return number(at);
    }
    let number_of = |column: &str| {
        let (major, minor) = column.split_once('.')?;
        Some((major.parse::<u16>().ok()?, minor.parse::<u16>().ok()?))
    };
    let after = columns
        .iter()
        .position(|column| number_of(column).is_some_and(|known| known > (release.major, release.minor)))?;
    let before = after.checked_sub(1)?;
    number(before).filter(|size| number(after) == Some(*size))
}

/// Bytes from one object to the next under release `then`, of a cache that has `today` bytes; `None` where
/// no dump tells, or this kernel was built with other sizes.
pub(in crate::whatif) fn known(name: &str, today: (u64, Release), then: Release) -> Option<u64> {
    let (bytes, release) = today;
    let mut lines = BUILTIN.lines();
    let columns: Vec<&str> = lines.next()?.split(',').collect();
    let row = lines.map(|line| line.split(',').collect::<Vec<_>>()).find(|row| row[0] == name)?;
    (size(&row, &columns, release)? == bytes).then(|| size(&row, &columns, then))?
}

/// The releases that the table has, as a sentence lists them.
pub(in crate::whatif) fn names() -> String {
    let columns = BUILTIN.lines().next().unwrap_or_default();
    columns.split(',').skip(1).collect::<Vec<_>>().join(", ")
}
