//! Sizes from files: every engine has a layout that the page allocator can serve, or says that it has none.
//! Neither the question nor an allocation panics, whatever the numbers are.

use slablab_model::{Machine, MachineSpec, Model, NodeSpec};
use slablab_pages::Pages;
use slablab_platform::Gfp;
use slablab_slabs::cache::{LARGEST_BLOCK, LinkPlace, WORD, alignment_on, layout, mergeable};
use slablab_slabs::engines::{slab::SlabEngine, slob::Slob, slqb::Slqb, slub::Slub};
use slablab_slabs::order::slab::{Orders, Shape};
use slablab_slabs::order::{MAX_ORDER, OrderInput, OrderRule};
use slablab_slabs::wrap::{Around, Debugged, Wrap};
use slablab_slabs::zones::Letters;
use slablab_slabs::{Backing, CacheFlags, CacheId, CacheSpec, Engine, Preset};

const SIZES: [u32; 15] = [
    0,
    1,
    8,
    4096,
    65536,
    4 << 20,
    (4 << 20) + 1,
    8 << 20,
    16 << 20,
    64 << 20,
    LARGEST_BLOCK,
    1 << 30,
    2 << 30,
    3 << 30,
    u32::MAX,
];

/// Specifications with a size in each place that has one.
fn specs() -> Vec<CacheSpec> {
    let mut all = Vec::new();
    let flags = [
        CacheFlags::NONE,
        CacheFlags::KMALLOC,
        CacheFlags::HWCACHE_ALIGN | CacheFlags::TYPESAFE_BY_RCU,
        CacheFlags::CONSTRUCTOR | CacheFlags::RECLAIM_ACCOUNT,
    ];
    for size in SIZES {
        for flags in flags {
            let spec = CacheSpec { flags, ..CacheSpec::of_size(192) };
            all.push(CacheSpec { object_size: size, ..spec });
            // A known size is that of the object with what is around it.
            let object_size = if size == 0 { 192 } else { size.min(192) };
            all.push(CacheSpec { object_size, known_size: size, ..spec });
            all.push(CacheSpec { object_size: size, known_size: size, align: 8, ..spec });
            all.push(CacheSpec { align: size, ..spec });
        }
    }
    for known_order in [0, 3, MAX_ORDER, MAX_ORDER + 1, 13, u8::MAX] {
        for size in [1, 8, 192, 65536, 4 << 20, 8 << 20] {
            all.push(CacheSpec { known_order: Some(known_order), ..CacheSpec::of_size(size) });
        }
    }
    all
}

fn check<E: Engine<Model>>(spec: &CacheSpec, policy: &E::Policy, pages: &Pages<Model>, what: &str) {
    let largest = 1u64 << (page_shift() + u32::from(MAX_ORDER));
    let most = u64::from(spec.object_size.max(spec.known_size).max(spec.align));
    let Some(found) = E::layout(spec, policy) else {
        // SLAB's slabs have at most 32 MB. Zones take as much again as the object, if that is aligned so.
        assert!(most > largest / 4, "{what}: no layout for {spec:?}");
        return;
    };
    let slab = |order: u8| 1u64 << (page_shift() + u32::from(order));
    assert!(u64::from(spec.object_size) <= largest, "{what}: {found:?} for {spec:?}");
    assert!(found.min_order <= found.order && found.order <= MAX_ORDER, "{what}: {found:?} for {spec:?}");
    for (order, objects) in [(found.order, found.objects), (found.min_order, found.min_objects)] {
        let bytes = u64::from(objects - 1) * u64::from(found.size) + u64::from(found.object_size);
        assert!(objects <= u32::from(u16::MAX) && bytes <= slab(order), "{what}: {found:?} for {spec:?}");
    }
    // Zones are written byte by byte, and a slab's objects are linked one by one.
    if found.objects > 1024 || most > 4096 && what.contains(',') {
        return;
    }
    let (common, cache) = (E::Common::default(), E::create(CacheId(1), spec, policy));
    let backing = Backing::new(pages, &common);
    if let Some(object) = cache.alloc_sized(&backing, spec.object_size, Gfp::KERNEL, None) {
        cache.free(&backing, object).unwrap_or_else(|misuse| panic!("{what}: {misuse} of {spec:?}"));
    }
    // A kmalloc of more than its class, which only SLOB looks at: pages that no allocator has.
    let _ = cache.alloc_sized(&backing, u32::MAX, Gfp::KERNEL, None);
}

fn page_shift() -> u32 {
    <Model as slablab_platform::Topology>::page_shift()
}

fn check_in<E: Engine<Model>>(policy: &E::Policy, preset: &Preset, pages: &Pages<Model>) {
    let wrap = Wrap { letters: Letters::parse("FZPU").expect("letters"), ..Wrap::default() };
    let around = Around { engine: policy.clone(), wrap, release: preset.release() };
    for spec in specs() {
        check::<E>(&spec, policy, pages, &preset.to_string());
        check::<Debugged<Model, E>>(&spec, &around, pages, &format!("{preset},debug=FZPU"));
    }
}

#[test]
fn every_engine_answers_for_every_size() {
    for page_shift in [12, 16] {
        for preset in Preset::all() {
            let nodes = vec![NodeSpec { bytes: 1 << 30 }];
            let spec = MachineSpec { page_shift, nodes, ..MachineSpec::uniform(2, 1, 1 << 30) };
            Machine::new(spec).expect("the spec is right").enter(|| {
                let pages = Pages::new(preset.pages());
                match &preset {
                    Preset::Slub(policy) => check_in::<Slub<_>>(policy, &preset, &pages),
                    Preset::Slqb(policy) => check_in::<Slqb<_>>(policy, &preset, &pages),
                    Preset::Slab(policy) => check_in::<SlabEngine<_>>(policy, &preset, &pages),
                    Preset::Slob(policy) => check_in::<Slob<_>>(policy, &preset, &pages),
                    Preset::Registered(_) => unreachable!("nothing is registered"),
                }
            });
        }
    }
}

/// The functions that tools call without an engine.
#[test]
fn every_rule_answers_for_every_size() {
    for size in SIZES {
        for page_shift in [12, 16] {
            for (min_order, max_order, min_objects) in [(0, 3, 0), (10, 10, 1), (0, 10, u32::MAX), (0, 0, 0)]
            {
                let input = OrderInput { size, page_shift, cpus: 0, min_order, max_order, min_objects };
                for rule in OrderRule::ALL {
                    let order = rule.order(input);
                    let is_served = u64::from(size.max(1)) <= 1 << (page_shift + u32::from(MAX_ORDER));
                    // SLAB's slabs have at most 32 MB; its rule then gives the order that holds one object.
                    assert!(!is_served || order <= MAX_ORDER, "{rule:?} {input:?}: {order}");
                    assert!(is_served || order > MAX_ORDER, "{rule:?} {input:?}: {order}");
                    assert!(!is_served || rule.objects(input, order) >= 1, "{rule:?} {input:?}: {order}");
                }
            }
            for align in SIZES {
                for orders in [Orders::known(255), Orders::of(true, 1), Orders::of(false, 255)] {
                    let found = [
                        Shape::with_index(size, align, page_shift, orders),
                        Shape::with_descriptor(size, align, page_shift, orders),
                    ];
                    assert!(
                        found.iter().flatten().all(|found| found.shape.order <= MAX_ORDER),
                        "{size} {align}"
                    );
                }
            }
        }
        let spec = CacheSpec { align: size, flags: CacheFlags::HWCACHE_ALIGN, ..CacheSpec::of_size(size) };
        for place in [LinkPlace::Start, LinkPlace::Middle] {
            let (bytes, link) = layout(&spec, place);
            assert!(bytes >= WORD && link < bytes, "{size}: {bytes}, {link}");
            assert!(bytes >= size.min(LARGEST_BLOCK), "{size}: {bytes}");
        }
        assert!(alignment_on(&spec, 128).is_multiple_of(WORD), "{size}");
        assert!(!mergeable(&spec, &CacheSpec::of_size(192), 192) || size <= 192, "{size}");
    }
}
