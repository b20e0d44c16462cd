//! What several processes or files hold together: namespaces and their mounts, and the children of a process.

use super::Counts;
use super::process::Process;
use crate::what::{Counter, Holders};
use std::collections::BTreeMap;

/// What keeps a namespace without a process: a mount of it, as `ip netns add` makes one.
const BY_MOUNTS: &str = "mounts of nsfs";

/// Counts children, namespaces and mounts.
pub(super) fn count(processes: &BTreeMap<u32, Process>, counts: &mut Counts) {
    for process in processes.values().filter(|process| process.parent > 0) {
        counts.add(process.parent, if process.is_zombie { "zombie" } else { "child" }, 1);
    }
    // Namespaces that everything is in are those of the first process.
    let first = processes.get(&1).or_else(|| processes.values().next());
    for kind in Holders::builtin().kinds().iter().filter(|kind| kind.counter == Counter::Namespaces) {
        let name = kind.kind.split(' ').next().unwrap_or("");
        let own = first.and_then(|first| first.namespace(name));
        for process in one_each(name, processes) {
            if process.namespace(name) != own {
                counts.add(holder(process, processes), &kind.kind, 1);
            }
        }
    }
    let own = first.and_then(|first| first.namespace("mnt"));
    for process in one_each("mnt", processes) {
        let (mounts, namespaces) = process.mounts();
        let is_own = process.namespace("mnt") == own;
        let pid =
            if is_own { first.map_or(process.pid, |first| first.pid) } else { holder(process, processes) };
        counts.add(pid, "mount", mounts);
        // A copy of a mount in another namespace keeps no other object.
        for root in namespaces.iter().filter(|_| is_own) {
            counts.add_named(BY_MOUNTS, &Holders::builtin().of_link(root), 1);
        }
    }
}

/// One process of each namespace of this kind: the first.
fn one_each<'a>(name: &str, processes: &'a BTreeMap<u32, Process>) -> impl Iterator<Item = &'a Process> {
    let mut found: BTreeMap<String, &Process> = BTreeMap::new();
    for process in processes.values() {
        if let Some(namespace) = process.namespace(name) {
            found.entry(namespace).or_insert(process);
        }
    }
    found.into_values()
}

/// What made the namespace of a process, as far as that is known: its parent, where that is not the machine's
/// first process, which adopts all orphans.
fn holder(process: &Process, processes: &BTreeMap<u32, Process>) -> u32 {
    let parent = Some(process.parent).filter(|parent| *parent > 1 && processes.contains_key(parent));
    parent.unwrap_or(process.pid)
}
