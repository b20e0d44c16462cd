//! The state that a text tells: its caches, what was inferred about them, and what it lacks.

use super::join;
use super::machine::{Cache, Missing, State};
use super::missing::COLLECT;
use crate::words::listed;
use slablab_readers::bundle::Dump;
use slablab_readers::pasted::{Caches, Kind, Moment, Pasted};
use slablab_report::text::{counted, grouped};
use std::path::{Path, PathBuf};

/// Most places that one sentence names.
const NAMED: usize = 3;

/// Whether the text has all caches of its machine: as many as slabtop's head counts, or a slabinfo from its
/// version line on without a row that is cut.
pub(super) fn is_whole(pasted: &Pasted, caches: usize) -> bool {
    let counted = pasted.totals.and_then(|totals| totals.caches);
    let of_slabinfo = pasted.has_version && pasted.tables.iter().any(|table| table.kind == Kind::Slabinfo);
    pasted.cut.is_empty() && (counted.is_some_and(|(_, all)| all == caches as u64) || of_slabinfo)
}

/// The page size of nearly all machines, where a text has no slabs to tell it by.
pub(super) fn page_size(dump: &Dump, assumed: &mut Vec<String>) -> Option<u64> {
    const USUAL: u64 = 4096;
    dump.pasted.as_ref()?;
    assumed.push(format!("A page has {USUAL} bytes: the text does not tell. --page-size says another."));
    Some(USUAL)
}

/// Caches of which only bytes are known.
pub(super) fn sized(dump: &Dump, page_size: u64) -> Vec<Cache> {
    let of = |(name, used, bytes): &(String, Option<u64>, u64)| Cache {
        name: name.clone(),
        size: 1,
        objects_per_slab: page_size,
        slabs: bytes.div_ceil(page_size),
        total_objects: *bytes,
        active_objects: used.unwrap_or(*bytes).min(*bytes),
        bytes_only: true,
        ..Cache::default()
    };
    dump.sized.iter().map(of).collect()
}

/// The earlier snapshots of a text, which share everything but the caches.
pub(super) fn earlier(state: &State) -> Vec<State> {
    if state.dump.earlier.is_empty() {
        return moments(state);
    }
    let mut rest = without_caches(state);
    let snapshots = std::mem::take(&mut rest.dump.earlier);
    let of = |(index, caches): (usize, Caches)| {
        let mut state_then = rest.clone();
        let dump = &mut state_then.dump;
        (dump.slabinfo, dump.sized) = (Some(caches.slabinfo), caches.sized);
        let mut joined = join::join(dump).caches;
        joined.extend(sized(dump, state.page_size));
        state_then.caches = joined;
        state_then.path = part(&state.path, "snapshot", index);
        state_then
    };
    snapshots.into_iter().enumerate().map(of).collect()
}

/// The name of one of several states in a text.
fn part(of: &Path, what: &str, index: usize) -> PathBuf {
    format!("{} ({what} {})", of.display(), index + 1).into()
}

/// Earlier moments of /proc/meminfo in the text, where it has no earlier tables.
fn moments(state: &State) -> Vec<State> {
    // A table beside several moments is of one of them: which one is not known.
    let Some(pasted) = state.dump.pasted.as_ref().filter(|_| state.caches.is_empty()) else {
        return Vec::new();
    };
    let of = |(index, moment): (usize, &Moment)| {
        let mut then = without_caches(state);
        (then.taken_s, then.up_s) = (moment.taken_s, moment.up_s);
        then.dump.meminfo = moment.meminfo.clone();
        then.path = part(&state.path, "moment", index);
        then
    };
    pasted.moments.iter().enumerate().map(of).collect()
}

/// A state without the caches of its text, which may be many.
fn without_caches(state: &State) -> State {
    let dump = Dump {
        earlier: state.dump.earlier.clone(),
        meminfo: state.dump.meminfo.clone(),
        release: state.dump.release.clone(),
        ..Dump::default()
    };
    State {
        path: PathBuf::new(),
        caches: Vec::new(),
        page_size: state.page_size,
        cpus: state.cpus,
        release: state.release,
        taken_s: None,
        up_s: None,
        missing: Vec::new(),
        assumed: Vec::new(),
        dump,
    }
}

/// What was read from which lines, what was left out, and what was inferred.
pub(super) fn assumed(dump: &Dump) -> Vec<String> {
    let Some(pasted) = &dump.pasted else { return Vec::new() };
    let inferred = pasted.caches().inferred;
    let mut said = Vec::new();
    if pasted.of_cgroup {
        said.push("The caches are those of one memory cgroup, not of the machine (kmem.slabinfo).".into());
    }
    if inferred.exact_sizes + inferred.sizes > 0 {
        said.push(format!(
            "slabtop rounds the size of an object: the number of objects in a slab leaves one size for {} of {} \
             caches, and the nearest was taken for the others.",
            inferred.exact_sizes,
            inferred.exact_sizes + inferred.sizes
        ));
    }
    if inferred.slab_sizes > 0 {
        said.push(format!(
            "The kernel has the allocator SLAB: the sizes of {} fit only slabs that have a byte for each \
             object beside it.",
            caches(inferred.slab_sizes)
        ));
    }
    if inferred.pages > 0 {
        said.push(format!(
            "Pages of a slab are the smallest power of two that holds its objects, for {}.",
            caches(inferred.pages)
        ));
    }
    if inferred.slabs > 0 {
        said.push(format!("Slabs are objects over objects in a slab, for {}.", caches(inferred.slabs)));
    }
    if inferred.doubled > 0 {
        said.push(format!(
            "{} in two tables of the text: the more complete one counts.",
            are(inferred.doubled)
        ));
    }
    if pasted.tables.iter().any(|table| table.kind == Kind::Sizes) {
        said.push(if pasted.active_bytes {
            "The list has bytes of active objects, as its program says: slabs take more.".into()
        } else {
            "The list has bytes of whole caches: the text does not tell what was multiplied.".into()
        });
    }
    said
}

fn caches(count: usize) -> String {
    if count == 1 { "1 cache".into() } else { format!("{} caches", grouped(count as u64)) }
}

fn are(count: usize) -> String {
    if count == 1 { "1 cache is".into() } else { format!("{} caches are", grouped(count as u64)) }
}

/// What was found in the text and where, and what was left out of it: sentences for the evidence.
pub(super) fn found(pasted: &Pasted) -> Vec<String> {
    let mut said = Vec::new();
    for table in &pasted.tables {
        let (first, last) = table.last().lines();
        let lines = if first == last { format!("line {first}") } else { format!("lines {first} to {last}") };
        let snapshots = match table.snapshots.len() {
            1 => String::new(),
            many => format!(", the last of {many} snapshots"),
        };
        said.push(format!(
            "read: {} of {} ({lines}{snapshots})",
            caches(table.last().rows.len()),
            words(table.kind)
        ));
        if table.excerpts > 0 {
            said.push(format!(
                "not used: {} of {} that repeat caches of a longer list",
                rows(table.excerpts),
                words(table.kind)
            ));
        }
    }
    let head = pasted.totals.and_then(|totals| Some((totals.objects?.1, totals.caches?.1, totals.bytes?.1)));
    if let Some((objects, caches, bytes)) = head {
        said.push(format!(
            "the head of slabtop counts all {} caches: {} objects of {} KiB together",
            grouped(caches),
            grouped(objects),
            grouped(bytes / 1024)
        ));
    }
    if !pasted.meminfo.is_empty() {
        let file = if pasted.of_vmstat { "/proc/vmstat" } else { "/proc/meminfo" };
        let moments = match pasted.moments.len() {
            0 => String::new(),
            earlier => format!(", the last of {} moments", earlier + 1),
        };
        said.push(format!("read: {} lines of {file}{moments}", pasted.meminfo.len()));
    }
    if pasted.cut_moment {
        said.push("not used: the last /proc/meminfo, which ends before its lines about slabs".into());
    }
    if !pasted.alloc_sites.is_empty() {
        said.push(format!("read: {} of /proc/allocinfo", counted(pasted.alloc_sites.len() as u64, "line")));
    }
    if !pasted.unreadable.is_empty() {
        said.push(format!("unreadable by crash itself: {}", listed(&pasted.unreadable)));
    }
    if let Some((line, text)) = pasted.lost.first() {
        said.push(format!(
            "{} of a table could not be read, the first is line {line}: `{text}`",
            rows(pasted.lost.len())
        ));
    }
    if let Some((line, text)) = pasted.cut.first() {
        let are = if pasted.cut.len() == 1 { "is" } else { "are" };
        said.push(format!("{} {are} cut off, the first in line {line}: `{text}`", rows(pasted.cut.len())));
    }
    if let Some((line, text)) = &pasted.first_unread {
        said.push(format!(
            "{} of {} lines were not understood, the first is line {line}: `{text}`",
            grouped(pasted.unread as u64),
            grouped(pasted.lines as u64)
        ));
    }
    said
}

fn rows(count: usize) -> String {
    if count == 1 { "1 row".into() } else { format!("{} rows", grouped(count as u64)) }
}

fn words(kind: Kind) -> &'static str {
    match kind {
        Kind::Slabinfo => "/proc/slabinfo",
        Kind::Crash => "crash's kmem -s",
        Kind::Spl => "/proc/spl/kmem/slab",
        Kind::Columns => "vmstat -m or columns of /proc/slabinfo",
        Kind::Slabtop => "slabtop",
        Kind::Oom => "an OOM report",
        Kind::Sizes => "a list of sizes",
    }
}

/// What the text does not say. One command collects all of it.
pub(super) fn missing(dump: &Dump, pasted: &Pasted) -> Vec<Missing> {
    let mut missing = Vec::new();
    let mut lacks = |file: &str, why: String, costs: &str| {
        let (file, costs, command) = (file.into(), costs.into(), Some(COLLECT.into()));
        missing.push(Missing { file, why, costs, command });
    };
    let kinds: Vec<Kind> = pasted.tables.iter().map(|table| table.kind).collect();
    let listed = dump.slabinfo.as_ref().map_or(0, |slabinfo| slabinfo.rows.len()) + dump.sized.len();
    let counted = pasted.totals.and_then(|totals| totals.caches).map(|(_, all)| all);
    match kinds[..] {
        [] => lacks("/proc/slabinfo", "not in the text".into(), "which caches hold the memory"),
        _ if !is_whole(pasted, listed) => {
            let why = match counted {
                Some(all) => format!("the text has {listed} of {} caches", grouped(all)),
                None => format!("the text has {}, perhaps not all", caches(listed)),
            };
            let parts: Vec<&str> = kinds.iter().map(|kind| words(*kind)).take(NAMED).collect();
            lacks("/proc/slabinfo", format!("{why}, of {}", parts.join(" and ")), "the other caches");
        }
        _ if !kinds.contains(&Kind::Slabinfo) => {
            let why = format!("the text has {} instead", words(kinds[0]));
            lacks("/proc/slabinfo", why, "sizes and slabs that are rounded or inferred here");
        }
        _ => {}
    }
    if !kinds.is_empty() {
        let costs = "which caches the kernel can reclaim, sizes without padding, what CPUs and nodes hold";
        lacks("/sys/kernel/slab", "not in the text".into(), costs);
    }
    if dump.meminfo.is_empty() {
        let costs = "SReclaimable and SUnreclaim beside all memory: whether the kernel can free it by itself";
        lacks("/proc/meminfo", "not in the text".into(), costs);
    }
    if dump.release.is_none() {
        let costs = "the kernel's release, and with it what its user may change";
        lacks("/proc/version", "not in the text".into(), costs);
    }
    missing
}

impl State {
    /// Whether the list has all caches of the machine. A text may have a part of them, or none.
    pub fn has_all_caches(&self) -> bool {
        self.dump.pasted.as_ref().is_none_or(|pasted| is_whole(pasted, self.caches.len()))
    }

    /// Earlier snapshots in the same input, oldest first.
    pub fn earlier(&self) -> Vec<State> {
        earlier(self)
    }

    /// What was found in the text that was read, and what was left out of it; nothing for other inputs.
    pub fn found(&self) -> Vec<String> {
        self.dump.pasted.as_ref().map_or_else(Vec::new, |pasted| found(pasted))
    }
}
