//! A series of commits: which one moves which number.

use crate::series::{Entry, Measured, Move, Moves, Number, Of, SIGNIFICANCE, Series, State};
use schemars::JsonSchema;
use serde::Serialize;
use slablab_report::column::{Columns, Style};
use slablab_report::document::{Named, named};
use slablab_report::frame::Frame;
use slablab_report::html::chart::{Axis, Lines, Scale, Series as Line, Shape};
use slablab_report::html::{Cell, Head, Table, number};
use slablab_report::text::counted;
use slablab_report::{Answer, Document, visible};
use slablab_stats::Sample;

/// Numbers of a commit in the text, unless all are asked for.
const FEW: usize = 8;

/// Commits that the sentence names.
const NAMED: usize = 3;

/// Lines of a chart.
const LINES: usize = 6;

/// Digits of a commit that are shown.
const DIGITS: usize = 12;

/// Characters of a title that are left at least.
const TITLE: usize = 16;

#[derive(Serialize, JsonSchema)]
struct SeriesDocument<'a> {
    /// The folder of the kernel tree.
    tree: &'a str,
    /// The commits, as they were asked for.
    range: &'a str,
    /// The recording that was replayed, by its path; null if an experiment was run.
    recording: Option<&'a str>,
    /// The experiment that was run; null if a recording was replayed.
    experiment: Option<&'a str>,
    /// The part that was run, in words; null for all commits.
    part: Option<&'a str>,
    /// Whether each run of a commit gives the same numbers, so that any difference is one.
    is_exact: bool,
    /// The test of differences; null where numbers are exact.
    test: Option<&'static str>,
    /// The probability of even one false move, at most; null where numbers are exact.
    significance: Option<f64>,
    /// Numbers of commits that were compared with the commit before.
    compared: usize,
    numbers: Vec<NumberDocument<'a>>,
    /// The commits in their order; the first is the base.
    commits: Vec<CommitDocument<'a>>,
    /// What moves, by commit.
    moves: Vec<MoveDocument<'a>>,
}

/// Something that is measured.
#[derive(Serialize, JsonSchema)]
struct NumberDocument<'a> {
    name: &'a str,
    /// Machine and parameters, where there are several; else empty.
    place: &'a str,
    /// Empty for a count.
    unit: &'a str,
    /// Null where neither lower nor higher values are better.
    lower_is_better: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
struct CommitDocument<'a> {
    /// All digits.
    commit: &'a str,
    /// The first line of its message.
    title: &'a str,
    /// measured, untouched, does not build, ended or not run.
    state: &'static str,
    /// The first error of the compiler, or what the kernel's code said when it ended a run.
    problem: Option<&'a str>,
    /// Numbers that it moves.
    moved: usize,
    /// Seconds of its build.
    build_s: Option<f64>,
    /// Seconds of its runs.
    run_s: Option<f64>,
    /// Names all that its build was made of.
    digest: Option<&'a str>,
    /// The means, in the order of `numbers`; empty where there are none.
    values: Vec<Option<f64>>,
}

#[derive(Serialize, JsonSchema)]
struct MoveDocument<'a> {
    commit: &'a str,
    /// The last commit before it that has numbers: where it is not the commit before, one between may be the
    /// one that moves it.
    since: &'a str,
    name: &'a str,
    place: &'a str,
    from: f64,
    to: f64,
    /// Null if the value before was 0.
    change_percent: Option<f64>,
    /// Null where numbers are exact.
    p: Option<f64>,
    /// The p-value after Holm's correction over the series; null where numbers are exact.
    p_holm: Option<f64>,
}

impl Document for SeriesDocument<'_> {
    const NAME: &'static str = "slablab.linux-commits.1";
    const TITLE: &'static str = "slablab linux commits: which commit of a series moves which number";
}

pub(super) fn schema() -> Named {
    named::<SeriesDocument>()
}

/// A commit with what it moves.
struct Row<'a> {
    place: usize,
    entry: &'a Entry,
    moves: Vec<&'a Move>,
}

/// The answer. With `wide` it lists every number that moves.
pub fn series_answer(series: &Series, wide: bool) -> Answer {
    let moves = series.moves();
    let rows: Vec<Row> = series
        .commits
        .iter()
        .enumerate()
        .map(|(place, entry)| Row { place, entry, moves: moves.of(place).collect() })
        .collect();
    // A long series is mostly of commits to other things.
    let shown: Vec<&Row> =
        rows.iter().filter(|row| row.place == 0 || row.entry.state != State::Untouched).collect();
    let columns = columns();
    let label = |row: &&Row| Cell::Name(short(&row.entry.id).into());
    let keys = ["result", "most", "change", "seconds", "title_shown"];
    let table = columns.text(("commit", &label), &keys, &shown, Style::Units).numbers(3..5).cut(5, TITLE);
    let mut answer = Answer::new("A series of commits", sentence(series, &moves, &rows))
        .document(&document(series, &moves, &rows))
        .rows(frame(series, &moves))
        .facts(facts(series, &moves))
        .table(table, &["s", "most"])
        .section("Commits")
        .page_table("Commits", columns.html(("commit", &label), &keys, &shown));
    for row in &rows {
        if let Some(problem) = row.entry.state.problem() {
            let head = format!("{} {}", short(&row.entry.id), verdict(row));
            answer = match row.entry.state {
                // The compiler shows where in the line it is: its lines stay whole.
                State::DoesNotBuild(_) => answer.heading(head).command(problem),
                _ => answer.entry(format!("{head}:"), problem.lines().map(str::to_string)),
            };
        }
    }
    let untouched = rows.len() - shown.len();
    if untouched > 0 {
        answer = answer.line(match untouched {
            1 => "1 commit touches no file that the build reads: it has the numbers of the commit before it.".into(),
            many => format!(
                "{many} commits touch no file that the build reads: they have the numbers of the commit before them."
            ),
        });
    }
    for row in rows.iter().filter(|row| !row.moves.is_empty()) {
        answer = moved(answer, series, row, wide);
    }
    chart(answer, series, &moves).remarks(basis(series, &moves))
}

/// A table of what a commit moves, in the text and on the page.
fn moved(answer: Answer, series: &Series, row: &Row, wide: bool) -> Answer {
    let columns = move_columns(series.is_exact());
    let label = |one: &&Move| Cell::Name(one.number.label());
    let mut keys = vec!["from", "to", "change"];
    keys.extend((!series.is_exact()).then_some("p_shown"));
    let few = if wide { row.moves.len() } else { FEW.min(row.moves.len()) };
    let since = row.moves.first().map_or(row.place, |one| one.since);
    let between: Vec<&str> =
        series.commits[since + 1..row.place].iter().map(|entry| short(&entry.id)).collect();
    let or = match between.as_slice() {
        [] => String::new(),
        ids => format!(", or {} before it, without numbers", ids.join(", ")),
    };
    let head = format!("{} {}{or}", short(&row.entry.id), row.entry.title);
    let table = columns.text(("number", &label), &keys, &row.moves[..few], Style::Units);
    let answer = answer.heading(head.clone()).table(table, &[]);
    let rest = row.moves.len() - few;
    let answer = match rest {
        0 => answer,
        rest => answer.line(format!("And {} more (--wide).", counted(rest as u64, "number"))),
    };
    let page = columns.html(("number", &label), &keys, &row.moves);
    if few < row.moves.len() { answer.folded_table(&head, page) } else { answer.page_table(&head, page) }
}

fn sentence(series: &Series, moves: &Moves, rows: &[Row]) -> String {
    let whole = rows.len().saturating_sub(1) as u64;
    let what = match &series.of {
        Of::Recording(path) => format!("replays of {}", visible::name(path)),
        Of::Experiment(name) => format!("runs of {}", visible::name(name)),
    };
    let movers: Vec<&Row> = rows.iter().filter(|row| !row.moves.is_empty()).collect();
    let named = |row: &&Row| {
        let most = row.moves[0];
        format!("{} ({}) {}", short(&row.entry.id), row.entry.title, change_words(most))
    };
    let listed: Vec<String> = movers.iter().take(NAMED).map(named).collect();
    let of = counted(whole, "commit");
    let mut said = match (movers.len() as u64, listed.join(", ")) {
        (0, _) if moves.compared == 0 => {
            format!("No two of the base and {of} have numbers to compare in {what}")
        }
        (0, _) => format!("None of {of} moves a number in {what}"),
        (1, one) => {
            let numbers = if movers[0].moves.len() == 1 { "a number" } else { "numbers" };
            format!("One of {of} moves {numbers} in {what}: {one}")
        }
        (number, list) if number as usize > NAMED => {
            format!("{number} of {of} move numbers in {what}: {list}, and {} more", number as usize - NAMED)
        }
        (number, list) => format!("{number} of {of} move numbers in {what}: {list}"),
    };
    let count = |is: fn(&State) -> bool| rows.iter().filter(|row| is(&row.entry.state)).count();
    let others = [
        (count(|state| matches!(state, State::DoesNotBuild(_))), "does not build", "do not build"),
        (count(|state| matches!(state, State::Ended(_))), "ends its run early", "end their runs early"),
        (count(|state| *state == State::NotRun), "was not run", "were not run"),
    ];
    for (number, one, many) in others.into_iter().filter(|(number, ..)| *number > 0) {
        said += &format!("; {number} {}", if number == 1 { one } else { many });
    }
    said + "."
}

/// What a number does, in a sentence.
fn change_words(one: &Move) -> String {
    match one.change_percent() {
        Some(percent) => format!("{} by {percent:+.1} %", one.number.label()),
        None => format!("{} from 0 to {}", one.number.label(), number::fixed(one.to, one.number.decimals)),
    }
}

/// What became of a commit, in a few words.
fn verdict(row: &Row) -> String {
    match &row.entry.state {
        State::Measured(_) if row.place == 0 => "the base".into(),
        State::Measured(_) if row.moves.is_empty() => "moves nothing".into(),
        State::Measured(_) => format!("moves {}", row.moves.len()),
        State::Untouched => "untouched".into(),
        State::DoesNotBuild(_) => "does not build".into(),
        State::Ended(words) if words.starts_with("WARN") => "warns".into(),
        State::Ended(words) if words.starts_with("BUG") => "BUG".into(),
        State::Ended(_) => "ends early".into(),
        State::NotRun => "not run".into(),
    }
}

fn columns<'a>() -> Columns<&'a Row<'a>> {
    let seconds = |row: &&Row| {
        let all: Vec<f64> = [row.entry.build_s, row.entry.run_s].into_iter().flatten().collect();
        if all.is_empty() { Cell::Empty } else { Cell::Number(all.iter().sum(), 1) }
    };
    let most = |row: &&Row| row.moves.first().copied().cloned();
    Columns::default()
        .people("result", "result", "result", |row: &&Row| Cell::Text(verdict(row)))
        .words()
        .people("most", "most", "moves most", move |row| {
            most(row).map_or(Cell::Empty, |one| Cell::Name(one.number.label()))
        })
        .words()
        .people("change", "change", "change", move |row| most(row).map_or(Cell::Empty, |one| change(&one)))
        .people("seconds", "s", "seconds", seconds)
        .people("title_shown", "title", "title", |row| Cell::Name(row.entry.title.clone()))
        .words()
}

fn change(one: &Move) -> Cell {
    let percent = one.change_percent().map(|percent| format!("{percent:+.1} %"));
    Cell::Text(percent.unwrap_or_else(|| "from 0".into()))
}

fn move_columns<'a>(is_exact: bool) -> Columns<&'a Move> {
    let value = move |one: &Move, value: f64| match is_exact {
        true => Cell::Count(value as u64),
        false => Cell::Number(value, one.number.decimals),
    };
    Columns::default()
        .people("from", "before", "before", move |one: &&Move| value(one, one.from))
        .people("to", "after", "after", move |one| value(one, one.to))
        .people("change", "change", "change", |one| change(one))
        .people("p_shown", "Holm's p", "p after Holm's correction", move |one| match one.p_holm {
            None if is_exact => Cell::Empty,
            None => Cell::Text("not tested".into()),
            Some(p) if p < 0.0001 => Cell::Text("<0.0001".into()),
            Some(p) => Cell::Text(format!("{p:.4}")),
        })
}

fn facts(series: &Series, moves: &Moves) -> Vec<(&'static str, Cell)> {
    let count = |is: fn(&State) -> bool| {
        Cell::Count(series.commits.iter().skip(1).filter(|entry| is(&entry.state)).count() as u64)
    };
    vec![
        ("Commits", Cell::Count(series.commits.len().saturating_sub(1) as u64)),
        ("Built and run", count(|state| matches!(state, State::Measured(_)))),
        ("Move a number", Cell::Count(moves.commits().len() as u64)),
        ("Without numbers", count(|state| !matches!(state, State::Measured(_) | State::Untouched))),
    ]
}

/// What moves, over the commits.
fn chart(answer: Answer, series: &Series, moves: &Moves) -> Answer {
    let mut numbers: Vec<&Number> = Vec::new();
    // The first of each commit, then the second of each.
    let most = moves.commits().into_iter().map(|at| moves.of(at).count()).max().unwrap_or(0);
    for nth in 0..most {
        for one in moves.commits().into_iter().filter_map(|at| moves.of(at).nth(nth)) {
            if !numbers.contains(&&one.number) && numbers.len() < LINES {
                numbers.push(&one.number);
            }
        }
    }
    let first = |number: &Number| (0..series.commits.len()).find_map(|at| series.measured(at)?.mean(number));
    let numbers: Vec<(&Number, f64)> = numbers
        .into_iter()
        .filter_map(|number| Some((number, first(number).filter(|mean| *mean != 0.0)?)))
        .collect();
    if numbers.is_empty() {
        return answer;
    }
    let of = |at: usize, (number, first): &(&Number, f64)| {
        Some(100.0 * series.measured(at)?.mean(number)? / first)
    };
    let places = 0..series.commits.len();
    let line = |one: &(&Number, f64)| Line {
        name: one.0.label(),
        points: places.clone().filter_map(|at| Some((at as f64, of(at, one)?))).collect(),
        band: Vec::new(),
    };
    let lines = Lines {
        x: Axis::new("commits after the base", Scale::Whole),
        y: Axis::new("of the first value", Scale::Percent),
        shape: Shape::Steps,
        series: numbers.iter().map(line).collect(),
    };
    let heads = numbers.iter().map(|(number, _)| Head::number(&number.label()).unit("%"));
    let mut table = Table::new([Head::number("place"), Head::text("commit")].into_iter().chain(heads));
    for (at, entry) in series.commits.iter().enumerate() {
        let cells = numbers.iter().map(|one| of(at, one).map_or(Cell::Empty, |value| Cell::Number(value, 1)));
        let first = [Cell::Count(at as u64), Cell::Name(short(&entry.id).into())];
        table.row(first.into_iter().chain(cells));
    }
    answer.section("Over the series").figure("What moves, over the series", lines, table)
}

fn basis(series: &Series, moves: &Moves) -> Vec<String> {
    let words = match series.is_exact() {
        true => {
            "A replay has the same numbers whenever it runs, so no seed is varied and nothing is tested: any \
                 difference from the commit before is that commit's."
                .to_string()
        }
        false => format!(
            "Each commit is compared with the one before: Welch's t-test over the same seeds, Holm's correction \
             over the {} of the series, {} %.",
            counted(moves.tests() as u64, "test"),
            SIGNIFICANCE * 100.0
        ),
    };
    let tree = format!("Tree: {}, {}.", series.tree, series.range);
    let part = (!series.part.is_empty()).then(|| {
        format!("This is {} of the commits: `--cached` shows all that the folder has.", series.part)
    });
    let single = (moves.untested > 0).then(|| {
        format!("{} have one run each, and cannot be tested.", counted(moves.untested as u64, "number"))
    });
    [Some(words), single, Some(tree), part].into_iter().flatten().collect()
}

fn document<'a>(series: &'a Series, moves: &'a Moves, rows: &'a [Row<'a>]) -> SeriesDocument<'a> {
    let (recording, experiment) = match &series.of {
        Of::Recording(path) => (Some(path.as_str()), None),
        Of::Experiment(name) => (None, Some(name.as_str())),
    };
    let tested = !series.is_exact();
    let number = |number: &'a Number| NumberDocument {
        name: &number.name,
        place: &number.place,
        unit: &number.unit,
        lower_is_better: number.lower_is_better,
    };
    let means = |measured: &Measured| series.numbers().iter().map(|number| measured.mean(number)).collect();
    let commit = |row: &'a Row<'a>| CommitDocument {
        commit: &row.entry.id,
        title: &row.entry.title,
        state: row.entry.state.word(),
        problem: row.entry.state.problem(),
        moved: row.moves.len(),
        build_s: row.entry.build_s,
        run_s: row.entry.run_s,
        digest: row.entry.digest.as_deref(),
        values: series.measured(row.place).map(means).unwrap_or_default(),
    };
    let moved = |one: &'a Move| MoveDocument {
        commit: &series.commits[one.commit].id,
        since: &series.commits[one.since].id,
        name: &one.number.name,
        place: &one.number.place,
        from: one.from,
        to: one.to,
        change_percent: one.change_percent(),
        p: one.p,
        p_holm: one.p_holm,
    };
    SeriesDocument {
        tree: &series.tree,
        range: &series.range,
        recording,
        experiment,
        part: Some(series.part.as_str()).filter(|part| !part.is_empty()),
        is_exact: !tested,
        test: tested.then_some("Welch's t-test"),
        significance: tested.then_some(SIGNIFICANCE),
        compared: moves.compared,
        numbers: series.numbers().iter().map(number).collect(),
        commits: rows.iter().map(commit).collect(),
        moves: moves.all.iter().map(moved).collect(),
    }
}

/// A row for each number of each commit; for a commit without numbers one without a number.
fn frame(series: &Series, moves: &Moves) -> Frame {
    let keys = [
        "commit",
        "title",
        "state",
        "number",
        "place",
        "unit",
        "runs",
        "mean",
        "sd",
        "since",
        "change_percent",
        "p",
        "p_holm",
        "moves",
    ];
    let mut frame = Frame::new(keys);
    for (at, entry) in series.commits.iter().enumerate() {
        let head = [
            Cell::Name(entry.id.clone()),
            Cell::Name(entry.title.clone()),
            Cell::Text(entry.state.word().into()),
        ];
        let Some(measured) = series.measured(at) else {
            frame.row(head.into_iter().chain(std::iter::repeat_n(Cell::Empty, keys.len() - 3)));
            continue;
        };
        for number in series.numbers() {
            let values = measured.of(number).unwrap_or_default();
            let moments = Sample::new(values.to_vec()).ok().map(|sample| sample.moments());
            let found = moves.of(at).find(|one| one.number == *number);
            let part =
                |value: Option<f64>, places| value.map_or(Cell::Empty, |value| Cell::Number(value, places));
            let cells = [
                Cell::Name(number.name.clone()),
                Cell::Name(number.place.clone()),
                Cell::Text(number.unit.clone()),
                Cell::Count(values.len() as u64),
                part(measured.mean(number), number.decimals),
                part(moments.filter(|_| values.len() > 1).map(|of| of.sd()), number.decimals.max(4)),
                found.map_or(Cell::Empty, |one| Cell::Name(series.commits[one.since].id.clone())),
                part(found.and_then(Move::change_percent), 2),
                part(found.and_then(|one| one.p), 4),
                part(found.and_then(|one| one.p_holm), 4),
                Cell::Count(u64::from(found.is_some())),
            ];
            frame.row(head.iter().cloned().chain(cells));
        }
    }
    frame
}

fn short(id: &str) -> &str {
    id.get(..DIGITS).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series() -> Series {
        let number = |name: &str, is_main| Number {
            name: name.into(),
            place: String::new(),
            unit: String::new(),
            decimals: 0,
            lower_is_better: None,
            is_main,
        };
        let measured = |slabs: f64, locks: f64| {
            let numbers = vec![number("alloc_slab", true), number("lock_node_list", false)];
            State::Measured(Measured { numbers, values: vec![vec![slabs], vec![locks]] })
        };
        let entry = |digit: char, title: &str, state| Entry {
            id: digit.to_string().repeat(40),
            title: title.into(),
            state,
            digest: None,
            build_s: Some(3.25),
            run_s: Some(1.0),
        };
        Series {
            tree: "linux".into(),
            range: "a..e".into(),
            of: Of::Recording("load.trace".into()),
            commits: vec![
                entry('a', "Linux 6.1", measured(10.0, 4.0)),
                entry('b', "mm/slub: a larger order", measured(15.0, 4.0)),
                entry('c', "net: a fix", State::Untouched),
                entry(
                    'd',
                    "mm/slub: a syntax error",
                    State::DoesNotBuild("mm/slub.c:1:1: error: x\n    1 | x".into()),
                ),
                entry('e', "mm/slub: a check", State::Ended("BUG at mm/slub.c:7".into())),
            ],
            part: String::new(),
        }
    }

    #[test]
    fn the_commit_and_the_number_are_named_first() {
        let text = series_answer(&series(), false).text(false);
        let expected = "\
One of 4 commits moves a number in replays of load.trace: bbbbbbbbbbbb (mm/slub:
a larger order) alloc_slab by +50.0 %; 1 does not build; 1 ends its run early.

 commit        result          most         change    s  title
 aaaaaaaaaaaa  the base        -                 -  4.2  Linux 6.1
 bbbbbbbbbbbb  moves 1         alloc_slab  +50.0 %  4.2  mm/slub: a larger order
 dddddddddddd  does not build  -                 -  4.2  mm/slub: a syntax error
 eeeeeeeeeeee  BUG             -                 -  4.2  mm/slub: a check

dddddddddddd does not build
    mm/slub.c:1:1: error: x
        1 | x
eeeeeeeeeeee BUG:
    BUG at mm/slub.c:7
1 commit touches no file that the build reads: it has the numbers of the commit
";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn programs_read_every_number() {
        let answer = series_answer(&series(), false);
        let json = answer.json();
        assert_eq!(json["moves"].as_array().map(Vec::len), Some(1), "{json}");
        // The commit that touches nothing has the numbers of the one before it.
        assert_eq!(json["commits"][2]["values"], json["commits"][1]["values"]);
        let csv = answer.csv().expect("rows");
        assert_eq!(csv.lines().count(), 1 + 3 * 2 + 2, "{csv}");
        assert!(answer.page("slablab").contains("a larger order"));
    }
}
