//! A machine of one zone under a preset, whose tasks are the test's own lines: no read-ahead, no dirty
//! limits.

use slablab_vm::instant::Instant;
use slablab_vm::mappings::Kind;
use slablab_vm::spaces::Backing;
use slablab_vm::swap::SlotRule;
use slablab_vm::{
    Ask, Counter, Enter, Entry, Flags, Frame, Freed, Host, MappingId, Preset, Pte, Purpose, RegionId, Sizes,
    State, Swap, Vm, Zone,
};

/// The machine.
pub(crate) struct Machine {
    pub(crate) vm: Vm,
    pub(crate) host: Instant,
}

impl Machine {
    /// A machine whose allocations never reclaim: the test does.
    pub(crate) fn new(preset: &str, frames: u32, slots: u32) -> Machine {
        Machine::with_marks(preset, frames, slots, [0; 3])
    }

    /// A machine with watermarks.
    pub(crate) fn with_marks(preset: &str, frames: u32, slots: u32, marks: [u64; 3]) -> Machine {
        let preset = Preset::parse(preset).expect("a preset");
        let policy = preset.policy();
        let zone = Zone { name: "Normal", node: 0, class: 0, frames: 0..frames, managed: frames.into() };
        let swap = Swap::new(slots, SlotRule::Next);
        let state = State::new(vec![zone], swap, policy.lists(1, 1), preset.settings);
        Machine { vm: Vm::new(state, policy), host: Instant::new(frames, marks, 0) }
    }

    /// A node of two zones of so many frames each, the second of a higher class. The first zone's frames are
    /// allocated first.
    pub(crate) fn of_two_zones(preset: &str, frames: u32) -> Machine {
        let preset = Preset::parse(preset).expect("a preset");
        let policy = preset.policy();
        let zone = |at: u32| Zone {
            name: "zone",
            node: 0,
            class: at as u8,
            frames: at * frames..(at + 1) * frames,
            managed: frames.into(),
        };
        let swap = Swap::new(0, SlotRule::Next);
        let state = State::new(vec![zone(0), zone(1)], swap, policy.lists(2, 1), preset.settings);
        Machine { vm: Vm::new(state, policy), host: Instant::new(2 * frames, [0; 3], 0) }
    }

    /// A file of so many pages.
    pub(crate) fn file(&self, pages: u32) -> MappingId {
        self.vm.with(|state| state.mappings.create(Kind::File, pages))
    }

    /// Anonymous memory of so many pages.
    pub(crate) fn anon(&self, pages: u32) -> RegionId {
        self.vm.with(|state| {
            let space = state.spaces.create();
            state.spaces.space_mut(space).flush_every = 1;
            let family = state.spaces.family();
            state.spaces.add(space, Backing::Anon(family), pages)
        })
    }

    /// Reads a page of a file by a system call. Returns its frame.
    pub(crate) fn read(&self, file: MappingId, page: u32) -> Frame {
        let entry = self.vm.with(|state| state.mappings.get(file).entry(page));
        let frame = entry.frame().unwrap_or_else(|| {
            let frame = self.host.alloc(&self.vm, Purpose::File).expect("a free frame");
            self.vm.with(|state| {
                let old = state.enter_mapping(frame, file, page, Flags::UPTODATE);
                let shadow = if let Entry::Shadow(shadow) = old { Some(shadow) } else { None };
                self.vm.policy.enter(state, frame, Enter::File, shadow);
            });
            frame
        });
        self.vm.with(|state| self.vm.policy.access(state, frame));
        frame
    }

    /// Writes to a page of anonymous memory. Returns its frame, and whether it was in swap.
    pub(crate) fn touch(&self, region: RegionId, page: u32) -> (Frame, bool) {
        let vm = &self.vm;
        if vm.with(|state| state.spaces.access(region, page, true)) {
            let frame = vm.with(|state| state.spaces.region(region).pte(page).frame());
            return (frame.expect("mapped"), false);
        }
        let slot = vm.with(|state| state.spaces.region(region).pte(page).slot());
        let cached = slot.and_then(|slot| vm.with(|state| state.swap.cached(slot).frame()));
        let frame = cached.unwrap_or_else(|| self.bring(region, page, slot));
        vm.with(|state| {
            state.map(region, page, Pte::map(frame, true).accessed(true).dirty(true));
            // The last user of the slot writes: the frame keeps no slot.
            if state.frames.has(frame, Flags::SWAPCACHE) && !state.frames.has(frame, Flags::WRITEBACK) {
                state.leave_swap_cache(frame, Entry::Absent);
            }
            state.set_dirty(frame);
        });
        (frame, slot.is_some() && cached.is_none())
    }

    fn bring(&self, region: RegionId, page: u32, slot: Option<u32>) -> Frame {
        let purpose = if slot.is_some() { Purpose::SwapIn } else { Purpose::Anon };
        let frame = self.host.alloc(&self.vm, purpose).expect("a free frame");
        self.vm.with(|state| {
            let Backing::Anon(family) = state.spaces.region(region).backing else { unreachable!() };
            let flags = Flags::UPTODATE | Flags::ANON | Flags::SWAPBACKED;
            state.frames.begin(frame, family, page, flags);
            let old = slot.map(|slot| state.swap.cached(slot));
            if let Some(slot) = slot {
                state.enter_swap_cache(frame, slot);
            }
            let shadow = if let Some(Entry::Shadow(shadow)) = old { Some(shadow) } else { None };
            let how = if slot.is_some() { Enter::SwapIn } else { Enter::Anon };
            self.vm.policy.enter(state, frame, how, shadow);
        });
        frame
    }

    /// The accessed bits of a page of anonymous memory are cleared.
    pub(crate) fn age(&self, region: RegionId, page: u32) {
        self.vm.with(|state| {
            let frame = state.spaces.region(region).pte(page).frame().expect("mapped");
            state.look(frame)
        });
    }

    /// Pages of each list.
    pub(crate) fn sizes(&self) -> Sizes {
        self.vm.with(|state| self.vm.policy.sizes(state))
    }

    /// A page of a file is dropped from memory.
    pub(crate) fn drop_page(&self, file: MappingId, page: u32) {
        let frame = self.vm.with(|state| {
            let frame = state.mappings.get(file).entry(page).frame()?;
            self.vm.policy.leave(state, frame);
            state.leave_mapping(frame, Entry::Absent);
            state.end(frame).then_some(frame)
        });
        frame.into_iter().for_each(|frame| self.host.free(&self.vm, frame));
    }

    /// An allocation reclaims.
    pub(crate) fn reclaim(&self) -> Freed {
        self.reclaim_for(0)
    }

    /// An allocation of a block reclaims.
    pub(crate) fn reclaim_for(&self, order: u8) -> Freed {
        let ask = Ask { node: 0, class: 0, order, io: true, fs: true, space: None, group: false };
        self.vm.policy.direct(&self.vm, &self.host, &ask)
    }

    /// kswapd runs for an order.
    pub(crate) fn kswapd(&self, order: u8) {
        self.vm.policy.kswapd(&self.vm, &self.host, 0, order, 0);
    }

    /// A file of tmpfs whose pages were written, one after the other.
    pub(crate) fn tmpfs(&self, pages: u32) -> MappingId {
        let file = self.vm.with(|state| state.mappings.create(Kind::Tmpfs, pages));
        for page in 0..pages {
            let frame = self.host.alloc(&self.vm, Purpose::Tmpfs).expect("a free frame");
            self.vm.with(|state| {
                state.enter_mapping(frame, file, page, Flags::UPTODATE | Flags::SWAPBACKED);
                state.set_dirty(frame);
                self.vm.policy.enter(state, frame, Enter::Tmpfs, None);
            });
        }
        file
    }

    /// Whether a page of a file is in memory.
    pub(crate) fn is_cached(&self, file: MappingId, page: u32) -> bool {
        self.vm.with(|state| state.mappings.get(file).entry(page).frame().is_some())
    }

    /// A counter.
    pub(crate) fn count(&self, counter: Counter) -> u64 {
        self.vm.with(|state| state.counters.get(counter))
    }

    /// Every page is in one place, and every frame is free or used.
    pub(crate) fn check(&self) {
        self.vm.with(|state| {
            state.check().expect("every page is in one place");
            let used =
                (0..state.frames.count()).filter(|at| state.frames.has(Frame(*at), Flags::USED)).count();
            assert_eq!(used + self.host.free_frames(), state.frames.count() as usize);
        });
    }
}
