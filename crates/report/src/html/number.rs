//! Numbers for people: binary units for bytes, three digits that matter.

use crate::text::grouped;

/// Between a number and its unit: a blank that does not break and is not wide.
const THIN: char = '\u{202f}';

const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/// A number and its unit apart, so that a table can align both.
pub(super) struct Parts {
    pub(super) number: String,
    pub(super) unit: &'static str,
}

/// Bytes in the largest unit of which there is at least one, with three digits: 512 B, 1.5 KiB, 12.3 MiB,
/// 1,000 MiB. Whole numbers of a unit have no places, unless all shall have them.
pub(super) fn byte_parts(bytes: u64, precise: bool) -> Parts {
    let mut unit = 0;
    while unit + 1 < UNITS.len() && bytes >> (10 * (unit + 1)) > 0 {
        unit += 1;
    }
    let whole = 1u64 << (10 * unit);
    let number = if bytes.is_multiple_of(whole) && (!precise || bytes < 1024) {
        grouped(bytes / whole)
    } else {
        three_digits(bytes as f64 / whole as f64)
    };
    Parts { number, unit: UNITS[unit] }
}

/// Three digits that matter; more where the number itself has more before the point.
pub(super) fn three_digits(number: f64) -> String {
    if !number.is_finite() {
        return NONE.into();
    }
    // By the rounded number, so that 9.999 is 10.0 and not 10.00.
    let places = [2, 1, 0].into_iter().find(|places| {
        let digits = format!("{:.*}", *places, number.abs());
        digits.len() <= if *places == 0 { usize::MAX } else { 4 }
    });
    let places = places.unwrap_or(0);
    if places > 0 {
        return format!("{number:.places$}");
    }
    let rounded = number.abs().round() as u64;
    if number < 0.0 && rounded > 0 { format!("-{}", grouped(rounded)) } else { grouped(rounded) }
}

/// Bytes with their unit.
pub fn bytes(bytes: u64) -> String {
    let Parts { number, unit } = byte_parts(bytes, false);
    format!("{number}{THIN}{unit}")
}

/// Bytes for a sentence above a table in KiB, which are rounded down there: below 1 MiB the same number.
pub fn bytes_as_in_tables(bytes: u64) -> String {
    match bytes {
        1024..0x10_0000 => format!("{}{THIN}KiB", bytes >> 10),
        _ => self::bytes(bytes),
    }
}

/// A change in bytes, with its sign.
pub fn signed_bytes(change: i64) -> String {
    format!("{}{}", sign(change), bytes(change.unsigned_abs()))
}

/// A number of things, in groups of three.
pub fn count(count: u64) -> String {
    grouped(count)
}

/// A change in a number of things, with its sign.
pub fn signed(change: i64) -> String {
    format!("{}{}", sign(change), grouped(change.unsigned_abs()))
}

/// What stands where there is no number.
pub(super) const NONE: &str = "\u{2013}";

/// A number with `places` decimal places.
pub fn fixed(number: f64, places: usize) -> String {
    if !number.is_finite() {
        return NONE.into();
    }
    let digits = format!("{:.places$}", number.abs());
    // What rounds to nothing has no sign.
    let below = number < 0.0 && digits.contains(|digit: char| digit.is_ascii_digit() && digit != '0');
    if below { format!("-{digits}") } else { digits }
}

/// Percent with one place.
pub fn percent(percent: f64) -> String {
    if percent.is_finite() { format!("{}{THIN}%", fixed(percent, 1)) } else { NONE.into() }
}

/// A difference of two percentages, with its sign.
pub fn points(points: f64) -> String {
    format!("{points:+.1} points")
}

/// A whole number in groups of three digits. Only negative numbers have a sign.
pub(super) fn whole(number: f64) -> String {
    format!("{}{}", if number < 0.0 { "-" } else { "" }, grouped(number.abs().round() as u64))
}

pub(super) fn sign(change: i64) -> &'static str {
    match change {
        ..0 => "-",
        0 => "",
        1.. => "+",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T>(print: fn(T) -> String, cases: impl IntoIterator<Item = (T, &'static str)>) {
        for (value, expected) in cases {
            assert_eq!(print(value).replace(THIN, " "), expected);
        }
    }

    #[test]
    fn bytes_have_binary_units_and_three_digits() {
        check(
            bytes,
            [
                (0, "0 B"),
                (1023, "1,023 B"),
                (1024, "1 KiB"),
                (1536, "1.50 KiB"),
                (10239, "10.0 KiB"),
                (12_900_000, "12.3 MiB"),
                (1023 * 1024 + 1, "1,023 KiB"),
                (160 << 30, "160 GiB"),
                (u64::MAX, "16,384 PiB"),
            ],
        );
    }

    #[test]
    fn a_sentence_has_the_number_of_its_table() {
        check(
            bytes_as_in_tables,
            [
                (1023, "1,023 B"),
                (1535, "1 KiB"),
                (474_983, "463 KiB"),
                (1 << 20, "1 MiB"),
                (1536 << 10, "1.50 MiB"),
            ],
        );
    }

    #[test]
    fn changes_have_a_sign() {
        check(signed_bytes, [(0, "0 B"), (4096, "+4 KiB"), (-4096, "-4 KiB")]);
        check(signed, [(0, "0"), (1234, "+1,234"), (i64::MIN, "-9,223,372,036,854,775,808")]);
        check(percent, [(12.34, "12.3 %"), (-0.5, "-0.5 %"), (-0.04, "0.0 %"), (100.0, "100.0 %")]);
    }

    #[test]
    fn digits_that_matter() {
        check(three_digits, [(0.123, "0.12"), (9.999, "10.0"), (99.96, "100"), (12345.6, "12,346")]);
    }
}
