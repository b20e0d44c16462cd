//! Live memory over time: a band for each of the sites that held most, and one for all others.

use slablab_report::html::chart::{Axis, Scale, Stacked};
use slablab_report::html::{Cell, Head, Table};

/// Bands beside that of all others.
const BANDS: usize = 5;
/// Times in the table.
const TIMES: usize = 11;

/// Live bytes of sites at each place of a time line.
pub(super) struct OverTime {
    /// The time of each place in seconds.
    at: Vec<f64>,
    /// The name of each band, and its bytes.
    bands: Vec<(String, Vec<f64>)>,
}

impl OverTime {
    /// The lines of sites, those that held most first, in a recording of so many seconds.
    pub(super) fn of<'a>(seconds: f64, lines: impl IntoIterator<Item = (String, &'a [u64])>) -> OverTime {
        let mut bands: Vec<(String, Vec<f64>)> = lines
            .into_iter()
            .map(|(name, line)| (name, line.iter().map(|bytes| *bytes as f64).collect()))
            .collect();
        let places = bands.first().map_or(0, |(_, line)| line.len());
        let others = bands.split_off(bands.len().min(BANDS));
        if !others.is_empty() {
            let sum = |place: usize| others.iter().map(|(_, line)| line[place]).sum();
            bands.push((format!("{} others", others.len()), (0..places).map(sum).collect()));
        }
        let time = |place: usize| seconds * place as f64 / (places.max(2) - 1) as f64;
        OverTime { at: (0..places).map(time).collect(), bands }
    }

    /// The bands on each other.
    pub(super) fn chart(&self) -> Stacked {
        Stacked {
            x: Axis::new("time", Scale::Seconds),
            y: Axis::new("live bytes", Scale::Bytes),
            at: self.at.clone(),
            parts: self.bands.clone(),
        }
    }

    /// The chart at some times.
    pub(super) fn table(&self) -> Table {
        let heads = self.bands.iter().map(|(name, _)| Head::number(name));
        let mut table = Table::new(std::iter::once(Head::number("time")).chain(heads));
        for step in 0..TIMES {
            let place = step * self.at.len().saturating_sub(1) / (TIMES - 1);
            let Some(time) = self.at.get(place) else { continue };
            let cells = self.bands.iter().map(|(_, line)| Cell::Bytes(line[place] as u64));
            table.row(std::iter::once(Cell::Text(Scale::Seconds.print(*time))).chain(cells));
        }
        table
    }
}
