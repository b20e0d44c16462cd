//! Orders of merit: a published column of figures beside the modelled one, by Kendall's tau.
//!
//! ```toml
//! [[merit]]
//! name = "swapped in"
//! parameter = "vm"                     # its values are put in order by the metric
//! cell = { variant = "standard" }      # may be left out
//! metric = "swapped_in_kib"            # the main metric if left out
//! ```

use super::rows::{Cells, Select, needed};
use slablab_machines::doc::{Doc, Read, Value as Toml};

/// A published order.
#[derive(Clone, Debug)]
pub struct Merit {
    /// What is ordered.
    pub name: String,
    /// The parameter whose values are put in order.
    pub parameter: &'static str,
    /// The cells.
    pub cell: Select,
    /// The place of the metric in the workload's list.
    pub metric: usize,
}

impl Cells<'_> {
    /// Reads a row.
    pub(crate) fn merit(&self, doc: &Doc<'_>, value: &Toml<'_>) -> Read<Merit> {
        let table = doc.table(value, "merit", "a table [[merit]]")?;
        doc.known(table, &["name", "parameter", "cell", "metric"])?;
        let given = needed(doc, value, table, "parameter")?;
        Ok(Merit {
            name: doc.text(needed(doc, value, table, "name")?, "name")?,
            parameter: self.parameter(doc, given, &doc.text(given, "parameter")?)?.name,
            cell: table.get("cell").map_or(Ok(Select::default()), |cell| self.select(doc, cell))?,
            metric: self.metric_of(doc, table)?,
        })
    }
}
