//! Traces of allocations: the functions that SLAB's events show, in the order of the mail of 2009.

use crate::machine::setup;
use slablab_sim::kernel::with_recorded_kernel;
use slablab_sim::objects::Object;
use slablab_sim::record::Recorder;
use slablab_sim::trace::Trace;

/// The trace of `count` buffer_heads that one task allocates on the first of two nodes; `memory` is that of
/// each node.
fn traced(preset: &str, memory: [u64; 2], count: u32) -> Trace {
    let mut setup = setup(preset, 2, 2);
    setup.spec.memoryless_nodes = true;
    setup.spec.nodes.iter_mut().zip(memory).for_each(|(node, bytes)| node.bytes = bytes);
    let recorder = Recorder::of_allocations(1_000);
    let result = with_recorded_kernel(&setup, 1, &recorder, |kernel| {
        kernel.start(kernel.new_process(), None, move |task| {
            task.pin(slablab_platform::CpuId(0));
            task.kernel.mark();
            (0..count).map(|_| task.alloc(Object::BufferHead)).for_each(drop);
        });
        kernel.run()
    });
    result.expect("the machine has memory");
    recorder.take_trace().expect("the recorder traces")
}

/// Functions, each with its `misc`, of the allocation at place `at`.
fn functions(trace: &Trace, at: usize) -> Vec<String> {
    let begins = |line: &&slablab_sim::trace::Line| line.function == "__cache_alloc" && line.misc == 0;
    let first = trace.lines.iter().enumerate().filter(|(_, line)| begins(line)).nth(at).map(|(at, _)| at);
    let first = first.expect("so many allocations");
    let end = trace.lines[first..].iter().position(|line| line.function == "__cache_alloc" && line.misc == 1);
    let lines = &trace.lines[first..=first + end.expect("the allocation ends")];
    lines.iter().map(|line| format!("{} {}", line.function, line.misc)).collect()
}

#[test]
fn a_hit_enters_three_functions_and_a_refill_two_more() {
    let trace = traced("slab@2.6.29", [1 << 30, 1 << 30], 100);
    let hit = [
        "__cache_alloc 0",
        "__do_cache_alloc 0",
        "____cache_alloc 0",
        "____cache_alloc 1",
        "__do_cache_alloc 1",
        "__cache_alloc 1",
    ];
    assert_eq!(functions(&trace, 1), hit);
    let refill = [
        "__cache_alloc 0",
        "__do_cache_alloc 0",
        "____cache_alloc 0",
        "cache_alloc_refill 0",
        "cache_grow 0",
        "cache_grow 1",
        "cache_alloc_refill 1",
        "____cache_alloc 1",
        "__do_cache_alloc 1",
        "__cache_alloc 1",
    ];
    assert_eq!(functions(&trace, 0), refill);
    let nodes = |trace: &slablab_sim::trace::Trace, function: &str| -> Vec<Option<u16>> {
        let lines = trace.lines.iter().filter(|line| line.function == function);
        lines.map(|line| line.node.map(|node| node.0)).collect()
    };
    // The node that it asks for and where the slab is, at its begin and at its end.
    assert_eq!(nodes(&trace, "cache_grow")[..2], [Some(0), Some(0)]);
    // A CPU of node 0, which has no memory: both attempts are there, what the search finds on node 1.
    let far = traced("slab@2.6.29", [0, 1 << 30], 2);
    assert_eq!(nodes(&far, "cache_grow")[..2], [Some(0), Some(0)]);
    let (first, last) = (nodes(&far, "____cache_alloc_node"), nodes(&far, "fallback_alloc"));
    assert_eq!((&first[..3], &last[..2]), (&[Some(0), Some(1), Some(1)][..], &[None, Some(1)][..]));
    let total = trace.total();
    // Refills of 60, of which the first has 36 objects in its slab; the second grows the cache again.
    assert_eq!((total.allocations, total.depth_max, total.fallbacks), (100, 5, 0));
    assert_eq!(total.calls, 3 * 100 + total.refills + total.grows);
    assert!(total.shortest <= total.time / 100 && total.time / 100 <= total.longest, "{total:?}");
}

#[test]
fn a_cpu_without_memory_of_its_own_enters_nine() {
    let trace = traced("slab@2.6.29", [0, 1 << 30], 100);
    let expected = [
        "__cache_alloc 0",
        "__do_cache_alloc 0",
        "____cache_alloc 0",
        "cache_alloc_refill 0",
        "cache_grow 0",
        "cache_grow 2",
        "cache_alloc_refill 3",
        "____cache_alloc 1",
        "____cache_alloc_node 0",
        "cache_grow 0",
        "cache_grow 2",
        "fallback_alloc 0",
        "____cache_alloc_node 0",
        "____cache_alloc_node 1",
        "fallback_alloc 1",
        "__do_cache_alloc 1",
        "__cache_alloc 1",
    ];
    assert_eq!(functions(&trace, 1), expected);
    let total = trace.total();
    assert_eq!((total.refills, total.fallbacks), (100, 100));
    // Each also tried to grow its own node twice, and a few made a slab on the other.
    assert!((200..210).contains(&total.grows), "{total:?}");
    let node = trace.lines.iter().find(|line| line.function == "fallback_alloc" && line.misc == 1);
    assert_eq!(node.and_then(|line| line.node), Some(slablab_platform::NodeId(1)));
    assert_eq!(traced("slab@2.6.29,memoryless=nearest", [0, 1 << 30], 100).total().fallbacks, 0);
}

/// A trace changes no time: events are heard, not charged.
#[test]
fn a_traced_run_takes_as_long_as_another() {
    let clock = |recorder: &Recorder| {
        with_recorded_kernel(&setup("slab@2.6.29", 2, 1), 1, recorder, |kernel| {
            kernel.start(kernel.new_process(), None, |task| {
                (0..1_000).map(|_| task.alloc(Object::BufferHead)).for_each(|held| task.free(held));
            });
            kernel.run()?;
            Ok(slablab_model::Timed::latest())
        })
    };
    let traced = clock(&Recorder::of_allocations(10)).expect("the machine has memory");
    assert_eq!(clock(&Recorder::default()), Ok(traced));
}
