//! Results side by side: what differs between them, and each quantity that two or more have.

use crate::answer::{Answer, Fact, Quantity, Role};
use crate::document::Document;
use crate::kinds::Kind;
use slablab_report::error::{Error, Result};
use slablab_report::text::counted;
use slablab_stats::table::{self, Better, Cell, Pair, Rules, Table, Test, Verdict, gain_percent};
use slablab_stats::{Bootstrap, Interval, quantile};

/// How results are compared.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Compare results of different inputs, too.
    pub force: bool,
    /// The number of details, such as caches, in the answer: those that differ most.
    pub details: usize,
}

impl Default for Options {
    /// Equal inputs only; ten details.
    fn default() -> Options {
        Options { force: false, details: 10 }
    }
}

/// Results side by side. The first is the base.
#[derive(Debug)]
pub struct Comparison {
    pub(crate) kind: &'static Kind,
    /// The name of each result.
    pub(crate) columns: Vec<String>,
    /// Facts with more than one value: the name, and the value in each result.
    pub(crate) differs: Vec<(String, Vec<Option<String>>)>,
    /// Facts with one value.
    pub(crate) same: Vec<(String, String)>,
    /// Facts that no result has.
    pub(crate) unknown: Vec<String>,
    /// What the table cannot tell, each a sentence.
    pub(crate) cautions: Vec<String>,
    /// Engines and quantities that only one result has.
    pub(crate) alone: Vec<String>,
    /// The tables: answer, details, controls. None is empty.
    pub(crate) sections: Vec<Section>,
}

/// A table: quantities with one role, and one correction over all of them.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) role: Role,
    pub(crate) rows: Vec<Row>,
    /// The number of further quantities that were compared, and are not in `rows`.
    pub(crate) hidden: usize,
    /// The number of tests over which p-values are corrected. 0 if there are no repeats.
    pub(crate) tests: usize,
    /// The test.
    pub(crate) rules: Rules,
}

/// A quantity in each result.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) better: Better,
    pub(crate) decimals: usize,
    /// The number of runs, the mean or median of them, and their standard deviation.
    pub(crate) sides: Vec<Option<Side>>,
    /// Each further result against the first.
    pub(crate) pairs: Vec<Against>,
}

/// A quantity in one result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    pub(crate) n: usize,
    pub(crate) value: f64,
    pub(crate) sd: f64,
}

/// A result against the base, in one quantity.
#[derive(Debug)]
pub(crate) struct Against {
    /// By how many percent of the base's value it is better; below 0 if it is worse.
    pub(crate) gain_percent: Option<f64>,
    /// Whether the base is 0 and the other value is worse.
    pub(crate) is_worse_than_0: bool,
    /// The 95 % interval of the gain, before the correction.
    pub(crate) interval: Option<Interval>,
    pub(crate) p: Option<f64>,
    pub(crate) p_holm: Option<f64>,
    pub(crate) verdict: Verdict,
    /// Whether a verdict was taken away for another reason than the runs of this quantity.
    pub(crate) is_withheld: bool,
}

/// Puts results side by side. The first is the base.
///
/// # Errors
/// If there are fewer than two, they are of different kinds, or of different inputs without `force`, or have
/// no quantity in common.
pub fn compare(documents: &[Document], options: Options) -> Result<Comparison> {
    let [base, others @ ..] = documents else {
        return Err(Error::new("compare", "expected two or more results"));
    };
    if others.is_empty() {
        return Err(Error::new(&base.name, "one result: expected another one to compare it with"));
    }
    for other in others {
        if other.kind.schema != base.kind.schema {
            let what = format!(
                "the result of {}, but {} is that of {}; expected results of one verb",
                other.kind.words, base.name, base.kind.words
            );
            return Err(Error::new(&other.name, what));
        }
    }
    let answers: Vec<&Answer> = documents.iter().map(|document| &document.answer).collect();
    let columns: Vec<String> = documents.iter().map(|document| document.name.clone()).collect();
    let mut facts = Facts::default();
    let inputs: Vec<&[Fact]> = answers.iter().map(|answer| &answer.inputs[..]).collect();
    facts.add(&inputs);
    if let Some((name, values)) = facts.differs.first().filter(|_| !options.force) {
        let values: Vec<&str> = values.iter().map(|value| value.as_deref().unwrap_or("not said")).collect();
        let what = format!(
            "not the input of {}: {name}: {}; expected results of one input (--force compares them anyway)",
            columns[0],
            values.join(" and ")
        );
        return Err(Error::new(columns[1..].join(", "), what));
    }
    let mut cautions: Vec<String> = facts.differs.iter().map(|(name, _)| other_input(name)).collect();
    facts.add(&answers.iter().map(|answer| &answer.settings[..]).collect::<Vec<_>>());
    for (column, answer) in columns.iter().zip(&answers) {
        cautions.extend(answer.cautions.iter().map(|caution| format!("{column}: {caution}")));
    }
    cautions.extend(general(base.kind, &facts));
    cautions.extend(machines(base.kind, &columns, &facts));
    let engines = Engines::new(&answers);
    let mut alone = engines.alone(&columns);
    engines.add_to(&mut facts);
    let mut rows = matched(&answers, &engines, &columns, &mut alone);
    if rows.is_empty() {
        let what = format!("nothing in common with {}: {}", columns[0], alone.join("; "));
        return Err(Error::new(columns[1..].join(", "), what));
    }
    if let Some(parameters) = without_common(&mut rows) {
        facts.same.push(("parameters".to_string(), parameters));
    }
    let withheld =
        answers.iter().any(|answer| answer.cautions.iter().any(|one| one.starts_with("no verdict")));
    let mut sections: Vec<Section> = [Role::Answer, Role::Detail, Role::Control]
        .into_iter()
        .filter_map(|role| {
            let rows: Vec<&Matched> = rows.iter().filter(|row| row.quantity.role == role).collect();
            section(role, &rows, &columns, base.kind, options.details)
        })
        .collect();
    if withheld {
        let answer = sections.iter_mut().filter(|section| section.role != Role::Control);
        answer.for_each(|section| withhold(section, "no verdict from a run of a busy machine", 0.0));
    }
    cautions.extend(control(&mut sections));
    let Facts { differs, same, unknown } = facts;
    Ok(Comparison { kind: base.kind, columns, differs, same, unknown, cautions, alone, sections })
}

impl Comparison {
    /// Whether a quantity of the answer is worse by more than so many percent. One that was tested counts if
    /// a difference can be told.
    pub fn is_worse_by(&self, percent: f64) -> bool {
        let answer = self.sections.iter().filter(|section| section.role == Role::Answer);
        answer.flat_map(|section| &section.rows).flat_map(|row| &row.pairs).any(|pair| {
            let told = match pair.verdict {
                Verdict::Worse => true,
                Verdict::Untested(_) => pair.p.is_none(),
                _ => false,
            };
            // From 0, no number of percent is enough.
            told && match pair.gain_percent {
                Some(gain) => gain < -percent,
                None => pair.is_worse_than_0,
            }
        })
    }
}

fn other_input(name: &str) -> String {
    format!("the results are of different inputs ({name}): differences may be those of the inputs")
}

/// Facts about several results.
#[derive(Default)]
struct Facts {
    differs: Vec<(String, Vec<Option<String>>)>,
    same: Vec<(String, String)>,
    unknown: Vec<String>,
}

impl Facts {
    /// Sorts facts. One that a result does not say differs from nothing.
    fn add(&mut self, of: &[&[Fact]]) {
        let mut names: Vec<&str> = Vec::new();
        for fact in of.iter().copied().flatten() {
            if !names.contains(&fact.name.as_str()) {
                names.push(&fact.name);
            }
        }
        for name in names {
            let value = |facts: &&[Fact]| {
                facts.iter().find(|fact| fact.name == name).and_then(|fact| fact.value.clone())
            };
            let is_detail = of.iter().copied().flatten().any(|fact| fact.name == name && fact.is_detail);
            self.put(name, of.iter().map(value).collect(), is_detail);
        }
    }

    fn put(&mut self, name: &str, values: Vec<Option<String>>, is_detail: bool) {
        let mut said = values.iter().flatten();
        match said.next() {
            None => self.unknown.push(name.to_string()),
            Some(first) if said.all(|value| value == first) => {
                if is_detail {
                    return;
                }
                let some = if values.contains(&None) { " (not in all results)" } else { "" };
                self.same.push((name.to_string(), format!("{first}{some}")));
            }
            Some(_) => self.differs.push((name.to_string(), values)),
        }
    }

    fn differ(&self, name: &str) -> bool {
        self.differs.iter().any(|(one, _)| one == name)
    }
}

/// What results of a kind cannot tell.
fn general(kind: &Kind, facts: &Facts) -> Vec<String> {
    let mut said = Vec::new();
    if facts.differ("slablab") {
        said.push(
            "the results are of different versions of slablab: the program may differ, too".to_string(),
        );
    }
    if kind.medians {
        said.push(
            "the blocks of a run share a layout of memory and an hour: two runs of one program differ by \
             more than their intervals. Run each side several times, or both in one run"
                .to_string(),
        );
        if ["host", "kernel", "CPU", "CPUs"].iter().any(|name| facts.differ(name)) {
            said.push("the results are of different machines: a difference may be the machine's".to_string());
        }
    }
    said
}

/// The facts that tell the machines of dumps apart.
const MACHINE: [&str; 5] = ["host", "kernel", "page size", "CPUs", "nodes"];

/// That dumps are of different machines or kernels: what each result says of its own.
fn machines(kind: &Kind, columns: &[String], facts: &Facts) -> Option<String> {
    let differ: Vec<_> = facts.differs.iter().filter(|(name, _)| MACHINE.contains(&name.as_str())).collect();
    if kind.verb != "doctor" || differ.is_empty() {
        return None;
    }
    let of = |at: usize| {
        let said = differ.iter().map(|(name, values)| {
            let value = values[at].as_deref().unwrap_or("not said");
            format!("{name} {value}")
        });
        format!("{} ({})", columns[at], said.collect::<Vec<_>>().join(", "))
    };
    let each: Vec<String> = (0..columns.len()).map(of).collect();
    Some(format!(
        "the results are of different machines or kernels, {}: better and worse may be the machine's",
        each.join(" and ")
    ))
}

/// Which engines of results are the same, and which stand for each other.
struct Engines<'a> {
    of: Vec<&'a [String]>,
    /// Engines that every result has.
    common: Vec<&'a str>,
    /// The one other engine of each result, if each has exactly one.
    paired: Option<Vec<&'a str>>,
}

impl<'a> Engines<'a> {
    fn new(answers: &[&'a Answer]) -> Engines<'a> {
        let of: Vec<&[String]> = answers.iter().map(|answer| &answer.engines[..]).collect();
        let everywhere = |engine: &&String| of.iter().all(|engines| engines.contains(engine));
        let common: Vec<&str> = of[0].iter().filter(everywhere).map(String::as_str).collect();
        let other = |engines: &&'a [String]| {
            let mut rest = engines.iter().filter(|engine| !common.contains(&engine.as_str()));
            rest.next().filter(|_| rest.next().is_none()).map(String::as_str)
        };
        let paired = of.iter().map(other).collect();
        Engines { of, common, paired }
    }

    /// The engine that stands for `engine` of the first result in another one.
    fn same_as(&self, engine: &'a str, other: usize) -> Option<&'a str> {
        if self.common.contains(&engine) {
            return Some(engine);
        }
        self.paired.as_ref().filter(|paired| paired[0] == engine).map(|paired| paired[other])
    }

    fn add_to(&self, facts: &mut Facts) {
        let Some(paired) = &self.paired else { return };
        facts.differs.insert(
            0,
            ("engine".to_string(), paired.iter().map(|engine| Some((*engine).to_string())).collect()),
        );
    }

    /// What only some results have.
    fn alone(&self, columns: &[String]) -> Vec<String> {
        if self.paired.is_some() {
            return Vec::new();
        }
        let rest = |engines: &&[String]| -> Vec<String> {
            engines.iter().filter(|engine| !self.common.contains(&engine.as_str())).cloned().collect()
        };
        let named = columns.iter().zip(self.of.iter().map(rest)).filter(|(_, rest)| !rest.is_empty());
        named.map(|(column, rest)| format!("only {column} has {}", rest.join(", "))).collect()
    }

    /// The name of an engine's table: nothing if there is one engine.
    fn title(&self, engine: &str) -> String {
        let one = self.of.iter().all(|engines| engines.len() == 1);
        match &self.paired {
            _ if one => String::new(),
            Some(paired) if paired[0] == engine => paired.join(" and "),
            _ => engine.to_string(),
        }
    }
}

/// A quantity of the first result, and the same quantity of the others.
struct Matched<'a> {
    quantity: &'a Quantity,
    group: String,
    cells: Vec<Option<&'a Cell>>,
}

fn matched<'a>(
    answers: &[&'a Answer],
    engines: &Engines<'a>,
    columns: &[String],
    alone: &mut Vec<String>,
) -> Vec<Matched<'a>> {
    let mut rows = Vec::new();
    let mut missing = 0;
    for quantity in &answers[0].quantities {
        let engine = quantity.engine.map(|at| answers[0].engines[at].as_str());
        let cell = |(at, answer): (usize, &&'a Answer)| {
            let engine = match engine {
                Some(engine) => Some(engines.same_as(engine, at)?),
                None => None,
            };
            let is_same = |one: &&Quantity| {
                one.engine.map(|at| answer.engines[at].as_str()) == engine
                    && one.name == quantity.name
                    && one.group == quantity.group
            };
            answer.quantities.iter().find(is_same).map(|one| &one.cell)
        };
        let cells: Vec<Option<&Cell>> = answers.iter().enumerate().map(cell).collect();
        if cells.iter().skip(1).all(Option::is_none) {
            missing += 1;
            continue;
        }
        let title = engine.map_or(String::new(), |engine| engines.title(engine));
        let parts = [title.as_str(), quantity.group.as_str()];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        rows.push(Matched { quantity, group: parts.join(": "), cells });
    }
    if missing > 0 {
        let rows = counted(missing as u64, "row");
        alone.push(format!("{rows} {} only in {}", if missing == 1 { "is" } else { "are" }, columns[0]));
    }
    rows
}

/// Takes the parameters that all rows have in common out of the names of their tables. Returns them.
fn without_common(rows: &mut [Matched]) -> Option<String> {
    let parameters = |group: &str| -> Vec<String> {
        group.split(' ').filter(|word| word.contains('=') && !word.ends_with(':')).map(String::from).collect()
    };
    let mut common = parameters(&rows.first()?.group);
    for row in rows.iter() {
        let of = parameters(&row.group);
        common.retain(|word| of.contains(word));
    }
    for row in rows.iter_mut() {
        let words = row.group.split(' ').filter(|word| !common.iter().any(|one| one == word));
        row.group = words.collect::<Vec<_>>().join(" ");
    }
    (!common.is_empty()).then(|| common.join(" "))
}

/// The table of the rows with one role; `None` without rows.
fn section(
    role: Role,
    matched: &[&Matched],
    columns: &[String],
    kind: &Kind,
    details: usize,
) -> Option<Section> {
    if matched.is_empty() {
        return None;
    }
    let test = if kind.medians { Test::MannWhitney } else { Test::Welch };
    let rules = Rules { test, ..Rules::default() };
    let mut table = Table::new(columns.iter().cloned());
    for row in matched {
        let cells = row.cells.iter().map(|cell| match cell {
            Some(cell) => (*cell).clone(),
            None => Cell::Nothing("not in this result".to_string()),
        });
        let (name, better) = (row.quantity.name.clone(), row.quantity.better);
        table.row(table::Row { name, better, cells: cells.collect() }).expect("a cell for each result");
    }
    let mut pairs = table.compare(rules).into_iter();
    let tested = |pair: &&Against| pair.p.is_some();
    let mut rows: Vec<Row> =
        matched.iter().map(|row| self::row(row, kind, &mut pairs, columns.len())).collect();
    let tests = rows.iter().flat_map(|row| &row.pairs).filter(tested).count();
    let mut hidden = 0;
    if role == Role::Detail {
        rows.retain(|row| row.pairs.iter().any(|pair| pair.gain_percent != Some(0.0)));
        rows.sort_by(|a, b| b.weight().total_cmp(&a.weight()));
        hidden = rows.len().saturating_sub(details);
        rows.truncate(details);
    }
    // Rows of a group stand together.
    let groups: Vec<String> = rows.iter().map(|row| row.group.clone()).collect();
    rows.sort_by_key(|row| groups.iter().position(|group| *group == row.group));
    (!rows.is_empty() || hidden > 0).then_some(Section { role, rows, hidden, tests, rules })
}

fn row(matched: &Matched, kind: &Kind, pairs: &mut impl Iterator<Item = Pair>, columns: usize) -> Row {
    let Quantity { name, better, decimals, .. } = matched.quantity;
    let side = |cell: &Option<&Cell>| {
        let moments = (*cell)?.moments()?;
        let median = cell.and_then(Cell::runs).filter(|_| kind.medians).map(|runs| runs.median());
        Some(Side { n: moments.n(), value: median.unwrap_or(moments.mean()), sd: moments.sd() })
    };
    let sides: Vec<Option<Side>> = matched.cells.iter().map(side).collect();
    let pairs = pairs.take(columns - 1).map(|pair| {
        let values = sides[0].zip(sides[pair.other]);
        let runs = matched.cells[0].and_then(Cell::runs).zip(matched.cells[pair.other].and_then(Cell::runs));
        Against {
            gain_percent: values.and_then(|(base, other)| gain_percent(*better, base.value, other.value)),
            is_worse_than_0: values
                .is_some_and(|(base, other)| base.value == 0.0 && better.gain(other.value) < 0.0),
            interval: match runs.filter(|_| kind.medians) {
                Some((base, other)) => {
                    let rules = Bootstrap { resamples: 1999, ..Bootstrap::default() };
                    let gain = |base: &[f64], other: &[f64]| {
                        let (base, other) = (quantile(base, 0.5), quantile(other, 0.5));
                        gain_percent(*better, base, other).unwrap_or(f64::NAN)
                    };
                    rules.interval_of_two(base, other, gain).ok()
                }
                None => pair.gain_percent_95,
            },
            p: pair.p,
            p_holm: pair.p_holm,
            verdict: pair.verdict,
            is_withheld: false,
        }
    });
    let pairs = pairs.collect();
    Row {
        group: matched.group.clone(),
        name: name.clone(),
        better: *better,
        decimals: *decimals,
        sides,
        pairs,
    }
}

impl Row {
    /// How much the results differ, in the quantity's unit.
    fn weight(&self) -> f64 {
        let value = |side: &Option<Side>| side.map_or(0.0, |side| side.value);
        let base = value(&self.sides[0]);
        self.sides[1..].iter().map(|side| (value(side) - base).abs()).fold(0.0, f64::max)
    }
}

/// Takes the verdicts of differences of at most so many percent away; with 0, all.
fn withhold(section: &mut Section, why: &str, percent: f64) {
    for pair in section.rows.iter_mut().flat_map(|row| &mut row.pairs) {
        let small = percent == 0.0 || pair.gain_percent.is_none_or(|gain| gain.abs() <= percent);
        if small && matches!(pair.verdict, Verdict::Better | Verdict::Worse) {
            pair.verdict = Verdict::Untested(why.to_string());
            pair.is_withheld = true;
        }
    }
}

/// What the controls say of the machine. If some differ, a difference of the answer that is not larger is no
/// longer told.
fn control(sections: &mut [Section]) -> Option<String> {
    let controls = sections.iter().find(|section| section.role == Role::Control)?;
    let pairs: Vec<&Against> = controls.rows.iter().flat_map(|row| &row.pairs).collect();
    let differ = pairs.iter().filter(|pair| matches!(pair.verdict, Verdict::Better | Verdict::Worse));
    let gains: Vec<f64> = differ.filter_map(|pair| pair.gain_percent).map(f64::abs).collect();
    let most = gains.iter().copied().fold(0.0, f64::max);
    if gains.is_empty() {
        return None;
    }
    let said = format!(
        "{} of {} controls, which are not slablab's code, differ, by up to {most:.1} %: the machine was not the \
         same. Smaller differences of slablab are not told",
        gains.len(),
        pairs.len()
    );
    for section in sections.iter_mut().filter(|section| section.role == Role::Answer) {
        withhold(section, "the controls differ as much", most);
    }
    Some(said)
}
