//! Who has the memory of a report of the OOM killer or of a failed allocation: its own counters, ranked.

use crate::words::{listed, part_of, percent, size};
use slablab_readers::pasted::{MemoryReport, ZoneCounts};
use std::cmp::Reverse;

/// The users of memory in a report.
#[derive(Clone, Debug)]
pub(crate) struct Users {
    /// Unreclaimable slabs in bytes.
    pub(crate) unreclaimable: u64,
    /// All slabs.
    pub(crate) slabs: u64,
    /// All memory, and how that is known.
    pub(crate) base: u64,
    /// Where the base is from.
    pub(crate) from: Base,
    /// Users and their bytes, most first; free memory is none.
    pub(crate) ranked: Vec<(&'static str, u64)>,
    /// Free memory.
    pub(crate) free: Option<u64>,
    /// Low memory of a 32-bit machine, where the kernel's own pages must be: managed bytes.
    pub(crate) low: Option<u64>,
    /// Present memory, where the base is what the kernel manages of it.
    present: Option<u64>,
}

/// What the shares are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// `pages RAM`.
    Ram,
    /// The sum of `managed:` of all zones.
    Managed,
    /// The sum of the counters: the text has no more.
    Counted,
}

/// The name of what no counter has.
const IN_NO_COUNTER: &str = "pages in no counter (drivers, vmalloc, huge pages)";
const SLABS: &str = "slabs";

impl Users {
    /// The users by the counters of a report; `None` if it has none of slabs.
    pub(crate) fn of(report: &MemoryReport, page_size: u64) -> Option<Users> {
        let bytes = |pages: u64| pages.saturating_mul(page_size);
        let pages = |keys: &[&str]| {
            let known = keys.iter().filter_map(|key| report.pages.get(*key));
            bytes(known.fold(0, |sum, pages| sum.saturating_add(*pages)))
        };
        let kb = |key: &str| report.zones_kb(key).map(|kb| kb.saturating_mul(1024));
        let unreclaimable = bytes(report.slab_unreclaimable?);
        let slabs = unreclaimable.saturating_add(bytes(report.slab_reclaimable.unwrap_or(0)));
        let free = report.pages.get("free").map(|free| bytes(*free)).or_else(|| kb("free"));
        let mut ranked = vec![
            ("processes", pages(&["active_anon", "inactive_anon", "isolated_anon"])),
            ("files", pages(&["active_file", "inactive_file", "isolated_file"])),
            ("unevictable pages", pages(&["unevictable"])),
            (SLABS, slabs),
            ("page tables", pages(&["pagetables", "sec_pagetables"])),
            ("kernel stacks", kb("kernel_stack").unwrap_or(0)),
        ];
        let counted = ranked.iter().fold(0u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
        let with_free = counted.saturating_add(free.unwrap_or(0));
        let managed = kb("managed").filter(|_| report.zones.iter().all(|zone| !zone.kb.is_empty()));
        let (base, from) = match (report.ram.map(bytes), managed) {
            (Some(ram), _) => (ram, Base::Ram),
            (None, Some(managed)) => (managed, Base::Managed),
            (None, None) => (with_free, Base::Counted),
        };
        // A part over the whole is a reading error.
        if base < slabs || base == 0 {
            return None;
        }
        // Only a report that counts processes, files and free pages tells what is in no counter.
        let is_whole = free.is_some() && report.pages.contains_key("active_anon") && from != Base::Counted;
        if is_whole {
            let usable = base.saturating_sub(report.reserved.map_or(0, bytes));
            ranked.push((IN_NO_COUNTER, usable.saturating_sub(with_free)));
        }
        ranked.retain(|(_, bytes)| *bytes > 0);
        ranked.sort_by_key(|(_, bytes)| Reverse(*bytes));
        let present = kb("present").filter(|_| from == Base::Managed);
        let is_high = |zone: &&ZoneCounts| zone.name.ends_with("HighMem");
        let has_high = report.zones.iter().any(|zone| is_high(&zone) && zone.kb.get("managed") > Some(&0));
        let low = report.zones.iter().filter(|zone| !is_high(zone)).filter_map(|zone| zone.kb.get("managed"));
        let low = low.fold(0u64, |sum, kb| sum.saturating_add(kb.saturating_mul(1024)));
        let low = Some(low).filter(|low| has_high && *low >= slabs);
        Some(Users { unreclaimable, slabs, base, from, ranked, free, low, present })
    }

    /// The report that tells most about slabs: the last one in which they are the largest user, else the
    /// last one that has counters, else the last one.
    pub(crate) fn telling(reports: &[MemoryReport], page_size: u64) -> Option<&MemoryReport> {
        const MUCH_PERCENT: u64 = 10;
        let of_slabs = |report: &&MemoryReport| {
            let users = Users::of(report, page_size).filter(|_| !report.of_cgroup);
            users.is_some_and(|users| {
                (users.slabs_are_first() || users.low.is_some())
                    && users.slabs >= users.low.unwrap_or(users.base) / 100 * MUCH_PERCENT
            })
        };
        let counts = |report: &&MemoryReport| {
            let of_limit = report.cgroup.as_ref().is_some_and(|cgroup| !cgroup.bytes.is_empty());
            report.slab_unreclaimable.is_some() || of_limit
        };
        let telling = || reports.iter().rev().filter(|report| report.tells());
        telling().find(of_slabs).or_else(|| telling().find(counts)).or_else(|| telling().next())
    }

    /// Whether slabs have more than any other user.
    pub(crate) fn slabs_are_first(&self) -> bool {
        self.ranked.first().is_some_and(|(name, _)| *name == SLABS)
    }

    /// The share of unreclaimable slabs in words: `1.5 of 1.9 GiB of memory (80 %)`.
    pub(crate) fn share(&self) -> String {
        let (part, percent) =
            (part_of(self.unreclaimable, self.base), percent(self.unreclaimable, self.base));
        match (self.from, self.present) {
            (Base::Ram, _) => format!("{part} of memory ({percent})"),
            (Base::Managed, Some(present)) => format!(
                "{part} that the kernel manages ({percent}; {} of the {} that are there)",
                crate::words::percent(self.unreclaimable, present),
                size(present)
            ),
            (Base::Managed, None) => format!("{part} that the kernel manages ({percent})"),
            (Base::Counted, _) => format!("{part} that the text counts ({percent})"),
        }
    }

    /// The users, most first, in words.
    pub(crate) fn words(&self) -> String {
        const SHOWN: usize = 5;
        let words: Vec<String> =
            self.ranked.iter().take(SHOWN).map(|(name, bytes)| format!("{name} {}", size(*bytes))).collect();
        let free = self.free.map_or(String::new(), |free| format!("; {} are free", size(free)));
        format!("{}{free}", listed(&words))
    }

    /// The first user that is not slabs, and its bytes.
    pub(crate) fn first_other(&self) -> Option<(&'static str, u64)> {
        self.ranked.iter().copied().find(|(name, _)| *name != SLABS)
    }
}

/// Free blocks of a size or more, and free bytes, by the lists of free blocks; `None` if the text has none.
pub(crate) fn blocks(report: &MemoryReport, bytes: u64) -> Option<(u64, u64)> {
    let lists: Vec<&(u64, u64)> = report.zones.iter().flat_map(|zone| &zone.blocks).collect();
    let sum = |(blocks, free): (u64, u64), &&(kb, count): &&(u64, u64)| {
        let size = kb.saturating_mul(1024);
        let fits = if size >= bytes { count } else { 0 };
        (blocks.saturating_add(fits), free.saturating_add(size.saturating_mul(count)))
    };
    (!lists.is_empty()).then(|| lists.iter().fold((0, 0), sum))
}
