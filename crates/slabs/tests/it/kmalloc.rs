//! kmalloc's classes, types, names and caches: the rule alone, against the kmalloc caches of every dumped
//! kernel, and against the requests of recorded kernels (docs/theory/slub.md 8, docs/theory/slqb.md 7).

use crate::truth;
use slablab_platform::Gfp;
use slablab_slabs::cache::{alignment, layout};
use slablab_slabs::kmalloc::{
    Ambiguity, BUCKET_SETS, Class, KmallocConfig, KmallocRule, KmallocType, RANDOM_COPIES,
};
use slablab_slabs::{CacheFlags, Preset, Release};
use std::collections::{BTreeMap, BTreeSet};

fn preset(text: &str) -> Preset {
    Preset::parse(text).expect("a preset")
}

/// The classes of a preset on a machine.
fn rule(preset: &Preset, page_shift: u32, min_size: u32) -> KmallocRule {
    KmallocRule::of(preset, page_shift).with_min_size(min_size)
}

fn check_classes(text: &str, page_shift: u32, min_size: u32, classes: &[u32]) {
    let rule = rule(&preset(text), page_shift, min_size);
    let what = format!("{text}, pages of {} bytes, from {min_size}", 1 << page_shift);
    assert_eq!(rule.class_sizes().collect::<Vec<_>>(), classes, "{what}");
    assert_eq!(rule.class_count() as usize, classes.len(), "{what}");
    // Every size maps to the smallest class that holds it, or to pages.
    let largest = *classes.last().expect("a class") as u64;
    for bytes in 1..=largest {
        let index = classes.iter().position(|class| bytes <= *class as u64).expect("not above the largest");
        assert_eq!(rule.class_of(bytes), Class::Small(index as u8), "{what}: {bytes} bytes");
    }
    for order in 0..=13u8 {
        for bytes in [(1u64 << page_shift << order >> 1) + 1, 1u64 << page_shift << order] {
            if bytes > largest {
                assert_eq!(rule.class_of(bytes), Class::Large(order), "{what}: {bytes} bytes");
            }
        }
    }
    assert_eq!(rule.class_of(0), Class::Zero);
}

#[test]
fn classes_by_era_and_machine() {
    const ON_4K: &[u32] = &[8, 16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096, 8192];
    const ON_64K: &[u32] =
        &[8, 16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072];
    for era in ["slub@2.6.29", "slub@2.6.32", "slub@6.1", "slub@6.12", "slub@6.18"] {
        check_classes(era, 12, 8, ON_4K);
        check_classes(era, 16, 8, ON_64K);
        check_classes(era, 14, 8, &ON_64K[..15]);
        // With a smallest class of 32 bytes there is a class of 96; with 64 there is 192; with 128 there is
        // neither.
        check_classes(era, 12, 16, &ON_4K[1..]);
        check_classes(era, 12, 32, &ON_4K[2..]);
        check_classes(era, 12, 64, &[64, 128, 192, 256, 512, 1024, 2048, 4096, 8192]);
        check_classes(era, 12, 128, &[128, 256, 512, 1024, 2048, 4096, 8192]);
    }
    for posting in ["slqb@2009-01", "slqb@2009-09"] {
        let up_to_2m: Vec<u32> = ON_4K.iter().copied().chain((14..=21).map(|shift| 1 << shift)).collect();
        check_classes(posting, 12, 8, &up_to_2m);
    }
}

/// Classes up to one page, as before 2.6.30 (docs/theory/slub.md 8).
#[test]
fn with_max_size_sends_larger_requests_to_pages() {
    let rule = KmallocRule::of(&preset("slub@2.6.29"), 12).with_max_size(4096);
    assert_eq!(rule.class_sizes().last(), Some(4096));
    assert_eq!(rule.class_of(4096), Class::Small(11));
    assert_eq!(rule.class_of(4097), Class::Large(1));
}

#[test]
fn the_recorded_size_selects_the_class() {
    let modern = KmallocRule::of(&preset("slub@6.1"), 12);
    let small = |size: u32| {
        Class::Small(modern.class_sizes().position(|class| class == size).expect("a class") as u8)
    };
    let check =
        |bytes_req, bytes_alloc, class| assert_eq!(modern.class_recorded(bytes_req, bytes_alloc), class);
    check(20, None, small(32));
    check(20, Some(32), small(32));
    // A recorded size that is a larger class than the rule's is used: the recorded kernel has a larger
    // smallest class.
    check(20, Some(128), small(128));
    check(5000, Some(16384), Class::Large(2));
    check(9000, Some(16384), Class::Large(2));
    // A recorded size that is no class of this kernel, or is less than the request, is ignored.
    check(20, Some(48), small(32));
    check(5000, Some(5000), small(8192));
    check(100, Some(64), small(128));
    check(9000, Some(12288), Class::Large(2));
    check(0, Some(0), Class::Zero);
}

/// Compares every kmalloc cache of every dump: name, object size, alignment, flags and, without debugging,
/// size per object. The rule must also create no other cache.
#[test]
fn kmalloc_caches_match_every_dump() {
    let caches = truth::caches();
    let mut total = 0;
    for run in truth::runs() {
        let preset = Preset::of_kernel(Release::parse(run.release).expect("a release")).expect("a preset");
        let rule = rule(&preset, run.page_shift, run.kmalloc_min);
        let config = KmallocConfig {
            dma: run.zone_dma,
            cgroup: run.memcg,
            buckets: run.buckets,
            ..KmallocConfig::of(&preset)
        };
        let is_kmalloc = |name: &str| {
            let sized =
                name.rsplit_once('-').is_some_and(|(_, size)| size.starts_with(|c: char| c.is_ascii_digit()));
            sized
                && (name.contains("kmalloc-")
                    || BUCKET_SETS.iter().any(|set| name.starts_with(&format!("{set}-"))))
        };
        let shown: BTreeMap<&str, &truth::Cache> = caches
            .iter()
            .filter(|cache| cache.is_in(&run) && is_kmalloc(cache.name))
            .map(|cache| (cache.name, cache))
            .collect();
        let mut expected = BTreeSet::new();
        for kind in config.types() {
            for index in 0..rule.class_count() {
                let (name, spec) = (rule.name(kind, index).to_string(), rule.spec(kind, index));
                let cache = *shown.get(name.as_str()).unwrap_or_else(|| panic!("{}: no {name}", run.name));
                total += 1;
                if let Some(attributes) = &cache.attributes {
                    let real = (attributes.object_size, attributes.align);
                    assert_eq!((spec.object_size, alignment(&spec)), real, "{}: {name}", run.name);
                    let compared = CacheFlags::HWCACHE_ALIGN | CacheFlags::RECLAIM_ACCOUNT | CacheFlags::DMA;
                    let (flags, real) = (spec.flags.and(compared), attributes.flags.and(compared));
                    assert_eq!(flags, real, "{}: {name}", run.name);
                }
                if !run.debug {
                    assert_eq!(layout(&spec, run.policy().link).0, cache.slab_size, "{}: {name}", run.name);
                }
                expected.insert(name);
            }
        }
        let shown: BTreeSet<String> = shown.into_keys().map(String::from).collect();
        assert_eq!(shown, expected, "{}", run.name);
    }
    println!("{total} kmalloc caches");
}

/// Compares every kind of request in the recordings: the size of the object, and the cache if the recording
/// contains its name.
#[test]
fn kmalloc_requests_match_recorded_kernels() {
    let (mut kinds, mut requests) = (0, 0u64);
    for row in truth::rows(include_str!("../../testdata/requests.csv")) {
        let number = |field: &str| field.parse::<u64>().expect("a number");
        let (bytes_req, bytes_alloc, count) = (number(row[1]), number(row[2]), number(row[5]));
        let preset = Preset::of_kernel(Release::parse(row[0]).expect("a release")).expect("a preset");
        let rule = KmallocRule::of(&preset, 12);
        let class = rule.class_of(bytes_req);
        assert_eq!(rule.size_of(class), bytes_alloc, "{row:?}");
        assert_eq!(rule.class_recorded(bytes_req, Some(bytes_alloc)), class, "{row:?}");
        if row[4] != "-" {
            let gfp = row[3].split(' ').fold(Gfp::KERNEL, |flags, name| {
                flags | Gfp::from_name(&format!("__GFP_{name}")).unwrap_or(Gfp::NONE)
            });
            // These kernels were built without memory cgroups.
            let config = KmallocConfig { cgroup: false, dma: false, ..KmallocConfig::of(&preset) };
            let Class::Small(index) = class else { panic!("{row:?}: a named cache is of a class") };
            assert_eq!(rule.name(KmallocType::of(gfp, &config), index).to_string(), row[4], "{row:?}");
        }
        (kinds, requests) = (kinds + 1, requests + count);
    }
    println!("{kinds} kinds of {requests} requests");
    assert_eq!(requests, 167_954);
}

#[test]
fn flags_select_the_kmalloc_type() {
    use KmallocType::{Cgroup, Dma, Normal, Reclaimable};
    fn check(config: KmallocConfig, gfp: Gfp, kind: KmallocType) {
        assert_eq!(KmallocType::of(Gfp::KERNEL | gfp, &config), kind, "{gfp:?} under {config:?}");
    }
    let modern = KmallocConfig::of(&preset("slub@6.1"));
    check(modern, Gfp::NONE, Normal);
    check(modern, Gfp::DMA32, Normal);
    check(modern, Gfp::ACCOUNT, Cgroup);
    check(modern, Gfp::RECLAIMABLE, Reclaimable);
    check(modern, Gfp::RECLAIMABLE | Gfp::ACCOUNT, Reclaimable);
    check(modern, Gfp::DMA, Dma);
    check(modern, Gfp::DMA | Gfp::RECLAIMABLE | Gfp::ACCOUNT, Dma);
    check(KmallocConfig { cgroup: false, ..modern }, Gfp::ACCOUNT, Normal);
    check(KmallocConfig { cgroup: false, ..modern }, Gfp::ACCOUNT | Gfp::RECLAIMABLE, Reclaimable);
    check(KmallocConfig { dma: false, ..modern }, Gfp::DMA, Normal);
    check(KmallocConfig { dma: false, ..modern }, Gfp::DMA | Gfp::ACCOUNT, Cgroup);
    for old in ["slub@2.6.29", "slub@2.6.32", "slqb@2009-09"] {
        let old = KmallocConfig::of(&preset(old));
        check(old, Gfp::RECLAIMABLE | Gfp::ACCOUNT, Normal);
        check(old, Gfp::DMA, Dma);
    }
}

#[test]
fn ambiguous_kmalloc_caches_are_reported() {
    let ambiguous = |config: &KmallocConfig, gfp| KmallocType::of(gfp, config).ambiguous(config);
    let told = KmallocConfig::of(&preset("slub@6.1"));
    let buckets = KmallocConfig::of(&preset("slub@6.18"));
    let both = KmallocConfig { random_copies: RANDOM_COPIES, ..buckets };
    for gfp in [Gfp::KERNEL, Gfp::ACCOUNT, Gfp::RECLAIMABLE, Gfp::DMA] {
        assert_eq!(ambiguous(&told, gfp), None);
    }
    assert_eq!(ambiguous(&buckets, Gfp::KERNEL), Some(Ambiguity { copies: 0, bucket_sets: 2 }));
    assert_eq!(ambiguous(&both, Gfp::KERNEL), Some(Ambiguity { copies: 15, bucket_sets: 2 }));
    assert_eq!(ambiguous(&both, Gfp::ACCOUNT), Some(Ambiguity { copies: 0, bucket_sets: 2 }));
    assert_eq!(ambiguous(&both, Gfp::RECLAIMABLE), None);
    assert_eq!(ambiguous(&both, Gfp::DMA), None);
    assert_eq!(both.types().count(), 4 + 15 + 2);
    assert_eq!(KmallocConfig::of(&preset("slub@2.6.32")).types().count(), 2);
}

#[test]
fn kmalloc_names_match_the_kernels() {
    fn check(text: &str, page_shift: u32, kind: KmallocType, bytes: u64, name: &str) {
        let rule = KmallocRule::of(&preset(text), page_shift);
        let Class::Small(index) = rule.class_of(bytes) else { panic!("{bytes} bytes have no class") };
        assert_eq!(rule.name(kind, index).to_string(), name);
    }
    check("slub@6.1", 12, KmallocType::Normal, 512, "kmalloc-512");
    check("slub@6.1", 12, KmallocType::Normal, 513, "kmalloc-1k");
    check("slub@6.1", 16, KmallocType::Normal, 131072, "kmalloc-128k");
    check("slub@6.1", 12, KmallocType::Reclaimable, 90, "kmalloc-rcl-96");
    check("slub@6.1", 12, KmallocType::Cgroup, 64, "kmalloc-cg-64");
    check("slub@6.1", 12, KmallocType::Dma, 8192, "dma-kmalloc-8k");
    check("slub@6.12", 12, KmallocType::Copy(1), 8, "kmalloc-rnd-01-8");
    check("slub@6.12", 12, KmallocType::Copy(15), 2048, "kmalloc-rnd-15-2k");
    check("slub@7.1", 12, KmallocType::Copy(7), 96, "kmalloc-rnd-07-96");
    check("slub@7.2", 12, KmallocType::Copy(7), 96, "kmalloc-part-07-96");
    check("slub@6.12", 12, KmallocType::Bucket(0), 4096, "memdup_user-4k");
    check("slub@6.12", 12, KmallocType::Bucket(1), 129, "msg_msg-192");
    check("slub@2.6.32", 12, KmallocType::Normal, 1024, "kmalloc-1024");
    check("slub@2.6.29", 12, KmallocType::Dma, 512, "kmalloc_dma-512");
    check("slqb@2009-01", 12, KmallocType::Normal, 1 << 21, "kmalloc-2097152");
}

/// SLQB aligns its classes to cache lines, so 96 bytes take 128. Its classes are never merged; those of 2.6's
/// SLUB are.
#[test]
fn layout_and_merging_by_era() {
    let check = |text: &str, bytes: u32, align: u32, size: u32, no_merge: bool| {
        let rule = KmallocRule::of(&preset(text), 12);
        let Class::Small(index) = rule.class_of(bytes as u64) else { panic!("{bytes} bytes have no class") };
        let spec = rule.spec(KmallocType::Normal, index);
        let size_got = layout(&spec, slablab_slabs::cache::LinkPlace::Start).0;
        assert_eq!(
            (alignment(&spec), size_got, spec.flags.has(CacheFlags::NO_MERGE)),
            (align, size, no_merge),
            "{text} {bytes}"
        );
    };
    check("slub@2.6.32", 96, 8, 96, false);
    check("slub@2.6.32", 512, 8, 512, false);
    check("slub@6.1", 96, 8, 96, true);
    check("slub@6.1", 512, 512, 512, true);
    check("slub@6.12", 96, 32, 96, true);
    check("slub@6.12", 192, 64, 192, true);
    check("slqb@2009-09", 96, 64, 128, true);
    check("slqb@2009-09", 192, 64, 192, true);
    check("slqb@2009-09", 8, 8, 8, true);
}

/// docs/theory/slab.md 5.7, and the kmalloc caches in /proc/slabinfo of a 6.1.192 with SLAB.
#[test]
fn slab_has_its_own_kmalloc_classes() {
    let sizes = |text: &str, page_shift| -> Vec<u32> {
        KmallocRule::of(&preset(text), page_shift).class_sizes().collect()
    };
    const MODERN: [u32; 11] = [32, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096, 8192];
    assert_eq!(sizes("slab@6.1", 12), MODERN);
    // There is no class of 96 with cache lines of 64 bytes. The classes reach the largest page block: 4 MB
    // with 4K pages, 32 MB with 64K pages.
    let old: Vec<u32> = [32, 64, 128, 192].into_iter().chain((8..=22).map(|shift| 1 << shift)).collect();
    assert_eq!(sizes("slab@2.6.29", 12), old);
    let large: Vec<u32> = [64, 128, 192].into_iter().chain((8..=25).map(|shift| 1 << shift)).collect();
    assert_eq!(sizes("slab@2.6.29", 16), large);
    check_classes("slab@2.6.29", 12, 32, &old);
    check_classes("slab@6.1", 12, 32, &MODERN);
    let rule = KmallocRule::of(&preset("slab@6.1"), 12);
    let spec = rule.spec(KmallocType::Normal, 2);
    assert_eq!(layout(&spec, slablab_slabs::cache::LinkPlace::Start).0, 128, "kmalloc-96 of that dump");
}
