//! Which processes hold the objects of a cache that grew.

use crate::state::State;
use crate::what::Entry;
use slablab_readers::cgroups::Holder;
use std::collections::BTreeMap;

/// Processes of one name that hold what grew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    /// The name of the processes.
    pub comm: String,
    /// The process with most.
    pub pid: u32,
    /// Processes.
    pub processes: usize,
    /// The kind: `socket`, `pipe`, `file`, `thread` and so on.
    pub kind: String,
    /// How many they hold together.
    pub count: u64,
    /// How many more than in the first snapshot; `None` if that has no table of holders.
    pub more: Option<i64>,
    /// The memory cgroup of the process with most.
    pub cgroup: String,
}

/// The kinds of [`Holder`]s that hold objects of an entry's cache.
fn kinds(entry: &Entry) -> &'static [&'static str] {
    let of = |id: &str| -> Option<&'static [&'static str]> {
        Some(match id {
            "close-sockets" => &["socket"],
            "close-files" => &["file", "socket", "pipe", "eventfd", "eventpoll"],
            "end-processes" => &["thread"],
            "find-watchers" => &["inotify"],
            "limit-epoll" => &["eventpoll"],
            "end-uring" => &["io_uring"],
            "end-timers" => &["timerfd"],
            _ => return None,
        })
    };
    entry.shrink.iter().find_map(|method| of(&method.id)).unwrap_or(&[])
}

/// Who holds most of the objects of `entry`'s cache, or most more than in the first snapshot; several
/// processes of one name are counted together.
pub(crate) fn who(entry: &Entry, now: &State, first: &State) -> Option<Who> {
    let kinds = kinds(entry);
    let then = &first.dump.owners.holders;
    let had = |holder: &Holder| {
        let same =
            |old: &&Holder| (old.pid, &old.kind, &old.comm) == (holder.pid, &holder.kind, &holder.comm);
        then.iter().find(same).map_or(0, |old| old.count)
    };
    let mut found: BTreeMap<(&str, &str), Who> = BTreeMap::new();
    for holder in now.dump.owners.holders.iter().filter(|holder| kinds.contains(&holder.kind.as_str())) {
        let who = found.entry((&holder.comm, &holder.kind)).or_insert_with(|| Who {
            comm: holder.comm.clone(),
            pid: holder.pid,
            processes: 0,
            kind: holder.kind.clone(),
            count: 0,
            more: (!then.is_empty()).then_some(0),
            cgroup: holder.cgroup.clone(),
        });
        who.processes += 1;
        who.count += holder.count;
        who.more = who.more.map(|more| more + holder.count as i64 - had(holder) as i64);
    }
    found.into_values().max_by_key(|who| (who.more.unwrap_or(0), who.count))
}
