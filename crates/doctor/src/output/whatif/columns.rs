//! The figures of a cache, each today and with the change, as columns.

use crate::whatif::{Figures, Prediction, Row, Total};
use slablab_report::column::Columns;
use slablab_report::frame::Frame;
use slablab_report::html::Cell;

/// A figure: its key for programs, its heads for people, and how it is got.
pub(super) struct Figure {
    pub(super) key: &'static str,
    /// Its head in a text table; empty if people see it by other heads, or not at all.
    pub(super) short: &'static str,
    /// Its head on a page.
    pub(super) head: &'static str,
    pub(super) get: fn(&Figures) -> u64,
    /// Whether it is of one slab. Others are not known where slab memory is not predicted.
    pub(super) is_layout: bool,
}

const fn figure(
    key: &'static str,
    short: &'static str,
    head: &'static str,
    get: fn(&Figures) -> u64,
) -> Figure {
    Figure { key, short, head, get, is_layout: false }
}

const fn layout(
    key: &'static str,
    short: &'static str,
    head: &'static str,
    get: fn(&Figures) -> u64,
) -> Figure {
    Figure { is_layout: true, ..figure(key, short, head, get) }
}

/// All figures, in the order of the CSV.
pub(super) const FIGURES: [Figure; 7] = [
    layout("slab_size_bytes", "", "", |figures| figures.size),
    layout("order", "O", "order", |figures| figures.order as u64),
    layout("objs_per_slab", "O/S", "objects in a slab", |figures| figures.objects_per_slab),
    figure("objects", "", "", |figures| figures.objects),
    figure("slabs", "Slabs", "slabs", |figures| figures.slabs),
    figure("total_bytes", "", "", |figures| figures.bytes),
    figure("waste_bytes", "", "", |figures| figures.waste),
];

/// The counts that people see as one column, `3>0`.
pub(super) fn counts() -> impl Iterator<Item = &'static Figure> {
    FIGURES.iter().filter(|figure| !figure.short.is_empty())
}

impl Figure {
    /// The key today and the key with the change.
    fn keys(&self) -> [String; 2] {
        let whatif = match self.key.strip_suffix("_bytes") {
            Some(stem) => format!("{stem}_whatif_bytes"),
            None => format!("{}_whatif", self.key),
        };
        [self.key.to_string(), whatif]
    }

    /// The figure today and with the change.
    pub(super) fn both(&self, row: &Row) -> [u64; 2] {
        [&row.today, &row.whatif].map(self.get)
    }
}

/// A cache, and the change in words.
pub(super) type Line<'a> = (&'a str, &'a Row);

/// The columns of CSV and of the rows of JSON.
pub(super) fn columns<'a>() -> Columns<Line<'a>> {
    let names = Columns::default()
        .key("whatif", |line: &Line| Cell::Text(line.0.into()))
        .key("cache", |line| Cell::Name(line.1.cache.clone()))
        .key("ordinal", |line| Cell::Count(line.1.ordinal.into()))
        .described("Which of several caches of one name: 0 for the first.");
    FIGURES.iter().fold(names, |columns, figure| {
        let [today, whatif] = figure.keys();
        columns
            .key(today, |line: &Line| Cell::Count((figure.get)(&line.1.today)))
            .key(whatif, |line: &Line| Cell::Count((figure.get)(&line.1.whatif)))
    })
}

/// The changes in words, in the order of `predictions`.
pub(super) fn labels(predictions: &[Prediction]) -> Vec<String> {
    predictions.iter().map(|prediction| prediction.change.to_string()).collect()
}

/// Every cache of every change. `labels` are those of `predictions`.
pub(super) fn lines<'a>(
    predictions: &'a [Prediction],
    labels: &'a [String],
) -> impl Iterator<Item = Line<'a>> {
    predictions
        .iter()
        .zip(labels)
        .flat_map(|(prediction, label)| prediction.rows.iter().map(move |row| (label.as_str(), row)))
}

/// The sums of every change, a row for each: today's, and the predicted ones with their range.
pub fn changes_frame(predictions: &[Prediction]) -> Frame {
    let of = ["slabs", "objects", "total_bytes", "waste_bytes"];
    let today = of.map(|key| format!("{key}_today"));
    let keys = ["whatif"].into_iter().map(String::from).chain(today).chain(of.map(String::from));
    let mut out = Frame::new(keys.chain(["total_low_bytes", "total_high_bytes"].map(String::from)));
    for Prediction { change, today, whatif, .. } in predictions {
        let figures = |total: &Total| [total.slabs, total.objects, total.bytes, total.waste].map(Cell::Count);
        let range = [whatif.low, whatif.high].map(Cell::Bytes);
        let sums = figures(today).into_iter().chain(figures(whatif)).chain(range);
        out.row(std::iter::once(Cell::Text(change.to_string())).chain(sums));
    }
    out
}
