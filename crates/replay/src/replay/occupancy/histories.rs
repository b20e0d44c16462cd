//! What steady histories of allocations and frees leave in our own engine, against what [`Pool`] assumes.
//!
//! Objects come in groups that die together, like the buffer heads of a file; a group of one is a random
//! lifetime. The population goes up and down three times, then some more groups die: those are the
//! "recording".

use super::{Pool, Quantiles, geometric};
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

/// A population of groups of at most twice `group` objects, between `least` percent of 20,000 and all; then
/// `percent` of them die.
fn history(bytes: u32, group: u64, least: u64, percent: u64) -> Left {
    const MOST: u64 = 20_000;
    let mut machine = Machine::new(MachineSpec::uniform(1, 1, 256 << 20)).expect("the spec is right");
    machine.enter(|| {
        let Ok(Preset::Slub(policy)) = Preset::parse("slub@6.18") else { panic!("a preset of SLUB") };
        let pages = Pages::<Model>::new(Preset::Slub(policy).pages());
        let (common, cache) = ((), Slub::<Model>::create(CacheId(0), &CacheSpec::of_size(bytes), &policy));
        let backing = Backing::new(&pages, &common);
        let mut random = Quantiles::of("history", 0);
        let slab_of = |object: Addr| Model::locate(object).0.0 >> cache.geometry().order;
        let (mut groups, mut alive, mut in_use) = (Vec::<Vec<Addr>>::new(), 0u64, InUse::new());
        let die = |groups: &mut Vec<Vec<Addr>>, in_use: &mut InUse, random: &mut Quantiles| {
            let group = groups.swap_remove(random.below(groups.len() as u64) as usize);
            for object in &group {
                *in_use.get_mut(&slab_of(*object)).expect("a slab with an object") -= 1;
                cache.free(&backing, *object).expect("an object");
            }
            group
        };
        let turns = 6 * MOST / group;
        for turn in 0..turns {
            // Down and up, three times, and down again.
            let phase = (turn * 700 / turns) % 200;
            let wave = u64::abs_diff(phase, 100);
            let wanted = MOST * (least + (100 - least) * wave / 100) / 100;
            while alive < wanted || groups.is_empty() {
                let count = 1 + random.below(2 * group - 1);
                let objects = (0..count).map(|_| cache.alloc(&backing, Gfp::KERNEL, None).expect("memory"));
                let objects: Vec<Addr> = objects.collect();
                objects.iter().for_each(|object| *in_use.entry(slab_of(*object)).or_default() += 1);
                groups.push(objects);
                alive += count;
            }
            alive -= die(&mut groups, &mut in_use, &mut random).len() as u64;
            while alive > wanted {
                alive -= die(&mut groups, &mut in_use, &mut random).len() as u64;
            }
        }
        in_use.retain(|_, used| *used > 0);
        let objects = cache.geometry().objects as usize;
        let mut slabs = vec![0; objects + 1];
        in_use.values().for_each(|used| slabs[*used as usize] += 1);
        let (mut freed, mut left) = (InUse::new(), alive * percent / 100);
        while left > 0 {
            let group = die(&mut groups, &mut in_use, &mut random);
            left = left.saturating_sub(group.len() as u64);
            group.iter().for_each(|object| *freed.entry(slab_of(*object)).or_default() += 1);
        }
        let emptied = freed.keys().filter(|slab| in_use[slab] == 0).count() as u64;
        Left { objects, slabs, freed: freed.into_values().collect(), emptied }
    })
}

impl Left {
    fn pool(&self, freed: &[u64]) -> Pool {
        let part = &self.slabs[1..self.objects];
        let in_use = part.iter().zip(1..).map(|(slabs, used)| slabs * used).sum();
        Pool::new(self.objects as u32, part.iter().sum(), in_use, self.slabs[self.objects], freed)
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
                let alone = Pool { grouped: vec![0.0; left.objects + 1], ..pool.clone() };
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
