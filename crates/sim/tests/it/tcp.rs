//! TCP over loopback: all bytes arrive, every object is freed, buffers limit what is under way; tbench and
//! netio on it.

use crate::machine::setup;
use slablab_sim::kernel::with_kernel;
use slablab_sim::net::tcp;
use slablab_sim::net::tcp::loopback::Loopback;
use slablab_sim::process::{Children, Kind};
use slablab_sim::programs::netio::{self, Netio};
use slablab_sim::programs::tbench::{self, Carries, MIX, Operation, Params};
use slablab_sim::record::Recorder;
use slablab_sim::tally::{CacheTally, Outcome};
use std::cell::Cell;
use std::rc::Rc;

const MS: u64 = 1_000_000_000;
const PRESETS: [&str; 5] = ["slab@2.6.29", "slub@2.6.29", "slqb@2009-01", "slub@6.1", "slub@6.18"];

const TBENCH: Params = Params {
    clients: 3,
    warm_up_us: 5_000,
    window_us: 15_000,
    think_cycles: 2_000,
    serve_cycles: 200,
    tcp_percent: 100,
};
const NETIO: Netio = Netio { block: 4_096, blocks: 3_000, think: 200, tcp_percent: 100 };

fn tbench(preset: &str, tbench: Params, seed: u64) -> tbench::Outcome {
    let outcome = tbench::run(&setup(preset, 4, 2), &tbench, seed, &Recorder::default());
    outcome.unwrap_or_else(|failed| panic!("{preset} {tbench:?}: {failed}"))
}

fn netio(preset: &str, netio: Netio) -> Outcome {
    let outcome = netio::run(&setup(preset, 4, 2), &netio, 1, &Recorder::default());
    outcome.unwrap_or_else(|failed| panic!("{preset} {netio:?}: {failed}"))
}

#[track_caller]
fn all_is_freed(preset: &str, outcome: &Outcome) {
    for CacheTally { name, allocs, frees, .. } in &outcome.caches {
        assert_eq!(allocs, frees, "{preset}: {name}");
    }
}

fn allocs(outcome: &Outcome, cache: &str) -> u64 {
    outcome.cache(cache).map_or(0, |cache| cache.allocs)
}

/// A sender of `writes` of `bytes` bytes each and a reader that begins when the sender waits: bytes that were
/// under way by then, and bytes read in all.
fn under_way(preset: &str, bytes: u32, writes: u32) -> (u64, u64) {
    let counts: Rc<[Cell<u64>; 2]> = Rc::default();
    let result = counts.clone();
    let done = with_kernel(&setup(preset, 2, 1), 1, |kernel| {
        kernel.start(kernel.new_process(), None, move |main| {
            let (children, loopback) = (Rc::new(Children::default()), Loopback::new());
            let (from, to) = tcp::pair(main, &loopback, 0, true);
            let (end, sent) = (from.clone(), counts.clone());
            children.start(main, Kind::Process, move |task| {
                for _ in 0..writes {
                    task.syscall(|| end.send(task, bytes));
                    sent[0].set(sent[0].get() + u64::from(bytes));
                }
            });
            children.start(main, Kind::Process, move |task| {
                task.sleep(200 * MS);
                let at_first = counts[0].get();
                let mut left = u64::from(bytes) * u64::from(writes);
                while left > 0 {
                    left -= u64::from(task.syscall(|| to.receive(task, 5_000)));
                    counts[1].set(counts[1].get() + 1);
                }
                counts[0].set(at_first);
            });
            main.syscall(|| children.wait(main));
            tcp::close(main, &from);
            loopback.close(main);
        });
        kernel.run()
    });
    done.unwrap_or_else(|failed| panic!("{preset}: {failed}"));
    (result[0].get(), result[1].get())
}

/// Until 3.6 a write of 4,000 bytes counts 4,096, an sk_buff of 256 and 480 bytes in a page. 17 are sent:
/// with 13 of them unread the window ends at 70,423 bytes, with 14 it is closed. The last is not
/// acknowledged. 30 more fill segments of 16,384 bytes, which count 832 more, until 131,072 are full.
#[test]
fn a_sender_waits_for_room_and_all_bytes_arrive() {
    let (waiting, _) = under_way("slab@2.6.29", 4_000, 100);
    assert_eq!(waiting, (17 + 30) * 4_000);
    let (waiting, _) = under_way("slub@6.18", 60_000, 200);
    assert_eq!(waiting, (43 + 102) * 60_000, "40 segments of 65,483 and 896 more, and 6,291,456 bytes");
    assert_eq!(under_way("slab@2.6.29", 16_384, 3).1, 10, "a read goes on with the next segment");
}

#[test]
fn tbench_frees_every_object_and_takes_one_head_and_one_clone_for_each_send() {
    for preset in PRESETS {
        let tbench::Outcome { kernel, bytes } = tbench(preset, TBENCH, 1);
        all_is_freed(preset, &kernel);
        assert!(kernel.messages > 500 && bytes / kernel.messages > 4_096, "{preset}: {bytes}");
        let (clones, acks) = (allocs(&kernel, "skbuff_fclone_cache"), allocs(&kernel, "skbuff_head_cache"));
        let heads = match preset {
            "slub@6.18" => allocs(&kernel, "skbuff_small_head"),
            "slub@6.1" => allocs(&kernel, "kmalloc-1k"),
            _ => allocs(&kernel, "size-4096") + allocs(&kernel, "kmalloc-4096"),
        };
        println!("{preset}: {} operations, {clones} clones, {heads} heads, {acks} acks", kernel.messages);
        assert!(heads >= clones, "{preset}: {heads} heads for {clones} clones");
        let elsewhere = kernel.cache("skbuff_fclone_cache").map_or(0, |cache| cache.freed_elsewhere);
        println!("{preset}: {elsewhere} clones freed on another CPU");
        if preset.ends_with("2.6.29") || preset.starts_with("slqb") {
            // A reader that was asleep takes the packet itself, so its own segment is freed on its CPU.
            assert!(elsewhere * 20 < clones, "{preset}: {elsewhere} of {clones} clones freed elsewhere");
        }
        assert!(acks * 4 < clones, "{preset}: {acks} acknowledgements without data for {clones} clones");
    }
}

#[test]
fn netio_fills_segments_and_frees_every_object() {
    for preset in PRESETS {
        let outcome = netio(preset, NETIO);
        all_is_freed(preset, &outcome);
        assert!(outcome.messages >= NETIO.blocks, "{preset}: {} reads", outcome.messages);
        let segments = allocs(&outcome, "skbuff_fclone_cache");
        let (all, fewest) = (NETIO.blocks, NETIO.blocks / 16);
        assert!((fewest..all / 2).contains(&segments), "{preset}: {segments} segments of {all} blocks");
    }
}

#[test]
fn a_seed_gives_one_tbench_and_another_seed_another() {
    let of = |seed| tbench("slqb@2009-01", TBENCH, seed);
    let first = of(1);
    assert_eq!(first, of(1));
    assert_ne!(first.kernel.spent, of(2).kernel.spent);
}

#[test]
fn operations_are_drawn_by_their_shares() {
    let all: u32 = MIX.iter().map(|row| row.1).sum();
    // The first number draws the operation, all others are as large as they can be.
    let largest = |at: u32| {
        let mut first = Some(u64::from(at));
        Operation::draw(|below| first.take().unwrap_or(below - 1))
    };
    let of = |request, response, counts| Operation { request, response, counts };
    assert_eq!(largest(0), of(74 + 120, 87, 0), "create");
    assert_eq!(largest(999), largest(0));
    assert_eq!(largest(1_000), of(47, 39, 0), "close");
    assert_eq!(largest(all - 1), of(51, 39, 0), "unlock");
    let write: u32 = MIX.iter().take_while(|row| row.4 != Carries::Write).map(|row| row.1).sum();
    assert_eq!(largest(write), of(59 + 65_536, 55, 65_536));
    assert_eq!(largest(write + 500), of(59, 59 + 65_536, 65_536), "read");
}
