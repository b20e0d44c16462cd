//! A recording's tasks do again what was recorded, and wait for each other.

use super::machine::setup;
use slablab_platform::Event;
use slablab_sim::heap::Named;
use slablab_sim::programs::recording::{Outcome, Params, Placement, run};
use slablab_sim::record::Recorder;
use slablab_sim::recorded::{Script, ScriptTask, Step, What};
use slablab_sim::tally::Failed;
use slablab_slabs::CacheSpec;
use std::sync::Arc;

const LOAD: Params = Params {
    file: Err(String::new()),
    placement: Placement::Scheduled,
    ahead: 0,
    gap_max_us: 10,
    compute_percent: 100,
};

/// Tasks on CPU 0, 1, .. that allocate and free: `(task, object, gap, what)` in the recording's order.
fn script(steps: &[(usize, u32, u32, What)]) -> Arc<Script> {
    let tasks = steps.iter().map(|step| step.0 + 1).max().unwrap_or(0);
    let mut script = Script {
        caches: vec![Named { name: "filp".into(), spec: CacheSpec::of_size(192) }],
        tasks: (0..tasks).map(|task| ScriptTask { name: format!("t-{task}"), steps: Vec::new() }).collect(),
        objects: steps.iter().map(|step| step.1 + 1).max().unwrap_or(0),
        steps: steps.len() as u32,
    };
    for (place, (task, object, gap_ns, what)) in (0..).zip(steps.iter().copied()) {
        script.tasks[task].steps.push(Step { place, object, gap_ns, cpu: task as u16, what });
    }
    Arc::new(script)
}

/// A task allocates `count` objects, another frees them.
fn handed_over(count: u32, gap: u32) -> Arc<Script> {
    let steps: Vec<_> = (0..count)
        .flat_map(|object| [(0, object, gap, What::Alloc(0)), (1, object, 0, What::Free)])
        .collect();
    script(&steps)
}

fn outcome(script: &Arc<Script>, load: &Params) -> Outcome {
    run(&setup("slub@6.18", 2, 1), script, load, 1, &Recorder::default())
        .unwrap_or_else(|failed| panic!("{failed}"))
}

/// The task that frees waits for each object; what is computed is computed; objects are in the recording's
/// cache, and no object of the kernel's own tables is.
#[test]
fn a_free_waits_for_its_allocation() {
    let found = outcome(&handed_over(500, 2_000), &LOAD);
    let cache = found.kernel.cache("filp").expect("the recording's cache");
    assert_eq!((cache.allocs, cache.frees, found.kernel.caches.len()), (500, 500, 1));
    assert!(found.object_waits > 100, "{} waits", found.object_waits);
    assert_eq!(found.kernel.messages, 1_000);
    assert!(found.kernel.elapsed >= 490 * 2_000_000, "{} ps", found.kernel.elapsed);
    assert!(found.kernel.elapsed < 4 * 500 * 2_000_000, "{} ps", found.kernel.elapsed);
    let half = outcome(&handed_over(500, 2_000), &Params { compute_percent: 50, ..LOAD });
    assert!(half.kernel.elapsed < found.kernel.elapsed * 9 / 10);
    assert_eq!(half, outcome(&handed_over(500, 2_000), &Params { gap_max_us: 1, ..LOAD }));
    assert!(found.operations > 0 && found.operations < found.kernel.elapsed);
}

/// A task that is bound to be near the others does not fill memory: fewer objects are live at once.
#[test]
fn a_task_is_at_most_so_far_ahead() {
    let live = |ahead| {
        let steps: Vec<_> = (0..2_000)
            .flat_map(|object| [(0, object, 0, What::Alloc(0)), (1, object, 5_000, What::Free)])
            .collect();
        let load = Params { placement: Placement::Recorded, ahead, ..LOAD };
        outcome(&script(&steps), &load).kernel.cache("filp").expect("the cache").live_max
    };
    assert!(live(0) > 1_000, "{}", live(0));
    // Half of the steps between the two tasks are allocations.
    assert!((20..=51).contains(&live(100)), "{}", live(100));
    assert!(live(1) <= 1, "{}", live(1));
}

/// Pinned as recorded each free is on the other CPU, or on the same one; a machine without that CPU is
/// refused.
#[test]
fn tasks_run_where_they_were_recorded() {
    let load = Params { placement: Placement::Recorded, ..LOAD };
    let found = outcome(&handed_over(300, 100), &load);
    let cache = found.kernel.cache("filp").expect("the cache");
    assert_eq!(cache.freed_elsewhere, 300);
    let mut on_one = Script::clone(&handed_over(300, 100));
    on_one.tasks[1].steps.iter_mut().for_each(|step| step.cpu = 0);
    let found = outcome(&Arc::new(on_one), &load);
    assert_eq!(found.kernel.cache("filp").expect("the cache").freed_elsewhere, 0);
    let refused = run(&setup("slub@6.18", 1, 1), &handed_over(3, 0), &load, 1, &Recorder::default());
    assert!(matches!(&refused, Err(Failed::Machine(why)) if why.contains("of 2 CPUs")), "{refused:?}");
}

/// A request of kmalloc goes to its class, one above the classes to pages; the seed alone does not make two
/// runs differ in what is done.
#[test]
fn requests_go_to_their_classes() {
    let steps = [(0, 0, 0, What::Kmalloc(100)), (0, 1, 0, What::Kmalloc(1 << 20)), (0, 0, 0, What::Free)];
    let found = outcome(&script(&steps), &LOAD);
    let allocs = |name: &str| found.kernel.cache(name).map_or(0, |cache| cache.allocs);
    assert_eq!((allocs("kmalloc-128"), found.kernel.caches.len()), (1, 1));
    let events = &found.kernel.cache("kmalloc-128").expect("the class").events;
    assert!(events.iter().any(|(event, count)| *event == Event::AllocSlowpath && *count == 1), "{events:?}");
}
