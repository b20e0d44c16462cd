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
}

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
    /// Where a value stands.
    pub(super) fn place(self, value: f64) -> f64 {
        match self {
            Scale::Doublings | Scale::ByteDoublings => value.max(f64::MIN_POSITIVE).log2(),
            _ => value,
        }
    }

    /// A value in words, with its unit.
    pub fn print(self, value: f64) -> String {
        match self {
            Scale::Bytes | Scale::ByteDoublings if value < 0.0 => {
                format!("\u{2212}{}", number::bytes(-value as u64))
            }
            Scale::Bytes | Scale::ByteDoublings => number::bytes(value as u64),
            Scale::Percent => number::percent(value),
            Scale::Seconds if value == 0.0 => "0\u{202f}s".into(),
            Scale::Seconds => {
                let (divisor, unit) = second_unit(value);
                format!("{}\u{202f}{unit}", number::three_digits(value / divisor))
            }
            Scale::Number | Scale::Whole | Scale::Doublings if value.fract() == 0.0 => number::whole(value),
            Scale::Number | Scale::Whole | Scale::Doublings => {
                number::three_digits(value).replace('-', "\u{2212}")
            }
        }
    }

    /// The name that the drawing by script knows it by.
    pub(super) fn key(self) -> &'static str {
        match self {
            Scale::Bytes | Scale::ByteDoublings => "bytes",
            Scale::Seconds => "seconds",
            Scale::Percent => "percent",
            Scale::Number | Scale::Whole | Scale::Doublings => "number",
        }
    }

    /// About `about` ticks for values from `low` to `high`. With `cover` the axis runs from tick to tick,
    /// else just as far as the values do.
    pub(super) fn ticks(self, low: f64, high: f64, about: usize, cover: bool) -> Ticks {
        if matches!(self, Scale::Doublings | Scale::ByteDoublings) {
            return self.doublings(low, high, about);
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
}

fn is_whole(number: f64) -> bool {
    (number - number.round()).abs() < 1e-6 * number.abs().max(1.0)
}

fn label(shown: f64, places: usize) -> String {
    let text =
        if places == 0 && shown.abs() >= 1000.0 { number::whole(shown) } else { format!("{shown:.places$}") };
    // The label of -0 is "0".
    if text.trim_start_matches(['-', '0', '.']).is_empty() {
        text.replace('-', "")
    } else {
        text.replace('-', "\u{2212}")
    }
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

fn second_unit(most: f64) -> (f64, &'static str) {
    let units = [
        (172_800.0, 86_400.0, "d"),
        (10_800.0, 3_600.0, "h"),
        (180.0, 60.0, "min"),
        (1.0, 1.0, "s"),
        (1e-3, 1e-3, "ms"),
    ];
    let unit = units.into_iter().find(|unit| most >= unit.0);
    unit.map_or((1e-6, "\u{b5}s"), |unit| (unit.1, unit.2))
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
        check(Scale::Number, -3.0, 11.0, "", "\u{2212}5 0 5 10 15");
        check(Scale::Number, 0.0, 12345.0, "", "0 5,000 10,000 15,000");
        check(Scale::Number, 0.0, 0.0, "", "0.0 0.2 0.4 0.6 0.8 1.0");
        check(Scale::Whole, 0.0, 3.0, "", "0 1 2 3");
        check(Scale::Percent, 0.0, 100.0, "%", "0 20 40 60 80 100");
    }

    #[test]
    fn bytes_stand_on_powers_of_two() {
        check(Scale::Bytes, 0.0, 12.3 * 1048576.0, "MiB", "0 4 8 12 16");
        check(Scale::Bytes, 0.0, 1.9 * 1048576.0, "KiB", "0 512 1,024 1,536 2,048");
        check(Scale::Bytes, -8192.0, 20000.0, "KiB", "\u{2212}8 0 8 16 24");
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
    }
}
