//! Which pairs of columns differ, row by row, with one correction over the whole table.

use super::{Better, Cell, Row, Table, gain_percent};
use crate::bootstrap::Interval;
use crate::effect::{cliffs_delta, hedges_g};
use crate::holm::holm;
use crate::rank::mann_whitney;
use crate::sample::Moments;
use crate::welch::{ratio_interval, welch};
use std::fmt;

/// Which columns are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// Every other column with the first.
    WithFirst,
    /// Every column with every later one.
    All,
}

/// The test that is applied to each pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Welch's t-test: needs only moments.
    Welch,
    /// Mann-Whitney's: needs the runs, assumes no distribution.
    MannWhitney,
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Test::Welch => "Welch's t-test",
            Test::MannWhitney => "Mann-Whitney's test",
        })
    }
}

/// How a table is compared.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Which columns are compared.
    pub pairs: Pairs,
    /// The test of each pair.
    pub test: Test,
    /// The probability of even one false difference in the table, at most.
    pub significance: f64,
}

impl Default for Rules {
    /// Every column with the first, Welch's test, 5 %.
    fn default() -> Rules {
        Rules { pairs: Pairs::WithFirst, test: Test::Welch, significance: 0.05 }
    }
}

/// Part of a mean: a smaller standard deviation is that of rounding. A test against it would take any
/// difference for certain, though another start of the same load may give another value.
const ROUNDING: f64 = 1e-4;
/// Why two columns are not tested whose runs differ by less.
const NO_SCATTER: &str = "their runs differ by less than 0.01 %";

/// How the column `other` compares with the column `base`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It differs, and is better.
    Better,
    /// It differs, and is worse.
    Worse,
    /// The scatter of the runs is too large, or their number too small, for a difference of this size.
    NoDifference,
    /// There was nothing to test, and why.
    Untested(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Better => f.write_str("better"),
            Verdict::Worse => f.write_str("worse"),
            Verdict::NoDifference => f.write_str("no difference can be told"),
            Verdict::Untested(why) => write!(f, "no difference can be told: {why}"),
        }
    }
}

/// Two columns of one row.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The row's place in the table, from 0.
    pub row: usize,
    /// The base column's place, from 0.
    pub base: usize,
    /// The other column's place, from 0.
    pub other: usize,
    /// By how many percent of the base's mean the other's mean is better; below 0 if it is worse.
    pub gain_percent: Option<f64>,
    /// The 95 % interval of `gain_percent`, before Holm's correction.
    pub gain_percent_95: Option<Interval>,
    /// The p-value of this pair alone.
    pub p: Option<f64>,
    /// The p-value after Holm's correction over the table.
    pub p_holm: Option<f64>,
    /// Hedges' g of `other` against `base`; above 0 if its values are larger, whether or not that is better.
    pub hedges_g: Option<f64>,
    /// Cliff's delta of `other` against `base`, if the runs are known.
    pub cliffs_delta: Option<f64>,
    /// Whether a difference can be told, and which column is better.
    pub verdict: Verdict,
}

impl Pair {
    /// Whether the columns differ, and the runs of each by less than 0.01 %: there is no scatter to test
    /// against.
    pub fn is_unscattered(&self) -> bool {
        matches!(&self.verdict, Verdict::Untested(why) if why == NO_SCATTER)
    }
}

impl Table {
    /// Compares columns row by row: rows in the order of the table, columns in theirs.
    pub fn compare(&self, rules: Rules) -> Vec<Pair> {
        let columns = self.columns().len();
        let last_base = match rules.pairs {
            Pairs::WithFirst => columns.min(1),
            Pairs::All => columns,
        };
        let mut pairs = Vec::new();
        for (index, row) in self.rows().iter().enumerate() {
            for base in 0..last_base {
                pairs.extend((base + 1..columns).map(|other| pair(index, row, base, other, rules.test)));
            }
        }
        let tested: Vec<f64> = pairs.iter().filter_map(|pair| pair.p).collect();
        let mut corrected = holm(&tested).expect("p-values of tests are from 0 to 1").into_iter();
        for pair in pairs.iter_mut().filter(|pair| pair.p.is_some()) {
            pair.p_holm = corrected.next();
            // Until here the verdict is the direction alone.
            if pair.p_holm.is_none_or(|p| p > rules.significance) {
                pair.verdict = Verdict::NoDifference;
            }
        }
        pairs
    }
}

/// Two columns of a row, with the verdict that holds if the difference is real.
fn pair(index: usize, row: &Row, base: usize, other: usize, test: Test) -> Pair {
    let mut pair = Pair {
        row: index,
        base,
        other,
        gain_percent: None,
        gain_percent_95: None,
        p: None,
        p_holm: None,
        hedges_g: None,
        cliffs_delta: None,
        verdict: Verdict::NoDifference,
    };
    let (base, other) = (&row.cells[base], &row.cells[other]);
    if let (Some(base), Some(other)) = (base.moments(), other.moments()) {
        pair.gain_percent = gain_percent(row.better, base.mean(), other.mean());
        let ratio = ratio_interval(&base, &other, 0.95).ok();
        let ratio = ratio.filter(|_| scatters(&base, &other) || is_rounding(&base, &other));
        pair.gain_percent_95 = ratio.map(|ratio| gains(row.better, ratio));
        pair.hedges_g = hedges_g(&base, &other).ok().flatten();
    }
    if let (Some(base), Some(other)) = (base.runs(), other.runs()) {
        pair.cliffs_delta = Some(cliffs_delta(base, other));
    }
    match outcome(test, base, other) {
        Ok((p, rises)) => {
            pair.p = Some(p);
            let better = rises == (row.better == Better::Higher);
            pair.verdict = if better { Verdict::Better } else { Verdict::Worse };
        }
        Err(why) => pair.verdict = Verdict::Untested(why),
    }
    pair
}

/// Whether a test has a scatter to compare a difference with: more than 0.01 % of a mean.
pub fn scatters(base: &Moments, other: &Moments) -> bool {
    [base, other].iter().any(|side| side.sd() > ROUNDING * side.mean().abs())
}

/// Whether two means differ by less than 0.01 %.
pub fn is_rounding(base: &Moments, other: &Moments) -> bool {
    (other.mean() - base.mean()).abs() <= ROUNDING * base.mean().abs()
}

/// The interval of the gain in percent, from that of the ratio of the means.
fn gains(better: Better, ratio: Interval) -> Interval {
    match better {
        Better::Lower => Interval { low: (1.0 - ratio.high) * 100.0, high: (1.0 - ratio.low) * 100.0 },
        Better::Higher => Interval { low: (ratio.low - 1.0) * 100.0, high: (ratio.high - 1.0) * 100.0 },
    }
}

/// The p-value of a test, and whether `other` has the larger values; or why there is no test.
fn outcome(test: Test, base: &Cell, other: &Cell) -> Result<(f64, bool), String> {
    for cell in [base, other] {
        if let Cell::Nothing(why) = cell {
            return Err(why.clone());
        }
    }
    let moments = base.moments().zip(other.moments());
    if let Some((base, other)) = moments.filter(|(base, other)| base.n().min(other.n()) > 1)
        && !scatters(&base, &other)
    {
        return if is_rounding(&base, &other) { Ok((1.0, false)) } else { Err(NO_SCATTER.to_string()) };
    }
    match (test, moments, base.runs().zip(other.runs())) {
        (Test::Welch, Some((base, other)), _) => match welch(&base, &other) {
            Ok(found) => Ok((found.p, found.difference > 0.0)),
            Err(_) => Err("fewer than 2 runs".to_string()),
        },
        (Test::MannWhitney, _, Some((base, other))) => {
            Ok((mann_whitney(base, other).p, cliffs_delta(base, other) > 0.0))
        }
        _ => Err("the values of the runs are not given".to_string()),
    }
}

/// In how many pairs a column is better, and in how many it is worse.
pub fn tally(pairs: &[Pair], column: usize) -> (usize, usize) {
    let count = |as_other: Verdict, as_base: Verdict| {
        let holds = |pair: &&Pair| {
            (pair.other == column && pair.verdict == as_other)
                || (pair.base == column && pair.verdict == as_base)
        };
        pairs.iter().filter(holds).count()
    };
    (count(Verdict::Better, Verdict::Worse), count(Verdict::Worse, Verdict::Better))
}

/// A sentence about a comparison: how many rows differ, by which test. Of more than two columns each row is
/// compared several times.
pub fn summary(pairs: &[Pair], rules: Rules) -> String {
    let differ = pairs.iter().filter(|pair| matches!(pair.verdict, Verdict::Better | Verdict::Worse)).count();
    let tests = pairs.iter().filter(|pair| pair.p.is_some()).count();
    let percent = rules.significance * 100.0;
    let tests = if tests == 1 { "1 test".into() } else { format!("{tests} tests") };
    let by = format!("{}, Holm's correction over {tests}, {percent} %", rules.test);
    let is_of_two = pairs.windows(2).all(|two| (two[0].base, two[0].other) == (two[1].base, two[1].other));
    let what = if is_of_two { "row" } else { "comparison" };
    let quiet = pairs.iter().filter(|pair| pair.is_unscattered()).count();
    let (tested, untested) = match quiet {
        0 => ("", String::new()),
        quiet if quiet == pairs.len() => return format!("No {what} is tested: {NO_SCATTER}."),
        1 => ("tested ", format!(" 1 {what} is not tested: {NO_SCATTER}.")),
        some => ("tested ", format!(" {some} {what}s are not tested: {NO_SCATTER}.")),
    };
    let said = match (differ, pairs.len() - quiet) {
        (0, _) => format!("No difference can be told in any {tested}{what} ({by})."),
        (1, 1) => format!("The one {tested}{what} differs ({by})."),
        (differ, all) if differ == all => format!("All {all} {tested}{what}s differ ({by})."),
        (differ, all) => {
            let verb = if differ == 1 { "differs" } else { "differ" };
            let left = all - differ;
            format!("{differ} of {all} {tested}{what}s {verb}; in {left} no difference can be told ({by}).")
        }
    };
    said + &untested
}
