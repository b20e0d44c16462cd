//! The merge rule against the aliases of real kernels (docs/theory/slub.md 9).

use crate::truth;
use slablab_slabs::cache::mergeable;
use slablab_slabs::{CacheFlags, CacheSpec};
use std::collections::{BTreeMap, BTreeSet};

/// A cache of a kernel that was booted without merging.
struct Alone {
    name: &'static str,
    spec: CacheSpec,
    size: u32,
}

type Groups = BTreeSet<BTreeSet<&'static str>>;

/// The groups of a merging kernel: its sysfs directories and their aliases.
fn real_groups(run: &str) -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    truth::rows(include_str!("../../testdata/aliases.csv"))
        .filter(|row| row[0] == run)
        .map(|row| (row[1], if row[2] == "-" { [row[1]].into() } else { row[2].split(' ').collect() }))
        .collect()
}

/// The caches of a kernel that does not merge. The name of the group in the merging kernel adds what sysfs
/// does not show: an `A` before the dash means that objects are accounted.
fn alone(run: &str, groups: &BTreeMap<&'static str, BTreeSet<&'static str>>) -> Vec<Alone> {
    let runs = truth::runs();
    let run = runs.iter().find(|candidate| candidate.name == run).expect("a run");
    let account = |name: &str| {
        let group = groups.iter().find(|(_, members)| members.contains(name)).expect("the same kernel");
        group.0.starts_with(':') && group.0.split_once('-').is_some_and(|(flags, _)| flags.contains('A'))
    };
    let shown = truth::caches().into_iter().filter(|cache| cache.is_in(run));
    let mine = shown.filter(|cache| groups.values().any(|members| members.contains(cache.name)));
    mine.map(|cache| {
        let spec = cache.attributes.expect("a dump of sysfs").spec();
        let first_of_all = matches!(cache.name, "kmem_cache" | "kmem_cache_node");
        let mut flags = spec.flags.with(CacheFlags::ACCOUNT, account(cache.name));
        if first_of_all {
            flags |= CacheFlags::NO_MERGE;
        }
        Alone { name: cache.name, spec: CacheSpec { flags, ..spec }, size: cache.slab_size }
    })
    .collect()
}

/// The groups that the rule predicts for this order of creation: each cache joins the newest mergeable one.
fn predicted_groups<'a>(created: impl Iterator<Item = &'a Alone>) -> Groups {
    let mut groups: Vec<(&Alone, BTreeSet<&'static str>)> = Vec::new();
    for cache in created {
        match groups.iter_mut().rev().find(|(first, _)| mergeable(&cache.spec, &first.spec, first.size)) {
            Some((_, members)) => {
                members.insert(cache.name);
            }
            None => groups.push((cache, [cache.name].into())),
        }
    }
    groups.into_iter().map(|(_, members)| members).collect()
}

fn check(merged: &str, unmerged: &str) -> (usize, usize) {
    let real = real_groups(merged);
    let caches = alone(unmerged, &real);
    let names: BTreeSet<&str> = caches.iter().map(|cache| cache.name).collect();
    // Only the caches of both dumps are compared, because the two kernels may have loaded different modules.
    let real: Groups = real
        .into_values()
        .map(|members| members.into_iter().filter(|name| names.contains(name)).collect::<BTreeSet<_>>())
        .filter(|members| !members.is_empty())
        .collect();
    // The order of creation is not known. Every order must give the same groups.
    let forwards = predicted_groups(caches.iter());
    assert_eq!(forwards, predicted_groups(caches.iter().rev()), "the order of creation matters");
    let exact = forwards.intersection(&real).count();
    println!("{merged} from {unmerged}: {} caches, {exact} of {} groups", names.len(), real.len());
    for group in real.difference(&forwards) {
        println!("  really {group:?}");
    }
    for group in forwards.difference(&real) {
        println!("  by the rule {group:?}");
    }
    (exact, real.len())
}

#[test]
fn merged_groups_match_6_1() {
    assert_eq!(check("amd64_smp4", "amd64_smp4_nomerge"), (145, 145));
}

#[test]
fn merged_groups_match_6_12() {
    let (exact, all) = check("amd64_612_smp4", "amd64_612_smp4_mods");
    assert_eq!(exact, all);
}

/// No dump has two directories of merged caches that the rule would merge.
#[test]
fn separate_caches_are_not_mergeable() {
    let caches = truth::caches();
    for run in truth::runs() {
        let merged = caches.iter().filter(|cache| cache.is_in(&run) && cache.name.starts_with(':'));
        let merged: Vec<_> = merged
            .map(|cache| {
                let account = cache.name.split_once('-').is_some_and(|(flags, _)| flags.contains('A'));
                let spec = cache.attributes.as_ref().expect("a dump of sysfs").spec();
                (cache, CacheSpec { flags: spec.flags.with(CacheFlags::ACCOUNT, account), ..spec })
            })
            .collect();
        for (a, (first, _)) in merged.iter().enumerate() {
            for (second, spec) in &merged[a + 1..] {
                let candidate = merged[a].1;
                assert!(
                    !mergeable(spec, &candidate, first.slab_size),
                    "{}: {} {}",
                    run.name,
                    first.name,
                    second.name
                );
            }
        }
    }
}

/// Each condition of the rule alone.
#[test]
fn each_merge_condition_counts() {
    fn check(what: &str, new: CacheSpec, existing: CacheSpec, existing_size: u32, merges: bool) {
        assert_eq!(mergeable(&new, &existing, existing_size), merges, "{what}");
    }
    let plain = CacheSpec::of_size;
    let with = |size, flags: CacheFlags| CacheSpec { flags, ..CacheSpec::of_size(size) };
    check("equal", plain(64), plain(64), 64, true);
    check("smaller by less than a word", plain(60), plain(64), 64, true);
    check("smaller by a word", plain(56), plain(64), 64, false);
    check("larger", plain(72), plain(64), 64, false);
    check("aligned to what divides", CacheSpec { align: 32, ..plain(192) }, plain(192), 192, true);
    check("aligned to what does not divide", CacheSpec { align: 128, ..plain(192) }, plain(192), 192, false);
    check(
        "smaller than what its alignment needs",
        CacheSpec { align: 64, ..plain(64) },
        plain(68),
        68,
        false,
    );
    check("rounded up to the same", CacheSpec { align: 64, ..plain(40) }, plain(64), 64, true);
    let flags: [(&str, CacheFlags); 7] = [
        ("constructor", CacheFlags::CONSTRUCTOR),
        ("typesafe by RCU", CacheFlags::TYPESAFE_BY_RCU),
        ("no merge", CacheFlags::NO_MERGE),
        ("reclaimable", CacheFlags::RECLAIM_ACCOUNT),
        ("accounted", CacheFlags::ACCOUNT),
        ("DMA", CacheFlags::DMA),
        ("aligned to lines", CacheFlags::HWCACHE_ALIGN),
    ];
    for (what, flags) in flags {
        let indifferent = flags.has(CacheFlags::HWCACHE_ALIGN);
        check(what, with(64, flags), plain(64), 64, indifferent);
        check(what, plain(64), with(64, flags), 64, indifferent);
        let never = flags.keeps_contents() || flags.has(CacheFlags::NO_MERGE);
        check(what, with(64, flags), with(64, flags), 64, !never);
    }
    check("sheaves", CacheSpec { sheaf_capacity: 32, ..plain(64) }, plain(64), 64, false);
}
