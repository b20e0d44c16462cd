//! Two engines over every workload: the rows that differ, and what else differs in them.

mod document;
mod lines;
mod page;

use super::comparison::{comparison_avg_std, comparison_mmtests};
use super::finding::joined;
use crate::published::{Said, verdicts};
use crate::suite::{SuiteResults, pairs};
use crate::workload::{Pair, Workload};
use crate::workloads::find;
use document::SuiteDocument;
use lines::{Line, columns, engines, failures, lines, shown, summaries, what_ran};
use page::page_blocks;
use slablab_report::column::{Columns, Style};
use slablab_report::document::{Named, named};
use slablab_report::html::Cell;
use slablab_report::text::counted;
use slablab_report::{Answer, text};
use slablab_stats::table::avg_std::Digits;
use slablab_stats::table::mmtests::Options;
use slablab_stats::table::{Rules, Verdict};
use std::collections::BTreeSet;

/// The schema of the answer.
pub(super) fn schema() -> Named {
    named::<SuiteDocument>()
}

/// Columns of the text that are left out on a narrow terminal, in this order.
const LEFT_OUT: [&str; 2] = ["95 % of gain", "unit"];

/// How the answer of a suite is shown.
#[derive(Clone, Copy, Default)]
pub struct SuiteLook<'a> {
    /// What the engines are, where their names do not say it.
    pub engines: Option<&'a str>,
    /// The widest line, where the terminal does not say it.
    pub wrap: Option<usize>,
    /// Whether the text has every row; else those without a difference are one line.
    pub all: bool,
    /// Whether there is a page.
    pub page: bool,
}

/// The answer of `suite`.
pub fn suite_answer(suite: &SuiteResults, look: SuiteLook<'_>) -> Answer {
    let (lines, table) = lines(suite);
    let engines = engines(suite);
    let columns = columns(engines.clone());
    let title = format!("{} against {}", engines[1], engines[0]);
    let mut answer = Answer::new(&title, sentence(&lines, &engines))
        .within(look.wrap)
        .heading(title)
        .line(what_ran(suite));
    answer = look.engines.into_iter().fold(answer, |answer, engines| answer.line(engines));
    let keys = ["base_shown", "other_shown", "unit", "gain_percent", "verdict", "gain_interval"];
    let label = |line: &Line| Cell::Name(line.name());
    let is_shown = |line: &&Line| look.all || line.changes();
    let shown: Vec<&Line> = lines.iter().filter(is_shown).collect();
    if !shown.is_empty() {
        let rows = shown.iter().copied();
        let table = columns.text(("", &label), &keys, rows, Style::Bytes).names(1..3);
        answer = answer.table(table, &LEFT_OUT);
    }
    let alike: Vec<String> = lines.iter().filter(|line| !is_shown(line)).map(Line::name).collect();
    if !alike.is_empty() {
        let words = format!(
            "No difference is certain in {} (--wide shows them):",
            counted(alike.len() as u64, "row")
        );
        answer = answer.entry(words, [alike.join(", ")]);
    }
    answer = summaries(&lines).into_iter().fold(answer, Answer::line);
    if lines.iter().any(|line| !line.differences.is_empty()) {
        let heading = "what else differs in the rows that differ";
        answer = answer.heading(heading).table(reasons(&engines, &lines), &[]);
    }
    answer = known(&lines).into_iter().fold(answer, |answer, said| answer.line(said));
    answer = failures(suite).into_iter().fold(answer, |answer, why| {
        let mut why = why.lines().map(str::to_string);
        let first = why.next().unwrap_or_default();
        answer.entry(first, why)
    });
    if look.page {
        answer = page_blocks(answer, suite, &lines);
    }
    let basis = "Costs of the machines are documented or assumed: slablab list machines NAME. Intervals show the \
                 scatter of the model's repeats, not that of a real machine.";
    let options = Options { wrap: look.wrap, ..Options::default() };
    let head = mail_head(suite, look);
    answer
        .remarks([basis.to_string()])
        .document(&SuiteDocument::new(suite, &lines))
        .rows(columns.frame(&lines))
        .form("mmtests", head.clone() + &comparison_mmtests(&table, Rules::default(), &options))
        .form("avgstd", head + &comparison_avg_std(&table, Rules::default(), Digits::Decimals(2), look.wrap))
}

/// What stands above a table that goes into a mail, where nothing else says that it was not measured.
fn mail_head(suite: &SuiteResults, look: SuiteLook<'_>) -> String {
    let program = suite.results.iter().flatten().next().map_or("", |results| &results.program);
    let what = format!("Modelled by slablab {program}, not measured: {}.", what_ran(suite));
    let wrapped = |line: &str| text::wrapped_within(look.wrap.unwrap_or(80), line, "", "  ");
    wrapped(&what) + &look.engines.map_or(String::new(), wrapped) + "\n"
}

/// Which published figures of the workloads that differ the model has, and which it has not.
fn known(lines: &[Line]) -> Vec<String> {
    let differ: BTreeSet<&str> =
        lines.iter().filter(|line| line.changes()).map(|line| line.workload).collect();
    let of = |name: &str| -> Vec<String> {
        let verdicts = find(name).map_or(Vec::new(), verdicts);
        let words = |said: Said| {
            let not = if said.others.is_empty() { String::new() } else { format!("; not: {}", said.others) };
            format!("{} of {}{not}", said.agree, said.experiment)
        };
        verdicts.into_iter().map(words).collect()
    };
    let said = |name: &str| match of(name).as_slice() {
        [] => format!("Published relations of {name}: none was judged under this model."),
        all => format!("Published relations of {name} that the model has: {}.", all.join("; ")),
    };
    differ.into_iter().map(said).collect()
}

/// The rows that differ, and whose runs do not scatter: how many, and which changes most.
fn untested(lines: &[Line]) -> Option<String> {
    let gain = |line: &&Line| line.compared.gain_percent.unwrap_or(0.0);
    let exact: Vec<&Line> = lines.iter().filter(|line| line.compared.is_unscattered()).collect();
    let most = exact.iter().max_by(|a, b| gain(a).abs().total_cmp(&gain(b).abs()))?;
    let (gain, name) = (gain(most), most.name());
    Some(match exact.len() {
        1 => format!("1 row whose runs do not scatter changes by {gain:+.2} % ({name}), which nothing tests"),
        many => format!(
            "{many} rows whose runs do not scatter change, by {gain:+.2} % at most ({name}), which nothing tests"
        ),
    })
}

/// How many workloads differ, with the largest gain and the largest loss; how many rows have no numbers.
fn sentence(lines: &[Line], [base, other]: &[String; 2]) -> String {
    let workloads = |lines: &mut dyn Iterator<Item = &Line>| {
        lines.map(|line| line.workload).collect::<BTreeSet<_>>().len()
    };
    let differ: Vec<&Line> = lines.iter().filter(|line| line.differs()).collect();
    let all = counted(workloads(&mut lines.iter()) as u64, "workload");
    let is_without = |line: &&Line| {
        matches!(line.compared.verdict, Verdict::Untested(_)) && !line.compared.is_unscattered()
    };
    let without = lines.iter().filter(is_without).count();
    let failed = match without {
        0 => String::new(),
        without => {
            let have = if without == 1 { "has" } else { "have" };
            format!("; {without} of {} {have} no difference to test", counted(lines.len() as u64, "row"))
        }
    };
    let untested = untested(lines);
    if differ.is_empty() {
        let rows = counted(lines.len() as u64, "row");
        let certain = format!("difference between {base} and {other} is certain in {all} ({rows}){failed}");
        return match untested {
            Some(untested) => format!("{untested}; no {certain}."),
            None => format!("No {certain}."),
        };
    }
    let failed = untested.map_or(String::new(), |untested| format!("; {untested}")) + &failed;
    let gain = |line: &&&Line| line.compared.gain_percent;
    let by = |line: &&Line| Some(format!("{:.2} % ({})", line.compared.gain_percent?.abs(), line.name()));
    let largest = |word: &str, wanted: fn(f64) -> bool, sign: f64| {
        let of = differ.iter().filter(|line| gain(line).is_some_and(wanted));
        let most =
            of.max_by(|a, b| (sign * gain(a).unwrap_or(0.0)).total_cmp(&(sign * gain(b).unwrap_or(0.0))));
        match most.and_then(by) {
            Some(most) => format!("the largest {word} is {most}"),
            None => format!("there is no {word}"),
        }
    };
    let ends = [largest("gain", |gain| gain > 0.0, 1.0), largest("loss", |gain| gain < 0.0, -1.0)];
    format!(
        "Against {base}, {other} differs in {} of {all} ({} of {}): {}{failed}.",
        workloads(&mut differ.iter().copied()),
        differ.len(),
        counted(lines.len() as u64, "row"),
        joined(ends.into())
    )
}

/// A row for each number that differs, in the rows that differ.
fn reasons([base, other]: &[String; 2], lines: &[Line]) -> text::Table {
    let mut table = text::Table::new(["", base, other]).names(1..3);
    for line in lines.iter().filter(|line| !line.differences.is_empty()) {
        table.row([line.name().as_str(), "", ""]);
        for one in &line.differences {
            table.row([&format!("  {}, {}", one.name, one.unit), &shown(one.base), &shown(one.other)]);
        }
    }
    table
}

/// The answer of `suite --list`: the pairs of workload and machine of the suite, with what each shows.
pub fn suite_list() -> Answer {
    let all: Vec<(&Workload, &Pair)> = pairs().collect();
    let columns = Columns::default()
        .key("workload", |(workload, _): &(&Workload, &Pair)| Cell::Text(workload.name.into()))
        .key("machine", |(_, pair)| Cell::Text(pair.machine.into()))
        .key("parameters", |(_, pair)| Cell::Text(pair.parameters.replace('\n', ", ")))
        .key("shows", |(_, pair)| Cell::Text(pair.why.into()));
    let sentence = format!("The suite runs {} pairs of workload and machine.", all.len());
    let answer = Answer::new("The suite", sentence).rows(columns.frame(&all)).heading("what each shows");
    all.iter().fold(answer, |answer, (workload, pair)| {
        let parameters = pair.parameters.replace('\n', ", ");
        let parameters = if parameters.is_empty() { parameters } else { format!(", {parameters}") };
        let line = format!("{} on {}{parameters}", workload.name, pair.machine);
        answer.entry(line, [pair.why.to_string()])
    })
}
