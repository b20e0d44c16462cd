//! Rows of tables of slab caches, each by a grammar over the words of a line.
//!
//! | table | grammar of a row |
//! |---|---|
//! | /proc/slabinfo | name, five numbers, `: tunables` three, `: slabdata` three; then statistics |
//! | slabtop | two numbers, `99%`, a size such as `0.19K`, two numbers, a size, name |
//! | `vmstat -m`, columns of slabinfo | name, four numbers; a fifth is pages in a slab |
//! | OOM report | name, two sizes such as `255KB` |
//! | list of sizes | a name, and one size, perhaps in two units |
//!
//! A row is anchored at what only it has (`: tunables`, the per cent), so that line numbers and other columns
//! before it do no harm. A row that ends early says so.

use std::str::FromStr;

/// Words in which a row begins and has its anchor: a line may have many rows, and is searched once.
const NEAR: usize = 64;

/// One cache, as far as its row says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The line in the text, from 1.
    pub line: usize,
    /// The cache's name.
    pub name: String,
    /// Objects in use or parked.
    pub active: Option<u64>,
    /// Objects there is room for.
    pub total: Option<u64>,
    /// Bytes of an object.
    pub size: Option<Size>,
    /// Objects in a slab.
    pub per_slab: Option<u64>,
    /// Pages in a slab.
    pub pages: Option<u64>,
    /// Slabs.
    pub slabs: Option<u64>,
    /// Bytes of all slabs, as printed.
    pub bytes: Option<u64>,
    /// Bytes of objects in use, where that is printed.
    pub used_bytes: Option<u64>,
    /// SLAB's tunables and counts: limit, batchcount, sharedfactor, active slabs, sharedavail.
    pub slab: Option<[u64; 5]>,
}

/// A size that may have been rounded when it was printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Not less.
    pub low: u64,
    /// Not more.
    pub high: u64,
}

impl Size {
    /// A size that is printed whole.
    pub const fn exact(bytes: u64) -> Size {
        Size { low: bytes, high: bytes }
    }
}

/// What the words of a line say.
pub(super) struct Found {
    /// The row.
    pub(super) row: Row,
    /// Words that it has taken, from the first.
    pub(super) words: usize,
    /// Whether words are missing at its end.
    pub(super) is_cut: bool,
}

/// The words of a line, without the bars of a table.
pub(super) fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().filter(|word| !matches!(*word, "|" | "\u{2502}")).collect()
}

/// A row of /proc/slabinfo, version 2.
pub(super) fn slabinfo(words: &[&str]) -> Option<Found> {
    let starts = |at: usize, section: &str| words.get(at).is_none_or(|word| *word == section);
    // A colon at the end may be followed by more on the next line.
    let colon = (6..words.len().min(NEAR)).find(|&at| {
        words[at] == ":" && starts(at + 1, "tunables") && words[at - 5..at].iter().all(|word| is_number(word))
    })?;
    let name = words[colon - 6];
    let before: Vec<u64> = words[colon - 5..colon].iter().filter_map(|word| number(word)).collect();
    let [active, total, size, per_slab, pages] = before[..] else { return None };
    if !is_name(name) {
        return None;
    }
    let (tunables, at) = section(words, colon, "tunables");
    let (slabdata, mut at) =
        if tunables.len() == 3 { section(words, at, "slabdata") } else { (Vec::new(), at) };
    let is_cut = slabdata.len() < 3;
    // A mail program may break the line after a colon.
    if is_cut && words[at..] == [":"] {
        at += 1;
    }
    for statistics in ["globalstat", "cpustat"] {
        if !is_cut && words.get(at) == Some(&":") && words.get(at + 1) == Some(&statistics) {
            at = section(words, at, statistics).1;
        }
    }
    let mut row = Row {
        name: name.to_string(),
        active: Some(active),
        total: Some(total),
        size: Some(Size::exact(size)),
        per_slab: Some(per_slab),
        pages: Some(pages),
        ..Row::default()
    };
    if let (&[limit, batchcount, sharedfactor], &[active_slabs, slabs, sharedavail]) =
        (&tunables[..], &slabdata[..])
    {
        row.slabs = Some(slabs);
        row.slab = Some([limit, batchcount, sharedfactor, active_slabs, sharedavail]);
    }
    Some(Found { row, words: at, is_cut })
}

/// The numbers of a section that begins with a colon at `at`, and the place after them: three at most, but
/// SLAB's statistics have more.
fn section(words: &[&str], at: usize, name: &str) -> (Vec<u64>, usize) {
    if words.get(at) != Some(&":") || words.get(at + 1) != Some(&name) {
        return (Vec::new(), at);
    }
    let most = if name.ends_with("stat") { 9 } else { 3 };
    let numbers: Vec<u64> = words[at + 2..].iter().map_while(|word| number(word)).take(most).collect();
    let end = at + 2 + numbers.len();
    (numbers, end)
}

/// A row of slabtop, of procps or uutils.
pub(super) fn slabtop(words: &[&str]) -> Option<Found> {
    let at = (2..words.len().min(NEAR))
        .find(|&at| is_percent(words[at]) && is_number(words[at - 1]) && is_number(words[at - 2]))?;
    let next = |offset: usize| words.get(at + offset).copied();
    // The size of an object has a unit, which tells the row from other lines with a per cent.
    let size = match next(1) {
        Some(word) => Some(size(word).filter(|_| word.ends_with(['K', 'M']))?),
        None => return None,
    };
    let (slabs, per_slab) = (next(2).and_then(number), next(3).and_then(number));
    let bytes = next(4).and_then(size_in_k);
    let name = next(5).filter(|name| is_name(name));
    let known = [slabs.is_some(), per_slab.is_some(), bytes.is_some(), name.is_some()];
    // What is there must be right up to the end of the line.
    let right = known.iter().take_while(|known| **known).count();
    let there = words.len() - at - 2;
    if there > right && right < known.len() {
        return None;
    }
    let row = Row {
        name: name.unwrap_or_default().to_string(),
        active: number(words[at - 1]),
        total: number(words[at - 2]),
        size,
        slabs,
        per_slab,
        bytes,
        ..Row::default()
    };
    Some(Found { row, words: (at + 6).min(words.len()), is_cut: right < known.len() })
}

/// A row of `vmstat -m`, or the first columns of /proc/slabinfo: a name and four or five numbers. The last of
/// four is the number of objects in a slab, whatever the heading says.
pub(super) fn columns(words: &[&str], is_sure: bool) -> Option<Row> {
    let (name, numbers) = words.split_first()?;
    let numbers: Vec<u64> = numbers.iter().map(|word| number(word)).collect::<Option<_>>()?;
    let (&[active, total, size, per_slab], pages) = (numbers.first_chunk::<4>()?, numbers.get(4).copied());
    // Without a heading, the numbers themselves must look like a cache's.
    let fits = active <= total && (4..=1 << 22).contains(&size) && (1..=1 << 15).contains(&per_slab);
    let whole = total.checked_rem(per_slab) == Some(0);
    // As many objects as fit the smallest slab of a power of two of pages.
    let slab = per_slab.saturating_mul(size).max(4096).checked_next_power_of_two().unwrap_or(u64::MAX);
    let full = per_slab.saturating_add(1).saturating_mul(size) > slab;
    if numbers.len() > 5 || !is_name(name) || !(fits && (whole || full || is_sure)) {
        return None;
    }
    Some(Row {
        name: (*name).to_string(),
        active: Some(active),
        total: Some(total),
        size: Some(Size::exact(size)),
        per_slab: Some(per_slab),
        pages,
        ..Row::default()
    })
}

/// A row of the table of an OOM report: bytes in use, and of all objects.
pub(super) fn oom(words: &[&str]) -> Option<Row> {
    let &[name, used, total] = words else { return None };
    let kib = |word: &str| number::<u64>(word.strip_suffix("KB")?)?.checked_mul(1024);
    let (used, total) = (kib(used)?, kib(total)?);
    let row = Row { name: name.to_string(), used_bytes: Some(used), bytes: Some(total), ..Row::default() };
    is_name(name).then_some(row)
}

/// A row of `kmem -s` of crash, old and new: `at` is whether the name comes last. Address, size of an object,
/// objects in use, objects, slabs, size of a slab.
pub(super) fn crash(words: &[&str]) -> Option<Result<Row, String>> {
    let [cache, rest @ ..] = words else { return None };
    // crash has no `0x` before an address, drgn's copies of it have.
    let cache = cache.trim_start_matches("0x");
    let is_address = cache.len() >= 8 && cache.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (name, columns) = match rest {
        [columns @ .., name] if is_address && columns.len() == 5 && is_number(columns[0]) => (*name, columns),
        [name, columns @ ..] if is_address && columns.len() == 5 && is_name(name) => (*name, columns),
        _ => return None,
    };
    let [objsize, active, total, slabs, slab] = columns else { return None };
    if [objsize, active, total, slabs].iter().any(|word| **word == "?") {
        return Some(Err(name.to_string()));
    }
    let slab = size(slab)?.low;
    let (total, slabs): (u64, u64) = (number(total)?, number(slabs)?);
    Some(Ok(Row {
        name: name.to_string(),
        active: number(active),
        total: Some(total),
        size: Some(Size::exact(number(objsize)?)),
        per_slab: Some(total.checked_div(slabs).unwrap_or(slab / number::<u64>(objsize)?.max(1)).max(1)),
        slabs: Some(slabs),
        bytes: Some(slabs.checked_mul(slab)?),
        ..Row::default()
    }))
}

/// A row of /proc/spl/kmem/slab: name, flags, bytes of slabs, bytes of objects in use. Caches that SPL keeps
/// in the kernel's own slabs have no numbers there.
pub(super) fn spl(words: &[&str]) -> Option<Option<Row>> {
    let [name, flags, size, used, rest @ ..] = words else { return None };
    if !flags.starts_with("0x") || !is_name(name) || rest.len() < 2 {
        return None;
    }
    if *size == "-" {
        return Some(None);
    }
    let (size, used) = (number(size)?, number(used).unwrap_or(0));
    let row = Row { name: name.to_string(), bytes: Some(size), used_bytes: Some(used), ..Row::default() };
    Some(Some(row))
}

/// A name and a size, in whatever order: a size without a unit counts only if a second one says the same in
/// another unit.
pub(super) fn sized(words: &[&str]) -> Option<Row> {
    // What is in brackets repeats the size in round numbers: `22180873KB (21 GB)`.
    let open = words
        .iter()
        .position(|word| word.starts_with('(') && word[1..].starts_with(|c: char| c.is_ascii_digit()));
    let words = match open {
        Some(at) if at > 1 && words[words.len() - 1].ends_with(')') => &words[..at],
        _ => words,
    };
    let (mut name, mut sizes, mut has_unit) = (None, Vec::new(), false);
    let mut at = 0;
    while at < words.len() {
        let (word, next) = (words[at], words.get(at + 1).copied());
        if let Some(plain) = decimal(word) {
            let unit = next.and_then(unit_shift);
            sizes.push(scaled(plain, unit.unwrap_or(0))?);
            has_unit |= unit.is_some();
            at += if unit.is_some() { 2 } else { 1 };
        } else if let Some(size) = size(word) {
            sizes.push(size);
            has_unit = true;
            at += 1;
        } else if name.is_none() && is_name(word) {
            name = Some(word);
            at += 1;
        } else {
            return None;
        }
    }
    let (low, high) = (sizes.iter().map(|size| size.low).max()?, sizes.iter().map(|size| size.high).min()?);
    let said_twice = sizes.len() > 1 && sizes.iter().any(|size| size.low < size.high);
    if low > high || sizes.len() > 3 || !(has_unit || said_twice) {
        return None;
    }
    let exact = sizes.iter().find(|size| size.low == size.high).map(|size| size.low);
    let bytes = exact.unwrap_or(low.midpoint(high));
    Some(Row { name: name?.to_string(), bytes: Some(bytes), ..Row::default() })
}

/// A cache's name: letters, digits and what kernel developers put between them. Not a path, not a sentence.
pub(super) fn is_name(word: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "_-:.()+>#@&~".contains(c);
    let has_letter = word.chars().any(char::is_alphabetic) || word.starts_with(':');
    let ends_well = !word.ends_with([':', '.']) && !word.starts_with(['(', '>', '#', '&']);
    has_letter && ends_well && word.chars().all(plain) && word.len() <= 200 && unit_shift(word).is_none()
}

/// A number, perhaps with a comma before each three digits: `2,124,486`.
pub(super) fn number<T: FromStr>(word: &str) -> Option<T> {
    if !word.contains(',') {
        return crate::text::number(word);
    }
    let mut groups = word.split(',');
    let first = groups.next().is_some_and(|first| (1..=3).contains(&first.len()));
    let rest = groups.all(|group| group.len() == 3 && group.bytes().all(|byte| byte.is_ascii_digit()));
    if first && rest { crate::text::number(&word.replace(',', "")) } else { None }
}

fn is_number(word: &str) -> bool {
    number::<u64>(word).is_some()
}

fn is_percent(word: &str) -> bool {
    word.strip_suffix('%').is_some_and(|number| decimal(number).is_some() || number.ends_with("nan"))
}

/// log2 of a unit.
pub(super) fn unit_shift(word: &str) -> Option<u32> {
    match word {
        "B" | "b" | "bytes" | "Bytes" => Some(0),
        "K" | "k" | "KB" | "kB" | "KiB" => Some(10),
        "M" | "MB" | "MiB" => Some(20),
        "G" | "GB" | "GiB" => Some(30),
        _ => None,
    }
}

/// A number with the digits after its point: mantissa and how many there are. Some locales write a comma.
pub(super) fn decimal(word: &str) -> Option<(u64, u32)> {
    if word.matches(',').count() > 1 {
        return Some((number(word)?, 0));
    }
    let (whole, part) = word.split_once(['.', ',']).unwrap_or((word, ""));
    // awk prints six digits that count: of a small number more stand after the point.
    let digits = u32::try_from(part.len()).ok().filter(|digits| *digits <= 9)?;
    let part: u64 = if part.is_empty() { 0 } else { number(part)? };
    let scale = 10u64.pow(digits);
    Some((number::<u64>(whole)?.checked_mul(scale)?.checked_add(part)?, digits))
}

/// A number of units as bytes, within half of its last digit.
fn scaled((mantissa, digits): (u64, u32), shift: u32) -> Option<Size> {
    let (unit, scale) = (1u128 << shift, 10u128.pow(digits));
    let bytes = |twice: u128| u64::try_from(twice * unit / (2 * scale)).ok().filter(|bytes| *bytes < 1 << 60);
    let twice = 2 * u128::from(mantissa);
    if digits == 0 {
        return Some(Size::exact(bytes(twice)?));
    }
    Some(Size { low: bytes(twice.saturating_sub(1))?, high: bytes(twice + 1)? })
}

/// A number with its unit, as `0.19K` or `255KB`.
pub(super) fn size(word: &str) -> Option<Size> {
    let digits = word.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ','))?;
    scaled(decimal(&word[..digits])?, unit_shift(&word[digits..])?)
}

/// slabtop's size of a cache, in KiB whether it says so or not.
fn size_in_k(word: &str) -> Option<u64> {
    // It has no part of a KiB: a comma is one of thousands.
    match number::<u64>(word.strip_suffix('K').unwrap_or(word)) {
        Some(kib) => kib.checked_mul(1024).filter(|bytes| *bytes < 1 << 60),
        None => size(word).map(|size| size.low.midpoint(size.high)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_slabtop() {
        #[track_caller]
        fn check(line: &str, expected: Option<(&str, u64, bool)>) {
            let found = slabtop(&words(line));
            let found = found.map(|found| (found.row.name, found.row.total.unwrap(), found.is_cut));
            let expected = expected.map(|(name, total, is_cut)| (name.to_string(), total, is_cut));
            assert_eq!(found, expected, "{line}");
        }
        check(
            "2369325 2369308  99%    0.19K 112825       21    451300K dentry",
            Some(("dentry", 2369325, false)),
        );
        check("2,369,325 2,369,308 99% 0.19K 112,825 21 451,300K dentry", Some(("dentry", 2369325, false)));
        check("730 730 100% 0,05K 10 73 39 ip_fib_alias", Some(("ip_fib_alias", 730, false)));
        check("12: 730 730 100% 0.05K 10 73 39K x", Some(("x", 730, false)));
        check("51488  40972  81%    1.00K   1609       32", Some(("", 51488, true)));
        check("51488  40972  81%    1.00K", Some(("", 51488, true)));
        check("51488  40972  81%", None);
        check("10 20 99% of all", None);
        check("10 20 99% 0.05K of all", None);
    }

    #[test]
    fn lists_of_sizes() {
        #[track_caller]
        fn check(line: &str, expected: Option<(&str, u64)>) {
            let found = sized(&words(line)).map(|row| (row.name, row.bytes.unwrap()));
            assert_eq!(found, expected.map(|(name, bytes)| (name.to_string(), bytes)), "{line}");
        }
        check("8251776 7.86951 MB      inode_cache", Some(("inode_cache", 8251776)));
        check("63360 0.0604248 MB sighand_cache", Some(("sighand_cache", 63360)));
        check("8,251,776 7.86951 MB inode_cache", Some(("inode_cache", 8251776)));
        check("dentry 12K", Some(("dentry", 12288)));
        check("dentry: 12K", None);
        check("dentry 12", None);
        // Not the same size.
        check("8251776 9.1 MB inode_cache", None);
        check("the slabs have 47 GB", None);
    }
}
