//! Names that look like another.

use slablab_choices::near::edits;

/// The names nearest to `name`, the best first, at most `most`. A name counts if a third of it or less is
/// wrong, or if it contains `name`.
pub fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let asked = name.to_lowercase();
    let limit = (asked.len() / 3).max(1);
    let mut found: Vec<(usize, &str)> = Vec::new();
    for candidate in names {
        let lower = candidate.to_lowercase();
        let edits = edits(&asked, &lower);
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
