//! Lines and steps over numbers: time, page sizes, orders, CPUs.

use super::scale::{Ticks, bounds};
use super::svg::{Anchor, at, width_of};
use super::{Axis, COLOURS, Chart, Svg, Width};
use std::fmt::Write;

/// Series over one horizontal axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines {
    /// Horizontally.
    pub x: Axis,
    /// Vertically. It begins at 0 unless all values are in the upper part, which the drawing then says.
    pub y: Axis,
    /// How points are joined.
    pub shape: Shape,
    /// What is drawn.
    pub series: Vec<Series>,
}

/// How points are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// By straight lines.
    Straight,
    /// A value holds until the next.
    Steps,
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
    /// The least and the largest value of each point; empty if unknown.
    pub band: Vec<(f64, f64)>,
}

/// Points in the longest line above which a chart can also be zoomed, and above which the drawing shows the
/// least and the most of each unit of width.
pub const LIVE_ABOVE: usize = 400;

/// Points of a line up to which each has its mark.
const MARK_ALL: usize = 24;
/// Marks along a longer line.
const MARKS: usize = 6;
/// Values that do not go below this part of the largest are drawn without the axis' zero.
pub(super) const FAR_FROM_ZERO: f64 = 0.6;
const DASHES: [&str; COLOURS] = ["", "7 3", "2 2", "10 3 2 3", "1 3", "5 2 5 5"];

/// Where the drawing is inside its picture.
struct Plot {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x: Ticks,
    y: Ticks,
}

impl Plot {
    fn x(&self, place: f64) -> f64 {
        self.left + (place - self.x.low) / (self.x.high - self.x.low) * (self.right - self.left)
    }

    fn y(&self, place: f64) -> f64 {
        self.bottom - (place - self.y.low) / (self.y.high - self.y.low) * (self.bottom - self.top)
    }
}

impl Lines {
    fn values(&self) -> impl Iterator<Item = f64> + '_ {
        let of = |series: &Series| {
            let bands = series.band.clone().into_iter().flat_map(|(low, high)| [low, high]);
            series.points.clone().into_iter().map(|point| point.1).chain(bands)
        };
        self.series.iter().flat_map(of).filter(|value| value.is_finite())
    }

    /// Whether the vertical axis leaves zero out. One value alone has nothing to be compared with but zero.
    fn without_zero(&self) -> bool {
        let (least, most) = bounds(self.values());
        least > FAR_FROM_ZERO * most && least < most
    }

    fn plot(&self, width: Width) -> Plot {
        let (least, most) = bounds(self.values());
        let low = if self.without_zero() { least } else { least.min(0.0) };
        let wide = width == Width::Wide;
        let y = self.y.scale.ticks(low, most, 5, true);
        let (first, last) = bounds(self.series.iter().flat_map(|series| &series.points).map(|point| point.0));
        let x = self.x.scale.ticks(first, last, if wide { 8 } else { 4 }, false);
        let names = y.at.iter().map(|tick| width_of(&tick.1)).fold(0.0, f64::max);
        let end = x.at.last().map_or(0.0, |tick| width_of(&tick.1) / 2.0);
        let height = if wide { 250.0 } else { 200.0 };
        Plot { left: names + 8.0, right: width.units() - end.max(8.0), top: 24.0, bottom: height, x, y }
    }

    /// The drawing with marks that say nothing of their values.
    pub(super) fn draw_untold(&self, width: Width) -> Svg {
        self.draw_all(width, false)
    }

    fn draw_all(&self, width: Width, tells: bool) -> Svg {
        let plot = self.plot(width);
        let mut svg = Svg::new(width.units(), plot.bottom + 38.0);
        self.draw_axes(&mut svg, &plot);
        (0..self.series.len()).for_each(|index| self.draw_series(&mut svg, &plot, index, tells));
        svg
    }

    fn draw_axes(&self, svg: &mut Svg, plot: &Plot) {
        svg.text("tick", Anchor::Start, (0.0, 10.0), &self.y.title(plot.y.unit));
        for (place, name) in &plot.y.at {
            let y = plot.y(*place);
            svg.line(if *place == 0.0 { "axis" } else { "grid" }, (plot.left, y), (plot.right, y));
            svg.text("tick", Anchor::End, (plot.left - 6.0, y + 4.0), name);
        }
        for (place, name) in &plot.x.at {
            let x = plot.x(*place);
            svg.line("axis", (x, plot.bottom), (x, plot.bottom + 4.0));
            svg.text("tick", Anchor::Middle, (x, plot.bottom + 16.0), name);
        }
        svg.text("tick", Anchor::End, (plot.right, plot.bottom + 32.0), &self.x.title(plot.x.unit));
        if self.without_zero() {
            svg.text("tick", Anchor::Start, (plot.left, plot.bottom + 32.0), "axis without zero");
        }
    }

    /// Points in units of the drawing, few enough for it, without a peak lost.
    fn placed(&self, points: impl Iterator<Item = (f64, f64)>, plot: &Plot) -> Vec<(f64, f64)> {
        let place = |(x, y): (f64, f64)| (plot.x(self.x.scale.place(x)), plot.y(self.y.scale.place(y)));
        thinned(&points.filter(|point| point.1.is_finite()).map(place).collect::<Vec<_>>())
    }

    fn path(&self, points: &[(f64, f64)], back: bool) -> String {
        let mut path = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let (x, y) = (at(*x), at(*y));
            match (index, self.shape) {
                (0, _) => write!(path, "{x} {y}"),
                (_, Shape::Straight) => write!(path, "L{x} {y}"),
                (_, Shape::Steps) if back => write!(path, "V{y}H{x}"),
                (_, Shape::Steps) => write!(path, "H{x}V{y}"),
            }
            .expect("a string");
        }
        path
    }

    fn draw_series(&self, svg: &mut Svg, plot: &Plot, index: usize, tells: bool) {
        let series = &self.series[index];
        let colour = index % COLOURS;
        let xs = || series.points.iter().map(|point| point.0);
        if series.band.len() == series.points.len() && !series.band.is_empty() {
            let low = self.placed(xs().zip(series.band.iter().map(|band| band.0)), plot);
            let mut high = self.placed(xs().zip(series.band.iter().map(|band| band.1)), plot);
            high.reverse();
            svg.add(format_args!(
                r#"<path class="band s{colour}" d="M{}L{}z"/>"#,
                self.path(&low, false),
                self.path(&high, true)
            ));
        }
        let placed = self.placed(series.points.iter().copied(), plot);
        let dash = dash(index);
        svg.add(format_args!(
            r#"<path class="line s{colour}" stroke-dasharray="{dash}" d="M{}"/>"#,
            self.path(&placed, false)
        ));
        if series.points.len() <= MARK_ALL {
            for (at, point) in placed.iter().zip(&series.points) {
                let told = format!(
                    "{}: {} at {}",
                    series.name,
                    self.y.scale.print(point.1),
                    self.x.scale.print(point.0)
                );
                mark(svg, index, *at, tells.then_some(&told));
            }
        } else {
            // Each line's marks stand elsewhere, so that lines on top of each other can be told apart.
            let every = placed.len() / MARKS;
            let first = every * (index % COLOURS + 1) / (COLOURS + 1);
            placed.iter().skip(first).step_by(every.max(1)).for_each(|at| mark(svg, index, *at, None));
        }
    }
}

/// The dash of a line. The seventh line has the first one's colour and another dash.
fn dash(index: usize) -> &'static str {
    DASHES[(index + index / COLOURS) % COLOURS]
}

/// A mark whose shape is the series' own.
pub(super) fn mark(svg: &mut Svg, index: usize, (x, y): (f64, f64), told: Option<&str>) {
    let (x, y, colour) = (at(x), at(y), index % COLOURS);
    let path = match colour {
        0 => format!("M{x} {y}m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z"),
        1 => format!("M{x} {y}m-3.2 -3.2h6.4v6.4h-6.4z"),
        2 => format!("M{x} {y}m0 -4l4 7h-8z"),
        3 => format!("M{x} {y}m0 -4.5l4.5 4.5l-4.5 4.5l-4.5 -4.5z"),
        4 => format!("M{x} {y}m0 4l4 -7h-8z"),
        _ => format!("M{x} {y}m-1.2 -4h2.4v2.8h2.8v2.4h-2.8v2.8h-2.4v-2.8h-2.8v-2.4h2.8z"),
    };
    match told {
        Some(told) => svg.told(format_args!(r#"<path class="mark s{colour}" d="{path}"/>"#), told),
        None => svg.add(format_args!(r#"<path class="mark s{colour}" d="{path}"/>"#)),
    }
}

/// Of many points those that show: the first, the lowest, the highest and the last in each unit of width.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= LIVE_ABOVE {
        return points.to_vec();
    }
    let mut kept = Vec::new();
    for column in points.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
        let by_height = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let extremes = [column.iter().min_by(by_height), column.iter().max_by(by_height)];
        let ends = [column.first(), column.last()];
        let keeps = |point: &&(f64, f64)| {
            extremes.iter().chain(&ends).flatten().any(|kept| std::ptr::eq(*kept, *point))
        };
        kept.extend(column.iter().filter(keeps));
    }
    kept
}

impl Chart for Lines {
    fn describe(&self) -> String {
        let mut text = format!("{} over {}.", self.y.label, self.x.label);
        for series in &self.series {
            let (low, high) = bounds(series.points.iter().map(|point| point.1));
            let print = |value| self.y.scale.print(value);
            write!(text, " {}: from {} to {}", series.name, print(low), print(high)).expect("a string");
            if let Some(last) = series.points.last() {
                write!(text, ", at the end {}", print(last.1)).expect("a string");
            }
            text.push('.');
        }
        text
    }

    fn keys(&self) -> Vec<(Svg, String)> {
        let key = |(index, series): (usize, &Series)| {
            let mut svg = Svg::new(28.0, 12.0);
            let (colour, dash) = (index % COLOURS, dash(index));
            svg.add(format_args!(r#"<path class="line s{colour}" stroke-dasharray="{dash}" d="M0 6H28"/>"#));
            mark(&mut svg, index, (14.0, 6.0), None);
            (svg, series.name.clone())
        };
        self.series.iter().enumerate().map(key).collect()
    }

    fn draw(&self, width: Width) -> Svg {
        self.draw_all(width, true)
    }

    fn live(&self) -> Option<serde_json::Value> {
        let longest = self.series.iter().map(|series| series.points.len()).max()?;
        if longest <= LIVE_ABOVE || self.x.scale.is_logarithmic() {
            return None;
        }
        let mut xs: Vec<f64> =
            self.series.iter().flat_map(|series| &series.points).map(|point| point.0).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        let column = |series: &Series| {
            let mut points = series.points.iter().peekable();
            let value = |x: &f64| {
                while points.peek().is_some_and(|point| point.0 < *x) {
                    points.next();
                }
                points.peek().filter(|point| point.0 == *x).map(|point| point.1)
            };
            xs.iter().map(value).collect::<Vec<Option<f64>>>()
        };
        let dashes = |index: usize| {
            dash(index).split_whitespace().filter_map(|part| part.parse::<u32>().ok()).collect::<Vec<_>>()
        };
        Some(serde_json::json!({
            "x": { "label": self.x.label, "scale": self.x.scale.key() },
            "y": { "label": self.y.label, "scale": self.y.scale.key(), "zero": !self.without_zero() },
            "steps": self.shape == Shape::Steps,
            "dashes": (0..self.series.len()).map(dashes).collect::<Vec<_>>(),
            "columns": self.series.iter().map(column).collect::<Vec<_>>(),
            "at": xs,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scale;
    use super::*;

    #[test]
    fn no_peak_is_lost() {
        let mut points: Vec<_> = (0..100_000).map(|n| (n as f64 / 200.0, (n % 7) as f64)).collect();
        points[54_321].1 = 99.0;
        points[12_345].1 = -99.0;
        let kept = thinned(&points);
        assert!(kept.len() <= 4 * 500, "{}", kept.len());
        assert!(kept.contains(&points[54_321]) && kept.contains(&points[12_345]));
        assert_eq!((kept.first(), kept.last()), (points.first(), points.last()));
        assert!(kept.is_sorted_by(|a, b| a.0 <= b.0));
    }

    #[test]
    fn an_axis_far_from_zero_says_so() {
        for (values, expected) in [([90.0, 100.0], true), ([10.0, 100.0], false), ([0.0, 0.0], false)] {
            let points = values.into_iter().enumerate().map(|(x, y)| (x as f64, y)).collect();
            let chart = Lines {
                x: Axis::new("time", Scale::Seconds),
                y: Axis::new("memory", Scale::Bytes),
                shape: Shape::Steps,
                series: vec![Series { name: "a".into(), points, band: Vec::new() }],
            };
            let drawn = chart.draw(Width::Wide).sign();
            assert_eq!(drawn.contains("axis without zero"), expected, "{values:?}");
        }
    }
}
