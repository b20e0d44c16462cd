//! The slabs to begin with.
//!
//! Rules, in this order (docs/replay.md says why):
//! 1. A slab whose free objects a CPU was first to get, and that is the first slab from before which that CPU
//!    got anything of, is that CPU's slab.
//! 2. Further slabs from before that a CPU got objects of are on its partial list, up to the number in the
//!    dump (without a dump: none); the rest are on their node's list.
//! 3. A slab from before of which only frees are seen is full or partial, as the dump's totals and the frees
//!    make likely; without a dump it is full. Its unseen objects stay allocated.
//! 4. What the dump counts beyond that is added: slabs of CPUs, partial slabs, full slabs ([`super::fill`]).
//! 5. What SLAB's arrays hold is free: as many objects as `sharedavail` says, and as the CPUs' own arrays are
//!    seen to hold (`parked`).
//! 6. Slabs of a node's list that objects came of are ahead of the others (`in_order`).
//! 7. Evidence by [`Evidence::Pages`] comes first: a slab whose pages were freed had no object then.
//! 8. Of a cache whose slabs were read all of this is known (`observed`).

use super::Options;
use super::before::nodes::node_at;
use super::before::{Before, CacheBefore};
use super::caches::{CacheEntry, CacheTable};
use super::evidence::{Evidence, Read};
use super::fill::{Drawn, fill};
use super::observed::{Observed, observed};
use super::parked::{Parked, park};
use super::planned::free_objects;
pub use super::planned::{PlannedSlab, Start};
use super::survey::{CacheSurvey, OldFree, SlabSurvey, Survey};
use super::untraced::Untraced;
use crate::machine::Chosen;
use crate::quantiles::Quantiles;
use rustc_hash::{FxHashMap, FxHashSet};
use slablab_platform::CpuId;
use slablab_slabs::Place;

/// The start of a replay.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Per cache of the table.
    pub caches: Vec<Vec<PlannedSlab>>,
    /// Per cache of the table: free objects in SLAB's arrays.
    pub parked: Vec<Parked>,
    /// Frees of objects from before: row, cache, and which object; `u32::MAX` is one that no slab was planned
    /// for.
    pub old: Vec<(u64, u32, u32)>,
    /// Objects from before that are freed.
    pub old_objects: u32,
    /// Objects that begin in sheaves, in the order in which they come there: CPU, cache, and which object of
    /// those from before.
    pub sheaved: Vec<(u16, u32, u32)>,
    /// Objects from before that are allocated again without a free: row, cache, and which.
    pub freed_unseen: Vec<(u64, u32, u32)>,
    /// Allocations and frees that left no event; by row.
    pub untraced: Vec<Untraced>,
    /// What is known of caches whose slabs were read.
    pub read: Read,
    /// Rows from which and up to which each cache counts.
    pub windows: Vec<(u64, u64)>,
    /// Frees of objects whose cache is unknown.
    pub unknown_frees: u64,
    /// Slabs of which only frees are seen.
    pub drawn: Drawn,
    /// Slabs with objects that page frees prove to have been free at the start; 0 if that is not used.
    pub proven: u64,
}

/// Plans the start.
pub fn plan(
    table: &CacheTable,
    survey: &Survey,
    machine: &Chosen,
    options: &Options,
    assumed: &mut Vec<String>,
) -> Plan {
    let (before, evidence) = (options.before.as_ref(), options.evidence);
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
        if let Some(found) = before.and_then(|before| before.slabs_of(entry.names())) {
            let seen = &survey.caches[cache];
            let start = observed(found, seen, entry.objects);
            plan.begin(
                cache,
                start,
                (seen, entry.objects),
                &mut Numbers { of: &mut numbers, planned: &mut planned },
            );
            continue;
        }
        let dump = entry.before.and_then(|row| Some(&before?.caches[row]));
        let (mut slabs, mut gave) = (Vec::new(), Vec::new());
        let mut places = Places::new(dump, machine);
        for (address, seen) in survey.caches[cache].initial() {
            let number = |index: u16| numbers.get(&(cache as u32, address, index)).copied();
            let mut objects = starts(seen, entry.objects, number, &mut planned);
            if evidence == Evidence::Pages && seen.emptied {
                plan.proven += u64::from(free_the_unseen(&mut objects));
            }
            gave.push(!seen.free.is_empty());
            let node = node_of(address, survey, before);
            slabs.push(PlannedSlab { node, address, place: places.of(seen), objects });
        }
        let cpu_has = places.cpu_has;
        fit_to_active(&mut slabs, &survey.caches[cache].initial(), dump, entry, machine);
        if let Some(dump) = dump {
            let known = evidence == Evidence::Pages && survey.has_page_frees;
            let mut quantiles = Quantiles::of(&entry.name, options.seed);
            let drawn = fill(&mut slabs, dump, entry, (&cpu_has, machine), known, &mut quantiles);
            plan.drawn.slabs += drawn.slabs;
            plan.drawn.partial += drawn.partial;
            plan.parked.push(park(&mut slabs, dump, machine, &mut quantiles));
            slabs = in_order(slabs, &gave, &mut quantiles);
        } else {
            plan.parked.push(Parked::default());
            slabs.reverse();
        }
        plan.caches.push(slabs);
    }
    let number = |old: &OldFree| {
        let number = numbers[&(old.cache, old.slab, old.index)];
        if planned[number as usize] { number } else { u32::MAX }
    };
    plan.old = survey.old.iter().map(|old| (old.row, old.cache, number(old))).collect();
    plan.old_objects = planned.len() as u32;
    plan.freed_unseen.sort_unstable();
    plan
}

/// Objects from before by cache, slab and place, and whether they are planned.
struct Numbers<'a> {
    of: &'a mut FxHashMap<(u32, u64, u16), u32>,
    planned: &'a mut Vec<bool>,
}

impl Numbers<'_> {
    /// Of an object that is freed in a row.
    fn freed(&mut self, cache: usize, slab: u64, index: u16) -> Option<u32> {
        let number = *self.of.get(&(cache as u32, slab, index))?;
        self.planned[number as usize] = true;
        Some(number)
    }

    /// Of another one.
    fn another(&mut self) -> u32 {
        self.planned.push(true);
        self.planned.len() as u32 - 1
    }
}

impl Plan {
    /// A cache begins as it was read.
    fn begin(
        &mut self,
        cache: usize,
        start: Observed,
        (seen, objects): (&CacheSurvey, u32),
        numbers: &mut Numbers<'_>,
    ) {
        let Observed { mut slabs, parked, freed_unseen, old, allocated_unseen } = start;
        self.read.caches += 1;
        self.read.slabs += slabs.len() as u64;
        self.read.free += slabs.iter().map(free_objects).sum::<u64>();
        self.read.sheaved += parked.len() as u64;
        self.read.untraced.0 += freed_unseen.len() as u64;
        self.read.untraced.1 += allocated_unseen;
        for (at, index) in old {
            if let Some(number) = numbers.freed(cache, slabs[at].address, index) {
                slabs[at].objects[usize::from(index)] = Start::Old(number);
            }
        }
        for (cpu, at, index) in parked {
            let number = numbers.another();
            slabs[at].objects[usize::from(index)] = Start::Old(number);
            self.sheaved.push((cpu, cache as u32, number));
        }
        for (row, at, index) in freed_unseen {
            let number = numbers.another();
            slabs[at].objects[usize::from(index)] = Start::Old(number);
            self.freed_unseen.push((row, cache as u32, number));
        }
        let read: FxHashSet<u64> = slabs.iter().map(|slab| slab.address).collect();
        for (address, seen) in seen.initial().into_iter().filter(|(address, _)| !read.contains(address)) {
            let number = |index: u16| numbers.of.get(&(cache as u32, address, index)).copied();
            let objects = starts(seen, objects, number, numbers.planned);
            slabs.push(PlannedSlab { node: 0, address, place: Place::Node, objects });
            self.read.unlisted += 1;
        }
        self.parked.push(Parked::default());
        self.caches.push(slabs);
    }
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

/// A slab that is empty when its last seen object is freed has no other object. Answers whether that frees
/// any.
fn free_the_unseen(objects: &mut [Start]) -> bool {
    let known = objects.iter().filter(|start| matches!(start, Start::Free(_))).count() as u16;
    let mut turn = known;
    for start in objects.iter_mut().filter(|start| **start == Start::Kept) {
        *start = Start::Free(turn);
        turn += 1;
    }
    turn > known
}

/// The order in which an engine makes the slabs, the first `gave.len()` of which the recording sees.
/// `gave`: whether it shows an allocation of an object that was free at the start.
fn in_order(slabs: Vec<PlannedSlab>, gave: &[bool], quantiles: &mut Quantiles) -> Vec<PlannedSlab> {
    let (mut held, mut first, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for (at, slab) in slabs.into_iter().enumerate() {
        match slab.place {
            Place::Cpu(_) | Place::CpuPartial(_) => held.push(slab),
            Place::Node if gave.get(at) == Some(&true) => first.push(slab),
            Place::Node => others.push(slab),
        }
    }
    // The newest of a CPU's chain is the one it uses first: it is put there last.
    held.reverse();
    // CPUs take a node's slabs from the head of the list: those that objects came of were ahead of those that
    // gave none. Which of the others were ahead of which nothing says.
    for at in (1..others.len()).rev() {
        others.swap(at, quantiles.below(at as u64 + 1) as usize);
    }
    held.append(&mut first);
    held.append(&mut others);
    held
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A slab on a node's list, known by its number.
    fn slab(place: Place, number: u16) -> PlannedSlab {
        PlannedSlab { node: number, address: 0, place, objects: Vec::new() }
    }

    #[test]
    fn slabs_that_objects_came_of_are_first_on_the_list() {
        let (cpu, chain) = (Place::Cpu(CpuId(0)), Place::CpuPartial(CpuId(0)));
        let seen = [(cpu, true), (chain, true), (Place::Node, false), (chain, true), (Place::Node, true)];
        let gave: Vec<bool> = seen.iter().map(|(_, gave)| *gave).chain([true]).collect();
        let planned = seen.iter().map(|(place, _)| *place).chain([Place::Node; 20]).enumerate();
        let slabs = || planned.clone().map(|(at, place)| slab(place, at as u16)).collect::<Vec<_>>();
        let order = |seed| -> Vec<u16> {
            let ordered = in_order(slabs(), &gave, &mut Quantiles::of("filp", seed));
            ordered.iter().map(|slab| slab.node).collect()
        };
        let first = order(0);
        // The chain's newest is made last; the node's list follows in the order of use.
        assert_eq!(first[..5], [3, 1, 0, 4, 5]);
        let mut all = first.clone();
        all.sort_unstable();
        assert_eq!(all, (0..25).collect::<Vec<_>>(), "each slab is made once");
        assert!(first[5..].contains(&2), "a slab that only frees are seen of gave nothing");
        assert_eq!(order(1)[..5], first[..5]);
        assert_ne!(order(1)[5..], first[5..], "which of the others is ahead is drawn");
    }
}
