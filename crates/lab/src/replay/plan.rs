//! The slabs to begin with.
//!
//! Rules, in this order (docs/replay.md says why):
//! 1. A slab whose free objects a CPU was first to get, and that is the first slab from before which that CPU
//!    got anything of, is that CPU's slab.
//! 2. Further slabs from before that a CPU got objects of are on its partial list, up to the number in the
//!    dump (without a dump: none); the rest are on their node's list.
//! 3. A slab from before of which only frees are seen is full, its unseen objects stay allocated.
//! 4. What the dump counts beyond that is added: CPU slabs of CPUs without one, partial slabs, full slabs.

use super::before::nodes::node_at;
use super::before::{Before, CacheBefore};
use super::caches::{CacheEntry, CacheTable};
use super::survey::{OldFree, SlabSurvey, Survey};
use crate::machine::Chosen;
use rustc_hash::FxHashMap;
use slablab_platform::CpuId;
use slablab_slabs::Place;

/// The start of a replay.
#[derive(Debug, Default)]
pub struct Plan {
    /// Per cache of the table.
    pub caches: Vec<Vec<PlannedSlab>>,
    /// Frees of objects from before: row, cache, and which object; `u32::MAX` is one that no slab was planned
    /// for.
    pub old: Vec<(u64, u32, u32)>,
    /// Objects from before that are freed.
    pub old_objects: u32,
    /// Rows from which and up to which each cache counts.
    pub windows: Vec<(u64, u64)>,
    /// Frees of objects whose cache is unknown.
    pub unknown_frees: u64,
}

/// A slab to begin with.
#[derive(Clone, Debug)]
pub struct PlannedSlab {
    /// The node its memory is on.
    pub node: u16,
    /// Where it is.
    pub place: Place,
    /// Each object: free with its turn, or allocated, and then perhaps one that is freed later.
    pub objects: Vec<Start>,
}

/// An object at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Free; the number says in which turn it is handed out.
    Free(u16),
    /// Allocated and never freed in the recording.
    Kept,
    /// Allocated, and freed in the recording: its number.
    Old(u32),
}

/// Plans the start.
pub fn plan(
    table: &CacheTable,
    survey: &Survey,
    before: Option<&Before>,
    machine: &Chosen,
    assumed: &mut Vec<String>,
) -> Plan {
    if before.is_none() && !survey.old.is_empty() {
        assumed.push(
            "the start is what the recording itself shows: slabs of which it sees no object are not there"
                .into(),
        );
    }
    let mut plan =
        Plan { windows: survey.windows.clone(), unknown_frees: survey.unknown_frees, ..Plan::default() };
    let mut numbers: FxHashMap<(u32, u64, u16), u32> = FxHashMap::default();
    for old in &survey.old {
        let next = numbers.len() as u32;
        numbers.entry((old.cache, old.slab, old.index)).or_insert(next);
    }
    let mut planned = vec![false; numbers.len()];
    for (cache, entry) in table.entries.iter().enumerate() {
        let dump = entry.before.and_then(|row| Some(&before?.caches[row]));
        let mut slabs = Vec::new();
        let mut places = Places::new(dump, machine);
        for (address, seen) in survey.caches[cache].initial() {
            let number = |index: u16| numbers.get(&(cache as u32, address, index)).copied();
            let objects = starts(seen, entry.objects, number, &mut planned);
            let node = node_of(address, survey, before);
            slabs.push(PlannedSlab { node, place: places.of(seen), objects });
        }
        let cpu_has = places.cpu_has;
        fit_to_active(&mut slabs, &survey.caches[cache].initial(), dump, entry, machine);
        if let Some(dump) = dump {
            add_unseen(&mut slabs, dump, entry.objects, &cpu_has, machine);
        }
        // The newest of a CPU's chain is the one it uses first: it is put there last.
        slabs.reverse();
        plan.caches.push(slabs);
    }
    let number = |old: &OldFree| {
        let number = numbers[&(old.cache, old.slab, old.index)];
        if planned[number as usize] { number } else { u32::MAX }
    };
    plan.old = survey.old.iter().map(|old| (old.row, old.cache, number(old))).collect();
    plan.old_objects = numbers.len() as u32;
    plan
}

fn starts(
    seen: &SlabSurvey,
    objects: u32,
    number: impl Fn(u16) -> Option<u32>,
    planned: &mut [bool],
) -> Vec<Start> {
    let mut starts = vec![Start::Kept; objects as usize];
    for (turn, (index, _)) in seen.free.iter().enumerate() {
        if let Some(start) = starts.get_mut(*index as usize) {
            *start = Start::Free(turn as u16);
        }
    }
    for index in &seen.live {
        if let (Some(start), Some(number)) = (starts.get_mut(*index as usize), number(*index)) {
            *start = Start::Old(number);
            planned[number as usize] = true;
        }
    }
    starts
}

fn node_of(address: u64, survey: &Survey, before: Option<&Before>) -> u16 {
    let known = before.map(|before| &before.nodes).zip(survey.linear_map);
    known.and_then(|(spans, base)| node_at(spans, address.wrapping_sub(base))).unwrap_or(0)
}

/// Where the slabs of one cache are that CPUs got objects of.
struct Places<'a> {
    dump: Option<&'a CacheBefore>,
    /// CPUs whose CPU slab is known.
    cpu_has: Vec<bool>,
    /// Slabs put on each CPU's partial list.
    chained: FxHashMap<u16, u64>,
}

impl<'a> Places<'a> {
    fn new(dump: Option<&'a CacheBefore>, machine: &Chosen) -> Self {
        Places { dump, cpu_has: vec![false; machine.spec.cpu_node.len()], chained: FxHashMap::default() }
    }

    fn of(&mut self, seen: &SlabSurvey) -> Place {
        let Some((_, cpu)) = seen.free.first() else { return Place::Node };
        if let Some(has @ false) = self.cpu_has.get_mut(*cpu as usize) {
            *has = true;
            return Place::Cpu(CpuId(*cpu));
        }
        let partial = self.dump.and_then(|dump| dump.cpu_partial.as_ref());
        let on_cpu = partial.and_then(|partial| partial.cpus.iter().find(|(id, _)| *id == *cpu as u32));
        let limit = on_cpu.map_or(0, |(_, count)| count.slabs.unwrap_or(0));
        let used = self.chained.entry(*cpu).or_default();
        if *used < limit {
            *used += 1;
            return Place::CpuPartial(CpuId(*cpu));
        }
        Place::Node
    }
}

/// /proc/slabinfo alone says how many objects are free on node lists: all that are not active. Slabs that
/// hold more than that were on CPUs' partial lists: those that CPUs used first, up to what such a list holds.
fn fit_to_active(
    slabs: &mut [PlannedSlab],
    seen: &[(u64, &SlabSurvey)],
    dump: Option<&CacheBefore>,
    entry: &CacheEntry,
    machine: &Chosen,
) {
    let Some(dump) = dump.filter(|dump| dump.cpu_partial.is_none()) else { return };
    let Some(total) = dump.slabs.as_ref() else { return };
    let listed_free = (total.total.value * entry.objects as u64).saturating_sub(dump.active);
    let on_lists = |slabs: &[PlannedSlab]| -> u64 {
        slabs.iter().filter(|slab| slab.place == Place::Node).map(free_objects).sum()
    };
    let mut room = vec![entry.cpu_partial as u64; machine.spec.cpu_node.len()];
    for index in 0..slabs.len() {
        if on_lists(slabs) <= listed_free {
            return;
        }
        let Some((_, cpu)) = seen[index].1.free.first() else { continue };
        let Some(room) = room.get_mut(*cpu as usize).filter(|room| **room > 0) else { continue };
        if slabs[index].place == Place::Node {
            slabs[index].place = Place::CpuPartial(CpuId(*cpu));
            *room -= 1;
        }
    }
}

/// Slabs that the dump counts and the recording does not touch.
fn add_unseen(
    slabs: &mut Vec<PlannedSlab>,
    dump: &CacheBefore,
    objects: u32,
    cpu_has: &[bool],
    machine: &Chosen,
) {
    let Some(total) = dump.slabs.as_ref() else { return };
    let nodes = machine.spec.nodes.len() as u16;
    for node in 0..nodes {
        let whole = |part: &slablab_kernel::text::Breakdown| match part.nodes.is_empty() {
            true if node == 0 => part.total.value,
            true => 0,
            false => part.node(node as u32),
        };
        let here = |slabs: &[PlannedSlab], wanted: fn(&PlannedSlab) -> bool| {
            slabs.iter().filter(|slab| slab.node == node && wanted(slab)).count() as u64
        };
        let is_free = |slab: &PlannedSlab| slab.objects.iter().any(|start| matches!(start, Start::Free(_)));
        let mut missing = whole(total).saturating_sub(here(slabs, |_| true));
        // Partial slabs that no row touched, with the free objects that the dump counts beyond those of known
        // slabs.
        let partial = dump.partial.as_ref().map_or(0, whole);
        let in_use = dump.objects_partial.as_ref().map_or(0, whole);
        let known: Vec<_> = slabs
            .iter()
            .filter(|slab| slab.node == node && slab.place == Place::Node && is_free(slab))
            .collect();
        let known_free: u64 = known.iter().map(|slab| free_objects(slab)).sum();
        let unseen = partial.saturating_sub(known.len() as u64).min(missing);
        let mut free = (partial * objects as u64).saturating_sub(in_use).saturating_sub(known_free);
        if dump.partial.is_none() && node == 0 {
            // Only slabinfo: free objects on node lists are what is not active; how many slabs hold them is
            // not said.
            let room = whole(total) * objects as u64;
            free = room.saturating_sub(dump.active).saturating_sub(known_free);
            let slabs_needed = free.div_ceil(objects.max(1) as u64 / 2 + 1).min(missing);
            missing -= push_partial(slabs, slabs_needed, free, node, objects);
        } else {
            missing -= push_partial(slabs, unseen, free, node, objects);
        }
        // CPU slabs of CPUs that never allocate: they look full, and frees to them must find them frozen.
        let frozen = dump.cpu_slabs.as_ref().map_or(0, whole);
        let known_frozen = here(slabs, |slab| slab.place != Place::Node);
        let mut idle = (0..cpu_has.len() as u16)
            .filter(|cpu| !cpu_has[*cpu as usize] && machine.spec.cpu_node[*cpu as usize] == node);
        for _ in 0..frozen.saturating_sub(known_frozen).min(missing) {
            let Some(cpu) = idle.next() else { break };
            slabs.push(PlannedSlab {
                node,
                place: Place::Cpu(CpuId(cpu)),
                objects: vec![Start::Kept; objects as usize],
            });
            missing -= 1;
        }
        for _ in 0..missing {
            slabs.push(PlannedSlab {
                node,
                place: Place::Node,
                objects: vec![Start::Kept; objects as usize],
            });
        }
    }
}

fn free_objects(slab: &PlannedSlab) -> u64 {
    slab.objects.iter().filter(|start| matches!(start, Start::Free(_))).count() as u64
}

/// Adds partial slabs that share `free` free objects evenly; answers how many.
fn push_partial(slabs: &mut Vec<PlannedSlab>, count: u64, free: u64, node: u16, objects: u32) -> u64 {
    for index in 0..count {
        let share = (free * (index + 1) / count - free * index / count).clamp(1, objects as u64) as u16;
        let start = |at: u16| if at < share { Start::Free(at) } else { Start::Kept };
        slabs.push(PlannedSlab {
            node,
            place: Place::Node,
            objects: (0..objects as u16).map(start).collect(),
        });
    }
    count
}
