//! /proc/allocinfo (6.10 and later, `CONFIG_MEM_ALLOC_PROFILING`): live bytes of each allocating line of
//! code.
//!
//! ```text
//! allocinfo - version: 1.0
//! #     <size>  <calls> <tag info>
//!     56373248     4737 mm/slub.c:2259 func:alloc_slab_page
//!      4136960     1010 drivers/staging/ctagmod/ctagmod.c:20 [ctagmod] func:ctagmod_start
//! ```
//! Lines may be in any order, as `sort` leaves them, and the head may be missing.

use crate::text::{LineError, number, utf8};

/// The file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocinfo {
    /// The version in its head.
    pub version: Option<String>,
    /// Its lines.
    pub sites: Vec<AllocSite>,
}

/// A line of code that allocates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocSite {
    /// Bytes that live. Below 0 for a moment, if an object is freed while the kernel sums up its CPUs.
    pub bytes: i64,
    /// Allocations that live.
    pub calls: i64,
    /// The source file.
    pub file: String,
    /// Its line.
    pub line: u32,
    /// The function.
    pub function: String,
    /// The module; `None` for the kernel itself.
    pub module: Option<String>,
    /// Whether the kernel counts all of it. It says so since version 2.0.
    pub accurate: bool,
}

/// Whether a file that begins like this is one; `head` may end anywhere.
pub fn is_allocinfo(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.next().is_some_and(|line| line.starts_with("allocinfo - version:") || site(line).is_some())
}

/// Reads the file.
///
/// # Errors
/// A line of another form.
pub fn parse(bytes: &[u8]) -> Result<Allocinfo, LineError> {
    let mut found = Allocinfo::default();
    for (index, line) in utf8(bytes)?.lines().enumerate() {
        let trimmed = line.trim();
        if let Some(version) = trimmed.strip_prefix("allocinfo - version:") {
            found.version = Some(version.trim().into());
        } else if !trimmed.is_empty() && !trimmed.starts_with('#') {
            let expected = "bytes, calls, and a place as in `mm/slub.c:2259 func:alloc_slab_page`";
            found.sites.push(site(line).ok_or_else(|| LineError::new(index + 1, expected, trimmed))?);
        }
    }
    Ok(found)
}

/// The lines of the file that are of its form. Later kernels may add others: a dump's answer does not
/// depend on them.
pub fn lines(bytes: &[u8]) -> Vec<AllocSite> {
    String::from_utf8_lossy(bytes).lines().filter_map(site).collect()
}

/// Lines of the file among others, some of which a mail program may have broken.
#[derive(Debug, Default)]
pub(crate) struct Loose {
    /// A line that goes on.
    open: Option<String>,
    sites: Vec<AllocSite>,
}

impl Loose {
    /// All lines.
    pub(crate) fn finish(mut self) -> Vec<AllocSite> {
        let open = self.open.take();
        self.sites.extend(open.and_then(|open| site(open.trim_end_matches('='))));
        self.sites
    }

    /// Takes a line that stands by itself; false if it is none of the file.
    pub(crate) fn line(&mut self, line: &str) -> bool {
        if let Some(open) = self.open.take() {
            // A name that was broken has the sign of quoted-printable text.
            let joined = match open.strip_suffix('=') {
                Some(open) => format!("{open}{line}"),
                None => format!("{open} {line}"),
            };
            if let Some(found) = site(&joined).filter(|_| site(line).is_none()) {
                self.sites.push(found);
                return true;
            }
            // The name as far as it is there.
            self.sites.extend(site(open.trim_end_matches('=')));
        }
        match site(line) {
            Some(found) if !found.function.ends_with('=') => self.sites.push(found),
            Some(_) => self.open = Some(line.to_string()),
            None if begins(line) => self.open = Some(line.to_string()),
            None => return false,
        }
        true
    }
}

/// Whether a line has the numbers and the place of a line of the file, and not its end.
fn begins(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let numbers = amount(&mut words).is_some() && words.next().and_then(signed).is_some();
    let place = words.next().and_then(|place| place.rsplit_once(':'));
    numbers && place.is_some_and(|(file, line)| file.ends_with(".c") && number::<u32>(line).is_some())
}

fn site(line: &str) -> Option<AllocSite> {
    let mut words = line.split_whitespace();
    let (bytes, calls) = (amount(&mut words)?, signed(words.next()?)?);
    let (file, line) = words.next()?.rsplit_once(':')?;
    let mut next = words.next()?;
    let module = next.strip_prefix('[').and_then(|name| name.strip_suffix(']')).map(str::to_string);
    if module.is_some() {
        next = words.next()?;
    }
    let function = next.strip_prefix("func:")?.to_string();
    let accurate = !words.any(|word| word == "accurate:no");
    Some(AllocSite { bytes, calls, file: file.into(), line: number(line)?, function, module, accurate })
}

/// Bytes: a number, one with a unit as numfmt prints it (`2.8M`), or one with a unit after it as the kernel's
/// log has it (`38.4 MiB`).
fn amount<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<i64> {
    let word = words.next()?;
    if let Some(bytes) = signed(word) {
        return Some(bytes);
    }
    let digits = word.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(word.len());
    let unit = if digits == word.len() { words.next()? } else { &word[digits..] };
    let shift = match unit.trim_end_matches("iB").trim_end_matches('B') {
        "" => 0,
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    let value: f64 = word[..digits].parse().ok()?;
    Some((value * (1u64 << shift) as f64) as i64)
}

fn signed(word: &str) -> Option<i64> {
    match word.strip_prefix('-') {
        Some(digits) => number::<i64>(digits).map(|number| -number),
        None => number(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the kernel's documentation of the file, sorted by size as there.
    const SORTED: &str = "    56373248     4737 mm/slub.c:2259 func:alloc_slab_page\n\
     4136960     1010 drivers/staging/ctagmod/ctagmod.c:20 [ctagmod] func:ctagmod_start\n\
     2894464    22613 fs/kernfs/dir.c:615 func:__kernfs_new_node\n";

    #[test]
    fn lines_are_read_with_and_without_a_head() {
        let head = "allocinfo - version: 2.0\n#     <size>  <calls> <tag info>\n";
        let last = "-32 -1 a.c:3 func:f accurate:no\n";
        for text in [format!("{head}{SORTED}{last}"), format!("{SORTED}{last}{head}\n")] {
            assert!(is_allocinfo(&text.as_bytes()[..60]), "{text}");
            let found = parse(text.as_bytes()).unwrap();
            assert_eq!(found.version.as_deref(), Some("2.0"));
            assert_eq!(found.sites.len(), 4);
            let [slab, module, _, odd] = &found.sites[..] else { panic!("{found:?}") };
            assert_eq!((slab.bytes, slab.calls, slab.line), (56_373_248, 4737, 2259));
            assert_eq!((slab.function.as_str(), slab.module.as_deref()), ("alloc_slab_page", None));
            assert_eq!(
                (module.function.as_str(), module.module.as_deref()),
                ("ctagmod_start", Some("ctagmod"))
            );
            assert!(slab.accurate && !odd.accurate && odd.bytes == -32 && odd.calls == -1);
        }
    }

    #[test]
    fn other_lines_are_named() {
        #[track_caller]
        fn check(line: &str) {
            let error = parse(format!("{SORTED}{line}\n").as_bytes()).unwrap_err();
            assert_eq!(error.line, 4, "{error}");
            assert!(!is_allocinfo(line.as_bytes()), "{line}");
        }
        check("1 2 mm/slub.c func:f");
        check("1 mm/slub.c:3 func:f");
        check("1 2 mm/slub.c:3 f");
        check("one 2 mm/slub.c:3 func:f");
        check("# name <active_objs> <num_objs>".trim_start_matches('#'));
    }
}
