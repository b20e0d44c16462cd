//! Names that look like another.

/// The names nearest to `name`, the best first, at most `most`. A name counts if a third of it or less is
/// wrong, or if it contains `name`.
pub fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let asked = name.to_lowercase();
    let limit = (asked.len() / 3).max(1);
    let mut found: Vec<(usize, &str)> = Vec::new();
    for candidate in names {
        let lower = candidate.to_lowercase();
        let edits = distance(asked.as_bytes(), lower.as_bytes());
        if edits <= limit {
            found.push((edits, candidate));
        } else if asked.len() >= 3 && lower.contains(&asked) {
            // Behind every name that is only mistyped, the shortest first.
            found.push((limit + lower.len(), candidate));
        }
    }
    found.sort_unstable();
    found.into_iter().take(most).map(|(_, candidate)| candidate).collect()
}

/// Edits (a letter put in, taken out, changed, or two neighbours swapped) from one to the other.
fn distance(from: &[u8], to: &[u8]) -> usize {
    let width = to.len() + 1;
    let mut before: Vec<usize> = vec![0; width];
    let mut last: Vec<usize> = (0..width).collect();
    for (row, a) in from.iter().enumerate() {
        let mut this = vec![row + 1; width];
        for (column, b) in to.iter().enumerate() {
            let change = last[column] + usize::from(a != b);
            this[column + 1] = change.min(last[column + 1] + 1).min(this[column] + 1);
            if row > 0 && column > 0 && *a == to[column - 1] && from[row - 1] == *b {
                this[column + 1] = this[column + 1].min(before[column - 1] + 1);
            }
        }
        before = std::mem::replace(&mut last, this);
    }
    last[width - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (from, to, edits) in [
            ("", "", 0),
            ("", "abc", 3),
            ("dentry", "dentry", 0),
            ("dentyr", "dentry", 1),
            ("dntry", "dentry", 1),
            ("dentries", "dentry", 3),
            ("filp", "TCP", 4),
        ] {
            assert_eq!(distance(from.as_bytes(), to.as_bytes()), edits, "{from} to {to}");
            assert_eq!(distance(to.as_bytes(), from.as_bytes()), edits, "{to} to {from}");
        }
    }
}
