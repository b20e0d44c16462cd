//! Rows of sar: columns are found by their names in the heading, and counted from the end of a row, because a
//! time may be one word or two.

use super::super::row::number;

/// Pages scanned by `sar -B`, all rows together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Rows.
    pub rows: u64,
    /// Pages a second by kswapd and by those who asked, in hundredths, added up.
    pub pages: u64,
    columns: Vec<usize>,
}

/// Memory by `sar -r`. Numbers are kB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Rows, without that of averages.
    pub rows: u64,
    /// Slabs in the first row and in the last. Clocks are taken away before, as those of a log.
    pub slabs: Option<(u64, u64)>,
    /// All memory, as the per cent of used memory implies.
    pub total: Option<u64>,
    /// Columns of slabs, of used memory and of its per cent.
    columns: Option<[usize; 3]>,
}

/// Places of columns in a heading, from its end.
fn places(line: &str, is: impl Fn(&str) -> bool) -> Vec<usize> {
    let words = line.split_whitespace().rev().enumerate();
    words.filter(|(_, word)| is(word)).map(|(at, _)| at).collect()
}

/// A number with two digits after its point or comma, in hundredths.
fn hundredths(word: &str) -> Option<u64> {
    let (whole, part) = word.split_once(['.', ','])?;
    number::<u64>(whole)?.checked_mul(100)?.checked_add(number::<u64>(part).filter(|_| part.len() == 2)?)
}

impl Scanned {
    /// Takes the heading.
    pub(super) fn head(&mut self, line: &str) {
        self.columns = places(line, |word| matches!(word, "pgscank/s" | "pgscand/s"));
    }

    /// Takes a row; false if this is none.
    pub(super) fn row(&mut self, line: &str) -> bool {
        if self.columns.is_empty() {
            return false;
        }
        let words: Vec<&str> = line.split_whitespace().rev().collect();
        let values = self.columns.iter().map(|at| hundredths(words.get(*at)?)).collect::<Option<Vec<u64>>>();
        let Some(values) = values else { return false };
        self.rows += 1;
        self.pages = values.into_iter().fold(self.pages, u64::saturating_add);
        true
    }

    /// What it says of memory; `None` without a row.
    pub(super) fn answer(&self) -> Option<String> {
        let rows = self.rows;
        Some(match (rows, self.pages) {
            (0, _) => return None,
            (_, 0) => format!(
                "memory is not short: no reclaim at all in {rows} rows of sar -B (pgscank and pgscand are 0); it does not \
                 count slabs"
            ),
            (_, pages) => format!(
                "unknown: the kernel scanned {} pages a second on average in {rows} rows of sar -B to free memory; it does \
                 not tell what holds it",
                pages / 100 / rows
            ),
        })
    }
}

impl Memory {
    /// Takes the heading.
    pub(super) fn head(&mut self, line: &str) {
        let place = |name: &str| places(line, |word| word == name).first().copied();
        let columns = [place("kbslab"), place("kbmemused"), place("%memused")];
        self.columns = match columns {
            [Some(slabs), Some(used), Some(percent)] => Some([slabs, used, percent]),
            _ => None,
        };
    }

    /// Takes a row; false if this is none.
    pub(super) fn row(&mut self, line: &str) -> bool {
        let Some([slabs, used, percent]) = self.columns else { return false };
        let words: Vec<&str> = line.split_whitespace().rev().collect();
        let of = |at: usize| words.get(at).copied().and_then(number::<u64>);
        let (Some(slabs), Some(used)) = (of(slabs), of(used)) else { return false };
        let Some(percent) = words.get(percent).copied().and_then(hundredths) else { return false };
        // The last row is one of averages, whatever the language.
        if words.last().is_some_and(|first| first.ends_with(':')) {
            return true;
        }
        self.rows += 1;
        self.total = used.checked_mul(10_000).and_then(|used| used.checked_div(percent)).or(self.total);
        self.slabs = Some((self.slabs.map_or(slabs, |(first, _)| first), slabs));
        true
    }

    /// How much slabs have and how they grew; `None` without a row that counts them.
    pub(super) fn answer(&self) -> Option<String> {
        let (before, now) = self.slabs?;
        let gib = |kb: u64| kb as f64 / (1 << 20) as f64;
        let share = self.total.filter(|total| *total >= now).map_or(String::new(), |total| {
            format!(" of {:.1} GiB of memory ({} %)", gib(total), now.saturating_mul(100) / total.max(1))
        });
        let mib = |kb: u64| kb as f64 / 1024.0;
        let grew = match (now.checked_sub(before), self.rows) {
            (_, 1) => String::new(),
            (Some(more), rows) => format!(", {:.1} MiB more than in the first of {rows} rows", mib(more)),
            (None, rows) => format!(", {:.1} MiB less than in the first of {rows} rows", mib(before - now)),
        };
        Some(format!(
            "unknown which slabs can be freed: slabs have {:.1} GiB{share}{grew} (kbslab of sar -r); \
             /proc/meminfo tells what of them the kernel frees by itself",
            gib(now)
        ))
    }
}
