//! Layout of debugged caches: the sizes in every cache of a 6.1 booted with `slub_debug=FZPU`, the bytes that
//! each letter adds, and the notation of letters.

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

/// The geometry of a cache under a kernel's policies with these letters, on a machine with `cpus` CPUs.
fn geometry(spec: &CacheSpec, policy: &SlubPolicy, text: &str, release: Release, cpus: u16) -> Geometry {
    let mut machine = Machine::new(MachineSpec::uniform(cpus, 1, 1 << 30)).expect("the spec is right");
    let wrap = Wrap { letters: letters(text), ..Wrap::default() };
    let around = Around { engine: *policy, wrap, release };
    machine.enter(|| *Debugged::<Model, Slub<Model>>::create(CacheId(1), spec, &around).geometry())
}

#[test]
fn layouts_match_every_cache_of_a_debugged_kernel() {
    let caches = truth::caches();
    let runs = truth::runs();
    let run = runs.iter().find(|run| run.name == "amd64_smp4_debugFZPU").expect("the run with debugging");
    let release = Release::parse(run.release).expect("a release");
    let mut count = 0;
    for cache in caches.iter().filter(|cache| cache.is_in(run)) {
        let spec = cache.attributes.as_ref().expect("a dump of sysfs").spec();
        let kmalloc = cache.name.starts_with("kmalloc-") || cache.name.starts_with("dma-kmalloc-");
        let spec = CacheSpec { flags: spec.flags.with(CacheFlags::KMALLOC, kmalloc), ..spec };
        let found = geometry(&spec, &run.policy(), "FZPU", release, run.present as u16);
        let sizes = (found.size, found.order, found.objects);
        assert_eq!(sizes, (cache.slab_size, cache.order, cache.objects), "{}", cache.name);
        assert_eq!(found.object_size, spec.object_size, "{}: what the user gets", cache.name);
        count += 1;
    }
    println!("{count} of {count} caches exact");
    assert_eq!(count, 199);
}

/// Checks the spacing of objects of `object_size` bytes for each string of letters.
fn check(object_size: u32, flags: CacheFlags, release: &str, expected: &[(&str, u32)]) {
    let spec = CacheSpec { flags, ..CacheSpec::of_size(object_size) };
    let release = Release::parse(release).expect("a release");
    for (text, size) in expected {
        let found =
            Zones::new(&spec, LinkPlace::Middle, letters(text), release).map_or(0, |zones| zones.size);
        assert_eq!(found, *size, "{object_size} bytes with {text} on {release}");
    }
}

/// Computed by hand from docs/theory/slub.md 7; 0 means no zones.
#[test]
fn each_debug_letter_adds_its_bytes() {
    let plain = CacheFlags::NONE;
    let kmalloc = CacheFlags::KMALLOC;
    let rcu = CacheFlags::TYPESAFE_BY_RCU;
    // Z: 8 bytes before, 8 after, 8 more. P: the link moves out of the object. U: two records of 32 bytes,
    // and for kmalloc the requested size.
    check(64, plain, "6.1", &[("F", 0), ("Z", 88), ("P", 72), ("U", 128), ("FZPU", 160), ("off", 0)]);
    check(64, kmalloc, "6.1", &[("U", 136), ("FZPU", 168)]);
    // The bytes up to the next word are the red zone after the object.
    check(60, plain, "6.1", &[("Z", 80), ("FZPU", 152)]);
    check(64, rcu, "6.1", &[("Z", 96), ("P", 72), ("FZPU", 160)]);
    // Before 4.7 there is a red zone only after the object. Before 5.18 records hold whole stacks.
    check(64, kmalloc, "4.6", &[("Z", 80), ("U", 368)]);
    check(64, kmalloc, "5.18", &[("U", 128)]);
}

#[test]
fn debug_letter_o_exempts_caches_whose_order_would_grow() {
    let release = Release::new(6, 1, 0);
    let Some(Preset::Slub(policy)) = Preset::of_kernel(release) else { panic!("6.1 has a preset") };
    let size = |bytes, text| geometry(&CacheSpec::of_size(bytes), &policy, text, release, 4).size;
    // The object would need two pages instead of one, so O turns debugging off. Sizes whose order does not
    // grow are debugged as without O.
    assert_eq!((size(4096, "FZ"), size(4096, "FZO")), (4120, 4096));
    assert_eq!((size(64, "FZ"), size(64, "FZO")), (88, 88));
}

#[test]
fn debug_letters_parse_and_print() {
    for (given, printed) in [("FZPU", "FZPU"), ("upzf", "FZPU"), ("o", "O"), ("off", "off"), ("-", "off")] {
        assert_eq!(letters(given).to_string(), printed);
        assert_eq!(letters(printed), letters(given));
    }
    for wrong in ["", "X", "FX", "F Z"] {
        assert_eq!(Letters::parse(wrong), None, "{wrong:?}");
    }
}
