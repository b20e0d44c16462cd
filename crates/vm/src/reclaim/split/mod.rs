//! The policy of 2.6.29: in each zone an active and an inactive list for anonymous pages and for files.
//!
//! ```text
//! anonymous, tmpfs ── head of active ──┐ tail: shrink_active, accessed or not
//! file, from swap ─── head of inactive ┘ tail: shrink_inactive ── for a block: its neighbours too (lumpy)
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `policy` | the choices |
//! | `node` | the two reclaimers: which zones they scan, and when they stop |
//! | `scan` | the rounds over the lists of a zone |
//! | `balance` | how many pages of each list a round scans |
//! | `isolate` | which pages are taken, with their neighbours |
//!
//! Rules: docs/theory/vm.md 6.
//!
//! Not modelled: the batches of 14 pages through which pages enter and are activated, and the swap
//! token.

mod balance;
mod isolate;
mod node;
mod policy;
mod scan;

pub use policy::{ActiveFiles, Balance, Choices, Lumpy, Start};

use crate::counters::Counter;
use crate::frames::Flags;
use crate::host::{Ask, Mark};
use crate::ids::Frame;
use crate::lists::ListId;
use crate::replacement::{Enter, Freed, Pass, Rule, Sizes};
use crate::shrinker::Owed;
use crate::state::State;
use crate::vm::{Host, Replacement, Vm};
use std::cell::RefCell;

/// Lists of a zone: inactive and active of anonymous pages, of files; pages that cannot be evicted.
const LISTS: u16 = 5;
const INACTIVE: [usize; 2] = [0, 2];
const ACTIVE: [usize; 2] = [1, 3];
const UNEVICTABLE: usize = 4;
/// The two types of pages, as indexes.
const ANON: usize = 0;
const FILE: usize = 1;
/// Pages of one bite (`SWAP_CLUSTER_MAX`).
const BITE: u64 = 32;

/// The policy.
pub struct Split {
    choices: Choices,
    name: String,
    zones: RefCell<Vec<Past>>,
    owed: Owed,
}

/// What a zone remembers.
#[derive(Debug, Default)]
struct Past {
    /// Pages of each type that were scanned lately; of these, in use.
    scanned: [u64; 2],
    rotated: [u64; 2],
    /// Pages due on each list that made no bite yet.
    due: [u64; 4],
    /// Pages scanned since one of the zone was freed.
    in_vain: u64,
    /// It was scanned six times over without one.
    unreclaimable: bool,
}

impl Split {
    /// The policy of these choices, under this name.
    pub fn new(choices: Choices, name: String) -> Split {
        Split { choices, name, zones: RefCell::default(), owed: Owed::default() }
    }

    /// Uses what a zone remembers. `f` calls no host.
    fn past<T>(&self, zone: usize, f: impl FnOnce(&mut Past) -> T) -> T {
        f(&mut self.zones.borrow_mut()[zone])
    }

    /// Lists a page at the head or the tail of its list.
    fn put(&self, state: &mut State, frame: Frame, at_tail: bool) {
        let list = list_of(state.frames.flags(frame));
        let id = id(state.zone_of(frame), list);
        if at_tail { state.push_tail(id, frame) } else { state.push_head(id, frame) }
    }

    /// A page was put on a list or activated: it counts as scanned, and as in use if it is active.
    fn note(&self, state: &State, frame: Frame, active: bool) {
        let kind = kind_of(state, frame);
        self.past(state.zone_of(frame), |past| {
            past.scanned[kind] += 1;
            past.rotated[kind] += u64::from(active);
        });
    }

    /// A page of a zone was freed: reclaim there is not in vain.
    fn freed(&self, zone: usize) {
        self.past(zone, |past| (past.in_vain, past.unreclaimable) = (0, false));
    }
}

/// A list of a zone.
fn id(zone: usize, list: usize) -> ListId {
    ListId(zone as u16 * LISTS + list as u16)
}

/// Pages of a zone's list.
fn size(state: &State, zone: usize, list: usize) -> u64 {
    state.lists.len(id(zone, list)).into()
}

/// Pages of all lists of a zone that reclaim scans (`zone_lru_pages`).
fn lru_pages(state: &State, zone: usize) -> u64 {
    (0..UNEVICTABLE).map(|list| size(state, zone, list)).sum()
}

fn list_of(flags: Flags) -> usize {
    if flags.any(Flags::UNEVICTABLE) {
        return UNEVICTABLE;
    }
    let kind = if flags.any(Flags::SWAPBACKED) { ANON } else { FILE };
    if flags.any(Flags::ACTIVE) { ACTIVE[kind] } else { INACTIVE[kind] }
}

fn kind_of(state: &State, frame: Frame) -> usize {
    if state.frames.has(frame, Flags::SWAPBACKED) { ANON } else { FILE }
}

impl Replacement for Split {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn lists(&self, zones: u16, _nodes: u16) -> u16 {
        self.zones.borrow_mut().resize_with(zones.into(), Past::default);
        zones * LISTS
    }

    /// docs/theory/vm.md 6.1.
    fn enter(&self, state: &mut State, frame: Frame, how: Enter, _shadow: Option<u32>) {
        let start = match how {
            Enter::Anon => self.choices.start,
            Enter::Tmpfs => self.choices.tmpfs_start,
            _ => Start::Inactive,
        };
        if start == Start::Active {
            state.frames.set(frame, Flags::ACTIVE);
        }
        if how == Enter::SwapIn {
            state.frames.set(frame, Flags::REFERENCED);
        }
        self.note(state, frame, start == Start::Active);
        self.put(state, frame, false);
    }

    fn access(&self, state: &mut State, frame: Frame) {
        let flags = state.frames.flags(frame);
        let is_inactive = flags.any(Flags::LISTED) && !flags.any(Flags::ACTIVE | Flags::UNEVICTABLE);
        if is_inactive && flags.any(Flags::REFERENCED) {
            state.unlist(frame);
            state.frames.set(frame, Flags::ACTIVE);
            state.frames.clear(frame, Flags::REFERENCED);
            self.note(state, frame, true);
            self.put(state, frame, false);
            state.count(Counter::PgActivate);
        } else {
            state.frames.set(frame, Flags::REFERENCED);
        }
    }

    fn leave(&self, state: &mut State, frame: Frame) {
        if state.frames.has(frame, Flags::LISTED) {
            state.unlist(frame);
        }
        self.freed(state.zone_of(frame));
    }

    fn evict(&self, state: &mut State, frame: Frame) -> Option<u32> {
        self.freed(state.zone_of(frame));
        None
    }

    fn written(&self, state: &mut State, frame: Frame) {
        let flags = state.frames.flags(frame);
        let stays = Flags::LOCKED | Flags::DIRTY | Flags::ACTIVE | Flags::UNEVICTABLE;
        if flags.any(Flags::LISTED) && !flags.any(stays) {
            state.unlist(frame);
            self.put(state, frame, true);
            state.count(Counter::PgRotated);
        }
    }

    /// docs/theory/vm.md 6.10.
    fn keeps_slot(&self, state: &State, write: bool) -> bool {
        let used = u64::from(state.swap.used()) * 100;
        !write && used <= u64::from(state.swap.slots()) * u64::from(self.choices.swap_full)
    }

    fn direct(&self, vm: &Vm, host: &dyn Host, ask: &Ask) -> Freed {
        self.reclaim_directly(vm, host, ask)
    }

    fn near(&self) -> Option<Rule> {
        Some(Rule::Zone)
    }

    fn files_of(&self, state: &State, zone: usize) -> u64 {
        size(state, zone, INACTIVE[FILE]) + size(state, zone, ACTIVE[FILE])
    }

    fn shrink_near(&self, vm: &Vm, host: &dyn Host, ask: &Ask, pass: &mut Pass) {
        self.shrink_zone_near(vm, host, ask, pass);
    }

    fn shrink_slabs_near(&self, vm: &Vm, host: &dyn Host, pass: &mut Pass, wanted: u64) {
        self.shrink_slabs_only(vm, host, pass, wanted);
    }

    fn wants_kswapd(&self, vm: &Vm, host: &dyn Host, node: u16, order: u8, class: u8) -> bool {
        let zones = vm.with(|state| node::zones_of(state, node));
        let asked = zones.into_iter().filter(|zone| vm.with(|state| state.zones[*zone].class <= class));
        asked.into_iter().any(|zone| !host.is_above(zone, Mark::Low, order, 0))
    }

    fn kswapd(&self, vm: &Vm, host: &dyn Host, node: u16, order: u8, _class: u8) {
        self.run_kswapd(vm, host, node, order);
    }

    fn isolate(&self, state: &mut State, frame: Frame) -> bool {
        state.isolate(frame);
        true
    }

    fn put_back(&self, state: &mut State, frame: Frame) {
        assert!(!state.let_go(frame), "frame {} is gone", frame.0);
        self.put(state, frame, false);
    }

    fn sizes(&self, state: &State) -> Sizes {
        let sum = |list| (0..state.zones.len()).map(|zone| size(state, zone, list)).sum();
        Sizes {
            inactive_anon: sum(INACTIVE[ANON]),
            active_anon: sum(ACTIVE[ANON]),
            inactive_file: sum(INACTIVE[FILE]),
            active_file: sum(ACTIVE[FILE]),
        }
    }
}
