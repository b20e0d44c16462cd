//! What steady histories of allocations and frees leave in our own engine, against what [`Pool`] assumes.
//!
//! Two kinds of history. In [`history`] objects come in groups that die together, like the buffer heads of a
//! file; a group of one is a random lifetime. The population goes up and down three times, then some more
//! groups die: those are the "recording". In [`rounds`] trees of files are made and deleted; the last one's
//! deletion is the "recording".

use super::frees::Shares;
use super::{Pool, Rest, geometric};
use crate::quantiles::Quantiles;
use slablab_model::{Addr, Machine, MachineSpec, Model};
use slablab_pages::Pages;
use slablab_platform::{Frames, Gfp};
use slablab_slabs::engines::slub::Slub;
use slablab_slabs::{Backing, CacheId, CacheSpec, Engine, Preset};
use std::collections::BTreeMap;

/// What a history left, and what its last frees did.
struct Left {
    /// Objects of a slab.
    objects: usize,
    /// Slabs by objects in use.
    slabs: Vec<u64>,
    /// How many objects of each slab were freed at the end.
    freed: Vec<u64>,
    /// Slabs that this emptied.
    emptied: u64,
}

/// Objects in use of each slab.
type InUse = BTreeMap<u32, u64>;

/// A cache of an engine, and how many objects of each of its slabs are in use.
struct Heap<'a> {
    cache: &'a Slub<Model>,
    backing: Backing<'a, Model>,
    in_use: InUse,
    random: Quantiles,
}

impl Heap<'_> {
    /// The slabs of new objects of `bytes`, after `run` made a history and answered which objects die at the
    /// end.
    fn left(bytes: u32, run: impl FnOnce(&mut Heap) -> Vec<Addr>) -> Left {
        let mut machine = Machine::new(MachineSpec::uniform(1, 1, 256 << 20)).expect("the spec is right");
        machine.enter(|| {
            let Ok(Preset::Slub(policy)) = Preset::parse("slub@6.18") else { panic!("a preset of SLUB") };
            let pages = Pages::<Model>::new(Preset::Slub(policy).pages());
            let (common, cache) =
                ((), Slub::<Model>::create(CacheId(0), &CacheSpec::of_size(bytes), &policy));
            let random = Quantiles::of("history", 0);
            let backing = Backing::new(&pages, &common);
            let mut heap = Heap { cache: &cache, backing, in_use: InUse::new(), random };
            let last = run(&mut heap);
            heap.in_use.retain(|_, used| *used > 0);
            let objects = cache.geometry().objects as usize;
            let mut slabs = vec![0; objects + 1];
            heap.in_use.values().for_each(|used| slabs[*used as usize] += 1);
            let mut freed = InUse::new();
            last.iter().for_each(|object| *freed.entry(heap.slab_of(*object)).or_default() += 1);
            heap.free(&last);
            let emptied = freed.keys().filter(|slab| heap.in_use[slab] == 0).count() as u64;
            Left { objects, slabs, freed: freed.into_values().collect(), emptied }
        })
    }

    fn slab_of(&self, object: Addr) -> u32 {
        Model::locate(object).0.0 >> self.cache.geometry().order
    }

    fn alloc(&mut self) -> Addr {
        let object = self.cache.alloc(&self.backing, Gfp::KERNEL, None).expect("memory");
        *self.in_use.entry(self.slab_of(object)).or_default() += 1;
        object
    }

    fn free(&mut self, objects: &[Addr]) {
        for object in objects {
            *self.in_use.get_mut(&self.slab_of(*object)).expect("a slab with an object") -= 1;
            self.cache.free(&self.backing, *object).expect("an object");
        }
    }
}

/// Takes one of `groups`, at random.
fn one_of(groups: &mut Vec<Vec<Addr>>, random: &mut Quantiles) -> Vec<Addr> {
    groups.swap_remove(random.below(groups.len() as u64) as usize)
}

/// A population of groups of at most twice `group` objects, between `least` percent of 20,000 and all; then
/// `percent` of them die.
fn history(bytes: u32, group: u64, least: u64, percent: u64) -> Left {
    const MOST: u64 = 20_000;
    Heap::left(bytes, |heap| {
        let (mut groups, mut alive) = (Vec::<Vec<Addr>>::new(), 0u64);
        let turns = 6 * MOST / group;
        for turn in 0..turns {
            // Down and up, three times, and down again.
            let phase = (turn * 700 / turns) % 200;
            let wave = u64::abs_diff(phase, 100);
            let wanted = MOST * (least + (100 - least) * wave / 100) / 100;
            while alive < wanted || groups.is_empty() {
                let count = 1 + heap.random.below(2 * group - 1);
                groups.push((0..count).map(|_| heap.alloc()).collect());
                alive += count;
            }
            let mut once = true;
            while std::mem::take(&mut once) || alive > wanted {
                let group = one_of(&mut groups, &mut heap.random);
                heap.free(&group);
                alive -= group.len() as u64;
            }
        }
        let (mut last, least) = (Vec::new(), alive * percent / 100);
        while (last.len() as u64) < least {
            last.extend(one_of(&mut groups, &mut heap.random));
        }
        last
    })
}

/// Rounds in which two trees of 6,000 objects are made, and deleted one after the other; one of `every`
/// objects stays for some rounds. The trees fill the holes that earlier ones left beside such objects. Of the
/// last round the first tree is deleted, which leaves partial slabs, and the second dies.
fn rounds(bytes: u32, every: u64) -> Left {
    Heap::left(bytes, |heap| {
        let mut stay = Vec::<Addr>::new();
        for round in 0.. {
            let mut trees = [Vec::new(), Vec::new()];
            for tree in &mut trees {
                for _ in 0..6_000 {
                    let object = heap.alloc();
                    if heap.random.below(every) == 0 { stay.push(object) } else { tree.push(object) }
                }
            }
            let [first, second] = trees;
            heap.free(&first);
            if round == 8 {
                return second;
            }
            heap.free(&second);
            for _ in 0..stay.len() / 4 {
                let at = heap.random.below(stay.len() as u64) as usize;
                let object = stay.swap_remove(at);
                heap.free(&[object]);
            }
        }
        unreachable!("the last round returns")
    })
}

impl Left {
    fn pool(&self, freed: &[u64]) -> Pool {
        let part = &self.slabs[1..self.objects];
        let in_use = part.iter().zip(1..).map(|(slabs, used)| slabs * used).sum();
        let (objects, full) = (self.objects as u64, self.slabs[self.objects]);
        Pool::new(&Rest { objects, partial: part.iter().sum(), in_use, full }, freed, 0)
    }

    /// Each object is freed on its own.
    fn independent(&self) -> Shares {
        let live: u64 = self.slabs.iter().zip(0..).map(|(slabs, used)| slabs * used).sum();
        let single = self.freed.iter().sum::<u64>() as f64 / live as f64;
        Shares { single, full: 0.0, partial: 0.0, holes: 0.0, grouped: 0.0, chain: 0.0 }
    }

    /// By how many objects the occupancies of partial slabs are off, on average: those of the prior, and all
    /// equal.
    fn off(&self) -> (f64, f64) {
        let part: Vec<f64> = self.slabs[1..self.objects].iter().map(|slabs| *slabs as f64).collect();
        let sum: f64 = part.iter().sum();
        let mean = part.iter().zip(1..).map(|(slabs, used)| slabs * f64::from(used)).sum::<f64>() / sum;
        let distance = |model: &dyn Fn(usize) -> f64| {
            let (mut real, mut other, mut off) = (0.0, 0.0, 0.0);
            for (at, slabs) in part.iter().enumerate() {
                real += slabs / sum;
                other += model(at);
                off += f64::abs(real - other);
            }
            off
        };
        let prior = geometric(self.objects, mean);
        (distance(&|at| prior[at]), distance(&|at| f64::from(u8::from(at + 1 == mean as usize))))
    }

    /// Slabs that the last frees empty by `pool`.
    fn predicted(&self, pool: &Pool) -> f64 {
        let empties = |freed: u64| {
            let likely = pool.likely(freed, freed, true);
            let at = |part: u32| likely.at((f64::from(part) + 0.5) / 200.0);
            (0..200).filter(|part| at(*part) == freed).count() as f64 / 200.0
        };
        self.freed.iter().map(|freed| empties(*freed)).sum()
    }
}

/// Of groups the prior is nearer than equal occupancies; and neighbours that die together predict how many
/// slabs are emptied, where independent deaths and full slabs do not.
#[test]
fn groups_leave_what_the_pool_assumes() {
    let (mut real, mut together, mut independent) = (0.0, 0.0, 0.0);
    for bytes in [104, 256] {
        for group in [1, 4, 16, 60] {
            for (least, percent) in [(60, 2), (60, 20), (15, 2), (15, 20)] {
                let left = history(bytes, group, least, percent);
                let (prior, equal) = left.off();
                let pool = left.pool(&left.freed);
                let alone = Pool { draws: vec![left.independent()], ..pool.clone() };
                let (with, without) = (left.predicted(&pool), left.predicted(&alone));
                println!(
                    "{bytes} B, groups of {group}, down to {least} %, then {percent} %: {:?} slabs, off by \
                     {prior:.1} objects, {equal:.1} if equal; {} emptied, {with:.1} predicted, {without:.1} if \
                     independent",
                    left.slabs[1..left.objects].iter().sum::<u64>(),
                    left.emptied
                );
                if group >= 16 {
                    assert!(prior < equal, "{prior} objects off, {equal} if all are equal");
                    real += left.emptied as f64;
                    together += (with - left.emptied as f64).abs();
                    independent += (without - left.emptied as f64).abs();
                }
            }
        }
    }
    assert!(together < 0.25 * real, "{together} slabs wrong of {real}");
    assert!(independent > 1.5 * together, "{independent} slabs wrong if independent, {together} with groups");
}

/// A round of create and delete that fills holes beside objects which stay returns few slabs. Its slabs were
/// full, so the histogram says which go whole, and the partial ones that lose nothing are another tree's.
#[test]
fn rounds_of_create_and_delete_return_few_slabs() {
    for (bytes, every) in [(104, 20), (256, 12), (1024, 8)] {
        let left = rounds(bytes, every);
        let (real, touched) = (left.emptied as f64, left.freed.len() as f64);
        let predicted = left.predicted(&left.pool(&left.freed));
        assert!(
            (predicted - real).abs() < 0.05 * touched && real < 0.1 * touched,
            "{bytes} B, one of {every} stays: {real} of {touched} slabs emptied, {predicted} predicted"
        );
    }
}
