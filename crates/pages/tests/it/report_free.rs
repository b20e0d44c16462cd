//! Free memory that goes back to the world, and allocations that are no power of two.
//!
//! The reference knows which frames hold something: a frame is *resident* from the time somebody had it until it was reported
//! while free. A block that is said to be untouched must have no resident frame, and nothing that is out is ever reported.

use crate::world::{Random, Spec, World, assert_balanced};
use slablab_pages::policy::{PcpRule, ZoneRule};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::{FrameKind, Gfp, NodeId, Pfn};
use std::collections::BTreeSet;

struct Reference {
    /// Blocks that are out: first frame, frames, whether it was asked for exactly.
    out: Vec<(Pfn, u32, bool)>,
    resident: BTreeSet<u32>,
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

    fn report(&mut self, pfn: Pfn, order: u8, seed: u64) {
        for frame in pfn.0..pfn.0 + (1 << order) {
            let owner = self.out.iter().find(|(first, count, _)| (first.0..first.0 + count).contains(&frame));
            assert_eq!(owner, None, "seed {seed}: frame {frame} was reported");
            self.resident.remove(&frame);
        }
    }
}

/// A random program on one policy; at the end everything is free, and everything that can be is reported.
fn check(policy: PagesPolicy, seed: u64) {
    World::enter(Spec::uniform(2, 6000), || {
        let pages = Pages::<World>::new(policy);
        let total: u64 = (0..2).map(|node| pages.total_frames(NodeId(node))).sum();
        let mut random = Random(seed * 2 + 1);
        let mut reference = Reference { out: Vec::new(), resident: BTreeSet::new() };
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
                4 if random.below(20) == 0 => {
                    let keep = random.below(2000);
                    let order = random.below(6) as u8;
                    let before = pages.resident_free_frames();
                    let given =
                        pages.report_free(order, keep, |pfn, order| reference.report(pfn, order, seed));
                    let after = pages.resident_free_frames();
                    assert_eq!(
                        before - after,
                        given,
                        "seed {seed}: frames reported and frames less resident"
                    );
                    assert!(order > 0 || after <= keep, "seed {seed}: {after} frames left of {keep} to keep");
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
            }
        }
        for (pfn, _, exact) in std::mem::take(&mut reference.out) {
            if exact { pages.free_exact(pfn) } else { pages.free(pfn) }
        }
        pages.report_free(0, 0, |pfn, order| reference.report(pfn, order, seed));
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
        check(modern, seed);
    }
}
