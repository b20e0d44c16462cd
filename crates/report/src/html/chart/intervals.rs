//! Points with intervals, in groups, on one axis: which differ is what one sees.

use super::lines::{FAR_FROM_ZERO, mark};
use super::scale::{Ticks, bounds};
use super::svg::{Anchor, fitted, width_of};
use super::{Axis, Chart, Svg, Width, column, row_axis};
use crate::html::{Cell, Head, Table};

/// Points with intervals: a group for each machine, a point for each engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Intervals {
    /// Names of the points of a group: the engines. Each has its colour and its shape.
    pub series: Vec<String>,
    /// The groups, first on top.
    pub groups: Vec<Group>,
    /// What is measured. [`super::Scale::for_range`] says which scale fits the values.
    pub axis: Axis,
}

/// The points of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name.
    pub label: String,
    /// Its points, in the order of the series; `None` where there is no result.
    pub points: Vec<Option<Point>>,
}

/// A value and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The value.
    pub value: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end of its interval.
    pub high: f64,
}

const PITCH: f64 = 20.0;
const HEAD: f64 = 22.0;
/// Between the end of an interval and the value in words.
const GAP: f64 = 8.0;

impl Point {
    /// The point if it can be drawn; an end of the interval that is no number is the value.
    fn drawn(self) -> Option<Point> {
        let end = |end: f64| if end.is_finite() { end } else { self.value };
        let (low, high) = (end(self.low).min(self.value), end(self.high).max(self.value));
        self.value.is_finite().then_some(Point { value: self.value, low, high })
    }
}

impl Intervals {
    fn rows(&self) -> impl Iterator<Item = (&Group, usize, Option<Point>)> {
        self.groups.iter().flat_map(|group| {
            let point = |series: usize| group.points.get(series).copied().flatten().and_then(Point::drawn);
            (0..self.series.len()).map(move |series| (group, series, point(series)))
        })
    }

    fn ticks(&self, about: usize) -> (Ticks, bool) {
        let ends = self.rows().filter_map(|row| row.2).flat_map(|point| [point.low, point.high]);
        let (least, most) = bounds(ends);
        let logarithmic = self.axis.scale.is_logarithmic();
        let without_zero = !logarithmic && least > FAR_FROM_ZERO * most;
        let low = if logarithmic || without_zero { least } else { least.min(0.0) };
        (self.axis.scale.ticks(low, most, about, true), without_zero)
    }

    fn print(&self, point: Point) -> String {
        let [value, low, high] =
            [point.value, point.low, point.high].map(|value| self.axis.scale.print(value));
        if point.low < point.high { format!("{value} ({low} to {high})") } else { value }
    }

    /// The table of the numbers.
    pub fn table(&self, group: &str, series: &str) -> Table {
        let values = self.rows().filter_map(|row| row.2);
        let values = values.flat_map(|point| [point.value, point.low, point.high]);
        let (head, cell) = column("value", self.axis.scale, values);
        let names = ["value", "from", "to"].map(|name| Head { name: name.into(), ..head.clone() });
        let mut table = Table::new([Head::text(group), Head::text(series)].into_iter().chain(names));
        for (group, series, point) in self.rows() {
            let numbers = point.map_or([Cell::Empty, Cell::Empty, Cell::Empty], |point| {
                [cell(point.value), cell(point.low), cell(point.high)]
            });
            let names = [Cell::Name(group.label.clone()), Cell::Name(self.series[series].clone())];
            table.row(names.into_iter().chain(numbers));
        }
        table
    }

    /// A point, its interval, and both in words.
    fn draw_point(&self, svg: &mut Svg, (group, series, point): (&Group, usize, Point), x: [f64; 3], y: f64) {
        let [value, low, high] = x;
        if low < high {
            svg.line("axis", (low, y), (high, y));
            for end in [low, high] {
                svg.line("axis", (end, y - 4.0), (end, y + 4.0));
            }
        }
        let told = format!("{}, {}: {}", group.label, self.series[series], self.print(point));
        mark(svg, series, (value, y), Some(&told));
        svg.text("value", Anchor::Start, (high + GAP, y + 4.0), &self.axis.scale.print(point.value));
    }
}

impl Chart for Intervals {
    fn describe(&self) -> String {
        let least = self.rows().filter_map(|(group, series, point)| Some((group, series, point?)));
        let least = least.min_by(|a, b| a.2.value.total_cmp(&b.2.value));
        let least = least.map_or(String::new(), |(group, series, point)| {
            format!(" The least is {} on {} with {}.", self.series[series], group.label, self.print(point))
        });
        format!(
            "{} in {} groups: a point with its interval for each of {}.{least}",
            self.axis.label,
            self.groups.len(),
            self.series.join(", ")
        )
    }

    fn keys(&self) -> Vec<(Svg, String)> {
        let key = |(index, name): (usize, &String)| {
            let mut svg = Svg::new(14.0, 12.0);
            mark(&mut svg, index, (7.0, 6.0), None);
            (svg, name.clone())
        };
        self.series.iter().enumerate().map(key).collect()
    }

    fn draw(&self, width: Width) -> Svg {
        let (units, narrow) = (width.units(), width == Width::Narrow);
        let names = self.series.iter().map(|name| width_of(name)).fold(0.0, f64::max);
        let names = names.min(if narrow { 100.0 } else { 220.0 });
        let values = self.rows().filter_map(|row| row.2);
        let values = values.map(|point| width_of(&self.axis.scale.print(point.value))).fold(0.0, f64::max);
        let (left, right) = (names + 12.0, units - values - GAP);
        let bottom = (HEAD + PITCH * self.series.len() as f64) * self.groups.len() as f64 + 4.0;
        let mut svg = Svg::new(units, bottom + 36.0);
        let (ticks, without_zero) = self.ticks(if narrow { 3 } else { 7 });
        let across = row_axis(&mut svg, &self.axis, &ticks, (left, right), (0.0, bottom));
        if without_zero {
            svg.text("tick", Anchor::Start, (0.0, bottom + 30.0), "axis without zero");
        }
        let x = |value: f64| across(self.axis.scale.place(value).clamp(ticks.low, ticks.high));
        let mut y = 0.0;
        for (group, series, point) in self.rows() {
            if series == 0 {
                svg.text("group", Anchor::Start, (0.0, y + HEAD - 6.0), &fitted(&group.label, units));
                y += HEAD;
            }
            let middle = y + PITCH / 2.0;
            let name = fitted(&self.series[series], names);
            svg.text("name", Anchor::End, (left - 12.0, middle + 4.0), &name);
            svg.line("rule", (left, middle), (right, middle));
            match point {
                Some(point) => {
                    let places = [point.value, point.low, point.high].map(x);
                    self.draw_point(&mut svg, (group, series, point), places, middle);
                }
                None => svg.text("tick", Anchor::Start, (left + 4.0, middle + 4.0), "no result"),
            }
            y += PITCH;
        }
        svg
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scale;
    use super::*;

    fn chart(scale: Scale, points: [Option<Point>; 2]) -> Intervals {
        Intervals {
            series: vec!["slab@2.6.29".into(), "slqb@2009-01".into()],
            groups: vec![Group { label: "numa8".into(), points: points.to_vec() }],
            axis: Axis::new("time of a run", scale),
        }
    }

    fn point(value: f64, low: f64, high: f64) -> Option<Point> {
        Some(Point { value, low, high })
    }

    /// Values of the attribute in all elements of the class, in their order.
    fn places(drawn: &str, class: &str, attribute: &str) -> Vec<f64> {
        let elements = drawn.split('<').filter(|tag| tag.contains(&format!("class=\"{class}\"")));
        let place =
            |tag: &str| tag.split(&format!(" {attribute}=\"")).nth(1)?.split('"').next()?.parse().ok();
        elements.filter_map(place).collect()
    }

    #[test]
    fn an_interval_reaches_from_low_to_high_on_the_axis() {
        let drawn = chart(Scale::Number, [point(5.0, 4.0, 6.0), point(10.0, 10.0, 10.0)]);
        let drawn = drawn.draw(Width::Wide).sign();
        let grid = places(&drawn, "grid", "x1");
        // Ticks at 0 (an axis), 2, 4, 6, 8, 10: an interval from 4 to 6 lies on two of them.
        assert_eq!(grid.len(), 5, "{drawn}");
        let axis = (places(&drawn, "axis", "x1"), places(&drawn, "axis", "x2"));
        assert_eq!(axis.0[1..3], [grid[1], grid[1]], "the interval and its lower end");
        assert_eq!((axis.1[1], axis.0[3]), (grid[2], grid[2]), "the interval and its upper end");
        assert_eq!(axis.0.len(), 4, "a value without an interval has none");
        assert!(drawn.contains("slab@2.6.29: 5 (4 to 6)"), "{drawn}");
    }

    #[test]
    fn values_of_many_sizes_are_apart() {
        let points = [point(10.388, 10.2, 10.5), point(242.453, 240.0, 245.0)];
        let ends = points.into_iter().flatten().flat_map(|point| [point.low, point.high]);
        assert_eq!(Scale::Seconds.for_range(ends), Scale::Seconds, "a factor of 24 fits an axis");
        let drawn = chart(Scale::SecondTens, points).draw(Width::Wide).sign();
        assert!(drawn.contains(">10\u{202f}s<") && drawn.contains("4.04\u{202f}min"), "{drawn}");
    }

    #[test]
    fn a_missing_result_says_so() {
        let chart = chart(Scale::Seconds, [None, point(f64::NAN, 1.0, 2.0)]);
        let drawn = chart.draw(Width::Narrow).sign();
        assert_eq!(drawn.matches("no result").count(), 2);
        assert_eq!(chart.table("machine", "engine").rows[0][2], Cell::Empty);
    }
}
