//! Numbers that grow linearly with a parameter, such as a run's time with its loops.
//!
//! ```toml
//! [[linear]]
//! name = "time in loops"
//! parameter = "loops"            # a list of three values or more
//! cell = { groups = 4 }          # each machine, engine and value of other parameters has a fit of its own
//! metric = "elapsed_ps"          # the main metric if left out
//! percent = 2                    # the largest residual over the modelled mean
//! ```

use super::rows::{Cells, Select, float, needed};
use slablab_machines::doc::{Doc, Read, Value as Toml};

/// A number that is expected to grow linearly with a parameter.
#[derive(Clone, Debug)]
pub struct Linear {
    /// What it says.
    pub name: String,
    /// The parameter.
    pub parameter: &'static str,
    /// The cells.
    pub cell: Select,
    /// The place of the metric in the workload's list.
    pub metric: usize,
    /// The largest residual over the mean, percent.
    pub percent: f64,
}

impl Cells<'_> {
    /// Reads a row.
    pub(crate) fn linear(&self, doc: &Doc<'_>, value: &Toml<'_>) -> Read<Linear> {
        let table = doc.table(value, "linear", "a table [[linear]]")?;
        doc.known(table, &["name", "parameter", "cell", "metric", "percent"])?;
        let part = |name: &str| needed(doc, value, table, name);
        let given = part("parameter")?;
        Ok(Linear {
            name: doc.text(part("name")?, "name")?,
            parameter: self.parameter(doc, given, &doc.text(given, "parameter")?)?.name,
            cell: table.get("cell").map_or(Ok(Select::default()), |cell| self.select(doc, cell))?,
            metric: self.metric_of(doc, table)?,
            percent: float(doc, part("percent")?, "percent", 0.0..=100.0)?,
        })
    }
}
