//! /sys/kernel/debug/page_owner, and its rows as page_owner_sort puts them together.

use super::super::corruption;
use super::super::row::number;
use crate::pasted::report;
use std::collections::BTreeMap;

/// Blocks of pages by page_owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageOwner {
    /// Blocks of pages, by order.
    pub orders: BTreeMap<u32, u64>,
    /// Of these, blocks of slabs, by order.
    pub slabs: BTreeMap<u32, u64>,
    /// Blocks charged to a memory cgroup.
    pub cgroups: BTreeMap<String, u64>,
    /// Blocks of slabs by the code that asked for the object.
    pub callers: BTreeMap<String, u64>,
    /// The order of the last block.
    last: u32,
    /// How many blocks the row stands for.
    times: u64,
    /// The last block is counted as one of slabs.
    is_slab: bool,
    /// The caller of the last block was found.
    has_caller: bool,
}

/// Names that are kept.
const KEPT: usize = 1 << 12;

impl PageOwner {
    /// Takes a line; false if it is none of the file.
    pub(super) fn line(&mut self, line: &str) -> bool {
        // `20144 times, 161152 pages:` stands before a block of page_owner_sort.
        if let Some((times, rest)) = line.split_once(" times, ")
            && let Some(times) = number(times).filter(|_| rest.contains("pages"))
        {
            self.times = times;
            return true;
        }
        if let Some((_, rest)) = line.split_once("Page allocated via order ") {
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or("");
            (self.last, self.times) = (number(digits).unwrap_or(0), self.times.max(1));
            (self.is_slab, self.has_caller) = (false, false);
            *self.orders.entry(self.last).or_default() += self.times;
            return false;
        }
        if self.orders.is_empty() {
            return false;
        }
        if line.starts_with("Slab cache page") {
            self.slab();
            return true;
        }
        if let Some((_, name)) = line.split_once("to memcg ").filter(|_| line.starts_with("Charged")) {
            if self.cgroups.len() < KEPT {
                *self.cgroups.entry(name.trim().into()).or_default() += self.times.max(1);
            }
            return true;
        }
        if let Some(frame) = corruption::frame(line) {
            // Since 6.10 the flags of a page do not say that it is a slab's: the stack does.
            if report::is_of_new_slab(&frame) {
                self.slab();
            } else if self.is_slab && !self.has_caller && !corruption::is_of_allocator(&frame) {
                self.has_caller = true;
                if self.callers.len() < KEPT {
                    *self.callers.entry(frame).or_default() += self.times.max(1);
                }
            }
            return true;
        }
        if line.starts_with("PFN ") {
            return true;
        }
        self.times = 0;
        false
    }

    /// Counts the last block as one of slabs, once.
    fn slab(&mut self) {
        if !std::mem::replace(&mut self.is_slab, true) {
            *self.slabs.entry(self.last).or_default() += self.times.max(1);
        }
    }

    /// What it says of slabs; `None` without a block.
    pub(super) fn answer(&self) -> Option<String> {
        const SHOWN: usize = 3;
        if self.orders.is_empty() {
            return None;
        }
        let blocks: u64 = self.orders.values().sum();
        let plural = if blocks == 1 { "block" } else { "blocks" };
        let slabs: Vec<String> = self
            .slabs
            .iter()
            .map(|(order, count)| format!("{count} slab {} of order {order}", word(*count)))
            .collect();
        let slabs = if slabs.is_empty() { "no slab page".into() } else { slabs.join(", ") };
        let most = |counts: &BTreeMap<String, u64>, say: &dyn Fn(u64, &str) -> String| {
            let mut counts: Vec<(&String, &u64)> = counts.iter().collect();
            counts.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), *name));
            counts.iter().take(SHOWN).map(|(name, count)| say(**count, name)).collect::<Vec<String>>()
        };
        let callers = match &most(&self.callers, &|count, name| format!("{name} ({count})"))[..] {
            [] => String::new(),
            names => format!(", allocated for {}", names.join(", ")),
        };
        let charged = match &most(&self.cgroups, &|count, name| {
            format!("{count} {} charged to {name}", word(count))
        })[..]
        {
            [] => String::new(),
            names => format!("; {}", names.join(", ")),
        };
        Some(format!("{blocks} {plural} of pages by page_owner: {slabs}{callers}{charged}"))
    }
}

fn word(count: u64) -> &'static str {
    if count == 1 { "page" } else { "pages" }
}
