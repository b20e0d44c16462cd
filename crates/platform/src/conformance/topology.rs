//! CPUs, nodes, distances, frames.

use super::{Testable, Verdict, ensure, ensure_eq};
use crate::{Context, CpuId, NodeId};

/// Frames of the largest block that any page allocator here hands out: order 10.
const LARGEST_BLOCK: u32 = 1 << 10;

fn cpus<P: Testable>() -> impl Iterator<Item = CpuId> {
    (0..P::cpus()).map(CpuId)
}

fn nodes<P: Testable>() -> impl Iterator<Item = NodeId> {
    (0..P::nodes()).map(NodeId)
}

pub(super) fn numbers<P: Testable>() -> Verdict {
    ensure!(P::cpus() > 0, "no CPU");
    ensure!(P::nodes() > 0, "no node");
    ensure!((12..=16).contains(&P::page_shift()), "page_shift {}: expected 12 to 16", P::page_shift());
    ensure!(P::cpu().0 < P::cpus(), "on {:?} of {} CPUs", P::cpu(), P::cpus());
    ensure!(P::cpu_online(P::cpu()), "runs on {:?}, which is down", P::cpu());
    Ok(())
}

pub(super) fn cpu_nodes<P: Testable>() -> Verdict {
    for cpu in cpus::<P>() {
        let (node, memory) = (P::cpu_node(cpu), P::cpu_memory_node(cpu));
        ensure!(node.0 < P::nodes(), "{cpu:?} is on {node:?} of {} nodes", P::nodes());
        ensure!(memory.0 < P::nodes(), "{cpu:?} has memory on {memory:?} of {} nodes", P::nodes());
        ensure!(
            P::node_frames(memory).1 > 0 || memory == node,
            "{cpu:?} on {node:?} has memory on {memory:?}, which has none"
        );
    }
    Ok(())
}

pub(super) fn memory_node_is_nearest<P: Testable>() -> Verdict {
    // Whether the memory node of the last CPU on a node without memory had memory.
    let mut before = None;
    for cpu in cpus::<P>() {
        let (node, memory) = (P::cpu_node(cpu), P::cpu_memory_node(cpu));
        let has_memory = P::node_frames(memory).1 > 0;
        if P::node_frames(node).1 == 0 {
            let alike = before.replace(has_memory).is_none_or(|before| before == has_memory);
            ensure!(
                alike,
                "{cpu:?} takes memory from {memory:?}, another CPU on a node without memory does not"
            );
        }
        if !has_memory {
            continue;
        }
        for nearer in nodes::<P>().filter(|other| P::node_frames(*other).1 > 0) {
            ensure!(
                P::distance(node, nearer) >= P::distance(node, memory),
                "{cpu:?} takes memory from {memory:?}, but {nearer:?} is nearer to {node:?}"
            );
        }
    }
    Ok(())
}

pub(super) fn distances<P: Testable>() -> Verdict {
    for from in nodes::<P>() {
        ensure_eq!(P::distance(from, from), 10, "distance of {from:?} to itself");
        for to in nodes::<P>().filter(|to| *to != from) {
            let there = P::distance(from, to);
            ensure!(there > 10, "distance {from:?} to {to:?} is {there}: expected more than 10");
            let back = P::distance(to, from);
            ensure!(!P::SYMMETRIC || there == back, "distance {from:?} to {to:?} is {there}, back {back}");
        }
    }
    Ok(())
}

pub(super) fn node_frames<P: Testable>() -> Verdict {
    for node in nodes::<P>() {
        let (first, count) = P::node_frames(node);
        if count == 0 {
            continue;
        }
        ensure!(
            first.0.is_multiple_of(LARGEST_BLOCK),
            "{node:?} starts at {first:?}, not a multiple of 1024"
        );
        ensure!(first.0.checked_add(count).is_some(), "{node:?}: {count} frames from {first:?} overflow");
        for other in nodes::<P>().filter(|other| *other != node) {
            let (start, length) = P::node_frames(other);
            ensure!(
                length == 0 || first.0 + count <= start.0 || start.0 + length <= first.0,
                "{node:?} ({first:?}, {count}) and {other:?} ({start:?}, {length}) overlap"
            );
        }
    }
    Ok(())
}

pub(super) fn on_cpu<P: Testable>() -> Verdict {
    for cpu in cpus::<P>().filter(|cpu| P::cpu_online(*cpu)) {
        ensure_eq!(P::on_cpu(cpu, P::cpu), cpu, "put on {cpu:?}, runs on");
        ensure_eq!(P::on_cpu(cpu, P::context), Context::Task, "context on {cpu:?}");
    }
    Ok(())
}
