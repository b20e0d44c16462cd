//! A number for each of two things, such as CPUs and locks. A cell's fill rises with its number and gets
//! darker (on a dark page: brighter), so that colour alone says nothing.

use super::scale::bounds;
use super::svg::{Anchor, at, fitted, width_of};
use super::{Chart, Scale, Svg, Width, column};
use crate::html::{Cell, Head, Table};
use std::ops::Range;

/// A number for each place of `across` and each row.
#[derive(Clone, Debug, PartialEq)]
pub struct Heat {
    /// What the numbers are: "time waited".
    pub what: String,
    /// How they are printed.
    pub scale: Scale,
    /// The rows, first on top: the locks.
    pub rows: Vec<String>,
    /// What lies across: "CPU".
    pub thing: String,
    /// The names of what lies across: the CPUs.
    pub across: Vec<String>,
    /// The numbers: for each row, one for each name across. What is below nothing, or no number, counts as
    /// nothing.
    pub numbers: Vec<Vec<f64>>,
}

/// Steps of fill.
const STEPS: usize = 6;
/// The largest number over the smallest from which each step is four times the one below it. Below that,
/// steps are equally high.
const WIDE_RANGE: f64 = 64.0;
const FACTOR: f64 = 4.0;
const HEIGHT: f64 = 18.0;
const PITCH: f64 = 22.0;
/// Units of width below which neighbours across share a cell.
const CELL_MIN: f64 = 3.0;
/// Rows of the table beside which the others are summed.
const TABLE_MAX: usize = 512;

impl Heat {
    fn number(&self, row: usize, across: usize) -> f64 {
        let number = self.numbers.get(row).and_then(|row| row.get(across)).copied().unwrap_or(0.0);
        if number.is_finite() { number.max(0.0) } else { 0.0 }
    }

    fn positive(&self) -> impl Iterator<Item = f64> {
        let all = (0..self.rows.len()).flat_map(|row| (0..self.across.len()).map(move |at| (row, at)));
        all.map(|(row, at)| self.number(row, at)).filter(|number| *number > 0.0)
    }

    /// The largest number of each step.
    fn steps(&self) -> [f64; STEPS] {
        let (least, most) = bounds(self.positive());
        let wide = most > WIDE_RANGE * least;
        std::array::from_fn(|step| {
            if wide {
                most / FACTOR.powi((STEPS - 1 - step) as i32)
            } else {
                most * (step + 1) as f64 / STEPS as f64
            }
        })
    }

    fn cell(&self, range: &Range<usize>, row: usize) -> (f64, String) {
        let numbers = range.clone().map(|at| (at, self.number(row, at)));
        let (most_at, most) = numbers.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((range.start, 0.0));
        let (name, print) = (&self.across, |number| self.scale.print(number));
        let told = if range.len() == 1 {
            format!("{} {}, {}: {}", self.thing, name[most_at], self.rows[row], print(most))
        } else {
            let ends = [&name[range.start], &name[range.end - 1]];
            format!(
                "{} {} to {}, {}: {} at most ({} {})",
                self.thing,
                ends[0],
                ends[1],
                self.rows[row],
                print(most),
                self.thing,
                name[most_at]
            )
        };
        (most, told)
    }

    /// The table of the numbers: a row for each name across with a number, with the sum of its row.
    pub fn table(&self) -> Table {
        let sum = |at: usize| -> f64 { (0..self.rows.len()).map(|row| self.number(row, at)).sum() };
        let mut kept: Vec<usize> = (0..self.across.len()).filter(|at| sum(*at) > 0.0).collect();
        kept.sort_by(|a, b| sum(*b).total_cmp(&sum(*a)).then(a.cmp(b)));
        let others = kept.split_off(kept.len().min(TABLE_MAX));
        kept.sort_unstable();
        let (head, cell) =
            column("in all", self.scale, (0..self.across.len()).map(sum).chain(self.positive()));
        let heads = self.rows.iter().map(|name| Head { name: name.clone(), ..head.clone() });
        let mut table = Table::new([Head::text(&self.thing), head.clone()].into_iter().chain(heads));
        let mut row = |label: Cell, of: &[usize]| {
            let lock = |row: usize| cell(of.iter().map(|at| self.number(row, *at)).sum());
            let cells = (0..self.rows.len()).map(lock);
            table.row([label, cell(of.iter().map(|at| sum(*at)).sum())].into_iter().chain(cells));
        };
        for at in &kept {
            row(Cell::Name(self.across[*at].clone()), &[*at]);
        }
        if !others.is_empty() {
            row(Cell::Text(format!("{} others, each with less", others.len())), &others);
        }
        let without = self.across.len() - kept.len() - others.len();
        if without > 0 {
            row(Cell::Text(format!("{without} with none")), &[]);
        }
        table
    }

    fn draw_row(&self, svg: &mut Svg, row: usize, cells: &[(Range<usize>, f64, f64)], y: f64) {
        let steps = self.steps();
        for (range, from, to) in cells {
            let (number, told) = self.cell(range, row);
            let (x, width) = (at(*from), at(to - from));
            let mut shape = format!(
                r#"<rect class="cell" x="{x}" y="{}" width="{width}" height="{}"/>"#,
                at(y),
                at(HEIGHT)
            );
            if number > 0.0 {
                let step = steps.iter().position(|most| number <= *most).unwrap_or(STEPS - 1);
                let height = HEIGHT * (step + 1) as f64 / STEPS as f64;
                let class = step + 1;
                shape += &format!(
                    r#"<rect class="h{class}" x="{x}" y="{}" width="{width}" height="{}"/>"#,
                    at(y + HEIGHT - height),
                    at(height)
                );
            }
            svg.told(format_args!("{shape}"), &told);
            let printed = self.scale.print(number);
            if range.len() == 1 && number > 0.0 && width_of(&printed) + 4.0 <= to - from {
                svg.text("value", Anchor::Middle, ((from + to) / 2.0, y + HEIGHT / 2.0 + 4.0), &printed);
            }
        }
    }
}

impl Chart for Heat {
    fn describe(&self) -> String {
        let all = (0..self.rows.len()).flat_map(|row| (0..self.across.len()).map(move |at| (row, at)));
        let most = all.max_by(|a, b| self.number(a.0, a.1).total_cmp(&self.number(b.0, b.1)));
        let most = most.map_or(String::new(), |(row, at)| {
            let number = self.scale.print(self.number(row, at));
            format!(" The most is {number}: {} {}, {}.", self.thing, self.across[at], self.rows[row])
        });
        format!(
            "{} of {} rows ({}) and {} columns ({}): the higher and stronger the fill of a cell, the \
             larger its number.{most}",
            self.what,
            self.rows.len(),
            self.rows.join(", "),
            self.across.len(),
            self.thing
        )
    }

    fn keys(&self) -> Vec<(Svg, String)> {
        let steps = self.steps();
        if steps[STEPS - 1] <= 0.0 {
            return Vec::new();
        }
        let key = |(step, most): (usize, &f64)| {
            let mut svg = Svg::new(16.0, 12.0);
            let height = 12.0 * (step + 1) as f64 / STEPS as f64;
            let (class, y, height) = (step + 1, at(12.0 - height), at(height));
            svg.add(format_args!(r#"<rect class="h{class}" x="0" y="{y}" width="16" height="{height}"/>"#));
            (svg, format!("to {}", self.scale.print(*most)))
        };
        steps.iter().enumerate().map(key).collect()
    }

    fn draw(&self, width: Width) -> Svg {
        let (units, narrow) = (width.units(), width == Width::Narrow);
        let names = self.rows.iter().map(|name| width_of(name)).fold(0.0, f64::max);
        let names = names.min(if narrow { 100.0 } else { 220.0 });
        let (left, right) = (names + 8.0, units - 2.0);
        let places = self.across.len().max(1);
        let shared = (places as f64 * CELL_MIN / (right - left)).ceil().max(1.0) as usize;
        let x = |place: usize| left + place as f64 / places as f64 * (right - left);
        let cells: Vec<(Range<usize>, f64, f64)> = (0..self.across.len())
            .step_by(shared)
            .map(|first| (first, (first + shared).min(self.across.len())))
            .map(|(first, end)| (first..end, x(first), x(end)))
            .collect();
        let bottom = 2.0 + PITCH * self.rows.len() as f64;
        let mut svg = Svg::new(units, bottom + 36.0);
        for (row, name) in self.rows.iter().enumerate() {
            let y = 2.0 + PITCH * row as f64;
            svg.text("name", Anchor::End, (left - 8.0, y + HEIGHT / 2.0 + 4.0), &fitted(name, names));
            self.draw_row(&mut svg, row, &cells, y);
        }
        let widest = self.across.iter().map(|name| width_of(name) + 8.0).fold(1.0, f64::max);
        let every = (widest / ((right - left) / places as f64)).ceil().max(1.0) as usize;
        for place in (0..self.across.len()).step_by(every) {
            let middle = (x(place) + x(place + 1)) / 2.0;
            svg.text("tick", Anchor::Middle, (middle, bottom + 12.0), &fitted(&self.across[place], 100.0));
        }
        let title = if shared == 1 {
            self.thing.clone()
        } else {
            format!("{} (cells of {shared}: the largest number)", self.thing)
        };
        svg.text("tick", Anchor::End, (right, bottom + 28.0), &title);
        svg
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heat(cpus: usize, number: impl Fn(usize, usize) -> f64) -> Heat {
        Heat {
            what: "time waited".into(),
            scale: Scale::Seconds,
            rows: vec!["list_lock".into(), "zone->lock".into()],
            thing: "CPU".into(),
            across: (0..cpus).map(|cpu| cpu.to_string()).collect(),
            numbers: (0..2).map(|row| (0..cpus).map(|cpu| number(row, cpu)).collect()).collect(),
        }
    }

    #[test]
    fn the_fill_rises_with_the_number() {
        let drawn = heat(6, |row, cpu| if row == 0 { (cpu + 1) as f64 } else { 0.0 });
        let svg = drawn.draw(Width::Wide).sign();
        for step in 1..=STEPS {
            let height = format!("height=\"{}\"", at(HEIGHT * step as f64 / STEPS as f64));
            let fill = svg.split('<').filter(|tag| tag.contains(&format!("class=\"h{step}\"")));
            let fill: Vec<&str> = fill.collect();
            assert!(fill.len() == 1 && fill[0].contains(&height), "step {step}: {fill:?}");
        }
        assert!(svg.contains("CPU 5, list_lock: 6.00\u{202f}s"), "{svg}");
        assert!(svg.contains("CPU 0, zone-&gt;lock: 0\u{202f}s"), "a cell of nothing says so: {svg}");
        assert_eq!(drawn.keys().len(), STEPS);
    }

    #[test]
    fn numbers_of_many_sizes_have_steps_of_factors() {
        let steps = heat(2, |row, cpu| [[1e-6, 1.0], [0.0, 1e-3]][row][cpu]).steps();
        assert_eq!(steps, [1.0 / 1024.0, 1.0 / 256.0, 1.0 / 64.0, 1.0 / 16.0, 0.25, 1.0]);
    }

    /// Of 4,096 CPUs no cell is lost: the largest number of those that share a cell is the cell's.
    #[test]
    fn a_peak_among_thousands_is_seen() {
        let heat = heat(4096, |row, cpu| if (row, cpu) == (1, 1234) { 9.0 } else { 0.001 });
        for width in [Width::Wide, Width::Narrow] {
            let svg = heat.draw(width);
            assert!(svg.bytes() < 200_000, "{} bytes", svg.bytes());
            let svg = svg.sign();
            assert!(svg.contains("zone-&gt;lock: 9.00\u{202f}s at most (CPU 1234)"), "{width:?}");
            assert_eq!(svg.matches("class=\"h6\"").count(), 1);
        }
        let table = heat.table();
        assert_eq!(table.rows.len(), TABLE_MAX + 1);
        assert!(table.rows.iter().any(|row| row[0] == Cell::Name("1234".into())));
        assert_eq!(table.rows[TABLE_MAX][0], Cell::Text("3584 others, each with less".into()));
    }

    #[test]
    fn the_table_sums_and_says_who_has_none() {
        let table = heat(4, |row, cpu| if cpu < 2 { (row + cpu) as f64 } else { f64::NAN }).table();
        let found: Vec<&[Cell]> = table.rows.iter().map(Vec::as_slice).collect();
        let number = |number| Cell::Number(number, 2);
        assert_eq!(found[0], [Cell::Name("0".into()), number(1.0), number(0.0), number(1.0)]);
        assert_eq!(found[1], [Cell::Name("1".into()), number(3.0), number(1.0), number(2.0)]);
        assert_eq!(found[2][0], Cell::Text("2 with none".into()));
    }
}
