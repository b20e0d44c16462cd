//! What one process holds by itself.

use super::super::owners::memory_cgroup;
use super::{UNREAD, text_of};
use crate::what::{Counter, Holders};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Descriptors of a process whose kinds are looked at. A look at one makes the kernel keep an inode and a
/// name in /proc for it, so that a look at all of a leak's would itself look like one.
const SAMPLED: u64 = 32;
/// The most bytes of one file of a process that are read: some million lines.
const LONGEST: u64 = 256 << 20;

/// A process, and how many it holds of each kind.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) parent: u32,
    pub(super) user: String,
    /// One line, whatever the process calls itself.
    pub(super) comm: String,
    /// It ended, and its parent did not wait for it.
    pub(super) is_zombie: bool,
    /// Signals queued for its user.
    pub(super) signals: u64,
    pub(super) kinds: BTreeMap<String, u64>,
    folder: PathBuf,
}

impl Process {
    /// Reads the process of this folder; `None` if it ended. `unread` has the bytes that wait in sockets, by
    /// inode.
    pub(super) fn read(folder: &Path, pid: u32, unread: &BTreeMap<u32, u64>) -> Option<Process> {
        let status = text_of(&folder.join("status"));
        if status.is_empty() {
            return None;
        }
        let word = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.split_whitespace().next()).unwrap_or("")
        };
        let number = |name: &str| word(name).parse::<u64>().unwrap_or(0);
        let mut kinds = BTreeMap::new();
        let is_zombie = word("State:") == "Z";
        // A thread of the kernel has no memory of its own, and no descriptors. Its table has 64 places, which
        // would all be looked at.
        let is_program = status.lines().any(|line| line.starts_with("VmSize:"));
        if !is_zombie && is_program {
            kinds = descriptors(folder, number("FDSize:"), unread);
            let timers = lines_of(&folder.join("timers"), |line| line.starts_with(b"ID:"));
            kinds.insert("timer".into(), timers);
            // A context of Linux AIO is a mapping too.
            let mut contexts = 0;
            let mappings = lines_of(&folder.join("maps"), |line| {
                contexts += u64::from(line.windows(6).any(|part| part == b"/[aio]"));
                true
            });
            kinds.insert("mapping".into(), mappings);
            kinds.insert("aio".into(), contexts);
        }
        if !is_zombie {
            kinds.insert("thread".into(), number("Threads:"));
        }
        Some(Process {
            pid,
            parent: number("PPid:").try_into().unwrap_or(0),
            user: word("Uid:").to_string(),
            comm: line(&text_of(&folder.join("comm"))),
            is_zombie,
            signals: word("SigQ:").split('/').next().and_then(|count| count.parse().ok()).unwrap_or(0),
            kinds,
            folder: folder.to_path_buf(),
        })
    }

    /// The path of its memory cgroup.
    pub(super) fn cgroup(&self) -> String {
        line(&memory_cgroup(text_of(&self.folder.join("cgroup")).as_bytes()))
    }

    /// The namespace of this kind that it is in, as the text of its link.
    pub(super) fn namespace(&self, name: &str) -> Option<String> {
        let target = fs::read_link(self.folder.join("ns").join(name)).ok()?;
        Some(target.to_string_lossy().into_owned())
    }

    /// The mounts of its mount namespace: how many, and the roots of those of nsfs, which keep a namespace.
    pub(super) fn mounts(&self) -> (u64, Vec<String>) {
        let mut namespaces = Vec::new();
        let count = lines_of(&self.folder.join("mountinfo"), |line| {
            // `36 35 0:4 net:[4026532208] /run/netns/x rw shared:1 - nsfs nsfs rw`
            let text = String::from_utf8_lossy(line);
            if text.contains(" - nsfs ") {
                namespaces.extend(text.split_whitespace().nth(3).map(str::to_string));
            }
            true
        });
        (count, namespaces)
    }
}

fn line(text: &str) -> String {
    text.trim_end().replace(['\n', '\t'], " ")
}

/// Descriptors of a process by kind, and what is watched by them. Their number is the size of their directory
/// since Linux 6.2; before, it is at most `table`, the size of the process's table. The kinds are those of a
/// sample, in its proportions. `unread` has the bytes that wait in sockets, by inode.
fn descriptors(folder: &Path, table: u64, unread: &BTreeMap<u32, u64>) -> BTreeMap<String, u64> {
    let size = fs::metadata(folder.join("fd")).map_or(0, |found| found.len());
    let (count, is_exact) = if (1..=table).contains(&size) { (size, true) } else { (table, false) };
    // Descriptors are numbered from 0 without large holes. Of few, all are looked at, with room for holes.
    let numbers: Vec<u64> = match is_exact && count <= SAMPLED || table <= 2 * SAMPLED {
        true => (0..table.min(2 * SAMPLED)).collect(),
        // Of pairs that are opened together, the sample has some of both sides.
        false => {
            let side = |at: u64| if count > 4 * SAMPLED { at % 2 } else { 0 };
            (0..SAMPLED).map(|at| (2 * at + 1) * count / (2 * SAMPLED) + side(at)).collect()
        }
    };
    let looked_at = numbers.len() as u64;
    let mut seen: Vec<(String, u64)> = Vec::new();
    let mut waiting = 0u64;
    for number in numbers {
        if is_exact && seen.len() as u64 == count {
            break;
        }
        if let Ok(target) = fs::read_link(folder.join(format!("fd/{number}"))) {
            let target = target.to_string_lossy();
            waiting = waiting
                .saturating_add(inode_of(&target).and_then(|inode| unread.get(&inode)).copied().unwrap_or(0));
            seen.push((Holders::builtin().of_link(&target), number));
        }
    }
    // A table may be far larger than its descriptors ever were at once since: a number that is missing is
    // none.
    let of = if is_exact { seen.len() as u64 } else { looked_at }.max(1);
    let share = |hits: u64| (u128::from(hits) * u128::from(count) / u128::from(of)) as u64;
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    seen.iter().for_each(|(kind, _)| *kinds.entry(kind.clone()).or_default() += 1);
    let watches = Holders::builtin().kinds().iter().filter(|kind| kind.counter == Counter::Watches);
    for kind in watches {
        let of_kind = seen.iter().filter(|(other, _)| Some(other) == kind.of.as_ref());
        let is_watch = |line: &[u8]| kind.lines.iter().any(|begin| line.starts_with(begin.as_bytes()));
        let found = of_kind.map(|(_, number)| lines_of(&folder.join(format!("fdinfo/{number}")), is_watch));
        kinds.insert(kind.kind.clone(), found.sum());
    }
    kinds.insert(UNREAD.into(), waiting);
    kinds.values_mut().for_each(|hits| *hits = share(*hits));
    kinds
}

/// The inode of a socket, by the text of a descriptor's link.
fn inode_of(target: &str) -> Option<u32> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Lines of a file for which `counts` says yes.
fn lines_of(path: &Path, mut counts: impl FnMut(&[u8]) -> bool) -> u64 {
    let Ok(file) = File::open(path) else { return 0 };
    let mut reader = BufReader::with_capacity(1 << 16, file.take(LONGEST));
    let (mut line, mut found) = (Vec::new(), 0);
    while reader.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
        found += u64::from(counts(&line));
        line.clear();
    }
    found
}
