//! Who allocated the objects of one cache: /sys/kernel/debug/slab/CACHE/alloc_traces, and alloc_calls
//! before 5.16.
//!
//! ```text
//!   81085 foo_open+0x33/0x70 [foo] age=1/91221/166682 pid=1-2231 cpus=0-3
//! ```

use super::super::corruption;
use super::super::row::number;

/// Objects by the code that allocated them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traces {
    /// The cache, if a command in the text names it.
    pub cache: Option<String>,
    /// Objects of all rows.
    pub objects: u64,
    /// Rows.
    pub rows: u64,
    /// The row with most: objects and the function.
    pub most: Option<(u64, String)>,
}

impl Traces {
    /// Takes a line; false if it is none of the file.
    pub(super) fn line(&mut self, line: &str) -> bool {
        if let Some((path, _)) = line.split_once("/alloc_traces").or_else(|| line.split_once("/alloc_calls"))
        {
            self.cache = path.rsplit('/').next().filter(|name| !name.is_empty()).map(str::to_string);
            return false;
        }
        if self.rows > 0 && corruption::frame(line).is_some() {
            return true;
        }
        let Some((count, rest)) = line.trim_start().split_once(' ') else { return false };
        let Some(count) = number::<u64>(count).filter(|_| rest.contains(" age=") && rest.contains(" pid="))
        else {
            return false;
        };
        let Some(function) = corruption::frame(rest) else { return false };
        (self.rows, self.objects) = (self.rows + 1, self.objects.saturating_add(count));
        if self.most.as_ref().is_none_or(|(most, _)| count > *most) {
            self.most = Some((count, function));
        }
        true
    }

    /// Which code allocated most; `None` without a row.
    pub(super) fn answer(&self) -> Option<String> {
        let (most, function) = self.most.as_ref()?;
        let cache = self.cache.as_deref().unwrap_or("one cache");
        let percent = u128::from(*most) * 100 / u128::from(self.objects.max(1));
        Some(format!(
            "unknown whether they climb: {} live objects of {cache} by {} {} of code, most of them, {most} ({percent} %), \
             allocated in {function}",
            self.objects,
            self.rows,
            if self.rows == 1 { "line" } else { "lines" }
        ))
    }
}
