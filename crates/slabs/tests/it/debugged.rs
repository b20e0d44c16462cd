//! Sizes of debugged caches: every cache of a 6.1 booted with `slub_debug=FZPU`, created through the wrapper; what each
//! letter adds; what the letters say.

use crate::truth;
use slablab_model::{Machine, MachineSpec, Model};
use slablab_slabs::cache::LinkPlace;
use slablab_slabs::engines::slub::{Slub, SlubPolicy};
use slablab_slabs::wrap::{Around, Debugged, Wrap};
use slablab_slabs::zones::{Letters, Zones};
use slablab_slabs::{CacheFlags, CacheId, CacheSpec, Engine, Geometry, Preset, Release};

fn letters(text: &str) -> Letters {
    Letters::parse(text).unwrap_or_else(|| panic!("{text}: no letters"))
}

/// What a cache gets under a kernel's policies with these letters, on a machine with so many CPUs.
fn geometry(spec: &CacheSpec, policy: &SlubPolicy, text: &str, release: Release, cpus: u16) -> Geometry {
    let mut machine = Machine::new(MachineSpec::uniform(cpus, 1, 1 << 30)).expect("the spec is right");
    let wrap = Wrap { letters: letters(text), ..Wrap::default() };
    let around = Around { engine: *policy, wrap, release };
    machine.enter(|| *Debugged::<Model, Slub<Model>>::create(CacheId(1), spec, &around).geometry())
}

#[test]
fn every_cache_of_a_debugged_kernel() {
    let caches = truth::caches();
    let runs = truth::runs();
    let run = runs.iter().find(|run| run.name == "amd64_smp4_debugFZPU").expect("the run with debugging");
    let release = Release::parse(run.release).expect("a release");
    let mut count = 0;
    for cache in caches.iter().filter(|cache| cache.is_in(run)) {
        let spec = cache.attributes.as_ref().expect("sysfs was kept").spec();
        let kmalloc = cache.name.starts_with("kmalloc-") || cache.name.starts_with("dma-kmalloc-");
        let spec = CacheSpec { flags: CacheFlags { kmalloc, ..spec.flags }, ..spec };
        let found = geometry(&spec, &run.policy(), "FZPU", release, run.present as u16);
        let sizes = (found.size, found.order, found.objects);
        assert_eq!(sizes, (cache.slab_size, cache.order, cache.objects), "{}", cache.name);
        assert_eq!(found.object_size, spec.object_size, "{}: what the user gets", cache.name);
        count += 1;
    }
    println!("{count} of {count} caches exact");
    assert_eq!(count, 199);
}

/// Bytes from one object to the next by letters, for an object of so many bytes.
fn check(object_size: u32, flags: CacheFlags, release: &str, expected: &[(&str, u32)]) {
    let spec = CacheSpec { flags, ..CacheSpec::of_size(object_size) };
    let release = Release::parse(release).expect("a release");
    for (text, size) in expected {
        let found =
            Zones::new(&spec, LinkPlace::Middle, letters(text), release).map_or(0, |zones| zones.size);
        assert_eq!(found, *size, "{object_size} bytes with {text} on {release}");
    }
}

/// Worked out by hand from docs/theory/slub.md 7; 0 where no zones are asked for.
#[test]
fn what_each_letter_adds() {
    let plain = CacheFlags::default();
    let kmalloc = CacheFlags { kmalloc: true, ..plain };
    let rcu = CacheFlags { typesafe_by_rcu: true, ..plain };
    // Z: 8 before, 8 behind, 8 more. P: the link leaves the object. U: two records of 32, and for kmalloc the size asked.
    check(64, plain, "6.1", &[("F", 0), ("Z", 88), ("P", 72), ("U", 128), ("FZPU", 160), ("off", 0)]);
    check(64, kmalloc, "6.1", &[("U", 136), ("FZPU", 168)]);
    // The gap up to the word is the red zone behind the object.
    check(60, plain, "6.1", &[("Z", 80), ("FZPU", 152)]);
    check(64, rcu, "6.1", &[("Z", 96), ("P", 72), ("FZPU", 160)]);
    // Red zones behind objects alone before 4.7, whole stacks before 5.18.
    check(64, kmalloc, "4.6", &[("Z", 80), ("U", 368)]);
    check(64, kmalloc, "5.18", &[("U", 128)]);
}

#[test]
fn orders_that_are_kept() {
    let release = Release::new(6, 1, 0);
    let Some(Preset::Slub(policy)) = Preset::of_kernel(release) else { panic!("6.1 has a preset") };
    let size = |bytes, text| geometry(&CacheSpec::of_size(bytes), &policy, text, release, 4).size;
    // Two pages instead of one for an object: O turns all of it off. In the middle of a page nothing changes.
    assert_eq!((size(4096, "FZ"), size(4096, "FZO")), (4120, 4096));
    assert_eq!((size(64, "FZ"), size(64, "FZO")), (88, 88));
}

#[test]
fn letters_are_read_and_printed() {
    for (given, printed) in [("FZPU", "FZPU"), ("upzf", "FZPU"), ("o", "O"), ("off", "off"), ("-", "off")] {
        assert_eq!(letters(given).to_string(), printed);
        assert_eq!(letters(printed), letters(given));
    }
    for wrong in ["", "X", "FX", "F Z"] {
        assert_eq!(Letters::parse(wrong), None, "{wrong:?}");
    }
}
