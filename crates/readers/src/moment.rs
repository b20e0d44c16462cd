//! When a dump was taken, from the output of date, timedatectl and uptime.

/// Seconds since 1970 of the first line that date or timedatectl wrote in universal time or with an offset:
/// `Sat Nov 21 06:42:04 UTC 2026`, `Universal time: Sat 2026-11-21 06:42:04 UTC`. `None` for a zone that is
/// only a name, since several share one.
pub(crate) fn date(text: &str) -> Option<u64> {
    text.lines().filter(|line| !line.contains("Local time")).find_map(date_of_line)
}

fn date_of_line(line: &str) -> Option<u64> {
    let (mut year, mut month, mut day) = (None, None, None);
    let (mut time, mut zone, mut noon) = (None, None, None);
    for word in line.split_whitespace() {
        let word = word.trim_end_matches(',');
        if let Some(at) = MONTHS.iter().position(|month| word.eq_ignore_ascii_case(month)) {
            month = Some(at as i64 + 1);
        } else if let Some(seconds) = clock(word) {
            time = Some(seconds);
        } else if let Some([y, m, d]) = triple(word, '-') {
            (year, month, day) = (Some(y), Some(m), Some(d));
        } else if let Some(offset) = offset(word) {
            zone = Some(offset);
        } else if matches!(word, "AM" | "PM") {
            noon = Some(word);
        } else if let Some(value) = crate::text::number::<i64>(word) {
            match word.len() {
                4 => year = Some(value),
                1 | 2 => day = Some(value),
                _ => {}
            }
        }
    }
    let time = match (time?, noon) {
        (time, Some("AM")) if time >= NOON => time - NOON,
        (time, Some("PM")) if time < NOON => time + NOON,
        (time, _) => time,
    };
    let (year, month, day) = (year?, month?, day?);
    let sane = (1970..10_000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let seconds = days(year, month, day) * 86_400 + time - zone?;
    u64::try_from(seconds).ok().filter(|_| sane)
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const NOON: i64 = 12 * 3600;

/// Seconds of `06:42:04`.
fn clock(word: &str) -> Option<i64> {
    let [hours, minutes, seconds] = triple(word, ':')?;
    (hours < 24 && minutes < 60 && seconds < 61).then_some((hours * 60 + minutes) * 60 + seconds)
}

fn triple(word: &str, separator: char) -> Option<[i64; 3]> {
    let mut parts = word.splitn(3, separator).map(crate::text::number::<i64>);
    let triple = [parts.next()??, parts.next()??, parts.next()??];
    triple.iter().all(|part| *part < 100_000).then_some(triple)
}

/// Seconds that a zone is ahead of universal time.
fn offset(word: &str) -> Option<i64> {
    if matches!(word, "UTC" | "GMT" | "Z") {
        return Some(0);
    }
    let (sign, digits) = match word.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let digits = Some(digits).filter(|digits| digits.len() == 4)?;
    let value: i64 = crate::text::number(digits)?;
    Some(sign * (value / 100 * 3600 + value % 100 * 60))
}

/// Days since 1970 in the Gregorian calendar (Howard Hinnant, "chrono-compatible low-level date algorithms").
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Seconds up, of `06:42:04 up 12 days,  3:04,  1 user, ...`; to the minute, as uptime writes it.
pub(crate) fn uptime(text: &str) -> Option<f64> {
    let (_, rest) = text.lines().next()?.split_once(" up ")?;
    let mut minutes = None;
    for part in rest.split(',').map(str::trim) {
        let (value, unit) = part.split_once(char::is_whitespace).unwrap_or((part, ""));
        let unit = unit.trim();
        let add = match value.split_once(':') {
            Some((hours, rest)) if unit.is_empty() => crate::text::number::<u32>(hours)
                .zip(crate::text::number::<u32>(rest))
                .map(|(h, m)| f64::from(h) * 60.0 + f64::from(m)),
            _ => crate::text::number::<u32>(value).map(f64::from).and_then(|value| match unit {
                "day" | "days" => Some(value * 1440.0),
                "hour" | "hours" => Some(value * 60.0),
                "min" | "mins" | "minute" | "minutes" => Some(value),
                _ => None,
            }),
        };
        // What follows is about users.
        let Some(add) = add else { break };
        minutes = Some(minutes.unwrap_or(0.0) + add);
    }
    minutes.map(|minutes| minutes * 60.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        #[track_caller]
        fn check(text: &str, expected: Option<u64>) {
            assert_eq!(date(text), expected, "{text}");
        }
        check("Sat Nov 21 06:42:04 UTC 2026\n", Some(1_795_243_324));
        check("Sat Nov 21 06:42:04 AM UTC 2026", Some(1_795_243_324));
        check("Sat Nov 21 12:42:04 AM GMT 2026", Some(1_795_221_724));
        check("Sat 21 Nov 2026 06:42:04 PM UTC", Some(1_795_286_524));
        check("Sat, 21 Nov 2026 08:42:04 +0200", Some(1_795_243_324));
        check("Thu Jan  1 00:00:00 UTC 1970", Some(0));
        check("Thu Feb 29 00:00:00 UTC 2024", Some(1_709_164_800));
        let timedatectl =
            "      Local time: Sat 2026-11-21 08:42:04 EET\n  Universal time: Sat 2026-11-21 06:42:04 UTC\n";
        check(timedatectl, Some(1_795_243_324));
        // Which of several zones?
        check("Sat Nov 21 06:42:04 IST 2026", None);
        check("Sat Nov 21 25:42:04 UTC 2026", None);
        check("", None);
        check("99999999999999999999 Nov 1 1:1:1 UTC 9999", Some(253_397_034_061));
    }

    #[test]
    fn uptimes() {
        #[track_caller]
        fn check(text: &str, expected: Option<f64>) {
            assert_eq!(uptime(text), expected, "{text}");
        }
        check(" 06:42:04 up 12 days,  3:04,  1 user,  load average: 0.1, 0.2, 0.3", Some(1_047_840.0));
        check(" 06:42:04 up 5 min,  0 users,  load average: 0.1, 0.2, 0.3", Some(300.0));
        check(" 06:42:04 up 1 day, 2 min,  2 users", Some(86_520.0));
        check("up", None);
        check(" 06:42:04 up ?", None);
    }
}
