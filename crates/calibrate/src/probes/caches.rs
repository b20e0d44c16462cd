//! Loads that wait for each other: a chain of addresses in random order, each read from the line before.

use super::{Place, Probe, Random, move_to, timed};
use crate::raw;
use crate::series::{Samples, Series};
use memmap2::{Advice, MmapMut};
use std::hint::black_box;
use std::io;

/// Words of a line.
const LINE_WORDS: u64 = 8;
/// The most memory of one chain.
const MEMORY_MAX: u64 = 1 << 30;

/// A chain of lines in random order.
struct Chain {
    map: MmapMut,
    at: u64,
    steps: u64,
    clock_ns: f64,
}

impl Chain {
    /// A chain through the words at `places`, in random order.
    fn new(bytes: u64, huge: bool, mut places: Vec<u64>, steps: u64, clock_ns: f64) -> io::Result<Chain> {
        let mut map = MmapMut::map_anon(bytes as usize)?;
        // A kernel without huge pages refuses: the chain then also misses the TLB.
        let _ = map.advise(if huge { Advice::HugePage } else { Advice::NoHugePage });
        Random(bytes).shuffle(&mut places);
        let words = raw::words(&mut map);
        for (one, next) in places.iter().zip(places.iter().cycle().skip(1)) {
            words[*one as usize] = *next;
        }
        Ok(Chain { map, at: places[0], steps, clock_ns })
    }

    /// A chain through all lines of `bytes`, in huge pages if the kernel gives them.
    fn of_lines(bytes: u64, steps: u64, clock_ns: f64) -> io::Result<Chain> {
        let places = (0..bytes / 8).step_by(LINE_WORDS as usize).collect();
        // A mapping that begins and ends anywhere has no huge page.
        let bytes = if bytes >= 1 << 19 { bytes.next_multiple_of(1 << 21) + (1 << 21) } else { bytes };
        Chain::new(bytes, true, places, steps, clock_ns)
    }

    /// A chain through one line in each of `pages` pages. The line's place in the page varies.
    fn of_pages(pages: u64, page_size: u64, steps: u64, clock_ns: f64) -> io::Result<Chain> {
        let lines = page_size / 8 / LINE_WORDS;
        let place = |page: u64| page * page_size / 8 + page % lines * LINE_WORDS;
        Chain::new(pages * page_size, false, (0..pages).map(place).collect(), steps, clock_ns)
    }

    /// The time of one load, in ns.
    fn load_ns(&mut self) -> f64 {
        let words: &[u64] = raw::words(&mut self.map);
        let (ns, at) = timed(self.clock_ns, || {
            let mut at = self.at;
            for _ in 0..self.steps {
                at = words[at as usize];
            }
            black_box(at)
        });
        self.at = at;
        ns / self.steps as f64
    }
}

/// Chains, each with its series.
struct Chains(Vec<(Series, Chain)>);

impl Probe for Chains {
    fn block(&mut self, into: &mut Samples) -> io::Result<()> {
        for (series, chain) in &mut self.0 {
            // The lines of the chain return to the caches first, if they fit.
            if !matches!(series, Series::LoadMemory(_)) {
                chain.load_ns();
            }
            into.push(*series, chain.load_ns());
        }
        Ok(())
    }
}

/// Chains of half the first level, half the second level, and of three times the second level or a
/// sixteenth of the last: the other CPUs' programs use that cache, too.
pub(super) fn make(place: &Place) -> io::Result<Box<dyn Probe>> {
    let [l1, l2, llc] = place.host.caches;
    let (l1, l2) = (l1.unwrap_or(32 << 10), l2.unwrap_or(1 << 20));
    let mut chains = vec![
        (Series::LoadL1, Chain::of_lines(l1 / 2, 20_000, place.clock_ns)?),
        (Series::LoadL2, Chain::of_lines(l2 / 2, 20_000, place.clock_ns)?),
    ];
    if let Some(llc) = llc {
        let bytes = (llc / 16).max(3 * l2);
        // As long as the chain, so that a block finds what the block before it read.
        let steps = (bytes / 64).clamp(20_000, 200_000);
        chains.push((Series::LoadLlc, Chain::of_lines(bytes, steps, place.clock_ns)?));
    }
    Ok(Box::new(Chains(chains)))
}

/// Chains in the memory of each node that has CPUs and memory: four times the last level.
pub(super) fn make_memory(place: &Place) -> io::Result<Box<dyn Probe>> {
    let host = place.host;
    let llc = host.caches[2].or(host.caches[1]).unwrap_or(32 << 20);
    let home = host.cpus.iter().find(|cpu| cpu.id == place.home).map_or(0, |cpu| cpu.node);
    let mut chains = Vec::new();
    for node in host.nodes.iter().filter(|node| node.bytes > 0) {
        let Some(cpu) = node.cpus.iter().find(|cpu| host.allowed.contains(cpu)) else { continue };
        let bytes = (4 * llc).clamp(64 << 20, MEMORY_MAX).min(node.bytes / 8).next_multiple_of(1 << 21);
        // The kernel takes memory of the node whose CPU writes it first.
        move_to(if node.id == home { place.home } else { *cpu })?;
        let chain = Chain::of_lines(bytes, 5_000, place.clock_ns);
        move_to(place.home)?;
        chains.push((Series::LoadMemory(host.distance(home, node.id)), chain?));
    }
    Ok(Box::new(Chains(chains)))
}

/// Chains of one line in each page, and of as many adjacent lines: the difference is the TLB's.
pub(super) fn make_tlb(place: &Place) -> io::Result<Box<dyn Probe>> {
    // Half of the second level, so that the lines themselves stay there.
    let most = place.host.caches[1].unwrap_or(1 << 20) / 2 / 64;
    let sizes = (5..=14).map(|power| 1u64 << power).flat_map(|pages| [pages, pages + pages / 2]);
    let mut chains = Vec::new();
    for pages in sizes.take_while(|pages| *pages <= most) {
        let (steps, clock_ns) = ((2 * pages).max(4_000), place.clock_ns);
        let sparse = Chain::of_pages(pages, place.host.page_size, steps, clock_ns)?;
        chains.push((Series::Pages(pages as u32), sparse));
        chains.push((Series::Lines(pages as u32), Chain::of_lines(pages * 64, steps, clock_ns)?));
    }
    Ok(Box::new(Chains(chains)))
}

/// A chain through every fourth line of some pages. The lines between are not part of it.
pub(super) struct FarLines {
    chain: Chain,
    /// A chain elsewhere, which brings the code of a load to the CPU.
    warm: Chain,
}

impl FarLines {
    const LINES: u64 = 128;
    /// Lines from one of the chain to the next.
    const APART: u64 = 4;

    pub(super) fn new(clock_ns: f64) -> io::Result<FarLines> {
        let apart = FarLines::APART * LINE_WORDS;
        let places = (0..FarLines::LINES).map(|line| line * apart).collect();
        let chain = Chain::new(FarLines::LINES * apart * 8, false, places, FarLines::LINES, clock_ns)?;
        Ok(FarLines { chain, warm: Chain::of_lines(4096, 256, clock_ns)? })
    }

    /// Writes every line of the chain, in order, on the calling CPU.
    pub(super) fn write(&mut self) {
        let words = raw::words(&mut self.chain.map);
        for line in 0..FarLines::LINES {
            let word = &mut words[(line * FarLines::APART * LINE_WORDS + 1) as usize];
            *word = black_box(word.wrapping_add(1));
        }
    }

    /// The time of one load of a line of the chain, in ns.
    pub(super) fn load_ns(&mut self) -> f64 {
        self.warm.load_ns();
        // The TLB gets the pages by lines that are not measured, two away from those of the chain.
        let words: &[u64] = raw::words(&mut self.chain.map);
        black_box(words.iter().skip(2 * LINE_WORDS as usize).step_by(512).fold(0, |sum, word| sum ^ word));
        self.chain.load_ns()
    }
}
