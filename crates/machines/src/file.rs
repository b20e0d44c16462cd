//! Machine files (TOML): what they may say, and what contradicts itself.

use crate::costs::{self, Priced};
use crate::cpus;
use crate::disks::{self, DiskFile};
use crate::doc::{Doc, Read, Value, shown};
use crate::shared::Layout;
use slablab_report::error::{At, Error, Result};
use slablab_report::{Limit, read_at_most};
use std::path::{Path, PathBuf};
use toml::de::DeTable;

pub use crate::doc::Bad;
pub use crate::shared::Smt;

/// A day.
const GRACE_PERIOD_MS_MAX: u64 = 86_400_000;
/// Page frames that the model can number.
const FRAMES_MAX: u64 = u32::MAX as u64;
const CPUS_MAX: u64 = u16::MAX as u64;

const NAMES: &[&str] = &[
    "name",
    "about",
    "page_size",
    "cpus",
    "memoryless_nodes",
    "threads_per_core",
    "smt",
    "cpus_per_llc",
    "nodes",
    "disk",
    "costs",
    "seed",
    "grace_period_ms",
    "fail_order",
];
const NODE_NAMES: &[&str] = &["memory", "cpus", "socket", "distances"];

/// A machine file. Every field may be left out. A replay then takes the recording's.
///
/// ```toml
/// name = "numa8"
/// about = "one line for `slablab list machines`"
/// page_size = 65536          # bytes
/// cpus = 16                  # spread in blocks over the nodes, unless the nodes say
/// memoryless_nodes = "yes"   # CONFIG_HAVE_MEMORYLESS_NODES: ia64 and ppc64 "yes", x86 "no"
/// threads_per_core = 2
/// smt = "split"              # siblings are CPUs n and n + half; "adjacent": 2n and 2n + 1
/// cpus_per_llc = 8           # CPUs that share a last-level cache; left out: those of a node
/// [[nodes]]
/// memory = "64G"             # 0 for a node without memory
/// cpus = "0-3,8-11"          # or an array
/// socket = 0                 # left out: a socket for each node
/// distances = [10, 20]
/// [disk.swap]                # see docs/model.md, as [costs]
/// is = "scsi-15k-2009"
/// [costs]
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineFile {
    /// The machine's name.
    pub name: Option<String>,
    /// What the machine is, in one line.
    pub about: Option<String>,
    /// Bytes in a page.
    pub page_size: Option<u64>,
    /// CPUs.
    pub cpus: Option<u16>,
    /// Whether the kernel is built with CONFIG_HAVE_MEMORYLESS_NODES.
    pub memoryless_nodes: Option<bool>,
    /// CPUs of a core.
    pub threads_per_core: Option<u16>,
    /// How the CPUs of a core are numbered.
    pub smt: Option<Smt>,
    /// CPUs that share a last-level cache.
    pub cpus_per_llc: Option<u16>,
    /// Nodes; none means those of the recording.
    pub nodes: Vec<NodeFile>,
    /// Disks, by name.
    pub disks: Vec<DiskFile>,
    /// What the parts cost.
    pub costs: Option<Priced>,
    /// Seed of the model's random numbers.
    pub seed: Option<u64>,
    /// How long an RCU grace period takes.
    pub grace_period_ms: Option<u64>,
    /// Page allocations of this order or above fail.
    pub fail_order: Option<u8>,
    /// Where it was read, for errors.
    pub path: Option<PathBuf>,
}

/// One node of a machine file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFile {
    /// Bytes of memory, 0 for a node without.
    pub memory: u64,
    /// Its CPUs; none means a block of them.
    pub cpus: Vec<u16>,
    /// The socket it is in; `None` means one of its own.
    pub socket: Option<u16>,
    /// Distances to all nodes.
    pub distances: Vec<u32>,
}

/// A machine file. The largest that comes with the program has 10 KiB.
const FILE: Limit = Limit::mib("a machine file", 4);

/// Reads a machine file.
///
/// # Errors
/// What cannot be read or understood, with its line.
pub fn read(path: &Path) -> Result<MachineFile> {
    let bytes = read_at_most(path, FILE)?;
    let text =
        String::from_utf8(bytes).map_err(|_| Error::new(path, "expected a machine file: TOML text"))?;
    if text.trim().is_empty() {
        let expected = "expected a machine file (TOML), for example `cpus = 4`";
        return Err(Error::new(path, format!("the file is empty: {expected}")));
    }
    let file = MachineFile::parse(&text).at(path)?;
    Ok(MachineFile { path: Some(path.to_path_buf()), ..file })
}

impl MachineFile {
    /// Understands the text of a machine file.
    ///
    /// # Errors
    /// What cannot be understood or contradicts itself, with its line.
    pub fn parse(text: &str) -> Read<MachineFile> {
        let (doc, table) = Doc::parse(text)?;
        doc.known(&table, NAMES)?;
        let number = |name: &str, limits| -> Read<Option<u64>> {
            table.get(name).map(|value| doc.number(value, name, limits)).transpose()
        };
        let text = |name: &str| table.get(name).map(|value| doc.text(value, name)).transpose();
        let file = MachineFile {
            name: text("name")?,
            about: text("about")?,
            page_size: table.get("page_size").map(|value| page_size(&doc, value)).transpose()?,
            cpus: number("cpus", 1..=CPUS_MAX)?.map(|cpus| cpus as u16),
            memoryless_nodes: word(&doc, &table, "memoryless_nodes", &[("yes", true), ("no", false)])?,
            threads_per_core: number("threads_per_core", 1..=64)?.map(|threads| threads as u16),
            smt: word(&doc, &table, "smt", &[("adjacent", Smt::Adjacent), ("split", Smt::Split)])?,
            cpus_per_llc: number("cpus_per_llc", 1..=CPUS_MAX)?.map(|cpus| cpus as u16),
            nodes: table.get("nodes").map(|value| nodes(&doc, value)).transpose()?.unwrap_or_default(),
            disks: table
                .get("disk")
                .map(|value| disks::read(&doc, value, true))
                .transpose()?
                .unwrap_or_default(),
            costs: table.get("costs").map(|value| costs::read(&doc, value)).transpose()?,
            seed: number("seed", 0..=i64::MAX as u64)?,
            grace_period_ms: number("grace_period_ms", 0..=GRACE_PERIOD_MS_MAX)?,
            fail_order: number("fail_order", 0..=u8::MAX as u64)?.map(|order| order as u8),
            path: None,
        };
        file.check(&doc, &table)?;
        Ok(file)
    }

    /// How many CPUs the file has: as it says, or all that its nodes list.
    pub fn cpus(&self) -> Option<u16> {
        let listed = self.nodes.iter().flat_map(|node| &node.cpus).max();
        self.cpus.or_else(|| listed.map(|last| last + 1))
    }

    /// The node of each of `cpus` CPUs: as the nodes list them, else in blocks.
    pub fn cpu_node(&self, cpus: u16) -> Vec<u16> {
        let mut cpu_node = vec![0; cpus as usize];
        let in_blocks = self.nodes.iter().all(|node| node.cpus.is_empty());
        let block = cpus.div_ceil(self.nodes.len().max(1) as u16).max(1);
        for (cpu, node) in cpu_node.iter_mut().enumerate().filter(|_| in_blocks) {
            *node = cpu as u16 / block;
        }
        for (id, node) in self.nodes.iter().enumerate() {
            for cpu in &node.cpus {
                if let Some(entry) = cpu_node.get_mut(*cpu as usize) {
                    *entry = id as u16;
                }
            }
        }
        cpu_node
    }

    /// What contradicts itself between the nodes and the rest.
    fn check(&self, doc: &Doc<'_>, table: &DeTable<'_>) -> Read<()> {
        let Some(value) = table.get("nodes").filter(|_| !self.nodes.is_empty()) else { return Ok(()) };
        if self.nodes.iter().all(|node| node.memory == 0) {
            let expected = "expected memory = \"64G\", say, in one [[nodes]]";
            return Err(doc.bad(value, format!("no node has memory: {expected}")));
        }
        if let Some(page_size) = self.page_size {
            let frames = self.nodes.iter().map(|node| node.memory / page_size + 1024).sum::<u64>();
            if frames >= FRAMES_MAX {
                let what = format!("{frames} page frames of {page_size} bytes: at most {FRAMES_MAX}");
                return Err(doc.bad(value, what));
            }
        }
        let mut taken = std::collections::BTreeMap::new();
        for (id, (node, value)) in self.nodes.iter().zip(doc.array(value, "nodes")?).enumerate() {
            if let (Some(cpus), Some(cpu)) = (self.cpus, node.cpus.iter().max())
                && *cpu >= cpus
            {
                let expected = format!("expected CPUs below {cpus}, as cpus says");
                return Err(doc.bad(field(value, "cpus"), format!("node {id} has CPU {cpu}: {expected}")));
            }
            if let Some((cpu, other)) = node.cpus.iter().find_map(|cpu| Some((cpu, taken.insert(cpu, id)?))) {
                let what = format!("node {id} has CPU {cpu}, which node {other} has");
                return Err(doc.bad(field(value, "cpus"), what));
            }
            distances(doc, field(value, "distances"), id, &node.distances, self.nodes.len())?;
        }
        let Some(cpus) = self.cpus() else { return Ok(()) };
        self.layout(cpus).check().map_err(|(name, what)| doc.bad(&table[name], what))
    }

    /// What the file says about the parts of `cpus` CPUs.
    pub(crate) fn layout(&self, cpus: u16) -> Layout {
        let socket = |(id, node): (usize, &NodeFile)| node.socket.unwrap_or(id as u16);
        Layout {
            cpu_node: self.cpu_node(cpus),
            sockets: self.nodes.iter().enumerate().map(socket).collect(),
            threads: self.threads_per_core.unwrap_or(1),
            smt: self.smt.unwrap_or_default(),
            cpus_per_llc: self.cpus_per_llc,
        }
    }
}

fn word<T: Copy>(doc: &Doc<'_>, table: &DeTable<'_>, name: &str, words: &[(&str, T)]) -> Read<Option<T>> {
    table.get(name).map(|value| doc.word(value, name, words)).transpose()
}

/// The value of a table's field, or the table itself: an error has its line.
fn field<'v, 'i>(table: &'v Value<'i>, name: &str) -> &'v Value<'i> {
    table.get_ref().as_table().and_then(|table| table.get(name)).unwrap_or(table)
}

fn page_size(doc: &Doc<'_>, value: &Value<'_>) -> Read<u64> {
    let bytes = doc.bytes(value, "page_size")?;
    match bytes {
        4096 | 16384 | 65536 => Ok(bytes),
        _ => Err(doc.bad(value, format!("page_size = {bytes}: expected 4096, 16384 or 65536"))),
    }
}

fn nodes(doc: &Doc<'_>, value: &Value<'_>) -> Read<Vec<NodeFile>> {
    doc.array(value, "nodes")?.enumerate().map(|(id, value)| node(doc, value, id)).collect()
}

fn node(doc: &Doc<'_>, value: &Value<'_>, id: usize) -> Read<NodeFile> {
    if id >= 1024 {
        return Err(doc.bad(value, "expected at most 1024 nodes"));
    }
    let table = doc.table(value, "nodes", "a table [[nodes]]")?;
    doc.known(table, NODE_NAMES)?;
    let socket = table.get("socket").map(|value| doc.number(value, "socket", 0..=1023)).transpose()?;
    let distances = match table.get("distances") {
        Some(row) => doc
            .array(row, "distances")?
            .map(|one| Ok(doc.number(one, "a distance", 10..=255)? as u32))
            .collect::<Read<_>>()?,
        None => Vec::new(),
    };
    Ok(NodeFile {
        memory: table.get("memory").map(|value| doc.bytes(value, "memory")).transpose()?.unwrap_or(0),
        cpus: table.get("cpus").map(|value| cpu_list(doc, value)).transpose()?.unwrap_or_default(),
        socket: socket.map(|socket| socket as u16),
        distances,
    })
}

/// A CPU list: a text as sysfs has it, or an array of numbers.
fn cpu_list(doc: &Doc<'_>, value: &Value<'_>) -> Read<Vec<u16>> {
    if let Some(text) = value.get_ref().as_str() {
        return cpus::parse(text).ok_or_else(|| {
            let expected = "expected CPUs as in \"0-3,32-35\", each once";
            doc.bad(value, format!("cpus = {}: {expected}", shown(value.get_ref())))
        });
    }
    doc.array(value, "cpus")?.map(|cpu| Ok(doc.number(cpu, "a CPU", 0..=CPUS_MAX - 1)? as u16)).collect()
}

fn distances(doc: &Doc<'_>, value: &Value<'_>, id: usize, row: &[u32], nodes: usize) -> Read<()> {
    if row.is_empty() {
        return Ok(());
    }
    if row.len() != nodes {
        let found = row.len();
        let expected = format!("expected one to each of {nodes} nodes");
        return Err(doc.bad(value, format!("node {id} has {found} distances: {expected}")));
    }
    for (to, distance) in row.iter().enumerate() {
        let wrong = if to == id { *distance != 10 } else { *distance <= 10 };
        if wrong {
            let expected = "expected 10 to itself and more to others";
            return Err(
                doc.bad(value, format!("node {id} is at distance {distance} from node {to}: {expected}"))
            );
        }
    }
    Ok(())
}
