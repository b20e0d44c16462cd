//! What the work of the memory costs a CPU.
//!
//! The parts are known on a processor, in cycles; a machine file says what a fault costs there, which on an
//! emulated CPU is a hundred times as much. So every part costs the same share of a fault on every machine.

use slablab_model::{Costs, Ps};
use slablab_vm::Work;

/// Times of work, by kind. The price of a fault is the machine's, zeros of a page too; all others are assumed
/// shares of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    work: [Ps; 7],
    /// A load or store that finds its entry, with the loop around it.
    pub touch: Ps,
    /// An interrupt of a disk.
    pub interrupt: Ps,
    /// The end of one frame's I/O in it.
    pub end: Ps,
    /// A pass over all shrinkers of a kernel, to ask how many objects each has.
    pub shrinkers: Ps,
}

/// Cycles of a fault without zeroing, where the cycles below are counted (assumed; 0.3 us at 3.5 GHz).
const FAULT: u64 = 1_000;
/// To look at a page on a list, at an entry through a frame, at an entry of a walk; to free a page; to give
/// one to a device; of a touch; of an interrupt, and to end a frame's I/O in it (assumed).
const SCAN: u64 = 150;
const RMAP: u64 = 250;
const WALK: u64 = 15;
const RECLAIM: u64 = 900;
const SUBMIT: u64 = 1_500;
const TOUCH: u64 = 40;
const INTERRUPT: u64 = 1_500;
const END: u64 = 150;
/// A pass over the shrinkers: 60 of them, 100 cycles each (assumed).
const SHRINKERS: u64 = 6_000;

impl Prices {
    /// The prices on a machine with these costs.
    pub fn of_costs(costs: &Costs) -> Prices {
        let share = |cycles: u64| cycles * costs.page_fault / FAULT;
        let mut work = [0; 7];
        let mut set = |kind: Work, price: Ps| work[kind as usize] = price;
        set(Work::Scan, share(SCAN));
        set(Work::Rmap, share(RMAP));
        set(Work::Walk, share(WALK));
        set(Work::Reclaim, share(RECLAIM));
        set(Work::Submit, share(SUBMIT));
        set(Work::Fault, costs.page_fault);
        set(Work::Copy, 4 * costs.zero_kib);
        Prices {
            work,
            touch: share(TOUCH),
            interrupt: share(INTERRUPT),
            end: share(END),
            shrinkers: share(SHRINKERS),
        }
    }

    /// The price of one piece of work.
    #[inline]
    pub fn of(&self, work: Work) -> Ps {
        self.work[work as usize]
    }
}
