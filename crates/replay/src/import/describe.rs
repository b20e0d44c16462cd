//! What is known about the machine and the recording, in the trace's metadata.

use std::path::Path;

use serde_json::Value;
use slablab_readers::Header;
use slablab_readers::event::NodeOf;
use slablab_readers::recording::Moment;
use slablab_readers::text::id_list;
use slablab_trace::{CutOff, Metadata, Node, Symbol, Topology};

use crate::recorded;
use crate::replay::before::read_dump;
use slablab_report::error::{At, Error, Result};
use slablab_report::{Limit, read_text_at_most};

/// Adds what the recording itself says to what is `known` from elsewhere, which goes first.
pub(super) fn header(mut known: Metadata, header: &Header) -> Metadata {
    fn fill<T: Clone>(known: &mut Option<T>, found: &Option<T>) {
        if known.is_none() {
            known.clone_from(found);
        }
    }
    fill(&mut known.release, &header.release);
    fill(&mut known.architecture, &header.arch);
    fill(&mut known.page_size_bytes, &header.page_size);
    fill(&mut known.topology.cpus_online, &header.cpus_online);
    fill(&mut known.topology.cpus_possible, &header.cpus_available);
    // One node has all CPUs: it would only say how much memory there was.
    if known.topology.nodes.is_empty() && header.nodes.len() > 1 {
        let node = |found: &NodeOf| Node {
            node: found.node,
            cpus: found.cpus.clone(),
            memory_bytes: Some(found.bytes),
            distances: Vec::new(),
        };
        known.topology.nodes = header.nodes.iter().map(node).collect();
    }
    fill(&mut known.clock, &header.clock);
    fill(&mut known.build_id, &header.build_id);
    let symbol = |map: &slablab_readers::event::KernelMap| Symbol {
        start: map.start,
        length_bytes: map.len,
        name: map.name.clone(),
    };
    known.symbols = header.maps.iter().map(symbol).collect();
    known.source.get_or_insert_default().command.clone_from(&header.command);
    known.pairing_only |= header.hashed_addresses;
    if let Some(cut) = header.cut_off {
        known.cut_off = Some(CutOff { at_bytes: cut.at, of_bytes: cut.of, why: None });
    }
    known.warnings.extend(header.warnings.iter().cloned());
    known
}

/// What the state before a recording, in the same file, says of the machine.
pub(super) fn recorded(path: &Path) -> Result<Metadata> {
    if !recorded::has_start(path)? {
        return Ok(Metadata::default());
    }
    let cut_off = recorded::ended_early(path)?.map(|(at_bytes, why)| {
        let why = Some(why);
        CutOff { at_bytes, of_bytes: None, why }
    });
    let (_, dump) = read_dump(path, Moment::Before)?;
    let node = |node: &slablab_readers::bundle::Node| Node {
        node: node.id,
        cpus: node.cpus.clone(),
        memory_bytes: node.meminfo.get("MemTotal").map(|kib| kib.saturating_mul(1024)),
        distances: node.distances.clone(),
    };
    let count = |cpus: &[u32]| (!cpus.is_empty()).then_some(cpus.len() as u32);
    Ok(Metadata {
        topology: Topology {
            cpus_online: count(&dump.cpus_online),
            cpus_possible: count(&dump.cpus_possible),
            nodes: dump.nodes.iter().map(node).collect(),
        },
        release: dump.release,
        architecture: dump.arch,
        page_size_bytes: dump.page_size.map(|(bytes, _)| bytes),
        config: dump.config,
        command_line: dump.cmdline,
        cut_off,
        ..Metadata::default()
    })
}

/// Reads a `machine.json` as the truth runs have it.
pub(super) fn machine(path: &Path) -> Result<Metadata> {
    let text = read_text_at_most(path, Limit::mib("the description of a machine (JSON)", 64))?;
    let json: Value = serde_json::from_str(&text).at(path)?;
    let wrong = |key: &str, expected: &str| Error::new(path, format!("\"{key}\": expected {expected}"));
    let words: Vec<&str> = json["uname"].as_str().unwrap_or("").split_whitespace().collect();
    if words.len() < 5 {
        return Err(wrong("uname", "the output of uname -a"));
    }
    let architecture = words[words.len() - 2].to_string();
    let topology = &json["topology"];
    let count = |key: &str| topology[key].as_str().and_then(id_list).map(|list| list.len() as u32);
    let config = json["config"].as_object().into_iter().flatten();
    Ok(Metadata {
        release: Some(words[2].into()),
        // The kernels of these runs have the only page size of their architecture.
        page_size_bytes: (architecture == "x86_64").then_some(4096),
        architecture: Some(architecture),
        topology: Topology {
            cpus_online: count("cpu/online"),
            cpus_possible: count("cpu/possible"),
            nodes: nodes(topology)
                .ok_or_else(|| wrong("topology", "node/online and node/node0/cpulist, ..."))?,
        },
        config: config.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_string()))).collect(),
        command_line: json["cmdline"].as_str().map(str::to_string),
        ..Metadata::default()
    })
}

fn nodes(topology: &Value) -> Option<Vec<Node>> {
    let node = |node: u32| {
        let of = |what: &str| &topology[format!("node/node{node}/{what}")];
        let distances = of("distance").as_str().unwrap_or("").split_whitespace();
        Some(Node {
            node,
            cpus: id_list(of("cpulist").as_str()?)?,
            memory_bytes: of("meminfo").as_u64().map(|kib| kib * 1024),
            distances: distances.map(|distance| distance.parse().ok()).collect::<Option<_>>()?,
        })
    };
    // Without NUMA the kernel has no node directories.
    match topology["node/online"].as_str() {
        None => Some(Vec::new()),
        Some(list) => id_list(list)?.into_iter().map(node).collect(),
    }
}
