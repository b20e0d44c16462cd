//! mkfs: what a run writes, the shares of the mail of 2009, and who runs out of memory.

use crate::machine::setup;
use slablab_platform::Event;
use slablab_sim::programs::mkfs::{self, Interrupts, Params};
use slablab_sim::record::Recorder;
use slablab_sim::tally::{Failed, Outcome};

const MKFS: Params = Params {
    processes: 4,
    mib: 256,
    block_bytes: 1_024,
    dirty_kib: 1_024,
    interrupts: Interrupts::Disk,
    latency_us: 1_000,
};

/// A run on two nodes of two CPUs each, which all have memory, or none but a third node.
fn run(preset: &str, has_local: bool, mib: u64) -> Result<Outcome, Failed> {
    let mut setup = setup(preset, 4, 2);
    setup.spec.memoryless_nodes = true;
    let memory = if has_local { [mib << 20, mib << 20, 0] } else { [0, 0, mib << 20] };
    setup.spec.distance = vec![vec![10, 20, 20], vec![20, 10, 20], vec![20, 20, 10]];
    setup.spec.nodes = memory.map(|bytes| slablab_model::NodeSpec { bytes }).into();
    mkfs::run(&setup, &MKFS, 1, &Recorder::default())
}

/// 4 MiB of inodes and two pages beside them for each process, four buffers a page; each is a bio once.
#[test]
fn each_block_is_a_buffer_and_a_bio_and_all_are_freed() {
    let outcome = run("slub@2.6.29", true, 1_024).expect("the machine has memory");
    // Groups 0 and 1 each have two pages of superblock and descriptors, two of bitmaps and 512 of inodes.
    let blocks = 4 * 2 * (2 + 2 + 512) * 4;
    for (name, allocs) in [("buffer_head", blocks), ("bio-0", blocks)] {
        let cache = outcome.cache(name).unwrap_or_else(|| panic!("no {name}"));
        assert_eq!((cache.allocs, cache.frees), (allocs, allocs), "{name}");
    }
    let requests = outcome.cache("blkdev_requests").expect("requests").allocs;
    // A process writes back each MiB, and at the end; a request has at most 512 KiB.
    assert!((4 * 8..4 * 32).contains(&requests), "{requests}");
    assert_eq!(outcome.messages, blocks / 4);
}

/// Refills, attempts to make a slab, and searches of other nodes, over all caches.
fn counts(outcome: &Outcome) -> [u64; 3] {
    [Event::SlabAllocMiss, Event::SlabGrowTry, Event::SlabFallback].map(|event| {
        let events = outcome.caches.iter().flat_map(|cache| &cache.events);
        events.filter(|(of, _)| *of == event).map(|(_, count)| count).sum()
    })
}

#[test]
fn without_local_memory_each_refill_grows_twice_and_falls_back() {
    let [refills, grows, fallbacks] = counts(&run("slab@2.6.29", true, 1_024).expect("memory"));
    assert!(refills > 100 && grows < refills && fallbacks == 0, "{refills} {grows} {fallbacks}");
    let [refills, grows, fallbacks] = counts(&run("slab@2.6.29", false, 1_024).expect("memory"));
    assert_eq!(refills, fallbacks);
    // Published: 2.001.
    assert!((2_000..2_100).contains(&(grows * 1_000 / refills)), "{refills} {grows}");
}

/// SLQB of January 2009 takes a page for each object of a CPU without memory: 16,512 buffers and as many
/// bios of 4 KiB each. With the cures of the thread, and under SLAB, 96 MiB are enough.
#[test]
fn slqb_runs_out_of_memory_where_cpus_have_none() {
    let Err(Failed::OutOfMemory { events, caches }) = run("slqb@2009-01", false, 96) else {
        panic!("slqb@2009-01 has enough memory")
    };
    assert!(events > 10_000, "{events}");
    let buffers = caches.iter().find(|cache| cache.0 == "buffer_head").expect("a row of buffer_head");
    assert!(buffers.2 / buffers.1 > 2_000, "a page for each or two: {buffers:?}");
    for preset in ["slqb@2009-01,memoryless=nearest", "slqb@2009-09", "slab@2.6.29"] {
        assert!(run(preset, false, 96).is_ok(), "{preset} runs out of memory");
    }
}
