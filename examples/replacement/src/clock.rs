//! The policy: one list of all pages in the order in which they came, and a second chance for a page that was
//! accessed since its last turn (Corbató 1968). `chances` says how many.

use slablab_vm::counters::Counter;
use slablab_vm::host::Mark;
use slablab_vm::knob::{Knob, Policy, Preset, knob};
use slablab_vm::pageout::{FileWrites, References, Scan, Writing, evict_batch, put_back};
use slablab_vm::shrinker::{Owed, shrink_slab};
use slablab_vm::{
    Ask, Enter, Flags, Frame, Freed, Host, ListId, Replacement, Settings, Sizes, State, Verdict, Vm,
};

/// The list; new pages are at its head.
const LIST: ListId = ListId(0);
/// Pages that a pass takes from the list's tail.
const BATCH: u32 = 32;
/// Passes without a freed page after which a reclaimer gives up.
const PASSES: u32 = 64;

/// What can be chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Choices {
    /// Whether an accessed page gets another turn.
    second: bool,
    /// The share of slab caches that a pass asks back, as a power of two.
    priority: u32,
}

impl Policy for Choices {
    const WORD: &'static str = "clock";
    const PRESETS: &'static [Preset<Choices>] = &[Preset {
        release: "6.1",
        kernel: [6, 1, 0],
        what: "one list, and a second chance for accessed pages",
        settings: Settings::USUAL,
        policies: Choices { second: true, priority: 6 },
    }];
    const KNOBS: &'static [Knob<Choices>] = &[
        knob!("second", "an accessed page gets another turn", second: no or yes),
        knob!("priority", "a pass asks caches for 1/2^n of their objects", priority: number 0 to 12),
    ];

    fn build(self, name: String) -> Box<dyn Replacement> {
        Box::new(Clock { name, choices: self, owed: Owed::default() })
    }
}

/// The policy on one machine.
struct Clock {
    name: String,
    choices: Choices,
    owed: Owed,
}

impl Clock {
    /// One pass: slab caches shrink, and the pages at the list's tail have their turn.
    fn pass(&self, vm: &Vm, host: &dyn Host, (io, fs, group): (bool, bool, bool)) -> u32 {
        let how = Scan {
            group,
            references: References::Modern,
            io,
            fs,
            unmap: true,
            write: true,
            writing: Writing::Keep,
            file_writes: FileWrites::Reclaim,
            met_writeback: false,
            met_dirty: false,
            tmpfs_two_visits: false,
            full_frees_slot: true,
        };
        let batch = vm.with(|state| {
            let next = |state: &mut State| {
                let frame = state.lists.tail(LIST)?;
                state.isolate(frame);
                Some(frame)
            };
            (0..BATCH).map_while(|_| next(state)).collect()
        });
        let evicted = evict_batch(vm, host, batch, &how);
        put_back(vm, host, &evicted.kept, |state, frame| state.push_head(LIST, frame));
        evicted.freed + shrink_slab(vm, host, &self.owed, self.choices.priority) as u32
    }

    /// Passes until `is_enough`, or until none helps. Returns the freed pages.
    fn passes(
        &self,
        vm: &Vm,
        host: &dyn Host,
        may: (bool, bool, bool),
        is_enough: impl Fn(u32) -> bool,
    ) -> u32 {
        let (mut freed, mut in_vain) = (0, 0);
        while !is_enough(freed) && in_vain < PASSES {
            let more = self.pass(vm, host, may);
            freed += more;
            in_vain = if more > 0 { 0 } else { in_vain + 1 };
            host.resched();
        }
        freed
    }
}

impl Replacement for Clock {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn lists(&self, _zones: u16, _nodes: u16) -> u16 {
        1
    }

    fn enter(&self, state: &mut State, frame: Frame, _how: Enter, shadow: Option<u32>) {
        if shadow.is_some() {
            state.count_by_type(frame, Counter::RefaultAnon, Counter::RefaultFile);
        }
        state.push_head(LIST, frame);
    }

    fn access(&self, state: &mut State, frame: Frame) {
        state.frames.set(frame, Flags::REFERENCED);
    }

    fn leave(&self, state: &mut State, frame: Frame) {
        if state.frames.has(frame, Flags::LISTED) {
            state.unlist(frame);
        }
    }

    /// Anything but nothing: that the page was here before is all that is asked.
    fn evict(&self, _state: &mut State, frame: Frame) -> Option<u32> {
        Some(frame.0)
    }

    fn references(&self, state: &mut State, frame: Frame) -> Option<Verdict> {
        let was_read = state.frames.has(frame, Flags::REFERENCED);
        let accessed = state.look(frame).accessed > 0 || was_read;
        state.frames.clear(frame, Flags::REFERENCED);
        Some(if accessed && self.choices.second { Verdict::Keep } else { Verdict::Reclaim })
    }

    /// A page whose write ended is the next to go.
    fn written(&self, state: &mut State, frame: Frame) {
        if state.frames.has(frame, Flags::LISTED) {
            state.unlist(frame);
            state.push_tail(LIST, frame);
        }
    }

    fn direct(&self, vm: &Vm, host: &dyn Host, ask: &Ask) -> Freed {
        let pages = self.passes(vm, host, (ask.io, ask.fs, ask.group), |freed| freed >= BATCH);
        Freed { pages, progress: pages > 0, page: None }
    }

    fn kswapd(&self, vm: &Vm, host: &dyn Host, node: u16, order: u8, class: u8) {
        let zones: Vec<usize> = vm.with(|state| {
            let own = |zone: &usize| state.zones[*zone].node == node;
            (0..state.zones.len()).filter(own).collect()
        });
        let is_balanced = || zones.iter().any(|zone| host.is_above(*zone, Mark::High, order, class));
        self.passes(vm, host, (true, true, false), |_| is_balanced());
    }

    fn sizes(&self, state: &State) -> Sizes {
        Sizes { inactive_file: state.lists.len(LIST).into(), ..Sizes::default() }
    }
}
