//! Scales: the positions and the labels of ticks.

use crate::html::number;

/// What an axis counts, and how its places are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Numbers; ticks at 1, 2, 5 and their tens.
    Number,
    /// Whole numbers, such as orders: no tick stands between two.
    Whole,
    /// Bytes; ticks at powers of two of one unit.
    Bytes,
    /// Seconds, shown in the unit that fits.
    Seconds,
    /// Percent.
    Percent,
    /// Whole numbers over many sizes, such as CPUs: each doubling is as wide as the next.
    Doublings,
    /// Bytes over many sizes, such as page sizes: each doubling is as wide as the next.
    ByteDoublings,
    /// Numbers over many sizes: each factor of ten is as wide as the next.
    Tens,
    /// Seconds over many sizes: each factor of ten is as wide as the next.
    SecondTens,
}

/// The largest value over the smallest from which a chart of both needs a logarithmic axis: the smaller one
/// would be a fiftieth of the width.
const WIDE_RANGE: f64 = 50.0;

/// The ticks of an axis.
pub(super) struct Ticks {
    /// The places between which the axis runs, as [`Scale::place`] gives them.
    pub(super) low: f64,
    pub(super) high: f64,
    /// Place and name of each tick.
    pub(super) at: Vec<(f64, String)>,
    /// The unit that all names share; empty where the names carry it or there is none.
    pub(super) unit: &'static str,
}

impl Scale {
    /// The scale for an axis of these values: logarithmic if they are all above 0 and of many sizes.
    pub fn for_range(self, values: impl IntoIterator<Item = f64>) -> Scale {
        let (low, high) = bounds(values.into_iter().filter(|value| value.is_finite()));
        match self {
            _ if low <= 0.0 || high < WIDE_RANGE * low => self,
            Scale::Number => Scale::Tens,
            Scale::Whole => Scale::Doublings,
            Scale::Seconds => Scale::SecondTens,
            Scale::Bytes => Scale::ByteDoublings,
            Scale::Percent | Scale::Doublings | Scale::ByteDoublings | Scale::Tens | Scale::SecondTens => {
                self
            }
        }
    }

    /// Whether equal steps on the axis are equal factors.
    pub(super) fn is_logarithmic(self) -> bool {
        matches!(self, Scale::Doublings | Scale::ByteDoublings | Scale::Tens | Scale::SecondTens)
    }

    /// The scale on which equal steps are equal differences. The lengths of stacked parts mean nothing on
    /// another.
    pub(super) fn linear(self) -> Scale {
        match self {
            Scale::Doublings => Scale::Whole,
            Scale::ByteDoublings => Scale::Bytes,
            Scale::Tens => Scale::Number,
            Scale::SecondTens => Scale::Seconds,
            linear => linear,
        }
    }

    /// Where a value stands.
    pub(super) fn place(self, value: f64) -> f64 {
        match self {
            Scale::Doublings | Scale::ByteDoublings => value.max(f64::MIN_POSITIVE).log2(),
            Scale::Tens | Scale::SecondTens => value.max(f64::MIN_POSITIVE).log10(),
            _ => value,
        }
    }

    /// A value in words, with its unit.
    pub fn print(self, value: f64) -> String {
        match self {
            Scale::Bytes | Scale::ByteDoublings if value < 0.0 => {
                format!("-{}", number::bytes(-value as u64))
            }
            Scale::Bytes | Scale::ByteDoublings => number::bytes(value as u64),
            Scale::Percent => number::percent(value),
            Scale::Seconds | Scale::SecondTens if value == 0.0 => "0\u{202f}s".into(),
            Scale::Seconds | Scale::SecondTens => {
                let (divisor, unit) = second_unit(value.abs());
                let number = number::three_digits(value / divisor);
                format!("{number}\u{202f}{unit}")
            }
            Scale::Number | Scale::Whole | Scale::Doublings | Scale::Tens if value.fract() == 0.0 => {
                number::whole(value)
            }
            Scale::Number | Scale::Whole | Scale::Doublings | Scale::Tens => number::three_digits(value),
        }
    }

    /// The name that the drawing by script knows it by.
    pub(super) fn key(self) -> &'static str {
        match self {
            Scale::Bytes | Scale::ByteDoublings => "bytes",
            Scale::Seconds | Scale::SecondTens => "seconds",
            Scale::Percent => "percent",
            Scale::Number | Scale::Whole | Scale::Doublings | Scale::Tens => "number",
        }
    }

    /// About `about` ticks for values from `low` to `high`. With `cover` the axis runs from tick to tick,
    /// else just as far as the values do.
    pub(super) fn ticks(self, low: f64, high: f64, about: usize, cover: bool) -> Ticks {
        if matches!(self, Scale::Doublings | Scale::ByteDoublings) {
            return self.doublings(low, high, about);
        }
        if self.is_logarithmic() {
            return self.tens(low, high, about, cover);
        }
        let high = if high > low { high } else { low + 1.0 };
        let (divisor, unit) = match self {
            Scale::Bytes => byte_unit(low.abs().max(high.abs())),
            Scale::Seconds => second_unit(high),
            Scale::Percent => (1.0, "%"),
            _ => (1.0, ""),
        };
        let raw = (high - low) / divisor / about.max(1) as f64;
        let step = match self {
            // Below one byte there is nothing.
            Scale::Bytes => raw.log2().ceil().exp2().max(1.0 / divisor),
            Scale::Whole => decimal_step(raw).max(1.0),
            _ => decimal_step(raw),
        };
        let (first, last) = ((low / divisor / step), (high / divisor / step));
        let (first, last) =
            if cover { (first.floor(), last.ceil()) } else { ((first - 1e-9).ceil(), (last + 1e-9).floor()) };
        let places = (0..6).find(|places| is_whole(step * 10f64.powi(*places))).unwrap_or(6) as usize;
        let at = (0..=(last - first) as usize).map(|n| {
            let shown = (first + n as f64) * step;
            (shown * divisor, label(shown, places))
        });
        let at: Vec<_> = at.collect();
        let (low, high) = if cover { (first * step * divisor, last * step * divisor) } else { (low, high) };
        Ticks { low, high, at, unit }
    }

    fn doublings(self, low: f64, high: f64, about: usize) -> Ticks {
        let (low, high) = (self.place(low.max(1.0)), self.place(high.max(1.0)));
        let (first, last) = ((low - 1e-9).ceil() as i32, (high + 1e-9).floor() as i32);
        let every = ((last - first) as usize / about.max(1) + 1) as i32;
        let at = (first..=last).filter(|power| (power - first) % every == 0);
        let at = at.map(|power| (f64::from(power), self.print(f64::from(power).exp2()))).collect();
        // A single value stands in the middle.
        let margin = if high > low { 0.0 } else { 0.5 };
        Ticks { low: low - margin, high: high + margin, at, unit: "" }
    }

    /// Ticks at powers of ten, or at 1, 2, 5 and their tens if there are few of those.
    fn tens(self, low: f64, high: f64, about: usize, cover: bool) -> Ticks {
        let (low, high) = (low.max(f64::MIN_POSITIVE), high.max(low).max(f64::MIN_POSITIVE));
        let nice = (low.log10().floor() as i32..=high.log10().ceil() as i32)
            .flat_map(|power| [1.0, 2.0, 5.0].map(|step| step * 10f64.powi(power)))
            .filter(|place| place.is_normal());
        let nice: Vec<f64> = nice.collect();
        // The product is rounded: 5e-9 may stand a little above what is 5 ns.
        let first = nice.iter().rposition(|place| *place <= low * (1.0 + 1e-9)).unwrap_or(0);
        let last = nice.iter().position(|place| *place >= high * (1.0 - 1e-9)).unwrap_or(nice.len() - 1);
        let (from, to) = if cover { (nice[first], nice[last.max(first)]) } else { (low, high) };
        let inside = |place: &&f64| **place >= from * (1.0 - 1e-9) && **place <= to * (1.0 + 1e-9);
        let mut ticks: Vec<f64> = nice.iter().filter(inside).copied().collect();
        if ticks.len() > about {
            ticks.retain(|place| is_whole(place.log10()));
            let every = ticks.len().div_ceil(about.max(1)).max(1);
            ticks = ticks.into_iter().step_by(every).collect();
        }
        let name = |place: f64| {
            let (divisor, unit) = if self == Scale::SecondTens { second_unit(place) } else { (1.0, "") };
            let shown = place / divisor;
            let blank = if unit.is_empty() { "" } else { "\u{202f}" };
            match is_whole(shown) && shown >= 1.0 {
                true => format!("{}{blank}{unit}", number::whole(shown)),
                false => self.print(place),
            }
        };
        let at = ticks.iter().map(|place| (self.place(*place), name(*place))).collect();
        let margin = if to > from { 0.0 } else { 0.5 };
        Ticks { low: self.place(from) - margin, high: self.place(to) + margin, at, unit: "" }
    }
}

/// The least and the most; 0 and 0 of nothing.
pub(super) fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let start = (f64::INFINITY, f64::NEG_INFINITY);
    let (low, high) = values.fold(start, |(low, high), value| (low.min(value), high.max(value)));
    if low <= high { (low, high) } else { (0.0, 0.0) }
}

fn is_whole(number: f64) -> bool {
    (number - number.round()).abs() < 1e-6 * number.abs().max(1.0)
}

fn label(shown: f64, places: usize) -> String {
    let text =
        if places == 0 && shown.abs() >= 1000.0 { number::whole(shown) } else { format!("{shown:.places$}") };
    // The label of -0 is "0".
    if text.trim_start_matches(['-', '0', '.']).is_empty() { text.replace('-', "") } else { text }
}

/// The step of 1, 2 or 5 and their tens that is not below `raw`.
fn decimal_step(raw: f64) -> f64 {
    let ten = 10f64.powf(raw.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|step| step * ten)
        .find(|step| *step >= raw * (1.0 - 1e-9))
        .unwrap_or(10.0 * ten)
}

/// The unit for an axis whose largest value is `most`: at least two of it, so that ticks stay whole numbers.
fn byte_unit(most: f64) -> (f64, &'static str) {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let power = (0..units.len()).rev().find(|power| most >= 2.0 * 1024f64.powi(*power as i32)).unwrap_or(0);
    (1024f64.powi(power as i32), units[power])
}

pub(super) fn second_unit(most: f64) -> (f64, &'static str) {
    let units = [
        (172_800.0, 86_400.0, "d"),
        (10_800.0, 3_600.0, "h"),
        (180.0, 60.0, "min"),
        (1.0, 1.0, "s"),
        (1e-3, 1e-3, "ms"),
        (1e-6, 1e-6, "\u{b5}s"),
    ];
    let unit = units.into_iter().find(|unit| most >= unit.0);
    unit.map_or((1e-9, "ns"), |unit| (unit.1, unit.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(scale: Scale, low: f64, high: f64, unit: &str, expected: &str) {
        let ticks = scale.ticks(low, high, 5, true);
        let names: Vec<_> = ticks.at.iter().map(|tick| tick.1.replace('\u{202f}', " ")).collect();
        assert_eq!((ticks.unit, names.join(" ").as_str()), (unit, expected), "{scale:?} {low} to {high}");
        assert!(
            ticks.low <= scale.place(low) && ticks.high >= scale.place(high),
            "{scale:?} {low} to {high}"
        );
    }

    #[test]
    fn ticks_stand_on_nice_numbers() {
        check(Scale::Number, 0.0, 9.3, "", "0 2 4 6 8 10");
        check(Scale::Number, 0.0, 0.93, "", "0.0 0.2 0.4 0.6 0.8 1.0");
        check(Scale::Number, -3.0, 11.0, "", "-5 0 5 10 15");
        check(Scale::Number, 0.0, 12345.0, "", "0 5,000 10,000 15,000");
        check(Scale::Number, 0.0, 0.0, "", "0.0 0.2 0.4 0.6 0.8 1.0");
        check(Scale::Whole, 0.0, 3.0, "", "0 1 2 3");
        check(Scale::Percent, 0.0, 100.0, "%", "0 20 40 60 80 100");
    }

    #[test]
    fn bytes_stand_on_powers_of_two() {
        check(Scale::Bytes, 0.0, 12.3 * 1048576.0, "MiB", "0 4 8 12 16");
        check(Scale::Bytes, 0.0, 1.9 * 1048576.0, "KiB", "0 512 1,024 1,536 2,048");
        check(Scale::Bytes, -8192.0, 20000.0, "KiB", "-8 0 8 16 24");
        check(Scale::Bytes, 0.0, 3.0, "B", "0 1 2 3");
        check(Scale::ByteDoublings, 4096.0, 65536.0, "", "4 KiB 8 KiB 16 KiB 32 KiB 64 KiB");
        check(Scale::Doublings, 1.0, 1024.0, "", "1 8 64 512");
        check(Scale::Doublings, 4.0, 4.0, "", "4");
    }

    #[test]
    fn time_has_the_unit_that_fits() {
        check(Scale::Seconds, 0.0, 0.0031, "ms", "0 1 2 3 4");
        check(Scale::Seconds, 0.0, 24.0, "s", "0 5 10 15 20 25");
        check(Scale::Seconds, 0.0, 600.0, "min", "0 2 4 6 8 10");
        check(Scale::Seconds, 0.0, 90000.0, "h", "0 5 10 15 20 25");
        check(Scale::Seconds, 0.0, 444e-9, "ns", "0 100 200 300 400 500");
    }

    #[test]
    fn factors_of_ten_are_as_wide_as_each_other() {
        check(Scale::SecondTens, 444e-9, 2.1, "", "1 \u{b5}s 100 \u{b5}s 10 ms 1 s");
        check(Scale::SecondTens, 4e-6, 39e-6, "", "2 \u{b5}s 5 \u{b5}s 10 \u{b5}s 20 \u{b5}s 50 \u{b5}s");
        check(Scale::Tens, 3.0, 31_000.0, "", "10 100 1,000 10,000");
        check(Scale::Tens, 7.0, 7.0, "", "5 10");
    }

    #[test]
    fn an_axis_is_logarithmic_if_values_are_of_many_sizes() {
        for (scale, values, expected) in [
            (Scale::Seconds, [1.0, 40.0], Scale::Seconds),
            (Scale::Seconds, [1e-6, 40.0], Scale::SecondTens),
            (Scale::Seconds, [0.0, 40.0], Scale::Seconds),
            (Scale::Seconds, [f64::NAN, 40.0], Scale::Seconds),
            (Scale::Bytes, [4096.0, 1e9], Scale::ByteDoublings),
            (Scale::Number, [-1.0, 1e9], Scale::Number),
        ] {
            assert_eq!(scale.for_range(values), expected, "{scale:?} {values:?}");
        }
    }
}
