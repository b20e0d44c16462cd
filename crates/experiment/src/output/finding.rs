//! Sentences about an experiment: which engine is the best, by how much, and which cells did not run.

use crate::run::results::Results;
use crate::workload::Metric;
use slablab_report::text::counted;
use slablab_stats::table::{Pair, Rules, Table, Verdict};

/// Most things that a sentence names.
const NAMED_MAX: usize = 3;

/// Which engine is the best by a metric, and by how much; or that no difference is certain. The first column
/// is the base.
pub(super) fn finding(table: &Table, metric: &Metric) -> String {
    let (engines, pairs) = (table.columns(), table.compare(Rules::default()));
    let Some(base) = engines.first().filter(|_| engines.len() > 1) else { return alone(table, metric) };
    let mut tallies: Vec<Tally<'_>> = (1..engines.len())
        .map(|other| Tally { table, other, better: Vec::new(), worse: Vec::new() })
        .collect();
    for pair in &pairs {
        let tally = &mut tallies[pair.other - 1];
        match (&pair.verdict, pair.gain_percent) {
            (Verdict::Better, _) => tally.better.push(pair),
            (Verdict::Worse, _) => tally.worse.push(pair),
            (_, Some(gain)) if pair.is_unscattered() && gain > 0.0 => tally.better.push(pair),
            (_, Some(_)) if pair.is_unscattered() => tally.worse.push(pair),
            (Verdict::NoDifference | Verdict::Untested(_), _) => {}
        }
    }
    tallies.retain(|tally| !tally.better.is_empty() || !tally.worse.is_empty());
    let order = |a: &&Tally<'_>, b: &&Tally<'_>| a.won().cmp(&b.won()).then(a.gain().total_cmp(&b.gain()));
    let untested = pairs.iter().map(|pair| match &pair.verdict {
        Verdict::Untested(why) if !pair.is_unscattered() => Some(why),
        _ => None,
    });
    if let Some(Some(why)) = untested.reduce(|one, other| one.filter(|why| other == Some(why))) {
        return format!("No difference in {} can be tested: {why}", metric.name);
    }
    let Some(best) = tallies.iter().max_by(order) else {
        let rows = table.rows().len();
        let of_rows = if rows > 1 { format!(" in any of {rows} rows") } else { String::new() };
        return format!(
            "No difference in {} between {} is certain{of_rows}",
            metric.name,
            joined(engines.to_vec())
        );
    };
    let each = || joined(tallies.iter().map(Tally::words).collect());
    let (count, by) = (engines.len(), metric.name);
    let said = match (count, best.won() > 0, tallies.iter().all(|tally| tally.better.is_empty())) {
        (2, ..) => format!("By {by} {}", best.words()),
        (_, true, _) => {
            format!("Of {count} engines {} gains the most by {by}: {}", engines[best.other], best.words())
        }
        (_, false, true) => format!("Of {count} engines {base} is the best by {by}: {}", each()),
        (_, false, false) => format!("Of {count} engines none is the best in all rows by {by}: {}", each()),
    };
    said + untested_rows(&pairs)
}

/// What is told of pairs without a scatter, which nothing tests.
fn untested_rows(pairs: &[Pair]) -> &'static str {
    let told = |pair: &&Pair| matches!(pair.verdict, Verdict::Better | Verdict::Worse);
    match (pairs.iter().any(Pair::is_unscattered), pairs.iter().any(|pair| told(&pair))) {
        (false, _) => "",
        (true, false) => "; runs differ by less than 0.01 %, so nothing is tested",
        (true, true) => "; where runs differ by less than 0.01 %, nothing is tested",
    }
}

/// The rows in which an engine differs from the base.
struct Tally<'a> {
    table: &'a Table,
    other: usize,
    better: Vec<&'a Pair>,
    worse: Vec<&'a Pair>,
}

impl Tally<'_> {
    /// Rows that win beyond those that lose.
    fn won(&self) -> i64 {
        self.better.len() as i64 - self.worse.len() as i64
    }

    /// The sum of the gains.
    fn gain(&self) -> f64 {
        self.better.iter().chain(&self.worse).filter_map(|pair| pair.gain_percent).sum()
    }

    /// In how many rows the engine is better and worse than the base, and by how much at most.
    fn words(&self) -> String {
        let rows = self.table.rows().len();
        let [base, other] = [0, self.other].map(|column| &self.table.columns()[column]);
        let of_rows = |pairs: &[&Pair]| match (rows, pairs.len()) {
            (1, _) => String::new(),
            (rows, count) if rows == count => format!(" in all {rows} rows"),
            (rows, count) => format!(" in {count} of {rows} rows"),
        };
        let most = |pairs: &[&Pair], word: &str| {
            let size = |pair: &&&Pair| pair.gain_percent.unwrap_or(0.0).abs();
            let largest = pairs.iter().max_by(|a, b| size(a).total_cmp(&size(b)))?;
            let row = &self.table.rows()[largest.row].name;
            let at = if rows > 1 { format!(" at {row}") } else { String::new() };
            Some(format!("{}{word}{at}", amount(largest)?))
        };
        let (verdict, amounts) = match (self.better.is_empty(), self.worse.is_empty()) {
            (false, false) => (
                format!("better than {base}{} and worse{}", of_rows(&self.better), of_rows(&self.worse)),
                [most(&self.better, " better"), most(&self.worse, " worse")],
            ),
            (false, true) => {
                (format!("better than {base}{}", of_rows(&self.better)), [most(&self.better, ""), None])
            }
            _ => (format!("worse than {base}{}", of_rows(&self.worse)), [most(&self.worse, ""), None]),
        };
        let amounts: Vec<String> = amounts.into_iter().flatten().collect();
        let amounts = match (amounts.is_empty(), rows) {
            (true, _) => String::new(),
            (false, 1) => format!(", by {}", joined(amounts)),
            (false, _) => format!(", by at most {}", joined(amounts)),
        };
        format!("{other} is {verdict}{amounts}")
    }
}

/// By how many percent two columns differ, with the interval.
pub(super) fn amount(pair: &Pair) -> Option<String> {
    let gain = pair.gain_percent?;
    let interval = pair.gain_percent_95.map_or(String::new(), |ends| {
        let (low, high) = if gain < 0.0 { (-ends.high, -ends.low) } else { (ends.low, ends.high) };
        format!(" (95 % interval {low:.1} to {high:.1} %)")
    });
    Some(format!("{:.1} %{interval}", gain.abs()))
}

/// The means of a table of one engine.
fn alone(table: &Table, metric: &Metric) -> String {
    let engine = table.columns().first().map_or("", String::as_str);
    let mean =
        |row: &slablab_stats::table::Row| Some((row.cells.first()?.moments()?.mean(), row.name.clone()));
    let mut means: Vec<(f64, String)> = table.rows().iter().filter_map(mean).collect();
    means.sort_by(|a, b| a.0.total_cmp(&b.0));
    let shown = |(mean, row): &(f64, String)| {
        let at = if table.rows().len() > 1 { format!(" at {row}") } else { String::new() };
        format!("{mean:.*} {}{at}", metric.decimals, metric.unit)
    };
    match &means[..] {
        [] => format!("No cell of {engine} has a number of {}", metric.name),
        [one] => format!("{} of {engine} is {}", metric.name, shown(one)),
        [first, .., last] => {
            format!("{} of {engine} is from {} to {}", metric.name, shown(first), shown(last))
        }
    }
}

/// How many cells ran, and which did not, to be said behind an answer; nothing if all did.
pub(super) fn missing(results: &Results) -> String {
    let cells = results.plain().count();
    let not_run = results.plain().filter(|(at, _)| !results.was_run(*at)).count();
    let failed = |(at, _): (usize, _)| {
        let why = results.failure(at).filter(|_| results.was_run(at))?;
        Some(format!("{} ({})", results.name(at), why.lines().next()?.trim_end_matches(':')))
    };
    let failed: Vec<String> = results.plain().filter_map(failed).collect();
    let ran = cells - not_run - failed.len();
    let not = if failed.is_empty() { String::new() } else { format!(", not {}", joined(failed)) };
    let rest = if not_run > 0 { format!("; {not_run} not run") } else { String::new() };
    match cells - ran {
        0 => String::new(),
        _ => format!("; {ran} of {} ran{not}{rest}", counted(cells as u64, "cell")),
    }
}

/// Words as a list; of many, the first.
pub(super) fn joined(mut words: Vec<String>) -> String {
    let more = words.len().saturating_sub(NAMED_MAX);
    if more > 1 {
        words.truncate(NAMED_MAX);
        words.push(format!("{more} more"));
    }
    match &words[..] {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slablab_stats::Moments;
    use slablab_stats::table::{Better, Cell, Row};

    const METRIC: Metric = Metric {
        name: "elapsed_ps",
        about: "",
        better: Some(Better::Lower),
        unit: "s",
        per_unit: 1e12,
        decimals: 1,
    };

    /// Rows of means of 10 runs, each with a deviation of a hundredth; lower is better. A mean of 0 failed.
    fn check(engines: &[&str], rows: &[(&str, &[f64])], expected: &str) {
        let mut table = Table::new(engines.iter().copied());
        let cell = |mean: &f64| match *mean {
            0.0 => Cell::Nothing("out of memory".into()),
            mean => Cell::Moments(Moments::new(10, mean, mean / 100.0).expect("moments")),
        };
        for (name, means) in rows {
            let cells = means.iter().map(cell).collect();
            table.row(Row { name: (*name).into(), better: Better::Lower, cells }).expect("a cell each");
        }
        assert_eq!(finding(&table, &METRIC), expected);
    }

    #[test]
    fn a_sentence_names_the_best_engine() {
        let two = ["slab", "slub"];
        check(&two, &[("a", &[2.0, 2.0])], "No difference in elapsed_ps between slab and slub is certain");
        check(
            &two,
            &[("a", &[2.0, 2.0]), ("b", &[1.0, 0.0])],
            "No difference in elapsed_ps between slab and slub is certain in any of 2 rows",
        );
        check(
            &two,
            &[("a", &[2.0, 3.0])],
            "By elapsed_ps slub is worse than slab, by 50.0 % (95 % interval 48.6 to 51.4 %)",
        );
        check(
            &two,
            &[("a", &[2.0, 1.0]), ("b", &[2.0, 1.5]), ("c", &[2.0, 2.0])],
            "By elapsed_ps slub is better than slab in 2 of 3 rows, by at most 50.0 % (95 % interval 49.5 to \
             50.5 %) at a",
        );
        check(
            &two,
            &[("a", &[2.0, 1.0]), ("b", &[2.0, 3.0])],
            "By elapsed_ps slub is better than slab in 1 of 2 rows and worse in 1 of 2 rows, by at most 50.0 % \
             (95 % interval 49.5 to 50.5 %) better at a and 50.0 % (95 % interval 48.6 to 51.4 %) worse at b",
        );
    }

    #[test]
    fn of_several_engines_one_is_the_best_or_none() {
        let three = ["slab", "slqb", "slub"];
        check(
            &three,
            &[("a", &[2.0, 1.5, 1.0])],
            "Of 3 engines slub gains the most by elapsed_ps: slub is better than slab, by 50.0 % (95 % interval \
             49.5 to 50.5 %)",
        );
        check(
            &three,
            &[("a", &[2.0, 3.0, 2.5])],
            "Of 3 engines slab is the best by elapsed_ps: slqb is worse than slab, by 50.0 % (95 % interval 48.6 \
             to 51.4 %) and slub is worse than slab, by 25.0 % (95 % interval 23.8 to 26.2 %)",
        );
        check(
            &three,
            &[("a", &[2.0, 2.0, 1.0]), ("b", &[2.0, 2.5, 3.0])],
            "Of 3 engines none is the best in all rows by elapsed_ps: slqb is worse than slab in 1 of 2 rows, by \
             at most 25.0 % (95 % interval 23.8 to 26.2 %) at b and slub is better than slab in 1 of 2 rows and \
             worse in 1 of 2 rows, by at most 50.0 % (95 % interval 49.5 to 50.5 %) better at a and 50.0 % (95 % \
             interval 48.6 to 51.4 %) worse at b",
        );
    }

    #[test]
    fn one_engine_has_its_means() {
        check(&["slub"], &[("a", &[0.0])], "No cell of slub has a number of elapsed_ps");
        check(&["slub"], &[("a", &[2.0])], "elapsed_ps of slub is 2.0 s");
        check(
            &["slub"],
            &[("a", &[2.0]), ("b", &[1.0]), ("c", &[3.0])],
            "elapsed_ps of slub is from 1.0 s at b to 3.0 s at c",
        );
    }

    #[test]
    fn a_long_list_is_cut() {
        let words = |count: usize| joined((0..count).map(|number| number.to_string()).collect());
        assert_eq!([0, 1, 2, 4, 5].map(words), ["", "0", "0 and 1", "0, 1, 2 and 3", "0, 1, 2 and 2 more"]);
    }
}
