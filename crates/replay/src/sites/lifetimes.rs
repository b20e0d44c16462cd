//! How long the objects of a call site live.
//!
//! Objects that live at the recording's end are not left out: they would make every leak look short-lived.
//! They count as "at least until then" (Kaplan and Meier 1958).

/// Buckets in each doubling of time: a value is known within 1/32 of it, 3 %.
const BUCKETS: u64 = 32;

/// Lifetimes of many objects.
#[derive(Clone, Debug, Default)]
pub struct Lifetimes {
    /// Freed objects by bucket of their lifetime.
    freed: Vec<u32>,
    /// Objects that live at the end, by bucket of their age.
    live: Vec<u32>,
    longest_ns: u64,
}

/// A quantile of lifetimes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantile {
    /// There were no objects.
    None,
    /// So many nanoseconds, within 3 %.
    Known(u64),
    /// Longer than this: too many objects live at the recording's end.
    AtLeast(u64),
}

impl Quantile {
    /// The known value.
    pub fn known(self) -> Option<u64> {
        match self {
            Quantile::Known(ns) => Some(ns),
            Quantile::None | Quantile::AtLeast(_) => None,
        }
    }
}

impl Lifetimes {
    /// An object was freed after `ns`.
    pub fn freed(&mut self, ns: u64) {
        self.longest_ns = self.longest_ns.max(ns);
        add(&mut self.freed, bucket(ns));
    }

    /// An object lives, and is `ns` old.
    pub fn lives(&mut self, ns: u64) {
        self.longest_ns = self.longest_ns.max(ns);
        add(&mut self.live, bucket(ns));
    }

    /// Adds other objects.
    pub fn add(&mut self, other: &Lifetimes) {
        for (own, other) in [(&mut self.freed, &other.freed), (&mut self.live, &other.live)] {
            own.resize(own.len().max(other.len()), 0);
            own.iter_mut().zip(other).for_each(|(sum, count)| *sum = sum.saturating_add(*count));
        }
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }

    /// The time by which `percent` of the objects are freed.
    pub fn quantile(&self, percent: u32) -> Quantile {
        let count = |buckets: &[u32], at: usize| f64::from(buckets.get(at).copied().unwrap_or(0));
        let sum = |buckets: &[u32]| buckets.iter().map(|count| f64::from(*count)).sum::<f64>();
        let mut at_risk = sum(&self.freed) + sum(&self.live);
        if at_risk == 0.0 {
            return Quantile::None;
        }
        let (mut surviving, limit) = (1.0, 1.0 - f64::from(percent) / 100.0);
        for at in 0..self.freed.len() {
            let freed = count(&self.freed, at);
            if freed > 0.0 {
                surviving *= 1.0 - freed / at_risk;
                // A rest of 1e-9 is one of rounding.
                if surviving <= limit + 1e-9 {
                    return Quantile::Known(middle(at as u64).min(self.longest_ns));
                }
            }
            at_risk -= freed + count(&self.live, at);
        }
        Quantile::AtLeast(self.longest_ns)
    }
}

fn add(buckets: &mut Vec<u32>, at: u64) {
    let at = at as usize;
    if buckets.len() <= at {
        buckets.resize(at + 1, 0);
    }
    buckets[at] = buckets[at].saturating_add(1);
}

/// Numbers below 64 have a bucket each, larger ones share one with those that have the same leading six bits.
fn bucket(ns: u64) -> u64 {
    if ns < 2 * BUCKETS {
        return ns;
    }
    let shift = u64::from(ns.ilog2()) - u64::from(BUCKETS.ilog2());
    shift * BUCKETS + (ns >> shift)
}

/// A value in the middle of a bucket.
fn middle(bucket: u64) -> u64 {
    if bucket < 2 * BUCKETS {
        return bucket;
    }
    let shift = bucket / BUCKETS - 1;
    let low = (bucket - shift * BUCKETS) << shift;
    low + (1 << shift) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_has_its_numbers_within_three_percent() {
        let mut before = 0;
        for number in (0..4096).chain(
            (12..63).flat_map(|shift| [1 << shift, (1 << shift) + (1 << (shift - 1)), (1 << shift) - 1]),
        ) {
            let found = middle(bucket(number));
            assert!(found.abs_diff(number) as f64 <= 0.03 * number as f64, "{number}: {found}");
            before = before.max(bucket(number));
        }
        assert!(bucket(u64::MAX) < 2048 && before < 2048);
        assert_eq!(bucket(64), bucket(65), "two numbers share a bucket from here on");
        assert!(bucket(63) + 1 == bucket(64));
    }

    /// Objects by lifetime: freed after, or alive at this age.
    #[track_caller]
    fn check(freed: &[u64], live: &[u64], expected: [Quantile; 2]) {
        let mut lifetimes = Lifetimes::default();
        freed.iter().for_each(|ns| lifetimes.freed(*ns));
        live.iter().for_each(|ns| lifetimes.lives(*ns));
        assert_eq!([50, 90].map(|percent| lifetimes.quantile(percent)), expected);
    }

    #[test]
    fn objects_that_live_count_as_at_least_so_old() {
        use Quantile::{AtLeast, Known, None};
        check(&[], &[], [None, None]);
        check(&[7], &[], [Known(7), Known(7)]);
        check(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], &[], [Known(5), Known(9)]);
        // Half of ten is freed; the others may live for ever.
        check(&[1, 2, 3, 4, 5], &[20, 20, 20, 20, 20], [Known(5), AtLeast(20)]);
        check(&[1], &[30, 40, 50], [AtLeast(50), AtLeast(50)]);
        // Allocated just before the end: such objects say nothing of long lifetimes.
        check(&[10, 10], &[1, 1, 1, 1, 1, 1], [Known(10), Known(10)]);
    }
}
