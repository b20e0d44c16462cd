//! A parameter that a mail does not tell, pinned on figures that it publishes of the base engine.
//!
//! ```toml
//! [[pinned]]
//! parameter = "bytes"       # has one value in [parameters]
//! base = { engine = "slab@2.6.29", binding = "same-cpu" }
//! other = { engine = "slab@2.6.29", binding = "same-socket" }  # left out: the figure of `base` itself
//! tried = [4096, 8192, 16000]
//! how = "the ratio that is nearest to the published one"
//! ```
//!
//! Both cells are of the first engine of the file, with which the others are compared: so what the model says
//! of the others is a prediction. A relation of the same cells is fitted, and counts in no score.

use crate::file::rows::{Cells, Expect, Published, Select, needed, value};
use crate::workload::{Lists, Value};
use slablab_machines::doc::{Doc, Read, Value as Toml};

/// A parameter that was pinned.
#[derive(Clone, Debug)]
pub struct Pinned {
    /// The parameter.
    pub parameter: &'static str,
    /// Its value.
    pub value: Value,
    /// The cells whose published figure was used.
    pub base: Select,
    /// The cells whose figure over that of `base` was used; `None` for the figure of `base`.
    pub other: Option<Select>,
    /// The place of the figures' metric in [`Workload::metrics`](crate::workload::Workload::metrics).
    pub metric: usize,
    /// The published figure, or ratio, that was used.
    pub published: f64,
    /// The values that were tried.
    pub tried: Vec<Value>,
    /// What was done.
    pub how: String,
}

impl Pinned {
    /// Whether a relation is the one that was used: it predicts nothing. A figure was used alone if the
    /// relation has its cells on both sides.
    pub fn is(&self, expect: &Expect) -> bool {
        let other = self.other.as_ref().unwrap_or(&self.base);
        let sides = (&expect.base, &expect.other);
        expect.metric == self.metric
            && expect.base_metric == self.metric
            && (sides == (&self.base, other) || sides == (other, &self.base))
    }
}

impl Cells<'_> {
    /// Reads a row.
    pub(crate) fn pinned(&self, doc: &Doc<'_>, whole: &Toml<'_>, published: &[Published]) -> Read<Pinned> {
        let table = doc.table(whole, "pinned", "a table [[pinned]]")?;
        doc.known(table, &["parameter", "base", "other", "metric", "tried", "how"])?;
        let part = |name: &str| needed(doc, whole, table, name);
        let given = part("parameter")?;
        let parameter = self.parameter(doc, given, &doc.text(given, "parameter")?)?;
        let bad = |what: String| Err(doc.bad(given, format!("[[pinned]] {}: {what}", parameter.name)));
        let names = |lists: &Lists| lists.iter().any(|(name, _)| *name == parameter.name);
        let list =
            self.parameters.iter().find(|(name, _)| *name == parameter.name).map(|(_, list)| &list[..]);
        let Some([pinned]) = list.filter(|_| !self.of_size.iter().any(|(_, lists)| names(lists))) else {
            return bad("expected one value of it in [parameters], for all sizes".into());
        };
        let tried = doc.array(part("tried")?, "tried")?.map(|one| value(doc, parameter, one));
        let tried: Vec<Value> = tried.collect::<Read<_>>()?;
        if tried.len() < 2 || !tried.contains(pinned) {
            return bad(format!("expected `tried` with {pinned} and another value"));
        }
        let metric = self.metric_of(doc, table)?;
        let base = self.select(doc, part("base")?)?;
        let other = table.get("other").map(|cell| self.select(doc, cell)).transpose()?;
        let first = &self.engines[0].0;
        for cell in [Some(&base), other.as_ref()].into_iter().flatten() {
            if cell.engine.as_ref() != Some(first) {
                let what = "a parameter is pinned on the engine that others are compared with";
                return bad(format!("{what}: expected engine = \"{first}\" in base and other"));
            }
        }
        let figure = |cell: &Select| {
            let of = |row: &&Published| row.cell == *cell && row.metric == metric && row.value > 0.0;
            published.iter().find(of).map(|row| row.value)
        };
        let figures = match &other {
            Some(other) => figure(&base).zip(figure(other)).map(|(base, other)| other / base),
            None => figure(&base),
        };
        let Some(published) = figures else {
            return bad("expected [[published]] rows of the same cells".into());
        };
        let how = doc.text(part("how")?, "how")?;
        let value = pinned.clone();
        Ok(Pinned { parameter: parameter.name, value, base, other, metric, published, tried, how })
    }
}
