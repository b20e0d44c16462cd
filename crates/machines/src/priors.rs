//! How far a cost may be from the truth, by where its number is from: the file `data/priors.toml`.
//!
//! | origin | which |
//! |---|---|
//! | table | a document or a measurement of that machine or processor |
//! | analogy | assumed, from a processor like it |
//! | kernel | assumed, and what a kernel does around its allocator: system calls, wake-ups, messages |
//! | stated | the machine file says `within` beside the number |

use crate::costs::{COSTS, Source};
use crate::doc::{Doc, Read};
use std::sync::LazyLock;

const TEXT: &str = include_str!("../data/priors.toml");
/// Standard normal variables are within this of 0 with a probability of 95 %.
const TWO_SIDED: f64 = 1.959_963_984_540_054;

static TABLES: LazyLock<Tables> =
    LazyLock::new(|| Tables::parse(TEXT).unwrap_or_else(|bad| panic!("data/priors.toml: {bad}")));

/// Where a number is from, as far as its error depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A document or a measurement of that machine.
    Table,
    /// Assumed, by a processor like it.
    Analogy,
    /// Assumed, of what a kernel does around its allocator.
    Kernel,
    /// The machine file states the factor.
    Stated,
}

impl Origin {
    /// The word of tables and documents.
    pub fn word(self) -> &'static str {
        match self {
            Origin::Table => "table",
            Origin::Analogy => "analogy",
            Origin::Kernel => "kernel",
            Origin::Stated => "stated",
        }
    }
}

/// What is known of a cost's error: the logarithm of the true cost over the file's is normal around 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior {
    /// Where the number is from.
    pub origin: Origin,
    /// The true cost is within this factor, up or down, with 95 % certainty.
    pub within: f64,
}

impl Prior {
    /// The standard deviation of the logarithm.
    pub fn deviation(&self) -> f64 {
        self.within.ln() / TWO_SIDED
    }

    /// The factor at so many standard deviations, in millionths: whole, so that rounding in the last digit of
    /// a logarithm changes no result.
    pub fn factor_ppm(&self, deviations: f64) -> u64 {
        ((deviations * self.deviation()).exp() * 1e6).round() as u64
    }
}

impl Source {
    /// What is known of the cost's error.
    pub fn prior(&self) -> Prior {
        let tables = &*TABLES;
        let origin = match self.is_assumed() {
            _ if self.within_milli.is_some() => Origin::Stated,
            false => Origin::Table,
            true if tables.kernel_costs.iter().any(|cost| cost == self.cost) => Origin::Kernel,
            true => Origin::Analogy,
        };
        let stated = self.within_milli.map_or(1.0, |milli| f64::from(milli) / 1e3);
        let within = match origin {
            Origin::Stated => stated,
            Origin::Table => tables.table,
            Origin::Analogy => tables.analogy,
            Origin::Kernel => tables.kernel,
        };
        Prior { origin, within }
    }
}

/// What the file says.
struct Tables {
    table: f64,
    analogy: f64,
    kernel: f64,
    kernel_costs: Vec<String>,
}

impl Tables {
    fn parse(text: &str) -> Read<Tables> {
        let (doc, tables) = Doc::parse(text)?;
        doc.known(&tables, &["table", "analogy", "kernel"])?;
        let within = |name: &str| {
            let table = doc.table(&tables[name], name, "a table with `within`")?;
            doc.known(table, &["within", "costs"])?;
            doc.factor(&table["within"], "within")
        };
        let kernel = doc.table(&tables["kernel"], "kernel", "a table with `costs`")?;
        let costs = doc.array(&kernel["costs"], "costs")?.map(|one| {
            let name = doc.text(one, "costs")?;
            match COSTS.iter().any(|cost| cost.name == name) {
                true => Ok(name),
                false => Err(doc.bad(one, format!("{name} is no cost of a machine"))),
            }
        });
        Ok(Tables {
            table: within("table")?,
            analogy: within("analogy")?,
            kernel: within("kernel")?,
            kernel_costs: costs.collect::<Read<_>>()?,
        })
    }
}
