//! Numbers and names in sentences.

pub(crate) use slablab_report::text::counted;
use slablab_slabs::Release;

/// Bytes for a sentence: the unit that leaves up to four digits before the point.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let places = if value.fract() == 0.0 || value >= 100.0 { 0 } else { 1 };
    format!("{value:.places$} {}", UNITS[unit])
}

/// A part of a whole. Only all of it is 100 %, and only nothing is 0 %.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let percent = 100.0 * part as f64 / whole.max(1) as f64;
    match (part < whole, part > 0) {
        (true, _) if percent >= 99.95 => "over 99.9 %".into(),
        (_, true) if percent < 0.05 => "below 0.1 %".into(),
        (true, true) if !(1.0..99.5).contains(&percent) => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// A part and its whole, with one unit if they have the same: `43.8 of 44.5 GiB`.
pub(crate) fn part_of(part: u64, whole: u64) -> String {
    let (part, whole) = (size(part), size(whole));
    match (part.split_once(' '), whole.split_once(' ')) {
        (Some((number, unit)), Some((_, of))) if unit == of => format!("{number} of {whole}"),
        _ => format!("{part} of {whole}"),
    }
}

/// Words as the beginning of a sentence.
pub(crate) fn capital(words: &str) -> String {
    let mut chars = words.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// The names of caches in a sentence.
pub(crate) fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The release of a kernel in words.
pub(crate) fn release_text(release: Option<Release>) -> String {
    release.map_or("this kernel".into(), |release| format!("Linux {release}"))
}
