//! The same prediction from other starts, moments and orders that fit the recording.
//!
//! The replay draws what no file says (docs/replay.md): which slabs were partial and how full each was, when
//! objects were freed or allocated without an event, and how long after its event a free took effect. One
//! draw flatters or hides; the range over several shows what the draw is worth.

use crate::import::{Input, redrawn};
use crate::replay::{Options, Replay, replay};
use rayon::prelude::*;
use slablab_report::error::Result;
use slablab_trace::Reader;
use std::path::Path;

/// A figure of every draw.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// Its name, a key of JSON.
    pub name: &'static str,
    /// What the kernel did, if the figure is a count.
    pub real: Option<u64>,
    /// The figure of each seed, in rising order.
    pub values: Vec<f64>,
}

impl Spread {
    /// The figures of one name.
    pub(super) fn new(name: &'static str, real: Option<u64>, mut values: Vec<f64>) -> Spread {
        values.sort_by(f64::total_cmp);
        Spread { name, real, values }
    }

    /// The middle one; of an even number the lower of the two.
    pub fn median(&self) -> f64 {
        self.values[(self.values.len() - 1) / 2]
    }

    /// The smallest and the largest.
    pub fn range(&self) -> (f64, f64) {
        (self.values[0], self.values[self.values.len() - 1])
    }

    fn sentence(&self) -> String {
        let ((low, high), median) = (self.range(), self.median());
        let name = self.name.replace('_', " ");
        match self.real {
            Some(real) => format!("{name} {median} ({low} to {high}; the kernel {real})"),
            None if self.values.iter().all(|value| value.fract() == 0.0) => {
                format!("{name} {median} ({low} to {high})")
            }
            None => format!("{name} {median:.3} ({low:.3} to {high:.3})"),
        }
    }
}

/// A sentence with all spreads.
pub(super) fn sentence(spreads: &[Spread]) -> String {
    let seeds = spreads.first().map_or(0, |spread| spread.values.len());
    let each: Vec<String> = spreads.iter().map(Spread::sentence).collect();
    format!("median (range) over {seeds} draws of the start: {}", each.join("; "))
}

/// Imports and replays once for each seed after `options.seed`, `seeds` - 1 times, and judges each answer; in
/// the order of the seeds. `recording` names the one of a folder. What is a trace already keeps its order.
///
/// # Errors
/// Those of a replay.
pub(super) fn judge<T: Send>(
    reader: &Reader,
    (path, recording): (&Path, Option<&str>),
    (options, seeds): (&Options, u64),
    progress: &(dyn Fn(u64, u64) + Sync),
    judge: &(dyn Fn(Replay) -> Result<T> + Sync),
) -> Result<Vec<T>> {
    let whole = reader.rows() * seeds.saturating_sub(1);
    let done = std::sync::atomic::AtomicU64::new(0);
    let one = |seed: u64| {
        let options = Options { seed: options.seed.wrapping_add(seed), ..options.clone() };
        let input = Input { path, recording, formats: None };
        let redrawn = redrawn(input, options.seed)?;
        let answer = judge(replay(redrawn.as_ref().unwrap_or(reader), path, &options, &|_, _| {})?);
        let rows = reader.rows();
        progress(done.fetch_add(rows, std::sync::atomic::Ordering::Relaxed) + rows, whole);
        answer
    };
    (1..seeds).into_par_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_middle_and_both_ends() {
        let taken = Spread::new("slabs_taken", Some(31), vec![22.0, 19.0, 20.0, 30.0]);
        assert_eq!((taken.median(), taken.range()), (20.0, (19.0, 30.0)));
        let said = sentence(&[taken, Spread::new("skill_slab_bytes", None, vec![0.5701, 0.1])]);
        let expected = "over 4 draws of the start: slabs taken 20 (19 to 30; the kernel 31); skill slab bytes 0.100 \
                        (0.100 to 0.570)";
        assert!(said.ends_with(expected), "{said}");
    }
}
