//! Cache lines: which CPU touched a line last, and what the next touch costs.
//!
//! A line is one word: its state, the last two CPUs that touched it, the node of its memory, and when the
//! last one did. *When* is a count of the lines that CPU has touched since it started, so the difference to
//! the count now says how many lines came between: a line is in the first level, the second level or the
//! last level if fewer bytes came between than that cache holds, else in memory. The count takes a line that
//! is touched twice for two lines unless the touches are close together, so a cache seems a little smaller
//! than it is.
//!
//! | line | read by CPU `c` | written by CPU `c` |
//! |---|---|---|
//! | untouched | from memory; `c` has it alone | the same |
//! | `c` has it alone | a hit, by its age | the same |
//! | another CPU has it alone | from that CPU's cache, or from memory if it left it; then shared | as read; then `c` alone |
//! | shared, `c` is one of the last two | a hit, by its age | the other copy goes: a transfer; then `c` alone |
//! | shared, `c` is a third CPU | from the cache of the last CPU, or from memory | as read; then `c` alone |
//!
//! More than two sharers are not told apart: a line that many CPUs read in turn costs a transfer each time
//! the reader is not one of the last two.

use crate::hardware::{Hardware, Ps};
use crate::level::Access;
use crate::spec::{BadSpec, MachineSpec};
use std::cell::Cell;

/// Bytes of a line where the machine does not say.
const LINE_BYTES: u32 = 64;
/// Most CPUs whose numbers fit in a line's word.
const CPUS_MAX: usize = 1 << 12;
/// log2 of the lines between two values of a stamp.
const STAMP_SHIFT: u32 = 4;
const STAMP_MASK: u64 = (1 << 28) - 1;
/// The stamp's place in a line's word; the bits of the state and of the CPU that touched it last.
const STAMP_AT: u32 = 36;
const OWNER_MASK: u64 = (1 << 14) - 1;
/// Lines of one object that are fetched at the same time where the machine does not say (assumed).
const PARALLEL_LINES: u64 = 4;

/// Loads of the first level that overlap: a hit costs its latency divided by this (assumed).
const OVERLAPPED: Ps = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Untouched,
    Alone,
    Shared,
}

/// A line's word, unpacked. Bits: state 0-1, last 2-13, other 14-25, home 26-35, stamp 36-63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    state: State,
    /// The CPU that touched it last.
    last: u16,
    /// The CPU that touched it before, where the line is shared.
    other: u16,
    /// The node of its memory.
    home: u16,
    stamp: u64,
}

impl Line {
    fn unpack(word: u64) -> Line {
        let state = match word & 3 {
            0 => State::Untouched,
            1 => State::Alone,
            _ => State::Shared,
        };
        Line {
            state,
            last: (word >> 2 & 0xFFF) as u16,
            other: (word >> 14 & 0xFFF) as u16,
            home: (word >> 26 & 0x3FF) as u16,
            stamp: word >> STAMP_AT,
        }
    }

    fn pack(self) -> u64 {
        self.state as u64
            | (self.last as u64) << 2
            | (self.other as u64) << 14
            | (self.home as u64) << 26
            | self.stamp << STAMP_AT
    }
}

/// A new line's word.
pub(crate) fn untouched(home: u16) -> u64 {
    Line { state: State::Untouched, last: 0, other: 0, home, stamp: 0 }.pack()
}

/// Whether a line's word is that of a line whose memory is on node `home`.
#[inline]
pub(crate) fn is_of(word: u64, home: u16) -> bool {
    (word >> 26 & 0x3FF) as u16 == home
}

/// Whether CPU `cpu` touched the line last.
#[inline]
pub(crate) fn is_last(word: u64, cpu: u16) -> bool {
    (word >> 2 & 0xFFF) as u16 == cpu
}

/// A line's word after CPU `cpu` got it alone at a price that was charged elsewhere.
pub(crate) fn handed_over(word: u64, cpu: u16, caches: &Caches) -> u64 {
    let line = Line::unpack(word);
    Line { state: State::Alone, last: cpu, stamp: caches.stamp(cpu), ..line }.pack()
}

/// Where a touched line was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// In the CPU's own caches, or in its last-level cache and written by no other CPU.
    Hit,
    /// In another CPU's cache.
    Transfer,
    /// In memory.
    Memory,
}

/// The parts of a machine that a CPU is in.
#[derive(Clone, Copy, Debug)]
struct Place {
    core: u16,
    llc: u16,
    node: u16,
}

/// The caches of a machine's CPUs.
#[derive(Debug)]
pub(crate) struct Caches {
    places: Vec<Place>,
    /// The price of a transfer between two nodes' CPUs, and of a line of a node's memory, row by row.
    transfer: Vec<Ps>,
    memory: Vec<Ps>,
    nodes: usize,
    transfer_core: Ps,
    transfer_llc: Ps,
    line_bytes: u32,
    /// Lines of one object that are fetched at the same time.
    parallel: u64,
    /// Lines that fit in a cache, and the price of a hit.
    levels: [(u64, Ps); 3],
    touched: Vec<Cell<u64>>,
}

impl Caches {
    pub(crate) fn new(spec: &MachineSpec, hardware: &Hardware) -> Result<Caches, BadSpec> {
        let cpus = spec.cpu_node.len();
        if cpus > CPUS_MAX {
            return Err(BadSpec(format!("{cpus} CPUs: a machine with clocks has at most {CPUS_MAX}")));
        }
        for (what, given) in [("core", &hardware.core), ("llc", &hardware.llc), ("socket", &hardware.socket)]
        {
            if given.len() != cpus {
                return Err(BadSpec(format!("{} entries of `{what}` for {cpus} CPUs", given.len())));
            }
        }
        let costs = &hardware.costs;
        let nodes = spec.nodes.len();
        let priced = |prices: &[(u32, Ps)]| -> Vec<Ps> {
            let pair = |at: usize| price_at(prices, spec.distance(at / nodes, at % nodes));
            (0..nodes * nodes).map(pair).collect()
        };
        let line_bytes = if costs.line_bytes == 0 { LINE_BYTES } else { costs.line_bytes };
        if !line_bytes.is_power_of_two() || !(16..=4096).contains(&line_bytes) {
            return Err(BadSpec(format!("lines of {line_bytes} bytes: expected a power of two, 16 to 4096")));
        }
        let lines = |bytes: u64| bytes / line_bytes as u64;
        let place =
            |cpu: usize| Place { core: hardware.core[cpu], llc: hardware.llc[cpu], node: spec.cpu_node[cpu] };
        Ok(Caches {
            places: (0..cpus).map(place).collect(),
            transfer: priced(&costs.transfer),
            memory: priced(&costs.memory),
            nodes,
            line_bytes,
            parallel: match costs.misses_at_once {
                0 => PARALLEL_LINES,
                said => said.into(),
            },
            transfer_core: costs.transfer_core,
            transfer_llc: costs.transfer_llc,
            levels: [
                (lines(costs.l1_bytes), costs.l1 / OVERLAPPED),
                (lines(costs.l2_bytes), costs.l2),
                (lines(costs.llc_bytes), costs.llc),
            ],
            touched: vec![Cell::new(0); cpus],
        })
    }

    /// Bytes of a line.
    #[inline]
    pub(crate) fn line_bytes(&self) -> u32 {
        self.line_bytes
    }

    /// The price of a line that is fetched together with others of its object, whose price alone is `price`.
    #[inline]
    pub(crate) fn next_of(&self, price: Ps) -> Ps {
        price / self.parallel
    }

    /// Bytes of the tables.
    pub(crate) fn bytes(&self) -> usize {
        self.touched.len() * (size_of::<u64>() + 3 * size_of::<u16>())
            + (self.transfer.len() + self.memory.len()) * size_of::<Ps>()
    }

    #[inline]
    fn stamp(&self, cpu: u16) -> u64 {
        self.touched[cpu as usize].get() >> STAMP_SHIFT & STAMP_MASK
    }

    /// Lines that CPU `cpu` has touched since `stamp`, to a multiple of 16.
    #[inline]
    fn age(&self, cpu: u16, stamp: u64) -> u64 {
        (self.stamp(cpu).wrapping_sub(stamp) & STAMP_MASK) << STAMP_SHIFT
    }

    /// The price of a line that `from` has and `to` wants.
    #[inline]
    pub(crate) fn between(&self, from: u16, to: u16) -> Ps {
        if from == to {
            return self.levels[0].1;
        }
        let (from, to) = (&self.places[from as usize], &self.places[to as usize]);
        if from.core == to.core {
            return self.transfer_core;
        }
        if from.llc == to.llc {
            return self.transfer_llc;
        }
        self.transfer[from.node as usize * self.nodes + to.node as usize]
    }

    #[inline]
    fn memory_price(&self, cpu: u16, home: u16) -> Ps {
        self.memory[self.places[cpu as usize].node as usize * self.nodes + home as usize]
    }

    #[inline]
    fn hit(&self, cpu: u16, age: u64, home: u16) -> (Ps, Source) {
        match self.levels.iter().find(|(lines, _)| age < *lines) {
            Some((_, price)) => (*price, Source::Hit),
            None => (self.memory_price(cpu, home), Source::Memory),
        }
    }

    /// The price of a line whose last user is another CPU.
    #[inline]
    fn fetch(&self, cpu: u16, line: Line) -> (Ps, Source) {
        let age = self.age(line.last, line.stamp);
        let memory = || (self.memory_price(cpu, line.home), Source::Memory);
        if age >= self.levels[2].0 {
            return memory();
        }
        let left_core = age >= self.levels[1].0;
        if left_core && self.places[cpu as usize].llc == self.places[line.last as usize].llc {
            return (self.levels[2].1, Source::Hit);
        }
        let transfer = (self.between(line.last, cpu), Source::Transfer);
        // A clean line comes from where it is nearer.
        if line.state == State::Shared { transfer.min(memory()) } else { transfer }
    }

    /// CPU `cpu` touches `lines` lines that move together and whose word is `word`: the word afterwards, the
    /// price, and where the lines were.
    #[inline(always)]
    pub(crate) fn touch(&self, word: u64, cpu: u16, lines: u64, access: Access) -> (u64, Ps, Source) {
        // Nearly all touches are of lines that the CPU has alone, in its first level: no field but the stamp
        // changes.
        let touched = &self.touched[cpu as usize];
        let stamp = touched.get() >> STAMP_SHIFT & STAMP_MASK;
        let age = (stamp.wrapping_sub(word >> STAMP_AT) & STAMP_MASK) << STAMP_SHIFT;
        if word & OWNER_MASK != State::Alone as u64 | (cpu as u64) << 2 || age >= self.levels[0].0 {
            return self.touch_far(word, cpu, lines, access);
        }
        let mut after = word;
        if age > 0 {
            touched.set(touched.get() + lines);
            after = word & ((1 << STAMP_AT) - 1) | (self.stamp(cpu) << STAMP_AT);
        }
        (after, lines * self.levels[0].1, Source::Hit)
    }

    /// A touch of any line.
    #[inline(never)]
    fn touch_far(&self, word: u64, cpu: u16, lines: u64, access: Access) -> (u64, Ps, Source) {
        let line = Line::unpack(word);
        let writes = access != Access::Read;
        let mine = line.last == cpu;
        let (first, source) = match line.state {
            State::Untouched => (self.memory_price(cpu, line.home), Source::Memory),
            State::Alone if mine => self.hit(cpu, self.age(cpu, line.stamp), line.home),
            State::Shared if mine || line.other == cpu => {
                let third = if mine { line.other } else { line.last };
                if writes && third != cpu {
                    (self.between(third, cpu), Source::Transfer)
                } else {
                    self.hit(cpu, if mine { self.age(cpu, line.stamp) } else { 0 }, line.home)
                }
            }
            State::Alone | State::Shared => self.fetch(cpu, line),
        };
        let rest = match source {
            Source::Hit => (lines - 1) * first,
            _ => (lines - 1) * self.next_of(first),
        };
        let close = source == Source::Hit && mine && self.stamp(cpu) == line.stamp;
        if !close {
            let touched = &self.touched[cpu as usize];
            touched.set(touched.get() + lines);
        }
        let (state, other) = match line.state {
            _ if writes => (State::Alone, line.other),
            State::Untouched => (State::Alone, cpu),
            State::Alone if mine => (State::Alone, line.other),
            State::Shared if mine => (State::Shared, line.other),
            State::Alone | State::Shared => (State::Shared, line.last),
        };
        let after = Line { state, last: cpu, other, home: line.home, stamp: self.stamp(cpu) };
        (after.pack(), first + rest, source)
    }
}

/// The price at a distance: that of the greatest listed distance that is not greater, or of the first.
fn price_at(prices: &[(u32, Ps)], distance: u32) -> Ps {
    let after = prices.partition_point(|(listed, _)| *listed <= distance);
    prices.get(after.saturating_sub(1)).map_or(0, |(_, price)| *price)
}

#[cfg(test)]
mod tests;
