//! What an engine's operations cost beside the cache lines they touch, by engine and release.
//!
//! The lines are charged by the model; here are the instructions and the exchanges. The counts of cycles come
//! from a measurement of 2014 to 2016 (J. D. Brouer, i7-4790K at 4 GHz): SLUB's fast path 42 to 47 cycles for
//! an allocation and a free together, SLAB's 87, of which interrupts off and on take 37 each time they are
//! saved and restored; preemption off and on 7; a compare-exchange of two words that only this CPU sees 9.
//! SLUB's pair touches five lines that are in the first level, at 2 cycles each: each half its slot and its
//! object, the free the slab's descriptor too. Of its 44.5 cycles the exchanges take 18 and the lines 10; the
//! rest is 8 for each half. Of SLAB's 87, interrupts take 74 and six lines 12: nothing is left to explain.
//!
//! | engine | until | fast path | slow path | a slab's word | spinlocks |
//! |---|---|---|---|---|---|
//! | SLUB | 3.0 | interrupts off and on | held with interrupts off | bit lock: a locked exchange and a store | plain |
//! | SLUB | 6.18 | a local exchange of 16 bytes | interrupts off and on | locked exchange of 16 bytes | interrupts off and on |
//! | SLUB 7.0 and later | | preemption off and on | the same | locked exchange of 16 bytes | interrupts off and on |
//! | SLAB, SLQB | | interrupts off and on | held with interrupts off | under a lock | plain |
//! | SLOB | | has none | | under its lock | interrupts off and on |
//!
//! A registered engine says what its paths cost (`Family::CYCLES`). One that says nothing, as a kernel's tree
//! whose code is charged as it runs, has the prices of SLUB of its release.
//!
//! SLUB's 6.18 has sheaves for two caches in front of CPU slabs: the array operations have 7.0's price, the
//! list operations that of the releases before.

use super::Simulated;
use slablab_model::{Costs, Paths, Ps};
use slablab_slabs::registered::{Cycles, Guard};
use slablab_slabs::{Preset, Release};

/// Cycles of a fast path's other instructions.
const REST: Ps = 8;
/// Preemption off and on.
const PREEMPTION: Ps = 7;
/// Cycles of an uncontended spinlock beside its exchange: the store that unlocks, the call.
const UNLOCK: Ps = 4;
/// Cycles of a slow path's entry: the call and its tests (assumed).
const ENTRY: Ps = 20;

/// The prices of a preset's operations on a machine.
pub fn paths(preset: &Preset, costs: &Costs) -> Paths {
    let rest = REST * costs.cycle;
    let entry = ENTRY * costs.cycle;
    let array = PREEMPTION * costs.cycle + rest;
    let lock = costs.locked_exchange + UNLOCK * costs.cycle;
    let with_interrupts = Paths {
        list_pop: costs.interrupts,
        list_push: costs.interrupts,
        array_pop: costs.interrupts,
        array_push: costs.interrupts,
        hold: entry,
        exchange: 0,
        lock,
        links_in_descriptor: false,
    };
    match preset {
        Preset::Slub(policy) if policy.release < Release::new(3, 1, 0) => {
            Paths { exchange: costs.locked_exchange + UNLOCK * costs.cycle, ..with_interrupts }
        }
        Preset::Slub(policy) => Paths {
            list_pop: costs.local_exchange + rest,
            list_push: costs.local_exchange + rest,
            array_pop: array,
            array_push: array,
            hold: entry + if policy.cpu_slab { costs.interrupts } else { PREEMPTION * costs.cycle },
            exchange: costs.exchange16,
            lock: lock + costs.interrupts,
            links_in_descriptor: false,
        },
        // SLAB's free list is an array of numbers behind the descriptor (bufctl): no free object is touched.
        Preset::Slab(_) => Paths { links_in_descriptor: true, ..with_interrupts },
        Preset::Slqb(_) => with_interrupts,
        Preset::Slob(_) => Paths { lock: lock + costs.interrupts, ..with_interrupts },
        Preset::Registered(_) => match (cycles_of(preset), Preset::of_kernel(preset.release())) {
            (Some(cycles), _) => own(cycles, costs),
            (None, Some(slub)) => paths(&slub, costs),
            (None, None) => with_interrupts,
        },
    }
}

/// What a registered engine says of its paths.
fn cycles_of(preset: &Preset) -> Option<Cycles> {
    let Preset::Registered(own) = preset else { return None };
    own.registration().table::<Simulated>()?.cycles
}

/// The prices of an engine that says what its paths cost.
fn own(cycles: Cycles, costs: &Costs) -> Paths {
    let time = |cycles: u32| Ps::from(cycles) * costs.cycle;
    let preemption = PREEMPTION * costs.cycle;
    let (fast, held, locked) = match cycles.guard {
        Guard::Interrupts => (costs.interrupts, 0, 0),
        Guard::Exchange => (costs.local_exchange, costs.interrupts, costs.interrupts),
        Guard::Preemption => (preemption, preemption, costs.interrupts),
    };
    let (alloc, free) = (time(cycles.alloc) + fast, time(cycles.free) + fast);
    Paths {
        list_pop: alloc,
        list_push: free,
        array_pop: alloc,
        array_push: free,
        hold: time(cycles.slow) + held,
        exchange: costs.exchange16,
        lock: costs.locked_exchange + UNLOCK * costs.cycle + locked,
        links_in_descriptor: false,
    }
}

/// Instructions in a cycle (assumed).
const INSTRUCTIONS: Ps = 3;
/// Instructions natively of an allocation and a free that take the fast path, from the caller's call to the
/// return, and lines in the first level that they load. Counted by callgrind in `slablab bench --workloads
/// pair64` (release build): an operation of the pair takes their sum.
struct Native {
    alloc: Ps,
    free: Ps,
}
const NATIVE_LIST: Native = Native { alloc: 91, free: 152 };
const NATIVE_QUEUE: Native = Native { alloc: 34, free: 83 };
const NATIVE_LINES: Native = Native { alloc: 2, free: 3 };
/// Instructions of a pair of SLQB.
pub const NATIVE_PAIR: Ps = NATIVE_QUEUE.alloc + NATIVE_QUEUE.free;
/// Instructions of a slow path natively, beside those of the fast path that was tried: `batch64-fifo` under
/// SLUB 6.1, nearly all of whose frees are slow. The clock is read, and deferred work looked for.
const NATIVE_SLOW: Ps = 1060;
/// Locked exchanges of a slow path, beside those of slabs' words and locks: into a section of the process's
/// upkeep, and out of it.
const NATIVE_SECTIONS: Ps = 2;

/// The prices of a preset's operations in a program, with slots of threads: nothing turns interrupts off, and
/// no other thread uses a slot, so that fast paths have no locked exchange. A slab's word is exchanged by one
/// locked instruction of 8 bytes. Links are in objects under every engine. `instruction` is the time of an
/// instruction, in femtoseconds, with loads that hit the first level: these are charged as lines, and taken
/// off here.
pub fn native(preset: &Preset, costs: &Costs, instruction: u64) -> Paths {
    let instructions = |cycles: u32| Ps::from(cycles) * INSTRUCTIONS;
    let fast = match (cycles_of(preset), preset) {
        (Some(own), _) => Native { alloc: instructions(own.alloc), free: instructions(own.free) },
        (None, Preset::Slub(policy)) if policy.release < Release::new(7, 0, 0) => NATIVE_LIST,
        _ => NATIVE_QUEUE,
    };
    let time = |instructions: Ps| instructions * instruction / 1000;
    // The model counts half of a load's latency, as two overlap.
    let less = |instructions: Ps, lines: Ps| time(instructions).saturating_sub(lines * costs.l1 / 2);
    let (alloc, free) = (less(fast.alloc, NATIVE_LINES.alloc), less(fast.free, NATIVE_LINES.free));
    Paths {
        list_pop: alloc,
        list_push: free,
        array_pop: alloc,
        array_push: free,
        hold: time(NATIVE_SLOW) + NATIVE_SECTIONS * costs.locked_exchange,
        exchange: costs.locked_exchange,
        lock: costs.locked_exchange + UNLOCK * costs.cycle,
        links_in_descriptor: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prices of an engine of one's own on a CPU of 1 ns: allocation, free, slow path, lock.
    #[test]
    fn an_engine_says_what_its_paths_cost() {
        let costs = Costs {
            cycle: 1_000,
            local_exchange: 9_000,
            locked_exchange: 20_000,
            exchange16: 25_000,
            interrupts: 37_000,
            ..Costs::default()
        };
        let check = |guard, expected: [Ps; 4]| {
            let found = own(Cycles { alloc: 10, free: 12, slow: 50, guard }, &costs);
            let fast = [(found.list_pop, found.array_pop), (found.list_push, found.array_push)];
            fast.iter().for_each(|(list, array)| assert_eq!(list, array, "{guard:?}"));
            assert_eq!([found.list_pop, found.list_push, found.hold, found.lock], expected, "{guard:?}");
            assert_eq!(found.exchange, costs.exchange16, "{guard:?}");
        };
        check(Guard::Interrupts, [47_000, 49_000, 50_000, 24_000]);
        check(Guard::Exchange, [19_000, 21_000, 87_000, 61_000]);
        check(Guard::Preemption, [17_000, 19_000, 57_000, 61_000]);
    }
}
