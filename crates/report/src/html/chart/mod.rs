//! Charts, drawn as SVG by the program.
//!
//! | chart | for |
//! |---|---|
//! | [`Bars`] | parts of wholes: where memory goes, the worst caches |
//! | [`Whiskers`] | bars with an interval each: times of allocators |
//! | [`Wholes`] | parts of wholes, more than there are colours: where time went; makes [`Bars`] and their table |
//! | [`Flame`] | parts of parts: who allocates, and who calls those |
//! | [`Heat`] | a number for each of two things: how long each CPU waited for each lock |
//! | [`Intervals`] | points with intervals: engines by machine |
//! | [`Lines`] | values over time or over a knob: straight or in steps, with an error band if there is one |
//! | [`Pairs`] | two values of each of many things: real and predicted, today and asked |
//! | [`Stacked`] | parts of a whole over time: memory by use |
//! | [`Shares`] | what each of several things adds to a change or takes from it |
//!
//! A chart is drawn for two widths, as text that is scaled down with its picture cannot be read on a narrow
//! page.

mod bars;
mod flame;
mod heat;
mod intervals;
mod lines;
mod pairs;
mod scale;
mod shares;
mod stacked;
mod svg;
mod wholes;

pub use bars::{Bar, Bars, Whiskers};
pub use flame::Flame;
pub use heat::Heat;
pub use intervals::{Group, Intervals, Point};
pub use lines::{LIVE_ABOVE, Lines, Series, Shape};
pub use pairs::{Pair, Pairs};
pub use scale::Scale;
pub use shares::{Share, Shares};
pub use stacked::Stacked;
pub use svg::Svg;
pub use wholes::Wholes;

use super::{Cell, Head};
use svg::Anchor;

/// What the page needs of a chart.
pub trait Chart {
    /// A description in a sentence or two, for readers who cannot see the chart.
    fn describe(&self) -> String;

    /// What its marks mean: a sign and a name each; none where there is one mark only.
    fn keys(&self) -> Vec<(Svg, String)>;

    /// The drawing for a page of this width.
    fn draw(&self, width: Width) -> Svg;

    /// The chart's data for uPlot, if it is long enough for zooming.
    fn live(&self) -> Option<serde_json::Value> {
        None
    }

    /// Whether the page's script for flame graphs zooms it.
    fn is_flame(&self) -> bool {
        false
    }
}

/// How wide a drawing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// A desktop or paper.
    Wide,
    /// A telephone.
    Narrow,
}

impl Width {
    /// The width in units of the drawing, which are close to pixels of the page.
    pub(super) fn units(self) -> f64 {
        match self {
            Width::Wide => 760.0,
            Width::Narrow => 350.0,
        }
    }
}

/// An axis: its label and the format of its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// What is measured.
    pub label: String,
    /// In which unit, and how it is spread.
    pub scale: Scale,
}

impl Axis {
    /// An axis.
    pub fn new(label: &str, scale: Scale) -> Axis {
        Axis { label: label.into(), scale }
    }

    /// Label and unit.
    fn title(&self, unit: &str) -> String {
        if unit.is_empty() { self.label.clone() } else { format!("{} ({unit})", self.label) }
    }
}

/// A column of a chart's table: its head with the unit, and how a value becomes a cell. Seconds are in one
/// unit, at most whole seconds, with places for the smallest value.
fn column(name: &str, scale: Scale, values: impl Iterator<Item = f64>) -> (Head, impl Fn(f64) -> Cell) {
    let sizes = values.map(f64::abs).filter(|size| size.is_finite() && *size > 0.0);
    let (least, most) = scale::bounds(sizes);
    let (divisor, unit) = match scale {
        Scale::Seconds | Scale::SecondTens => scale::second_unit(most.min(1.0)),
        _ => (1.0, ""),
    };
    let places = if least > 0.0 { (2.0 - (least / divisor).log10()).floor().clamp(1.0, 6.0) } else { 1.0 };
    let places = places as usize;
    let cell = move |value: f64| match scale {
        _ if !value.is_finite() => Cell::Number(value, 0),
        Scale::Bytes | Scale::ByteDoublings if value < 0.0 => Cell::ByteChange(value as i64),
        Scale::Bytes | Scale::ByteDoublings => Cell::Bytes(value as u64),
        Scale::Percent => Cell::Percent(Some(value)),
        Scale::Seconds | Scale::SecondTens => Cell::Number(value / divisor, places),
        _ if value.fract() == 0.0 && value >= 0.0 => Cell::Count(value as u64),
        _ => Cell::Number(value, places),
    };
    (Head::number(name).unit(unit), cell)
}

/// Colours of the palette; the seventh thing looks like the first again.
const COLOURS: usize = 6;

/// The horizontal axis under rows of bars or pairs: grid lines, ticks, title. Answers how places become x.
fn row_axis(
    svg: &mut Svg,
    axis: &Axis,
    ticks: &scale::Ticks,
    (left, right): (f64, f64),
    (top, bottom): (f64, f64),
) -> impl Fn(f64) -> f64 + use<> {
    let (low, span) = (ticks.low, ticks.high - ticks.low);
    let x = move |place: f64| left + (place - low) / span * (right - left);
    for (place, name) in &ticks.at {
        let zero = *place == 0.0 && !axis.scale.is_logarithmic();
        let class = if zero { "axis" } else { "grid" };
        svg.line(class, (x(*place), top), (x(*place), bottom));
        svg.text("tick", Anchor::Middle, (x(*place), bottom + 14.0), name);
    }
    svg.text("tick", Anchor::End, (right, bottom + 30.0), &axis.title(ticks.unit));
    x
}
