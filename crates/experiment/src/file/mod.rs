//! Experiment files (TOML): what they may say, read with lines.
//!
//! ```toml
//! name = "2026"
//! title = "one line for `slablab list experiments`"
//! machines = ["numa8", "mine.toml"]      # installed, or files in the experiment's folder
//! engines = ["slub@6.18", "slub@7.0"]    # the first is the base of comparisons
//! workload = "ublk"
//! repeats = 5
//! seed = 1
//! [parameters]                           # a list is swept: every combination is a cell
//! depth = [64, 128]
//! ```
//!
//! docs/run.md has the rest: published figures and what is expected of cells.

pub mod linear;
pub mod merit;
pub mod pinned;
pub mod ranges;
pub mod rows;
pub mod shown;

use crate::input::Input;
use crate::repeats::{LEAST_MIN, Repeats, Until};
use crate::words::near;
use crate::workload::Lists;
use crate::workload::{Kind, Parameter, Size, Value, Workload};
use crate::workloads::{WORKLOADS, find};
use linear::Linear;
use merit::Merit;
use pinned::Pinned;
use ranges::Ranges;
use rows::{Cells, Expect, Fitted, Published, float, metric, value};
use shown::Shown;
use slablab_engines as engines;
use slablab_machines::Bad;
use slablab_machines::doc::{Doc, Read, Value as Toml};
use slablab_sim::heap::Simulated;
use slablab_sim::setup::Boot;
use slablab_slabs::Preset;
use std::collections::BTreeSet;
use toml::de::{DeTable, DeValue};

/// The most repeats of a cell, and the most values of one parameter.
const REPEATS_MAX: u64 = 10_000;
const VALUES_MAX: usize = 1_000;

const NAMES: &[&str] = &[
    "name",
    "title",
    "source",
    "machines",
    "engines",
    "workload",
    "boot",
    "parameters",
    "size",
    "repeats",
    "repeats_most",
    "precision_percent",
    "placements",
    "seed",
    "metric",
    "noise_percent",
    "fitted",
    "pinned",
    "published",
    "expect",
    "linear",
    "merit",
    "shown",
    "ranges",
];

/// An experiment file.
#[derive(Clone)]
pub struct ExperimentFile {
    /// Its name.
    pub name: String,
    /// What it shows, in one line.
    pub title: String,
    /// Where its published figures are from.
    pub source: Option<String>,
    /// Machines: installed names, or paths from the experiment's folder.
    pub machines: Vec<String>,
    /// The line of each machine.
    pub machine_lines: Vec<usize>,
    /// Engines, as the file writes them.
    pub engines: Vec<(String, Preset)>,
    /// What runs.
    pub workload: &'static Workload,
    /// What the slab caches hold before the program starts.
    pub boot: Boot,
    /// The values of the parameters that the file names.
    pub parameters: Lists,
    /// Those of one size only, which replace these.
    pub of_size: Vec<(Size, Lists)>,
    /// How long runs are.
    pub size: Size,
    /// How often each cell runs.
    pub repeats: Repeats,
    /// From which the seed of each repeat is derived.
    pub seed: u64,
    /// The place of the main metric in [`Workload::metrics`].
    pub metric: usize,
    /// Differences of means below this cannot be told on a real machine.
    pub noise_percent: f64,
    /// The one parameter that was fitted.
    pub fitted: Option<Fitted>,
    /// Parameters that were pinned on figures of the base engine.
    pub pinned: Vec<Pinned>,
    /// Published figures.
    pub published: Vec<Published>,
    /// Relations between cells that the published figures show.
    pub expect: Vec<Expect>,
    /// Numbers that grow linearly with a parameter.
    pub linear: Vec<Linear>,
    /// Columns of figures whose order is published.
    pub merit: Vec<Merit>,
    /// Metrics that are shown of every cell.
    pub shown: Vec<Shown>,
    /// What is varied, if that is not each assumed cost.
    pub ranges: Option<Ranges>,
    /// The text of the file.
    pub text: String,
}

impl ExperimentFile {
    /// Understands the text of an experiment file.
    ///
    /// # Errors
    /// What cannot be understood or contradicts itself, with its line.
    pub fn parse(text: &str) -> Read<ExperimentFile> {
        let (doc, table) = Doc::parse(text)?;
        doc.known(&table, NAMES)?;
        let reader = Reader { doc, table: &table };
        let workload = reader.workload()?;
        let metric = |name: Option<&Toml<'_>>| name.map_or(Ok(0), |name| metric(&doc, workload, name));
        let machines = reader.names("machines", "machines = [\"numa8\"]")?;
        let mut file = ExperimentFile {
            name: doc.text(reader.needed("name", "name = \"mine\"")?, "name")?,
            title: doc.text(reader.needed("title", "title = \"what it shows\"")?, "title")?,
            source: table.get("source").map(|value| doc.text(value, "source")).transpose()?,
            machine_lines: doc
                .array(&table["machines"], "machines")?
                .map(|one| doc.bad(one, "").line)
                .collect(),
            machines,
            engines: reader.engines()?,
            workload,
            boot: match table.get("boot") {
                Some(value) => doc.word(value, "boot", &Boot::NAMES)?,
                None => Boot::default(),
            },
            parameters: reader.parameters(workload)?,
            of_size: reader.of_size(workload)?,
            size: match table.get("size") {
                Some(value) => doc.word(value, "size", &Size::NAMES)?,
                None => Size::default(),
            },
            repeats: reader.repeats()?,
            seed: reader.number("seed", 0..=i64::MAX as u64, 1)?,
            metric: metric(table.get("metric"))?,
            noise_percent: match table.get("noise_percent") {
                Some(value) => float(&doc, value, "noise_percent", 0.0..=100.0)?,
                None => 1.0,
            },
            fitted: None,
            pinned: Vec::new(),
            published: Vec::new(),
            expect: Vec::new(),
            linear: Vec::new(),
            merit: Vec::new(),
            shown: Vec::new(),
            ranges: None,
            text: text.to_string(),
        };
        let cells = Cells {
            workload,
            machines: &file.machines,
            engines: &file.engines,
            parameters: &file.parameters,
            of_size: &file.of_size,
            metric: file.metric,
        };
        let fitted = table.get("fitted").map(|value| cells.fitted(&doc, value)).transpose()?;
        let published = rows(&doc, &table, "published", |value| cells.published(&doc, value))?;
        let pinned = rows(&doc, &table, "pinned", |value| cells.pinned(&doc, value, &published))?;
        let expect = rows(&doc, &table, "expect", |value| cells.expect(&doc, value, &published))?;
        let linear = rows(&doc, &table, "linear", |value| cells.linear(&doc, value))?;
        let merit = rows(&doc, &table, "merit", |value| cells.merit(&doc, value))?;
        let shown = rows(&doc, &table, "shown", |value| cells.shown(&doc, value))?;
        (file.fitted, file.published, file.expect) = (fitted, published, expect);
        (file.linear, file.merit, file.shown, file.pinned) = (linear, merit, shown, pinned);
        file.ranges = table.get("ranges").map(|value| reader.ranges(&file, value)).transpose()?;
        Ok(file)
    }

    /// The recordings that it names.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &Input> {
        let of_size = self.of_size.iter().flat_map(|(_, lists)| lists);
        let values = self.parameters.iter().chain(of_size).flat_map(|(_, values)| values);
        values.filter_map(|value| match value {
            Value::File(input) => Some(&**input),
            _ => None,
        })
    }

    /// The values that the file gives a parameter in a size; `None` if it does not name it.
    pub fn swept(&self, name: &str, size: Size) -> Option<&[Value]> {
        let of_size = self.of_size.iter().filter(|(of, _)| *of == size).flat_map(|(_, lists)| lists);
        let mut lists = of_size.chain(&self.parameters);
        lists.find(|(named, _)| *named == name).map(|(_, values)| &values[..])
    }

    /// Whether the file has figures or relations that its results can be set beside.
    pub fn has_published(&self) -> bool {
        !self.published.is_empty() || !self.expect.is_empty() || !self.linear.is_empty()
    }
}

/// The fields of the whole file.
struct Reader<'r, 'i> {
    doc: Doc<'i>,
    table: &'r DeTable<'i>,
}

impl<'r, 'i> Reader<'r, 'i> {
    fn needed(&self, name: &str, example: &str) -> Read<&'r Toml<'i>> {
        let missing = || Bad { line: 1, what: format!("the experiment has no {name}: expected {example}") };
        self.table.get(name).ok_or_else(missing)
    }

    fn number(&self, name: &str, limits: std::ops::RangeInclusive<u64>, default: u64) -> Read<u64> {
        self.table.get(name).map_or(Ok(default), |value| self.doc.number(value, name, limits))
    }

    fn repeats(&self) -> Read<Repeats> {
        let least = self.number("repeats", 1..=REPEATS_MAX, 5)? as u32;
        let placements = self.number("placements", 1..=REPEATS_MAX, 1)? as u32;
        let bad = |name: &str, what: String| Err(self.doc.bad(&self.table[name], what));
        if placements > 1 && least < 2 {
            return bad("placements", format!("placements = {placements}: expected repeats = 2 or more"));
        }
        let Some(value) = self.table.get("precision_percent") else {
            return match self.table.contains_key("repeats_most") {
                true => bad("repeats_most", "repeats_most: expected precision_percent beside it".into()),
                false => Ok(Repeats { least, placements, until: None }),
            };
        };
        let percent = float(&self.doc, value, "precision_percent", 0.01..=100.0)?;
        let most = self.number("repeats_most", 1..=REPEATS_MAX, u64::from(least) * 8)? as u32;
        if least < LEAST_MIN {
            let expected = format!("expected repeats = {LEAST_MIN} or more");
            return bad("precision_percent", format!("precision_percent = {percent}: {expected}"));
        }
        if most < least {
            return bad("repeats_most", format!("repeats_most = {most}: expected repeats, {least}, or more"));
        }
        Ok(Repeats { least, placements, until: Some(Until { percent, most }) })
    }

    /// A list of different texts.
    fn names(&self, name: &str, example: &str) -> Read<Vec<String>> {
        let value = self.needed(name, example)?;
        let mut seen = BTreeSet::new();
        let mut names = Vec::new();
        for element in self.doc.array(value, name)? {
            let text = self.doc.text(element, name)?;
            if !seen.insert(text.clone()) {
                return Err(self.doc.bad(element, format!("{name}: {text} is there twice")));
            }
            names.push(text);
        }
        if names.is_empty() {
            return Err(self.doc.bad(value, format!("{name} is empty: expected {example}")));
        }
        Ok(names)
    }

    fn engines(&self) -> Read<Vec<(String, Preset)>> {
        let names = self.names("engines", "engines = [\"slub@6.18\"]")?;
        let places = self.doc.array(&self.table["engines"], "engines")?;
        let parsed = names.into_iter().zip(places).map(|(name, place)| {
            match engines::parse_with::<Simulated>(&name) {
                Ok(preset) => Ok((name, preset)),
                Err(bad) => Err(self.doc.bad(place, format!("engines: {name}: {bad}"))),
            }
        });
        parsed.collect()
    }

    fn workload(&self) -> Read<&'static Workload> {
        let value = self.needed("workload", "workload = \"micro\"")?;
        let name = self.doc.text(value, "workload")?;
        find(&name).ok_or_else(|| {
            let known = WORKLOADS.iter().map(|workload| workload.name);
            self.doc.bad(value, format!("workload = {name:?} is not known{}", near(&name, known)))
        })
    }

    fn parameters(&self, workload: &Workload) -> Read<Lists> {
        let needed = |parameter: &&Parameter| matches!(parameter.kind, Kind::File);
        let missing = |given: &dyn Fn(&str) -> bool| {
            let missing = workload.parameters.iter().filter(needed).find(|one| !given(one.name));
            missing.map_or(Ok(()), |one| {
                let (workload, name) = (workload.name, one.name);
                let what = format!("{workload} needs [parameters] {name} = \"a file\": {}", one.about);
                Err(Bad { line: 1, what })
            })
        };
        let Some(whole) = self.table.get("parameters") else {
            return missing(&|_| false).map(|()| Vec::new());
        };
        let table = self.doc.table(whole, "parameters", "a table [parameters]")?;
        let sizes = Size::NAMES.iter().map(|(name, _)| *name);
        let names: Vec<&str> =
            workload.parameters.iter().map(|parameter| parameter.name).chain(sizes).collect();
        self.doc.known(table, &names)?;
        missing(&|name| table.contains_key(name))?;
        self.lists(workload, table)
    }

    /// The tables `[parameters.quick]`, `[parameters.standard]` and `[parameters.full]`.
    fn of_size(&self, workload: &Workload) -> Read<Vec<(Size, Lists)>> {
        let Some(whole) = self.table.get("parameters") else { return Ok(Vec::new()) };
        let all = self.doc.table(whole, "parameters", "a table [parameters]")?;
        let mut found = Vec::new();
        for (name, size) in Size::NAMES {
            let Some(whole) = all.get(name) else { continue };
            let table = self.doc.table(whole, name, "a table of parameters, as [parameters.full]")?;
            let names: Vec<&str> = workload.parameters.iter().map(|parameter| parameter.name).collect();
            self.doc.known(table, &names)?;
            found.push((size, self.lists(workload, table)?));
        }
        Ok(found)
    }

    fn ranges(&self, file: &ExperimentFile, value: &Toml<'i>) -> Read<Ranges> {
        let swept = |name: &str| file.swept(name, file.size).is_some_and(|list| list.len() > 1);
        let names: Vec<&str> = file.workload.parameters.iter().map(|parameter| parameter.name).collect();
        let lists = |table: &DeTable<'i>| {
            self.doc.known(table, &names)?;
            self.lists(file.workload, table)
        };
        Ranges::read(&self.doc, value, &swept, &lists)
    }

    fn lists(&self, workload: &Workload, table: &DeTable<'i>) -> Read<Lists> {
        let mut lists = Vec::new();
        for parameter in workload.parameters {
            let Some(given) = table.get(parameter.name) else { continue };
            let list: Vec<Value> = match given.get_ref() {
                DeValue::Array(list) => {
                    list.iter().map(|one| value(&self.doc, parameter, one)).collect::<Read<_>>()?
                }
                _ => vec![value(&self.doc, parameter, given)?],
            };
            let different: BTreeSet<String> = list.iter().map(Value::to_string).collect();
            if different.len() != list.len() || list.is_empty() || list.len() > VALUES_MAX {
                let expected = format!("expected 1 to {VALUES_MAX} different values");
                return Err(self.doc.bad(given, format!("{}: {expected}", parameter.name)));
            }
            lists.push((parameter.name, list));
        }
        Ok(lists)
    }
}

fn rows<T>(
    doc: &Doc<'_>,
    table: &DeTable<'_>,
    name: &str,
    row: impl Fn(&Toml<'_>) -> Read<T>,
) -> Read<Vec<T>> {
    let Some(value) = table.get(name) else { return Ok(Vec::new()) };
    doc.array(value, name)?.map(row).collect()
}
