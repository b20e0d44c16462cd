//! Values computed from an object's size: batches, queues, orders, colours (docs/theory/slqb.md 2, 3, 7).

use super::*;
use slablab_platform::Frames;

#[test]
fn batches_and_queues_by_size() {
    // From section 2. For 64 KiB pages, the result of its formulas, limited to 65535 by the count of a hot
    // list.
    let table: &[(u32, u32, u32, u32)] = &[
        (12, 8, 2048, 8192),
        (12, 16, 1024, 4096),
        (12, 32, 512, 2048),
        (12, 64, 256, 1024),
        (12, 192, 256, 1024),
        (12, 1024, 256, 1024),
        (12, 2048, 128, 512),
        (12, 4096, 64, 256),
        (12, 8192, 32, 128),
        (12, 16384, 16, 64),
        (12, 1 << 20, 1, 4),
        (16, 8, 32768, 65534),
        (16, 64, 4096, 16384),
        (16, 4096, 256, 1024),
    ];
    for (page_shift, size, freebatch, hiwater) in table {
        let spec = MachineSpec { page_shift: *page_shift, ..MachineSpec::uniform(1, 1, 256 * MIB) };
        Machine::new(spec).expect("the spec is right").enter(|| {
            let heap = Heap::new(SEPTEMBER, &CacheSpec::of_size(*size));
            let found = (heap.cache.freebatch(), heap.cache.hiwater());
            assert_eq!(found, (*freebatch, *hiwater), "size {size}, pages of 2^{page_shift}");
        });
    }
}

#[test]
fn orders_by_size() {
    let table: &[(&str, u32, u8)] = &[
        (SEPTEMBER, 704, 0),
        (SEPTEMBER, 2112, 1),
        (SEPTEMBER, 3520, 0),
        (SEPTEMBER, 4096, 0),
        (SEPTEMBER, 6144, 1),
        (SEPTEMBER, 8192, 1),
        (SEPTEMBER, 12288, 2),
        (SEPTEMBER, 16384, 2),
        (SEPTEMBER, 32768, 3),
        ("slqb,min_order=2", 704, 2),
        ("slqb,min_objects=8", 704, 1),
    ];
    for (preset, size, order) in table {
        Machine::new(two_nodes()).expect("the spec is right").enter(|| {
            let heap = Heap::new(preset, &CacheSpec::of_size(*size));
            let geometry = heap.cache.geometry();
            assert_eq!((geometry.order, geometry.min_order), (*order, *order), "{preset}, size {size}");
        });
    }
}

#[test]
fn pages_differ_in_colour() {
    // 5 objects of 700 bytes leave 576 bytes: nine colours of 64 bytes, then the first colour again.
    Machine::new(two_nodes()).expect("the spec is right").enter(|| {
        let mut heap = Heap::new(SEPTEMBER, &CacheSpec::of_size(704));
        heap.step(Alloc(0, 50));
        let first = heap.held.iter().step_by(5).map(|object| Model::locate(*object).1).collect::<Vec<_>>();
        assert_eq!(first, [0, 64, 128, 192, 256, 320, 384, 448, 512, 0]);
        heap.end();
    });
}
