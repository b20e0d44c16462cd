//! Slab memory over the time of the recording.
//!
//! Samples are taken on a grid of time. When there are too many, every second point of the grid is dropped,
//! so that a replay of any length keeps about one sample for each column of a chart. The sampler does not
//! need the recording's length, which can be wrong.

/// Samples that are never exceeded.
const SAMPLES_MAX: usize = 2048;
/// The grid to begin with, ns.
const EVERY_NS: u64 = 1 << 16;

/// What a run held, over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Samples in time order. The first is the start, the last the end; between them they stand on a grid,
    /// without those where no row was since the one before.
    pub samples: Vec<Sample>,
    /// Distance of the grid's places, ns.
    pub every_ns: u64,
}

/// What a run held at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Since the first row, ns.
    pub time_ns: u64,
    /// In slabs.
    pub slab_bytes: u64,
    /// Bytes in objects that rows allocated and did not free; sheaves made in the run are not included.
    pub live_bytes: u64,
}

/// A time line in the making.
pub(super) struct Sampler {
    timeline: Timeline,
    first_ns: Option<u64>,
    /// Of the next place of the grid, as rows tell time; the first row is always past it.
    next_ns: u64,
}

impl Sampler {
    pub(super) fn new() -> Sampler {
        Sampler {
            timeline: Timeline { samples: Vec::with_capacity(SAMPLES_MAX), every_ns: EVERY_NS },
            first_ns: None,
            next_ns: 0,
        }
    }

    /// Whether a row of this time is to be sampled before.
    #[inline]
    pub(super) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_ns
    }

    /// Takes what was held before a row of this time: it was so at the last place of the grid, too.
    pub(super) fn take(&mut self, now_ns: u64, slab_bytes: u64, live_bytes: u64) {
        let first = *self.first_ns.get_or_insert(now_ns);
        let place = (now_ns - first) / self.timeline.every_ns;
        let time_ns = place * self.timeline.every_ns;
        self.timeline.samples.push(Sample { time_ns, slab_bytes, live_bytes });
        // The end needs a place, too; and where rows come in bursts, one halving may remove nothing.
        while self.timeline.samples.len() >= SAMPLES_MAX {
            self.halve();
        }
        let every = self.timeline.every_ns;
        self.next_ns = first.saturating_add(((now_ns - first) / every + 1).saturating_mul(every));
    }

    #[cold]
    fn halve(&mut self) {
        let every = self.timeline.every_ns.saturating_mul(2);
        self.timeline.every_ns = every;
        self.timeline.samples.retain(|sample| sample.time_ns.is_multiple_of(every));
    }

    /// The time line, with the memory at the end.
    pub(super) fn finish(mut self, now_ns: u64, slab_bytes: u64, live_bytes: u64) -> Timeline {
        let time_ns = now_ns.saturating_sub(self.first_ns.unwrap_or(now_ns));
        let samples = &mut self.timeline.samples;
        if samples.len() > 1 && samples.last().is_some_and(|last| last.time_ns >= time_ns) {
            samples.pop();
        }
        samples.push(Sample { time_ns, slab_bytes, live_bytes });
        self.timeline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run with rows at these times. At each row it holds one byte for each earlier row.
    fn timeline(times: impl IntoIterator<Item = u64>) -> Timeline {
        let (mut sampler, mut held, mut now) = (Sampler::new(), 0, 0);
        for time in times {
            if sampler.is_due(time) {
                sampler.take(time, held, held);
            }
            (held, now) = (held + 1, time.max(now));
        }
        sampler.finish(now, held, held)
    }

    fn check(times: &[u64], expected: &[(u64, u64)]) {
        let samples = timeline(times.iter().copied()).samples;
        let found: Vec<_> = samples.iter().map(|sample| (sample.time_ns, sample.slab_bytes)).collect();
        assert_eq!(found, expected, "{times:?}");
    }

    #[test]
    fn samples_are_what_was_held_at_their_time() {
        const E: u64 = EVERY_NS;
        check(&[], &[(0, 0)]);
        check(&[7], &[(0, 0), (0, 1)]);
        check(&[7, 8, 7 + E], &[(0, 0), (E, 3)]);
        check(&[7, 8, 7 + E + 1, 7 + E + 2], &[(0, 0), (E, 2), (E + 2, 4)]);
        check(&[7, 7 + 9 * E + 5, 8], &[(0, 0), (9 * E, 1), (9 * E + 5, 3)]);
    }

    #[test]
    fn any_length_has_samples_in_bounds() {
        for every in [1, 1000, EVERY_NS, 2 * EVERY_NS, 1 << 30, 1 << 46] {
            let line = timeline((0..200_000).map(|n| n * every));
            let times: Vec<u64> = line.samples.iter().map(|sample| sample.time_ns).collect();
            assert!(times.len() <= SAMPLES_MAX + 1, "{} samples", times.len());
            assert!(times.is_sorted_by(|a, b| a < b), "rows every {every} ns");
            assert_eq!(times.last(), Some(&(199_999 * every)));
            for sample in &line.samples[..times.len() - 1] {
                assert_eq!(sample.slab_bytes, sample.time_ns.div_ceil(every), "rows every {every} ns");
                assert!(sample.time_ns.is_multiple_of(line.every_ns));
            }
        }
    }
}
