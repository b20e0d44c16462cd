//! What this host is: CPUs, caches, nodes, memory, from the kernel's files.

use rustix::thread::{CpuSet, sched_getaffinity};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// The name of its processor.
    pub model: String,
    /// Its kernel: release and machine.
    pub kernel: String,
    /// Whether a hypervisor runs below the kernel.
    pub virtual_machine: bool,
    /// Bytes in a page.
    pub page_size: u64,
    /// Its CPUs that are online, ascending.
    pub cpus: Vec<Cpu>,
    /// Its nodes, ascending.
    pub nodes: Vec<Node>,
    /// Bytes of a cache line.
    pub line_bytes: u32,
    /// Bytes of the first-level data cache, the second level and the last level of the first CPU.
    pub caches: [Option<u64>; 3],
    /// The CPUs that this process may use, ascending.
    pub allowed: Vec<u16>,
    /// The NUMA balancing and huge page settings that change what is measured: a note for each.
    pub notes: Vec<String>,
}

/// One CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Its number.
    pub id: u16,
    /// CPUs of its core, itself too.
    pub siblings: Vec<u16>,
    /// CPUs of its last-level cache, itself too.
    pub sharers: Vec<u16>,
    /// Its socket.
    pub socket: u16,
    /// Its node.
    pub node: u16,
}

/// One memory node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Its number.
    pub id: u16,
    /// Its CPUs.
    pub cpus: Vec<u16>,
    /// Bytes of its memory.
    pub bytes: u64,
    /// Distances to all nodes.
    pub distances: Vec<u32>,
}

/// How two CPUs are related, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// SMT siblings.
    Core,
    /// CPUs of one last-level cache.
    Llc,
    /// CPUs of different last-level caches, on nodes at this distance.
    Distance(u32),
}

impl Host {
    /// The kernel's release: major and minor number.
    pub fn release(&self) -> Option<(u16, u16)> {
        let mut numbers = self.kernel.split(|char: char| !char.is_ascii_digit()).map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    }

    /// This host.
    pub fn read() -> Host {
        let mut host = Host::read_at(Path::new("/"));
        host.page_size = rustix::param::page_size() as u64;
        let names = rustix::system::uname();
        let part = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
        host.kernel = format!("{} {}", part(names.release()), part(names.machine()));
        if let Ok(set) = sched_getaffinity(None) {
            let is_allowed = |cpu: &u16| (*cpu as usize) < CpuSet::MAX_CPU && set.is_set(*cpu as usize);
            host.allowed = host.cpus.iter().map(|cpu| cpu.id).filter(is_allowed).collect();
        }
        host
    }

    /// The host whose files are in the folder `root`. What the files do not say is one node, cores of one
    /// CPU, and a last-level cache of the node.
    pub fn read_at(root: &Path) -> Host {
        let text = |path: &str| {
            fs::read_to_string(root.join(path)).ok().map(|text| text.trim().to_string()).unwrap_or_default()
        };
        let number = |path: &str| text(path).parse::<u64>().ok();
        let mut online = cpu_list(&text("sys/devices/system/cpu/online"));
        if online.is_empty() {
            online = vec![0];
        }
        let nodes = nodes(&text, &online);
        let of_cpu = |cpu: u16| {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}");
            let list = |path: &str| Some(cpu_list(&text(path))).filter(|list| list.contains(&cpu));
            let node = nodes.iter().find(|node| node.cpus.contains(&cpu));
            let last = (0..8).rev().find_map(|index| {
                let at = format!("{folder}/cache/index{index}");
                number(&format!("{at}/level")).filter(|level| *level >= 2)?;
                list(&format!("{at}/shared_cpu_list"))
            });
            Cpu {
                id: cpu,
                siblings: list(&format!("{folder}/topology/thread_siblings_list")).unwrap_or(vec![cpu]),
                sharers: last.unwrap_or_else(|| node.map_or(vec![cpu], |node| node.cpus.clone())),
                socket: number(&format!("{folder}/topology/physical_package_id")).unwrap_or(0) as u16,
                node: node.map_or(0, |node| node.id),
            }
        };
        let first = format!("sys/devices/system/cpu/cpu{}/cache", online[0]);
        let mut caches = BTreeMap::new();
        for index in 0..8 {
            let level = number(&format!("{first}/index{index}/level"));
            let is_data = text(&format!("{first}/index{index}/type")) != "Instruction";
            if let (Some(level), true) = (level, is_data) {
                caches.insert(level, kib(&text(&format!("{first}/index{index}/size"))));
            }
        }
        let at = |level: u64| caches.get(&level).copied().flatten();
        let last = caches.iter().next_back().filter(|(level, _)| **level > 2).and_then(|(_, bytes)| *bytes);
        let info = text("proc/cpuinfo");
        let field = |name: &str| {
            let mut lines = info.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_string())
        };
        let flags = field("flags").unwrap_or_default();
        Host {
            model: field("model name").or_else(|| field("cpu")).unwrap_or_else(|| "unknown CPU".into()),
            virtual_machine: flags.split(' ').any(|flag| flag == "hypervisor"),
            page_size: 4096,
            cpus: online.iter().map(|cpu| of_cpu(*cpu)).collect(),
            nodes,
            line_bytes: number(&format!("{first}/index0/coherency_line_size")).unwrap_or(64) as u32,
            caches: [at(1), at(2), last],
            allowed: online,
            ..Host::default()
        }
    }

    fn cpu(&self, id: u16) -> Option<&Cpu> {
        self.cpus.iter().find(|cpu| cpu.id == id)
    }

    /// How two CPUs are related.
    pub fn relation(&self, one: u16, other: u16) -> Relation {
        let (Some(one), Some(cpu)) = (self.cpu(one), self.cpu(other)) else { return Relation::Distance(10) };
        if one.siblings.contains(&other) {
            Relation::Core
        } else if one.sharers.contains(&other) {
            Relation::Llc
        } else {
            Relation::Distance(self.distance(one.node, cpu.node))
        }
    }

    /// The distance between two nodes.
    pub fn distance(&self, from: u16, to: u16) -> u32 {
        let place = |id| self.nodes.iter().position(|node| node.id == id);
        let row = place(from).map(|from| &self.nodes[from].distances);
        let known = row.zip(place(to)).and_then(|(row, to)| row.get(to));
        known.copied().unwrap_or(if from == to { 10 } else { 20 })
    }

    /// CPUs of a core, if all cores have as many.
    pub fn threads_per_core(&self) -> Option<u16> {
        uniform(self.cpus.iter().map(|cpu| cpu.siblings.len()))
    }

    /// CPUs of a last-level cache, if all have as many.
    pub fn cpus_per_llc(&self) -> Option<u16> {
        uniform(self.cpus.iter().map(|cpu| cpu.sharers.len()))
    }
}

fn uniform(mut counts: impl Iterator<Item = usize>) -> Option<u16> {
    let first = counts.next()?;
    counts.all(|count| count == first).then(|| u16::try_from(first).ok()).flatten()
}

fn nodes(text: &dyn Fn(&str) -> String, online: &[u16]) -> Vec<Node> {
    let mut nodes: Vec<Node> = cpu_list(&text("sys/devices/system/node/online"))
        .into_iter()
        .map(|id| {
            let folder = format!("sys/devices/system/node/node{id}");
            let distances = text(&format!("{folder}/distance"));
            Node {
                id,
                cpus: cpu_list(&text(&format!("{folder}/cpulist"))),
                bytes: total(&text(&format!("{folder}/meminfo"))),
                distances: distances.split_whitespace().filter_map(|word| word.parse().ok()).collect(),
            }
        })
        .collect();
    if nodes.is_empty() {
        let bytes = total(&text("proc/meminfo"));
        nodes.push(Node { id: 0, cpus: online.to_vec(), bytes, distances: vec![10] });
    }
    nodes
}

/// Bytes of the line `MemTotal:`.
fn total(meminfo: &str) -> u64 {
    let rest = meminfo.lines().find_map(|line| line.split_once("MemTotal:")).map_or("", |(_, rest)| rest);
    rest.split_whitespace().next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Bytes of a size like `48K`.
fn kib(text: &str) -> Option<u64> {
    text.strip_suffix('K')?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// The numbers of a list like `0-3,8`.
pub fn cpu_list(text: &str) -> Vec<u16> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u16>().ok()?..=last.trim().parse::<u16>().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// A list like `0-3,8` of ascending numbers.
pub fn as_list(cpus: &[u16]) -> String {
    let mut parts: Vec<(u16, u16)> = Vec::new();
    for cpu in cpus {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
            _ => parts.push((*cpu, *cpu)),
        }
    }
    let show = |(first, last): &(u16, u16)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    parts.iter().map(show).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        for (text, cpus) in [("0-3,8", &[0, 1, 2, 3, 8][..]), ("5", &[5]), ("", &[]), ("0,2", &[0, 2])] {
            assert_eq!(cpu_list(text), cpus, "{text}");
            assert_eq!(as_list(cpus), text);
        }
    }

    #[test]
    fn a_host_of_two_nodes_with_siblings() {
        let root = std::env::temp_dir().join(format!("slablab-host-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
            fs::write(path, text).expect("a file can be written");
        };
        write("sys/devices/system/cpu/online", "0-3\n");
        write("sys/devices/system/node/online", "0-1\n");
        for (node, cpus, distance) in [(0, "0,2", "10 32"), (1, "1,3", "32 10")] {
            let folder = format!("sys/devices/system/node/node{node}");
            write(&format!("{folder}/cpulist"), cpus);
            write(&format!("{folder}/distance"), distance);
            write(&format!("{folder}/meminfo"), &format!("Node {node} MemTotal:  2048 kB\n"));
            for cpu in cpu_list(cpus) {
                let folder = format!("sys/devices/system/cpu/cpu{cpu}");
                write(&format!("{folder}/topology/thread_siblings_list"), cpus);
                write(&format!("{folder}/topology/physical_package_id"), &node.to_string());
                for (index, level, kind, size) in
                    [(0, 1, "Data", "48K"), (1, 1, "Instruction", "32K"), (2, 2, "Unified", "1024K")]
                {
                    let cache = format!("{folder}/cache/index{index}");
                    write(&format!("{cache}/level"), &level.to_string());
                    write(&format!("{cache}/type"), kind);
                    write(&format!("{cache}/size"), size);
                    write(&format!("{cache}/shared_cpu_list"), cpus);
                }
            }
        }
        write("proc/cpuinfo", "processor\t: 0\nmodel name\t: A CPU\nflags\t\t: fpu hypervisor\n");
        let host = Host::read_at(&root);
        fs::remove_dir_all(&root).expect("the folder is ours");
        assert_eq!((host.model.as_str(), host.virtual_machine), ("A CPU", true));
        assert_eq!(host.caches, [Some(48 << 10), Some(1 << 20), None]);
        assert_eq!((host.threads_per_core(), host.cpus_per_llc()), (Some(2), Some(2)));
        assert_eq!(host.nodes[1].bytes, 2 << 20);
        assert_eq!(host.relation(0, 2), Relation::Core);
        assert_eq!(host.relation(0, 3), Relation::Distance(32));
    }
}
