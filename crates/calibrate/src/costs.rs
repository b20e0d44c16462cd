//! The costs of a machine file, from the samples of a run. No clock, no files: samples in, costs out.

use crate::host::{Host, Relation};
use crate::series::{Samples, Series, Spread, Transport};
use std::collections::BTreeMap;

/// One number of the table `[costs]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Its name in a machine file.
    pub name: &'static str,
    /// The node distance, for a cost that depends on it.
    pub distance: Option<u32>,
    /// The number.
    pub value: Value,
    /// Where it is from.
    pub basis: Basis,
    /// The quartiles, and how they were got; empty for what was not measured.
    pub comment: String,
}

/// A number of a machine file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A time in ns.
    Ns(f64),
    /// A size in bytes.
    Bytes(u64),
    /// A count.
    Number(u64),
    /// A word.
    Kind(&'static str),
    /// A kernel's release: major and minor number.
    Release(u16, u16),
}

/// Where a number is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Basis {
    /// This run measured it.
    Measured,
    /// The kernel's files say it.
    Read,
    /// It was not measured, and why.
    Assumed(String),
}

impl Basis {
    /// The text of `source` in a machine file.
    pub fn source(&self, model: &str) -> String {
        match self {
            Basis::Measured => format!("measured by slablab calibrate on {model}"),
            Basis::Read => format!("read by slablab calibrate on {model}"),
            Basis::Assumed(why) => format!("assumed: {why}"),
        }
    }
}

/// Cycles of interrupts off and on again, with the flags saved and restored (J. D. Brouer, i7-4790K).
const INTERRUPTS_CYCLES: f64 = 37.0;
/// A kernel time that was not measured: the cost and its usual value on x86 servers of the 2020s, in ns.
const USUAL: &[(&str, f64)] = &[
    ("cycle", 0.33),
    ("l1", 1.3),
    ("l2", 4.5),
    ("llc", 15.0),
    ("transfer_llc", 25.0),
    ("local_exchange", 3.0),
    ("locked_exchange", 6.0),
    ("exchange16", 8.0),
    ("zero_kib", 20.0),
    ("copy_kib", 20.0),
    ("tlb_miss", 10.0),
    ("syscall", 70.0),
    ("switch_mm", 800.0),
    ("switch_thread", 500.0),
    ("wake_local", 200.0),
    ("wake_remote", 500.0),
    ("ipi", 500.0),
    ("idle_exit", 2_000.0),
    ("page_fault", 250.0),
    ("fork", 60_000.0),
    ("exit", 40_000.0),
];
/// A load from memory of the CPU's own node, and a line of another last-level cache there, if not measured.
const USUAL_MEMORY: f64 = 100.0;
const USUAL_TRANSFER: f64 = 120.0;
const USUAL_TLB_ENTRIES: u64 = 1536;

/// All costs, in the order of a machine file.
pub fn costs(host: &Host, samples: &Samples) -> Vec<Cost> {
    let mut list = List { samples, costs: Vec::new() };
    list.time("cycle", samples.spread(Series::Cycle), "");
    list.read("line_bytes", Value::Number(u64::from(host.line_bytes)));
    for (name, bytes, usual) in [
        ("l1_bytes", host.caches[0], 32 << 10),
        ("l2_bytes", host.caches[1], 1 << 20),
        ("llc_bytes", host.caches[2].or(host.caches[1]), 32 << 20),
    ] {
        match bytes {
            Some(bytes) => list.read(name, Value::Bytes(bytes)),
            None => list.assume(name, Value::Bytes(usual), "the kernel's files do not say"),
        }
    }
    list.time("l1", samples.spread(Series::LoadL1), "");
    list.time("l2", samples.spread(Series::LoadL2), "");
    let llc = samples.spread(Series::LoadLlc).or(samples.spread(Series::LoadL2));
    list.time("llc", llc, "");
    list.transfers(host);
    list.memory(host);
    // SLUB's fast path exchanges 16 bytes.
    list.time("local_exchange", samples.spread(Series::LocalExchange16), "16 bytes, not locked");
    list.time("locked_exchange", samples.spread(Series::LockedExchange), "8 bytes");
    list.time("exchange16", samples.spread(Series::LockedExchange16), "");
    let cycle = list.value("cycle");
    let cycles = format!("{INTERRUPTS_CYCLES} cycles; user space cannot turn interrupts off");
    list.assume("interrupts", Value::Ns(INTERRUPTS_CYCLES * cycle), &cycles);
    list.time("zero_kib", samples.spread(Series::ZeroMemory), "pages that no cache holds");
    list.time("copy_kib", samples.spread(Series::CopyCached), "from and to the second level");
    list.tlb();
    list.assume("handover", Value::Kind("queued"), "kernels since 4.2 queue the waiters of a lock");
    list.tasks();
    list.messages(host);
    list.costs
}

struct List<'a> {
    samples: &'a Samples,
    costs: Vec<Cost>,
}

impl List<'_> {
    fn push(
        &mut self,
        name: &'static str,
        distance: Option<u32>,
        value: Value,
        basis: Basis,
        comment: String,
    ) {
        self.costs.push(Cost { name, distance, value, basis, comment });
    }

    fn read(&mut self, name: &'static str, value: Value) {
        self.push(name, None, value, Basis::Read, String::new());
    }

    fn assume(&mut self, name: &'static str, value: Value, why: &str) {
        self.push(name, None, value, Basis::Assumed(why.into()), String::new());
    }

    /// A time that was measured, or the usual one.
    fn time(&mut self, name: &'static str, spread: Option<Spread>, how: &str) {
        match spread.filter(|spread| spread.median > 0.0) {
            Some(spread) if is_wide(&spread) => self.usual(name, &wide(&spread)),
            Some(spread) => {
                let comment = comment(&spread, how);
                self.push(name, None, Value::Ns(spread.median), Basis::Measured, comment);
            }
            None => self.usual(name, "not measured on this host"),
        }
    }

    fn usual(&mut self, name: &'static str, why: &str) {
        let usual = USUAL.iter().find(|(usual, _)| *usual == name).map_or(0.0, |(_, ns)| *ns);
        self.assume(name, Value::Ns(usual), why);
    }

    /// The value of a time that is in the list.
    fn value(&self, name: &str) -> f64 {
        let found = self.costs.iter().find(|cost| cost.name == name);
        found.map_or(0.0, |cost| if let Value::Ns(ns) = cost.value { ns } else { 0.0 })
    }

    fn transfers(&mut self, host: &Host) {
        let groups = by_relation(host, self.samples);
        let how = |pairs: usize| format!("{pairs} pairs of CPUs");
        match groups.get(&Relation::Core) {
            Some((spread, pairs)) => self.time("transfer_core", Some(*spread), &how(*pairs)),
            None => {
                let usual = Value::Ns(self.value("l2"));
                self.assume("transfer_core", usual, "as l2; no SMT siblings were measured");
            }
        }
        match groups.get(&Relation::Llc) {
            Some((spread, pairs)) => self.time("transfer_llc", Some(*spread), &how(*pairs)),
            None => self.usual("transfer_llc", "no two CPUs of a last-level cache were measured"),
        }
        let mut distances: Vec<u32> = host.nodes.iter().flat_map(|node| node.distances.clone()).collect();
        distances.push(10);
        distances.sort_unstable();
        distances.dedup();
        for distance in distances {
            match groups.get(&Relation::Distance(distance)) {
                Some((spread, pairs)) if !is_wide(spread) => {
                    let comment = comment(spread, &how(*pairs));
                    self.push("transfer", Some(distance), Value::Ns(spread.median), Basis::Measured, comment);
                }
                found => {
                    let why = match found {
                        Some((spread, _)) => wide(spread),
                        None => "no such pair of last-level caches was measured".to_string(),
                    };
                    let ns = USUAL_TRANSFER * f64::from(distance) / 10.0;
                    self.push("transfer", Some(distance), Value::Ns(ns), Basis::Assumed(why), String::new());
                }
            }
        }
    }

    fn memory(&mut self, host: &Host) {
        let mut distances: Vec<u32> = host.nodes.iter().flat_map(|node| node.distances.clone()).collect();
        distances.push(10);
        distances.sort_unstable();
        distances.dedup();
        let own = self.samples.spread(Series::LoadMemory(10)).filter(|own| !is_wide(own));
        let own = own.map_or(USUAL_MEMORY, |own| own.median);
        for distance in distances {
            match self.samples.spread(Series::LoadMemory(distance)) {
                Some(spread) if !is_wide(&spread) => {
                    let comment = comment(&spread, "");
                    self.push("memory", Some(distance), Value::Ns(spread.median), Basis::Measured, comment);
                }
                found => {
                    let why = match found {
                        Some(spread) => wide(&spread),
                        None => "memory at this distance was not measured".to_string(),
                    };
                    let ns = own * f64::from(distance) / 10.0;
                    self.push("memory", Some(distance), Value::Ns(ns), Basis::Assumed(why), String::new());
                }
            }
        }
    }

    fn tlb(&mut self) {
        let misses = tlb_misses(self.samples);
        match misses.last().filter(|(_, spread)| spread.median > 0.0) {
            Some((pages, most)) => {
                self.time("tlb_miss", Some(*most), &format!("{pages} pages"));
                let held = misses.iter().rev().find(|(_, spread)| spread.median < most.median / 2.0);
                let entries = held.map_or(misses[0].0, |(pages, _)| *pages);
                let comment = format!("most pages whose loads take less than half of a miss, up to {pages}");
                self.push("tlb_entries", None, Value::Number(u64::from(entries)), Basis::Measured, comment);
            }
            None => {
                self.usual("tlb_miss", "not measured on this host");
                self.assume("tlb_entries", Value::Number(USUAL_TLB_ENTRIES), "not measured on this host");
            }
        }
    }

    fn tasks(&mut self) {
        let samples = self.samples;
        let at = |series| samples.spread(series);
        let more = |series, than: Series| Some(less(at(series)?, at(than)?.median));
        self.time("syscall", at(Series::SystemCall), "");
        let wake_local = more(Series::WakeSame, Series::WriteAlone);
        let switch = |round_trip: Series| {
            let half = scaled(at(round_trip)?, 0.5);
            let rest = samples.median(Series::PipeByte)? + wake_local?.median;
            Some(less(half, rest))
        };
        let how = "half a round trip, less a byte in and out of a pipe and a wake-up";
        self.time("switch_mm", switch(Series::RoundTripProcess), how);
        self.time("switch_thread", switch(Series::RoundTripThread), how);
        self.time("wake_local", wake_local, "a write that wakes, less one that does not");
        let wake_remote = more(Series::WakeBusy, Series::WriteAlone);
        let how = "a write that wakes on a busy CPU, less one that does not wake: no interrupt is sent";
        self.time("wake_remote", wake_remote, how);
        let transfer = self.value("transfer_llc");
        let ipi = more(Series::BarrierOther, Series::BarrierAlone).map(|spread| less(spread, transfer));
        self.time("ipi", ipi, "a barrier on another CPU, there and back, less a line's transfer: at most");
        let (woken, busy) = (at(Series::WakeOther), at(Series::WakeBusy));
        if let (Some(woken), Some(busy)) = (woken, busy)
            && woken.low > busy.high
        {
            let how = "a write that wakes on an idle CPU, less one that wakes on a busy CPU";
            self.time("ipi_send", Some(less(woken, busy.median)), how);
        }
        match (at(Series::LatencyLong), at(Series::LatencyShort)) {
            (Some(long), Some(short)) if long.low > short.high => {
                let how = "a wake-up after 2 ms of sleep, less one after 0.1 ms";
                self.time("idle_exit", Some(less(long, short.median)), how);
            }
            _ => self.usual("idle_exit", "the quartiles of wake-ups after short and long sleeps overlap"),
        }
        self.time("page_fault", at(Series::FaultMapped), "");
        self.time("fork", at(Series::Fork), "");
        let switch_mm = self.value("switch_mm");
        let exit = at(Series::Exit).map(|spread| less(spread, switch_mm));
        self.time("exit", exit, "to the parent's return from its wait, less a switch");
    }

    /// Messages: a time that was not measured is left out, and the simulated kernel's assumed cycles hold.
    fn messages(&mut self, host: &Host) {
        let Some((major, minor)) = host.release() else { return };
        for (name, series) in MESSAGES {
            let spread = self.samples.spread(series).filter(|spread| spread.median > 0.0);
            if spread.is_some() {
                self.time(name, spread, "100 bytes, alone in one thread, with the system call");
            }
        }
        self.read("messages_release", Value::Release(major, minor));
    }
}

/// The times of messages, and the probes that measure them.
const MESSAGES: [(&str, Series); 8] = [
    ("socket_send", Series::Send(Transport::SocketPair)),
    ("socket_receive", Series::Receive(Transport::SocketPair)),
    ("pipe_write", Series::Send(Transport::Pipe)),
    ("pipe_read", Series::Receive(Transport::Pipe)),
    ("udp_send", Series::Send(Transport::Udp)),
    ("udp_receive", Series::Receive(Transport::Udp)),
    ("tcp_send", Series::Send(Transport::Tcp)),
    ("tcp_receive", Series::Receive(Transport::Tcp)),
];

/// The cost of TLB misses by number of pages: a load of a line in each page, less a load of as many adjacent
/// lines.
fn tlb_misses(samples: &Samples) -> Vec<(u32, Spread)> {
    let pages = samples.series().filter_map(|series| match series {
        Series::Pages(pages) => Some(pages),
        _ => None,
    });
    let miss = |pages| {
        let lines = samples.median(Series::Lines(pages))?;
        Some((pages, less(samples.spread(Series::Pages(pages))?, lines)))
    };
    pages.filter_map(miss).collect()
}

/// Transfers by how the CPUs are related: the quartiles of the pairs' medians, and how many pairs.
pub fn by_relation(host: &Host, samples: &Samples) -> BTreeMap<Relation, (Spread, usize)> {
    let mut groups: BTreeMap<Relation, Samples> = BTreeMap::new();
    for series in samples.series() {
        if let (Series::Transfer(from, to), Some(median)) = (series, samples.median(series)) {
            groups.entry(host.relation(from, to)).or_default().push(Series::Transfer(0, 0), median);
        }
    }
    let whole = |group: &Samples| {
        let spread = group.spread(Series::Transfer(0, 0)).expect("a group has a pair");
        (spread, spread.blocks)
    };
    groups.iter().map(|(relation, group)| (*relation, whole(group))).collect()
}

/// How many times the upper quartile may be the lower one: of a cost that differs more between blocks, the
/// median tells what else ran on the host.
const WIDE: f64 = 5.0;

/// Whether a cost cannot be told from its blocks.
fn is_wide(spread: &Spread) -> bool {
    spread.high > WIDE * spread.low
}

/// Why a measured cost is not used.
fn wide(spread: &Spread) -> String {
    let Spread { low, median, high, .. } = spread;
    let [low, median, high] = [low, median, high].map(|ns| digits(*ns));
    format!(
        "measured {median} ns, but quartiles of {low} and {high} ns tell no cost; run it again on an idle host"
    )
}

fn less(spread: Spread, ns: f64) -> Spread {
    Spread { low: spread.low - ns, median: spread.median - ns, high: spread.high - ns, ..spread }
}

fn scaled(spread: Spread, by: f64) -> Spread {
    Spread { low: spread.low * by, median: spread.median * by, high: spread.high * by, ..spread }
}

fn comment(spread: &Spread, how: &str) -> String {
    let Spread { low, high, blocks, .. } = spread;
    let quartiles = format!("quartiles {} to {}, n = {blocks}", digits(*low), digits(*high));
    if how.is_empty() { quartiles } else { format!("{quartiles}; {how}") }
}

/// A time in ns with three or more digits.
pub fn digits(ns: f64) -> String {
    match ns.abs() {
        0.0..10.0 => format!("{ns:.2}"),
        10.0..100.0 => format!("{ns:.1}"),
        _ => format!("{ns:.0}"),
    }
}

/// What contradicts what is known of every machine: the run was too noisy, or a cache is larger than the
/// kernel's files say.
pub fn doubts(host: &Host, samples: &Samples) -> Vec<String> {
    let costs = costs(host, samples);
    let time = |name: &str| {
        let cost = costs.iter().find(|cost| cost.name == name && cost.distance.is_none_or(|d| d == 10));
        cost.map(|cost| if let Value::Ns(ns) = cost.value { ns } else { 0.0 })
    };
    let pairs = [
        ("l1", "l2"),
        ("l2", "llc"),
        ("llc", "memory"),
        ("l2", "transfer_llc"),
        ("switch_thread", "switch_mm"),
        ("cycle", "syscall"),
    ];
    let mut doubts = far_cpus(host, samples);
    for (less, more) in pairs {
        if let (Some(small), Some(large)) = (time(less), time(more))
            && small > large
        {
            let (small, large) = (digits(small), digits(large));
            doubts.push(format!(
                "{less} ({small} ns) is above {more} ({large} ns): run it again on an idle host"
            ));
        }
    }
    doubts
}

/// CPUs that share a last-level cache by the kernel's files, but whose lines take more than twice as long as
/// those of the nearest pair: a hypervisor may say what is not so.
fn far_cpus(host: &Host, samples: &Samples) -> Vec<String> {
    let mut times = BTreeMap::new();
    for series in samples.series() {
        if let (Series::Transfer(from, to), Some(ns)) = (series, samples.median(series))
            && host.relation(from, to) == Relation::Llc
        {
            times.insert((from, to), ns);
        }
    }
    let near = times.values().copied().fold(f64::INFINITY, f64::min);
    let far: Vec<_> = times.iter().filter(|(_, ns)| **ns > 2.0 * near).map(|(pair, _)| *pair).collect();
    let Some((from, to)) = far.first() else { return Vec::new() };
    let (ns, all) = (digits(times[&(*from, *to)]), times.len());
    vec![format!(
        "{} of {all} pairs of CPUs that share a last-level cache by the kernel's files seem not to: CPU {from} \
         to CPU {to} takes {ns} ns, the nearest pair {} ns. transfer_llc is the median of all.",
        far.len(),
        digits(near)
    )]
}
