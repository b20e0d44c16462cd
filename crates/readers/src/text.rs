//! What the text readers share: errors with a line, numbers, CPU lists, breakdowns per node and CPU.

use std::str::FromStr;

/// A line that is not as the kernel writes it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: expected {expected}, found `{found}`")]
pub struct LineError {
    /// Line, from 1.
    pub line: usize,
    /// What should have been there.
    pub expected: &'static str,
    /// What was there, shortened.
    pub found: String,
}

impl LineError {
    pub(crate) fn new(line: usize, expected: &'static str, found: &str) -> Self {
        // Of a file that is no text, what follows the first zero byte says nothing.
        let found = found.split_inclusive('\0').next().unwrap_or_default();
        LineError { line, expected, found: found.chars().take(60).collect() }
    }
}

/// The text of a file, and a complaint about bytes that are no text at all.
pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, LineError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        LineError::new(line, "UTF-8 text", &format!("byte {:#04x}", bytes[error.valid_up_to()]))
    })
}

/// A number of ASCII digits only; `str::parse` would also take `+1`.
pub(crate) fn number<T: FromStr>(text: &str) -> Option<T> {
    text.starts_with(|c: char| c.is_ascii_digit()).then(|| text.parse().ok())?
}

/// The largest CPU or node number believed; the kernel's own limits are below 10,000.
pub const ID_LIMIT: u32 = 1 << 16;

/// CPUs or nodes of a list such as `0-3,8,10-11`, ascending as written; an empty text is an empty list.
/// `None` if it is not such a list or names a number of [`ID_LIMIT`] or more.
pub fn id_list(text: &str) -> Option<Vec<u32>> {
    let mut ids = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number::<u32>(first)?, number::<u32>(last)?);
        if first > last || last >= ID_LIMIT || ids.len() > ID_LIMIT as usize {
            return None;
        }
        ids.extend(first..=last);
    }
    Some(ids)
}

/// A count, and for per-CPU partial lists the slabs that hold it: `340(4)` is 340 objects in 4 slabs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// The number.
    pub value: u64,
    /// The number in parentheses.
    pub slabs: Option<u64>,
}

/// A count of /sys/kernel/slab with its parts: `15 N0=4 N1=11`, `340(4) C0=170(2) C1=170(2)`. Parts that are
/// zero are not written by the kernel, so their sum is the total but absent nodes and CPUs have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Breakdown {
    /// The whole.
    pub total: Count,
    /// Per node, ascending as written.
    pub nodes: Vec<(u32, Count)>,
    /// Per CPU, ascending as written.
    pub cpus: Vec<(u32, Count)>,
}

impl Breakdown {
    /// Reads one; `None` if it is not one.
    pub fn parse(text: &str) -> Option<Breakdown> {
        let mut words = text.split_whitespace();
        let total = Count::parse(words.next()?)?;
        let mut breakdown = Breakdown { total, ..Breakdown::default() };
        for word in words {
            let (id, count) = word.split_once('=')?;
            let count = Count::parse(count)?;
            let of = |text| number::<u32>(text).filter(|&id| id < ID_LIMIT);
            match (id.strip_prefix('N'), id.strip_prefix('C')) {
                (Some(node), _) => breakdown.nodes.push((of(node)?, count)),
                (_, Some(cpu)) => breakdown.cpus.push((of(cpu)?, count)),
                _ => return None,
            }
        }
        Some(breakdown)
    }

    /// The count of one node, 0 if not written.
    pub fn node(&self, node: u32) -> u64 {
        self.nodes.iter().find(|&&(id, _)| id == node).map_or(0, |(_, count)| count.value)
    }

    /// The sum over the nodes; where the kernel writes nodes, it is the total.
    pub fn nodes_sum(&self) -> u64 {
        self.nodes.iter().fold(0, |sum, (_, count)| sum.saturating_add(count.value))
    }

    /// The count of one CPU, 0 if not written.
    pub fn cpu(&self, cpu: u32) -> u64 {
        self.cpus.iter().find(|&&(id, _)| id == cpu).map_or(0, |(_, count)| count.value)
    }
}

impl Count {
    fn parse(text: &str) -> Option<Count> {
        match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
            Some((value, slabs)) => Some(Count { value: number(value)?, slabs: Some(number(slabs)?) }),
            None => Some(Count { value: number(text)?, slabs: None }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_no_text_ends_at_its_first_zero() {
        let check =
            |line, expected| assert_eq!(LineError::new(1, "a name", line).found, expected, "{line:?}");
        check("config.csv\0\0\0\0", "config.csv\0");
        check("\0\0", "\0");
        check("", "");
        check("dentry 1 2", "dentry 1 2");
    }

    #[test]
    fn id_lists() {
        #[track_caller]
        fn check(text: &str, expected: Option<&[u32]>) {
            assert_eq!(id_list(text).as_deref(), expected, "{text}");
        }
        check("0-3,8,10-11\n", Some(&[0, 1, 2, 3, 8, 10, 11]));
        check("", Some(&[]));
        check("3-1", None);
        check("0-4294967295", None);
        check("a", None);
    }

    #[test]
    fn breakdowns() {
        #[track_caller]
        fn check(text: &str, expected: Option<(u64, Option<u64>, u64, u64)>) {
            let found = Breakdown::parse(text);
            assert_eq!(
                found.map(|b| (b.total.value, b.total.slabs, b.node(1), b.cpu(1))),
                expected,
                "{text}"
            );
        }
        check("15 N0=4 N1=11", Some((15, None, 11, 0)));
        check("340(4) C0=170(2) C1=170(2)", Some((340, Some(4), 0, 170)));
        check("0", Some((0, None, 0, 0)));
        check("", None);
        check("15 N0", None);
        check("15 X0=1", None);
        check("340(4 C0=1", None);
    }
}
