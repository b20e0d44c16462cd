//! The kinds of results, one each file: its facts, its quantities, what makes it less certain.

mod bench;
mod doctor;
mod hyperfine;
mod program;
mod replay;
mod run;
mod suite;
mod verify;

use crate::answer::{Answer, Quantity, Role};
use serde_json::Value;
use slablab_stats::table::{Better, Cell};
use slablab_stats::{Moments, Sample};

/// How results of one schema are compared.
pub(crate) struct Kind {
    /// The verb that writes them.
    pub(crate) verb: &'static str,
    /// The verb, as a user types it.
    pub(crate) words: &'static str,
    /// The schema's name.
    pub(crate) schema: &'static str,
    /// Whether the values of several runs are compared by their medians: times of a real machine, which have
    /// outliers. Else by their means.
    pub(crate) medians: bool,
    /// Why a quantity with one value needs no repeats.
    pub(crate) exact: &'static str,
    /// Reads a document.
    pub(crate) read: fn(&Value) -> Result<Answer, String>,
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.schema)
    }
}

/// Every kind of ours.
pub(crate) const ALL: [Kind; 7] =
    [replay::KIND, run::KIND, suite::KIND, bench::KIND, program::KIND, doctor::KIND, verify::KIND];

/// The kind of a document that names no schema: another program's.
pub(crate) fn foreign(document: &Value) -> Option<&'static Kind> {
    hyperfine::is(document).then_some(&hyperfine::KIND)
}

/// The elements of a list; an error names the key.
fn list<'a>(of: &'a Value, key: &str) -> Result<&'a [Value], String> {
    of[key].as_array().map(Vec::as_slice).ok_or_else(|| format!("no list `{key}`"))
}

/// A text; an error names the key.
fn text<'a>(of: &'a Value, key: &str) -> Result<&'a str, String> {
    of[key].as_str().ok_or_else(|| format!("no text `{key}`"))
}

/// A number of one run, in `per_unit`; `None` if the document has none.
fn single(of: &Value, per_unit: f64) -> Option<Cell> {
    Moments::new(1, of.as_f64()? / per_unit, 0.0).ok().map(Cell::Moments)
}

/// Numbers of runs; an error names what is no number.
fn runs(of: &Value, what: &str) -> Result<Cell, String> {
    let values: Option<Vec<f64>> = of.as_array().and_then(|all| all.iter().map(Value::as_f64).collect());
    let values = values.ok_or_else(|| format!("no list of numbers {what}"))?;
    Sample::new(values).map(Cell::Runs).map_err(|error| format!("{what}: {error}"))
}

/// A key of a document, and how tables show its number.
type Shown = (&'static str, &'static str, f64, usize, Better);

/// The quantities of an object that has `keys`.
fn singles(
    of: &Value,
    keys: &[Shown],
    (engine, group, role): (Option<usize>, &str, Role),
) -> impl Iterator<Item = Quantity> {
    let quantities: Vec<Quantity> = keys
        .iter()
        .filter_map(|(key, name, per_unit, decimals, better)| {
            Some(Quantity {
                engine,
                group: group.to_string(),
                name: name.to_string(),
                better: *better,
                decimals: *decimals,
                role,
                cell: single(&of[*key], *per_unit)?,
            })
        })
        .collect();
    quantities.into_iter()
}

/// Slab memory of each cache, by its name and, for names that several caches have, the number among them.
fn caches(of: &[Value], engine: Option<usize>) -> Vec<Quantity> {
    of.iter()
        .filter_map(|cache| {
            let name = cache["cache"].as_str()?;
            let ordinal = cache["ordinal"].as_u64().filter(|ordinal| *ordinal > 0);
            Some(Quantity {
                engine,
                group: "caches, KiB of slabs".to_string(),
                name: ordinal.map_or(name.to_string(), |ordinal| format!("{name} ({})", ordinal + 1)),
                better: Better::Lower,
                decimals: 0,
                role: Role::Detail,
                cell: single(&cache["slab_bytes"], 1024.0)?,
            })
        })
        .collect()
}
