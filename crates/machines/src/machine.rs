//! A machine file as a machine: the model's description, its parts, and what they cost.

use crate::costs::Priced;
use crate::disks::DiskFile;
use crate::file::MachineFile;
use crate::shared::Shared;
use slablab_model::disk::Disk;
use slablab_model::{BadSpec, Hardware, MachineSpec, NodeSpec};

/// A machine to model.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// CPUs, nodes, memory.
    pub spec: MachineSpec,
    /// What CPUs share, and the prices.
    pub hardware: Hardware,
    /// The prices again, with their sources.
    pub priced: Priced,
    /// Its disks, by the names that the file gives them.
    pub disks: Vec<DiskFile>,
}

impl Machine {
    /// The disk of this name.
    pub fn disk(&self, name: &str) -> Option<&Disk> {
        self.disks.iter().find(|disk| disk.name == name).map(|disk| &disk.disk)
    }
}

impl MachineFile {
    /// The machine that the file describes. Unlike a replay, which may take parts of the recording, it must
    /// be whole: CPUs, a node with memory, costs.
    ///
    /// # Errors
    /// What is missing or contradicts itself.
    pub fn machine(&self) -> Result<Machine, BadSpec> {
        let missing = |what: &str| BadSpec(format!("the machine file has no {what}"));
        let cpus = self.cpus().ok_or_else(|| missing("cpus: expected `cpus = 64`, or CPUs of each node"))?;
        let priced = self.costs.clone().ok_or_else(|| missing("[costs]: see docs/model.md"))?;
        if self.nodes.is_empty() {
            return Err(missing("[[nodes]]: expected one at least, with memory"));
        }
        let has_memoryless = self.nodes.iter().any(|node| node.memory == 0);
        if has_memoryless && self.memoryless_nodes.is_none() {
            return Err(missing("memoryless_nodes, but a node without memory: expected \"yes\" or \"no\""));
        }
        let uniform = MachineSpec::uniform(cpus, 1, 0);
        let rows = self.nodes.iter().all(|node| !node.distances.is_empty());
        let spec = MachineSpec {
            page_shift: self.page_size.unwrap_or(4096).ilog2(),
            cpu_node: self.cpu_node(cpus),
            nodes: self.nodes.iter().map(|node| NodeSpec { bytes: node.memory }).collect(),
            distance: match rows {
                true => self.nodes.iter().map(|node| node.distances.clone()).collect(),
                false => Vec::new(),
            },
            memoryless_nodes: self.memoryless_nodes.unwrap_or(false),
            seed: self.seed.unwrap_or(uniform.seed),
            grace_period_ns: self.grace_period_ms.map_or(uniform.grace_period_ns, |ms| ms * 1_000_000),
            fail_order: self.fail_order,
            ..uniform
        };
        spec.check()?;
        let Shared { core, llc, socket } = self.layout(cpus).shared();
        let hardware = Hardware { core, llc, socket, costs: priced.costs.clone() };
        Ok(Machine {
            name: self.name.clone().unwrap_or_default(),
            spec,
            hardware,
            priced,
            disks: self.disks.clone(),
        })
    }
}
