//! Names that look like a wrong one.

/// Bytes of a name that are compared. Longer names differ further by their lengths alone.
const LONGEST: usize = 127;

/// The three names with the fewest [`edits`] from `given`, best first; `""` if there are fewer.
pub fn near<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> [&'a str; 3] {
    let mut best = [(usize::MAX, ""); 3];
    for name in names {
        if best.iter().any(|(_, other)| *other == name) {
            continue;
        }
        let mut candidate = (edits(given, name), name);
        for place in &mut best {
            if candidate.0 < place.0 {
                core::mem::swap(place, &mut candidate);
            }
        }
    }
    best.map(|(_, name)| name)
}

/// The number of edits from one name to the other: a byte is put in, taken out or changed, or two neighbours
/// are swapped (Damerau and Levenshtein's distance, with each part edited once).
pub fn edits(from: &str, to: &str) -> usize {
    let head = |name: &str| name.len().min(LONGEST);
    let (a, b) = (&from.as_bytes()[..head(from)], &to.as_bytes()[..head(to)]);
    let mut before = [0; LONGEST + 1];
    let mut last: [u8; LONGEST + 1] = core::array::from_fn(|index| index as u8);
    for (row, x) in a.iter().enumerate() {
        let mut this = [0; LONGEST + 1];
        this[0] = row as u8 + 1;
        for (column, y) in b.iter().enumerate() {
            let changed = last[column] + u8::from(x != y);
            let mut least = changed.min(last[column + 1] + 1).min(this[column] + 1);
            if row > 0 && column > 0 && *x == b[column - 1] && a[row - 1] == *y {
                least = least.min(before[column - 1] + 1);
            }
            this[column + 1] = least;
        }
        (before, last) = (last, this);
    }
    let beyond = (from.len() - a.len()).abs_diff(to.len() - b.len());
    usize::from(last[b.len()]) + beyond
}
