//! Machine files (TOML).

use serde::Deserialize;
use slablab_report::error::{At, Error, Result};
use std::path::{Path, PathBuf};

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
