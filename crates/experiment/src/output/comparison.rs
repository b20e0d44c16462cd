//! A table of measurements, its columns compared: which rows differ, by how much. As text, Markdown, CSV,
//! JSON, and as the tables that mails carry.

use serde_json::{Value, json};
use slablab_report::column::{Columns, Style};
use slablab_report::html::Cell;
use slablab_report::{text, visible};
use slablab_stats::table::avg_std::{self, Digits};
use slablab_stats::table::mmtests::{self, Options};
use slablab_stats::table::{Better, Cell as Measured, Pair, Rules, Table, summary};

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

/// A comparison as text, in lines of at most `wrap` characters where that is given.
pub fn comparison_table(table: &Table, rules: Rules, wrap: Option<usize>) -> String {
    let shown = people(table, rules);
    let found = match wrap {
        Some(width) => shown.print_within(width),
        None => shown.print(),
    };
    format!("{found}\n{}", remark(table, rules, wrap))
}

/// A comparison in Markdown.
pub fn comparison_markdown(table: &Table, rules: Rules) -> String {
    format!("{}\n{}", people(table, rules).markdown(), remark(table, rules, Some(usize::MAX)))
}

/// A comparison in CSV: a row for each pair of columns.
pub fn comparison_csv(table: &Table, rules: Rules) -> String {
    columns(table).csv(lines(table, rules))
}

/// A comparison in JSON.
pub fn comparison_json(table: &Table, rules: Rules) -> Value {
    let (columns, lines) = (columns(table), lines(table, rules));
    let pairs: Vec<Value> = lines.iter().map(|line| Value::Object(columns.json(line))).collect();
    json!({
        "schema": SCHEMA,
        "columns": table.columns(),
        "test": rules.test.to_string(),
        "significance": rules.significance,
        "pairs": pairs,
        "summary": summary(&table.compare(rules), rules),
    })
}

/// mmtests' table, and the sentence that says how many rows differ after Holm's correction.
pub fn comparison_mmtests(table: &Table, rules: Rules, options: &Options) -> String {
    let table = &visible_names(table);
    format!("{}\n{}", mmtests::print(table, options), remark(table, rules, options.wrap))
}

/// The tables of the mails of 2009, and the sentence that says how many rows differ after Holm's correction.
pub fn comparison_avg_std(table: &Table, rules: Rules, digits: Digits, wrap: Option<usize>) -> String {
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

/// The table for people. The columns of a table of two are named in its heads, else in each line.
fn people(table: &Table, rules: Rules) -> text::Table {
    let lines = lines(table, rules);
    let label = |line: &Line<'_>| {
        let columns = || format!(": {} to {}", line.column(line.pair.base), line.column(line.pair.other));
        let columns = if table.columns().len() == 2 { String::new() } else { columns() };
        Cell::Name(format!("{}{columns}", line.row()))
    };
    // The verdict is in the first block of a table that is wrapped.
    let keys = ["base_mean", "other_mean", "gain_percent", "verdict", "gain_interval", "p_shown"];
    columns(table).text(("", &label), &keys, &lines, Style::Bytes)
}

fn columns(table: &Table) -> Columns<Line<'_>> {
    let columns = Columns::<Line>::default()
        .key("row", |line| Cell::Name(line.row().to_string()))
        .key("base", |line| Cell::Name(line.column(line.pair.base).to_string()))
        .key("other", |line| Cell::Name(line.column(line.pair.other).to_string()))
        .key("better", |line| {
            Cell::Text(match line.table.rows()[line.pair.row].better {
                Better::Lower => "lower".to_string(),
                Better::Higher => "higher".to_string(),
            })
        });
    let columns = sides(columns, table);
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
        .add("verdict", "verdict", "Verdict", |line| Cell::Text(line.pair.verdict.to_string()))
        .words()
}

/// The columns of the two sides.
fn sides<'a>(columns: Columns<Line<'a>>, table: &'a Table) -> Columns<Line<'a>> {
    let [base_head, other_head] = match table.columns() {
        [base, other] => [base.clone(), other.clone()],
        _ => ["mean".to_string(), "mean".to_string()],
    };
    let base =
        |at: usize| move |line: &Line<'_>| line.moments(line.pair.base).into_iter().nth(at).expect("3");
    let other =
        |at: usize| move |line: &Line<'_>| line.moments(line.pair.other).into_iter().nth(at).expect("3");
    columns
        .key("base_n", base(0))
        .add("base_mean", base_head, "Mean of the base", base(1))
        .add("base_sd", "sd", "Its standard deviation", base(2))
        .key("other_n", other(0))
        .add("other_mean", other_head, "Mean of the other", other(1))
        .add("other_sd", "sd", "Its standard deviation", other(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use slablab_stats::Moments;
    use slablab_stats::table::{Pairs, Row, Test};

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

    #[test]
    fn text_has_the_verdicts() {
        let expected = "                 SLAB     SLUB  gain %
 netio        13.1900  14.4700   -9.70
 hackbench|2   1.2000   1.2100   -0.83
 =mkfs\\x1b     2.0000        -       -

                                               verdict     95 % of gain
 netio                                           worse  -12.29 to -7.18
 hackbench|2                 no difference can be told    -7.11 to 5.08
 =mkfs\\x1b    no difference can be told: out of memory                -

              Holm's p
 netio         <0.0001
 hackbench|2    0.7738
 =mkfs\\x1b           -

1 of 3 pairs differ; in 2 no difference can be told (Welch's t-test,
Holm's correction over 2 tests, 5 %).
";
        check(&comparison_table(&table(), ALL, Some(72)), expected);
        let wide = comparison_table(&table(), ALL, None);
        assert!(wide.contains(" worse  -12.29 to -7.18   <0.0001\n"), "{wide}");
        let expected = "|  | SLAB | SLUB | gain % | verdict | 95 % of gain | Holm's p |
|---|---:|---:|---:|---:|---:|---:|
| netio | 13.1900 | 14.4700 | -9.70 | worse | -12.29 to -7.18 | \\<0.0001 |
| hackbench\\|2 | 1.2000 | 1.2100 | -0.83 | no difference can be told | -7.11 to 5.08 | 0.7738 |
| =mkfs\\\\x1b | 2.0000 | - | - | no difference can be told: out of memory | - | - |

1 of 3 pairs differ; in 2 no difference can be told (Welch's t-test, Holm's correction over 2 tests, 5 %).
";
        check(&comparison_markdown(&table(), ALL), expected);
    }

    #[test]
    fn three_columns_are_named_in_each_line() {
        let mut table = Table::new(["slab", "slqb", "slub"]);
        let cells = vec![measured(1.03, 0.05), measured(0.90, 0.04), measured(1.05, 0.06)];
        table.row(Row { name: "7".to_string(), better: Better::Lower, cells }).expect("three cells");
        let found = comparison_table(&table, ALL, None);
        let begins = |line: &str, expected: &str| line.starts_with(expected);
        for (line, expected) in
            found.lines().zip(["  ", " 7: slab to slqb ", " 7: slab to slub ", " 7: slqb to slub "])
        {
            assert!(begins(line, expected), "{found}");
        }
    }

    #[test]
    fn mails_have_the_sentence_below() {
        let expected = "                                        SLAB                   SLUB
Amean     netio             13.19 (   0.00%)       14.47 *  -9.70%*
Amean     hackbench|2        1.20 (   0.00%)        1.21 (  -0.83%)
Amean     =mkfs\\x1b          2.00 (   0.00%)          out of memory

1 of 3 pairs differ; in 2 no difference can be told (Welch's t-test,
Holm's correction over 2 tests, 5 %).
";
        let options = Options { wrap: Some(72), ..Options::default() };
        check(&comparison_mmtests(&table(), ALL, &options), expected);
        let found = comparison_avg_std(&table(), ALL, Digits::Decimals(2), Some(72));
        let first = "netio (10 runs, lower better):\nSLAB AVG=13.19 STD=0.40\nSLUB AVG=14.47 STD=0.23\n\n";
        assert!(found.starts_with(first), "{found}");
        let last =
            "=mkfs\\x1b (10 runs, lower better):\nSLAB AVG=2.00 STD=0.10\nSLUB out of memory\n\n1 of 3 pairs";
        assert!(found.contains(last), "{found}");
    }

    #[test]
    fn programs_read_every_number() {
        let csv = comparison_csv(&table(), ALL);
        let lines: Vec<&str> = csv.lines().collect();
        let heads = "row,base,other,better,base_n,base_mean,base_sd,other_n,other_mean,other_sd,gain_percent,\
                     gain_percent_low_95,gain_percent_high_95,p,p_holm,hedges_g,cliffs_delta,verdict";
        assert_eq!(lines[0], heads);
        assert!(lines[1].starts_with("netio,SLAB,SLUB,lower,10,13.19,0.4,10,14.47,0.23,-9.7043"), "{csv}");
        let last = "'=mkfs\\x1b,SLAB,SLUB,lower,10,2,0.1,,,,,,,,,,,no difference can be told: out of memory";
        assert_eq!(lines[3], last);
        let json = comparison_json(&table(), ALL);
        assert_eq!(json["columns"], json!(["SLAB", "SLUB"]));
        assert_eq!(json["pairs"][0]["p_holm"], json!(table().compare(ALL)[0].p_holm));
        assert_eq!(json["pairs"][1]["verdict"], "no difference can be told");
        assert_eq!(json["pairs"][2]["p"], Value::Null);
        assert_eq!(json["summary"], summary(&table().compare(ALL), ALL));
    }
}
