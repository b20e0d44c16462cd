//! 2.4: which list or step serves a request, row by row (docs/theory/pagealloc.md 8).

use crate::world::{Random, Spec, World, assert_balanced};
use slablab_pages::policy::{MinFree, Retries, Search, ZoneRule};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::ReclaimStep::{self, Direct, Launder, StealClean, WakeKreclaimd, WakeKswapd, Yield};
use slablab_platform::{FrameKind, Gfp, NodeId, Pfn, Reclaimed};
use std::cell::RefCell;
use std::rc::Rc;

const NODE: NodeId = NodeId(0);
const LINUS: &str = "2.4.9";
const ANDREA: &str = "2.4.10";

/// One zone of 16,384 frames: min 128, low 256, high 384.
fn policy(name: &str) -> PagesPolicy {
    let zones = Some(ZoneRule::One);
    PagesPolicy { zones, ..PagesPolicy::named(name).expect("a release of 2.4") }
}

fn alloc(pages: &Pages<World>, gfp: Gfp, order: u8) -> Option<Pfn> {
    pages.alloc(gfp, order, NODE, FrameKind::Allocated)
}

/// What serves a request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Served {
    /// The free lists.
    Free,
    /// A clean page, stolen.
    Clean,
    /// Direct reclaim handed the last page over.
    Handed,
    Nothing,
}
use Served::{Clean, Free, Handed, Nothing};

/// Allocates everything, and frees `free` single pages, no two of them buddies, then makes `clean` pages that
/// are two by two buddies clean ones. Returns the pages that are still allocated.
fn drain(pages: &Pages<World>, free: usize, clean: usize) -> Vec<Pfn> {
    World::set_reclaimer(true);
    let mut all: Vec<Pfn> = std::iter::from_fn(|| alloc(pages, Gfp::KERNEL, 0)).collect();
    World::set_reclaimer(false);
    all.sort();
    (0..free).for_each(|n| pages.free(all[2 * n]));
    World::clean(|list| *list = all[2 * free..2 * free + clean].to_vec());
    World::asked();
    all.split_off(2 * free + clean)
}

/// The world hands clean pages over, and its last page in direct reclaim if `hands` says so.
fn serve(hands: Option<Pfn>) {
    World::on_reclaim(move |ask| match ask.step {
        StealClean => World::clean(Vec::pop).map_or(Reclaimed::NOTHING, Reclaimed::page),
        Direct => hands.map_or(Reclaimed::NOTHING, Reclaimed::page),
        _ => Reclaimed::NOTHING,
    });
}

struct Row {
    gfp: Gfp,
    order: u8,
    free: usize,
    clean: usize,
    reclaimer: bool,
    hands: bool,
    steps: &'static [ReclaimStep],
    served: Served,
}

const fn row(gfp: Gfp, free: usize, clean: usize, steps: &'static [ReclaimStep], served: Served) -> Row {
    let hands = matches!(served, Handed);
    Row { gfp, order: 0, free, clean, reclaimer: false, hands, steps, served }
}

#[track_caller]
fn check(policy: PagesPolicy, rows: &[Row]) {
    for (n, row) in rows.iter().enumerate() {
        World::enter(Spec::uniform(1, 1 << 14), || {
            let pages = Pages::<World>::new(policy);
            let mut rest = drain(&pages, row.free, row.clean);
            let last = rest.pop();
            serve(last.filter(|_| row.hands));
            let clean = World::clean(|list| list.clone());
            World::set_reclaimer(row.reclaimer);
            let pfn = alloc(&pages, row.gfp, row.order);
            let served = match pfn {
                None => Nothing,
                Some(pfn) if row.order == 0 && clean.contains(&pfn) => Clean,
                Some(pfn) if Some(pfn) == last => Handed,
                Some(_) => Free,
            };
            assert_eq!((World::steps().as_slice(), served), (row.steps, row.served), "row {n}");
            assert_balanced(&pages);
        });
    }
}

#[test]
fn free_and_clean_pages_by_step() {
    const KERNEL: Gfp = Gfp::KERNEL;
    let rows = [
        // Free pages at low are enough, whatever is clean.
        row(KERNEL, 256, 0, &[], Free),
        row(KERNEL, 256, 500, &[], Free),
        // Together at low, or at high: a clean page is stolen, unless the caller may not wait.
        row(KERNEL, 255, 1, &[StealClean], Clean),
        row(Gfp::ATOMIC, 255, 1, &[], Free),
        row(KERNEL, 127, 257, &[WakeKreclaimd, StealClean], Clean),
        row(KERNEL, 128, 256, &[StealClean], Clean),
        // Together at min only: kswapd first.
        row(KERNEL, 255, 0, &[WakeKswapd, Yield, StealClean], Free),
        row(KERNEL, 128, 127, &[WakeKswapd, Yield, StealClean], Clean),
        row(Gfp::ATOMIC, 128, 127, &[WakeKswapd], Free),
        // Below min: reclaim, or a quarter of min for who may not wait, or all for a reclaimer.
        row(KERNEL, 100, 27, &[WakeKreclaimd, WakeKswapd, Yield, Direct], Nothing),
        row(KERNEL, 0, 0, &[WakeKreclaimd, WakeKswapd, Yield, Direct], Handed),
        row(Gfp::ATOMIC, 32, 0, &[WakeKreclaimd, WakeKswapd], Free),
        row(Gfp::ATOMIC, 31, 0, &[WakeKreclaimd, WakeKswapd], Nothing),
        Row { reclaimer: true, ..row(Gfp::ATOMIC, 1, 0, &[WakeKreclaimd, WakeKswapd], Free) },
        Row { reclaimer: true, ..row(KERNEL, 1, 3, &[WakeKreclaimd, WakeKswapd, Yield, StealClean], Clean) },
    ];
    check(policy(LINUS), &rows);
    check(policy("2.4.8"), &rows);
    check(policy("2.4.9-ac14"), &rows);
    // Orders above 0 never steal: clean pages are freed until they make a block. With enough free pages there
    // is no reclaim for them.
    let steps: &[_] = &[WakeKswapd, Yield, Launder, StealClean, StealClean];
    let order1 = |free, clean, steps, served| Row { order: 1, ..row(KERNEL, free, clean, steps, served) };
    let rows = [
        order1(400, 2, steps, Free),
        order1(400, 0, &[WakeKswapd, Yield, Launder], Nothing),
        order1(300, 0, &[WakeKswapd, Yield, Launder, Direct], Nothing),
    ];
    check(policy(LINUS), &rows);
    let search = Search::FreeAndClean { steals: false };
    let kept = [row(KERNEL, 255, 1, &[], Free), row(KERNEL, 128, 127, &[WakeKswapd, Yield], Free)];
    check(PagesPolicy { search, ..policy(LINUS) }, &kept);
}

/// A farther zone at high comes before a nearer one at low.
#[test]
fn zones_at_high_come_first() {
    // DMA: low 256, high 384; Normal: low 128, high 192.
    for (clean, from_dma) in [([200, 50], true), ([200, 92], false), ([183, 50], false)] {
        World::enter(Spec::uniform(1, 12288), || {
            let pages = Pages::<World>::new(PagesPolicy::named(LINUS).expect("a release"));
            let rest = drain(&pages, 0, 0);
            let (dma, normal): (Vec<Pfn>, Vec<Pfn>) = rest.into_iter().partition(|pfn| pfn.0 < 4096);
            dma[..200].iter().chain(&normal[..100]).for_each(|pfn| pages.free(*pfn));
            let list = [&dma[200..200 + clean[0]], &normal[100..100 + clean[1]]].concat();
            World::clean(|clean| *clean = list);
            World::on_reclaim(|ask| {
                let of_zone = |pfn: &Pfn| (pfn.0 >= 4096) == (ask.zone == 1);
                let page = World::clean(|list| list.iter().copied().rfind(of_zone));
                page.map_or(Reclaimed::NOTHING, Reclaimed::page)
            });
            let pfn = alloc(&pages, Gfp::KERNEL, 0).expect("clean pages");
            assert_eq!((pfn.0 < 4096, World::steps()), (from_dma, vec![StealClean]), "{clean:?}");
        });
    }
}

#[test]
fn classzone_by_step() {
    const KERNEL: Gfp = Gfp::KERNEL;
    let rows = [
        // What is left without the block must be above the mark.
        row(KERNEL, 258, 0, &[], Free),
        row(KERNEL, 257, 0, &[WakeKswapd], Free),
        row(KERNEL, 130, 0, &[WakeKswapd], Free),
        row(KERNEL, 129, 500, &[WakeKswapd, Direct], Nothing),
        row(Gfp::ATOMIC, 34, 0, &[WakeKswapd], Free),
        row(Gfp::ATOMIC, 33, 0, &[WakeKswapd], Nothing),
        row(KERNEL, 0, 0, &[WakeKswapd, Direct], Handed),
        Row { reclaimer: true, ..row(KERNEL, 1, 0, &[WakeKswapd], Free) },
        Row { order: 1, ..row(KERNEL, 1000, 0, &[WakeKswapd, Direct], Nothing) },
    ];
    check(policy(ANDREA), &rows);
    check(policy("2.4.10-pre11"), &rows);
}

/// What a task frees in direct reclaim of 2.4.10 stays its own until reclaim ends; one of it is handed over.
#[test]
fn the_reclaimer_gets_its_page() {
    World::enter(Spec::uniform(1, 1 << 14), || {
        let pages = Rc::new(Pages::<World>::new(policy(ANDREA)));
        let rest = drain(&pages, 0, 0);
        let (world_pages, expected) = (pages.clone(), rest[9]);
        World::on_reclaim(move |ask| {
            if ask.step != Direct {
                return Reclaimed::NOTHING;
            }
            let mut kept = World::keeping(|| rest[..10].iter().for_each(|pfn| world_pages.free(*pfn)));
            assert_eq!(world_pages.free_frames(NODE), 0, "all of it is kept");
            assert_balanced(&world_pages);
            // The last one is the task's; the others go back, last first.
            let page = kept.pop();
            kept.drain(..).rev().for_each(|pfn| world_pages.free(pfn));
            Reclaimed { freed: 10, progress: true, page }
        });
        assert_eq!(alloc(&pages, Gfp::KERNEL, 0), Some(expected));
        assert_eq!(pages.free_frames(NODE), 9);
        assert_balanced(&pages);
        // Without the policy the same free goes to the free lists.
        let search = Search::Classzone { keeps_freed: false };
        let pages = Pages::<World>::new(PagesPolicy { search, ..policy(ANDREA) });
        let pfn = alloc(&pages, Gfp::KERNEL, 0).expect("an empty machine");
        assert_eq!(World::keeping(|| pages.free(pfn)), []);
        assert_eq!(pages.free_frames(NODE), 1 << 14);
    });
}

/// 2.4.9 repeats without progress too, if the filesystem may be used: until the OOM killer's victim may take
/// all.
#[test]
fn requests_repeat_until_the_task_is_killed() {
    for (gfp, rounds) in [(Gfp::KERNEL, 7), (Gfp(Gfp::KERNEL.0 & !Gfp::FS.0), 1)] {
        World::enter(Spec::uniform(1, 1 << 14), || {
            let retries = Retries::AsKernel;
            let pages = Pages::<World>::new(PagesPolicy { retries, ..policy(LINUS) });
            drain(&pages, 20, 0);
            World::on_reclaim(|ask| {
                if ask.step == Direct && ask.attempt == 6 {
                    World::set_reclaimer(true);
                }
                false
            });
            assert_eq!(alloc(&pages, gfp, 0).is_some(), rounds == 7);
            assert_eq!(World::steps().iter().filter(|step| **step == Direct).count(), rounds);
        });
    }
}

/// `memory_pressure`: allocations and stolen pages, less frees above the number of CPUs.
#[test]
fn pressure_is_counted_by_the_kernels_that_did() {
    for (name, counts) in [
        ("2.4.8", true),
        ("2.4.9-ac14", true),
        ("2.4.9-ac14+aging", false),
        ("2.4.9-ac15+aging+launder", false),
        ("2.4.10-pre10", true),
        (ANDREA, false),
        ("2.6.32", false),
    ] {
        World::enter(Spec::uniform(1, 1 << 14), || {
            let pages = Pages::<World>::new(PagesPolicy { min_free: MinFree::ZoneRatio(10), ..policy(name) });
            let mut blocks: Vec<Pfn> = (0..100).map(|_| alloc(&pages, Gfp::KERNEL, 1).unwrap()).collect();
            assert_eq!(pages.pressure(), 100 * counts as u64, "{name}");
            blocks.drain(..).for_each(|pfn| pages.free(pfn));
            // Frees end at the number of CPUs, 2.
            assert_eq!(pages.pressure(), 2 * counts as u64, "{name}");
        });
    }
    World::enter(Spec::uniform(1, 1 << 14), || {
        let pages = Pages::<World>::new(policy(LINUS));
        drain(&pages, 255, 1);
        serve(None);
        pages.set_pressure(0);
        assert!(alloc(&pages, Gfp::KERNEL, 0).is_some());
        assert_eq!(pages.pressure(), 2, "a request and a stolen page");
    });
}

#[test]
fn releases_have_names() {
    let of = |major, minor, patch| Some(PagesPolicy::for_release(major, minor, patch));
    for (name, expected) in [
        ("2.4.8", of(2, 4, 8)),
        ("2.4.9", of(2, 4, 9)),
        ("2.4.9-ac14", of(2, 4, 9)),
        ("2.4.10-pre10", of(2, 4, 9)),
        ("2.4.10-pre11", of(2, 4, 10)),
        ("2.4.10+tweaks", of(2, 4, 10)),
        ("2.6.32", of(2, 6, 32)),
        ("6.1", of(6, 1, 0)),
        ("6.12.3-100.fc40", of(6, 12, 3)),
        ("2.4", None),
        ("2.4.x", None),
        ("2.4.9.1", None),
        ("", None),
    ] {
        assert_eq!(PagesPolicy::named(name), expected, "{name}");
    }
    assert_ne!(of(2, 4, 9), of(2, 4, 10));
    assert_ne!(PagesPolicy::named("2.4.9-ac15"), of(2, 4, 9));
}

/// Memory on both sides of 896 MiB: the kernel's own pages come from below, unless high memory is asked for.
#[test]
fn high_memory_is_for_who_asks() {
    let below = 229_376 - 4096;
    World::enter(Spec { first: below, ..Spec::uniform(1, 8192) }, || {
        let pages = Pages::<World>::new(PagesPolicy::named(ANDREA).expect("a release"));
        let names = |zone| pages.zone_info(NODE, zone).map(|zone| (zone.name, zone.frames, zone.marks.min));
        assert_eq!([0, 1, 2].map(names), [None, Some(("Normal", 4096, 32)), Some(("HighMem", 4096, 32))]);
        let is_high = |gfp| alloc(&pages, gfp, 0).expect("memory").0 >= 229_376;
        assert!(is_high(Gfp::KERNEL | Gfp::HIGHMEM));
        assert!(!is_high(Gfp::KERNEL) && !is_high(Gfp::KERNEL | Gfp::DMA32));
        // High memory ends at low, then the zone below it serves.
        while is_high(Gfp::KERNEL | Gfp::HIGHMEM) {}
        assert_eq!(pages.zone_info(NODE, 2).unwrap().free, 65);
    });
}

/// Random requests, frees, clean pages and kept ones: no page is handed out twice, and all are accounted for.
#[test]
fn programs_with_reclaim() {
    for (seed, name) in ["2.4.8", LINUS, ANDREA].into_iter().enumerate() {
        World::enter(Spec::uniform(2, 3000), || {
            let pages = Rc::new(Pages::<World>::new(PagesPolicy::named(name).expect("a release")));
            let cached = Rc::new(RefCell::new(Vec::<Pfn>::new()));
            let (world_pages, world_cached) = (pages.clone(), cached.clone());
            World::on_reclaim(move |ask| match ask.step {
                StealClean => {
                    let page = World::clean(|list| list.pop());
                    page.map_or(Reclaimed::NOTHING, Reclaimed::page)
                }
                Direct => {
                    let mut cached = world_cached.borrow_mut();
                    let some = cached.len().min(32);
                    let mut kept =
                        World::keeping(|| cached.drain(..some).for_each(|pfn| world_pages.free(pfn)));
                    let page = if ask.order == 0 { kept.pop() } else { None };
                    kept.drain(..).rev().for_each(|pfn| world_pages.free(pfn));
                    Reclaimed { freed: some as u32, progress: some > 0, page }
                }
                _ => Reclaimed::NOTHING,
            });
            let (mut random, mut mine) = (Random(seed as u64 + 1), vec![]);
            for step in 0..20_000 {
                match random.below(8) {
                    0..3 => mine.extend(alloc(&pages, Gfp::KERNEL | Gfp::HIGHMEM, random.below(3) as u8)),
                    3 => mine.extend(alloc(&pages, Gfp::ATOMIC, 0)),
                    4..6 => {
                        let page = alloc(&pages, Gfp::KERNEL | Gfp::HIGHMEM, 0);
                        cached.borrow_mut().extend(page);
                    }
                    6 if !mine.is_empty() => {
                        pages.free(mine.swap_remove(random.below(mine.len() as u64) as usize))
                    }
                    _ => {
                        let page = cached.borrow_mut().pop();
                        World::clean(|list| list.extend(page));
                    }
                }
                if step % 1000 == 0 {
                    assert_balanced(&pages);
                    let mut all =
                        [&mine[..], &cached.borrow()[..], &World::clean(|list| list.clone())[..]].concat();
                    let count = all.len();
                    all.sort();
                    all.dedup();
                    assert_eq!(all.len(), count, "{name}, step {step}: a page twice");
                }
            }
            let steps = World::steps();
            assert!(steps.contains(&Direct) && steps.contains(&WakeKswapd), "{name}: memory was short");
            assert_eq!(steps.contains(&StealClean), name != ANDREA);
            mine.into_iter()
                .chain(cached.take())
                .chain(World::clean(std::mem::take))
                .for_each(|pfn| pages.free(pfn));
            assert_eq!(pages.free_frames(NodeId(0)) + pages.free_frames(NodeId(1)), 6000);
        });
    }
}
