//! A table of measurements, its columns compared: which rows differ, by how much. As blocks of an answer, as
//! a part of a document, and as the tables that mails carry.

use super::rows::{ABOUT_GAIN, ABOUT_HOLM, array_of, row_schema};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value};
use slablab_report::Answer;
use slablab_report::column::{Columns, Style};
use slablab_report::html::Cell;
use slablab_report::{text, visible};
use slablab_stats::Moments;
use slablab_stats::table::avg_std::{self, Digits};
use slablab_stats::table::mmtests::{self, Options};
use slablab_stats::table::{Better, Cell as Measured, Pair, Row, Rules, Table, Verdict, summary};

/// The schema's name; the number grows when a key changes its meaning.
const SCHEMA: &str = "slablab.comparison.1";

/// One pair of columns in one row, with the table that it is of.
struct Line<'a> {
    table: &'a Table,
    pair: Pair,
}

impl Line<'_> {
    fn row(&self) -> &str {
        &self.table.rows()[self.pair.row].name
    }

    fn column(&self, column: usize) -> &str {
        &self.table.columns()[column]
    }

    /// The number of runs, their mean and their standard deviation.
    fn moments(&self, column: usize) -> [Cell; 3] {
        match self.table.rows()[self.pair.row].cells[column].moments() {
            Some(of) => [Cell::Count(of.n() as u64), Cell::Number(of.mean(), 4), Cell::Number(of.sd(), 4)],
            None => [Cell::Empty, Cell::Empty, Cell::Empty],
        }
    }
}

/// A comparison as a document.
#[derive(Clone, Serialize, JsonSchema)]
pub(super) struct ComparisonDocument {
    /// slablab.comparison.1
    schema: &'static str,
    columns: Vec<String>,
    test: String,
    significance: f64,
    #[schemars(schema_with = "pairs")]
    pairs: Vec<Map<String, Value>>,
    summary: String,
}

impl ComparisonDocument {
    pub(super) fn new(table: &Table, rules: Rules) -> ComparisonDocument {
        let columns = columns("", "");
        ComparisonDocument {
            schema: SCHEMA,
            columns: table.columns().to_vec(),
            test: rules.test.to_string(),
            significance: rules.significance,
            pairs: lines(table, rules).iter().map(|line| columns.json(line)).collect(),
            summary: summary(&table.compare(rules), rules),
        }
    }
}

/// The schema of the pairs: that of a pair which has every number, and of one that has none.
fn pairs(_: &mut SchemaGenerator) -> Schema {
    let mut table = Table::new(["base", "other"]);
    let measured = Measured::Moments(Moments::new(2, 1.0, 1.0).expect("moments"));
    for cells in [[measured.clone(), measured], [const { Measured::Nothing(String::new()) }; 2]] {
        let row = Row { name: String::new(), better: Better::Lower, cells: cells.into() };
        table.row(row).expect("two cells");
    }
    let mut lines = lines(&table, Rules::default());
    lines[0].pair.cliffs_delta = Some(0.0);
    let about = [("gain_percent", ABOUT_GAIN), ("p_holm", ABOUT_HOLM)];
    array_of(row_schema(&columns("", ""), [&lines[0], &lines[1]], &about))
}

/// Columns of the text that are left out on a narrow terminal, in this order.
const LEFT_OUT: [&str; 2] = ["Holm's p", "95 % of gain"];

/// The blocks of a comparison: a table for each two columns that are compared.
pub(super) fn comparison_blocks(mut answer: Answer, table: &Table, rules: Rules) -> Answer {
    let lines = lines(table, rules);
    let mut compared: Vec<[usize; 2]> = lines.iter().map(|line| [line.pair.base, line.pair.other]).collect();
    compared.sort_unstable();
    compared.dedup();
    for [base, other] in &compared {
        let [base_name, other_name] = [*base, *other].map(|column| &*table.columns()[column]);
        if compared.len() > 1 {
            answer = answer.heading(format!("{other_name} against {base_name}"));
        }
        let of = lines.iter().filter(|line| (line.pair.base, line.pair.other) == (*base, *other));
        let label = |line: &Line<'_>| Cell::Name(line.row().to_string());
        let keys = ["base_mean", "other_mean", "gain_percent", "verdict_shown", "gain_interval", "p_shown"];
        let shown = columns(base_name, other_name).text(("", &label), &keys, of, Style::Bytes).names(1..3);
        answer = answer.table(shown, &LEFT_OUT);
    }
    answer.line(summary(&table.compare(rules), rules))
}

/// mmtests' table, and the sentence that says how many rows differ after Holm's correction.
pub(super) fn comparison_mmtests(table: &Table, rules: Rules, options: &Options) -> String {
    let table = &visible_names(table);
    format!("{}\n{}", mmtests::print(table, options), remark(table, rules, options.wrap))
}

/// The tables of the mails of 2009, and the sentence that says how many rows differ after Holm's correction.
pub(super) fn comparison_avg_std(table: &Table, rules: Rules, digits: Digits, wrap: Option<usize>) -> String {
    let table = &visible_names(table);
    format!("{}{}", avg_std::print(table, digits), remark(table, rules, wrap))
}

/// The names of a table without characters that steer a terminal.
fn visible_names(table: &Table) -> Table {
    let mut shown = Table::new(table.columns().iter().map(|name| visible::name(name)));
    for row in table.rows() {
        let mut row = row.clone();
        row.name = visible::name(&row.name).into_owned();
        for cell in &mut row.cells {
            if let Measured::Nothing(why) = cell {
                *why = visible::name(why).into_owned();
            }
        }
        shown.row(row).expect("as many cells as before");
    }
    shown
}

fn lines(table: &Table, rules: Rules) -> Vec<Line<'_>> {
    table.compare(rules).into_iter().map(|pair| Line { table, pair }).collect()
}

/// The sentence below a table for people.
fn remark(table: &Table, rules: Rules, wrap: Option<usize>) -> String {
    text::wrapped_within(wrap.unwrap_or(80), &summary(&table.compare(rules), rules), "", "")
}

/// The columns; the means are under the names of what is compared.
fn columns<'a>(base: &str, other: &str) -> Columns<Line<'a>> {
    let columns = Columns::<Line<'a>>::default()
        .key("row", |line| Cell::Name(line.row().to_string()))
        .key("base", |line| Cell::Name(line.column(line.pair.base).to_string()))
        .key("other", |line| Cell::Name(line.column(line.pair.other).to_string()))
        .key("better", |line| Cell::Text(line.table.rows()[line.pair.row].better.word().into()));
    let columns = sides(columns, base, other);
    let optional =
        |value: Option<f64>, places| value.map_or(Cell::Empty, |value| Cell::Number(value, places));
    columns
        .add("gain_percent", "gain %", "Gain", move |line| optional(line.pair.gain_percent, 2))
        .key("gain_percent_low_95", move |line| optional(line.pair.gain_percent_95.map(|ends| ends.low), 2))
        .key("gain_percent_high_95", move |line| optional(line.pair.gain_percent_95.map(|ends| ends.high), 2))
        .key("p", move |line| optional(line.pair.p, 4))
        .people("gain_interval", "95 % of gain", "95 % interval of the gain", |line| {
            let ends = line.pair.gain_percent_95.map(|ends| format!("{:.2} to {:.2}", ends.low, ends.high));
            ends.map_or(Cell::Empty, Cell::Text)
        })
        .key("p_holm", move |line| optional(line.pair.p_holm, 4))
        .people("p_shown", "Holm's p", "p after Holm's correction", |line| match line.pair.p_holm {
            None => Cell::Empty,
            Some(p) if p < 0.0001 => Cell::Text("<0.0001".to_string()),
            Some(p) => Cell::Text(format!("{p:.4}")),
        })
        .key("hedges_g", move |line| optional(line.pair.hedges_g, 2))
        .key("cliffs_delta", move |line| optional(line.pair.cliffs_delta, 2))
        .people("verdict_shown", "verdict", "Verdict", |line| Cell::Text(short(&line.pair)))
        .key("verdict", |line| Cell::Text(line.pair.verdict.to_string()))
}

/// A verdict in a text table.
pub(super) fn short(pair: &Pair) -> String {
    match &pair.verdict {
        _ if pair.is_unscattered() => "not tested".into(),
        verdict @ (Verdict::Better | Verdict::Worse) => verdict.to_string(),
        Verdict::NoDifference => "not certain".into(),
        Verdict::Untested(why) => format!("none: {why}"),
    }
}

/// The columns of the two sides.
fn sides<'a>(columns: Columns<Line<'a>>, base_name: &str, other_name: &str) -> Columns<Line<'a>> {
    let base =
        |at: usize| move |line: &Line<'_>| line.moments(line.pair.base).into_iter().nth(at).expect("3");
    let other =
        |at: usize| move |line: &Line<'_>| line.moments(line.pair.other).into_iter().nth(at).expect("3");
    columns
        .key("base_n", base(0))
        .add("base_mean", base_name.to_string(), "Mean of the base", base(1))
        .add("base_sd", "sd", "Its standard deviation", base(2))
        .key("other_n", other(0))
        .add("other_mean", other_name.to_string(), "Mean of the other", other(1))
        .add("other_sd", "sd", "Its standard deviation", other(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use slablab_stats::table::{Pairs, Test};

    const ALL: Rules = Rules { pairs: Pairs::All, test: Test::Welch, significance: 0.05 };

    fn measured(mean: f64, sd: f64) -> Measured {
        Measured::Moments(Moments::new(10, mean, sd).expect("moments"))
    }

    /// Rows of the mail of 16 January 2009: fio's netio, hackbench's second block, a run out of memory.
    fn table() -> Table {
        let mut table = Table::new(["SLAB", "SLUB"]);
        let oom = Measured::Nothing("out of memory".to_string());
        for (name, cells) in [
            ("netio", vec![measured(13.19, 0.40), measured(14.47, 0.23)]),
            ("hackbench|2", vec![measured(1.20, 0.09), measured(1.21, 0.06)]),
            ("=mkfs\u{1b}", vec![measured(2.0, 0.1), oom]),
        ] {
            table.row(Row { name: name.to_string(), better: Better::Lower, cells }).expect("two cells");
        }
        table
    }

    fn check(found: &str, expected: &str) {
        assert_eq!(found, expected, "\n{found}");
    }

    fn answer(table: &Table) -> Answer {
        comparison_blocks(Answer::new("", "Two engines."), table, ALL)
    }

    #[test]
    fn text_has_the_verdicts() {
        let expected = "Two engines.

                 SLAB     SLUB  gain %              verdict     95 % of gain
 netio        13.1900  14.4700   -9.70                worse  -12.29 to -7.18
 hackbench|2   1.2000   1.2100   -0.83          not certain    -7.11 to 5.08
 =mkfs\\x1b     2.0000        -       -  none: out of memory                -
Not shown: Holm's p (--wide).
1 of 3 rows differs; in 2 no difference can be told (Welch's t-test, Holm's
  correction over 2 tests, 5 %).
";
        check(&answer(&table()).text(false), expected);
        let wide = answer(&table()).text(true);
        assert!(wide.contains(" worse  -12.29 to -7.18   <0.0001\n"), "{wide}");
        let expected = "Two engines.

|  | SLAB | SLUB | gain % | verdict | 95 % of gain | Holm's p |
|---|---:|---:|---:|---:|---:|---:|
| netio | 13.1900 | 14.4700 | -9.70 | worse | -12.29 to -7.18 | \\<0.0001 |
| hackbench\\|2 | 1.2000 | 1.2100 | -0.83 | not certain | -7.11 to 5.08 | 0.7738 |
| =mkfs\\\\x1b | 2.0000 | - | - | none: out of memory | - | - |

1 of 3 rows differs; in 2 no difference can be told (Welch's t-test, Holm's correction over 2 tests, 5 %).
";
        check(&answer(&table()).markdown(), expected);
    }

    #[test]
    fn each_two_of_three_columns_have_a_table() {
        let mut table = Table::new(["slab", "slqb", "slub"]);
        let cells = vec![measured(1.03, 0.05), measured(0.90, 0.04), measured(1.05, 0.06)];
        table.row(Row { name: "7".to_string(), better: Better::Lower, cells }).expect("three cells");
        let found = answer(&table).text(true);
        let heads: Vec<&str> = found.lines().filter(|line| line.contains(" against ")).collect();
        assert_eq!(heads, ["slqb against slab", "slub against slab", "slub against slqb"], "{found}");
    }

    #[test]
    fn mails_have_the_sentence_below() {
        let expected = "                                        SLAB                   SLUB
Amean     netio             13.19 (   0.00%)       14.47 *  -9.70%*
Amean     hackbench|2        1.20 (   0.00%)        1.21 (  -0.83%)
Amean     =mkfs\\x1b          2.00 (   0.00%)          out of memory

1 of 3 rows differs; in 2 no difference can be told (Welch's t-test,
Holm's correction over 2 tests, 5 %).
";
        let options = Options { wrap: Some(72), ..Options::default() };
        check(&comparison_mmtests(&table(), ALL, &options), expected);
        let found = comparison_avg_std(&table(), ALL, Digits::Decimals(2), Some(72));
        let first = "netio (10 runs, lower better):\nSLAB AVG=13.19 STD=0.40\nSLUB AVG=14.47 STD=0.23\n\n";
        assert!(found.starts_with(first), "{found}");
        let last =
            "=mkfs\\x1b (10 runs, lower better):\nSLAB AVG=2.00 STD=0.10\nSLUB out of memory\n\n1 of 3 rows";
        assert!(found.contains(last), "{found}");
    }

    #[test]
    fn programs_read_every_number() {
        let json = json!(ComparisonDocument::new(&table(), ALL));
        assert_eq!(json["columns"], json!(["SLAB", "SLUB"]));
        assert_eq!(
            (&json["pairs"][0]["base_mean"], &json["pairs"][0]["base_n"]),
            (&13.19.into(), &10.into())
        );
        assert_eq!(json["pairs"][0]["p_holm"], json!(table().compare(ALL)[0].p_holm));
        assert_eq!(json["pairs"][1]["verdict"], "no difference can be told");
        assert_eq!(json["pairs"][2]["p"], Value::Null);
        assert_eq!(json["summary"], summary(&table().compare(ALL), ALL));
    }
}
