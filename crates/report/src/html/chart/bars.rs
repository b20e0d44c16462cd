//! Horizontal bars of stacked parts.

use super::svg::{Anchor, at, fitted, width_of};
use super::{Axis, COLOURS, Chart, Svg, Width, row_axis};
use std::fmt::Write;

/// Wholes of parts, a bar each.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// Names of the parts, the same in all bars; one if bars have no parts.
    pub parts: Vec<String>,
    /// The colour of the first part, from 0. Parts with the same meaning have the same colour on a page.
    pub first_colour: usize,
    /// The bars, first on top.
    pub bars: Vec<Bar>,
    /// What their length means. The axis is never logarithmic.
    pub axis: Axis,
    /// The last part is what is left of the whole, such as idle time. It is drawn as an outline without a
    /// colour.
    pub remainder: bool,
}

/// A bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Its name.
    pub label: String,
    /// Sizes of its parts, in the order of the names; what is below nothing, or no number, is drawn as
    /// nothing.
    pub values: Vec<f64>,
}

/// Bars with an interval on the end of each.
#[derive(Clone, Debug, PartialEq)]
pub struct Whiskers {
    /// The bars.
    pub bars: Bars,
    /// The ends of the interval of each bar's whole, in the order of the bars; `None` for no interval.
    pub ends: Vec<Option<[f64; 2]>>,
}

const BAR: f64 = 15.0;
/// Half of the height of the strokes at the ends of an interval.
const CAP: f64 = 4.0;
/// The longest part of an interval that is drawn, in lengths of the longest bar: one that is wider would make
/// all bars short.
const FAR: f64 = 1.6;

impl Bar {
    /// The parts that can be drawn, with their index.
    fn drawn(&self) -> impl Iterator<Item = (usize, f64)> {
        self.values.iter().copied().enumerate().filter(|(_, value)| value.is_finite() && *value > 0.0)
    }

    fn total(&self) -> f64 {
        self.drawn().map(|(_, value)| value).sum()
    }
}

/// A part from `from` to `to`, from `top` on as high as said: a colour and, from the second colour on, a
/// texture of its own, for print without colour and for eyes that do not tell colours apart.
///
/// The strokes are drawn one by one: browsers make pictures of SVG patterns when they print, megabytes of
/// them.
pub(super) fn part(colour: usize, (from, to): (f64, f64), (top, height): (f64, f64)) -> String {
    let width = to - from;
    let shape = format!(
        r#"<rect class="f{}" x="{}" y="{}" width="{}" height="{}"/>"#,
        colour % COLOURS,
        at(from),
        at(top),
        at(width.max(0.3)),
        at(height)
    );
    let mut strokes = String::new();
    let mut stroke = |x: f64, y: f64, along: (f64, f64)| {
        write!(strokes, "M{} {}l{} {}", at(from + x), at(top + y), at(along.0), at(along.1))
            .expect("a string");
    };
    let places = |every: f64, most: f64| {
        (1..).map(move |n| (f64::from(n) - 0.5) * every).take_while(move |place| *place < most)
    };
    let (rising, falling) = match colour % COLOURS {
        1 => (6.0, 0.0),
        3 => (0.0, 6.0),
        5 => (7.0, 7.0),
        _ => (0.0, 0.0),
    };
    for (every, up) in [(rising, true), (falling, false)].into_iter().filter(|(every, _)| *every > 0.0) {
        // A stroke at 45 degrees begins on the lower or upper edge, perhaps left of the part.
        for begin in places(every, width + height).map(|place| place - height) {
            let (first, last) = (begin.max(0.0), (begin + height).min(width));
            let (down, length) = (first - begin, last - first);
            if up {
                stroke(first, height - down, (length, -length))
            } else {
                stroke(first, down, (length, length))
            }
        }
    }
    match colour % COLOURS {
        2 if width > 1.0 => places(5.0, height).for_each(|y| stroke(0.0, y, (width, 0.0))),
        4 => places(5.0, width).for_each(|x| stroke(x, 0.0, (0.0, height))),
        _ => {}
    }
    if strokes.is_empty() { shape } else { format!(r#"{shape}<path class="t" d="{strokes}"/>"#) }
}

/// The outline of a remainder.
fn outline((from, to): (f64, f64), (top, height): (f64, f64)) -> String {
    let (x, y, width, height) = (at(from), at(top + 0.5), at((to - from).max(0.3)), at(height - 1.0));
    format!(r#"<rect class="rest" x="{x}" y="{y}" width="{width}" height="{height}"/>"#)
}

impl Bars {
    /// The chart, with an interval on each bar that has one.
    fn drawn(&self, width: Width, ends: &[Option<[f64; 2]>]) -> Svg {
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
        let longest = self.bars.iter().map(Bar::total).fold(0.0, f64::max);
        let farthest = ends.iter().flatten().map(|ends| ends[1]).filter(|end| end.is_finite());
        let most = farthest.fold(longest, f64::max).min(FAR * longest);
        let about = if above { 4 } else { 6 };
        let ticks = self.axis.scale.linear().ticks(0.0, most, about, false);
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
            for (index, value) in bar.drawn() {
                let (from, to) = (x(sum), x(sum + value));
                sum += value;
                let name = self.parts.get(index).map_or("", String::as_str);
                let shape = self.shape(index, (from, to), (y, BAR));
                svg.told(
                    format_args!("{shape}"),
                    &format!("{}: {name} {}", bar.label, self.axis.scale.print(value)),
                );
            }
            let mut end = x(sum);
            if let Some([low, high]) = ends.get(index).copied().flatten().filter(|ends| ends[0] <= ends[1]) {
                let (from, to) = (x(low.clamp(0.0, most)), x(high.clamp(0.0, most)));
                svg.told(
                    format_args!("{}", whisker((from, to), y + BAR / 2.0, high <= most)),
                    &format!(
                        "{}: 95 % interval {} to {}",
                        bar.label,
                        self.axis.scale.print(low),
                        self.axis.scale.print(high)
                    ),
                );
                end = end.max(to);
            }
            svg.text("value", Anchor::Start, (end + 5.0, middle), &self.axis.scale.print(sum));
        }
        svg
    }

    /// A part's shape.
    fn shape(&self, index: usize, across: (f64, f64), down: (f64, f64)) -> String {
        if self.remainder && index + 1 == self.parts.len() {
            outline(across, down)
        } else {
            part(self.first_colour + index, across, down)
        }
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
            svg.add(format_args!("{}", self.shape(index, (0.0, 16.0), (1.0, 10.0))));
            (svg, name.clone())
        };
        self.parts.iter().enumerate().map(key).collect()
    }

    fn draw(&self, width: Width) -> Svg {
        self.drawn(width, &[])
    }
}

/// A stroke from one end of an interval to the other; without `whole` it goes on beyond the axis, and has no
/// stroke across its upper end.
fn whisker((from, to): (f64, f64), middle: f64, whole: bool) -> String {
    let across = |x: f64| format!("M{} {}v{}", at(x), at(middle - CAP), at(2.0 * CAP));
    let last = if whole { across(to) } else { String::new() };
    format!(r#"<path class="whisker" d="M{} {}H{}{}{last}"/>"#, at(from), at(middle), at(to), across(from))
}

impl Chart for Whiskers {
    fn describe(&self) -> String {
        format!("{} Each has a 95 % interval.", self.bars.describe())
    }

    fn keys(&self) -> Vec<(Svg, String)> {
        self.bars.keys()
    }

    fn draw(&self, width: Width) -> Svg {
        self.bars.drawn(width, &self.ends)
    }
}
