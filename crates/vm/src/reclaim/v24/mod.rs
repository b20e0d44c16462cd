//! Page replacement of Linux 2.4 in August and September 2001, when it had two VMs.
//!
//! ```text
//!  Riel's (2.4.8, 2.4.9, -ac)                         Arcangeli's (2.4.10)
//!  page tables ── walk ──┐ swap slot                  page tables ── walk ──┐ swap slot
//!      active ── refill ─┴─> inactive_dirty               active ── refill ─┴─> inactive
//!        ^──── launder, referenced ────┘ │ launder          ^── second touch ─────┘ │ cache
//!        └──── touched ── inactive_clean ┘ of a zone                                 v
//!                              │ kreclaimd, allocations                             free
//!                              v
//!                             free
//! ```
//!
//! There is no way from a frame to the entries that map it. So anonymous pages are on no list. A *walk* over
//! the page tables of one space after another picks their victims: such a page gets a swap slot, enters the
//! lists, and is freed when all its entries are gone and it is written.
//!
//! | module | contents |
//! |---|---|
//! | [`policy`], [`presets`] | the choices in which kernels differ; the kernels |
//! | `node` | a run of reclaim, kswapd, the work of each second |
//! | `class` | the run of reclaim of 2.4.10, and its kswapd |
//! | `walk`, `launder`, `refill` | the scans: over page tables, over the inactive and the active list |
//! | `balance` | how many pages are wanted |
//! | [`lru`] | lists and ages: where a page enters, what a touch does |
//! | `clean` | the page of one frame: written, cleaned, freed |
//!
//! Rules, their sources, and what is assumed: docs/theory/vm.md 5.

mod balance;
mod class;
mod clean;
mod launder;
pub mod lru;
mod node;
pub mod policy;
pub mod presets;
mod refill;
mod walk;

pub use balance::Level;
pub use class::Local;
pub use node::Ran;
pub use policy::Choices;
pub use walk::Tried;

use crate::frames::Flags;
use crate::host::Ask;
use crate::ids::{Frame, SpaceId};
use crate::replacement::{Enter, Freed, Sizes};
use crate::state::State;
use crate::vm::{Host, Replacement, Vm};
use policy::{Balance, DropBehind, Kswapd, Lists, Slots};
use std::cell::{Cell, RefCell};

/// A VM of 2.4.
#[derive(Debug)]
pub struct V24 {
    /// What it does.
    pub choices: Choices,
    name: String,
    data: Data,
}

/// What it remembers, beside the lists.
#[derive(Debug, Default)]
struct Data {
    /// The page allocator takes no clean pages.
    frees_clean: Cell<bool>,
    /// Pages of each zone in the inactive list.
    inactive: RefCell<Vec<u32>>,
    /// Pages in lists by kind, and those of block devices among them.
    sizes: Cell<Sizes>,
    devices: Cell<u64>,
    /// Memory pressure, and pages allocated and freed when it was last looked at.
    pressure: Cell<u64>,
    seen: Cell<[u64; 2]>,
    /// Clean pages stolen since.
    stolen: Cell<u64>,
    /// The second of that look.
    second: Cell<u64>,
    /// Laundering writes ([`policy::Launder::Hysteresis`]).
    writes: Cell<bool>,
    /// Writes to swap that have not ended.
    in_flight: Cell<u32>,
}

/// On whose behalf reclaim runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// kswapd.
    pub kswapd: bool,
    /// It may start I/O.
    pub io: bool,
    /// It may enter file systems: it writes pages and shrinks dentries.
    pub fs: bool,
    /// Its address space.
    pub space: Option<SpaceId>,
    /// The node, and the highest zone of it, whose pages help.
    pub class: (u16, u8),
}

impl Caller {
    /// An allocation.
    pub fn of(ask: &Ask) -> Caller {
        Caller { kswapd: false, io: ask.io, fs: ask.fs, space: ask.space, class: (ask.node, ask.class) }
    }

    /// kswapd, for the zones of a node up to `class`.
    pub fn kswapd(node: u16, class: u8) -> Caller {
        Caller { kswapd: true, io: true, fs: true, space: None, class: (node, class) }
    }

    /// Whether a page of the zone helps (`memclass`).
    pub fn helps(&self, state: &State, zone: usize) -> bool {
        let zone = &state.zones[zone];
        zone.node == self.class.0 && zone.class <= self.class.1
    }
}

impl V24 {
    /// A VM that does this, under this name.
    pub fn new(choices: Choices, name: String) -> V24 {
        V24 { choices, name, data: Data::default() }
    }

    /// Writes to swap that have not ended.
    pub fn writes_in_flight(&self) -> u32 {
        self.data.in_flight.get()
    }

    /// Whether clean pages wait in their zones: there are lists of them, and the page allocator takes from
    /// them. Where it does not (a mix of lists of 2.4.9 with the page allocator of 2.4.10), clean pages are
    /// freed at once.
    pub(super) fn keeps_clean(&self) -> bool {
        self.choices.lists == Lists::Three && !self.data.frees_clean.get()
    }

    /// Asks the host what it does with clean pages.
    fn look_around(&self, host: &dyn Host) {
        self.data.frees_clean.set(!host.takes_clean());
    }

    /// Whether laundering writes now (`should_write`).
    pub fn is_writing(&self) -> bool {
        self.data.writes.get()
    }
}

impl Replacement for V24 {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn lists(&self, zones: u16, _nodes: u16) -> u16 {
        match self.choices.lists {
            Lists::Three => 2 + zones,
            Lists::Two => 2,
        }
    }

    fn enter(&self, state: &mut State, frame: Frame, how: Enter, _shadow: Option<u32>) {
        self.entered(state, frame, how);
    }

    fn access(&self, state: &mut State, frame: Frame) {
        self.read(state, frame);
    }

    fn found(&self, state: &mut State, frame: Frame) {
        self.looked_up(state, frame);
    }

    /// The walk looks at entries; the end of one is no access.
    fn unmapped(&self, _state: &mut State, _frame: Frame) {}

    fn wrote(&self, state: &mut State, frame: Frame, to_end: bool) {
        self.write_touch(state, frame, to_end);
    }

    fn fault(&self, state: &mut State, frame: Frame) {
        self.faulted(state, frame);
    }

    fn unswapped(&self, state: &mut State, frame: Frame) {
        let stays = self.choices.anon == policy::Anon::AtFault || !state.frames.has(frame, Flags::ANON);
        if !stays && state.frames.has(frame, Flags::LISTED) {
            self.take(state, frame);
        }
    }

    fn leave(&self, state: &mut State, frame: Frame) {
        if state.frames.has(frame, Flags::LISTED) {
            self.take(state, frame);
        }
    }

    fn evict(&self, _state: &mut State, _frame: Frame) -> Option<u32> {
        None
    }

    fn written(&self, _state: &mut State, _frame: Frame) {
        self.data.in_flight.set(self.data.in_flight.get() - 1);
    }

    fn drop_behind(&self, state: &mut State, frame: Frame) {
        if self.choices.drop_behind != DropBehind::No {
            self.drop_window(state, frame);
        }
    }

    fn keeps_slot(&self, state: &State, _write: bool) -> bool {
        match self.choices.slots {
            Slots::UntilFull => state.swap.free() * 5 >= state.swap.slots(),
            Slots::Exclusive => false,
        }
    }

    fn direct(&self, vm: &Vm, host: &dyn Host, ask: &Ask) -> Freed {
        self.look_around(host);
        let caller = Caller::of(ask);
        match self.choices.balance {
            Balance::Priority => self.free_for(vm, host, &caller, ask.order),
            _ => self.try_to_free(vm, host, &caller).freed(),
        }
    }

    fn kswapd(&self, vm: &Vm, host: &dyn Host, node: u16, _order: u8, class: u8) {
        self.look_around(host);
        match self.choices.kswapd {
            Kswapd::Zones | Kswapd::ZonesAwake => self.balance_node(vm, host, node, class),
            Kswapd::Shortage | Kswapd::Always | Kswapd::FreeShortage => self.balance(vm, host),
        }
    }

    fn tick(&self, vm: &Vm, host: &dyn Host) {
        self.look_around(host);
        self.each_second(vm, host);
    }

    fn has_clean_pages(&self) -> bool {
        self.choices.lists == Lists::Three
    }

    fn launder_for(&self, vm: &Vm, host: &dyn Host, ask: &Ask) {
        if self.choices.lists == Lists::Three {
            self.launder(vm, host, &Caller::of(ask), 1);
        }
    }

    fn clean_pages(&self, state: &State, zone: usize) -> u64 {
        self.clean_of(state, zone)
    }

    fn steal_clean(&self, vm: &Vm, host: &dyn Host, zone: usize) -> Option<Frame> {
        self.steal(vm, host, zone)
    }

    fn sizes(&self, _state: &State) -> Sizes {
        self.data.sizes.get()
    }

    fn describe(&self, state: &State) -> Vec<String> {
        let clean: u64 = (0..state.zones.len()).map(|zone| self.clean_of(state, zone)).sum();
        let (active, inactive) = (state.lists.len(lru::ACTIVE), state.lists.len(lru::INACTIVE));
        match self.choices.lists {
            Lists::Three => vec![
                format!("Active: {} kB", active * 4),
                format!("Inact_dirty: {} kB", inactive * 4),
                format!("Inact_clean: {} kB", clean * 4),
            ],
            Lists::Two => {
                vec![format!("Active: {} kB", active * 4), format!("Inactive: {} kB", inactive * 4)]
            }
        }
    }
}
