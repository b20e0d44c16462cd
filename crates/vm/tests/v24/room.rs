//! A machine for one policy: zones whose free pages the test sets, a device that answers when it is told,
//! shrinkers that remember what was asked.

use slablab_vm::knob::{Policy, Values};
use slablab_vm::mappings::Kind;
use slablab_vm::spaces::Backing;
use slablab_vm::swap::SlotRule;
use slablab_vm::v24::{Caller, Choices, V24, lru};
use slablab_vm::{
    Ask, Enter, Flags, Frame, Freed, Host, Io, ListId, MappingId, Mark, Place, Pte, Purpose, RegionId,
    Replacement, Settings, Shrinker, Shrunk, Sizes, SpaceId, State, Swap, Throttle, Vm, Waited, Work, Zone,
};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

/// The policy as the memory sees it; tests call it directly.
struct Forward(Rc<V24>);

impl Replacement for Forward {
    fn name(&self) -> String {
        self.0.name()
    }
    fn lists(&self, zones: u16, nodes: u16) -> u16 {
        self.0.lists(zones, nodes)
    }
    fn enter(&self, state: &mut State, frame: Frame, how: Enter, shadow: Option<u32>) {
        self.0.enter(state, frame, how, shadow);
    }
    fn access(&self, state: &mut State, frame: Frame) {
        self.0.access(state, frame);
    }
    fn leave(&self, state: &mut State, frame: Frame) {
        self.0.leave(state, frame);
    }
    fn evict(&self, state: &mut State, frame: Frame) -> Option<u32> {
        self.0.evict(state, frame)
    }
    fn written(&self, state: &mut State, frame: Frame) {
        self.0.written(state, frame);
    }
    fn direct(&self, vm: &Vm, host: &dyn Host, ask: &Ask) -> Freed {
        self.0.direct(vm, host, ask)
    }
    fn kswapd(&self, vm: &Vm, host: &dyn Host, node: u16, order: u8, class: u8) {
        self.0.kswapd(vm, host, node, order, class);
    }
    fn sizes(&self, state: &State) -> Sizes {
        self.0.sizes(state)
    }
}

/// The machine.
pub(crate) struct Room {
    pub(crate) vm: Rc<Vm>,
    pub(crate) v24: Rc<V24>,
    pub(crate) host: Wall,
    /// The next unused frame of each zone.
    next: Vec<Cell<u32>>,
}

/// What is around the policy.
#[derive(Default)]
pub(crate) struct Wall {
    pub(crate) free: RefCell<Vec<u64>>,
    pub(crate) marks: Cell<[u64; 3]>,
    /// Frames given back, in order.
    pub(crate) freed: RefCell<Vec<Frame>>,
    writes: RefCell<Vec<(Place, Frame)>>,
    /// Writes that were started, ended or not.
    pub(crate) written: Cell<u32>,
    /// Waits for a write.
    pub(crate) waits: Cell<u32>,
    pub(crate) now: Cell<u64>,
    pub(crate) naps: RefCell<Vec<u64>>,
    /// Objects that each shrinker could free, and what it was asked to look at.
    pub(crate) unused: RefCell<Vec<u64>>,
    pub(crate) asked: RefCell<Vec<u64>>,
    pub(crate) walked: Cell<u32>,
    /// The page allocator takes no clean pages.
    pub(crate) frees_clean: Cell<bool>,
    racing: RefCell<Weak<Vm>>,
}

impl Host for Wall {
    fn now(&self) -> u64 {
        self.now.get()
    }
    fn work(&self, work: Work, n: u32) {
        if work == Work::Walk {
            self.walked.set(self.walked.get() + n);
            // Another task walks at the same time, and leaves the first space.
            if let Some(vm) = self.racing.borrow().upgrade() {
                vm.with(|state| state.spaces.order.rotate_left(1));
            }
        }
    }
    fn resched(&self) {}
    fn alloc(&self, _vm: &Vm, _purpose: Purpose) -> Option<Frame> {
        None
    }
    fn free(&self, _vm: &Vm, frame: Frame) {
        self.freed.borrow_mut().push(frame);
        self.free.borrow_mut()[(frame.0 / PAGES) as usize] += 1;
    }
    fn submit(&self, _vm: &Vm, io: Io<'_>) {
        assert!(io.write);
        self.written.set(self.written.get() + 1);
        self.writes.borrow_mut().push((io.place, io.frames[0]));
    }
    fn wait(&self, vm: &Vm, _frame: Frame, _waited: Waited) {
        self.waits.set(self.waits.get() + 1);
        self.settle(vm);
    }
    fn wake(&self, _frame: Frame) {}
    fn throttle(&self, _why: Throttle, _most: u64) {}
    fn wake_flushers(&self, _pages: u64) {}
    fn wake_kswapd(&self, _node: u16, _order: u8, _class: u8) {}
    fn nap(&self, _node: u16, most: u64) -> bool {
        self.naps.borrow_mut().push(most);
        false
    }
    fn mark(&self, _zone: usize, mark: Mark) -> u64 {
        self.marks.get()[mark as usize]
    }
    fn takes_clean(&self) -> bool {
        !self.frees_clean.get()
    }
    fn free_pages(&self, zone: usize) -> u64 {
        self.free.borrow()[zone]
    }
    fn is_above(&self, zone: usize, mark: Mark, _order: u8, _class: u8) -> bool {
        self.free_pages(zone) > self.mark(zone, mark)
    }
    fn shrinkers(&self) -> Vec<Shrinker> {
        self.unused.borrow().iter().map(|_| Shrinker { name: "dentry", seeks: 2, batch: 128 }).collect()
    }
    fn shrinkable(&self, shrinker: usize) -> u64 {
        self.unused.borrow()[shrinker]
    }
    fn shrink(&self, _vm: &Vm, _shrinker: usize, n: u64) -> Shrunk {
        self.asked.borrow_mut().push(n);
        Shrunk::default()
    }
    fn reap_slabs(&self) -> u64 {
        0
    }
    fn is_kswapd(&self) -> bool {
        false
    }
    fn is_congested(&self, _place: Place) -> bool {
        false
    }
}

impl Wall {
    /// Ends all writes.
    pub(crate) fn settle(&self, vm: &Vm) {
        for (place, frame) in self.writes.take() {
            vm.write_done(self, Io { place, frames: &[frame], write: true, sync: false, reclaim: true });
        }
    }
}

/// Pages of each zone; slots of swap.
const PAGES: u32 = 4096;
const SLOTS: u32 = 1024;
/// How read-ahead brings pages.
pub(crate) const AHEAD: Enter = Enter::ReadAhead;
/// A user's allocation that may do everything.
pub(crate) const USER: Caller = Caller { kswapd: false, io: true, fs: true, space: None, class: (0, 9) };

/// The choices of a column.
pub(crate) fn column(release: &str) -> Choices {
    Choices::PRESETS.iter().find(|column| column.release == release).expect("a column").policies
}

impl Room {
    /// A machine of one zone with many free pages.
    pub(crate) fn new(preset: &str, knobs: &[(&str, &str)]) -> Room {
        Room::of_zones(preset, knobs, 1)
    }

    /// A machine of `zones` zones.
    pub(crate) fn of_zones(preset: &str, knobs: &[(&str, &str)], zones: u32) -> Room {
        let mut choices = column(preset);
        for (knob, word) in knobs {
            let knob = Choices::KNOBS.iter().find(|known| known.name == *knob).expect("a knob");
            let value = match knob.values {
                Values::Words(words) => words.iter().position(|known| known == word).expect("a word") as u64,
                _ => word.parse().expect("a number"),
            };
            (knob.set)(&mut choices, value);
        }
        let v24 = Rc::new(V24::new(choices, preset.into()));
        let zone = |at: u32| Zone {
            name: "zone",
            node: 0,
            class: at as u8,
            frames: at * PAGES..(at + 1) * PAGES,
            managed: PAGES.into(),
        };
        let settings = Settings { page_cluster: 4, ..Settings::default() };
        let swap = Swap::new(SLOTS, SlotRule::Clusters);
        let state = State::new((0..zones).map(zone).collect(), swap, v24.lists(zones as u16, 1), settings);
        let host = Wall::default();
        host.marks.set([10, 20, 30]);
        host.free.replace(vec![31; zones as usize]);
        let next = (0..zones).map(|zone| Cell::new(zone * PAGES)).collect();
        Room { vm: Rc::new(Vm::new(state, Box::new(Forward(v24.clone())))), v24, host, next }
    }

    /// Says how many pages are free in the first zone.
    pub(crate) fn set_free(&self, pages: u64) {
        self.host.free.borrow_mut()[0] = pages;
    }

    /// An unused frame of a zone.
    fn frame(&self, zone: usize) -> Frame {
        let frame = self.next[zone].get();
        self.next[zone].set(frame + 1);
        Frame(frame)
    }

    /// A file whose first pages are in memory, in frames of a zone.
    pub(crate) fn file(&self, kind: Kind, pages: u32, zone: usize, how: Enter) -> (MappingId, Vec<Frame>) {
        let mapping = self.vm.with(|state| state.mappings.create(kind, pages + 64));
        let frames = (0..pages).map(|page| {
            let frame = self.frame(zone);
            self.vm.with(|state| {
                let flags = if kind == Kind::Tmpfs { Flags::SWAPBACKED } else { Flags(0) };
                state.enter_mapping(frame, mapping, page, flags | Flags::UPTODATE);
                self.v24.enter(state, frame, how, None);
            });
            frame
        });
        (mapping, frames.collect())
    }

    /// Pages of a file that read-ahead brought.
    pub(crate) fn pages(&self, pages: u32) -> Vec<Frame> {
        self.file(Kind::File, pages, 0, Enter::ReadAhead).1
    }

    pub(crate) fn space(&self) -> SpaceId {
        self.vm.with(|state| state.spaces.create())
    }

    /// Anonymous pages of a space that its program wrote and did not access since.
    pub(crate) fn anon(&self, space: SpaceId, pages: u32) -> (RegionId, Vec<Frame>) {
        let (region, family) = self.vm.with(|state| {
            let family = state.spaces.family();
            (state.spaces.add(space, Backing::Anon(family), pages), family)
        });
        let frames = (0..pages).map(|page| {
            let frame = self.frame(0);
            self.vm.with(|state| {
                state.frames.begin(frame, family, page, Flags::ANON | Flags::SWAPBACKED | Flags::UPTODATE);
                state.map(region, page, Pte::map(frame, true).dirty(true));
                self.v24.enter(state, frame, Enter::Anon, None);
            });
            frame
        });
        (region, frames.collect())
    }

    /// Maps a page of a file into a space.
    pub(crate) fn map(&self, space: SpaceId, mapping: MappingId, pages: u32) -> RegionId {
        self.vm.with(|state| {
            let region = state.spaces.add(space, Backing::Mapping(mapping), pages);
            state.mappings.get_mut(mapping).regions.push(region);
            for page in 0..pages {
                let frame = state.mappings.get(mapping).entry(page).frame().expect("in memory");
                state.map(region, page, Pte::map(frame, true));
            }
            region
        })
    }

    /// From now on another task walks whenever this one does.
    pub(crate) fn race(&self) {
        *self.host.racing.borrow_mut() = Rc::downgrade(&self.vm);
    }

    /// The program accesses all pages of a region.
    pub(crate) fn accesses(&self, region: RegionId) {
        self.vm.with(|state| {
            let region = state.spaces.region_mut(region);
            (0..region.pages()).for_each(|page| region.mark(page, region.pte(page).accessed(true)));
        });
    }

    /// Entries of a region that were not accessed since a walk looked at them.
    pub(crate) fn idle(&self, region: RegionId) -> usize {
        self.vm.with(|state| {
            let region = state.spaces.region(region);
            (0..region.pages()).filter(|page| !region.pte(*page).is_accessed()).count()
        })
    }

    /// A region's entries that map no frame any more.
    pub(crate) fn unmapped(&self, region: RegionId) -> Vec<u32> {
        self.vm.with(|state| {
            let region = state.spaces.region(region);
            (0..region.pages()).filter(|page| region.pte(*page).frame().is_none()).collect()
        })
    }

    /// Changes flags of a frame.
    pub(crate) fn set(&self, frame: Frame, flags: Flags) {
        self.vm.with(|state| {
            if flags.any(Flags::DIRTY) {
                state.set_dirty(frame);
            }
            state.frames.set(frame, flags);
        });
    }

    /// Puts a listed page at the head of the active list, with an age.
    pub(crate) fn make_active(&self, frame: Frame, age: u32) {
        self.vm.with(|state| {
            self.v24.activate(state, frame);
            state.frames.set_policy(frame, age);
        });
    }

    /// Where a frame is, as `active`, `inactive`, `clean`, `none`, `free`.
    pub(crate) fn place(&self, frame: Frame) -> &'static str {
        self.vm.with(|state| match state.lists.of(frame) {
            Some(lru::ACTIVE) => "active",
            Some(lru::INACTIVE) => "inactive",
            Some(_) => "clean",
            None if state.frames.flags(frame) == Flags(0) => "free",
            None => "none",
        })
    }

    /// Where a frame is, its age and its reference, as `inactive 2 referenced`.
    pub(crate) fn look(&self, frame: Frame) -> String {
        let (age, referenced) =
            self.vm.with(|state| (state.frames.policy(frame), state.frames.has(frame, Flags::REFERENCED)));
        let referenced = if referenced { " referenced" } else { "" };
        format!("{} {age}{referenced}", self.place(frame))
    }

    /// Everything is where it says, and what is counted is what there is.
    pub(crate) fn check(&self) {
        self.vm.with(|state| {
            state.check().unwrap();
            let mut sizes = Sizes::default();
            for list in (0..state.lists.count()).map(ListId) {
                let is_anon = |frame: &Frame| state.frames.has(*frame, Flags::SWAPBACKED);
                let anon = state.lists.from_tail(list).filter(is_anon).count() as u64;
                let file = u64::from(state.lists.len(list)) - anon;
                let (is_anon, is_file) = match list == lru::ACTIVE {
                    true => (&mut sizes.active_anon, &mut sizes.active_file),
                    false => (&mut sizes.inactive_anon, &mut sizes.inactive_file),
                };
                (*is_anon, *is_file) = (*is_anon + anon, *is_file + file);
            }
            assert_eq!(self.v24.sizes(state), sizes);
            for zone in 0..state.zones.len() {
                let pages =
                    state.lists.from_tail(lru::INACTIVE).filter(|frame| state.zone_of(*frame) == zone);
                assert_eq!(self.v24.inactive_of(zone), pages.count() as u64, "inactive in {zone}");
            }
        });
    }
}
