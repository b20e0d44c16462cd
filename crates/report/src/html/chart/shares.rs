//! Signed bars from one zero: what each of several things adds or takes away, and all of them together.

use super::bars::part;
use super::svg::{Anchor, fitted, width_of};
use super::{Axis, Chart, Svg, Width, row_axis};

/// Parts of a change, a bar each, and the change.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares {
    /// The parts, first on top.
    pub parts: Vec<Share>,
    /// All of them together; drawn below them.
    pub whole: Share,
    /// What their length means.
    pub axis: Axis,
}

/// A bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// Its name.
    pub label: String,
    /// Where it ends: right of zero or left of it; what is no number is drawn as nothing.
    pub value: f64,
    /// Half of the width of its interval; `None` if the value is exact.
    pub give_or_take: Option<f64>,
}

const BAR: f64 = 15.0;
/// Between a bar and its value.
const GAP: f64 = 5.0;

impl Share {
    /// What is drawn of its value.
    fn end(&self) -> f64 {
        if self.value.is_finite() { self.value } else { 0.0 }
    }

    /// The ends of its interval.
    fn reach(&self) -> [f64; 2] {
        let half = self.give_or_take.filter(|half| half.is_finite()).unwrap_or(0.0);
        [self.end() - half, self.end() + half]
    }
}

impl Shares {
    fn rows(&self) -> impl Iterator<Item = (&Share, usize)> {
        self.parts.iter().map(|part| (part, 0)).chain([(&self.whole, 1)])
    }

    /// A value with its sign.
    fn signed(&self, value: f64) -> String {
        format!("{}{}", if value > 0.0 { "+" } else { "" }, self.axis.scale.print(value))
    }

    fn bar(&self, svg: &mut Svg, (share, colour): (&Share, usize), (x, top): (&impl Fn(f64) -> f64, f64)) {
        let (zero, end) = (x(0.0), x(share.end()));
        let shape = part(colour, (zero.min(end), zero.max(end)), (top, BAR));
        let give_or_take = share.give_or_take.filter(|half| *half > 0.0);
        let told =
            give_or_take.map_or(String::new(), |half| format!(" \u{b1} {}", self.axis.scale.print(half)));
        svg.told(format_args!("{shape}"), &format!("{}: {}{told}", share.label, self.signed(share.value)));
        let [low, high] = share.reach().map(x);
        let middle = top + BAR / 2.0;
        if give_or_take.is_some() {
            svg.line("axis", (low, middle), (high, middle));
            for place in [low, high] {
                svg.line("axis", (place, middle - 3.0), (place, middle + 3.0));
            }
        }
        let (anchor, place) =
            if share.value < 0.0 { (Anchor::End, low - GAP) } else { (Anchor::Start, high + GAP) };
        svg.text("value", anchor, (place, middle + 4.0), &self.signed(share.value));
    }
}

impl Chart for Shares {
    fn describe(&self) -> String {
        let most = self.parts.iter().max_by(|a, b| a.value.abs().total_cmp(&b.value.abs()));
        let most = most.map_or(String::new(), |share| {
            format!(" The longest is {} with {}.", share.label, self.signed(share.value))
        });
        format!(
            "{} horizontal bars from zero, parts of a change in {} of {}.{most}",
            self.parts.len(),
            self.axis.label,
            self.signed(self.whole.value)
        )
    }

    fn keys(&self) -> Vec<(Svg, String)> {
        Vec::new()
    }

    fn draw(&self, width: Width) -> Svg {
        let units = width.units();
        let above = width == Width::Narrow;
        let widest =
            |texts: &mut dyn Iterator<Item = String>| texts.map(|text| width_of(&text)).fold(0.0, f64::max);
        let names = widest(&mut self.rows().map(|(share, _)| share.label.clone())).min(220.0);
        let room = |below: bool| {
            let side = self.rows().filter(|(share, _)| (share.value < 0.0) == below);
            widest(&mut side.map(|(share, _)| self.signed(share.value))) + GAP + 2.0
        };
        let left = room(true) + if above { 4.0 } else { names + 8.0 };
        let right = units - room(false);
        let (head, pitch) = if above { (16.0, BAR + 24.0) } else { (0.0, BAR + 7.0) };
        let rows = self.parts.len() + 1;
        let bottom = 4.0 + pitch * rows as f64;
        let mut svg = Svg::new(units, bottom + 36.0);
        let reach = || self.rows().flat_map(|(share, _)| share.reach());
        let (low, high) = (reach().fold(0.0, f64::min), reach().fold(0.0, f64::max));
        let ticks = self.axis.scale.ticks(low, high, if above { 3 } else { 6 }, false);
        let across = row_axis(&mut svg, &self.axis, &ticks, (left, right), (0.0, bottom));
        let x = |value: f64| across(self.axis.scale.place(value).clamp(ticks.low, ticks.high));
        for (index, row) in self.rows().enumerate() {
            let top = 4.0 + pitch * index as f64 + head;
            if above {
                svg.text("name", Anchor::Start, (4.0, top - 4.0), &fitted(&row.0.label, units - 4.0));
            } else {
                svg.text("name", Anchor::End, (names, top + BAR / 2.0 + 4.0), &fitted(&row.0.label, names));
            }
            self.bar(&mut svg, row, (&x, top));
        }
        svg
    }
}
