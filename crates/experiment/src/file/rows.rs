//! The rows of an experiment file that select cells: published figures, relations, what was fitted.

use crate::input::Input;
use crate::words::near;
use crate::workload::Lists;
use crate::workload::{Kind, Parameter, Size, Value, Workload};
use slablab_machines::doc::{Doc, Read, Value as Toml, shown};
use slablab_slabs::Preset;
use slablab_stats::Moments;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// Cells: those that have the named machine, engine and values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Select {
    /// The machine, as the file names it.
    pub machine: Option<String>,
    /// The engine, as the file names it.
    pub engine: Option<String>,
    /// Values of parameters: a cell has one of each list.
    pub values: Vec<(&'static str, Vec<Value>)>,
}

/// A parameter that was fitted, and on which cell.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The parameter.
    pub parameter: &'static str,
    /// The cells whose published figure it was fitted to.
    pub cell: Select,
    /// What was done.
    pub how: String,
}

/// A published figure.
#[derive(Clone, Debug)]
pub struct Published {
    /// The cells that it is about.
    pub cell: Select,
    /// The place of its metric in [`Workload::metrics`].
    pub metric: usize,
    /// The figure, in the metric's unit of tables.
    pub value: f64,
    /// Its standard deviation.
    pub sd: Option<f64>,
    /// The number of runs.
    pub n: Option<u64>,
    /// Who published it, when.
    pub source: String,
}

/// Which of two cells has the larger values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// `other` has.
    Higher,
    /// `base` has.
    Lower,
    /// No difference can be told.
    Nothing,
}

impl Sign {
    /// The words of files and tables.
    pub const WORDS: [(&'static str, Sign); 3] =
        [("higher", Sign::Higher), ("lower", Sign::Lower), ("none", Sign::Nothing)];

    /// The word of files and tables.
    pub fn word(self) -> &'static str {
        Sign::WORDS[self as usize].0
    }

    /// The sign of a ratio, `other` over `base`.
    pub fn of_ratio(ratio: f64) -> Sign {
        if ratio > 1.0 {
            Sign::Higher
        } else if ratio < 1.0 {
            Sign::Lower
        } else {
            Sign::Nothing
        }
    }
}

impl Published {
    /// The figure as moments, if its standard deviation and its number of runs are published.
    pub fn moments(&self) -> Option<Moments> {
        Moments::new(usize::try_from(self.n?).ok()?, self.value, self.sd?).ok()
    }
}

/// How near a number must be to its published figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Within {
    /// The figure, in the metric's unit of tables.
    pub figure: f64,
    /// The ratio of modelled over published, or its inverse, is above 1 by this at most.
    pub percent: f64,
}

/// A relation between two cells, or of cells and their own published figure.
#[derive(Clone, Debug)]
pub struct Expect {
    /// What it says.
    pub name: String,
    /// The cells that are compared with; those of `other` if they are compared with their figure.
    pub base: Select,
    /// The cells that are compared.
    pub other: Select,
    /// The place of the metric in [`Workload::metrics`].
    pub metric: usize,
    /// The place of the metric of `base`, if the relation is of two metrics.
    pub base_metric: usize,
    /// The published ratio, `other` over `base`; 1 beside a figure.
    pub ratio: Option<f64>,
    /// Which side has the larger values; none beside a figure.
    pub sign: Sign,
    /// The figure, if `other` is compared with its own.
    pub within: Option<Within>,
}

/// The cells of an experiment, to select from.
pub(crate) struct Cells<'f> {
    pub(crate) workload: &'static Workload,
    pub(crate) machines: &'f [String],
    pub(crate) engines: &'f [(String, Preset)],
    pub(crate) parameters: &'f Lists,
    pub(crate) of_size: &'f [(Size, Lists)],
    /// The main metric.
    pub(crate) metric: usize,
}

impl Cells<'_> {
    /// The values of a parameter in any size.
    fn swept(&self, name: &str) -> Vec<&Value> {
        let lists = self.of_size.iter().flat_map(|(_, lists)| lists).chain(self.parameters);
        lists.filter(|(named, _)| *named == name).flat_map(|(_, values)| values).collect()
    }

    /// Reads a row.
    pub(crate) fn fitted(&self, doc: &Doc<'_>, value: &Toml<'_>) -> Read<Fitted> {
        let table = doc.table(value, "fitted", "a table [fitted]")?;
        doc.known(table, &["parameter", "cell", "how"])?;
        let part = |name: &str| needed(doc, value, table, name);
        let given = part("parameter")?;
        let parameter = self.parameter(doc, given, &doc.text(given, "parameter")?)?.name;
        Ok(Fitted { parameter, cell: self.select(doc, part("cell")?)?, how: doc.text(part("how")?, "how")? })
    }

    /// Reads a row.
    pub(crate) fn published(&self, doc: &Doc<'_>, value: &Toml<'_>) -> Read<Published> {
        let table = doc.table(value, "published", "a table [[published]]")?;
        doc.known(table, &["cell", "metric", "value", "unit", "sd", "n", "source"])?;
        let part = |name: &str| needed(doc, value, table, name);
        let metric = self.metric_of(doc, table)?;
        let unit = part("unit")?;
        let expected = self.workload.metrics[metric].unit;
        if doc.text(unit, "unit")? != expected {
            let (name, found) = (self.workload.metrics[metric].name, shown(unit.get_ref()));
            return Err(doc.bad(unit, format!("unit = {found}: expected \"{expected}\", that of {name}")));
        }
        let optional = |name: &str| table.get(name);
        Ok(Published {
            cell: self.select(doc, part("cell")?)?,
            metric,
            value: float(doc, part("value")?, "value", 0.0..=1e15)?,
            sd: optional("sd").map(|sd| float(doc, sd, "sd", 0.0..=1e15)).transpose()?,
            n: optional("n").map(|n| doc.number(n, "n", 1..=1_000_000)).transpose()?,
            source: doc.text(part("source")?, "source")?,
        })
    }

    /// Reads a row.
    pub(crate) fn expect(&self, doc: &Doc<'_>, value: &Toml<'_>, published: &[Published]) -> Read<Expect> {
        let table = doc.table(value, "expect", "a table [[expect]]")?;
        if ["cell", "within_percent"].iter().any(|key| table.contains_key(*key)) {
            return self.within(doc, value, published);
        }
        doc.known(table, &["name", "base", "other", "metric", "base_metric", "ratio", "sign"])?;
        let part = |name: &str| needed(doc, value, table, name);
        let of = self.metric_of(doc, table)?;
        let base_metric = table.get("base_metric");
        let base_metric = base_metric.map_or(Ok(of), |name| metric(doc, self.workload, name))?;
        let units = [of, base_metric].map(|at| self.workload.metrics[at].unit);
        if units[0] != units[1] {
            let what = format!("base_metric is in {}: expected a metric in {}", units[1], units[0]);
            return Err(doc.bad(value, what));
        }
        let (base, other) = (self.select(doc, part("base")?)?, self.select(doc, part("other")?)?);
        if base == other && base_metric == of {
            return Err(doc.bad(value, "base and other are the same cells: expected another base_metric"));
        }
        let figure = |cell: &Select, metric: usize| figure(published, cell, metric);
        let ratio = match table.get("ratio") {
            Some(ratio) => Some(float(doc, ratio, "ratio", 1e-9..=1e9)?),
            None => figure(&base, base_metric)
                .zip(figure(&other, of))
                .filter(|(base, _)| *base > 0.0)
                .map(|(base, other)| other / base),
        };
        let sign = match (table.get("sign"), ratio) {
            (Some(sign), _) => doc.word(sign, "sign", &Sign::WORDS)?,
            (None, Some(ratio)) => Sign::of_ratio(ratio),
            (None, None) => {
                let expected = "expected sign = \"lower\", ratio = 0.5, or [[published]] rows of both cells";
                return Err(doc.bad(value, format!("nothing is expected: {expected}")));
            }
        };
        let name = doc.text(part("name")?, "name")?;
        Ok(Expect { name, base, other, metric: of, base_metric, ratio, sign, within: None })
    }

    /// Reads a row of one number that must be near its figure.
    fn within(&self, doc: &Doc<'_>, value: &Toml<'_>, published: &[Published]) -> Read<Expect> {
        let table = doc.table(value, "expect", "a table [[expect]]")?;
        doc.known(table, &["name", "cell", "metric", "within_percent"])?;
        let part = |name: &str| needed(doc, value, table, name);
        let (cell, metric) = (self.select(doc, part("cell")?)?, self.metric_of(doc, table)?);
        let Some(figure) = figure(published, &cell, metric).filter(|figure| *figure > 0.0) else {
            let name = self.workload.metrics[metric].name;
            let what = format!("within_percent: expected a [[published]] row of this cell's {name}, above 0");
            return Err(doc.bad(value, what));
        };
        let percent = float(doc, part("within_percent")?, "within_percent", 0.1..=100.0)?;
        Ok(Expect {
            name: doc.text(part("name")?, "name")?,
            base: cell.clone(),
            other: cell,
            metric,
            base_metric: metric,
            ratio: Some(1.0),
            sign: Sign::Nothing,
            within: Some(Within { figure, percent }),
        })
    }

    pub(crate) fn metric_of(&self, doc: &Doc<'_>, table: &DeTable<'_>) -> Read<usize> {
        table.get("metric").map_or(Ok(self.metric), |name| metric(doc, self.workload, name))
    }

    pub(crate) fn parameter(&self, doc: &Doc<'_>, at: &Toml<'_>, name: &str) -> Read<&'static Parameter> {
        parameter(self.workload, name).ok_or_else(|| {
            let known = self.workload.parameters.iter().map(|parameter| parameter.name);
            doc.bad(at, format!("{name:?} is no parameter of {}{}", self.workload.name, near(name, known)))
        })
    }

    /// Reads a selection of cells, all of which the experiment has.
    pub(crate) fn select(&self, doc: &Doc<'_>, value: &Toml<'_>) -> Read<Select> {
        let table = doc.table(value, "cell", "{ engine = \"..\", .. }")?;
        let mut select = Select::default();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            match name {
                "machine" => {
                    let machines = self.machines.iter().map(String::as_str);
                    select.machine = Some(one_of(doc, value, name, machines)?);
                }
                "engine" => {
                    let engines = self.engines.iter().map(|(engine, _)| engine.as_str());
                    select.engine = Some(one_of(doc, value, name, engines)?);
                }
                _ => {
                    let parameter = self.parameter(doc, value, name)?;
                    let given = values(doc, parameter, value)?;
                    let swept = self.swept(parameter.name);
                    if let Some(missing) = given.iter().find(|given| !swept.contains(given)) {
                        let what = format!("no cell has {name} = {missing}: [parameters] does not list it");
                        return Err(doc.bad(value, what));
                    }
                    select.values.push((parameter.name, given));
                }
            }
        }
        select.values.sort();
        Ok(select)
    }
}

/// The published figure of cells.
fn figure(published: &[Published], cell: &Select, metric: usize) -> Option<f64> {
    published.iter().find(|row| row.cell == *cell && row.metric == metric).map(|row| row.value)
}

pub(crate) fn needed<'t, 'i>(
    doc: &Doc<'_>,
    whole: &Toml<'_>,
    table: &'t DeTable<'i>,
    name: &str,
) -> Read<&'t Toml<'i>> {
    table.get(name).ok_or_else(|| doc.bad(whole, format!("{name} is missing")))
}

fn parameter(workload: &Workload, name: &str) -> Option<&'static Parameter> {
    workload.parameters.iter().find(|parameter| parameter.name == name)
}

pub(crate) fn metric(doc: &Doc<'_>, workload: &Workload, value: &Toml<'_>) -> Read<usize> {
    let name = doc.text(value, "metric")?;
    let known = || workload.metrics.iter().map(|metric| metric.name);
    known().position(|known| known == name).ok_or_else(|| {
        let near = near(&name, known());
        doc.bad(value, format!("metric = {name:?} is not measured by {}{near}", workload.name))
    })
}

/// A value of a parameter.
pub(crate) fn value(doc: &Doc<'_>, parameter: &Parameter, value: &Toml<'_>) -> Read<Value> {
    match parameter.kind {
        Kind::Number { least, most, .. } => {
            doc.number(value, parameter.name, least..=most).map(Value::Number)
        }
        Kind::Word(words) => one_of(doc, value, parameter.name, words.iter().copied()).map(Value::Word),
        Kind::File => {
            let (given, line) = (doc.text(value, parameter.name)?, doc.bad(value, "").line);
            Ok(Value::File(Arc::new(Input::new(&given, line))))
        }
    }
}

/// A value of a parameter, or a list of different ones, ascending.
fn values(doc: &Doc<'_>, parameter: &Parameter, given: &Toml<'_>) -> Read<Vec<Value>> {
    let DeValue::Array(list) = given.get_ref() else { return Ok(vec![value(doc, parameter, given)?]) };
    let mut values: Vec<Value> = list.iter().map(|one| value(doc, parameter, one)).collect::<Read<_>>()?;
    values.sort();
    if values.is_empty() || values.windows(2).any(|two| two[0] == two[1]) {
        return Err(doc.bad(given, format!("{}: expected one or more different values", parameter.name)));
    }
    Ok(values)
}

pub(crate) fn one_of<'a>(
    doc: &Doc<'_>,
    value: &Toml<'_>,
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Read<String> {
    let given = doc.text(value, name)?;
    if known.clone().any(|known| known == given) {
        return Ok(given);
    }
    Err(doc.bad(value, format!("{name} = {given:?} is not known{}", near(&given, known))))
}

/// A number within limits; NaN is in none.
pub(crate) fn float(
    doc: &Doc<'_>,
    value: &Toml<'_>,
    name: &str,
    limits: std::ops::RangeInclusive<f64>,
) -> Read<f64> {
    let number = match value.get_ref() {
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(|n| n as f64)
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().ok(),
        _ => None,
    };
    number.filter(|number| limits.contains(number)).ok_or_else(|| {
        let expected = format!("expected a number from {} to {}", limits.start(), limits.end());
        doc.bad(value, format!("{name} = {}: {expected}", shown(value.get_ref())))
    })
}
