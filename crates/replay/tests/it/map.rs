//! Slab maps: what they show at the end is what the engine counts, and their events are the trace's.

use slablab_platform::Event;
use slablab_replay::import::{self, Input};
use slablab_replay::map::{SlabMap, slab_map};
use slablab_replay::output::map_page;
use slablab_replay::replay::{Options, Replay, replay};
use slablab_slabs::preset::Choice;
use slablab_trace::Reader;
use std::path::{Path, PathBuf};

fn open() -> (Reader, PathBuf) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/hackbench-6.18.perf.data.xz");
    let reader = import::open(Input { path: &path, recording: None, formats: None }, &mut |_| {});
    (reader.expect("the recording is right"), path)
}

fn map(engines: &[&str], cache: Option<&str>) -> Result<(SlabMap, Replay), String> {
    let (reader, path) = open();
    let engines = engines.iter().map(|text| Choice::parse(text).expect("a preset").into()).collect();
    let options = Options { engines, ..Options::default() };
    let answer = replay(&reader, &path, &options, &|_, _| {}).expect("it can be replayed");
    let map = slab_map((&reader, &path), &options, &answer, cache, &|_, _| {});
    map.map(|map| (map, answer)).map_err(|error| error.to_string())
}

/// Numbers of cells in each state at the end.
fn at_end(map: &SlabMap, engine: usize) -> [u64; 7] {
    let mut counts = [0; 7];
    map.movies[engine].at(u64::MAX).iter().for_each(|cell| counts[usize::from(cell.0)] += 1);
    counts
}

/// The map of one cache under one engine: its slabs, its live objects and what its CPUs park are the
/// engine's own numbers. `is_bound`: the map shows some parked objects as free in their slabs (docs/map.md).
#[track_caller]
fn check(engine: &str, cache: &str, is_bound: bool) {
    let (map, answer) = map(&[engine], Some(cache)).expect(engine);
    let found = answer.outcomes[0].caches.iter().find(|found| found.name == cache).expect(cache);
    let [none, fresh, free, on_list, in_array, elsewhere, live] = at_end(&map, 0);
    let movie = &map.movies[0];
    let cells = u64::from(movie.rows) * u64::from(movie.cells) - none;
    assert_eq!(cells, found.end.slabs * u64::from(movie.cells), "{engine}, {cache}: slabs");
    assert_eq!(live, found.end.live_objects(), "{engine}, {cache}: live");
    assert_eq!(fresh + free + on_list + in_array + elsewhere + live, cells, "{engine}, {cache}: all");
    let parked = on_list + in_array + elsewhere;
    match is_bound {
        true => assert!(parked <= found.end.parked, "{engine}, {cache}: {parked} of {}", found.end.parked),
        false => assert_eq!(parked, found.end.parked, "{engine}, {cache}: parked"),
    }
    let taken = movie.changes.iter().filter(|change| change.is_row && change.state == 1).count() as u64;
    let counted = found.counts.0[Event::AllocSlab as usize] + found.start.slabs;
    assert_eq!(taken, counted, "{engine}, {cache}: slabs taken");
    assert!(movie.events.is_sorted_by_key(|event| (event.time_ns, event.row)), "{engine}, {cache}: order");
    assert!(movie.events.len() > 100, "{engine}, {cache}: {} events", movie.events.len());
}

#[test]
fn a_map_ends_as_the_engine_does() {
    check("slub@7.1", "skbuff_head_cache", false);
    check("slub@6.18", "skbuff_head_cache", true);
    check("slub@6.1", "skbuff_head_cache", true);
    check("slub@6.1,harden=encode", "skbuff_head_cache", true);
}

#[test]
fn engines_stand_beside_each_other() {
    let (map, answer) = map(&["slub@6.18", "slub@7.0", "slab"], None).expect("a map");
    assert_eq!(map.movies.len(), 3);
    let slabs = |cache: &&slablab_replay::replay::outcome::CacheOutcome| cache.end.slabs;
    let most = answer.outcomes[0].caches.iter().max_by_key(slabs).expect("a cache");
    assert_eq!(map.cache, most.name);
    let page = map_page(&map, &answer, "slablab replay", Some(0));
    for engine in ["slub@6.18", "slub@7.0", "slab@6.1"] {
        assert!(page.contains(&format!("<h3>{}, {engine}</h3>", map.cache)), "{engine}");
    }
    assert!(map.drawing(None).matches("translate(0 ").count() == 3);
}

#[test]
fn what_has_no_map_is_refused() {
    for (engines, cache, words) in [
        (&["slub@6.18", "slob"][..], None, "slob@6.1: its slabs are of no cache of their own"),
        (&["slub"], Some("filpp"), "slub@7.3: no cache is called filpp"),
        (&["slub", "slqb", "slab", "slub@6.1", "slub@6.18"], None, "5 engines: expected at most 4"),
    ] {
        let error = map(engines, cache).expect_err(words);
        assert!(error.contains(words), "{error}");
    }
}
