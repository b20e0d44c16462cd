//! What the dump counts beyond the objects that the recording sees.
//!
//! ```text
//! fill        the slabs of a cache, node by node
//!   Rest      what the dump has beyond what is known: partial slabs, their objects, full slabs
//!   draw      objects in use of slabs of which only frees are seen, and of partial slabs unseen
//!   settle    the dump's totals, exactly
//! ```

use super::before::CacheBefore;
use super::caches::CacheEntry;
use super::occupancy::{Likely, Pool, Rest};
use super::planned::{PlannedSlab, Start, free_objects};
use crate::machine::Chosen;
use crate::quantiles::Quantiles;
use slablab_platform::CpuId;
use slablab_readers::text::Breakdown;
use slablab_slabs::Place;

/// Of how many slabs only frees are seen, and how many of those begin partial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// Slabs of which the recording sees frees of older objects and nothing else.
    pub slabs: u64,
    /// Of these, slabs that begin with free objects.
    pub partial: u64,
}

/// Fills the slabs of one cache up to what the dump counts. `cpu_has`: the CPUs whose slab is known.
/// `returned_known`: no slab is empty when its last seen object is freed, unless it is known already.
pub(super) fn fill(
    slabs: &mut Vec<PlannedSlab>,
    dump: &CacheBefore,
    entry: &CacheEntry,
    (cpu_has, machine): (&[bool], &Chosen),
    returned_known: bool,
    quantiles: &mut Quantiles,
) -> Drawn {
    let Some(total) = dump.slabs.as_ref() else { return Drawn::default() };
    let mut drawn = Drawn::default();
    let nodes = machine.spec.nodes.len() as u16;
    let missing = missing(total, slabs, nodes);
    let listed = listed_free(slabs, dump, entry.objects, &missing);
    for node in 0..nodes {
        let (missing, listed) =
            (missing[usize::from(node)], listed.as_ref().map(|free| free[usize::from(node)]));
        let candidates = (0..slabs.len()).filter(|at| slabs[*at].node == node && is_undecided(&slabs[*at]));
        let mut freed: Vec<(u64, usize)> = candidates.map(|at| (old_objects(&slabs[at]), at)).collect();
        freed.sort_unstable();
        let rest = Rest::of(slabs, dump, (node, listed), entry.objects, freed.len() as u64 + missing);
        let fills = draw(&rest, &freed, missing, returned_known, quantiles);
        for (fill, (_, at)) in fills.seen.iter().zip(&freed) {
            take_objects(&mut slabs[*at], fill.used, quantiles);
        }
        drawn.slabs += freed.len() as u64;
        drawn.partial += fills.seen.iter().filter(|fill| fill.used < rest.objects).count() as u64;
        let mut unseen = Unseen { slabs, node, objects: entry.objects };
        for fill in &fills.unseen {
            unseen.push(1, Place::Node, rest.objects - fill.used);
        }
        let full = missing - fills.unseen.len() as u64;
        let full = unseen.add_frozen(dump, (cpu_has, machine), full, quantiles);
        unseen.push(full, Place::Node, 0);
    }
    drawn
}

/// A node's part of a count; a count without parts is the first node's.
fn whole(part: &Breakdown, node: u16) -> u64 {
    match part.nodes.is_empty() {
        true if node == 0 => part.total.value,
        true => 0,
        false => part.node(u32::from(node)),
    }
}

/// The slabs of each node that the recording does not see. Where the dump does not say which node a slab is
/// on, they are spread as those that the recording sees.
fn missing(total: &Breakdown, slabs: &[PlannedSlab], nodes: u16) -> Vec<u64> {
    let seen: Vec<u64> = (0..nodes).map(|node| on(slabs, node).count() as u64).collect();
    if !total.nodes.is_empty() {
        let of_node = |(node, seen): (usize, &u64)| total.node(node as u32).saturating_sub(*seen);
        return seen.iter().enumerate().map(of_node).collect();
    }
    spread(total.total.value.saturating_sub(slabs.len() as u64), &seen)
}

/// Free objects on the list of each node that the recording does not see, if /proc/slabinfo alone says how
/// many there are: they are those that are not active.
fn listed_free(slabs: &[PlannedSlab], dump: &CacheBefore, objects: u32, missing: &[u64]) -> Option<Vec<u64>> {
    let total = dump.slabs.as_ref().filter(|_| dump.partial.is_none())?;
    let free = (total.total.value * u64::from(objects)).saturating_sub(dump.active);
    let known: u64 = slabs.iter().filter(|slab| slab.place == Place::Node).map(free_objects).sum();
    let room = |(node, missing): (usize, &u64)| {
        missing + on(slabs, node as u16).filter(|slab| is_undecided(slab)).count() as u64
    };
    let room: Vec<u64> = missing.iter().enumerate().map(room).collect();
    Some(spread(free.saturating_sub(known), &room))
}

/// Divides a number in proportion to weights; all of it is the first one's without weights.
pub(super) fn spread(number: u64, weights: &[u64]) -> Vec<u64> {
    let sum: u64 = weights.iter().sum();
    let mut before = 0;
    let shares = weights.iter().enumerate().map(|(at, weight)| {
        if sum == 0 {
            return if at == 0 { number } else { 0 };
        }
        let from = number * before / sum;
        before += weight;
        number * before / sum - from
    });
    shares.collect()
}

fn on(slabs: &[PlannedSlab], node: u16) -> impl Iterator<Item = &PlannedSlab> {
    slabs.iter().filter(move |slab| slab.node == node)
}

/// Whether only frees are seen of it.
fn is_undecided(slab: &PlannedSlab) -> bool {
    slab.place == Place::Node && free_objects(slab) == 0
}

fn old_objects(slab: &PlannedSlab) -> u64 {
    slab.objects.iter().filter(|start| matches!(start, Start::Old(_))).count() as u64
}

/// Frees objects that the recording does not see, until `used` are left.
fn take_objects(slab: &mut PlannedSlab, used: u64, quantiles: &mut Quantiles) {
    let is_kept = |start: &Start| *start == Start::Kept;
    let mut kept: Vec<usize> =
        slab.objects.iter().enumerate().filter(|(_, start)| is_kept(start)).map(|(at, _)| at).collect();
    for turn in 0..(slab.objects.len() as u64).saturating_sub(used) {
        if kept.is_empty() {
            return;
        }
        let at = kept.swap_remove(quantiles.below(kept.len() as u64) as usize);
        slab.objects[at] = Start::Free(turn as u16);
    }
}

/// Slabs on a node that the recording does not see.
struct Unseen<'a> {
    slabs: &'a mut Vec<PlannedSlab>,
    node: u16,
    objects: u32,
}

impl Unseen<'_> {
    /// Adds slabs of CPUs out of `full` unseen slabs that are not on the node's list; answers how many of
    /// those are left. First one for each CPU that never allocates: it looks full, and frees to it must find
    /// it frozen. Then those of CPUs' partial lists, with one free object at least. They look as full as the
    /// slabs of which only frees are seen, so each of these is as likely to be one of them.
    fn add_frozen(
        &mut self,
        dump: &CacheBefore,
        (cpu_has, machine): (&[bool], &Chosen),
        mut full: u64,
        quantiles: &mut Quantiles,
    ) -> u64 {
        let frozen = dump.cpu_slabs.as_ref().map_or(0, |part| whole(part, self.node));
        let known = on(self.slabs, self.node).filter(|slab| slab.place != Place::Node).count() as u64;
        let mut left = frozen.saturating_sub(known);
        let node_of = |cpu: &u16| machine.spec.cpu_node[*cpu as usize];
        let (mut here, elsewhere): (Vec<u16>, Vec<u16>) =
            (0..cpu_has.len() as u16).partition(|cpu| node_of(cpu) == self.node);
        for cpu in here.iter().filter(|cpu| !cpu_has[**cpu as usize]) {
            let one = left.min(full).min(1);
            self.push(one, Place::Cpu(CpuId(*cpu)), 0);
            (left, full) = (left - one, full - one);
        }
        let lists = dump.cpu_partial.as_ref();
        let listed = |cpu: u16| {
            let list = lists.and_then(|lists| lists.cpus.iter().find(|(id, _)| *id == u32::from(cpu)));
            list.map_or(0, |(_, count)| count.slabs.unwrap_or(0))
        };
        let mut seen: Vec<usize> = (0..self.slabs.len())
            .filter(|at| self.slabs[*at].node == self.node && is_undecided(&self.slabs[*at]))
            .collect();
        // A free of any node's object puts its slab on the CPU's list.
        here.extend(elsewhere);
        for cpu in here {
            let place = Place::CpuPartial(CpuId(cpu));
            let known = self.slabs.iter().filter(|slab| slab.place == place).count() as u64;
            for _ in 0..listed(cpu).saturating_sub(known).min(left) {
                let at = (quantiles.next() * (full + seen.len() as u64) as f64) as usize;
                if at < seen.len() {
                    let slab = &mut self.slabs[seen.swap_remove(at)];
                    slab.place = place;
                    let used = slab.objects.len() as u64 - 1;
                    take_objects(slab, used, quantiles);
                } else if full > 0 {
                    self.push(1, place, 1);
                    full -= 1;
                }
                left -= 1;
            }
        }
        full
    }

    /// Adds `count` slabs with `free` objects each.
    fn push(&mut self, count: u64, place: Place, free: u64) {
        let start = |at: u16| if u64::from(at) < free { Start::Free(at) } else { Start::Kept };
        for _ in 0..count {
            let objects = (0..self.objects as u16).map(start).collect();
            self.slabs.push(PlannedSlab { node: self.node, address: 0, place, objects });
        }
    }
}

impl Rest {
    /// `unseen`: free objects on the node's list that the recording does not see, if slabinfo alone says it.
    fn of(
        slabs: &[PlannedSlab],
        dump: &CacheBefore,
        (node, unseen): (u16, Option<u64>),
        objects: u32,
        room: u64,
    ) -> Rest {
        let objects = u64::from(objects);
        let known = on(slabs, node).filter(|slab| slab.place == Place::Node && free_objects(slab) > 0);
        let (listed, known_free) = known.fold((0, 0), |sum, slab| (sum.0 + 1, sum.1 + free_objects(slab)));
        let (partial, free) = match (&dump.partial, &dump.objects_partial, unseen) {
            (Some(partial), in_use, _) => {
                let (partial, in_use) =
                    (whole(partial, node), in_use.as_ref().map_or(0, |part| whole(part, node)));
                let free = (partial * objects).saturating_sub(in_use);
                (partial.saturating_sub(listed), free.saturating_sub(known_free))
            }
            // How many slabs hold the free objects is not said. Half of a slab, then.
            (None, _, Some(unseen)) => (unseen.div_ceil(objects / 2 + 1), unseen),
            (None, ..) => (0, 0),
        };
        let partial = partial.min(room).min(free);
        let in_use = (partial * objects).saturating_sub(free);
        Rest { objects, partial, in_use, full: room - partial }
    }
}

/// Objects in use of a slab, and the fewest that it can have.
#[derive(Clone, Copy, Debug)]
struct Fill {
    used: u64,
    least: u64,
}

/// A node's slabs whose objects in use are drawn.
struct Fills {
    /// Of slabs of which frees are seen, in their order.
    seen: Vec<Fill>,
    /// Of partial slabs that the recording does not see.
    unseen: Vec<Fill>,
}

/// Draws occupancies for slabs of which frees are seen (`freed`: how many, fewest first) and for the partial
/// ones among `missing` slabs unseen, so that the totals are those of `rest`.
fn draw(
    rest: &Rest,
    freed: &[(u64, usize)],
    missing: u64,
    returned_known: bool,
    quantiles: &mut Quantiles,
) -> Fills {
    let counts: Vec<u64> = freed.iter().map(|(freed, _)| *freed).collect();
    let pool = Pool::new(rest, &counts, quantiles.seed());
    let (mut last, mut likely) = (u64::MAX, Likely::default());
    let seen = counts.iter().map(|freed| {
        let least = (freed + u64::from(returned_known)).min(rest.objects);
        // Fewest frees first, so equal numbers are next to each other.
        if last != *freed {
            (last, likely) = (*freed, pool.likely(*freed, least, true));
        }
        Fill { used: likely.at(quantiles.next()), least }
    });
    let mut seen: Vec<Fill> = seen.collect();
    bound_partial(&mut seen, rest, missing);
    let listed = seen.iter().filter(|fill| fill.used < rest.objects).count() as u64;
    let untouched = pool.likely(0, 1, false);
    let unseen = (0..rest.partial.saturating_sub(listed).min(missing))
        .map(|_| Fill { used: untouched.at(quantiles.next()).min(rest.objects - 1), least: 0 });
    let mut fills = Fills { unseen: unseen.collect(), seen };
    settle(&mut fills, rest);
    fills
}

/// As many of the slabs partial as the dump has, and as few as the slabs unseen leave.
fn bound_partial(seen: &mut [Fill], rest: &Rest, missing: u64) {
    let listed = seen.iter().filter(|fill| fill.used < rest.objects).count() as u64;
    let mut order: Vec<usize> = (0..seen.len()).collect();
    // The fullest first: those differ least from full ones.
    order.sort_by_key(|at| (std::cmp::Reverse(seen[*at].used), *at));
    let too_many = listed.saturating_sub(rest.partial) as usize;
    let partial = order.iter().filter(|at| seen[**at].used < rest.objects).copied();
    for at in partial.take(too_many).collect::<Vec<_>>() {
        seen[at].used = rest.objects;
    }
    let too_few = rest.partial.saturating_sub(missing).saturating_sub(listed) as usize;
    let full = order.iter().filter(|at| seen[**at].used == rest.objects && seen[**at].least < rest.objects);
    for at in full.copied().take(too_few).collect::<Vec<_>>() {
        seen[at].used = rest.objects - 1;
    }
}

/// Moves occupancies by one object at a time, those of slabs unseen first, until the sum is the dump's.
fn settle(fills: &mut Fills, rest: &Rest) {
    let Fills { seen, unseen } = fills;
    let seen: Vec<&mut Fill> = seen.iter_mut().filter(|fill| fill.used < rest.objects).collect();
    let mut sum: u64 = seen.iter().map(|fill| fill.used).chain(unseen.iter().map(|fill| fill.used)).sum();
    for mut part in [unseen.iter_mut().collect::<Vec<_>>(), seen] {
        let mut moved = true;
        while sum != rest.in_use && moved {
            moved = false;
            for fill in &mut part {
                if sum < rest.in_use && fill.used + 1 < rest.objects {
                    (fill.used, sum, moved) = (fill.used + 1, sum + 1, true);
                } else if sum > rest.in_use && fill.used > fill.least {
                    (fill.used, sum, moved) = (fill.used - 1, sum - 1, true);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums of a draw: partial slabs, objects in use in them; all slabs keep their freed objects.
    #[track_caller]
    fn check(rest: Rest, freed: &[u64], missing: u64) {
        let mut freed: Vec<(u64, usize)> = freed.iter().map(|freed| (*freed, 0)).collect();
        freed.sort_unstable();
        for known in [false, true] {
            let fills = draw(&rest, &freed, missing, known, &mut Quantiles::of("filp", 0));
            let partial = fills.seen.iter().chain(&fills.unseen).filter(|fill| fill.used < rest.objects);
            let found = partial.fold((0, 0), |sum, fill| (sum.0 + 1, sum.1 + fill.used));
            assert_eq!(found, (rest.partial, rest.in_use), "{rest:?} {freed:?}");
            for (fill, (freed, _)) in fills.seen.iter().zip(&freed) {
                assert!(fill.used >= (freed + u64::from(known)).min(rest.objects), "{fill:?} of {freed}");
            }
        }
    }

    #[test]
    fn totals_are_those_of_the_dump() {
        let rest = |objects, partial, in_use, full| Rest { objects, partial, in_use, full };
        check(rest(39, 6124, 57676, 2162), &[1; 414], 7872);
        check(rest(39, 20, 300, 10), &[4, 4, 8, 1, 30], 25);
        // Nearly all partial slabs are seen, and nearly none.
        check(rest(16, 6, 40, 2), &[1, 2, 3, 4, 1, 2], 2);
        check(rest(16, 1, 9, 7), &[1, 2, 3, 4, 1, 2], 2);
        // Each slab is partial; one object more in use than are freed.
        check(rest(16, 3, 8, 0), &[1, 1, 1], 0);
        check(rest(1, 0, 0, 3), &[1, 1], 1);
    }

    #[test]
    fn a_recording_without_old_frees_draws_only_unseen_slabs() {
        check(Rest { objects: 32, partial: 9, in_use: 100, full: 4 }, &[], 13);
    }
}
