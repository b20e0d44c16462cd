//! Databases: what a transaction allocates, and where it is freed.

use crate::machine::setup;
use slablab_sim::process::Kind;
use slablab_sim::programs::oltp::{Form, Oltp, Params};
use slablab_sim::programs::repeat::{self, Length, Repeat};
use slablab_sim::record::Recorder;
use slablab_sim::tally::Outcome;

/// A process that repeats an operation once.
const ONE: Repeat = Repeat { tasks: 1, kind: Kind::Process, outside: 0, length: Length::Rounds(1) };

fn run(preset: &str, form: Form, rounds: u64) -> Outcome {
    let repeat = Repeat { tasks: 6, length: Length::Rounds(rounds), ..ONE };
    let params = Params { form, steps: 5, user_us: 20, latency_us: 100, ..Params::default() };
    let outcome = repeat::run(&setup(preset, 4, 2), &repeat, 1, &Recorder::default(), &[], |kernel| {
        Oltp::new(kernel, params)
    });
    outcome.unwrap_or_else(|failed| panic!("{preset} {form:?}: {failed}"))
}

/// Allocations of 60 transactions, and that all are freed.
#[track_caller]
fn check(preset: &str, form: Form, expected: &[(&str, u64)]) -> Outcome {
    let (few, many) = (run(preset, form, 10), run(preset, form, 20));
    assert_eq!(many.messages - few.messages, 60);
    for (name, count) in expected {
        let [few, many] = [&few, &many].map(|outcome| outcome.cache(name).map_or(0, |cache| cache.allocs));
        assert_eq!(many - few, *count, "{preset} {form:?}: {name}");
    }
    for cache in &many.caches {
        assert_eq!(cache.allocs, cache.frees, "{preset} {form:?}: {}", cache.name);
    }
    many
}

/// 5 reads, and a write of the log for three transactions. Interrupts come to all CPUs in their turn.
#[test]
fn direct_reads_are_freed_on_other_cpus() {
    let reads = 60 * 5 + 60 / 3;
    let of_2009 = ["kiocb", "bio-0", "blkdev_requests", "scsi_cmd_cache", "sgpool-8", "kmalloc-1024"];
    let outcome = check("slub@2.6.29", Form::Direct, &of_2009.map(|name| (name, reads)));
    let kiocb = outcome.cache("kiocb").expect("it was used");
    assert!(kiocb.freed_elsewhere * 2 > kiocb.frees, "{kiocb:?}");
    check("slub@6.18", Form::Direct, &["aio_kiocb", "bio-184", "dio"].map(|name| (name, reads)));
}

/// 5 queries, a message each way; the log is written once in a transaction.
#[test]
fn cached_transactions_are_messages_and_a_write_of_the_log() {
    for (preset, bio) in [("slab@2.6.29", "bio-0"), ("slub@6.18", "bio-184")] {
        check(preset, Form::Cached, &[("skbuff_head_cache", 60 * 10), (bio, 60)]);
    }
}
