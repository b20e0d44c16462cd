//! Which machine to model.
//!
//! From a machine file (TOML), else from the dump, else from the recording; what none of them says is
//! assumed, and each assumption is a sentence that the result carries.

use slablab_machines::MachineFile;
use slablab_model::{MachineSpec, NodeSpec};
use slablab_readers::bundle::Dump;
use slablab_report::error::{At, Error, Result};
use slablab_trace::Metadata;
use std::path::Path;

/// Memory of a node if neither recording nor machine file tells it: enough that no run exhausts it.
const ASSUMED_NODE_BYTES: u64 = 64 << 30;

/// A machine, and the assumptions about it.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// What to model.
    pub spec: MachineSpec,
    /// CPUs of the recording, before the file changed their number.
    pub recorded_cpus: u16,
    /// Sentences.
    pub assumed: Vec<String>,
}

/// The machine for a recording.
///
/// # Errors
/// Numbers that contradict each other.
pub fn choose(metadata: &Metadata, dump: Option<&Dump>, file: &MachineFile, at: &Path) -> Result<Chosen> {
    let at = file.path.as_deref().unwrap_or(at);
    let mut assumed = Vec::new();
    let mut note = |text: String| assumed.push(text);
    let topology = &metadata.topology;
    let dump_nodes = dump.map_or(&[][..], |dump| &dump.nodes);
    let recorded_cpus = (dump.map_or(0, |dump| dump.cpus_online.len() as u32))
        .max(topology.cpus_online.unwrap_or(0))
        .max(metadata.statistics.cpu_ids)
        .clamp(1, u16::MAX.into()) as u16;
    let cpus = file.cpus().unwrap_or(recorded_cpus);
    let page_size = file
        .page_size
        .or(metadata.page_size_bytes)
        .or_else(|| dump.and_then(|dump| dump.page_size).map(|(bytes, _)| bytes))
        .unwrap_or_else(|| {
            note("pages of 4096 bytes: the recording does not say".into());
            4096
        });
    let (mut cpu_node, mut nodes, mut distance) = (vec![0u16; cpus as usize], Vec::new(), Vec::new());
    if !file.nodes.is_empty() {
        cpu_node = file.cpu_node(cpus);
        for node in &file.nodes {
            nodes.push(NodeSpec { bytes: node.memory });
            distance.push(node.distances.clone());
        }
    } else if !dump_nodes.is_empty() {
        for (id, node) in dump_nodes.iter().enumerate() {
            let kib = node.meminfo.get("MemTotal").copied().unwrap_or(0);
            let bytes = if node.has_memory { kib.saturating_mul(1024).max(1 << 30) } else { 0 };
            nodes.push(NodeSpec { bytes });
            distance.push(node.distances.clone());
            place(&mut cpu_node, node.cpus.iter().map(|cpu| *cpu as usize), id as u16);
        }
    } else if !topology.nodes.is_empty() {
        for (id, node) in topology.nodes.iter().enumerate() {
            nodes.push(NodeSpec { bytes: node.memory_bytes.unwrap_or(ASSUMED_NODE_BYTES) });
            distance.push(node.distances.clone());
            place(&mut cpu_node, node.cpus.iter().map(|cpu| *cpu as usize), id as u16);
        }
    } else {
        note(format!("one node of {} GiB: the recording has no topology", ASSUMED_NODE_BYTES >> 30));
        nodes.push(NodeSpec { bytes: ASSUMED_NODE_BYTES });
    }
    if distance.iter().any(|row: &Vec<u32>| row.len() != nodes.len()) {
        distance = Vec::new();
    }
    if file.cpus().is_some_and(|cpus| cpus < recorded_cpus) {
        note(format!("events of CPU n happen on CPU n mod {cpus}"));
    }
    let memoryless_nodes = match file.memoryless_nodes {
        Some(answer) => answer,
        None => {
            let matters = nodes.iter().any(|node| node.bytes == 0);
            has_memoryless_nodes(metadata, dump, &mut |text| {
                if matters {
                    note(text);
                }
            })
        }
    };
    let uniform = MachineSpec::uniform(cpus, 1, ASSUMED_NODE_BYTES);
    let spec = MachineSpec {
        page_shift: page_size.max(1).ilog2(),
        cpu_node,
        nodes,
        distance,
        memoryless_nodes,
        seed: file.seed.unwrap_or(uniform.seed),
        grace_period_ns: file.grace_period_ms.map_or(uniform.grace_period_ns, |ms| ms * 1_000_000),
        fail_order: file.fail_order,
        ..uniform
    };
    if !page_size.is_power_of_two() {
        return Err(Error::new(at, format!("a page of {page_size} bytes: expected a power of two")));
    }
    spec.check().at(at)?;
    Ok(Chosen { spec, recorded_cpus, assumed })
}

/// Whether the recorded kernel has CONFIG_HAVE_MEMORYLESS_NODES: by its configuration, else by its
/// architecture.
fn has_memoryless_nodes(metadata: &Metadata, dump: Option<&Dump>, note: &mut impl FnMut(String)) -> bool {
    if let Some(value) = metadata.config.get("HAVE_MEMORYLESS_NODES") {
        return value == "y";
    }
    let architecture = metadata.architecture.as_deref().or_else(|| dump?.arch.as_deref());
    match architecture {
        Some("x86_64" | "i386" | "i486" | "i586" | "i686") => false,
        Some("ppc64" | "ppc64le" | "ia64") => true,
        other => {
            // From memory: arm64 has it since 4.9.
            let assumed = other == Some("aarch64");
            let (answer, who) = (if assumed { "with" } else { "without" }, other.unwrap_or("unknown"));
            note(format!(
                "a kernel {answer} CONFIG_HAVE_MEMORYLESS_NODES: the architecture is {who}; memoryless_nodes = \
                 \"yes\" or \"no\" in a machine file says it"
            ));
            assumed
        }
    }
}

fn place(cpu_node: &mut [u16], cpus: impl Iterator<Item = usize>, node: u16) {
    for cpu in cpus {
        if let Some(entry) = cpu_node.get_mut(cpu) {
            *entry = node;
        }
    }
}
