//! What kernels keep beside objects: rules (docs/theory/slub.md 7.1) beside a real machine.

use slablab_doctor::find::{Kind, find};
use slablab_doctor::measure::accounting::{Charging, Place, owner};
use slablab_doctor::measure::{Options, measure};
use slablab_doctor::state::{Input, State, read};
use slablab_doctor::whatif::{Change, Config, Prediction, predict};
use slablab_slabs::Preset;
use slablab_slabs::accounting::{Owner, Profiling};
use slablab_slabs::partition::normal_size;
use std::collections::BTreeMap;

/// A virtual machine with 6.18, 2 CPUs and a hundred cgroups.
fn machine() -> State {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/hackbench-6.18.before.tar.xz");
    read(&Input { path: Some(path.into()), ..Input::default() }).unwrap_or_else(|error| panic!("{error}"))
}

/// The machine, whose kernel was built and started with profiling.
fn profiled(release: &str) -> State {
    let mut state = machine();
    state.release = slablab_slabs::Release::parse(release);
    state.dump.config.insert("MEM_ALLOC_PROFILING".into(), "y".into());
    state.dump.cmdline = Some("quiet sysctl.vm.mem_profiling=1".into());
    state
}

#[test]
fn owners_are_told_by_names_and_directories() {
    let state = machine();
    let owner_of = |name: &str| owner(state.cache(name).unwrap_or_else(|| panic!("no {name}")));
    for (name, expected) in [
        ("kmalloc-512", Owner::Kmalloc),
        ("kmalloc-cg-512", Owner::Charged),
        ("kmalloc-rcl-96", Owner::Other),
        ("dentry", Owner::Charged),
        ("ext4_inode_cache", Owner::Charged),
        ("lsm_inode_cache", Owner::Other),
        ("pid", Owner::Charged),
        ("buffer_head", Owner::Other),
        ("maple_node", Owner::Other),
    ] {
        assert_eq!(owner_of(name), expected, "{name}");
    }
}

/// The arrays of 6.18 are objects of kmalloc. Where they are many, the class has as many objects in use, and
/// few others.
#[test]
fn arrays_are_in_the_classes_of_a_real_machine() {
    let state = machine();
    let charging = Charging::of(&state).expect("a release");
    assert_eq!(charging.in_use, Some(true));
    assert_eq!((charging.kernel.cgroups, charging.kernel.profiling), (true, Profiling::Absent));
    let mut arrays: BTreeMap<u64, u64> = BTreeMap::new();
    for cache in &state.caches {
        if let Some(words) = charging.words(cache, &state) {
            assert_eq!((words.place, words.per_object), (Place::Array, 8), "{}", cache.name);
            *arrays.entry(words.array).or_default() += cache.slabs;
        }
    }
    let in_use = |bytes: u64| {
        let class =
            state.caches.iter().find(|cache| cache.size == bytes && normal_size(&cache.name).is_some());
        class.expect("a class").active_objects
    };
    let large: Vec<(u64, u64)> = arrays.into_iter().filter(|(_, arrays)| *arrays > 1000).collect();
    println!("{:?}", large.iter().map(|(class, of)| (class, of, in_use(*class))).collect::<Vec<_>>());
    assert_eq!(large.iter().map(|(class, _)| *class).collect::<Vec<_>>(), [128, 192]);
    for (class, arrays) in large {
        let active = in_use(class);
        assert!(arrays <= active && arrays * 10 >= active * 7, "kmalloc-{class}: {arrays} of {active}");
    }
}

/// 7.0 puts the words into what slabs have left: there they are a part of the tail no more, and the sum
/// holds.
#[test]
fn words_in_slabs_are_a_part_of_the_split() {
    let mut state = machine();
    let tail = |state: &State| {
        let measured = measure(state, &Options::default()).expect("one state");
        let line =
            measured.lines.iter().find(|line| line.cache.name == "ext4_inode_cache").expect("the cache");
        let metadata = line.split.metadata.expect("sysfs tells sizes");
        assert_eq!(measured.total.sum(), i128::from(measured.total.bytes));
        (line.split.tail, metadata.accounting, line.cache.slabs)
    };
    let (before, none, slabs) = tail(&state);
    assert_eq!((before, none), (slabs * (16384 - 14 * 1128), 0));
    state.release = slablab_slabs::Release::parse("7.0");
    assert_eq!(tail(&state), (before - slabs * 14 * 8, slabs * 14 * 8, slabs));
}

fn with(state: &State, engine: Option<&str>, config: Option<&str>) -> Prediction {
    let engine = engine.map(|text| Preset::parse(text).expect("a preset"));
    let config = config.map(|text| Config::parse(text).expect("a configuration"));
    predict(state, &Change { engine, config, ..Change::default() }).unwrap_or_else(|error| panic!("{error}"))
}

/// Profiling compiled in doubles the arrays of charged objects until 7.2; on, every slab has one.
#[test]
fn what_profiling_costs() {
    let state = machine();
    let today = state.bytes();
    let more = |engine, config| with(&state, engine, Some(config)).whatif.bytes as i64 - today as i64;
    let (off, on) =
        (more(None, "MEM_ALLOC_PROFILING=y"), more(None, "CONFIG_MEM_ALLOC_PROFILING_ENABLED_BY_DEFAULT=y"));
    println!("compiled in {off}, on {on}");
    // 16,736 slabs of ext4's inodes have arrays of 256 bytes for those of 128, 13,352 of names 384 for 192.
    assert!((4 << 20..7 << 20).contains(&off), "{off}");
    assert!(on > off);
    assert_eq!(more(None, "MEM_ALLOC_PROFILING=n"), 0);
    let then = |engine, config| with(&state, Some(engine), config).whatif.bytes;
    // 7.3 has the second word only where profiling is on.
    assert_eq!(then("slub@7.3", Some("MEM_ALLOC_PROFILING=y")), then("slub@7.3", None));
    assert!(then("slub@7.2", Some("MEM_ALLOC_PROFILING=y")) > then("slub@7.2", None));
    assert!(Config::parse("SLUB=y").expect_err("not one of them").contains("MEM_ALLOC_PROFILING=y"));
}

/// Without a sign of cgroups, what only charged objects cost is not known.
#[test]
fn unknown_charges_are_not_zero() {
    let mut state = machine();
    state.caches.retain(|cache| cache.name != "mem_cgroup");
    assert_eq!(Charging::of(&state).expect("a release").in_use, None);
    let range = |config| with(&state, None, Some(config)).range.unknown();
    assert!(range("MEM_ALLOC_PROFILING=y").is_some_and(|why| why.contains("cgroups charge")));
    assert_eq!(range("MEM_ALLOC_PROFILING_ENABLED_BY_DEFAULT=y"), None);
    assert_eq!(range("MEM_ALLOC_PROFILING=n"), None);
}

/// On many CPUs slabs of kmalloc-512 have 64 objects and those of kmalloc-1k 32: with 16 bytes beside each,
/// the arrays of one are objects of the other.
#[test]
fn a_pinning_pair_is_found() {
    let found = |release: &str, on: bool, objects: [u64; 2]| {
        let mut state = profiled(release);
        if !on {
            state.dump.cmdline = None;
        }
        for (name, objects, order) in [("kmalloc-512", objects[0], 3), ("kmalloc-1k", objects[1], 3)] {
            let cache = state.caches.iter_mut().find(|cache| cache.name == name).expect("the cache");
            (cache.objects_per_slab, cache.order, cache.slabs) = (objects, order, 8000);
            (cache.total_objects, cache.active_objects) = (objects * 8000, 9000);
        }
        let measured = measure(&state, &Options::default()).expect("one state");
        let found = find(&measured);
        let texts: Vec<String> = found.of(Kind::PinningPair).map(|finding| finding.text.clone()).collect();
        texts
    };
    let pair = found("6.16", true, [64, 32]);
    assert_eq!(pair.len(), 1);
    assert!(pair[0].starts_with("kmalloc-1k and kmalloc-512 keep each other's slabs"), "{}", pair[0]);
    assert_eq!(found("7.1", true, [64, 32]).len(), 1);
    for (release, on, objects) in
        [("7.2", true, [64, 32]), ("6.16", false, [64, 32]), ("6.16", true, [16, 16])]
    {
        assert_eq!(found(release, on, objects), [""; 0], "{release} {on}");
    }
}
