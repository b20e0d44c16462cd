//! Which node a page frame is on.
//!
//! /proc/zoneinfo has each zone's first frame and span. Of a machine with one node nothing is to be known.

use slablab_readers::bundle::Dump;

/// Memory of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSpan {
    /// Physical address of its first byte.
    pub first: u64,
    /// Physical address after its last byte.
    pub end: u64,
    /// The node's place among the machine's nodes.
    pub node: u16,
}

/// The node of a physical address; `None` if it is in no span.
pub fn node_at(spans: &[NodeSpan], address: u64) -> Option<u16> {
    spans.iter().find(|span| (span.first..span.end).contains(&address)).map(|span| span.node)
}

/// The spans of a dump's zones; none if the dump does not have them, or one node only.
pub(super) fn of_dump(dump: &Dump) -> Vec<NodeSpan> {
    let Some((page_size, _)) = dump.page_size else { return Vec::new() };
    let place = |id: u32| match dump.nodes.is_empty() {
        true => Some(id as u16),
        false => dump.nodes.iter().position(|node| node.id == id).map(|place| place as u16),
    };
    let of_zone = |zone: &slablab_readers::procfs::Zone| {
        let first = zone.start_pfn.filter(|_| zone.spanned > 0)?.checked_mul(page_size)?;
        let end = first.checked_add(zone.spanned.checked_mul(page_size)?)?;
        Some(NodeSpan { first, end, node: place(zone.node)? })
    };
    let spans: Vec<NodeSpan> = dump.zones.iter().filter_map(of_zone).collect();
    if spans.iter().all(|span| span.node == 0) { Vec::new() } else { spans }
}

/// The spans that a kernel's own messages tell: `SRAT: Node 1 PXM 1 [mem 0x30000000-0x5fffffff]`.
pub(crate) fn of_messages<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<NodeSpan> {
    let span = |line: &str| {
        let (_, rest) = line.split_once("SRAT: Node ")?;
        let (node, rest) = rest.split_once(' ')?;
        let (_, range) = rest.split_once("[mem 0x")?;
        let (first, last) = range.split_once(']')?.0.split_once("-0x")?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some(NodeSpan { first: number(first)?, end: number(last)?.checked_add(1)?, node: node.parse().ok()? })
    };
    let spans: Vec<NodeSpan> = lines.filter_map(span).collect();
    if spans.iter().all(|span| span.node == 0) { Vec::new() } else { spans }
}
