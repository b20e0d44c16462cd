//! Kernel releases, by which presets are named and eras are told apart.

use core::fmt;

/// A kernel release, or the date of a posting (year, month).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// 2 in 2.6.32, 6 in 6.1; the year of a posting.
    pub major: u16,
    /// 6 in 2.6.32, 1 in 6.1; the month of a posting.
    pub minor: u16,
    /// 32 in 2.6.32, 0 in 6.1.
    pub patch: u16,
}

impl Release {
    /// A release by its numbers.
    pub const fn new(major: u16, minor: u16, patch: u16) -> Release {
        Release { major, minor, patch }
    }

    /// Reads the leading numbers of a release string; what follows them is a distribution's own.
    pub fn parse(text: &str) -> Option<Release> {
        let mut numbers = [0u16; 3];
        let mut rest = text;
        for (place, number) in numbers.iter_mut().enumerate() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            *number = rest.get(..digits)?.parse().ok()?;
            rest = &rest[digits..];
            match rest.as_bytes().first() {
                Some(b'.' | b'-') if rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit) => {
                    // 6.1.0-50-amd64: a dash after a kernel's number ends it; after a year it is a date.
                    match rest.starts_with('-') && *number < 1000 {
                        true if place == 0 => return None,
                        true => break,
                        false => {}
                    }
                    rest = &rest[1..];
                }
                _ if place == 0 => return None,
                _ => break,
            }
        }
        Some(Release { major: numbers[0], minor: numbers[1], patch: numbers[2] })
    }

    /// Reads a release as `uname -r` prints it or a user names it: after its numbers there is nothing, or
    /// what a distribution or a candidate has there: `6.18.15+deb13`, `6.18-rc3`.
    pub fn named(text: &str) -> Option<Release> {
        let after = text.bytes().find(|byte| !byte.is_ascii_digit() && *byte != b'.');
        Release::parse(text).filter(|_| after.is_none_or(|byte| b"-+~_".contains(&byte)))
    }
}

/// The preset that stands for `release`: the newest one that is not newer. `presets` are in the order of
/// their releases, which `of` reads.
pub fn newest_not_newer<P>(
    presets: impl DoubleEndedIterator<Item = P>,
    of: impl Fn(&P) -> Release,
    release: Release,
) -> Option<P> {
    presets.rev().find(|preset| of(preset) <= release)
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.major, self.patch) {
            (1000.., _) => write!(f, "{}-{:02}", self.major, self.minor),
            (2, 0) => write!(f, "2.{}", self.minor),
            (2, patch) => write!(f, "2.{}.{patch}", self.minor),
            (major, 0) => write!(f, "{major}.{}", self.minor),
            (major, patch) => write!(f, "{major}.{}.{patch}", self.minor),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_with_its_numbers_or_a_suffix() {
        let check = |text: &str, expected: Option<(u16, u16, u16)>| {
            let found = Release::named(text).map(|release| (release.major, release.minor, release.patch));
            assert_eq!(found, expected, "{text}");
        };
        check("6.18", Some((6, 18, 0)));
        check("6.18.15+deb13-amd64", Some((6, 18, 15)));
        check("6.18-rc3", Some((6, 18, 0)));
        check("2009-06", Some((2009, 6, 0)));
        // What is meant as a knob is no suffix.
        check("6.18:cpu_partial=0", None);
        check("6.18x", None);
        check("six", None);
    }
}
