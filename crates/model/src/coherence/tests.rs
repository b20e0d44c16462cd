//! The table of the module's documentation, row by row.

use super::*;
use crate::hardware::Costs;
use crate::spec::NodeSpec;
use Access::{Exchange, Read, Write, Zero};
use Source::{Hit, Memory, Transfer};

/// CPUs by what they share with CPU 0: itself, its core, its last-level cache, its node, and nodes at
/// distances 20 and 40.
const SELF: u16 = 0;
const SIBLING: u16 = 1;
const NEIGHBOUR: u16 = 2;
const OTHER_LLC: u16 = 3;
const NEAR: u16 = 4;
const FAR: u16 = 5;

/// What each costs; no two are equal. A hit of the first level is halved, because such loads overlap.
const L1: Ps = 1;
const L2: Ps = 10;
const LLC: Ps = 30;
const CORE: Ps = 5;
const SAME_LLC: Ps = 40;
const TRANSFERS: [Ps; 3] = [100, 200, 400];
const MEMORIES: [Ps; 3] = [160, 260, 460];
/// Lines that the caches hold.
const LINES: [u64; 3] = [64, 256, 1024];

fn spec_of(cpus: u16) -> (MachineSpec, Hardware) {
    let costs = Costs {
        line_bytes: 64,
        l1_bytes: LINES[0] * 64,
        l2_bytes: LINES[1] * 64,
        llc_bytes: LINES[2] * 64,
        l1: L1 * OVERLAPPED,
        l2: L2,
        llc: LLC,
        transfer_core: CORE,
        transfer_llc: SAME_LLC,
        transfer: [10, 20, 40].into_iter().zip(TRANSFERS).collect(),
        memory: [10, 20, 40].into_iter().zip(MEMORIES).collect(),
        ..Costs::default()
    };
    let pick = |of: [u16; 6]| (0..cpus).map(|cpu| of.get(cpu as usize).copied().unwrap_or(cpu)).collect();
    let spec = MachineSpec {
        cpu_node: (0..cpus).map(|cpu| cpu.saturating_sub(3).min(2)).collect(),
        nodes: vec![NodeSpec { bytes: 1 << 30 }; 3],
        distance: vec![vec![10, 20, 40], vec![20, 10, 30], vec![40, 30, 10]],
        ..MachineSpec::uniform(1, 1, 1 << 30)
    };
    let each = vec![0; cpus.into()];
    (spec, Hardware { core: pick([0, 0, 1, 2, 3, 4]), llc: pick([0, 0, 0, 1, 2, 3]), socket: each, costs })
}

fn caches() -> Caches {
    let (spec, hardware) = spec_of(6);
    Caches::new(&spec, &hardware).expect("the machine is right")
}

/// One step of a test.
enum Step {
    /// A CPU touches the line, and what that costs.
    Touch(u16, Access, Ps, Source),
    /// A CPU touches so many other lines.
    Others(u16, u64),
}
use Step::{Others, Touch};

/// Takes the steps on a line of node `home`.
fn check(row: &str, home: u16, steps: &[Step]) {
    let caches = caches();
    let mut word = untouched(home);
    for (at, step) in steps.iter().enumerate() {
        match step {
            Touch(cpu, access, price, source) => {
                let (after, found, from) = caches.touch(word, *cpu, 1, *access);
                assert_eq!((found, from), (*price, *source), "{row}: step {at}, CPU {cpu} {access:?}");
                word = after;
            }
            Others(cpu, lines) => {
                let touched = &caches.touched[*cpu as usize];
                touched.set(touched.get() + lines);
            }
        }
    }
}

#[test]
fn untouched_lines_come_from_memory() {
    for access in [Read, Write, Exchange, Zero] {
        for (cpu, price) in [(SELF, MEMORIES[0]), (NEAR, MEMORIES[1]), (FAR, MEMORIES[2])] {
            check("by distance", 0, &[Touch(cpu, access, price, Memory)]);
        }
        check("its own node", 2, &[Touch(FAR, access, MEMORIES[0], Memory)]);
        let alone = [Touch(SELF, access, MEMORIES[0], Memory), Touch(SELF, Write, L1, Hit)];
        check("then this CPU has it alone", 0, &alone);
    }
}

/// Ages are known to 16 lines. The first touch is one line too.
#[test]
fn own_lines_cost_by_their_age() {
    let by_age = [
        (0, L1, Hit),
        (LINES[0] - 2, L1, Hit),
        (LINES[0], L2, Hit),
        (LINES[1] - 2, L2, Hit),
        (LINES[1], LLC, Hit),
        (LINES[2] - 2, LLC, Hit),
        (LINES[2], MEMORIES[0], Memory),
    ];
    for (age, price, source) in by_age {
        for access in [Read, Write, Exchange] {
            let steps = [
                Touch(SELF, Write, MEMORIES[0], Memory),
                Others(SELF, age),
                // What other CPUs touch does not age it.
                Others(SIBLING, 1 << 20),
                Touch(SELF, access, price, source),
                Touch(SELF, access, L1, Hit),
            ];
            check(&format!("alone, {age} lines old"), 0, &steps);
            let shared = [
                Touch(SIBLING, Write, MEMORIES[0], Memory),
                Touch(SELF, Read, CORE, Transfer),
                Others(SELF, age),
                Touch(SELF, Read, price, source),
            ];
            check(&format!("shared, {age} lines old"), 0, &shared);
        }
    }
}

/// Prices of a line that CPU 0 has, by who wants it.
const RELATIONS: [(u16, Ps); 5] = [
    (SIBLING, CORE),
    (NEIGHBOUR, SAME_LLC),
    (OTHER_LLC, TRANSFERS[0]),
    (NEAR, TRANSFERS[1]),
    (FAR, TRANSFERS[2]),
];

#[test]
fn other_cpus_lines_cost_by_relation() {
    for (cpu, price) in RELATIONS {
        for access in [Read, Write, Exchange] {
            let first = || Touch(SELF, Write, MEMORIES[0], Memory);
            check("alone", 0, &[first(), Touch(cpu, access, price, Transfer), Touch(cpu, Read, L1, Hit)]);
            // A written line is nowhere else: its owner gets it back at the same price.
            let back = [first(), Touch(cpu, Write, price, Transfer), Touch(SELF, access, price, Transfer)];
            check("back", 0, &back);
        }
        assert_eq!(caches().between(SELF, cpu), price);
    }
    assert_eq!(caches().between(SELF, SELF), L1);
}

#[test]
fn lines_that_left_their_cpu_come_from_where_they_went() {
    let of = |age: u64, cpu: u16, price: Ps, source: Source| {
        let steps = [
            Touch(SELF, Write, MEMORIES[0], Memory),
            Others(SELF, age),
            Touch(cpu, Read, price, source),
            Touch(cpu, Read, L1, Hit),
        ];
        check(&format!("{age} lines old, CPU {cpu}"), 0, &steps);
    };
    of(LINES[1] - 2, NEIGHBOUR, SAME_LLC, Transfer);
    of(LINES[1], NEIGHBOUR, LLC, Hit);
    of(LINES[1], SIBLING, LLC, Hit);
    of(LINES[1], OTHER_LLC, TRANSFERS[0], Transfer);
    of(LINES[2] - 2, NEAR, TRANSFERS[1], Transfer);
    for (cpu, price) in [(NEIGHBOUR, MEMORIES[0]), (NEAR, MEMORIES[1]), (FAR, MEMORIES[2])] {
        of(LINES[2], cpu, price, Memory);
    }
}

#[test]
fn a_write_takes_the_other_copy_away() {
    for (cpu, price) in RELATIONS {
        let shared = || [Touch(SELF, Write, MEMORIES[0], Memory), Touch(cpu, Read, price, Transfer)];
        for writer in [SELF, cpu] {
            let other = SELF + cpu - writer;
            let mut steps = Vec::from(shared());
            // Both have it.
            steps.extend([Touch(SELF, Read, L1, Hit), Touch(cpu, Read, L1, Hit)]);
            steps.push(Touch(writer, Write, price, Transfer));
            steps.push(Touch(writer, Write, L1, Hit));
            steps.push(Touch(other, Read, price, Transfer));
            check(&format!("CPU {writer} writes"), 0, &steps);
        }
    }
}

#[test]
fn a_third_reader_displaces_the_first() {
    let shared = || {
        vec![
            Touch(SELF, Write, MEMORIES[0], Memory),
            Touch(SIBLING, Read, CORE, Transfer),
            // The third comes: the last two are CPUs 1 and 2.
            Touch(NEIGHBOUR, Read, SAME_LLC, Transfer),
            Touch(SIBLING, Read, L1, Hit),
        ]
    };
    let then = |row: &str, more: Vec<Step>| {
        check(row, 0, &[shared(), more].into_iter().flatten().collect::<Vec<_>>())
    };
    then("the first one's copy is forgotten", vec![Touch(SELF, Read, CORE, Transfer)]);
    then(
        "a third CPU writes",
        vec![Touch(SELF, Write, CORE, Transfer), Touch(NEIGHBOUR, Read, SAME_LLC, Transfer)],
    );
    then("all others lose it", vec![Touch(FAR, Write, MEMORIES[2].min(TRANSFERS[2]), Transfer)]);
    // CPU 3 is under another cache; memory on CPU 5's node is nearer to CPU 5 than the readers' caches.
    let clean = [
        Touch(SELF, Read, MEMORIES[2], Memory),
        Touch(NEIGHBOUR, Read, SAME_LLC, Transfer),
        Touch(FAR, Read, MEMORIES[0], Memory),
    ];
    check("a clean line comes from where it is nearer", 2, &clean);
    let dirty = [Touch(SELF, Write, MEMORIES[2], Memory), Touch(FAR, Read, TRANSFERS[2], Transfer)];
    check("a written line comes from its writer", 2, &dirty);
}

/// Lines of an object after the first come as many at a time as the machine can, 4 where it does not say;
/// hits come one after another.
#[test]
fn lines_are_fetched_in_parallel() {
    for (said, at_once) in [(0, 4), (2, 2), (8, 8)] {
        let (spec, mut hardware) = spec_of(6);
        hardware.costs.misses_at_once = said;
        let caches = Caches::new(&spec, &hardware).expect("the machine is right");
        assert_eq!(caches.touch(untouched(0), SELF, 3, Read).1, MEMORIES[0] + 2 * (MEMORIES[0] / at_once));
    }
    let caches = caches();
    let (word, price, source) = caches.touch(untouched(0), SELF, 5, Write);
    assert_eq!((price, source), (MEMORIES[0] + 4 * (MEMORIES[0] / 4), Memory));
    assert_eq!(caches.touched[SELF as usize].get(), 5);
    let (word, price, source) = caches.touch(word, SELF, 5, Read);
    assert_eq!((price, source), (5 * L1, Hit));
    assert_eq!(caches.touched[SELF as usize].get(), 5, "touched a moment ago");
    let (_, price, source) = caches.touch(word, NEAR, 9, Read);
    assert_eq!((price, source), (TRANSFERS[1] + 8 * (TRANSFERS[1] / 4), Transfer));
}

/// A lock's line after its hand-over is the new holder's alone.
#[test]
fn a_handed_over_line_is_alone() {
    let caches = caches();
    let (word, _, _) = caches.touch(untouched(2), SELF, 1, Write);
    let word = handed_over(word, NEAR, &caches);
    assert_eq!(caches.touch(word, NEAR, 1, Write).1, L1);
    assert_eq!(caches.touch(word, SELF, 1, Read).1, TRANSFERS[1]);
    assert!(is_of(word, 2) && !is_of(word, 0));
}

/// Every field keeps its largest value.
#[test]
fn words_hold_4096_cpus_and_1024_nodes() {
    for state in [State::Untouched, State::Alone, State::Shared] {
        let line = Line { state, last: 4095, other: 4094, home: 1023, stamp: STAMP_MASK };
        assert_eq!(Line::unpack(line.pack()), line);
        let line = Line { state, last: 1, other: 2, home: 3, stamp: 0 };
        assert_eq!(Line::unpack(line.pack()), line);
    }
    let (spec, hardware) = spec_of(4096);
    let caches = Caches::new(&spec, &hardware).expect("4,096 CPUs fit");
    let (word, _, _) = caches.touch(untouched(0), 4095, 1, Write);
    assert_eq!(caches.touch(word, 4095, 1, Write).1, L1);
    assert_eq!(caches.touch(word, 4094, 1, Write).2, Transfer);
}

/// A count of lines may pass the largest stamp.
#[test]
fn ages_pass_the_end_of_the_stamps() {
    let caches = caches();
    let touched = &caches.touched[SELF as usize];
    touched.set((STAMP_MASK << STAMP_SHIFT) + 8);
    let (word, _, _) = caches.touch(untouched(0), SELF, 1, Write);
    touched.set(touched.get() + LINES[0]);
    assert_eq!(caches.touch(word, SELF, 1, Read).1, L2);
}

#[test]
fn impossible_machines_are_refused() {
    let refused = |change: fn(&mut MachineSpec, &mut Hardware), expected: &str| {
        let (mut spec, mut hardware) = spec_of(6);
        change(&mut spec, &mut hardware);
        let BadSpec(message) = Caches::new(&spec, &hardware).expect_err("refused");
        assert!(message.contains(expected), "{message}");
    };
    refused(|spec, _| spec.cpu_node = vec![0; 4097], "4097 CPUs");
    refused(|_, hardware| hardware.llc.truncate(5), "5 entries of `llc` for 6 CPUs");
    refused(|_, hardware| hardware.costs.line_bytes = 96, "lines of 96 bytes");
    refused(|_, hardware| hardware.costs.line_bytes = 8, "lines of 8 bytes");
}

#[test]
fn a_price_is_that_of_the_nearest_distance_below() {
    let prices = [(10, 1), (20, 2), (40, 4)];
    for (distance, price) in [(5, 1), (10, 1), (19, 1), (20, 2), (39, 2), (40, 4), (255, 4)] {
        assert_eq!(price_at(&prices, distance), price, "distance {distance}");
    }
    assert_eq!(price_at(&[], 10), 0);
}
