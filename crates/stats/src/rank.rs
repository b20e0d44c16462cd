//! The Mann-Whitney U test: does a value of one side tend to be larger than a value of the other? It assumes
//! no distribution.
//!
//! Small samples without ties get the exact distribution of U; others the normal approximation with
//! corrections for ties and for continuity. Source: H. B. Mann and D. R. Whitney, Ann. Math. Stat. 18 (1947).

use crate::sample::Sample;
use crate::special::normal_above;

/// The exact distribution is used up to this many values on each side, as in R. The numbers of arrangements,
/// at most 100! / (50! 50!) = 1.01e29, are whole numbers in an `i128`.
const EXACT_MOST: usize = 50;

/// How the p-value was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// From all arrangements of the two sides.
    Exact,
    /// From the normal distribution.
    Normal,
}

/// A result of the test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MannWhitney {
    /// Pairs of a value of `base` and a value of `other` in which that of `base` is larger; ties count half.
    pub u: f64,
    /// Probability of such a `u`, or one further from the middle, if both sides have one distribution.
    pub p: f64,
    /// How `p` was computed.
    pub distribution: Distribution,
}

/// Tests whether one side tends to larger values.
pub fn mann_whitney(base: &Sample, other: &Sample) -> MannWhitney {
    let (n1, n2) = (base.n(), other.n());
    let counts = Counts::new(base, other);
    let u = counts.u();
    let further = u.max((n1 * n2) as f64 - u);
    if counts.ties.is_empty() && n1.max(n2) <= EXACT_MOST {
        let p = (2.0 * exact_at_least(n1, n2, further as usize)).min(1.0);
        return MannWhitney { u, p, distribution: Distribution::Exact };
    }
    let (n1, n2, n) = (n1 as f64, n2 as f64, (n1 + n2) as f64);
    let tied: f64 = counts.ties.iter().map(|&tie| (tie * tie * tie - tie) / (n * (n - 1.0))).sum();
    let deviation = (n1 * n2 / 12.0 * (n + 1.0 - tied)).sqrt();
    // All values are equal if the deviation is 0.
    let z = if deviation > 0.0 { (further - n1 * n2 / 2.0 - 0.5) / deviation } else { 0.0 };
    MannWhitney { u, p: (2.0 * normal_above(z)).min(1.0), distribution: Distribution::Normal }
}

/// How the values of two samples compare, pair by pair.
pub(crate) struct Counts {
    /// Pairs in which the value of the first sample is larger.
    pub(crate) larger: f64,
    /// Pairs in which it is smaller.
    pub(crate) smaller: f64,
    /// Pairs of equal values.
    equal: f64,
    /// Lengths of the runs of equal values in both samples together, where they are above 1.
    ties: Vec<f64>,
}

impl Counts {
    /// Walks both sorted samples once, a distinct value at a time.
    pub(crate) fn new(first: &Sample, second: &Sample) -> Counts {
        let (first, second) = (first.values(), second.values());
        let mut counts = Counts { larger: 0.0, smaller: 0.0, equal: 0.0, ties: Vec::new() };
        let (mut at1, mut at2) = (0, 0);
        while at1 < first.len() || at2 < second.len() {
            let value = match (first.get(at1), second.get(at2)) {
                (Some(a), Some(b)) => a.min(*b),
                (Some(a), None) => *a,
                (None, b) => *b.expect("the loop's condition"),
            };
            let run = |values: &[f64], at: usize| values[at..].iter().take_while(|v| **v == value).count();
            let (run1, run2) = (run(first, at1), run(second, at2));
            counts.larger += (run1 * at2) as f64;
            counts.smaller += (at1 * run2) as f64;
            counts.equal += (run1 * run2) as f64;
            if run1 + run2 > 1 {
                counts.ties.push((run1 + run2) as f64);
            }
            (at1, at2) = (at1 + run1, at2 + run2);
        }
        counts
    }

    fn u(&self) -> f64 {
        self.larger + self.equal / 2.0
    }
}

/// Probability that U of `n1` and `n2` values without ties is at least `u`.
///
/// The numbers of arrangements for each U are the coefficients of the Gaussian binomial
/// (1 - x^(n2+1)) ... (1 - x^(n2+n1)) / ((1 - x) ... (1 - x^n1)).
fn exact_at_least(n1: usize, n2: usize, u: usize) -> f64 {
    let mut ways = vec![0_i128; n1 * n2 + 1];
    ways[0] = 1;
    for factor in 1..=n1 {
        let times = n2 + factor;
        for at in (times..ways.len()).rev() {
            ways[at] -= ways[at - times];
        }
        for at in factor..ways.len() {
            ways[at] += ways[at - factor];
        }
    }
    let all: i128 = ways.iter().sum();
    let found: i128 = ways[u.min(ways.len())..].iter().sum();
    found as f64 / all as f64
}
