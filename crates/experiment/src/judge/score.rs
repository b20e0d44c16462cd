//! How many rows agree, and how near their sizes are, beside the null answers.

use crate::file::rows::Sign;
use crate::judge::verdict::{Compared, Judged, Verdict};

/// How many rows agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Score {
    /// Rows that agree.
    pub agree: usize,
    /// All rows.
    pub rows: usize,
    /// The sign that is expected most often, and how often: the best answer that is the same for all rows.
    pub constant: (Sign, usize),
}

/// How near the modelled ratios are to the published ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    /// Ratios of cells that are published and modelled.
    pub rows: usize,
    /// Published ones inside the draws' interval, and those that have draws.
    pub inside: [usize; 2],
    /// Of those without draws: published ones inside the interval over the repeats, and those that have one.
    pub inside_repeats: [usize; 2],
    /// The root mean square of the logarithm of modelled over published.
    pub error: f64,
    /// The null answer: the ratio that is the same for all rows and fits best.
    pub same: f64,
    /// Its error.
    pub same_error: f64,
}

/// The rows that are predictions.
pub fn predicted(rows: &[Judged]) -> impl Iterator<Item = &Judged> + Clone {
    rows.iter().filter(|row| !row.is_fitted)
}

/// The score of the rows, beside that of the best constant answer.
pub fn score(rows: &[Judged]) -> Score {
    // A sign says nothing of a figure.
    let signs = predicted(rows).filter(|row| row.expect.within.is_none());
    let expected = |sign: Sign| signs.clone().filter(|row| row.expect.sign == sign).count();
    let counts = Sign::WORDS.map(|(_, sign)| (sign, expected(sign)));
    let constant = counts.into_iter().rev().max_by_key(|(_, count)| *count);
    Score {
        agree: predicted(rows).filter(|row| row.verdict == Verdict::Agrees).count(),
        rows: predicted(rows).count(),
        constant: constant.expect("there are three signs"),
    }
}

/// How near the ratios of relations are to the published ones; `None` without any.
pub fn sizes_of(rows: &[Judged]) -> Option<Sizes> {
    // Beside a figure each ratio is 1, which one ratio for all would have for nothing.
    let told = predicted(rows).filter(|row| row.expect.within.is_none());
    let told = told.filter_map(|row| Some((row.expect.ratio?, &row.compared)));
    sizes(told.flat_map(|(ratio, compared)| compared.iter().map(move |pair| (ratio, pair))))
}

/// How near ratios are to the published ones, each with what was modelled; `None` without any.
pub fn sizes<'c>(rows: impl Iterator<Item = (f64, &'c Compared)>) -> Option<Sizes> {
    let (mut logs, mut errors) = (Vec::new(), Vec::new());
    let (mut inside, mut inside_repeats) = ([0; 2], [0; 2]);
    for (published, pair) in rows {
        let Some(ratio) = pair.ratio.filter(|ratio| *ratio > 0.0 && ratio.is_finite()) else { continue };
        logs.push(published.ln());
        errors.push((ratio / published).ln());
        if let Some(outside) = pair.outside_percent(published) {
            let counts = if pair.drawn.is_some() { &mut inside } else { &mut inside_repeats };
            counts[0] += usize::from(outside == 0.0);
            counts[1] += 1;
        }
    }
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let root = |squares: f64| (squares / n).sqrt();
    (!logs.is_empty()).then(|| Sizes {
        rows: logs.len(),
        inside,
        inside_repeats,
        error: root(errors.iter().map(|error| error * error).sum()),
        same: mean.exp(),
        same_error: root(logs.iter().map(|log| (log - mean) * (log - mean)).sum()),
    })
}
