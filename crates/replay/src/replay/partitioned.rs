//! Copies of the normal kmalloc caches, one of which each call site has (docs/theory/slub.md 8.1).
//!
//! The table of caches has the copies behind its own entries; they begin empty. What was allocated before
//! the recording stays in the cache without a number, since nothing tells its call site.

use super::caches::{CacheTable, Home};
use super::parked::Parked;
use super::plan::Plan;
use slablab_slabs::partition::{Partition, normal_size, word};
use slablab_slabs::preset::Preset;
use slablab_trace::{NONE, Table};

/// A table with copies, and a plan that has their (empty) starts.
pub(super) struct Partitioned {
    pub(super) table: CacheTable,
    pub(super) plan: Plan,
    pub(super) copies: Copies,
}

/// Which caches have copies.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    /// By cache of the table: its first copy, [`NONE`] for a cache without copies.
    first: Vec<u32>,
    partition: Partition,
    seed: u64,
}

impl Partitioned {
    /// `preset` says how copies are called, `seed` which call sites share one.
    pub(super) fn new(
        (table, plan): (&CacheTable, &Plan),
        preset: &Preset,
        partition: Partition,
        seed: u64,
    ) -> Partitioned {
        let (mut table, mut plan) = (table.clone(), plan.clone());
        let mut first = vec![NONE; table.entries.len()];
        for (cache, first) in first.iter_mut().enumerate() {
            let Some(size) = normal_size(&table.entries[cache].name).map(String::from) else { continue };
            *first = table.entries.len() as u32;
            for copy in 1..partition.count() {
                let mut entry = table.entries[cache].clone();
                entry.name = format!("kmalloc-{}-{copy:02}-{size}", word(preset.release()));
                (entry.aliases, entry.before) = (Vec::new(), None);
                table.entries.push(entry);
                plan.caches.push(Vec::new());
                plan.parked.push(Parked::default());
                plan.windows.push(plan.windows[cache]);
            }
        }
        Partitioned { table, plan, copies: Copies { first, partition, seed } }
    }
}

impl Copies {
    /// Which copy each call site of a recording has, as far as `known` lacks them; by the site's number.
    pub(super) fn learn(&self, known: &mut Vec<u8>, sites: &Table) {
        let new = sites.iter().skip(known.len());
        known.extend(new.map(|site| self.partition.of_site(site, self.seed)));
    }

    /// The cache of a row whose class has its home at `home`, and whose call site has this copy.
    pub(super) fn home(&self, home: Home, copy: u8) -> Home {
        match home {
            Home::Cache(cache) if copy > 0 => match self.first.get(cache as usize) {
                Some(first) if *first != NONE => Home::Cache(first + u32::from(copy) - 1),
                _ => home,
            },
            _ => home,
        }
    }
}

/// What a run with copies assumes.
pub(super) fn sentence(partition: Partition) -> Option<String> {
    (partition.count() > 1).then(|| {
        format!(
            "objects from before the recording stay in the first of {} kmalloc caches of a class: their call \
             sites are not known; memory for sheaves comes from the first, too",
            partition.count()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use slablab_slabs::partition::PartitionBy;

    #[test]
    fn call_sites_are_spread_over_the_copies() {
        let partition = Partition { by: PartitionBy::Random, caches: 16 };
        let mut sites = Table::default();
        (0..4096).for_each(|site| {
            sites.id(&format!("0xffffffff81{site:06x}"));
        });
        let of_boot = |seed| {
            let copies = Copies { partition, seed, ..Copies::default() };
            let mut known = Vec::new();
            copies.learn(&mut known, &sites);
            known
        };
        let counts = |known: &[u8]| {
            let mut counts = [0; 16];
            known.iter().for_each(|copy| counts[*copy as usize] += 1);
            counts
        };
        let (one, other) = (of_boot(1), of_boot(2));
        // 256 of 4,096 each: a binomial's deviation is 15.5.
        for of_copy in counts(&one).into_iter().chain(counts(&other)) {
            assert!((190..=322).contains(&of_copy), "{of_copy} sites have one of 16 copies");
        }
        let same = one.iter().zip(&other).filter(|(one, other)| one == other).count();
        assert!((190..=322).contains(&same), "{same} sites have the same copy in two boots");
    }

    #[test]
    fn only_normal_kmallocs_have_copies() {
        let copies = Copies { first: vec![NONE, 2], ..Copies::default() };
        let check = |home, copy, expected| assert_eq!(copies.home(home, copy), expected, "{home:?} {copy}");
        check(Home::Cache(1), 0, Home::Cache(1));
        check(Home::Cache(1), 1, Home::Cache(2));
        check(Home::Cache(1), 15, Home::Cache(16));
        check(Home::Cache(0), 15, Home::Cache(0));
        check(Home::Large(2), 15, Home::Large(2));
        check(Home::Unknown, 15, Home::Unknown);
    }
}
