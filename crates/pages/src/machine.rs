//! The policy as numbers of one machine, computed once, when a [`crate::Pages`] is made.

use crate::policy::{Gap, MinFree, ORDERS, PCP_ORDERS, PagesPolicy, PcpHigh, Search, ZoneReclaim, ZoneRule};
use slablab_platform::{CpuId, Gfp, NodeId, Pfn, Platform};

/// Zones a node can have.
pub(crate) const ZONES: usize = 3;

/// A policy with every open question answered for one machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    pub(crate) policy: PagesPolicy,
    pub(crate) zones: ZoneRule,
    pub(crate) page_shift: u32,
    pub(crate) max_order: u8,
    pub(crate) pageblock_order: u8,
    /// Page frames of all nodes.
    pub(crate) frames: u64,
    /// The min watermarks of all zones together, in frames.
    pub(crate) min_free: u64,
    /// Whether pageblocks are used at all: not on a machine with fewer than five of them (from memory).
    pub(crate) grouping: bool,
    /// `zone_reclaim_mode`.
    pub(crate) zone_reclaim: bool,
    /// The highest zone of a request for `DMA`, for `DMA32`, for high memory, and of any other.
    classes: [u8; 4],
}

/// A zone's place in the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: Pfn,
    pub(crate) frames: u32,
}

/// The three watermarks of a zone, in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Marks {
    /// Below it only requests with a right to reserves are served.
    pub min: u64,
    /// Below it kswapd is woken.
    pub low: u64,
    /// Above it kswapd sleeps.
    pub high: u64,
}

/// Sizes of a zone's per-CPU page lists, in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PcpSizes {
    /// Frames moved at a time; 0: no per-CPU lists.
    pub batch: u32,
    /// Frames a CPU may keep.
    pub high: u32,
}

impl Machine {
    /// Reads the topology of `P`.
    pub(crate) fn new<P: Platform>(policy: PagesPolicy) -> Machine {
        let mut machine = Machine::sized(policy, P::page_shift(), 0, 0);
        let mut populated = 0;
        for node in (0..P::nodes()).map(NodeId) {
            for zone in 0..machine.zone_count() {
                let span = machine.span::<P>(node, zone);
                machine.frames += span.frames as u64;
                populated += (span.frames > 0) as u64;
            }
        }
        let zone_reclaim = match policy.zone_reclaim {
            ZoneReclaim::Off => false,
            ZoneReclaim::On => true,
            ZoneReclaim::Above(distance) => has_farther::<P>(distance),
        };
        Machine { zone_reclaim, ..Machine::sized(policy, P::page_shift(), machine.frames, populated) }
    }

    /// A machine of `frames` page frames in `populated` zones.
    fn sized(policy: PagesPolicy, page_shift: u32, frames: u64, populated: u64) -> Machine {
        let usual_order = match page_shift {
            ..14 => 10,
            14 | 15 => 11,
            _ => 8,
        };
        let max_order = policy.max_order.unwrap_or(usual_order);
        assert!((max_order as usize) < ORDERS, "max_order {max_order} of at most {}", ORDERS - 1);
        assert!((policy.pcp.max_order as usize) < PCP_ORDERS, "pcp order {}", policy.pcp.max_order);
        let pageblock_order =
            policy.pageblock_order.unwrap_or(21u32.saturating_sub(page_shift) as u8).min(max_order);
        let usual = match (page_shift, policy.search) {
            (12, Search::Zonelist) => ZoneRule::Below4G,
            (12, _) => ZoneRule::I386,
            _ => ZoneRule::One,
        };
        let zones = policy.zones.unwrap_or(usual);
        let mut machine = Machine {
            policy,
            zones,
            page_shift,
            max_order,
            pageblock_order,
            frames,
            min_free: 0,
            grouping: policy.grouping && frames >= 5 << pageblock_order,
            zone_reclaim: false,
            classes: classes(zones),
        };
        machine.min_free = machine.min_free_frames(populated);
        machine
    }

    pub(crate) fn zone_count(&self) -> u8 {
        self.zones.ends().len() as u8
    }

    /// The highest zone a request may use.
    pub(crate) fn class_of(&self, gfp: Gfp) -> u8 {
        let [dma, dma32, high, usual] = self.classes;
        if gfp.has(Gfp::DMA) {
            dma
        } else if gfp.has(Gfp::DMA32) {
            dma32
        } else if gfp.has(Gfp::HIGHMEM) {
            high
        } else {
            usual
        }
    }

    /// Where a node's zone lies; no frames if the node has none there. The ends in [`ZoneRule::ends`] are
    /// multiples of the largest block for every order in use; a node may begin in front of one
    /// ([`Machine::head`]).
    pub(crate) fn span<P: Platform>(&self, node: NodeId, zone: u8) -> Span {
        let (start, count) = P::node_frames(node);
        let limit = |zone: u8| self.zones.ends()[zone as usize].1 >> self.page_shift;
        let from = if zone == 0 { 0 } else { limit(zone - 1) };
        let first = from.max(start.0 as u64);
        let last = limit(zone).min(start.0 as u64 + count as u64);
        if first < last {
            Span { start: Pfn(first as u32), frames: (last - first) as u32 }
        } else {
            Span { start, frames: 0 }
        }
    }

    /// Frames of a zone in front of its first multiple of the largest block: smaller blocks, the smallest
    /// first. 0 where the policy has no such frames.
    pub(crate) fn head(&self, span: Span) -> u32 {
        let head = span.start.0.wrapping_neg() & ((1 << self.max_order) - 1);
        if self.policy.begins_anywhere { head.min(span.frames) } else { 0 }
    }

    /// Frames of a zone behind its last largest block.
    pub(crate) fn tail(&self, span: Span) -> u32 {
        (span.frames - self.head(span)) & ((1 << self.max_order) - 1)
    }

    /// The watermarks of a zone of this index and this many frames (docs/theory/pagealloc.md 2 and 8).
    pub(crate) fn marks(&self, zone: u8, frames: u32) -> Marks {
        if self.frames == 0 {
            return Marks::default();
        }
        let min = match self.policy.min_free {
            MinFree::ZoneRatio(least) => {
                let ratio = if self.zones.ends()[zone as usize].0 == "DMA" { 32 } else { 128 };
                (frames as u64 / ratio).clamp(least as u64, 255)
            }
            _ => self.min_free * frames as u64 / self.frames,
        };
        match self.policy.gap {
            Gap::Multiples => Marks { min, low: 2 * min, high: 3 * min },
            Gap::Quarter => Marks { min, low: min + min / 4, high: min + min / 2 },
            Gap::Scaled(factor) => {
                let gap = (min / 4).max(frames as u64 * factor as u64 / 10000);
                Marks { min, low: min + gap, high: min + 2 * gap }
            }
        }
    }

    /// The sizes of a zone's per-CPU lists (docs/theory/pagealloc.md 3).
    pub(crate) fn pcp_sizes(&self, zone: u8, frames: u32, cpus: u32) -> PcpSizes {
        let rule = self.policy.pcp;
        if rule.batch_cap_bytes == 0 || frames == 0 {
            return PcpSizes::default();
        }
        let quarter = ((frames / 1024).min(rule.batch_cap_bytes >> self.page_shift) / 4).max(1);
        // 2^n - 1, so that batches from several CPUs do not all fall on one set of cache colours.
        let batch = (rounded_down(quarter + quarter / 2) - 1).max(1);
        let high = match rule.high {
            PcpHigh::Batches(batches) => batches * batch,
            PcpHigh::LowMark | PcpHigh::Tuned => {
                (self.marks(zone, frames).low as u32 / cpus.max(1)).max(4 * batch)
            }
        };
        PcpSizes { batch, high }
    }

    /// The most that a CPU keeps of a zone whose lists tune themselves: its share of an eighth of the zone.
    pub(crate) fn pcp_most(&self, sizes: PcpSizes, frames: u32, cpus: u32) -> u32 {
        (frames / 8 / cpus.max(1)).max(4 * sizes.batch).max(sizes.high)
    }

    fn min_free_frames(&self, populated: u64) -> u64 {
        let kib = self.frames << self.page_shift >> 10;
        let computed = (16 * kib).isqrt().clamp(128, self.policy.min_free_cap_kib as u64);
        let computed = computed << 10 >> self.page_shift;
        match self.policy.min_free {
            MinFree::Computed => computed,
            MinFree::HugePages => {
                computed.max(((populated * 11) << self.pageblock_order).min(self.frames / 20))
            }
            MinFree::ZoneRatio(_) => 0,
            MinFree::Kib(kib) => (kib as u64) << 10 >> self.page_shift,
        }
    }

    /// CPUs on a node.
    pub(crate) fn cpus_on<P: Platform>(node: NodeId) -> u32 {
        (0..P::cpus()).filter(|cpu| P::cpu_node(CpuId(*cpu)) == node).count() as u32
    }
}

/// Whether two nodes with memory are farther from each other than this.
fn has_farther<P: Platform>(distance: u32) -> bool {
    let nodes = || (0..P::nodes()).map(NodeId).filter(|node| P::node_frames(*node).1 > 0);
    nodes().any(|from| nodes().any(|to| P::distance(from, to) > distance))
}

/// The highest zone of a request for `DMA`, for `DMA32`, for high memory, and of any other.
fn classes(zones: ZoneRule) -> [u8; 4] {
    let named = |name: &str| zones.ends().iter().position(|(zone, _)| *zone == name).map(|at| at as u8);
    // A machine without a DMA zone serves DMA from its lowest one: arm64's DMA is our DMA32. One whose only
    // zone is DMA32 serves everything from it.
    let usual = named("Normal").unwrap_or(0);
    let dma = named("DMA").unwrap_or(0);
    let dma32 = named("DMA32").unwrap_or(if zones == ZoneRule::I386 { usual } else { 0 });
    [dma, dma32, named("HighMem").unwrap_or(usual), usual]
}

/// The largest power of two that is not above `n`; `n` is not 0.
fn rounded_down(n: u32) -> u32 {
    1 << n.ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_a_head_largest_blocks_and_a_tail() {
        let check = |begins_anywhere: bool, start: u32, frames: u32, expected: (u32, u32)| {
            let policy = PagesPolicy { begins_anywhere, ..PagesPolicy::for_release(6, 18, 0) };
            let machine = Machine::sized(policy, 12, 0, 0);
            let span = Span { start: Pfn(start), frames };
            assert_eq!((machine.head(span), machine.tail(span)), expected, "{span:?}");
        };
        check(true, 0, 4096, (0, 0));
        check(true, 1024, 5000, (0, 904));
        check(true, 1024 - 256, 256 + 2048 + 3, (256, 3));
        check(true, 1024 - 256, 256, (256, 0));
        check(true, 1, 0, (0, 0));
        check(false, 1024 - 256, 2049, (0, 1));
    }

    /// One zone's numbers as a kernel computes them: watermarks, batch, high.
    struct Row {
        release: (u32, u32, u32),
        page_shift: u32,
        /// Frames of all zones, and how many are populated.
        machine: (u64, u64),
        /// This zone's frames, and the CPUs of its node.
        zone: (u32, u32),
        marks: [u64; 3],
        pcp: [u32; 2],
    }

    #[track_caller]
    fn check(rows: &[Row], change: impl Fn(PagesPolicy) -> PagesPolicy) {
        for Row {
            release: (a, b, c),
            page_shift,
            machine,
            zone,
            marks: [min, low, high],
            pcp: [batch, most],
        } in rows
        {
            let policy = change(PagesPolicy::for_release(*a, *b, *c));
            let machine = Machine::sized(policy, *page_shift, machine.0, machine.1);
            assert_eq!(
                machine.marks(1, zone.0),
                Marks { min: *min, low: *low, high: *high },
                "{a}.{b}.{c} {zone:?}"
            );
            let sizes = PcpSizes { batch: *batch, high: *most };
            assert_eq!(machine.pcp_sizes(1, zone.0, zone.1), sizes, "{a}.{b}.{c} {zone:?}");
        }
    }

    /// docs/theory/pagealloc.md 2 and 3: 1 GiB in one zone.
    #[test]
    fn numbers_of_the_textbook() {
        let one_gib = (1 << 18, 1);
        let row = |release, marks, pcp| Row {
            release,
            page_shift: 12,
            machine: one_gib,
            zone: (1 << 18, 4),
            marks,
            pcp,
        };
        let rows = [
            row((2, 6, 29), [1024, 1280, 1536], [31, 186]),
            row((2, 6, 32), [1024, 1280, 1536], [31, 186]),
            row((4, 18, 0), [1024, 1286, 1548], [31, 186]),
            row((5, 10, 0), [1024, 1286, 1548], [63, 378]),
            row((6, 1, 0), [1024, 1286, 1548], [63, 321]),
        ];
        check(&rows, |policy| PagesPolicy { min_free: MinFree::Computed, ..policy });
    }

    /// A batch is rounded to the nearer 2^n - 1: 384 MiB has the batch of 512 MiB.
    #[test]
    fn batches_are_rounded() {
        let row = Row {
            release: (2, 6, 32),
            page_shift: 12,
            machine: (98304, 1),
            zone: (98304, 1),
            marks: [627, 783, 940],
            pcp: [31, 186],
        };
        check(&[row], |policy| policy);
    }

    /// /proc/zoneinfo of real kernels whose zones did not change after the watermarks were set (the ground
    /// truth's host_618, ppc64_smp16, ppc64_smp160, ppc64_smp16_memless).
    #[test]
    fn numbers_of_real_kernels() {
        let host = |frames, marks, pcp| Row {
            release: (6, 18, 44),
            page_shift: 12,
            machine: (2415157, 3),
            zone: (frames, 2),
            marks,
            pcp,
        };
        let ppc = |frames: u32, cpus, marks, pcp| Row {
            release: (6, 1, 176),
            page_shift: 16,
            machine: (frames as u64, 1),
            zone: (frames, cpus),
            marks,
            pcp,
        };
        let rows = [
            host(3840, [26, 32, 38], [1, 16]),
            host(772917, [5407, 6758, 8109], [63, 3379]),
            host(1638400, [11461, 14326, 17191], [63, 7163]),
            ppc(129711, 16, [352, 481, 610], [3, 30]),
            ppc(127989, 160, [352, 479, 606], [3, 12]),
            ppc(129711, 8, [352, 481, 610], [3, 60]),
        ];
        check(&rows, |policy| policy);
    }

    /// /proc/zoneinfo of guests with one zone, DMA32, whose memory shrank after `min_free_kbytes` was
    /// computed: 1499 KiB (6.1) and 1475 KiB (6.12), read from /proc/sys/vm. The guest of 6.12 had tuned its
    /// `high` from here to 514.
    #[test]
    fn numbers_of_guests() {
        let row = |release, frames, marks, pcp| Row {
            release,
            page_shift: 12,
            machine: (frames as u64, 1),
            zone: (frames, 1),
            marks,
            pcp,
        };
        let kib = |kib, zones| move |policy| PagesPolicy { min_free: MinFree::Kib(kib), zones, ..policy };
        let one = Some(ZoneRule::OneDma32);
        check(&[row((6, 1, 176), 35676, [374, 467, 560], [7, 467])], kib(1499, one));
        check(&[row((6, 12, 96), 34408, [368, 460, 552], [7, 460])], kib(1475, one));
    }

    /// docs/theory/pagealloc.md 8: 2.4 on 192 MiB, and zones so small or large that the clamps decide.
    #[test]
    fn numbers_of_2_4() {
        for (patch, zone, frames, min) in [
            (9, 0, 4096, 128),
            (9, 1, 45056, 255),
            (9, 2, 12800, 100),
            (9, 0, 400, 12),
            (9, 0, 100, 10),
            (10, 0, 4096, 128),
            (10, 0, 400, 20),
            (10, 1, 45056, 255),
        ] {
            let machine = Machine::sized(PagesPolicy::for_release(2, 4, patch), 12, 49152, 2);
            let marks = Marks { min, low: 2 * min, high: 3 * min };
            assert_eq!(machine.marks(zone, frames), marks, "2.4.{patch} zone {zone} of {frames}");
            assert_eq!((machine.max_order, machine.grouping), (9, false));
            assert_eq!(machine.pcp_sizes(zone, frames, 1), PcpSizes::default());
        }
    }

    /// sqrt(16 * KiB) and its clamps: 3386 KiB (846 frames) for 700 MB (docs/theory/pagealloc.md 2).
    #[test]
    fn min_free_is_clamped() {
        let min_free = |kib: u64, release: (u32, u32, u32)| {
            let policy = PagesPolicy::for_release(release.0, release.1, release.2);
            let policy = PagesPolicy { min_free: MinFree::Computed, ..policy };
            Machine::sized(policy, 12, kib / 4, 1).min_free * 4
        };
        assert_eq!(min_free(700 * 1024, (2, 6, 32)), 3384);
        assert_eq!(min_free(512, (2, 6, 32)), 128);
        assert_eq!(min_free(1 << 30, (2, 6, 32)), 65536);
        assert_eq!(min_free(1 << 30, (5, 10, 0)), 131072);
        assert_eq!(min_free(1 << 36, (5, 10, 0)), 262144);
    }
}
