//! What holds of every engine.

use super::program::{open, record, trace};
use super::{FOUR_CPUS, PRESETS, machine, presets, run};
use slablab_engines::ByCache;
use slablab_platform::Event;
use slablab_replay::output::{caches_frame, replay_answer};
use slablab_replay::replay::outcome::Outcome;
use slablab_replay::replay::{Options, replay};
use slablab_slabs::Usage;
use slablab_slabs::preset::Preset;
use std::path::Path;

/// Objects that engines allocate and free without a row: sheaves, which have events, and SLAB's arrays and
/// lists of free objects, which have none. The caches count them in addition to the rows.
pub(super) fn metadata(outcome: &Outcome) -> (u64, u64) {
    let (total, traffic) = (outcome.total(), outcome.traffic());
    match outcome.preset {
        Preset::Slab(_) => (total.allocs() - traffic.allocs, total.frees() - traffic.frees),
        _ => (total.get(Event::SheafAlloc), total.get(Event::SheafFree)),
    }
}

#[test]
fn rows_add_up_in_every_engine() {
    let reader = trace("6.1.0", &mixture(6000));
    let options = Options { engines: presets(&PRESETS), machine: machine(FOUR_CPUS), ..Options::default() };
    let replay = run(&reader, &options);
    let first = replay.outcomes[0].traffic();
    assert!(first.allocs > 2500 && first.frees > 2500 && first.other_node > 500, "{first:?}");
    for outcome in &replay.outcomes {
        let (preset, traffic, total, split) =
            (outcome.preset, outcome.traffic(), outcome.total(), outcome.split());
        // The place of an object depends on the engine; the CPU that frees it does not.
        assert_eq!((traffic.allocs, traffic.frees), (first.allocs, first.frees), "{preset}");
        assert_eq!((traffic.other_cpu, traffic.failed), (first.other_cpu, 0), "{preset}");
        let (made, given_back) = metadata(outcome);
        let all = (traffic.allocs + made, traffic.frees + given_back);
        assert_eq!((total.allocs(), total.frees()), all, "{preset}");
        assert_eq!(split.live + split.parked + split.free + split.tail, split.slabs, "{preset}");
        assert_eq!(split.slabs, outcome.end_frames * outcome.page_size, "{preset}");
        let has_sheaves = matches!(preset, Preset::Slub(policy) if policy.release.major == 7);
        let has_metadata = has_sheaves || matches!(preset, Preset::Slab(_));
        // CPUs have their sheaves from the start.
        assert_eq!(outcome.start_frames > 0, has_sheaves, "{preset}");
        assert!(outcome.peak_frames >= outcome.end_frames, "{preset}");
        let of_start =
            |of: fn(&Usage) -> u64| outcome.caches.iter().map(|cache| of(&cache.start)).sum::<u64>();
        let kept = of_start(|usage| usage.slabs) + total.get(Event::AllocSlab) - total.get(Event::FreeSlab);
        let slabs = outcome.caches.iter().map(|cache| cache.end.slabs).sum::<u64>();
        assert_eq!(kept, slabs + outcome.shared.frames, "{preset}");
        let mut kept = 0;
        for cache in &outcome.caches {
            let live = cache.traffic.allocs - cache.traffic.frees;
            kept += cache.end.live_objects() - live;
        }
        assert_eq!(kept + given_back, of_start(Usage::live_objects) + made, "{preset}");
        assert_eq!(made > 0, has_metadata, "{preset}");
    }
}

#[test]
fn machine_formats_have_the_same_sums() {
    let options = Options { engines: presets(&PRESETS), machine: machine(FOUR_CPUS), ..Options::default() };
    let replay = run(&trace("6.1.0", &mixture(2000)), &options);
    let (json, csv) = (replay_answer(&replay, 0).json(), caches_frame(&replay).csv());
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let column = |name: &str| header.iter().position(|column| *column == name).expect("a column");
    let lines: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    for engine in json["engines"].as_array().expect("a list") {
        let caches = engine["caches"].as_array().expect("a list");
        let rows: Vec<_> = lines.iter().filter(|line| engine["engine"] == line[0]).collect();
        assert_eq!(rows.len(), caches.len());
        // Free bytes of pages that caches share are no cache's.
        let shared = engine["total"]["shared_free_bytes"].as_u64().unwrap_or(0);
        for (key, total) in [
            ("slab_bytes", "slab_end_bytes"),
            ("tail_bytes", "tail_bytes"),
            ("parked_bytes", "parked_bytes"),
            ("free_bytes", "free_bytes"),
            ("frees_other_cpu", "frees_other_cpu"),
            ("frees_other_node", "frees_other_node"),
        ] {
            let total = engine["total"][total].as_u64().expect("a number");
            let total = if ["slab_bytes", "free_bytes"].contains(&key) { total - shared } else { total };
            assert_eq!(caches.iter().filter_map(|cache| cache[key].as_u64()).sum::<u64>(), total, "{key}");
            let in_csv: u64 = rows.iter().map(|row| row[column(key)].parse::<u64>().expect("a number")).sum();
            assert_eq!(in_csv, total, "{key} in CSV");
        }
    }
}

#[test]
fn the_same_every_time_together_or_alone() {
    let reader = trace("6.1.0", &mixture(2000));
    let answer = |engines: &[&str]| {
        let options =
            Options { engines: presets(engines), machine: machine(FOUR_CPUS), ..Options::default() };
        replay_answer(&run(&reader, &options), 0).json()
    };
    let together = answer(&PRESETS);
    assert_eq!(together.to_string(), answer(&PRESETS).to_string());
    for (index, preset) in PRESETS.iter().enumerate() {
        assert_eq!(answer(&[preset])["engines"][0], together["engines"][index], "{preset} alone");
    }
    // Row groups are a matter of the file.
    let cut = open(&record("6.1.0", &mixture(2000), 100));
    let options = Options { engines: presets(&PRESETS), machine: machine(FOUR_CPUS), ..Options::default() };
    assert_eq!(replay_answer(&run(&cut, &options), 0).json().to_string(), together.to_string());
}

/// A knob of a single cache is that cache's alone.
#[test]
fn a_cache_has_knobs_of_its_own() {
    let reader = trace("6.1.0", &mixture(3000));
    let orders = |of_caches| {
        let engines =
            presets(&["slub@6.1"]).into_iter().map(|choice| ByCache { of_caches, ..choice }).collect();
        let options = Options { engines, machine: machine(FOUR_CPUS), ..Options::default() };
        let replay =
            replay(&reader, Path::new("program"), &options, &|_, _| {}).map_err(|bad| bad.to_string())?;
        let order = |name| replay.outcomes[0].cache(name).expect("a cache of the program").geometry.order;
        Ok([order("filp"), order("dentry"), order("bio"), order("kmalloc-512")])
    };
    let check = |of_caches, expected: Result<[u8; 4], &str>| {
        assert_eq!(orders(of_caches), expected.map_err(String::from), "{of_caches}");
    };
    check("", Ok([0, 0, 3, 1]));
    check(",bio/max_order=2", Ok([0, 0, 2, 1]));
    check(",bio/max_order=2,kmalloc-*/max_order=0", Ok([0, 0, 2, 0]));
    check(",*/max_order=0,bio/max_order=3", Ok([0, 0, 3, 0]));
    let unmet = "program: dentri of slub@6.1: expected a cache of the recording";
    check(",dentri/max_order=0", Err(unmet));
}

/// Four CPUs allocate and free three caches and kmallocs, not quite evenly.
pub(crate) fn mixture(operations: u64) -> String {
    let mut program = String::from("cache filp 256; cache dentry 192; cache bio 1032;");
    let homes = ["filp", "dentry", "bio", "512"];
    let mut live: Vec<(usize, u32)> = Vec::new();
    let mut free: Vec<Vec<u32>> = vec![(0..300).rev().collect(); homes.len()];
    let mut state = 1u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    for operation in 0..operations {
        let (cpu, home) = (random(4), random(homes.len() as u64) as usize);
        // It grows, then shrinks.
        let grow = random(100) < if operation * 2 < operations { 60 } else { 40 };
        if grow && let Some(object) = free[home].pop() {
            program += &format!("{cpu} alloc {} {object};", homes[home]);
            live.push((home, object));
        } else if !live.is_empty() {
            let (home, object) = live.swap_remove(random(live.len() as u64) as usize);
            program += &format!("{cpu} free {} {object};", homes[home]);
            free[home].push(object);
        }
        if random(200) == 0 {
            program += "wait 1000000000;";
        }
    }
    program
}
