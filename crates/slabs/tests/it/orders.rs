//! Slab orders: every cache of every dumped kernel, the vectors of the theory pages, and the sizes whose
//! order a change of the rule moved (docs/theory/slub.md 5, docs/theory/slqb.md 3).

use crate::truth;
use slablab_slabs::Release;
use slablab_slabs::order::OrderRule::{
    Clamped, Halving, Halving8, Lean, PatelV1, PatelV2, PatelV3, Single, Slab, Slqb,
};
use slablab_slabs::order::slab::Shape;
use slablab_slabs::order::{
    COSTLY_ORDER, CpuCounts, CpusCounted, MAX_ORDER, OrderInput, OrderRule, default_max_order,
    default_min_objects,
};

/// The multiples of 8 from 8 to `largest` for which two rules give different orders.
fn moved(a: OrderRule, b: OrderRule, page_shift: u32, cpus: u32, largest: u32) -> Vec<u32> {
    let order = |rule: OrderRule, size| rule.order(input(size, page_shift, cpus));
    (8..=largest).step_by(8).filter(|size| order(a, *size) != order(b, *size)).collect()
}

/// The input of a rule without boot parameters.
fn input(size: u32, page_shift: u32, cpus: u32) -> OrderInput {
    OrderInput { size, page_shift, cpus, min_order: 0, max_order: COSTLY_ORDER, min_objects: 0 }
}

/// Checks the order of one size, and the number of objects in such a slab.
fn check(rule: OrderRule, input: OrderInput, order: u8, objects: u64) {
    let got = rule.order(input);
    let held = rule.objects(input, got);
    assert_eq!((got, held), (order, objects), "{rule:?} of {input:?}");
}

#[test]
fn orders_match_every_dump() {
    let caches = truth::caches();
    let (mut rows, mut exact) = (0, 0);
    for run in truth::runs() {
        let policy = run.policy();
        let mine: Vec<_> = caches.iter().filter(|cache| cache.is_in(&run)).collect();
        assert!(mine.len() >= 80, "{}: {} caches", run.name, mine.len());
        for cache in mine {
            let input = run.order_input(cache.slab_size);
            let order = policy.order.order(input);
            let objects = (input.slab_bytes(order) / cache.slab_size as u64) as u32;
            rows += 1;
            if (order, objects) == (cache.order, cache.objects) {
                exact += 1;
            } else {
                println!(
                    "{} {}: {order} of {objects}, is {} of {}",
                    run.name, cache.name, cache.order, cache.objects
                );
            }
        }
    }
    println!("{exact} of {rows} caches exact");
    assert_eq!(exact, rows);
}

/// The dumps exclude every other number of CPUs up to its power of two: the rule uses only the bit length of
/// the number.
#[test]
fn the_dumps_exclude_other_cpu_counts() {
    let caches = truth::caches();
    for run in truth::runs().iter().filter(|run| run.max_order > 0) {
        let fits = |cpus: u32| {
            caches.iter().filter(|cache| cache.is_in(run)).all(|cache| {
                let input = OrderInput { cpus, ..run.order_input(cache.slab_size) };
                run.policy().order.order(input) == cache.order
            })
        };
        let fitting: Vec<u32> = (0..12).map(|bits| 1 << bits).filter(|cpus| fits(*cpus)).collect();
        let own = 1 << run.present.ilog2();
        // With 64K pages, 8 and 16 CPUs give every size in these dumps equal orders.
        let expected = if run.page_shift == 16 && run.present == 16 { vec![8, 16] } else { vec![own] };
        assert_eq!(fitting, expected, "{}", run.name);
    }
}

#[test]
fn cpus_counted_by_release() {
    fn check(release: &str, counts: (u32, u32, u32), cpus: u32) {
        let counted = CpusCounted::of(Release::parse(release).expect("a release"));
        let (possible, present, online) = counts;
        assert_eq!(counted.count(CpuCounts { possible, present, online }), cpus, "{release} of {counts:?}");
    }
    check("2.6.29", (64, 16, 1), 64);
    check("5.10.200", (64, 16, 1), 64);
    check("5.11.0", (64, 16, 1), 1);
    check("5.11.1", (64, 16, 1), 16);
    check("6.1.0-50-amd64", (64, 16, 1), 16);
    check("6.12.117+deb12-amd64", (64, 1, 1), 64);
    check("6.18.44", (2, 2, 1), 2);
}

/// Orders from an independent implementation of docs/theory/slub.md 5, for 4K pages: 2.6.29, 2.6.30 and 6.7
/// with 8 CPUs, 6.7 with 2, 16, 64 and 256 CPUs, and SLQB.
#[test]
fn orders_match_vectors_for_4k_pages() {
    type Orders = [(u8, u64); 8];
    #[rustfmt::skip]
    let vectors: [(u32, Orders); 26] = [
        (8,     [(0, 512), (0, 512), (0, 512), (0, 512), (0, 512), (0, 512), (0, 512), (0, 512)]),
        (16,    [(0, 256), (0, 256), (0, 256), (0, 256), (0, 256), (0, 256), (0, 256), (0, 256)]),
        (32,    [(0, 128), (0, 128), (0, 128), (0, 128), (0, 128), (0, 128), (0, 128), (0, 128)]),
        (64,    [(0, 64), (0, 64), (0, 64), (0, 64), (0, 64), (0, 64), (0, 64), (0, 64)]),
        (96,    [(0, 42), (0, 42), (0, 42), (0, 42), (0, 42), (0, 42), (0, 42), (0, 42)]),
        (128,   [(0, 32), (0, 32), (0, 32), (0, 32), (0, 32), (0, 32), (1, 64), (0, 32)]),
        (168,   [(0, 24), (0, 24), (0, 24), (0, 24), (0, 24), (1, 48), (1, 48), (0, 24)]),
        (192,   [(0, 21), (0, 21), (0, 21), (0, 21), (1, 42), (1, 42), (1, 42), (0, 21)]),
        (256,   [(1, 32), (1, 32), (1, 32), (0, 16), (1, 32), (1, 32), (2, 64), (0, 16)]),
        (264,   [(1, 31), (1, 31), (1, 31), (0, 15), (1, 31), (2, 62), (2, 62), (0, 15)]),
        (512,   [(2, 32), (2, 32), (2, 32), (1, 16), (2, 32), (2, 32), (3, 64), (0, 8)]),
        (576,   [(2, 28), (2, 28), (2, 28), (1, 14), (2, 28), (3, 56), (3, 56), (0, 7)]),
        (640,   [(2, 25), (2, 25), (2, 25), (1, 12), (2, 25), (3, 51), (3, 51), (0, 6)]),
        (704,   [(2, 23), (2, 23), (2, 23), (2, 23), (3, 46), (3, 46), (3, 46), (0, 5)]),
        (1024,  [(3, 32), (3, 32), (3, 32), (2, 16), (3, 32), (3, 32), (3, 32), (0, 4)]),
        (1088,  [(3, 30), (3, 30), (3, 30), (2, 15), (3, 30), (3, 30), (3, 30), (0, 3)]),
        (2048,  [(3, 16), (3, 16), (3, 16), (3, 16), (3, 16), (3, 16), (3, 16), (0, 2)]),
        (2112,  [(3, 15), (3, 15), (3, 15), (3, 15), (3, 15), (3, 15), (3, 15), (1, 3)]),
        (3520,  [(3, 9), (3, 9), (3, 9), (3, 9), (3, 9), (3, 9), (3, 9), (0, 1)]),
        (4096,  [(3, 8), (3, 8), (3, 8), (3, 8), (3, 8), (3, 8), (3, 8), (0, 1)]),
        (4224,  [(3, 7), (3, 7), (3, 7), (3, 7), (3, 7), (3, 7), (3, 7), (1, 1)]),
        (6144,  [(3, 5), (3, 5), (3, 5), (3, 5), (3, 5), (3, 5), (3, 5), (1, 1)]),
        (8192,  [(2, 2), (3, 4), (3, 4), (3, 4), (3, 4), (3, 4), (3, 4), (1, 1)]),
        (12288, [(3, 2), (3, 2), (3, 2), (3, 2), (3, 2), (3, 2), (3, 2), (2, 1)]),
        (16384, [(3, 2), (3, 2), (3, 2), (3, 2), (3, 2), (3, 2), (3, 2), (2, 1)]),
        (32768, [(3, 1), (3, 1), (3, 1), (3, 1), (3, 1), (3, 1), (3, 1), (3, 1)]),
    ];
    let columns = [
        (Halving, 8),
        (Clamped, 8),
        (Single, 8),
        (Single, 2),
        (Single, 16),
        (Single, 64),
        (Single, 256),
        (Slqb, 8),
    ];
    for (size, orders) in vectors {
        for ((rule, cpus), (order, objects)) in columns.into_iter().zip(orders) {
            check(rule, input(size, 12, cpus), order, objects);
        }
    }
}

/// Orders for 64K pages: 2.6.30 to 6.6, 6.7, and Patel's version 3, with 16 and with 160 CPUs.
#[test]
fn orders_match_vectors_for_64k_pages() {
    let vectors: [(u32, [u8; 3], [u8; 3]); 18] = [
        (32, [0, 0, 0], [0, 0, 0]),
        (64, [0, 0, 0], [0, 0, 0]),
        (128, [0, 0, 0], [0, 0, 0]),
        (192, [0, 0, 0], [0, 0, 0]),
        (256, [0, 0, 0], [0, 0, 0]),
        (512, [0, 0, 0], [0, 0, 0]),
        (640, [0, 0, 0], [0, 0, 0]),
        (1024, [0, 0, 0], [0, 0, 0]),
        (1216, [0, 0, 0], [0, 0, 0]),
        (2432, [0, 0, 1], [1, 1, 1]),
        (4096, [1, 1, 1], [2, 2, 2]),
        (6912, [2, 2, 2], [2, 2, 2]),
        (8192, [2, 2, 2], [3, 3, 3]),
        (9216, [2, 2, 2], [3, 3, 3]),
        (16384, [3, 3, 3], [3, 3, 3]),
        (32768, [3, 3, 3], [3, 3, 3]),
        (40960, [3, 3, 3], [3, 3, 3]),
        (65536, [3, 3, 3], [3, 3, 3]),
    ];
    for (size, with_16, with_160) in vectors {
        for (cpus, orders) in [(16, with_16), (160, with_160)] {
            for (rule, order) in [Clamped, Single, PatelV3].into_iter().zip(orders) {
                check(rule, input(size, 16, cpus), order, (65536u64 << order) / size as u64);
            }
        }
    }
}

/// Orders from mails: 2.6.29 with eight CPUs in January 2009, and Bharata's tables of 2020 with 64K pages.
#[test]
fn orders_match_mails() {
    check(Halving, input(4096, 12, 8), 3, 8);
    check(Halving, OrderInput { max_order: 1, ..input(4096, 12, 8) }, 1, 2);
    check(Halving, OrderInput { max_order: 0, ..input(4096, 12, 8) }, 0, 1);
    for (size, before, after, cpus_after) in
        [(2432, (1, 53), (0, 26), 16), (9856, (3, 53), (1, 13), 1), (8192, (2, 32), (0, 8), 1)]
    {
        check(Clamped, input(size, 16, 64), before.0, before.1);
        check(Clamped, input(size, 16, cpus_after), after.0, after.1);
    }
    check(Clamped, input(512, 12, 1), 0, 8);
    check(Clamped, input(512, 12, 8), 2, 32);
}

/// 2.6.30 changed the order of 205 sizes with 8 CPUs, of 513 sizes with 2 or 16 CPUs, and of none with 64
/// CPUs. Every change is to a larger slab (docs/theory/slub.md 5.4).
#[test]
fn release_2_6_30_raised_these_orders() {
    fn check(cpus: u32, sizes: std::ops::RangeInclusive<u32>, orders: (u8, u8)) {
        let got = moved(Halving, Clamped, 12, cpus, 32768);
        let of = |rule: OrderRule, size| rule.order(input(size, 12, cpus));
        let inside: Vec<u32> = got.iter().copied().filter(|size| sizes.contains(size)).collect();
        assert_eq!(inside, sizes.step_by(8).collect::<Vec<_>>(), "{cpus} CPUs");
        assert!(inside.iter().all(|size| (of(Halving, *size), of(Clamped, *size)) == orders), "{cpus} CPUs");
        assert_eq!(got, inside, "{cpus} CPUs: nothing else moved");
    }
    check(8, 6560..=8192, (2, 3));
    check(2, 12288..=16384, (2, 3));
    check(16, 12288..=16384, (2, 3));
    assert_eq!(moved(Halving, Clamped, 12, 64, 32768), []);
}

/// 6.7 changed the order of 170 sizes from 2 to 3, and of no other size, for every number of CPUs
/// (docs/theory/slub.md 5.5).
#[test]
fn release_6_7_raised_these_orders() {
    for cpus in [1, 2, 4, 8, 16, 64, 256] {
        let got = moved(Clamped, Single, 12, cpus, 32768);
        assert_eq!(got, (10928..=12280).step_by(8).collect::<Vec<_>>(), "{cpus} CPUs");
        assert_eq!(got.len(), 170);
        for size in got {
            check(Clamped, input(size, 12, cpus), 2, 1);
            check(Single, input(size, 12, cpus), 3, 2);
        }
    }
}

/// A first fraction of 8 instead of 16 changes orders only with few CPUs: a slab for 16 wanted objects always
/// wastes less than 1/16. Computed with check_orders.py's search, started at 8.
#[test]
fn the_first_fraction_matters_only_with_few_cpus() {
    for (cpus, count, ends) in
        [(1, 56, Some((344, 1912))), (2, 5, Some((632, 1272))), (4, 0, None), (16, 0, None)]
    {
        let got = moved(Halving8, Halving, 12, cpus, 32768);
        assert_eq!(got.len(), count, "{cpus} CPUs: {got:?}");
        assert_eq!(got.first().copied().zip(got.last().copied()), ends, "{cpus} CPUs");
        let up = |size: &u32| Halving.order(input(*size, 12, cpus)) > Halving8.order(input(*size, 12, cpus));
        assert!(got.iter().all(up), "{cpus} CPUs");
    }
    check(Halving8, input(344, 12, 1), 0, 11);
    check(Halving, input(344, 12, 1), 1, 23);
    check(Halving8, input(1912, 12, 1), 2, 8);
    check(Halving, input(1912, 12, 1), 3, 17);
}

/// The number of sizes for which two rules give different orders, on one page size and for one number of
/// CPUs: moved up, and moved down.
fn moves(page_shift: u32, cpus: u32, sizes: impl Iterator<Item = u32>) -> (usize, usize) {
    sizes.fold((0, 0), |(up, down), size| {
        let input = input(size, page_shift, cpus);
        match PatelV3.order(input).cmp(&Clamped.order(input)) {
            std::cmp::Ordering::Greater => (up + 1, down),
            std::cmp::Ordering::Equal => (up, down),
            std::cmp::Ordering::Less => (up, down + 1),
        }
    })
}

/// One number of CPUs, up to 4096, for each number of wanted objects. Every other number of CPUs gives the
/// same wanted objects as one of these.
fn classes() -> impl Iterator<Item = u32> {
    for cpus in 1..=4096u32 {
        let same = 1 << cpus.ilog2();
        assert_eq!(input(8, 16, cpus).wanted_objects(), input(8, 16, same).wanted_objects());
    }
    (0..=12).map(|bits| 1 << bits)
}

/// The changes by Patel's version 3 for every size that fits into a slab of `slub_max_order`, on all page
/// sizes, and for 1 to 4096 CPUs (docs/theory/slub.md 5.6). On 4K pages it changes nothing. On 64K pages it
/// only raises orders, and only below 64 CPUs. On 16K pages it lowers the same sizes for every number of
/// CPUs, because it never tolerates a waste of a quarter there.
#[test]
fn patel_v3_changes_these_orders() {
    // The number of sizes moved up, and of those that are multiples of a word, as in real caches. One entry
    // per bit length of the number of CPUs.
    const ON_16K: [(usize, usize); 3] = [(999, 126), (545, 68), (117, 16)];
    const ON_64K: [(usize, usize); 6] =
        [(9965, 1239), (7769, 962), (4168, 513), (1726, 211), (577, 69), (100, 12)];
    for (page_shift, ups, (down, words_down)) in
        [(12, &[][..], (0, 0)), (14, &ON_16K[..], (5461, 683)), (16, &ON_64K[..], (0, 0))]
    {
        let largest = 1 << (page_shift + COSTLY_ORDER as u32);
        for (bits, cpus) in classes().enumerate() {
            let (up, words_up) = ups.get(bits).copied().unwrap_or((0, 0));
            let all = moves(page_shift, cpus, 1..=largest);
            let words = moves(page_shift, cpus, (8..=largest).step_by(8));
            assert_eq!((all, words), ((up, down), (words_up, words_down)), "2^{page_shift}, {cpus} CPUs");
        }
    }
    // A slab that wastes a quarter is rejected in favour of one that wastes half.
    check(Clamped, input(32776, 14, 16), 3, 3);
    check(PatelV3, input(32776, 14, 16), 2, 1);
    for (size, before, after) in [(2264, 0, 1), (4520, 1, 2), (9048, 2, 3)] {
        check(Clamped, input(size, 16, 16), before, (65536u64 << before) / size as u64);
        check(PatelV3, input(size, 16, 16), after, (65536u64 << after) / size as u64);
    }
}

/// Objects larger than a slab of `slub_max_order` get the smallest order that holds one, under both rules.
/// Tested for all sizes up to the page allocator's largest block.
#[test]
#[ignore = "84 million sizes, 13 classes of CPUs, two rules"]
fn patel_v3_changes_no_order_above_max_order() {
    for page_shift in [12, 14, 16] {
        let (most, largest) =
            (1 << (page_shift + COSTLY_ORDER as u32), 1u32 << (page_shift + MAX_ORDER as u32));
        for cpus in classes() {
            let moved = moves(page_shift, cpus, most + 1..=largest);
            assert_eq!(moved, (0, 0), "pages of 2^{page_shift}, {cpus} CPUs");
        }
    }
}

/// SLAB's slabs as check_orders.py computes them: size, order, objects, tail; then order and tail if
/// reclaimable.
#[test]
fn slab_orders_match_vectors() {
    fn check_shape(page_shift: u32, size: u32, reclaimable: bool, order: u8, objects: u64, tail: u64) {
        let shape = Shape::of(size, 8, page_shift, reclaimable).expect("a slab");
        assert_eq!(
            (shape.order, shape.objects, shape.tail),
            (order, objects, tail),
            "{size} bytes, pages of 2^{page_shift}, reclaimable: {reclaimable}"
        );
        assert_eq!(shape.off_slab, size >= 1 << (page_shift - 3));
        if !reclaimable {
            check(Slab, input(size, page_shift, 8), order, objects);
        }
    }
    #[rustfmt::skip]
    let of_4k = [
        (8, 0, 337, 0), (64, 0, 59, 32), (96, 0, 40, 48), (128, 0, 30, 88), (192, 0, 20, 128),
        (256, 0, 15, 144), (512, 0, 8, 0), (576, 0, 7, 64), (704, 1, 11, 448), (1024, 0, 4, 0),
        (1088, 1, 7, 576), (2048, 0, 2, 0), (2112, 1, 3, 1856), (4096, 0, 1, 0), (4224, 1, 1, 3968),
        (6144, 1, 1, 2048), (8192, 1, 1, 0), (12288, 2, 1, 4096), (16384, 2, 1, 0), (32768, 3, 1, 0),
        (65536, 4, 1, 0),
    ];
    #[rustfmt::skip]
    let of_64k = [
        (8, 0, 5457, 0), (64, 0, 963, 0), (96, 0, 654, 88), (128, 0, 496, 16), (192, 0, 334, 24),
        (256, 0, 251, 224), (512, 0, 126, 472), (704, 0, 92, 352), (1088, 0, 59, 1056), (4096, 0, 15, 3984),
        (6144, 0, 10, 4008), (8192, 0, 8, 0), (12288, 0, 5, 4096), (32768, 0, 2, 0), (65536, 0, 1, 0),
    ];
    for (page_shift, vectors) in [(12, &of_4k[..]), (16, &of_64k[..])] {
        for &(size, order, objects, tail) in vectors {
            check_shape(page_shift, size, false, order, objects, tail);
        }
    }
    for (size, objects, tail) in [(704, 5, 576), (1088, 3, 832), (2112, 1, 1984)] {
        check_shape(12, size, true, 0, objects, tail);
    }
    assert_eq!(Shape::of((32 << 20) + 8, 8, 12, false), None, "no slab is larger than 32 MB");
    assert_eq!(Slab.order(input((32 << 20) + 8, 12, 8)), 14, "an order larger than any real one");
}

/// Up to 1 KiB as `single`, with 4 CPUs; above that as many objects as 16 KiB hold, or four.
#[test]
fn lean_slabs_hold_four_objects_or_16_kib() {
    let check = |size, order, objects| {
        check(Lean, OrderInput { max_order: COSTLY_ORDER + 1, ..input(size, 12, 4) }, order, objects)
    };
    for size in (8..=1024).step_by(8) {
        let input = OrderInput { max_order: COSTLY_ORDER + 1, ..input(size, 12, 4) };
        assert_eq!(Lean.order(input), Single.order(input), "{size}");
    }
    check(2048, 2, 8);
    check(4096, 2, 4);
    check(5120, 3, 6);
    check(8192, 3, 4);
    check(16384, 4, 4);
    check(32768, 4, 2);
    // A CPU that wants fewer objects gets no more.
    assert_eq!(Lean.order(OrderInput { min_objects: 2, ..input(4096, 12, 4) }), 1);
}

#[test]
fn rule_names_parse() {
    for rule in OrderRule::ALL {
        assert_eq!(OrderRule::parse(rule.name()), Some(rule));
    }
    assert_eq!(OrderRule::parse("jay-v1"), Some(PatelV1));
    assert_eq!(OrderRule::parse("jay-v2"), Some(PatelV2));
    assert_eq!(OrderRule::parse("jay-v3"), Some(PatelV3));
}

/// What version 3's list of changes says of the first two.
#[test]
fn patel_v1_and_v2_choose_by_waste() {
    // Size, log2 of the page size, CPUs; orders of versions 1 and 2.
    let rows = [
        // 16 objects of 192 bytes fit in a page: the second version takes that. 16 KiB waste least, 64 bytes.
        (192, 12, 4, 2, 0),
        // 16 of 700 bytes want 16 KiB, of which 284 are left over; of 32 KiB 568: as much.
        (700, 12, 4, 2, 2),
        // 16 of 2,000 bytes fit in 32 KiB, which the second version's largest order is below.
        (2_000, 12, 4, 3, 2),
        // 16 of 2,100 bytes want more than 32 KiB: the costly order.
        (2_100, 12, 4, 3, 3),
        // 8 of 10,000 bytes want 128 KiB; larger slabs waste as much.
        (10_000, 16, 1, 1, 1),
        // An object that no smaller slab holds.
        (40_000, 12, 4, 4, 4),
        (4_096, 16, 1, 0, 0),
    ];
    for (size, page_shift, cpus, first, second) in rows {
        let input = input(size, page_shift, cpus);
        assert_eq!(
            (PatelV1.order(input), PatelV2.order(input)),
            (first, second),
            "{size} {page_shift} {cpus}"
        );
    }
}

#[test]
fn rules_by_release() {
    fn check(release: &str, rule: OrderRule, max_order: u8, min_objects: u32) {
        let release = Release::parse(release).expect("a release");
        let got = (OrderRule::of(release), default_max_order(release), default_min_objects(release));
        assert_eq!(got, (rule, max_order, min_objects), "{release}");
    }
    check("2.6.23", Halving8, 1, 4);
    check("2.6.25", Halving8, 1, 4);
    check("2.6.26", Halving8, 3, 0);
    check("2.6.29", Halving, 3, 0);
    check("2.6.30", Clamped, 3, 0);
    check("6.1.0-50-amd64", Clamped, 3, 0);
    check("6.6.100", Clamped, 3, 0);
    check("6.7", Single, 3, 0);
    check("7.0.1", Single, 3, 0);
    for run in truth::runs() {
        assert_eq!(OrderRule::of(Release::parse(run.release).expect("a release")), run.policy().order);
    }
}

/// A slab has at most 32767 objects. An order that would hold more is lowered (docs/theory/slub.md 5.2).
#[test]
fn a_slab_has_at_most_32767_objects() {
    let huge = |size, min_order| OrderInput { min_order, max_order: 10, ..input(size, 16, 8) };
    for rule in [Halving, Clamped, Single] {
        for (size, min_order) in [(8, 3), (8, 10), (16, 4), (64, 6)] {
            let order = rule.order(huge(size, min_order));
            let objects = huge(size, min_order).slab_bytes(order) / size as u64;
            assert!(objects <= 32767, "{rule:?}: {objects} objects of {size} bytes at order {order}");
            assert!(objects * 4 > 32767, "{rule:?}: {objects} objects of {size} bytes at order {order}");
        }
        check(rule, OrderInput { page_shift: 18, ..huge(8, 0) }, 0, 32767);
        check(rule, huge(8, 2), 1, 16384);
        check(rule, huge(8, 1), 1, 16384);
    }
}
