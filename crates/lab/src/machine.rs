//! Which machine to model.
//!
//! From a machine file (TOML), else from the dump, else from the recording; what none of them says is
//! assumed, and each assumption is a sentence that the result carries.

use serde::Deserialize;
use slablab_kernel::bundle::Dump;
use slablab_model::{MachineSpec, NodeSpec};
use slablab_report::error::{At, Error, Result};
use slablab_workloads::Metadata;
use std::path::{Path, PathBuf};

/// Memory of a node if neither recording nor machine file tells it: enough that no run exhausts it.
const ASSUMED_NODE_BYTES: u64 = 64 << 30;

/// A day.
const GRACE_PERIOD_MS_MAX: u64 = 86_400_000;

/// A machine file. Every field may be left out: then the recording's is taken.
///
/// ```toml
/// page_size = 65536          # bytes
/// cpus = 160                 # spread in blocks over the nodes, unless the nodes say
/// memoryless_nodes = "yes"   # CONFIG_HAVE_MEMORYLESS_NODES: ia64 and ppc64 "yes", x86 "no"
/// [[nodes]]
/// memory = "64G"             # 0 for a node without memory
/// cpus = [0, 1, 2, 3]
/// distances = [10, 20]
/// ```
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MachineFile {
    /// Bytes in a page.
    pub page_size: Option<u64>,
    /// CPUs.
    pub cpus: Option<u16>,
    /// Whether the kernel is built with CONFIG_HAVE_MEMORYLESS_NODES.
    pub memoryless_nodes: Option<YesNo>,
    /// Nodes; none means those of the recording.
    pub nodes: Vec<NodeFile>,
    /// Seed of the model's random numbers.
    pub seed: Option<u64>,
    /// How long an RCU grace period takes.
    pub grace_period_ms: Option<u64>,
    /// Page allocations of this order or above fail.
    pub fail_order: Option<u8>,
    /// Where it was read, for errors.
    #[serde(skip)]
    pub path: Option<PathBuf>,
}

/// An answer in a machine file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum YesNo {
    /// `"yes"`
    Yes,
    /// `"no"`
    No,
}

/// One node of a machine file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NodeFile {
    /// Bytes, or a number with K, M, G or T.
    pub memory: Memory,
    /// Its CPUs; none means a block of them.
    pub cpus: Vec<u16>,
    /// Distances to all nodes.
    pub distances: Vec<u32>,
}

/// An amount of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "toml::Value")]
pub struct Memory(pub u64);

impl TryFrom<toml::Value> for Memory {
    type Error = String;

    fn try_from(value: toml::Value) -> std::result::Result<Memory, String> {
        let expected = || format!("expected bytes, or a text like \"64G\", found {value}");
        match &value {
            toml::Value::Integer(bytes) => u64::try_from(*bytes).map(Memory).map_err(|_| expected()),
            toml::Value::String(text) => {
                let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
                let shift = match &text[digits.len()..] {
                    "" => 0,
                    "K" => 10,
                    "M" => 20,
                    "G" => 30,
                    "T" => 40,
                    _ => return Err(expected()),
                };
                let number: u64 = digits.parse().map_err(|_| expected())?;
                number.checked_mul(1 << shift).map(Memory).ok_or_else(expected)
            }
            _ => Err(expected()),
        }
    }
}

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

/// Reads a machine file.
///
/// # Errors
/// What cannot be read or understood, with its line.
pub fn read(path: &Path) -> Result<MachineFile> {
    let bytes = std::fs::read(path).at(path)?;
    let text =
        String::from_utf8(bytes).map_err(|_| Error::new(path, "expected a machine file: TOML text"))?;
    if text.trim().is_empty() {
        let expected = "expected a machine file (TOML), for example `cpus = 4`";
        return Err(Error::new(path, format!("the file is empty: {expected}")));
    }
    let file: MachineFile = toml::from_str(&text).at(path)?;
    file.check().at(path)?;
    Ok(MachineFile { path: Some(path.to_path_buf()), ..file })
}

impl MachineFile {
    /// What would be ignored, or cannot be counted.
    fn check(&self) -> std::result::Result<(), String> {
        let nodes = self.nodes.len();
        for (id, node) in self.nodes.iter().enumerate() {
            if !node.distances.is_empty() && node.distances.len() != nodes {
                let found = node.distances.len();
                return Err(format!(
                    "node {id} has {found} distances: expected one to each of {nodes} nodes"
                ));
            }
            if let (Some(cpus), Some(cpu)) = (self.cpus, node.cpus.iter().max())
                && *cpu >= cpus
            {
                return Err(format!("node {id} has CPU {cpu}: expected CPUs below {cpus}, as cpus says"));
            }
        }
        if nodes > 0 && self.nodes.iter().all(|node| node.memory.0 == 0) {
            return Err("no node has memory: expected memory = \"64G\", say, in one [[nodes]]".into());
        }
        if self.grace_period_ms.is_some_and(|ms| ms > GRACE_PERIOD_MS_MAX) {
            return Err(format!("grace_period_ms: expected at most {GRACE_PERIOD_MS_MAX}"));
        }
        Ok(())
    }
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
    let cpus = file.cpus.unwrap_or(recorded_cpus);
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
        let blocks = file.nodes.iter().all(|node| node.cpus.is_empty());
        let block = cpus.div_ceil(file.nodes.len() as u16).max(1);
        for (cpu, node) in cpu_node.iter_mut().enumerate().filter(|_| blocks) {
            *node = cpu as u16 / block;
        }
        for (id, node) in file.nodes.iter().enumerate() {
            nodes.push(NodeSpec { bytes: node.memory.0 });
            distance.push(node.distances.clone());
            place(&mut cpu_node, node.cpus.iter().map(|cpu| *cpu as usize), id as u16);
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
    if file.cpus.is_some_and(|cpus| cpus < recorded_cpus) {
        note(format!("events of CPU n happen on CPU n mod {cpus}"));
    }
    let memoryless_nodes = match file.memoryless_nodes {
        Some(answer) => answer == YesNo::Yes,
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
