//! Metrics of every cell that `reproduce` shows beside the published figures: what was published in words
//! only, and numbers at several moments.
//!
//! ```toml
//! [[shown]]
//! name = "inodes in memory"
//! cell = { variant = "standard" }      # may be left out
//! metrics = ["inodes_boot", "inodes_close"]
//! ```

use crate::file::rows::{Cells, Select, metric, needed};
use slablab_machines::doc::{Doc, Read, Value as Toml};

/// A table of metrics, one line for each cell.
#[derive(Clone, Debug)]
pub struct Shown {
    /// What the metrics are.
    pub name: String,
    /// The cells.
    pub cell: Select,
    /// Places of the metrics in the workload's list; their unit is the same.
    pub metrics: Vec<usize>,
}

impl Cells<'_> {
    /// Reads a row.
    pub(crate) fn shown(&self, doc: &Doc<'_>, value: &Toml<'_>) -> Read<Shown> {
        let table = doc.table(value, "shown", "a table [[shown]]")?;
        doc.known(table, &["name", "cell", "metrics"])?;
        let name = doc.text(needed(doc, value, table, "name")?, "name")?;
        let cell = table.get("cell").map_or(Ok(Select::default()), |cell| self.select(doc, cell))?;
        let given = needed(doc, value, table, "metrics")?;
        let mut metrics = Vec::new();
        let unit = |at: usize| self.workload.metrics[at].unit;
        for one in doc.array(given, "metrics")? {
            let at = metric(doc, self.workload, one)?;
            if let Some(first) = metrics.first().filter(|first| unit(**first) != unit(at)) {
                let (name, expected) = (self.workload.metrics[at].name, unit(*first));
                let what =
                    format!("{name} is in {}: expected {expected}, as the first of the metrics", unit(at));
                return Err(doc.bad(one, what));
            }
            metrics.push(at);
        }
        if metrics.is_empty() {
            return Err(doc.bad(given, "metrics is empty: expected metrics = [\"elapsed_ps\"]"));
        }
        Ok(Shown { name, cell, metrics })
    }
}
