//! The machine's nodes.
//!
//! They are read once, at the start, from /sys/devices/system/node, without allocating. If that cannot be
//! read, the machine is taken for one node.

use crate::system;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU64, Ordering::Relaxed};

/// Most nodes. On a machine with more, all memory is taken for one node's.
pub(crate) const NODES: usize = 64;

static COUNT: AtomicU16 = AtomicU16::new(1);
/// Bit `n` is set if node `n` has memory.
static WITH_MEMORY: AtomicU64 = AtomicU64::new(1);
static DISTANCES: [[AtomicU8; NODES]; NODES] = [const { [const { AtomicU8::new(0) }; NODES] }; NODES];
/// The node of each CPU of the machine.
static CPU_NODE: [AtomicU8; CPUS] = [const { AtomicU8::new(0) }; CPUS];
const CPUS: usize = 8192;

/// Number of nodes.
#[inline]
pub(crate) fn nodes() -> u16 {
    COUNT.load(Relaxed)
}

pub(crate) fn has_memory(node: u16) -> bool {
    WITH_MEMORY.load(Relaxed) >> node & 1 == 1
}

/// Distance between two nodes, as the firmware states it. Without a statement 10 within a node and 20 between
/// nodes.
pub(crate) fn distance(from: u16, to: u16) -> u32 {
    match DISTANCES[from as usize][to as usize].load(Relaxed) {
        0 if from == to => 10,
        0 => 20,
        said => said as u32,
    }
}

/// The node of a CPU of the machine.
pub(crate) fn node_of_cpu(cpu: u32) -> u16 {
    CPU_NODE.get(cpu as usize).map_or(0, |node| node.load(Relaxed) as u16)
}

/// For each node the nearest node with memory. Found once, because frees of objects of other nodes need it.
static MEMORY_NODES: [AtomicU8; NODES] = [const { AtomicU8::new(0) }; NODES];

/// The node with memory that is nearest to `node`.
#[inline]
pub(crate) fn memory_node(node: u16) -> u16 {
    MEMORY_NODES[node as usize].load(Relaxed) as u16
}

fn find_memory_nodes() {
    for node in 0..nodes() {
        let with_memory = (0..nodes()).filter(|node| has_memory(*node));
        let nearest = with_memory.min_by_key(|to| distance(node, *to)).unwrap_or(0);
        MEMORY_NODES[node as usize].store(nearest as u8, Relaxed);
    }
}

/// Reads the nodes, their distances and their CPUs.
pub(crate) fn read() {
    let mut text = [0; 128];
    let Some(online) = system::read_file(c"/sys/devices/system/node/online", &mut text) else { return };
    let mut last = 0;
    each(online, |node| last = last.max(node));
    if last > 0 && (last as usize) < NODES {
        read_several(last);
    }
}

/// Reads nodes 0 to `last`. A function of its own: neither its code nor its stack is resident on machines
/// with one node.
#[cold]
#[inline(never)]
fn read_several(last: u32) {
    let mut text = [0; 4096];
    let mut with_memory = 0u64;
    if let Some(list) = system::read_file(c"/sys/devices/system/node/has_memory", &mut text) {
        each(list, |node| with_memory |= 1u64.checked_shl(node).unwrap_or(0));
    }
    if with_memory == 0 {
        return;
    }
    for node in 0..=last {
        let mut name = [0; 64];
        let path = path_of(node, b"distance", &mut name);
        let numbers = path.and_then(|path| system::read_file(path, &mut text)).unwrap_or(b"");
        let distances = numbers.split(|byte| !byte.is_ascii_digit()).filter_map(number);
        for (to, distance) in distances.take(NODES).enumerate() {
            DISTANCES[node as usize][to].store(distance.min(255) as u8, Relaxed);
        }
        let path = path_of(node, b"cpulist", &mut name);
        let cpus = path.and_then(|path| system::read_file(path, &mut text)).unwrap_or(b"");
        each(cpus, |cpu| {
            if let Some(place) = CPU_NODE.get(cpu as usize) {
                place.store(node as u8, Relaxed);
            }
        });
    }
    WITH_MEMORY.store(with_memory, Relaxed);
    COUNT.store(last as u16 + 1, Relaxed);
    find_memory_nodes();
}

/// `/sys/devices/system/node/node<number>/<file>`, in `room`.
fn path_of<'a>(node: u32, file: &[u8], room: &'a mut [u8; 64]) -> Option<&'a std::ffi::CStr> {
    let mut digits = [0; 3];
    let mut count = 0;
    for (place, unit) in digits.iter_mut().zip([100, 10, 1]) {
        if node >= unit || unit == 1 {
            *place = b'0' + (node / unit % 10) as u8;
            count += 1;
        }
    }
    let digits = &digits[3 - count..];
    let parts: [&[u8]; 4] = [b"/sys/devices/system/node/node", digits, b"/", file];
    let mut at = 0;
    for part in parts {
        room.get_mut(at..at + part.len())?.copy_from_slice(part);
        at += part.len();
    }
    room[at] = 0;
    std::ffi::CStr::from_bytes_with_nul(&room[..=at]).ok()
}

fn number(digits: &[u8]) -> Option<u32> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Calls `f` with every number of a list such as `0-3,8,10-11`.
fn each(list: &[u8], mut f: impl FnMut(u32)) {
    for range in list.trim_ascii().split(|byte| *byte == b',') {
        let mut ends = range.split(|byte| *byte == b'-').map(number);
        if let Some(Some(first)) = ends.next() {
            let last = ends.next().flatten().unwrap_or(first);
            (first..=last).for_each(&mut f);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_numbers() {
        let check = |list: &str, expected: &[u32]| {
            let mut found = Vec::new();
            each(list.as_bytes(), |number| found.push(number));
            assert_eq!(found, expected, "{list:?}");
        };
        check("0\n", &[0]);
        check("0-3,8,10-11\n", &[0, 1, 2, 3, 8, 10, 11]);
        check("", &[]);
        check("7-", &[7]);
    }

    #[test]
    fn nearest_nodes_with_memory() {
        // Nodes 0 and 2 have memory. Node 1 is nearer to 2; node 3 is equally far from both.
        let distances = [[10, 21, 30, 21], [21, 10, 15, 21], [30, 15, 10, 21], [21, 21, 21, 10]];
        for (node, row) in distances.iter().enumerate() {
            row.iter().zip(&DISTANCES[node]).for_each(|(distance, place)| place.store(*distance, Relaxed));
        }
        WITH_MEMORY.store(0b101, Relaxed);
        COUNT.store(4, Relaxed);
        find_memory_nodes();
        assert_eq!([0, 1, 2, 3].map(memory_node), [0, 2, 2, 0]);
    }

    #[test]
    fn paths() {
        let check = |node: u32, expected: &str| {
            let mut room = [0; 64];
            let path = path_of(node, b"cpulist", &mut room).expect("it fits");
            assert_eq!(path.to_str().expect("text"), expected);
        };
        check(0, "/sys/devices/system/node/node0/cpulist");
        check(10, "/sys/devices/system/node/node10/cpulist");
        check(305, "/sys/devices/system/node/node305/cpulist");
    }
}
