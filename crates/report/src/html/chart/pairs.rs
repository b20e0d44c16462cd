//! Two values of each of many things, on one line each: how far they are apart is what one sees.

use super::svg::{Anchor, at, fitted, width_of};
use super::{Axis, Chart, Svg, Width, row_axis};

/// Pairs of values, a row each.
#[derive(Clone, Debug, PartialEq)]
pub struct Pairs {
    /// What the two values are: a dot and a diamond around it where both are the same.
    pub names: [String; 2],
    /// The rows, first on top.
    pub rows: Vec<Pair>,
    /// What the values measure; they may be below zero where a scale has such places. On a scale of doublings
    /// what is less than one stands at the left end.
    pub axis: Axis,
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Its name.
    pub label: String,
    /// Its values, in the order of the names.
    pub values: [f64; 2],
}

const PITCH: f64 = 20.0;

fn dot(svg: &mut Svg, (x, y): (f64, f64), told: Option<&str>) {
    let (x, y) = (at(x), at(y));
    mark(svg, format_args!(r#"<circle class="dot" cx="{x}" cy="{y}" r="3.2"/>"#), told);
}

fn diamond(svg: &mut Svg, (x, y): (f64, f64), told: Option<&str>) {
    let (x, y) = (at(x), at(y - 6.0));
    mark(svg, format_args!(r#"<path class="diamond" d="M{x} {y}l6 6l-6 6l-6 -6z"/>"#), told);
}

fn mark(svg: &mut Svg, shape: std::fmt::Arguments<'_>, told: Option<&str>) {
    match told {
        Some(told) => svg.told(shape, told),
        None => svg.add(shape),
    }
}

impl Chart for Pairs {
    fn describe(&self) -> String {
        format!(
            "{} rows with two marks each, {} and {}, on one axis of {}.",
            self.rows.len(),
            self.names[0],
            self.names[1],
            self.axis.label
        )
    }

    fn keys(&self) -> Vec<(Svg, String)> {
        let key = |draw: fn(&mut Svg, (f64, f64), Option<&str>), name: &String| {
            let mut svg = Svg::new(14.0, 12.0);
            draw(&mut svg, (7.0, 6.0), None);
            (svg, name.clone())
        };
        vec![key(dot, &self.names[0]), key(diamond, &self.names[1])]
    }

    fn draw(&self, width: Width) -> Svg {
        let units = width.units();
        let above = width == Width::Narrow;
        let names = self.rows.iter().map(|row| width_of(&row.label)).fold(0.0, f64::max).min(220.0);
        let left = if above { 12.0 } else { names + 20.0 };
        let right = units - 16.0;
        let (head, pitch) = if above { (14.0, PITCH + 16.0) } else { (0.0, PITCH) };
        let bottom = 4.0 + pitch * self.rows.len() as f64;
        let mut svg = Svg::new(units, bottom + 36.0);
        let all = || self.rows.iter().flat_map(|row| row.values).filter(|value| value.is_finite());
        let (low, high) = (all().fold(0.0, f64::min), all().fold(0.0, f64::max));
        let ticks = self.axis.scale.ticks(low, high, if above { 4 } else { 7 }, true);
        let x = row_axis(&mut svg, &self.axis, &ticks, (left, right), (0.0, bottom));
        for (index, row) in self.rows.iter().enumerate() {
            let y = 4.0 + pitch * index as f64 + head + PITCH / 2.0;
            if above {
                svg.text("name", Anchor::Start, (2.0, y - 11.0), &fitted(&row.label, units));
            } else {
                svg.text("name", Anchor::End, (left - 16.0, y + 4.0), &fitted(&row.label, names));
                svg.line("rule", (left, y), (right, y));
            }
            let places = row.values.map(|value| x(self.axis.scale.place(value).clamp(ticks.low, ticks.high)));
            svg.line("apart", (places[0], y), (places[1], y));
            let told = |which: usize| {
                format!("{}: {} {}", row.label, self.names[which], self.axis.scale.print(row.values[which]))
            };
            dot(&mut svg, (places[0], y), Some(&told(0)));
            diamond(&mut svg, (places[1], y), Some(&told(1)));
        }
        svg
    }
}
