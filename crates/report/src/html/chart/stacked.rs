//! Parts of a whole over time, as bands on top of each other.

use super::lines::LIVE_ABOVE;
use super::{Axis, Chart, Lines, Series, Shape, Svg, Width};
use std::fmt::Write;

/// Parts over one horizontal axis: the height of a band is the part, the uppermost line the sum.
#[derive(Clone, Debug, PartialEq)]
pub struct Stacked {
    /// Horizontally.
    pub x: Axis,
    /// Vertically.
    pub y: Axis,
    /// Where the parts are known, from left to right.
    pub at: Vec<f64>,
    /// The parts, the lowest band first: name, and a value for each place.
    pub parts: Vec<(String, Vec<f64>)>,
}

impl Stacked {
    /// The lines between the bands.
    fn lines(&self) -> Lines {
        let every = self.at.len().div_ceil(LIVE_ABOVE).max(1);
        let mut below = vec![0.0; self.at.len()];
        let mut series = Vec::new();
        for (name, values) in &self.parts {
            let above: Vec<f64> = below.iter().zip(values).map(|(below, value)| below + value).collect();
            let places = (0..above.len()).step_by(every);
            series.push(Series {
                name: name.clone(),
                points: places.clone().map(|at| (self.at[at], above[at])).collect(),
                band: places.map(|at| (below[at], above[at])).collect(),
            });
            below = above;
        }
        Lines { x: self.x.clone(), y: self.y.clone(), shape: Shape::Straight, series }
    }
}

impl Chart for Stacked {
    fn describe(&self) -> String {
        let mut text = format!("{} over {}, parts on top of each other.", self.y.label, self.x.label);
        for (name, values) in &self.parts {
            let most = values.iter().copied().fold(0.0, f64::max);
            let last = values.last().copied().unwrap_or(0.0);
            let print = |value| self.y.scale.print(value);
            write!(text, " {name}: at most {}, at the end {}.", print(most), print(last)).expect("a string");
        }
        text
    }

    fn keys(&self) -> Vec<(Svg, String)> {
        self.lines().keys()
    }

    fn draw(&self, width: Width) -> Svg {
        self.lines().draw_untold(width)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scale;
    use super::*;

    #[test]
    fn bands_lie_on_top_of_each_other() {
        let parts = vec![("a".to_string(), vec![1.0, 2.0]), ("b".to_string(), vec![3.0, 1.0])];
        let (x, y) = (Axis::new("time", Scale::Seconds), Axis::new("memory", Scale::Number));
        let chart = Stacked { x, y, at: vec![0.0, 5.0], parts };
        let lines = chart.lines();
        assert_eq!(lines.series[0].band, [(0.0, 1.0), (0.0, 2.0)]);
        assert_eq!(lines.series[1].band, [(1.0, 4.0), (2.0, 3.0)]);
        assert_eq!(lines.series[1].points, [(0.0, 4.0), (5.0, 3.0)]);
        assert!(chart.describe().contains("b: at most 3, at the end 1."), "{}", chart.describe());
        // A part's own value is no place of its line: the marks say nothing.
        assert!(!chart.draw(Width::Wide).sign().contains("b: 4"));
    }

    /// A long time is drawn with as many points as the page can show.
    #[test]
    fn long_times_are_thinned() {
        let (x, y) = (Axis::new("time", Scale::Seconds), Axis::new("memory", Scale::Number));
        let at: Vec<f64> = (0..10_000).map(f64::from).collect();
        let chart = Stacked { x, y, parts: vec![("a".into(), at.clone())], at };
        assert_eq!(chart.lines().series[0].points.len(), LIVE_ABOVE);
    }
}
