//! The order of slabs on lists, `free_limit`, and colours.
//!
//! Most cases have arrays of one object, so every operation except the last free reaches the slabs. A slab
//! has four objects of 1024 bytes: 0 to 3 are in the first slab, 4 to 7 in the second.

use super::*;
use slablab_platform::Frames;

const NARROW: &str = "slab@2.6.29,limit=1,shared=0,reap_ms=0";

#[test]
fn allocation_prefers_partial_slabs_in_list_order() {
    fn case(name: &'static str, presets: &'static [&'static str], steps: &'static [Step]) {
        let machine = one_node();
        check(&Case { name, machine, presets, size: 1024, steps, expected: &[] });
    }
    let narrow = &[NARROW, "slab@6.1,limit=1,shared=0,reap_ms=0"];
    case(
        "a partial slab before a free one",
        narrow,
        // The first slab is empty. The second slab has object 4 back, and object 5 is in the array.
        &[Alloc(0, 8), Free(0, 6), Same(0, 5), Same(0, 4), SameSlab(0, 0)],
    );
    case(
        "a slab in use stays first",
        narrow,
        // Two objects are back in the first slab and two in the second. The second got one last, so it is
        // behind the first. Object 8 is in the array.
        &[
            Alloc(0, 12),
            FreeNth(0, 0),
            FreeNth(0, 4),
            FreeNth(0, 1),
            FreeNth(0, 5),
            FreeNth(0, 8),
            Same(0, 8),
            Same(0, 1),
            Same(0, 0),
            Same(0, 5),
        ],
    );
    case(
        "among free slabs, the one that was emptied last",
        &[
            "slab@2.6.29,limit=4,batchcount=4,shared=0,reap_ms=0",
            "slab@6.1,limit=4,batchcount=4,shared=0,reap_ms=0",
        ],
        // A batch of four is a slab. The objects of the third slab stay in the array.
        &[Alloc(0, 12), Free(0, 12), Alloc(0, 4), SameSlab(0, 4)],
    );
}

/// If a node has more free objects than (1 + CPUs of the node) * batchcount + objects per slab, an emptied
/// slab is returned.
#[test]
fn free_limit_decides_when_an_emptied_slab_is_returned() {
    fn case(name: &'static str, cpus: u16, steps: &'static [Step], expected: &'static [Expected]) {
        check(&Case {
            name,
            machine: MachineSpec::uniform(cpus, 1, 256 * MIB),
            presets: &["slab@2.6.29,limit=2,batchcount=2,shared=0,reap_ms=0"],
            size: 1024,
            steps,
            expected,
        });
    }
    // (1 + 1) * 2 + 4 = 8: eight free objects may stay, but not nine.
    case("at the limit", 1, &[Alloc(0, 12), Free(0, 10)], &[Slabs(3)]);
    // 10 and 11 return to the third slab before the first two slabs become empty: ten free objects, of which
    // 8 or 10 may stay.
    case("two CPUs", 2, &[Alloc(0, 12), FreeNewest(0, 2), Free(0, 10)], &[Slabs(3)]);
    case(
        "one of two CPUs goes offline",
        2,
        &[Alloc(0, 12), Down(1), FreeNewest(0, 2), Free(0, 10)],
        &[Slabs(2)],
    );
    // The limit is computed before the CPU counts as the node's.
    case("and online again", 2, &[Alloc(0, 12), Down(1), Up(1), FreeNewest(0, 2), Free(0, 10)], &[Slabs(2)]);
}

/// Each node's slabs use its next colour, including the slabs allocated by a CPU without memory. 13 objects
/// of 288 bytes leave room for three colours.
#[test]
fn slabs_differ_in_colour() {
    for machine in [one_node(), memoryless()] {
        Machine::new(machine).expect("the spec is right").enter(|| {
            let mut heap = Heap::new(OLD, &CacheSpec::of_size(288));
            heap.step(Alloc(0, 13 * 6));
            let mut starts = std::collections::BTreeMap::new();
            for object in &heap.ever {
                let (frame, offset) = Model::locate(*object);
                let first = starts.entry(frame).or_insert(offset);
                *first = offset.min(*first);
            }
            let mut starts: Vec<u32> = starts.into_values().collect();
            starts.sort();
            let front = (48u32 + 13 * 4).next_multiple_of(8);
            let expected = [0, 0, 64, 64, 128, 128].map(|colour| front + colour);
            assert_eq!(starts, expected, "two slabs of each colour");
            heap.end();
        });
    }
}
