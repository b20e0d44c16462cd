//! A world with one planted fault fails, and the failing check names the rule.

use slablab_check::broken::*;
use slablab_check::loomed::Orders;
use slablab_check::suite::{Outcome, conform_kit, conform_twisted};
use slablab_check::twist::Twist;
use slablab_check::{Alone, Kit, Limits, Loom, Shape};

type Case = (&'static str, fn() -> Outcome, &'static str);

/// Checks that the first failing check of a broken world is the one that names its fault.
fn check(cases: &[Case]) {
    for (world, run, expected) in cases {
        let outcome = run();
        let findings = outcome.broken.iter().map(|(name, finding)| format!("\n    {name}: {finding}"));
        println!("{world}:{}", findings.collect::<String>());
        assert_eq!(outcome.first(), Some(*expected), "{world} fails first in another check");
    }
}

macro_rules! cases {
    ($run:ident: $($world:ident => $check:literal,)*) => {
        &[$((stringify!($world), $run::<$world>, $check),)*]
    };
}

fn twisted<T: Twist<Alone>>() -> Outcome {
    conform_twisted::<T>(Shape::MEMORYLESS)
}

/// Three CPUs, the last two on nodes without memory.
fn memory_on_one<T: Twist<Alone>>() -> Outcome {
    conform_twisted::<T>(Shape { cpu_node: &[0, 1, 2], node_frames: &[8, 0, 0], ..Shape::ONE_NODE })
}

fn weak<O: Orders>() -> Outcome {
    conform_kit::<Loom<O>>(Shape::TWO_NODES, Limits::QUICK)
}

fn kit<K: Kit>() -> Outcome {
    conform_kit::<K>(Shape::TWO_NODES, Limits::QUICK)
}

#[test]
fn a_planted_fault_fails_in_the_check_that_names_it() {
    check(cases! { memory_on_one:
        MixedMemory => "topology.memory_node_is_nearest",
    });
    check(cases! { twisted:
        LostMemory => "topology.cpu_nodes",
        FarMemory => "topology.memory_node_is_nearest",
        DistanceFromZero => "topology.distances",
        CrookedNode => "topology.node_frames",
        SharedFrame => "memory.frames_distinct",
        SharedMapWord => "memory.maps",
        FirstFrameOnly => "memory.address_locate",
        SharedLink => "memory.links",
        WideHalf => "memory.halves",
        WideFill => "memory.bytes",
        SharedMark => "memory.marks",
        DirtyStorage => "memory.storage",
        ClockBack => "time.now_never_back",
        NotRandom => "time.random_varies",
        DeferEarly => "time.not_early",
        DeferOnFirst => "time.in_order",
        NoGrace => "time.grace_period",
        CountLost => "time.counts",
        Fifo => "lists.last_in_first_out",
        LimitOffByOne => "lists.limit",
        TagIgnored => "lists.tag_met",
        TagLost => "lists.tag_met",
        OneList => "lists.private",
        FullArray => "arrays.bounds",
        LocalShares => "slots.local_excludes_hot",
        ClaimLive => "slots.claim_live",
        ClaimNever => "slots.claim_offline",
        AskLost => "slots.ask",
        SlotCountLost => "slots.counts",
        RefusalCounted => "slots.hot_counts",
    });
}

#[test]
fn a_weak_ordering_fails_in_the_race_that_needs_it() {
    check(cases! { weak:
        RelaxedExchange => "race.exchange_releases",
        ReleaseExchange => "race.exchange_acquires",
        RelaxedLoad => "race.word_release",
        RelaxedStore => "race.word_release",
    });
}

#[test]
fn a_world_that_compares_half_a_word_fails() {
    check(cases! { kit:
        HalfExchange => "words.compare_exchange",
    });
}
