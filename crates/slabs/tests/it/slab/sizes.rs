//! Orders, objects per slab, and the capacities of arrays.

use super::*;
use slablab_slabs::CacheFlags;
use slablab_slabs::engines::slab::Tunables;
use slablab_slabs::order::{OrderInput, OrderRule};

fn shape(preset: &str, spec: &CacheSpec) -> (u8, u32, u32) {
    let mut machine = Machine::new(MachineSpec::uniform(4, 1, 256 * MIB)).expect("the spec is right");
    machine.enter(|| {
        let cache = SlabEngine::<Model>::create(CacheId(1), spec, &policy(preset));
        (cache.geometry().order, cache.geometry().objects, cache.off_slab_bytes())
    })
}

/// docs/theory/slab.md 5.6: names_cache (4096 bytes) has order 0 and one object.
#[test]
fn slab_orders_match_2_6_32() {
    let table: &[(u32, u8, u32)] = &[
        (64, 0, 59),
        (96, 0, 40),
        (128, 0, 30),
        (192, 0, 20),
        (256, 0, 15),
        (512, 0, 8),
        (576, 0, 7),
        (704, 1, 11),
        (1024, 0, 4),
        (2048, 0, 2),
        (2112, 1, 3),
        (4096, 0, 1),
        (8192, 1, 1),
        (16384, 2, 1),
        (32768, 3, 1),
    ];
    for (size, order, objects) in table {
        let found = shape(OLD, &CacheSpec::of_size(*size));
        assert_eq!((found.0, found.1), (*order, *objects), "{size} bytes");
    }
}

/// The form of the free list decides how many objects a slab has, whatever else a release does.
#[test]
fn the_free_list_takes_objects_from_a_slab() {
    for (preset, size, objects) in [
        (OLD, 64, 59),
        ("slab@2.6.29,management=index", 64, 64),
        ("slab@2.6.29,management=index", 128, 32),
        (NEW, 64, 64),
        ("slab@6.1,management=descriptor", 64, 59),
        ("slab@6.1,management=descriptor", 128, 30),
    ] {
        assert_eq!(shape(preset, &CacheSpec::of_size(size)).1, objects, "{preset}, {size} bytes");
    }
}

/// `objperslab` and `pagesperslab` of a Linux 6.1.192 with SLAB on x86_64 (/proc/slabinfo): plain caches by
/// object size and size per object, reclaimable caches, and caches with a constructor or with RCU.
#[test]
fn slab_layouts_match_a_real_6_1() {
    let plain: &[(u32, u32, u32, u8)] = &[
        (16, 16, 240, 0),
        (32, 32, 124, 0),
        (40, 40, 99, 0),
        (48, 48, 83, 0),
        (56, 56, 71, 0),
        // fs_cache: 56 bytes on a cache line, too few for a list of 64 bytes.
        (56, 64, 63, 0),
        (64, 64, 64, 0),
        (72, 72, 56, 0),
        (80, 80, 51, 0),
        (96, 96, 42, 0),
        (120, 120, 34, 0),
        (128, 128, 32, 0),
        (184, 184, 22, 0),
        (192, 192, 21, 0),
        (248, 248, 16, 0),
        (256, 256, 16, 0),
        (296, 296, 13, 0),
        (448, 448, 9, 0),
        (512, 512, 8, 0),
        (640, 640, 6, 0),
        (704, 704, 11, 1),
        (712, 712, 11, 1),
        (888, 888, 9, 1),
        (896, 896, 4, 0),
        (1024, 1024, 4, 0),
        (1088, 1088, 7, 1),
        (1216, 1216, 3, 0),
        (2048, 2048, 2, 0),
        (2112, 2112, 3, 1),
        (2368, 2368, 3, 1),
        (4096, 4096, 1, 0),
        (5184, 5184, 1, 1),
        (8192, 8192, 1, 1),
    ];
    for (object_size, known_size, objects, order) in plain {
        let spec = CacheSpec { known_size: *known_size, ..CacheSpec::of_size(*object_size) };
        assert_eq!(shape(NEW, &spec), (*order, *objects, 0), "{object_size} bytes in {known_size}");
        // The rule alone has one size: it assumes 64 bytes for fs_cache's objects, which have room for a list
        // of 64 bytes.
        if object_size == known_size {
            let input = OrderInput {
                size: *known_size,
                page_shift: 12,
                cpus: 4,
                min_order: 0,
                max_order: 3,
                min_objects: 0,
            };
            let found = (OrderRule::SlabIndex.order(input), OrderRule::SlabIndex.objects(input, *order));
            assert_eq!(found, (*order, *objects as u64), "{known_size} bytes by the rule");
        }
    }
    let reclaimed = CacheFlags::RECLAIM_ACCOUNT;
    let kept = CacheFlags::CONSTRUCTOR | CacheFlags::TYPESAFE_BY_RCU;
    for (name, size, flags, objects, order) in [
        ("buffer_head", 104, reclaimed, 39, 0),
        ("inode_cache", 568, reclaimed, 7, 0),
        ("sock_inode_cache", 704, reclaimed, 5, 0),
        ("anon_vma", 96, kept, 42, 0),
        ("sighand_cache", 2112, kept, 3, 1),
    ] {
        let spec = CacheSpec { known_size: size, flags, ..CacheSpec::of_size(size) };
        assert_eq!(shape(NEW, &spec), (order, objects, 0), "{name}");
    }
}

/// Orders that were set from outside. The era's rule still determines the objects and the place of the list.
#[test]
fn known_orders_replace_the_rule() {
    for (preset, size, known, expected) in [
        (NEW, 512, 3, (3, 64, 0)),
        (NEW, 704, 0, (0, 5, 0)),
        // A list of 256 bytes does not fit into an object of 64.
        (NEW, 64, 2, (2, 252, 0)),
        // The descriptor and four bytes for each of 8 objects. With 62 objects, 48 + 62 * 4 bytes are in the
        // slab.
        (OLD, 4096, 3, (3, 8, 80)),
        (OLD, 256, 2, (2, 62, 0)),
        // No object fits into a page, so the next order that holds one is used.
        (NEW, 5184, 0, (1, 1, 0)),
        // A list of 512 numbers does not fit into an object of 512 bytes, so the rule chooses the order.
        (OLD, 512, 6, (0, 8, 80)),
    ] {
        let spec = CacheSpec { known_order: Some(known), ..CacheSpec::of_size(size) };
        assert_eq!(shape(preset, &spec), expected, "{preset}, {size} bytes, order {known}");
    }
}

/// The free list is in the slab, unless the objects leave no room for it.
#[test]
fn the_free_list_is_in_the_slab_if_it_fits() {
    // The descriptor and eight numbers: 48 + 8 * 4.
    assert_eq!(shape(OLD, &CacheSpec::of_size(512)).2, 80);
    assert_eq!(shape(OLD, &CacheSpec::of_size(4096)).2, 56);
    // Seven objects of 576 bytes leave 64 bytes for a list of 76. Five of 768 leave 256 bytes for a list of
    // 68.
    assert_eq!(shape(OLD, &CacheSpec::of_size(576)).2, 80);
    assert_eq!(shape(OLD, &CacheSpec::of_size(768)).2, 0);
    assert_eq!(shape(OLD, &CacheSpec::of_size(256)).2, 0);
}

#[test]
fn a_higher_slab_max_order_wastes_less() {
    // 5184 bytes: order 1 wastes more than an eighth, and is accepted because it is `slab_max_order`.
    let waste = |preset| shape(preset, &CacheSpec::of_size(5184));
    assert_eq!((waste(NEW).0, waste("slab@6.1,max_order=3").0), (1, 2));
    assert_eq!(waste("slab@2.6.29,max_order=3").0, 2);
}

/// `limit`, `batchcount` and the shared factor in that kernel's /proc/slabinfo.
#[test]
fn array_sizes_match_slabinfo() {
    let mut machine = Machine::new(MachineSpec::uniform(4, 1, 256 * MIB)).expect("the spec is right");
    machine.enter(|| {
        for (size, limit, batchcount, factor) in [
            (16, 120, 60, 8),
            (256, 120, 60, 8),
            (296, 54, 27, 8),
            (1024, 54, 27, 8),
            (1088, 24, 12, 8),
            (4096, 24, 12, 8),
            (5184, 8, 4, 0),
            (131_072, 8, 4, 0),
            (131_080, 1, 1, 0),
        ] {
            for preset in [OLD, NEW] {
                let cache =
                    SlabEngine::<Model>::create(CacheId(1), &CacheSpec::of_size(size), &policy(preset));
                let Tunables { limit: l, batchcount: b, shared, alien } = cache.tunables();
                assert_eq!(
                    (l, b, shared),
                    (limit, batchcount, factor * batchcount),
                    "{size} bytes, {preset}"
                );
                // That 6.1 flushed alien arrays at 12 objects, also those of its task_struct (5184 bytes).
                assert_eq!(alien, if preset == OLD { limit } else { 12 }, "{size} bytes, {preset}");
            }
        }
    });
    let mut alone = Machine::new(MachineSpec::uniform(1, 1, 256 * MIB)).expect("the spec is right");
    alone.enter(|| {
        let cache = SlabEngine::<Model>::create(CacheId(1), &CacheSpec::of_size(64), &policy(OLD));
        assert_eq!(cache.tunables().shared, 0, "one CPU needs no shared array");
    });
}
