//! Words of messages about names.

use slablab_report::nearest::nearest;

/// The names nearest to a wrong one, or all.
pub(crate) fn near<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let found = nearest(name, known.clone(), 3);
    match found.is_empty() {
        true => format!("; expected one of {}", known.collect::<Vec<_>>().join(", ")),
        false => format!("; near it: {}", found.join(", ")),
    }
}
