//! The order in which events took effect.
//!
//! A recorder notes a free before it happens and an allocation after it, some of whose work was done long
//! before: on a machine of several CPUs the order of the notes is not the order of the deeds. Two rules bring
//! it nearer:
//!
//! * A free takes effect at the next event of its CPU, or one median gap later, whichever is earlier. The
//!   gap is the median time, in the recording's first [`SAMPLE`] events, from a free to the next event of the
//!   same CPU.
//!   How long frees take is not recorded: it is a share of these gaps. So other draws of the order than the
//!   first have other delays. A draw has a share of the gaps, the shortest ones, and each free the length of
//!   one of these.
//! * Page allocations followed by an object's allocation on the same CPU are one deed, done when the first
//!   page was.
//!
//! Times in rows stay as recorded; only the order changes, by at most [`REACH_NS`]. On the recordings whose
//! kernel kept counters, this order makes the model's slabs and the real ones agree object by object
//! (docs/results/fidelity.md).

use crate::quantiles::Quantiles;
use slablab_readers::{Header, Item, Kind, Names, Source, Tally};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// How far an event may move.
pub(super) const REACH_NS: u64 = 200_000;
/// The longest median gap that is used.
pub(super) const GAP_NS_MAX: u64 = REACH_NS / 4;
/// CPU numbers from here on cannot be; the conversion refuses them, here they only must not take memory.
const CPU_LIMIT: u32 = u16::MAX as u32;
/// The number of events from which the median gap is taken.
const SAMPLE: usize = 50_000;
/// The smallest number of gaps for a useful median.
const GAPS_MIN: usize = 100;

/// A source in the order of effects.
pub(super) struct Effects<'a, S> {
    source: &'a mut S,
    /// Events read for the median, not yet placed.
    sample: VecDeque<Item>,
    sampled: bool,
    ended: bool,
    /// Which of the orders that the recording leaves possible.
    draw: u64,
    /// Delays of frees, each as likely as another; none if there are too few gaps.
    delays: Vec<u64>,
    random: Quantiles,
    /// Placed events by effect, then by arrival.
    placed: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// The placed items, at the heap's last number: an item is moved twice and not at every step of the heap.
    held: Vec<Item>,
    vacant: Vec<u32>,
    cpus: Vec<Cpu>,
    arrivals: u64,
    latest_ns: u64,
    /// When the next waiting free need wait no longer.
    due_ns: u64,
}

/// What one CPU is at.
#[derive(Clone, Debug, Default)]
struct Cpu {
    /// A free that waits for the CPU's next event.
    free: Option<(u64, Item)>,
    /// When the running series of page allocations began.
    pages_since: Option<u64>,
}

impl<'a, S: Source> Effects<'a, S> {
    /// `draw`: 0 for the median gap.
    pub(super) fn new(source: &'a mut S, draw: u64) -> Self {
        Effects {
            source,
            sample: VecDeque::new(),
            sampled: false,
            ended: false,
            draw,
            delays: Vec::new(),
            random: Quantiles::of("delays", draw),
            placed: BinaryHeap::new(),
            held: Vec::new(),
            vacant: Vec::new(),
            cpus: Vec::new(),
            arrivals: 0,
            latest_ns: 0,
            due_ns: u64::MAX,
        }
    }

    fn read(&mut self) -> Result<Option<Item>, S::Error> {
        if !self.sampled {
            self.sampled = true;
            while self.sample.len() < SAMPLE {
                match self.source.next()? {
                    Some(item) => self.sample.push_back(item),
                    None => break,
                }
            }
            self.delays = delays(gaps(&self.sample), self.draw, &mut self.random);
        }
        match self.sample.pop_front() {
            Some(item) => Ok(Some(item)),
            None => self.source.next(),
        }
    }

    /// Takes one item in; places what it decides.
    fn take(&mut self, item: Item) {
        self.arrivals += 1;
        let arrival = self.arrivals;
        let event = match &item {
            Item::Event(event) if event.cpu < CPU_LIMIT => event,
            _ => return self.place(self.latest_ns, arrival, item),
        };
        let now = event.time_ns;
        self.latest_ns = self.latest_ns.max(now);
        let index = event.cpu as usize;
        if self.cpus.len() <= index {
            self.cpus.resize(index + 1, Cpu::default());
        }
        if let Some((arrival, free)) = self.cpus[index].free.take() {
            self.place_free(arrival, free, now);
        }
        let since =
            self.cpus[index].pages_since.take().filter(|since| since.saturating_add(REACH_NS / 2) > now);
        match event.kind {
            Kind::Kfree(_) | Kind::CacheFree(_) if !self.delays.is_empty() => {
                self.due_ns = self.due_ns.min(now.saturating_add(REACH_NS / 2));
                self.cpus[index].free = Some((arrival, item));
            }
            Kind::PageAlloc(_) => {
                let since = since.unwrap_or(now);
                self.cpus[index].pages_since = Some(since);
                self.place(since, arrival, item);
            }
            Kind::Kmalloc(_) | Kind::CacheAlloc(_) => self.place(since.unwrap_or(now), arrival, item),
            _ => self.place(now, arrival, item),
        }
    }

    fn place_free(&mut self, arrival: u64, free: Item, next_ns: u64) {
        let Item::Event(event) = &free else { unreachable!("only events wait") };
        let delay = self.delays[self.random.below(self.delays.len() as u64) as usize];
        let effect = event.time_ns.saturating_add(delay).min(next_ns).max(event.time_ns);
        self.place(effect, arrival, free);
    }

    fn place(&mut self, effect_ns: u64, arrival: u64, item: Item) {
        let place = match self.vacant.pop() {
            Some(place) => {
                self.held[place as usize] = item;
                place
            }
            None => {
                self.held.push(item);
                self.held.len() as u32 - 1
            }
        };
        self.placed.push(Reverse((effect_ns, arrival, place)));
    }

    /// Frees whose CPU has been silent for long need wait no longer; nothing after them has gone out yet.
    fn release_frees(&mut self, at_ns: u64) {
        let due = |item: &Item| match item {
            Item::Event(event) => event.time_ns.saturating_add(REACH_NS / 2),
            Item::Lost(_) => 0,
        };
        self.due_ns = u64::MAX;
        for index in 0..self.cpus.len() {
            match self.cpus[index].free.take() {
                Some((arrival, free)) if due(&free) < at_ns => self.place_free(arrival, free, u64::MAX),
                Some((arrival, free)) => {
                    self.due_ns = self.due_ns.min(due(&free));
                    self.cpus[index].free = Some((arrival, free));
                }
                None => {}
            }
        }
    }
}

/// The delays of a draw out of the gaps behind frees.
fn delays(mut gaps: Vec<u64>, draw: u64, random: &mut Quantiles) -> Vec<u64> {
    if gaps.len() < GAPS_MIN {
        return Vec::new();
    }
    gaps.sort_unstable();
    let kept = match draw {
        0 => vec![gaps[gaps.len() / 2]],
        _ => {
            gaps.truncate(1 + (random.next() * gaps.len() as f64) as usize);
            gaps
        }
    };
    kept.into_iter().map(|gap| gap.min(GAP_NS_MAX)).collect()
}

/// Times from a free to the next event of its CPU.
fn gaps(sample: &VecDeque<Item>) -> Vec<u64> {
    let mut last: Vec<Option<u64>> = Vec::new();
    let mut gaps = Vec::new();
    for item in sample {
        let Item::Event(event) = item else { continue };
        if event.cpu >= CPU_LIMIT {
            continue;
        }
        let index = event.cpu as usize;
        if last.len() <= index {
            last.resize(index + 1, None);
        }
        if let Some(freed) = last[index].take() {
            gaps.push(event.time_ns.saturating_sub(freed));
        }
        if matches!(event.kind, Kind::Kfree(_) | Kind::CacheFree(_)) {
            last[index] = Some(event.time_ns);
        }
    }
    gaps
}

impl<S: Source> Source for Effects<'_, S> {
    type Error = S::Error;

    fn next(&mut self) -> Result<Option<Item>, S::Error> {
        loop {
            let ripe = self
                .placed
                .peek()
                .is_some_and(|Reverse((effect, ..))| effect.saturating_add(REACH_NS) < self.latest_ns);
            if ripe || self.ended {
                let Some(Reverse((_, _, place))) = self.placed.pop() else { return Ok(None) };
                self.vacant.push(place);
                return Ok(Some(self.held[place as usize]));
            }
            match self.read()? {
                Some(item) => {
                    self.take(item);
                    if self.due_ns < self.latest_ns {
                        self.release_frees(self.latest_ns);
                    }
                }
                None => {
                    self.ended = true;
                    self.release_frees(u64::MAX);
                }
            }
        }
    }

    fn state(&self) -> (&Header, &Names, &Tally) {
        self.source.state()
    }
}
