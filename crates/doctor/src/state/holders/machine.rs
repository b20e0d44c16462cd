//! Tables of the whole machine that name the process or the user: SysV shared memory, file locks, keys,
//! queued signals.

use super::process::Process;
use super::{Counts, text_of};
use std::collections::BTreeMap;
use std::path::Path;

/// What made something and is gone.
const ENDED: &str = "ended processes";

/// Counts what is in these tables.
pub(super) fn count(proc: &Path, processes: &BTreeMap<u32, Process>, counts: &mut Counts) {
    let mut add = |pid: u32, kind: &str| match processes.contains_key(&pid) {
        true => counts.add(pid, kind, 1),
        false => counts.add_named(ENDED, kind, 1),
    };
    // `key shmid perms size cpid ...`, with a line of names.
    for line in text_of(&proc.join("sysvipc/shm")).lines() {
        if let Some(creator) = line.split_whitespace().nth(4).and_then(|word| word.parse().ok()) {
            add(creator, "shm");
        }
    }
    // `1: POSIX  ADVISORY  WRITE 1234 fe:00:3 0 EOF`; who waits for a lock has a line with `->`, and locks of
    // an open file instead of a process have the number -1.
    for line in text_of(&proc.join("locks")).lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [_, _, _, _, pid, ..] = words[..]
            && words[1] != "->"
            && let Ok(pid) = pid.parse()
        {
            add(pid, "lock");
        }
    }
    // ` 1000:     9 8/8 3/1000000 40/25000000`: the keys of a user, then their states and quotas.
    for line in text_of(&proc.join("key-users")).lines() {
        let mut words = line.split_whitespace();
        if let (Some(user), Some(keys)) = (words.next(), words.next().and_then(|word| word.parse().ok())) {
            counts.add_named(&format!("user {}", user.trim_end_matches(':')), "key", keys);
        }
    }
    // Each process has the number of its user.
    let mut signals: BTreeMap<&str, u64> = BTreeMap::new();
    for process in processes.values() {
        let most = signals.entry(&process.user).or_default();
        *most = (*most).max(process.signals);
    }
    signals.iter().for_each(|(user, count)| counts.add_named(&format!("user {user}"), "signal", *count));
}
