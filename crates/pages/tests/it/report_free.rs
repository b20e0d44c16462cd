//! Free memory that goes back to the world, and allocations that are no power of two.
//!
//! The reference knows which frames hold something: a frame is *resident* from its first allocation until it
//! was reported while free. A block that is said to be untouched must have no resident frame, and nothing
//! that is out is ever reported.

use crate::world::{Random, Spec, World, assert_balanced};
use slablab_pages::policy::{PcpRule, ZoneRule};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::{FrameKind, Gfp, NodeId, Pfn, Reclaimed};
use std::collections::BTreeSet;

struct Reference {
    /// Blocks that are out: first frame, frames, whether it was asked for exactly.
    out: Vec<(Pfn, u32, bool)>,
    resident: BTreeSet<u32>,
    /// How many blocks were joined with the one behind them.
    joined: u32,
}

impl Reference {
    fn take(&mut self, pfn: Pfn, frames: u32, untouched: Option<bool>, seed: u64) {
        let overlaps =
            |(other, count, _): &&(Pfn, u32, bool)| pfn.0 < other.0 + count && other.0 < pfn.0 + frames;
        assert_eq!(self.out.iter().find(overlaps), None, "seed {seed}: {frames} frames at {pfn:?}");
        if untouched == Some(true) {
            let dirty = self.resident.range(pfn.0..pfn.0 + frames).next();
            assert_eq!(dirty, None, "seed {seed}: {frames} frames at {pfn:?} are not as the world made them");
        }
        self.resident.extend(pfn.0..pfn.0 + frames);
        self.out.push((pfn, frames, untouched.is_some()));
    }

    /// A block that is out has another size now, and what it lost is free.
    fn resize(&mut self, at: usize, frames: u32, seed: u64) {
        let (pfn, _, _) = self.out.swap_remove(at);
        self.take(pfn, frames, Some(false), seed);
    }

    /// Two blocks that lie one behind the other become one, or one becomes two. What is out is the same.
    fn join_or_split(&mut self, pages: &Pages<World>, random: &mut Random) {
        let of = Pages::<World>::exact_node;
        let behind = |(pfn, frames, exact): &(Pfn, u32, bool)| {
            let end = pfn.plus(*frames);
            let found = self.out.iter().position(|(first, _, exact)| *exact && *first == end)?;
            (*exact && of(*pfn) == of(end)).then_some(found)
        };
        let pair = (0..self.out.len()).find_map(|at| Some((at, behind(&self.out[at])?)));
        let at = random.below(self.out.len() as u64) as usize;
        match pair {
            Some((at, second)) if random.below(3) > 0 => {
                let (pfn, frames, _) = self.out[at];
                Pages::<World>::join_exact(pfn, pfn.plus(frames));
                self.out[at].1 += self.out[second].1;
                assert_eq!(Pages::<World>::exact_frames(pfn), self.out[at].1);
                self.out.swap_remove(second);
                self.joined += 1;
            }
            _ if self.out[at].2 && self.out[at].1 > 1 => {
                let (pfn, frames, _) = self.out[at];
                let first = 1 + random.below(u64::from(frames) - 1) as u32;
                assert_eq!(pages.split_exact(pfn, first), pfn.plus(first));
                assert_eq!(Pages::<World>::exact_frames(pfn.plus(first)), frames - first);
                self.out[at].1 = first;
                self.out.push((pfn.plus(first), frames - first, true));
            }
            _ => {}
        }
    }

    /// Resident frames that are free.
    fn resident_free(&self) -> u64 {
        let taken = |frame: &u32| self.out.iter().any(|(pfn, count, _)| frame.wrapping_sub(pfn.0) < *count);
        self.resident.iter().filter(|frame| !taken(frame)).count() as u64
    }

    /// The world takes a block, or does not.
    fn report(&mut self, pfn: Pfn, order: u8, takes: bool, seed: u64) -> bool {
        for frame in pfn.0..pfn.0 + (1 << order) {
            let owner = self.out.iter().find(|(first, count, _)| (first.0..first.0 + count).contains(&frame));
            assert_eq!(owner, None, "seed {seed}: frame {frame} was reported");
            if takes {
                self.resident.remove(&frame);
            }
        }
        takes
    }
}

/// A random program on one policy; at the end everything is free, and everything that can be is reported.
fn check(policy: PagesPolicy, seed: u64) {
    World::enter(Spec::uniform(2, 6000), || {
        let pages = Pages::<World>::new(policy);
        let total: u64 = (0..2).map(|node| pages.total_frames(NodeId(node))).sum();
        let mut random = Random(seed * 2 + 1);
        let mut reference = Reference { out: Vec::new(), resident: BTreeSet::new(), joined: 0 };
        let mut grown = 0;
        for step in 0..3000 {
            let node = NodeId(random.below(2) as u16);
            match random.below(if step / 300 % 2 == 0 { 5 } else { 9 }) {
                0 | 1 => {
                    let most = if random.below(10) == 0 { 700 } else { 40 };
                    let frames = 1 + random.below(most) as u32;
                    let align = random.below(6) as u8;
                    if let Some((pfn, untouched)) = pages.alloc_exact(Gfp::KERNEL, frames, align, node) {
                        assert!(
                            pfn.0.is_multiple_of(1 << align),
                            "seed {seed}: {pfn:?} aligned to 2^{align}"
                        );
                        assert_eq!(Pages::<World>::exact_frames(pfn), frames, "seed {seed}: {pfn:?}");
                        reference.take(pfn, frames, Some(untouched), seed);
                    }
                }
                2 | 3 => {
                    let order = random.below(5) as u8;
                    if let Some(pfn) = pages.alloc(Gfp::KERNEL, order, node, FrameKind::Slab) {
                        reference.take(pfn, 1 << order, None, seed);
                    }
                }
                4 if random.below(3) > 0 && !reference.out.is_empty() => {
                    let at = random.below(reference.out.len() as u64) as usize;
                    let (pfn, before, exact) = reference.out[at];
                    let frames = 1 + random.below(2 * before as u64) as u32;
                    if exact && pages.resize_exact(pfn, frames) {
                        grown += (frames > before) as u32;
                        assert_eq!(Pages::<World>::exact_frames(pfn), frames, "seed {seed}: {pfn:?}");
                        reference.resize(at, frames, seed);
                    } else {
                        assert!(
                            !exact || frames > before,
                            "seed {seed}: {pfn:?} of {before} to {frames} frames"
                        );
                    }
                }
                4 if random.below(2) == 0 && !reference.out.is_empty() => {
                    reference.join_or_split(&pages, &mut random);
                }
                4 if random.below(7) == 0 => {
                    let keep = random.below(2000);
                    let order = random.below(6) as u8;
                    let before = pages.resident_free_frames();
                    // After `taken` blocks it takes none.
                    let mut taken = random.below(20);
                    let given = pages.report_free(order, keep, |pfn, order| {
                        taken = taken.saturating_sub(1);
                        reference.report(pfn, order, taken > 0, seed)
                    });
                    let after = pages.resident_free_frames();
                    assert_eq!(
                        before - after,
                        given,
                        "seed {seed}: frames reported and frames less resident"
                    );
                    assert!(
                        order > 0 || taken == 0 || after <= keep,
                        "seed {seed}: {after} frames left of {keep} to keep"
                    );
                }
                _ if reference.out.is_empty() => {}
                _ => {
                    let at = random.below(reference.out.len() as u64) as usize;
                    match reference.out.swap_remove(at) {
                        (pfn, _, true) => pages.free_exact(pfn),
                        (pfn, _, false) => pages.free(pfn),
                    }
                }
            }
            if step % 500 == 0 {
                assert_balanced(&pages);
                let free: u64 = (0..2).map(|node| pages.free_frames(NodeId(node))).sum();
                assert_eq!(pages.taken_frames(), total - free, "seed {seed}");
                // Blocks on a CPU's lists are not known to the zone.
                let (known, real) = (pages.resident_free_frames(), reference.resident_free());
                let all = policy.pcp != PcpRule::NONE || known >= real;
                assert!(all, "seed {seed}: {known} of {real} free frames are known to be resident");
            }
        }
        assert!(reference.joined > 3, "seed {seed}: only {} blocks were joined", reference.joined);
        assert!(grown > 3, "seed {seed}: only {grown} blocks grew where they are");
        for (pfn, _, exact) in std::mem::take(&mut reference.out) {
            if exact { pages.free_exact(pfn) } else { pages.free(pfn) }
        }
        pages.report_free(0, 0, |pfn, order| reference.report(pfn, order, true, seed));
        assert_eq!(pages.resident_free_frames(), 0, "seed {seed}");
        if policy.pcp == PcpRule::NONE {
            assert_eq!(reference.resident.first(), None, "seed {seed}: free, and never reported");
            let free: u64 = (0..2).map(|node| pages.free_frames(NodeId(node))).sum();
            assert_eq!(free, total, "seed {seed}");
        }
        assert_balanced(&pages);
    });
}

#[test]
fn programs() {
    let modern = PagesPolicy { zones: Some(ZoneRule::One), ..PagesPolicy::for_release(6, 18, 0) };
    let mapped = PagesPolicy { pcp: PcpRule::NONE, max_order: Some(12), pageblock_order: Some(12), ..modern };
    for seed in 1..=6 {
        check(PagesPolicy { pcp: PcpRule::NONE, ..modern }, seed);
        check(mapped, seed);
        check(PagesPolicy { resident_first: true, ..mapped }, seed);
        check(modern, seed);
    }
}

/// A small used block beside a large untouched one stays small, and growth takes the frames behind it.
#[test]
fn only_what_was_used_is_resident() {
    let modern = PagesPolicy { zones: Some(ZoneRule::One), ..PagesPolicy::for_release(6, 18, 0) };
    let mapped = PagesPolicy { pcp: PcpRule::NONE, max_order: Some(12), pageblock_order: Some(12), ..modern };
    World::enter(Spec::uniform(1, 1 << 14), || {
        let pages = Pages::<World>::new(mapped);
        let check = |frames: u64, what: &str| assert_eq!(pages.resident_free_frames(), frames, "{what}");
        let (first, _) = pages.alloc_exact(Gfp::KERNEL, 33, 0, NodeId(0)).expect("there is memory");
        check(0, "nobody used the end of a block");
        pages.free_exact(first);
        check(33, "freed, it merges with all there is");
        let (again, untouched) = pages.alloc_exact(Gfp::KERNEL, 20, 0, NodeId(0)).expect("there is memory");
        assert_eq!((again, untouched), (first, false));
        check(13, "20 of 33 are out again");
        assert!(pages.resize_exact(again, 300), "all behind it is free");
        check(0, "300 frames cover all that was used");
        let (behind, untouched) = pages.alloc_exact(Gfp::KERNEL, 1, 0, NodeId(0)).expect("there is memory");
        assert_eq!((behind, untouched), (first.plus(300), true));
        assert!(!pages.resize_exact(again, 301), "the next frame is somebody's");
        assert!(pages.resize_exact(again, 100));
        check(200, "what it was shortened by");
        pages.free_exact(again);
        pages.free_exact(behind);
        check(301, "all that was ever used");
        assert_eq!(pages.report_free(0, 0, |_, _| true), 301);
        let half = || pages.alloc_exact(Gfp::KERNEL, 64, 0, NodeId(0)).expect("there is memory");
        let (lower, upper) = (half().0, half().0);
        pages.free_exact(lower);
        assert_eq!(pages.report_free(0, 0, |_, _| true), 64);
        pages.free_exact(upper);
        assert_eq!(half(), (lower, true), "the upper half alone is resident");
        check(64, "the upper half");
        pages.free_exact(lower);
        assert_balanced(&pages);
    });
}

/// Where the world has memory for some frames only, all of those are handed out, whatever their order and
/// whether they are resident.
#[test]
fn frames_without_memory_are_passed_over() {
    const MEMORY: u32 = 1003;
    let modern = PagesPolicy { zones: Some(ZoneRule::One), ..PagesPolicy::for_release(6, 18, 0) };
    let mapped = PagesPolicy { pcp: PcpRule::NONE, max_order: Some(12), pageblock_order: Some(12), ..modern };
    for resident_first in [false, true] {
        World::enter(Spec::uniform(1, 1 << 14), || {
            let pages = Pages::<World>::new(PagesPolicy { resident_first, ..mapped });
            World::set_memory_end(MEMORY);
            let mut order = 0;
            for turn in 0..12 {
                let alloc = || pages.alloc(Gfp::KERNEL, order, NodeId(0), FrameKind::Slab);
                let blocks: Vec<Pfn> = std::iter::from_fn(alloc).collect();
                assert_eq!(blocks.len(), (MEMORY >> order) as usize, "order {order}, turn {turn}");
                assert!(blocks.iter().all(|pfn| pfn.0 + (1 << order) <= MEMORY));
                // The free blocks before the end of memory are larger than those behind it.
                let free = |blocks: &[Pfn]| blocks.iter().for_each(|pfn| pages.free(*pfn));
                let (lower, upper) = blocks.split_at(blocks.len() / 2);
                free(lower);
                if turn % 2 == 1 {
                    pages.report_free(0, 0, |_, _| true);
                }
                let again: Vec<Pfn> = std::iter::from_fn(alloc).collect();
                assert_eq!(again.len(), lower.len(), "order {order}, turn {turn}: again");
                free(&again);
                free(upper);
                order = (order + 3) % 8;
            }
            assert_balanced(&pages);
        });
    }
}

/// A request without memory looks again after reclaim, which may have freed frames for another request.
#[test]
fn another_reclaim_may_have_freed_frames() {
    let modern = PagesPolicy { zones: Some(ZoneRule::One), ..PagesPolicy::for_release(6, 18, 0) };
    let mapped = PagesPolicy { pcp: PcpRule::NONE, resident_first: true, ..modern };
    World::enter(Spec::uniform(1, 1 << 14), || {
        let pages = std::rc::Rc::new(Pages::<World>::new(mapped));
        World::set_memory_end(64);
        let alloc = || pages.alloc(Gfp::KERNEL, 3, NodeId(0), FrameKind::Slab);
        let blocks: Vec<Pfn> = std::iter::from_fn(alloc).collect();
        let (last, reclaimed) = (blocks[7], pages.clone());
        assert_eq!(blocks.len(), 8);
        let mut once = Some(last);
        World::on_reclaim(move |_| {
            once.take().into_iter().for_each(|pfn| reclaimed.free(pfn));
            Reclaimed::NOTHING
        });
        assert_eq!((alloc(), alloc()), (Some(last), None));
        blocks.into_iter().for_each(|pfn| pages.free(pfn));
        assert_balanced(&pages);
    });
}

/// Two frames of 33 that were freed are wanted again, while one of the frames behind them is out.
#[test]
fn what_was_used_comes_first() {
    fn check(resident_first: bool, expected: u32) {
        let modern = PagesPolicy { zones: Some(ZoneRule::One), ..PagesPolicy::for_release(6, 18, 0) };
        let (pcp, max_order) = (PcpRule::NONE, Some(12));
        let policy = PagesPolicy { pcp, max_order, pageblock_order: max_order, resident_first, ..modern };
        World::enter(Spec::uniform(1, 1 << 14), || {
            let pages = Pages::<World>::new(policy);
            let exact =
                |frames| pages.alloc_exact(Gfp::KERNEL, frames, 0, NodeId(0)).expect("there is memory").0;
            let (used, behind) = (exact(33), exact(1));
            assert_eq!(behind, used.plus(33));
            pages.free_exact(used);
            assert_eq!(exact(2), used.plus(expected), "used memory first: {resident_first}");
            // Of what merges from an untouched and a used half, the used one.
            if resident_first {
                let lower = exact(2048);
                assert!(pages.resize_exact(lower, 1024));
                let upper = exact(1024);
                assert_eq!(upper, lower.plus(1024));
                pages.free_exact(lower);
                pages.report_free(0, 0, |_, _| true);
                pages.free_exact(upper);
                assert_eq!(exact(16), upper);
            }
            assert_balanced(&pages);
        });
    }
    check(true, 0);
    check(false, 34);
}

/// Single frames, blocks of 4 and of 64 frames are free; their buddies are out.
#[test]
fn small_blocks_go_first() {
    fn check(order: u8, keep: u64, expected: &[u8]) {
        let modern = PagesPolicy { zones: Some(ZoneRule::One), ..PagesPolicy::for_release(6, 18, 0) };
        let (pcp, max_order) = (PcpRule::NONE, Some(12));
        let policy =
            PagesPolicy { pcp, max_order, pageblock_order: max_order, resident_first: true, ..modern };
        World::enter(Spec::uniform(1, 1 << 14), || {
            let pages = Pages::<World>::new(policy);
            let block = |order| pages.alloc(Gfp::KERNEL, order, NodeId(0), FrameKind::Slab).expect("memory");
            let sizes = [6, 2, 0, 6, 0, 2];
            let taken: Vec<_> = sizes.iter().map(|order| (block(*order), block(*order))).collect();
            taken.iter().for_each(|(freed, _)| pages.free(*freed));
            let mut reported = Vec::new();
            pages.report_free(order, keep, |_, order| {
                reported.push(order);
                true
            });
            assert_eq!(reported, expected, "from order {order} on, {keep} frames are kept");
            assert_balanced(&pages);
        });
    }
    let all = [0, 0, 2, 2, 6, 6];
    check(0, 0, &all);
    check(2, 0, &all[2..]);
    check(2, 134, &all[2..3]);
    check(0, 128, &all[..4]);
    check(3, 74, &all[4..5]);
}

/// The least of the free resident frames, between two calls.
#[test]
fn what_nobody_needed_is_counted() {
    let modern = PagesPolicy { zones: Some(ZoneRule::One), ..PagesPolicy::for_release(6, 18, 0) };
    World::enter(Spec::uniform(1, 1 << 14), || {
        let pages = Pages::<World>::new(PagesPolicy { pcp: PcpRule::NONE, ..modern });
        let exact = |frames| pages.alloc_exact(Gfp::KERNEL, frames, 0, NodeId(0)).expect("there is memory").0;
        let (large, small) = (exact(64), exact(16));
        assert_eq!(pages.least_resident(), 0, "nothing is free");
        pages.free_exact(large);
        pages.free_exact(small);
        assert_eq!(pages.least_resident(), 0, "the epoch began without free frames");
        assert_eq!(pages.least_resident(), 80, "nobody came");
        let again = exact(32);
        pages.free_exact(again);
        assert_eq!(pages.least_resident(), 48, "32 were out for a while");
        pages.report_free(0, 0, |_, _| true);
        assert_eq!(pages.least_resident(), 0, "none was left at the end");
        assert_balanced(&pages);
    });
}
