//! A machine of one zone under a preset. Its tasks are the test's own lines: no read-ahead, no dirty limits.

use slablab_vm::instant::Instant;
use slablab_vm::mappings::Kind;
use slablab_vm::spaces::Backing;
use slablab_vm::swap::SlotRule;
use slablab_vm::{
    Ask, Counter, Enter, Entry, Flags, Frame, Freed, Host, MappingId, Preset, Pte, Purpose, RegionId,
    SpaceId, State, Swap, Vm, Zone,
};

/// The machine.
pub(crate) struct Machine {
    pub(crate) vm: Vm,
    pub(crate) host: Instant,
}

impl Machine {
    /// A machine whose allocations never reclaim: the test does.
    pub(crate) fn new(preset: &str, frames: u32, slots: u32) -> Machine {
        Machine::of(preset, frames, slots, [0; 3], 0)
    }

    /// A machine with watermarks and a device that holds `depth` requests.
    pub(crate) fn of(preset: &str, frames: u32, slots: u32, marks: [u64; 3], depth: usize) -> Machine {
        let preset = Preset::parse(preset).expect("a preset");
        let policy = preset.policy();
        let zone = Zone { name: "Normal", node: 0, class: 0, frames: 0..frames, managed: frames.into() };
        let swap = Swap::new(slots, SlotRule::Next);
        let state = State::new(vec![zone], swap, policy.lists(1, 1), preset.settings);
        Machine { vm: Vm::new(state, policy), host: Instant::new(frames, marks, depth) }
    }

    /// A file of so many pages.
    pub(crate) fn file(&self, pages: u32) -> MappingId {
        self.vm.with(|state| state.mappings.create(Kind::File, pages))
    }

    /// A region of a new space: anonymous, or of a file.
    pub(crate) fn region(&self, of: Option<MappingId>, pages: u32) -> RegionId {
        self.vm.with(|state| {
            let space = state.spaces.create();
            state.spaces.space_mut(space).flush_every = 1;
            let backing = of.map_or_else(|| Backing::Anon(state.spaces.family()), Backing::Mapping);
            let region = state.spaces.add(space, backing, pages);
            if let Some(mapping) = of {
                state.mappings.get_mut(mapping).regions.push(region);
            }
            region
        })
    }

    fn cached(&self, file: MappingId, page: u32) -> Option<Frame> {
        self.vm.with(|state| state.mappings.get(file).entry(page).frame())
    }

    /// Brings a page of a file into a frame.
    fn bring_file(&self, file: MappingId, page: u32, fault: Flags) -> Frame {
        let frame = self.host.alloc(&self.vm, Purpose::File).expect("a free frame");
        self.vm.with(|state| {
            let old = state.enter_mapping(frame, file, page, Flags::UPTODATE | fault);
            let shadow = if let Entry::Shadow(shadow) = old { Some(shadow) } else { None };
            let how = if fault == Flags::FAULT { Enter::FileFault } else { Enter::File };
            self.vm.policy.enter(state, frame, how, shadow);
        });
        frame
    }

    /// Reads a page of a file by a system call. Returns its frame.
    pub(crate) fn read(&self, file: MappingId, page: u32) -> Frame {
        let frame = self.cached(file, page).unwrap_or_else(|| self.bring_file(file, page, Flags::default()));
        self.vm.with(|state| self.vm.policy.access(state, frame));
        frame
    }

    /// Loads from a page of a file through its region. The TLB is flushed by each access.
    pub(crate) fn load(&self, region: RegionId, page: u32) -> Frame {
        let vm = &self.vm;
        let Backing::Mapping(file) = vm.with(|state| state.spaces.region(region).backing) else {
            unreachable!()
        };
        if !vm.with(|state| state.spaces.access(region, page, false)) {
            let frame = self.cached(file, page).unwrap_or_else(|| self.bring_file(file, page, Flags::FAULT));
            vm.with(|state| state.map(region, page, Pte::map(frame, false).accessed(true)));
        }
        self.cached(file, page).expect("mapped")
    }

    /// Stores to a page of anonymous memory. Returns its frame.
    pub(crate) fn store(&self, region: RegionId, page: u32) -> Frame {
        let vm = &self.vm;
        if vm.with(|state| state.spaces.access(region, page, true)) {
            return vm.with(|state| state.spaces.region(region).pte(page).frame()).expect("mapped");
        }
        let slot = vm.with(|state| state.spaces.region(region).pte(page).slot());
        let cached = slot.and_then(|slot| vm.with(|state| state.swap.cached(slot).frame()));
        let frame = cached.unwrap_or_else(|| self.bring_anon(region, page, slot));
        vm.with(|state| {
            state.map(region, page, Pte::map(frame, true).accessed(true).dirty(true));
            let flags = state.frames.flags(frame);
            if flags.has(Flags::SWAPCACHE) && !flags.any(Flags::WRITEBACK) {
                state.leave_swap_cache(frame, Entry::Absent);
            }
            state.set_dirty(frame);
        });
        frame
    }

    fn bring_anon(&self, region: RegionId, page: u32, slot: Option<u32>) -> Frame {
        let frame = self.host.alloc(&self.vm, Purpose::Anon).expect("a free frame");
        self.vm.with(|state| {
            let Backing::Anon(family) = state.spaces.region(region).backing else { unreachable!() };
            let flags = Flags::UPTODATE | Flags::ANON | Flags::SWAPBACKED | Flags::FAULT;
            let old = slot.map(|slot| state.swap.cached(slot));
            state.frames.begin(frame, family, page, flags);
            if let Some(slot) = slot {
                state.enter_swap_cache(frame, slot);
            }
            let shadow = if let Some(Entry::Shadow(shadow)) = old { Some(shadow) } else { None };
            let how = if slot.is_some() { Enter::SwapIn } else { Enter::Anon };
            self.vm.policy.enter(state, frame, how, shadow);
        });
        frame
    }

    /// An allocation reclaims.
    pub(crate) fn reclaim(&self) -> Freed {
        self.reclaim_for(None)
    }

    /// An allocation of a task of a space reclaims.
    pub(crate) fn reclaim_for(&self, space: Option<SpaceId>) -> Freed {
        let ask = Ask { node: 0, class: 0, order: 0, io: true, fs: true, space, group: false };
        self.vm.policy.direct(&self.vm, &self.host, &ask)
    }

    /// Where a page is: its generation and tier.
    pub(crate) fn place(&self, frame: Frame) -> String {
        self.vm.with(|state| self.vm.policy.whereabouts(state, frame)).unwrap_or_default()
    }

    /// Pages of a file that are in memory.
    pub(crate) fn resident(&self, file: MappingId) -> Vec<u32> {
        let pages = self.vm.with(|state| state.mappings.get(file).pages());
        (0..pages).filter(|page| self.cached(file, *page).is_some()).collect()
    }

    /// A counter.
    pub(crate) fn count(&self, counter: Counter) -> u64 {
        self.vm.with(|state| state.counters.get(counter))
    }

    /// The numbers of the oldest and the youngest generation.
    pub(crate) fn generations(&self) -> (u64, u64) {
        let rows = self.vm.policy.generations(0);
        (rows[0][1], rows[rows.len() - 1][1])
    }

    /// Every page is in one place, generations' counts are those of the lists, frames are free or used.
    pub(crate) fn check(&self) {
        self.vm.with(|state| {
            state.check().expect("every page is in one place");
            self.vm.policy.check(state).expect("lists and counts agree");
            let used =
                (0..state.frames.count()).filter(|at| state.frames.has(Frame(*at), Flags::USED)).count();
            assert_eq!(used + self.host.free_frames(), state.frames.count() as usize);
        });
    }
}
