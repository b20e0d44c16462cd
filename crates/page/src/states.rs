//! Questions about states of machines: `doctor`, `whatif`, `what`; and about orders.

use crate::answered::{Result, words};
use serde::Deserialize;
use slablab_doctor::measure::SortKey;
use slablab_doctor::orders::{Question as Orders, classes, machines};
use slablab_doctor::output::{Shown, doctor_answer, orders_answer, whatif_answer};
use slablab_doctor::state::{Input, Moment, State, read, read_at};
use slablab_doctor::what::Known;
use slablab_doctor::whatif::{Config, Debug, Grid, PerCpu, Policy, SheafCapacity, predict_with};
use slablab_doctor::{Asked, Options, examine};
use slablab_report::Answer;
use slablab_slabs::order::{COSTLY_ORDER, OrderRule};
use std::path::PathBuf;

/// Caches that a text or a page lists, as the program does.
const LINES: usize = 15;

/// What an input does not tell.
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Machine {
    #[serde(default)]
    pub(crate) page_size: Option<String>,
    #[serde(default)]
    pub(crate) cpus: Option<u32>,
}

/// The options of `whatif`, each a list as on the command line: `0,1,2`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct Change {
    release: String,
    max_order: String,
    min_order: String,
    min_objects: String,
    page_size: String,
    cpus: String,
    policy: String,
    merge: String,
    debug: String,
    sheaf_capacity: String,
    config: String,
}

impl Machine {
    /// The input, with what the user says of it.
    fn input(&self, path: String) -> Result<Input> {
        let page_size = self.page_size.as_deref().filter(|text| !text.is_empty());
        let page_size = page_size.map(slablab_doctor::state::page_size).transpose();
        let page_size = page_size.map_err(|bad| format!("--page-size: {bad}"))?;
        Ok(Input { path: Some(PathBuf::from(path)), page_size, cpus: self.cpus })
    }
}

pub(crate) fn doctor(
    input: String,
    since: Vec<String>,
    hours: Option<f64>,
    machine: &Machine,
) -> Result<Answer> {
    let state = read(&machine.input(input)?).map_err(words)?;
    let earlier = since.into_iter().map(|path| {
        let input = machine.input(path)?;
        read_at(&input, Moment::Before).map_err(words)
    });
    let mut earlier = earlier.collect::<Result<Vec<State>>>()?;
    // A text may have several snapshots.
    earlier.extend(state.earlier());
    if hours.is_some() && earlier.is_empty() {
        return Err("--hours: expected an earlier snapshot: a second file, or several in the text".into());
    }
    let options = Options { since: &earlier, hours, ..Options::default() };
    let report = examine(&state, &options).map_err(words)?;
    let sort = if earlier.is_empty() { SortKey::CacheSize } else { SortKey::Growth };
    Ok(doctor_answer(&report, &Shown { sort, lines: LINES, aliases: false, bytes: false }))
}

impl Change {
    /// Options of the command line, with their values.
    pub(crate) fn named(&self) -> [(&'static str, &str); 11] {
        [
            ("--release", &self.release),
            ("--max-order", &self.max_order),
            ("--min-order", &self.min_order),
            ("--min-objects", &self.min_objects),
            ("--page-size", &self.page_size),
            ("--cpus", &self.cpus),
            ("--policy", &self.policy),
            ("--merge", &self.merge),
            ("--debug", &self.debug),
            ("--sheaf-capacity", &self.sheaf_capacity),
            ("--config", &self.config),
        ]
    }

    fn grid(&self) -> Result<Grid> {
        Ok(Grid {
            engines: list("--release", &self.release, |text| {
                slablab_engines::parse(&format!("slub@{text}")).map_err(words)
            })?,
            sheaf_capacities: list("--sheaf-capacity", &self.sheaf_capacity, SheafCapacity::parse)?,
            configs: list("--config", &self.config, Config::parse)?,
            policies: list("--policy", &self.policy, Policy::parse)?,
            max_orders: list("--max-order", &self.max_order, number)?,
            min_orders: list("--min-order", &self.min_order, number)?,
            min_objects: list("--min-objects", &self.min_objects, number)?,
            page_sizes: list("--page-size", &self.page_size, slablab_doctor::state::page_size)?,
            cpus: list("--cpus", &self.cpus, number)?,
            merge: list("--merge", &self.merge, slablab_doctor::whatif::on_off)?,
            debug: list("--debug", &self.debug, |text| Debug::parse(text).map_err(|error| error.what))?,
        })
    }
}

/// The values of an option.
fn list<T, E: std::fmt::Display>(
    option: &str,
    text: &str,
    parse: impl Fn(&str) -> std::result::Result<T, E>,
) -> Result<Vec<T>> {
    let values = text.split(',').map(str::trim).filter(|value| !value.is_empty());
    values.map(|value| parse(value).map_err(|bad| format!("{option} {value}: {bad}"))).collect()
}

fn number<T: std::str::FromStr<Err = std::num::ParseIntError>>(text: &str) -> Result<T> {
    text.parse().map_err(|_| "expected a number".into())
}

pub(crate) fn whatif(input: String, change: &Change, machine: &Machine) -> Result<Answer> {
    let changes = change.grid()?.changes().map_err(words)?;
    let state = read(&machine.input(input)?).map_err(words)?;
    let tables = PerCpu::builtin();
    let predictions = changes.iter().map(|change| predict_with(&state, change, &tables));
    let predictions = predictions.collect::<slablab_report::Result<Vec<_>>>().map_err(words)?;
    Ok(whatif_answer(&state, &predictions, None, None, LINES))
}

pub(crate) fn what(names: &[String], input: Option<String>) -> Result<Answer> {
    let mut asked = Asked::of(Known::builtin());
    names.iter().for_each(|name| asked.text(name));
    if let Some(path) = input {
        asked.file(path.as_ref()).map_err(words)?;
    }
    let (answer, unknown) = asked.answer()?;
    Ok(answer.warnings(unknown))
}

pub(crate) fn orders(
    policy: &str,
    against: Option<&str>,
    page_size: &[String],
    cpus: Vec<u32>,
) -> Result<Answer> {
    let rule = |option: &str, name: &str| {
        OrderRule::parse(name).ok_or_else(|| {
            format!("{option} {name}: expected one of {}", OrderRule::ALL.map(OrderRule::name).join(", "))
        })
    };
    let page_sizes =
        page_size.iter().map(|text| slablab_doctor::state::page_size(text)).collect::<Result<Vec<_>>>()?;
    let question = Orders {
        rule: rule("--policy", policy)?,
        against: against.map(|name| rule("--against", name)).transpose()?,
        page_sizes: if page_sizes.is_empty() { vec![4 << 10, 16 << 10, 64 << 10] } else { page_sizes },
        cpus: if cpus.is_empty() { classes().collect() } else { cpus },
        min_order: 0,
        max_order: COSTLY_ORDER,
        min_objects: 0,
        sizes: None,
    };
    Ok(orders_answer(&question, &machines(&question)))
}
