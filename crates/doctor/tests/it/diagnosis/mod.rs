//! The doctor on real dumps, and on real dumps with one thing changed.

mod actions;
mod behind;
mod leak;
mod leaks;
mod truth;
mod verdict;

use slablab_doctor::find::Kind;
use slablab_doctor::measure::history::Fit;
use slablab_doctor::measure::meminfo::threshold;
use slablab_doctor::measure::split::Split;
use slablab_doctor::state::{self, Cache, Input, State};
use slablab_doctor::{Options, Report, examine};
use slablab_readers::sysfs::SlabAttrs;
use slablab_readers::text::{Breakdown, Count};
use slablab_slabs::Release;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Real dumps by a short name.
const DUMPS: [(&str, &str); 8] = [
    ("plain before", "../examples/dumps/amd64_smp4.before.tar.xz"),
    ("plain", "../examples/dumps/amd64_smp4.after.tar.xz"),
    ("debugging", "../examples/dumps/amd64_smp4_debugFZPU.after.tar.xz"),
    ("modules", "../examples/dumps/amd64_612_smp4_mods.after.tar.xz"),
    ("160 CPUs", "../examples/dumps/ppc64_smp160.after.tar.xz"),
    ("memoryless", "readers/testdata/amd64_smp8_numa4_memless/before.tar.xz"),
    ("memoryless 64K", "readers/testdata/ppc64_smp16_memless/before.tar.xz"),
    ("host", "readers/testdata/host_618/before.tar.xz"),
];

fn read(path: PathBuf) -> State {
    state::read(&Input { path: Some(path), ..Input::default() }).unwrap_or_else(|error| panic!("{error}"))
}

fn dump(name: &str) -> State {
    let file = DUMPS.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no dump {name}")).1;
    read(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file))
}

fn report(state: &State) -> Report<'_> {
    examine(state, &Options::default()).unwrap()
}

/// slabinfo's Loss, from the kernel's own files and by nothing of the doctor: slabs times bytes of a slab,
/// less active objects times their size. The size is that of the directory with the row's name, or of an
/// alias of it; in a dump without links it is that of the directory which the state found for the row.
fn loss_of_slabinfo(state: &State) -> (i128, i128) {
    let mut sizes: BTreeMap<&str, u64> = BTreeMap::new();
    for attrs in &state.dump.caches {
        if let Some(size) = attrs.object_size {
            sizes.extend(attrs.aliases.iter().chain([&attrs.name]).map(|name| (name.as_str(), size)));
        }
    }
    let (mut bytes, mut used) = (0, 0);
    for row in &state.dump.slabinfo.as_ref().expect("a slabinfo").rows {
        let linked = sizes.get(row.name.as_str()).copied();
        let found = || state.cache(&row.name).and_then(|cache| cache.object_size);
        let size = linked.or_else(found).unwrap_or(row.objsize);
        bytes += i128::from(row.num_slabs * row.pagesperslab * state.page_size);
        used += i128::from(row.active_objs * size);
    }
    (bytes, bytes - used)
}

/// The split of every cache and of all adds up, to the byte and to slabinfo's Loss.
#[track_caller]
fn check_sums(state: &State, shown: &str) {
    let report = report(state);
    let (bytes, loss) = loss_of_slabinfo(state);
    assert_eq!(i128::from(report.measured.total.bytes), bytes, "{shown}: bytes");
    assert_eq!(i128::from(report.measured.total.loss()), loss, "{shown}: loss");
    check_parts(&report, shown);
}

#[track_caller]
fn check_parts(report: &Report, shown: &str) {
    let mut summed = Split::default();
    for line in &report.measured.lines {
        let (name, split) = (&line.cache.name, &line.split);
        assert_eq!(split.sum(), i128::from(split.bytes), "{shown}: {name}: {split:?}");
        assert!(split.parked.low <= split.parked.high, "{shown}: {name}: {split:?}");
        assert!(split.parked.high <= split.in_use, "{shown}: {name}: {split:?}");
        assert!(split.raced <= 0, "{shown}: {name}: {split:?}");
        summed.add(split);
    }
    assert_eq!(summed, report.measured.total, "{shown}");
    assert_eq!(report.measured.total.sum(), i128::from(report.measured.total.bytes), "{shown}");
}

#[test]
fn splits_add_up_to_slabinfos_loss() {
    for (name, _) in DUMPS {
        check_sums(&dump(name), name);
    }
}

/// Sums hold for what no kernel at rest shows: races, slabs of fallback orders, sizes that are not known.
#[test]
fn splits_of_odd_counters_add_up() {
    #[track_caller]
    fn check(edit: fn(&mut State), raced: bool, unknown: bool) {
        let mut state = dump("plain");
        edit(&mut state);
        let report = report(&state);
        check_parts(&report, "odd");
        assert_eq!(report.measured.total.raced < 0, raced, "raced: {:?}", report.measured.total);
        assert_eq!(report.measured.unknown_sizes > 0, unknown);
    }
    check(|_| {}, false, false);
    check(|state| cache(state, "dentry").active_objects += 1_000_000, true, false);
    check(|state| cache(state, "dentry").total_objects += 1_000_000, true, false);
    check(|state| cache(state, "dentry").total_objects = 0, true, false);
    check(|state| cache(state, "dentry").object_size = Some(1 << 20), false, false);
    check(|state| state.caches.iter_mut().for_each(|cache| cache.object_size = None), false, true);
    check(|state| state.caches.iter_mut().for_each(|cache| cache.attrs = None), false, false);
    check(|state| state.caches.iter_mut().for_each(|cache| cache.total_objects /= 2), true, false);
}

/// The first finding of a kind on a dump says all of `words`; with no words there is none.
#[track_caller]
fn check_in(name: &str, report: &Report, kind: Kind, words: &[&str]) {
    let found = report.found.findings.iter().find(|finding| finding.kind == kind);
    let said = found.map(|finding| finding.text.as_str());
    assert_eq!(said.is_some(), !words.is_empty(), "{kind:?} on {name}: {said:?}");
    for word in words {
        assert!(said.is_some_and(|said| said.contains(word)), "{kind:?} on {name}: no {word:?} in {said:?}");
    }
}

#[track_caller]
fn check(kind: Kind, name: &str, edit: fn(&mut State), words: &[&str]) {
    let mut state = dump(name);
    edit(&mut state);
    check_in(name, &report(&state), kind, words);
}

fn as_it_is(_: &mut State) {}

fn cache<'a>(state: &'a mut State, name: &str) -> &'a mut Cache {
    state.caches.iter_mut().find(|cache| cache.name == name).expect("a cache of that name")
}

fn attrs<'a>(state: &'a mut State, name: &str) -> &'a mut SlabAttrs {
    cache(state, name).attrs.as_mut().expect("a directory")
}

fn count(value: u64) -> Option<Breakdown> {
    let total = Count { value, slabs: None };
    Some(Breakdown { total, nodes: vec![(0, total)], cpus: Vec::new() })
}

/// Every kind of finding where it must appear, and where it must not.
#[test]
fn findings_of_caches() {
    check(Kind::Dominates, "plain", as_it_is, &["shmem_inode_cache has 38 %", "Inodes of tmpfs"]);
    check(Kind::Dominates, "160 CPUs", as_it_is, &[]);

    check(Kind::Fragmented, "plain", as_it_is, &["shmem_inode_cache", "free objects (", "partial slabs"]);
    check(Kind::Fragmented, "memoryless", as_it_is, &[]);

    check(
        Kind::Tail,
        "plain",
        |state| {
            let dentry = cache(state, "dentry");
            dentry.size = 1400;
            dentry.objects_per_slab = 2;
            dentry.total_objects = 2 * dentry.slabs;
        },
        &["dentry: 2 objects of 1400 bytes leave 1296 bytes behind in each slab of 4 KiB"],
    );
    check(Kind::Tail, "plain", as_it_is, &[]);

    check(
        Kind::Metadata,
        "160 CPUs",
        as_it_is,
        &["pgtable-2^9: objects of 4096 bytes take 8192", "aligned to 4096"],
    );
    check(Kind::Metadata, "modules", as_it_is, &[]);

    check(Kind::Debugging, "debugging", as_it_is, &["93 of 199 caches", "15.8 MiB (28 %"]);
    check(Kind::Debugging, "plain", as_it_is, &[]);

    check(
        Kind::Parked,
        "160 CPUs",
        as_it_is,
        &["160 CPUs park between", "334 MiB", "CPU slabs", "kmalloc-64k 80 MiB"],
    );
    check(Kind::Parked, "host", as_it_is, &[]);

    check(Kind::BigPages, "160 CPUs", as_it_is, &["pages are 64 KiB", "3,328 slabs", "22.0 MiB"]);
    check(Kind::BigPages, "plain", as_it_is, &[]);

    check(
        Kind::Merged,
        "host",
        as_it_is,
        &["the kernel counts merged caches as one", "buffer_head", "ext4_fc_dentry_update"],
    );
    check(Kind::Merged, "debugging", as_it_is, &[]);

    check(
        Kind::Fallback,
        "plain",
        |state| {
            let cache = cache(state, "shmem_inode_cache");
            cache.total_objects -= 1600;
            cache.active_objects = cache.active_objects.min(cache.total_objects);
        },
        &[
            "107 slabs had to be smaller than preferred",
            "shmem_inode_cache 107",
            "1.3 MiB larger than they are",
        ],
    );
    check(Kind::Fallback, "plain", as_it_is, &[]);
    check(Kind::Fallback, "plain", |state| cache(state, "shmem_inode_cache").total_objects -= 5, &[]);
}

#[test]
fn findings_of_machines() {
    check(
        Kind::LargeKmalloc,
        "modules",
        as_it_is,
        &["23.4 MiB of slab memory are in no cache", "22.3 MiB to 24.5 MiB"],
    );
    check(Kind::LargeKmalloc, "160 CPUs", as_it_is, &[]);
    // The same machine with a kernel that does not count them: then the cause of the difference is unknown.
    let old = |state: &mut State| state.release = Some(Release::new(4, 19, 0));
    check(Kind::LargeKmalloc, "modules", old, &[]);
    check(
        Kind::MeminfoGap,
        "modules",
        old,
        &["23.4 MiB more than the caches add up to", "no large kmallocs"],
    );
    check(
        Kind::MeminfoGap,
        "plain",
        |state| {
            state.dump.meminfo.insert("Slab".into(), 20_000);
        },
        &["less than the caches add up to", "changed between the two reads"],
    );
    check(Kind::MeminfoGap, "modules", as_it_is, &[]);

    check(
        Kind::MemorylessNodes,
        "memoryless",
        as_it_is,
        &["1 of 4 nodes with CPUs have no memory", "2 CPUs"],
    );
    check(Kind::MemorylessNodes, "memoryless 64K", as_it_is, &["1 of 2 nodes"]);
    check(Kind::MemorylessNodes, "plain", as_it_is, &[]);

    check(
        Kind::HighOrder,
        "plain",
        |state| state.dump.buddyinfo.iter_mut().for_each(|zone| zone.blocks.truncate(2)),
        &["no free block is large enough", "the largest is of order 1"],
    );
    check(Kind::HighOrder, "plain", as_it_is, &[]);

    check(
        Kind::Reclaimable,
        "host",
        as_it_is,
        &["are reclaimable", "directory entries, inodes and buffer heads"],
    );
    check(Kind::Reclaimable, "160 CPUs", as_it_is, &[]);

    check(
        Kind::Unreclaimable,
        "plain",
        |state| {
            state.dump.meminfo.insert("MemTotal".into(), 100_000);
        },
        &["unreclaimable slabs"],
    );
    check(Kind::Unreclaimable, "plain", as_it_is, &[]);
}

/// `vm stats threshold` of the zones that have pages, in the order of /proc/zoneinfo.
#[test]
fn thresholds_are_those_of_zoneinfo() {
    #[track_caller]
    fn check(name: &str, expected: &[u64]) {
        let state = dump(name);
        let zones = state.dump.zones.iter().filter(|zone| zone.managed > 0);
        let cpus = u64::from(state.cpus.unwrap().online);
        let thresholds: Vec<u64> =
            zones.map(|zone| threshold(cpus, zone.managed * state.page_size)).collect();
        assert_eq!(thresholds, expected, "{name}");
    }
    check("plain", &[6, 36, 24]);
    check("160 CPUs", &[112]);
    check("memoryless", &[8, 32, 32, 32]);
    check("memoryless 64K", &[70]);
    check("host", &[4, 24, 28]);
}

#[test]
fn findings_of_trust() {
    let long = |state: &mut State| attrs(state, "dentry").partial = count(10_001);
    check(Kind::Approximated, "modules", long, &["Linux 6.12.117 estimates", "1 cache", "10,000 slabs"]);
    check(Kind::Approximated, "modules", as_it_is, &[]);
    // 6.1 counts them all.
    check(Kind::Approximated, "plain", long, &[]);

    check(
        Kind::Raced,
        "plain",
        |state| cache(state, "dentry").active_objects = 1_000_000,
        &["1 cache", "more active objects than objects"],
    );
    check(Kind::Raced, "plain", as_it_is, &[]);
}

/// Snapshots that grow: what is said after two, after five along a line, after five that are not.
#[test]
fn growth_and_leaks() {
    #[track_caller]
    fn check(slabs: &[u64], hours: Option<f64>, leak: &[&str], growth: &[&str]) {
        let states: Vec<State> = slabs
            .iter()
            .map(|slabs| {
                let mut state = dump("plain");
                (state.taken_s, state.up_s) = (None, None);
                let cache = cache(&mut state, "kmalloc-64");
                (cache.slabs, cache.total_objects, cache.active_objects) = (*slabs, slabs * 64, slabs * 64);
                state
            })
            .collect();
        let (now, since) = states.split_last().unwrap();
        let report = examine(now, &Options { since, hours, ..Options::default() }).unwrap();
        check_in("grown", &report, Kind::Leak, leak);
        check_in("grown", &report, Kind::Growth, growth);
    }
    let line = [
        "kmalloc-64 grew by 1.6 MiB in 4.0 hours, with 25,600 active objects more",
        "possibly a leak",
        "400 KiB an hour",
        "5 snapshots",
    ];
    check(&[1000, 1101, 1199, 1300, 1400], Some(4.0), &line, &[]);
    check(
        &[1000, 1400],
        Some(4.0),
        &[],
        &["grew by 1.6 MiB", "400 KiB an hour", "two snapshots fit any line"],
    );
    check(&[1000, 1400], None, &[], &["grew by 1.6 MiB", "with 25,600 active objects more"]);
    check(&[1000, 1900, 1000, 1900, 1400], Some(4.0), &[], &["but not along a line"]);
    check(&[1400, 1300, 1200, 1100, 1000], Some(4.0), &[], &[]);
    check(&[1000, 1000, 1000], Some(4.0), &[], &[]);
}

#[test]
fn real_growth() {
    let (before, after) = (dump("plain before"), dump("plain"));
    let options = Options { since: std::slice::from_ref(&before), hours: Some(0.5), ..Options::default() };
    let report = examine(&after, &options).unwrap();
    let total = report.measured.history.as_ref().unwrap().total();
    assert_eq!(total.bytes, (42_956 - 15_820) << 10);
    assert_eq!(total.fit.unwrap().bytes_per_hour, f64::from((42_956 - 15_820) << 11));
    assert_eq!(
        report.measured.lines.iter().map(|line| line.growth.as_ref().unwrap().bytes).sum::<i64>(),
        total.bytes
    );
    check_in("plain", &report, Kind::Growth, &["shmem_inode_cache", "two snapshots"]);

    let mut other = dump("plain before");
    other.page_size = 65536;
    let options = Options { since: std::slice::from_ref(&other), hours: None, ..Options::default() };
    let error = examine(&after, &options).unwrap_err().to_string();
    assert!(error.contains("65536 bytes; expected 4096"), "{error}");
    for hours in [0.0, -1.0, f64::NAN] {
        let options =
            Options { since: std::slice::from_ref(&before), hours: Some(hours), ..Options::default() };
        assert!(examine(&after, &options).unwrap_err().to_string().contains("expected a number above 0"));
    }
}

#[test]
fn lines() {
    #[track_caller]
    fn check(points: &[(f64, f64)], expected: Option<(f64, Option<f64>, Option<f64>)>) {
        let fit = Fit::of(points).map(|fit| (fit.bytes_per_hour, fit.error, fit.r2));
        assert_eq!(fit, expected, "{points:?}");
    }
    check(&[], None);
    check(&[(1.0, 5.0)], None);
    check(&[(1.0, 5.0), (1.0, 7.0)], None);
    check(&[(0.0, 5.0), (2.0, 9.0)], Some((2.0, None, None)));
    check(&[(0.0, 5.0), (1.0, 7.0), (2.0, 9.0)], Some((2.0, Some(0.0), Some(1.0))));
    // Slope 3, residuals 1, -2, 1: variance 6 with one degree of freedom, over 2.
    check(&[(0.0, 1.0), (1.0, 1.0), (2.0, 7.0)], Some((3.0, Some(3.0_f64.sqrt()), Some(0.75))));
    check(&[(0.0, 4.0), (1.0, 4.0), (2.0, 4.0)], Some((0.0, Some(0.0), None)));
}
