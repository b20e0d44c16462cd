//! Horizontal bars of stacked parts.

use super::svg::{Anchor, at, fitted, width_of};
use super::{Axis, COLOURS, Chart, Svg, Width, row_axis};

/// Wholes of parts, a bar each.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// Names of the parts, the same in all bars; one if bars have no parts.
    pub parts: Vec<String>,
    /// The colour of the first part, from 0: what is the same on a page looks the same.
    pub first_colour: usize,
    /// The bars, first on top.
    pub bars: Vec<Bar>,
    /// What their length means.
    pub axis: Axis,
}

/// A bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Its name.
    pub label: String,
    /// Sizes of its parts, in the order of the names; what is below nothing is drawn as nothing.
    pub values: Vec<f64>,
}

const BAR: f64 = 15.0;

impl Bar {
    fn total(&self) -> f64 {
        self.values.iter().filter(|value| value.is_finite()).map(|value| value.max(0.0)).sum()
    }
}

impl Chart for Bars {
    fn describe(&self) -> String {
        let parts =
            if self.parts.len() > 1 { format!(", each of {}", self.parts.join(", ")) } else { String::new() };
        let longest = self.bars.iter().max_by(|a, b| a.total().total_cmp(&b.total()));
        let longest = longest.map_or(String::new(), |bar| {
            format!(" The longest is {} with {}.", bar.label, self.axis.scale.print(bar.total()))
        });
        format!("{} horizontal bars of {}{parts}.{longest}", self.bars.len(), self.axis.label)
    }

    fn keys(&self) -> Vec<(Svg, String)> {
        if self.parts.len() < 2 {
            return Vec::new();
        }
        let key = |(index, name): (usize, &String)| {
            let mut svg = Svg::new(16.0, 12.0);
            svg.add(format_args!(
                r#"<rect class="f{}" x="0" y="1" width="16" height="10"/>"#,
                (self.first_colour + index) % COLOURS
            ));
            (svg, name.clone())
        };
        self.parts.iter().enumerate().map(key).collect()
    }

    fn draw(&self, width: Width) -> Svg {
        let units = width.units();
        let above = width == Width::Narrow;
        let widest =
            |texts: &mut dyn Iterator<Item = String>| texts.map(|text| width_of(&text)).fold(0.0, f64::max);
        let names = widest(&mut self.bars.iter().map(|bar| bar.label.clone())).min(220.0);
        let values = widest(&mut self.bars.iter().map(|bar| self.axis.scale.print(bar.total())));
        let left = if above { 4.0 } else { names + 8.0 };
        let right = units - values - 6.0;
        let (head, pitch) = if above { (16.0, BAR + 24.0) } else { (0.0, BAR + 7.0) };
        let bottom = 4.0 + pitch * self.bars.len() as f64;
        let mut svg = Svg::new(units, bottom + 36.0);
        let most = self.bars.iter().map(Bar::total).fold(0.0, f64::max);
        let about = if above { 4 } else { 6 };
        let ticks = self.axis.scale.ticks(0.0, most, about, false);
        let x = row_axis(&mut svg, &self.axis, &ticks, (left, right), (0.0, bottom));
        for (index, bar) in self.bars.iter().enumerate() {
            let y = 4.0 + pitch * index as f64 + head;
            let middle = y + BAR / 2.0 + 4.0;
            if above {
                svg.text("name", Anchor::Start, (left, y - 4.0), &fitted(&bar.label, units - left));
            } else {
                svg.text("name", Anchor::End, (left - 8.0, middle), &fitted(&bar.label, names));
            }
            let mut sum = 0.0;
            for (part, value) in bar.values.iter().enumerate().filter(|(_, value)| **value > 0.0) {
                let (from, to) = (x(sum), x(sum + value));
                sum += value;
                let name = self.parts.get(part).map_or("", String::as_str);
                svg.told(
                    format_args!(
                        r#"<rect class="f{}" x="{}" y="{}" width="{}" height="{BAR}"/>"#,
                        (self.first_colour + part) % COLOURS,
                        at(from),
                        at(y),
                        at((to - from).max(0.3))
                    ),
                    &format!("{}: {name} {}", bar.label, self.axis.scale.print(*value)),
                );
            }
            svg.text("value", Anchor::Start, (x(sum) + 5.0, middle), &self.axis.scale.print(sum));
        }
        svg
    }
}
