//! Memory of the kernel beside the caches of slabs, and how it grew: counters of /proc/meminfo.

use super::history::History;

/// A counter that no cache is part of, and what has that memory.
const COUNTERS: [(&str, &str); 5] = [
    ("PageTables", "page tables: they go with the processes that map memory"),
    ("SecPageTables", "page tables of virtual machines and IOMMUs"),
    ("KernelStack", "stacks, one for each thread"),
    ("Percpu", "memory with a copy for each CPU: cgroups, mounts and network devices take it"),
    ("VmallocUsed", "vmalloc: programs of BPF, modules, tables of sockets and files; stacks are part of it"),
];

/// A counter that grew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterGrowth {
    /// Its name in /proc/meminfo.
    pub name: &'static str,
    /// What has that memory.
    pub what: &'static str,
    /// Bytes in the first snapshot.
    pub before: u64,
    /// Bytes in the last.
    pub now: u64,
}

impl CounterGrowth {
    /// Bytes by which it grew.
    pub fn grown(&self) -> u64 {
        self.now.saturating_sub(self.before)
    }
}

/// The counters that grew between the first and the last snapshot, most first.
pub(super) fn grown(history: &History) -> Vec<CounterGrowth> {
    let of = |&(name, what): &(&'static str, &'static str)| {
        let (before, now) = history.counter(name)?;
        Some(CounterGrowth { name, what, before, now }).filter(|counter| counter.grown() > 0)
    };
    let mut found: Vec<CounterGrowth> = COUNTERS.iter().filter_map(of).collect();
    found.sort_by_key(|beside| std::cmp::Reverse(beside.grown()));
    found
}
