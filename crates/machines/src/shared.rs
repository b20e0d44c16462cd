//! Which CPUs share a core, a last-level cache and a socket.

/// How the CPUs of a core are numbered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Smt {
    /// One after the other: 0 and 1 are siblings.
    #[default]
    Adjacent,
    /// All first threads, then all second ones: 0 and half the CPUs are siblings.
    Split,
}

/// What a file says about the parts of its CPUs.
pub(crate) struct Layout {
    /// The node of each CPU.
    pub(crate) cpu_node: Vec<u16>,
    /// The socket of each node.
    pub(crate) sockets: Vec<u16>,
    /// CPUs of a core.
    pub(crate) threads: u16,
    pub(crate) smt: Smt,
    /// CPUs that share a last-level cache; `None`: those of a node.
    pub(crate) cpus_per_llc: Option<u16>,
}

/// The part of each CPU: CPUs with equal entries share it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shared {
    pub(crate) core: Vec<u16>,
    pub(crate) llc: Vec<u16>,
    pub(crate) socket: Vec<u16>,
}

impl Layout {
    fn cores(&self) -> Vec<u16> {
        let cpus = self.cpu_node.len() as u16;
        let cores = (cpus / self.threads).max(1);
        let core = |cpu: u16| match self.smt {
            Smt::Adjacent => cpu / self.threads,
            Smt::Split => cpu % cores,
        };
        (0..cpus).map(core).collect()
    }

    /// The parts. The layout was checked.
    pub(crate) fn shared(&self) -> Shared {
        let core = self.cores();
        let socket_of = |node: &u16| self.sockets.get(*node as usize).copied().unwrap_or(*node);
        let socket: Vec<u16> = self.cpu_node.iter().map(socket_of).collect();
        // CPUs of a socket, node by node and core by core, in runs of those that share a cache.
        let mut order: Vec<usize> = (0..core.len()).collect();
        order.sort_by_key(|cpu| (socket[*cpu], self.cpu_node[*cpu], core[*cpu], *cpu));
        let part = |cpu: usize| if self.cpus_per_llc.is_some() { socket[cpu] } else { self.cpu_node[cpu] };
        let mut llc = vec![0; core.len()];
        let (mut number, mut inside, mut last) = (0, 0, None);
        for cpu in order {
            let full = self.cpus_per_llc == Some(inside);
            if full || last.is_some_and(|last| last != part(cpu)) {
                number += 1;
                inside = 0;
            }
            llc[cpu] = number;
            inside += 1;
            last = Some(part(cpu));
        }
        Shared { core, llc, socket }
    }

    /// What contradicts itself, with the name of the field that says it: cores that are in two nodes, caches
    /// that are in a part of a node or of a core.
    pub(crate) fn check(&self) -> Result<(), (&'static str, String)> {
        let (cpus, threads) = (self.cpu_node.len(), self.threads);
        if !cpus.is_multiple_of(threads as usize) {
            let what = format!("{cpus} CPUs are no whole number of cores of {threads}");
            return Err(("threads_per_core", what));
        }
        let core = self.cores();
        let mut first = vec![None; cpus];
        for cpu in 0..cpus {
            let sibling = *first[core[cpu] as usize].get_or_insert(cpu);
            if self.cpu_node[sibling] != self.cpu_node[cpu] {
                let what = format!("CPUs {sibling} and {cpu} are one core, but on two nodes: see smt");
                return Err(("threads_per_core", what));
            }
        }
        let Some(most) = self.cpus_per_llc else { return Ok(()) };
        if !most.is_multiple_of(threads) {
            return Err(("cpus_per_llc", format!("{most} CPUs are no whole number of cores of {threads}")));
        }
        for node in 0..self.sockets.len() {
            let on = self.cpu_node.iter().filter(|other| **other as usize == node).count() as u16;
            let whole = on == 0 || on.is_multiple_of(most) || most.is_multiple_of(on);
            if !whole {
                let expected = "expected a cache of whole nodes, or a node of whole caches";
                return Err((
                    "cpus_per_llc",
                    format!("node {node} has {on} CPUs, a cache {most}: {expected}"),
                ));
            }
        }
        Ok(())
    }
}
