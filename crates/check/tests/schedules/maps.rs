//! The protocol of a slab's map by itself: two CPUs free an object each, and a third takes what the slab's
//! count says is free. The count comes after the bit. Counted first, a CPU finds fewer bits than the count
//! says, and one that sees every object counted gives the slab back while a bit is still to be set.

use slablab_check::kit::{Job, Kit};
use slablab_check::{Checked, Limits, Loom, Shape, Shuttle, effort, explore};
use slablab_platform::{CpuId, Frames, NodeId, Pfn, Platform, Word};

/// What a free does first.
#[derive(Clone, Copy)]
enum First {
    Bit,
    Count,
}

const SHAPE: Shape = Shape { cpu_node: &[0, 0, 0], ..Shape::ONE_NODE };
/// Objects in the slab; all are out at first.
const OBJECTS: u32 = 2;

/// Changes a word until no other CPU did at the same time; returns what it was.
fn change(word: &impl Word, to: impl Fn(u64) -> u64) -> u64 {
    let mut before = word.load_acquire();
    while let Err(found) = word.compare_exchange(before, to(before)) {
        before = found;
    }
    before
}

fn slab<P: Platform>() -> Pfn {
    P::node_frames(NodeId(0)).0
}

fn free<P: Platform>(object: u32, first: First) {
    let set = || P::with_map(slab::<P>(), 0, |map| change(map, |bits| bits | 1 << object));
    let count = || P::with_frame(slab::<P>(), |frame| change(&frame.slab, |free| free + 1));
    match first {
        First::Bit => (set(), count()),
        First::Count => (count(), set()),
    };
}

/// Takes all objects that the count says are free.
fn take<P: Platform>() {
    let free = P::with_frame(slab::<P>(), |frame| frame.slab.load_acquire());
    for _ in 0..free {
        let bits = P::with_map(slab::<P>(), 0, |map| change(map, |bits| bits & bits.saturating_sub(1)));
        assert!(bits > 0, "a free object has no bit");
        P::with_frame(slab::<P>(), |frame| change(&frame.slab, |free| free - 1));
    }
    // Counted again: a slab without objects in use has all bits.
    let free = P::with_frame(slab::<P>(), |frame| frame.slab.load_acquire());
    let bits = P::with_map(slab::<P>(), 0, |map| map.load_acquire());
    assert!(
        u64::from(bits.count_ones()) >= free,
        "a free object has no bit: {free} are free, {} bits set",
        bits.count_ones()
    );
}

fn check<K: Kit>(first: First, limits: Limits, expected: Option<&str>) {
    let explored = explore::<K>(limits, move || {
        Checked::<K>::enter(SHAPE, || {
            // The CPU that makes a slab writes its map first.
            Checked::<K>::with_map(slab::<Checked<K>>(), 0, |map| map.store(0));
            let mut jobs: Vec<(CpuId, Job)> = vec![(CpuId(2), Box::new(take::<Checked<K>>))];
            for object in 0..OBJECTS {
                jobs.push((CpuId(object as u16), Box::new(move || free::<Checked<K>>(object, first))));
            }
            Checked::<K>::together(jobs);
        });
    });
    match (explored, expected) {
        (Ok(explored), None) => assert!(explored.executions > 1, "only one schedule was explored"),
        (Err(found), Some(expected)) => assert!(found.contains(expected), "{found}"),
        (Ok(explored), Some(_)) => panic!("{} schedules found nothing", explored.executions),
        (Err(found), None) => panic!("{found}"),
    }
}

#[test]
fn loom_maps() {
    check::<Loom>(First::Bit, Limits::QUICK, None);
    check::<Loom>(First::Count, Limits::QUICK, Some("a free object has no bit"));
}

#[test]
fn shuttle_maps() {
    let limits = Limits { executions: effort(1_000) as usize, ..Limits::QUICK };
    check::<Shuttle>(First::Bit, limits, None);
    check::<Shuttle>(First::Count, limits, Some("a free object has no bit"));
}
