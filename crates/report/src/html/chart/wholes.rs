//! Wholes of parts of any number: a chart has colours for the largest, a table has all.

use super::{Axis, Bar, Bars, COLOURS, column};
use crate::html::{Cell, Head, Table};

/// Wholes, such as the CPU time of a run, and what each consists of.
#[derive(Clone, Debug, PartialEq)]
pub struct Wholes {
    /// Names of the parts.
    pub parts: Vec<String>,
    /// The name of what is left of a whole, such as "idle", if there is such a thing.
    pub remainder: Option<String>,
    /// The wholes, first on top: sizes of the parts in their order, and then of the remainder if there is
    /// one.
    pub wholes: Vec<Bar>,
    /// What is measured.
    pub axis: Axis,
}

/// A size as it is drawn: none below nothing.
fn drawn(value: f64) -> f64 {
    if value.is_finite() { value.max(0.0) } else { 0.0 }
}

impl Wholes {
    fn value(&self, whole: &Bar, part: usize) -> f64 {
        whole.values.get(part).copied().unwrap_or(0.0)
    }

    /// Which parts have a bar of their own: the largest, as many as there are colours.
    fn shown(&self) -> Vec<bool> {
        let mut order: Vec<(usize, f64)> = (0..self.parts.len())
            .map(|part| (part, self.wholes.iter().map(|whole| drawn(self.value(whole, part))).sum()))
            .collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let own = if order.len() > COLOURS { COLOURS - 1 } else { COLOURS };
        let mut shown = vec![false; self.parts.len()];
        order.iter().take(own).for_each(|(part, _)| shown[*part] = true);
        shown
    }

    /// The chart. If there are more parts than colours, the smallest are one part, named by their number.
    pub fn chart(&self) -> Bars {
        let shown = self.shown();
        let others = shown.iter().filter(|shown| !**shown).count();
        let picked = |index: &usize| shown[*index];
        let mut parts: Vec<String> =
            (0..self.parts.len()).filter(picked).map(|part| self.parts[part].clone()).collect();
        parts.extend((others > 0).then(|| format!("{others} others")));
        parts.extend(self.remainder.clone());
        let bar = |whole: &Bar| {
            let value = |part: usize| drawn(self.value(whole, part));
            let mut values: Vec<f64> = (0..self.parts.len()).filter(picked).map(value).collect();
            let rest: f64 = (0..self.parts.len()).filter(|part| !shown[*part]).map(value).sum();
            values.extend((others > 0).then_some(rest));
            values.extend(self.remainder.is_some().then(|| value(self.parts.len())));
            Bar { label: whole.label.clone(), values }
        };
        let bars = self.wholes.iter().map(bar).collect();
        let remainder = self.remainder.is_some();
        Bars { parts, first_colour: 0, bars, axis: self.axis.clone(), remainder }
    }

    /// The table: a row for each whole, with all parts in numbers and in percent of the whole.
    pub fn table(&self, label: &str) -> Table {
        let names = || self.parts.iter().chain(&self.remainder);
        let sum =
            |whole: &Bar| -> f64 { (0..names().count()).map(|part| drawn(self.value(whole, part))).sum() };
        let all_values =
            self.wholes.iter().flat_map(|whole| whole.values.iter().copied().chain([sum(whole)]));
        let (whole_head, cell) = column("in all", self.axis.scale, all_values);
        let heads = names()
            .flat_map(|name| [Head { name: name.clone(), ..whole_head.clone() }, Head::number("of it")]);
        let mut table = Table::new([Head::text(label), whole_head.clone()].into_iter().chain(heads));
        for whole in &self.wholes {
            let all = sum(whole);
            let cells = (0..names().count()).flat_map(|part| {
                let value = self.value(whole, part);
                let percent = Some(drawn(value) / all * 100.0).filter(|percent| percent.is_finite());
                [cell(value), Cell::Percent(percent)]
            });
            table.row([Cell::Name(whole.label.clone()), cell(all)].into_iter().chain(cells));
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Chart, Scale, Width};
    use super::*;

    fn wholes(parts: usize) -> Wholes {
        let values = |of: f64| (0..=parts).map(|part| of * (part as f64 + 1.0)).collect();
        Wholes {
            parts: (0..parts).map(|part| format!("lock {part}")).collect(),
            remainder: Some("idle".into()),
            wholes: vec![
                Bar { label: "slub@6.1".into(), values: values(1.0) },
                Bar { label: "slab@6.1".into(), values: values(2.0) },
            ],
            axis: Axis::new("CPU time", Scale::Seconds),
        }
    }

    #[test]
    fn the_smallest_parts_are_one() {
        let few = wholes(COLOURS).chart();
        assert_eq!((few.parts.len(), few.bars[1].values.len()), (7, 7), "{:?}", few.parts);
        let many = wholes(8).chart();
        assert_eq!(
            many.parts,
            ["lock 3", "lock 4", "lock 5", "lock 6", "lock 7", "3 others", "idle"],
            "the largest five keep their order"
        );
        assert_eq!(many.bars[0].values, [4.0, 5.0, 6.0, 7.0, 8.0, 6.0, 9.0]);
        assert_eq!(many.bars[1].values[5], 12.0);
    }

    #[test]
    fn the_table_has_every_part() {
        let table = wholes(8).table("engine");
        assert_eq!(table.columns.len(), 2 + 2 * 9);
        assert_eq!(table.columns[2].unit, "s");
        assert_eq!(table.rows[0][1], Cell::Number(45.0, 2));
        assert_eq!(table.rows[0][2..4], [Cell::Number(1.0, 2), Cell::Percent(Some(100.0 / 45.0))]);
        assert_eq!(table.rows[1][18..], [Cell::Number(18.0, 2), Cell::Percent(Some(20.0))]);
    }

    #[test]
    fn a_remainder_has_no_colour() {
        let drawn = wholes(2).chart().draw(Width::Wide).sign();
        assert_eq!(drawn.matches("class=\"rest\"").count(), 2);
        assert_eq!(drawn.matches("class=\"f0\"").count(), 2);
        assert!(!drawn.contains("class=\"f2\""), "{drawn}");
    }
}
