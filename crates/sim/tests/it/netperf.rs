//! netperf: every object is freed, where the binding says; a run repeats; all engines run.

use crate::machine::setup;
use slablab_platform::CpuId;
use slablab_sim::programs::netperf::{self, Binding, Outcome, Params, Test, bits_per_second};
use slablab_sim::record::Recorder;
use slablab_sim::tally::{CacheTally, Failed};

const MS: u64 = 1_000_000_000;

const STREAM: Params = Params {
    test: Test::Stream,
    bytes: 64,
    binding: Binding::SameSocket,
    rcvbuf: 0,
    warm_up_us: 0,
    window_us: 20_000,
    think_cycles: 50,
};

fn run(preset: &str, netperf: &Params, seed: u64) -> Outcome {
    let outcome = netperf::run(&setup(preset, 4, 2), netperf, seed, &Recorder::default());
    outcome.unwrap_or_else(|failed| panic!("{preset} {netperf:?}: {failed}"))
}

fn heads(outcome: &Outcome) -> &CacheTally {
    outcome.kernel.cache("skbuff_head_cache").expect("datagrams have a head")
}

/// Every object is freed; every datagram is received, lost, or in the buffer when the window ends; what the
/// server received it freed, on its own CPU.
#[track_caller]
fn check(preset: &str, netperf: Params) {
    let outcome = run(preset, &netperf, 1);
    for CacheTally { name, allocs, frees, .. } in &outcome.kernel.caches {
        assert_eq!(allocs, frees, "{preset} {netperf:?}: {name}");
    }
    let Outcome { sent, received, lost, .. } = outcome;
    assert!(received > 100 && received + lost <= sent, "{preset} {netperf:?}: {sent} {received} {lost}");
    let (heads, sends) = (heads(&outcome), if netperf.test == Test::Stream { 1 } else { 2 });
    let marks = heads.allocs - sends * sent;
    assert!((1..=20).contains(&marks), "{preset} {netperf:?}: {marks} end marks");
    let queued = sent - received - lost;
    let buffer = if netperf.rcvbuf == 0 { 212_992 } else { 2 * u64::from(netperf.rcvbuf) };
    assert!(queued * 256 <= buffer, "{preset} {netperf:?}: {queued} in the buffer");
    let here = heads.frees - heads.freed_elsewhere;
    match netperf.binding {
        Binding::SameCpu => assert_eq!(heads.freed_elsewhere, 0, "{preset} {netperf:?}"),
        _ => assert!((lost..lost + marks).contains(&here), "{preset} {netperf:?}: {here} of {lost} lost"),
    }
}

#[test]
fn every_datagram_is_received_lost_or_queued_and_every_object_is_freed() {
    for preset in ["slab@2.6.29", "slub@2.6.29", "slqb@2009-01", "slub@6.18", "slub@7.0"] {
        // A client that shares its CPU sends for a whole slice of up to 30 ms before the server first runs.
        let bindings =
            [(Binding::SameCpu, 100_000), (Binding::SameSocket, 20_000), (Binding::OtherSocket, 20_000)];
        for (binding, window_us) in bindings {
            let stream = Params { binding, window_us, ..STREAM };
            check(preset, stream);
            check(preset, Params { bytes: 4_096, rcvbuf: 32_768, ..stream });
            check(preset, Params { test: Test::RequestResponse, bytes: 1, ..stream });
        }
    }
}

#[test]
fn a_seed_gives_one_outcome_and_another_seed_another() {
    for test in [Test::Stream, Test::RequestResponse] {
        let of = |seed| run("slqb@2009-01", &Params { test, ..STREAM }, seed);
        let first = of(1);
        assert_eq!(first, of(1), "{test:?}");
        assert_ne!(first.kernel.spent, of(2).kernel.spent, "{test:?}");
    }
}

/// Over TCP nothing is lost: what is not received is in the buffers, which hold 131,072 and 87,380 bytes.
#[test]
fn tcp_loses_nothing_and_frees_every_object() {
    for preset in ["slab@2.6.29", "slub@2.6.29", "slqb@2009-01"] {
        for (test, bytes) in [(Test::TcpStream, 4_096), (Test::TcpRequestResponse, 1)] {
            for binding in [Binding::SameCpu, Binding::SameSocket, Binding::OtherSocket] {
                let netperf = Params { test, bytes, binding, ..STREAM };
                let outcome = run(preset, &netperf, 1);
                for CacheTally { name, allocs, frees, .. } in &outcome.kernel.caches {
                    assert_eq!(allocs, frees, "{preset} {netperf:?}: {name}");
                }
                let Outcome { sent, received, lost, .. } = outcome;
                let most = if test == Test::TcpStream { (131_072 + 87_380) / 4_096 } else { 0 };
                assert!(received > 100 && lost == 0, "{preset} {netperf:?}: {received} {lost}");
                assert!(sent.abs_diff(received) <= most, "{preset} {netperf:?}: {sent} {received}");
            }
        }
    }
}

/// Under 2.6.29 the two on one CPU alternate once the client has used up its first slice, and lose nothing.
#[test]
fn a_warm_up_leaves_out_the_first_slice() {
    let netperf = Params { binding: Binding::SameCpu, warm_up_us: 100_000, ..STREAM };
    let outcome = run("slab@2.6.29", &netperf, 1);
    assert_eq!((outcome.lost, outcome.kernel.elapsed / MS), (0, 20));
    assert!(outcome.sent.abs_diff(outcome.received) <= 1, "{} {}", outcome.sent, outcome.received);
    assert!(run("slab@2.6.29", &Params { warm_up_us: 0, ..netperf }, 1).lost > 0);
}

/// A request waits for its response: none is lost, and at most two datagrams live.
#[test]
fn requests_are_answered_one_at_a_time() {
    let outcome = run("slub@6.18", &Params { test: Test::RequestResponse, bytes: 1, ..STREAM }, 1);
    assert_eq!((outcome.sent, outcome.lost), (outcome.received, 0));
    assert!(heads(&outcome).live_max <= 2, "{} live", heads(&outcome).live_max);
}

/// SLUB until 2.6.29 passed what is larger than a page to the page allocator; the lines of such data move
/// from CPU to CPU as those of an object do.
#[test]
fn data_above_a_page_is_of_pages_until_2_6_29_and_its_lines_move() {
    #[track_caller]
    fn check(preset: &str, expected: bool) {
        let outcome = run(preset, &Params { bytes: 4_096, ..STREAM }, 1);
        assert_eq!(outcome.kernel.cache("kmalloc-8192").is_some(), expected, "{preset}");
        let lines = outcome.kernel.lines_moved / outcome.kernel.messages;
        assert!(lines >= 4_096 / 64, "{preset}: {lines} lines for each datagram");
    }
    check("slub@2.6.29", false);
    check("slub@2.6.32", true);
}

#[test]
fn bindings_follow_the_topology() {
    #[track_caller]
    fn check(core: &[u16], socket: &[u16], expected: [Option<u16>; 3]) {
        let mut hardware = setup("slab@2.6.29", core.len() as u16, 1).hardware;
        (hardware.core, hardware.socket) = (core.to_vec(), socket.to_vec());
        let bindings = [Binding::SameCpu, Binding::SameSocket, Binding::OtherSocket];
        let expected = expected.map(|server| server.map(|server| (CpuId(0), CpuId(server))));
        assert_eq!(bindings.map(|binding| binding.cpus(&hardware)), expected, "{core:?} {socket:?}");
    }
    check(&[0, 1, 2, 3], &[0, 0, 1, 1], [Some(0), Some(1), Some(2)]);
    // CPU 1 is the other thread of CPU 0's core.
    check(&[0, 0, 1, 1], &[0, 0, 0, 0], [Some(0), Some(2), None]);
    check(&[0], &[0], [Some(0), None, None]);
}

#[test]
fn a_machine_or_a_buffer_that_does_not_fit_is_refused() {
    let check = |netperf: Params, text: &str| match netperf::run(
        &setup("slab@2.6.29", 1, 1),
        &netperf,
        1,
        &Recorder::default(),
    ) {
        Err(Failed::Machine(found)) => assert_eq!(found, text),
        other => panic!("{netperf:?}: {other:?}"),
    };
    check(STREAM, "the machine has no two CPUs for the binding SameSocket");
    let small = Params { binding: Binding::SameCpu, bytes: 4_096, rcvbuf: 2_048, ..STREAM };
    check(small, "a receive buffer of 2048 holds no 4096 bytes");
}

#[test]
fn throughput_is_of_data() {
    assert_eq!(bits_per_second(1_000, 64, MS), 512_000_000);
    assert_eq!(bits_per_second(1_000, 64, 0), 512_000_000_000_000_000);
}
