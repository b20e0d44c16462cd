//! Partitioned kmalloc: copies of each class, by call site, on a real recording.

use slablab_engines::parse_choice;
use slablab_replay::import::{self, Input};
use slablab_replay::output::replay_answer;
use slablab_replay::replay::outcome::Outcome;
use slablab_replay::replay::{Options, replay};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The bundled recording under each of these engines.
fn outcomes(engines: &[&str], seed: u64) -> (Vec<Outcome>, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/hackbench-6.18.perf.data.xz");
    let input = Input { path: &path, recording: None, formats: None };
    let reader = import::open(input, &mut |_| {}).expect("the recording is right");
    let engines = engines.iter().map(|text| parse_choice(text).expect("a choice")).collect();
    let options = Options { engines, seed, ..Options::default() };
    let answer = replay(&reader, &path, &options, &|_, _| {}).expect("it can be replayed");
    let json = replay_answer(&answer, 0).json().to_string();
    (answer.outcomes, json)
}

/// Allocations by class of normal kmallocs, whatever their copy, and the copies that have any.
fn of_classes(outcome: &Outcome) -> (BTreeMap<u32, u64>, BTreeSet<String>) {
    let (mut classes, mut copies) = (BTreeMap::new(), BTreeSet::new());
    for cache in outcome.caches.iter().filter(|cache| cache.traffic.allocs > 0) {
        let is_copy = cache.name.starts_with("kmalloc-part-");
        if is_copy || slablab_slabs::partition::normal_size(&cache.name).is_some() {
            *classes.entry(cache.geometry.object_size).or_default() += cache.traffic.allocs;
        }
        if is_copy {
            copies.insert(cache.name.clone());
        }
    }
    (classes, copies)
}

#[test]
fn call_sites_divide_each_class() {
    let engines = ["slub@7.2", "slub@7.2,partition=random,partitions=1", "slub@7.2,partition=random"];
    let (outcomes, json) = outcomes(&engines, 0);
    let [whole, one, sixteen] = &outcomes[..] else { panic!("three engines") };
    assert_eq!(of_classes(whole), of_classes(one));
    assert_eq!((whole.peak_frames, whole.end_frames), (one.peak_frames, one.end_frames));
    let (classes, copies) = of_classes(sixteen);
    assert_eq!(classes, of_classes(whole).0, "each allocation has its class");
    assert!(copies.len() > 10, "{copies:?}");
    assert!(copies.iter().any(|name| name.starts_with("kmalloc-part-1")), "{copies:?}");
    assert!(sixteen.peak_frames > whole.peak_frames, "{} {}", sixteen.peak_frames, whole.peak_frames);
    assert_eq!(sixteen.engine().to_string(), "slub@7.2,partition=random");
    assert!(json.contains("stay in the first of 16 kmalloc caches of a class"), "it is said");
}

/// Another boot draws another assignment.
#[test]
fn a_seed_draws_the_assignment() {
    let drawn = |seed| of_classes(&outcomes(&["slub@7.2,partition=random"], seed).0[0]).1;
    assert_eq!(drawn(0), drawn(0));
    assert_ne!(drawn(0), drawn(1));
}
