//! Boot: what a kernel's slab caches hold before a program starts.
//!
//! ```text
//! table       data/boots.csv: the caches of kernels that only booted, by release, page size and CPUs
//! caches      those of one kernel on a machine with so many CPUs, between two boots or beyond them
//! fill        one cache's slabs: those of CPUs, partial ones of the list, full ones
//! boot        makes them in the machine that is entered, on drawn CPUs, with drawn free objects
//! ```
//!
//! The guests of the table ran an init and a shell: no services, no modules. What a distribution holds beyond
//! that is not here. A number of CPUs between two boots is interpolated, one beyond them extrapolated, each
//! count on its own; where one boot is known, its counts are taken. The table counts half of the objects of a
//! CPU's slab as free (assumed: no dump tells). Caches have the sizes of the boot's architecture, which is
//! x86_64 with pages of 4 KiB and ppc64le with pages of 64 KiB.
//!
//! A boot is of the release that is asked for or the newest before it; before the oldest nothing is known.

use crate::heap::{CacheNumber, Heap, Named};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use slablab_model::{MachineSpec, Timed};
use slablab_platform::{CpuId, NodeId, Topology};
use slablab_slabs::{CacheFlags, CacheSpec, Place, Preset, Release};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What the slab caches hold before a program starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Boot {
    /// Nothing: what a run takes is the program's, and a rule can be seen in it.
    #[default]
    Empty,
    /// What a kernel of the engine's release holds after boot on a machine of that size.
    Kernel,
}

impl Boot {
    /// The words of experiment files.
    pub const NAMES: [(&'static str, Boot); 2] = [("empty", Boot::Empty), ("kernel", Boot::Kernel)];

    /// The word of experiment files.
    pub fn name(self) -> &'static str {
        Boot::NAMES[self as usize].0
    }

    /// Whether it is known what a preset's kernel holds on this machine.
    ///
    /// # Errors
    /// Which boots are known instead.
    pub fn check(self, preset: &Preset, machine: &MachineSpec) -> Result<(), String> {
        match self {
            Boot::Empty => Ok(()),
            Boot::Kernel => boots_of(preset.release(), machine.page_shift).map(|_| ()),
        }
    }

    /// The caches of a preset's kernel on this machine; none if nothing is known of it.
    pub(crate) fn caches(self, preset: &Preset, machine: &MachineSpec) -> Vec<Booted> {
        match self {
            Boot::Empty => Vec::new(),
            Boot::Kernel => boots_of(preset.release(), machine.page_shift)
                .map_or(Vec::new(), |boots| between(&boots, machine.cpu_node.len() as u32)),
        }
    }
}

/// A cache after boot.
#[derive(Clone, Debug)]
pub(crate) struct Booted {
    /// Its name, and those of the caches that are merged with it.
    names: Vec<&'static str>,
    /// What its objects are.
    pub(crate) spec: CacheSpec,
    counts: Counts,
}

impl Booted {
    /// Allocated objects.
    #[cfg(test)]
    pub(super) fn objects(&self) -> f64 {
        self.counts.objects
    }

    /// The place of the cache among these that holds its objects: of its own name, else of another one.
    pub(crate) fn find(&self, named: &[Named]) -> Option<usize> {
        self.names.iter().find_map(|name| named.iter().position(|cache| cache.name == *name))
    }

    /// The cache under its own name.
    pub(crate) fn named(&self) -> Named {
        Named { name: self.names[0].into(), spec: self.spec }
    }
}

/// What a cache holds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    /// Allocated objects.
    objects: f64,
    /// Slabs that CPUs hold.
    cpu_slabs: f64,
    /// Slabs of the nodes' lists, and the part of their objects that is allocated.
    partial_slabs: f64,
    partial_used: f64,
}

impl Counts {
    /// The counts at `at`, on the line through those at 0 and at 1.
    fn at(at: f64, from: &Counts, to: &Counts) -> Counts {
        let line = |of: fn(&Counts) -> f64| (of(from) + (of(to) - of(from)) * at).max(0.0);
        Counts {
            objects: line(|counts| counts.objects),
            cpu_slabs: line(|counts| counts.cpu_slabs),
            partial_slabs: line(|counts| counts.partial_slabs),
            partial_used: if to.partial_slabs > 0.0 { to.partial_used } else { from.partial_used },
        }
    }
}

/// A row of the table.
pub(super) struct Row {
    release: Release,
    page_shift: u32,
    cpus: u32,
    /// Slabs, all of them: what the model makes of the counts is compared with.
    #[cfg_attr(not(test), expect(dead_code, reason = "only a test compares"))]
    pub(super) slabs: u64,
    pub(super) booted: Booted,
}

static TABLE: LazyLock<Vec<Row>> =
    LazyLock::new(|| include_str!("../../data/boots.csv").lines().skip(1).map(row).collect());

/// # Panics
/// If the table is broken, which a test would see.
fn row(line: &'static str) -> Row {
    let fields: Vec<&'static str> = line.split(',').collect();
    let number = |at: usize| -> u64 { fields[at].parse().unwrap_or_else(|_| panic!("{line}: field {at}")) };
    let (major, minor) = fields[0].split_once('.').unwrap_or_else(|| panic!("{line}: a release"));
    let part = |text: &str| text.parse().unwrap_or_else(|_| panic!("{line}: a release"));
    let flags = CacheFlags::NONE
        .with(CacheFlags::HWCACHE_ALIGN, number(7) > 0)
        .with(CacheFlags::RECLAIM_ACCOUNT, number(8) > 0)
        .with(CacheFlags::TYPESAFE_BY_RCU, number(9) > 0)
        .with(CacheFlags::CONSTRUCTOR, number(10) > 0);
    let spec = CacheSpec { align: number(6) as u32, flags, ..CacheSpec::of_size(number(5) as u32) };
    let partial = number(13) * number(16);
    Row {
        release: Release::new(part(major), part(minor), 0),
        page_shift: number(1).ilog2(),
        cpus: number(2) as u32,
        slabs: number(15),
        booted: Booted {
            names: std::iter::once(fields[3]).chain(fields[4].split_whitespace()).collect(),
            spec,
            counts: Counts {
                objects: number(11) as f64,
                cpu_slabs: number(12) as f64,
                partial_slabs: number(13) as f64,
                partial_used: if partial > 0 { number(14) as f64 / partial as f64 } else { 0.5 },
            },
        },
    }
}

/// The rows of each boot of one release, by the number of CPUs.
pub(super) type Boots = BTreeMap<u32, Vec<&'static Row>>;

pub(super) fn boots_of(release: Release, page_shift: u32) -> Result<Boots, String> {
    let of_page = || TABLE.iter().filter(|row| row.page_shift == page_shift);
    let Some(oldest) = of_page().map(|row| row.release).min() else {
        let kib = 1u32 << (page_shift - 10);
        return Err(format!("boot = kernel: no boot with pages of {kib} KiB is known, only of 4 and 64"));
    };
    let newest = of_page().map(|row| row.release).filter(|known| *known <= release).max();
    let of = newest.ok_or_else(|| format!("boot = kernel: no boot before {oldest} is known"))?;
    let mut boots = Boots::new();
    for row in of_page().filter(|row| row.release == of) {
        boots.entry(row.cpus).or_default().push(row);
    }
    Ok(boots)
}

/// The caches on `cpus` CPUs: on the line through the two nearest boots.
fn between(boots: &Boots, cpus: u32) -> Vec<Booted> {
    let known: Vec<u32> = boots.keys().copied().collect();
    let above = known.partition_point(|one| *one < cpus).clamp(1, known.len().max(2) - 1);
    let (from, to) = (known[above - 1], known[above.min(known.len() - 1)]);
    let at = if to > from { (f64::from(cpus) - f64::from(from)) / f64::from(to - from) } else { 0.0 };
    let counts = |boot: u32| -> BTreeMap<&str, Counts> {
        boots[&boot].iter().map(|row| (row.booted.names[0], row.booted.counts)).collect()
    };
    let (low, high) = (counts(from), counts(to));
    let mut found: Vec<Booted> = Vec::new();
    for row in boots[&to].iter().chain(&boots[&from]) {
        let name = row.booted.names[0];
        if found.iter().all(|one| one.names[0] != name) {
            let of = |counts: &BTreeMap<&str, Counts>| counts.get(name).copied().unwrap_or_default();
            found.push(Booted { counts: Counts::at(at, &of(&low), &of(&high)), ..row.booted.clone() });
        }
    }
    found
}

/// The stream that a boot is drawn from.
struct Drawn(Pcg64Mcg);

impl Drawn {
    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end.max(1)
    }

    /// A number around the part `mean` of `whole`, as far from it as is possible on both sides.
    fn around(&mut self, mean: f64, whole: u32) -> u32 {
        let width = mean.min(1.0 - mean).max(0.0);
        let unit = self.0.next_u64() as f64 / u64::MAX as f64;
        let used = (mean + width * (2.0 * unit - 1.0)) * f64::from(whole);
        (used.round() as u32).clamp(1, whole.max(2) - 1)
    }

    /// `free` different places of a slab with `objects` objects, in a drawn order.
    fn free(&mut self, objects: u32, free: u32) -> Vec<u16> {
        let mut places: Vec<u16> = (0..objects as u16).collect();
        for at in 0..free as usize {
            let other = at + self.below(u64::from(objects) - at as u64) as usize;
            places.swap(at, other);
        }
        places.truncate(free as usize);
        places
    }
}

/// Objects in use of a cache's slabs.
#[derive(Debug, PartialEq, Eq)]
struct Fill {
    of_cpus: Vec<u32>,
    partial: Vec<u32>,
    full: u64,
}

/// Slabs of `objects` objects that hold what `counts` says.
fn fill(counts: &Counts, objects: u32, drawn: &mut Drawn) -> Fill {
    let mut left = counts.objects.round() as u64;
    let mut take = |used: u32| {
        let used = u64::from(used).min(left);
        left -= used;
        used as u32
    };
    let mut of_cpus: Vec<u32> =
        (0..counts.cpu_slabs.round() as u64).map(|_| take(drawn.around(0.5, objects))).collect();
    let mut partial: Vec<u32> = (0..counts.partial_slabs.round() as u64)
        .map(|_| take(drawn.around(counts.partial_used, objects)))
        .filter(|used| *used > 0)
        .collect();
    let (full, mut rest) = (left / u64::from(objects), (left % u64::from(objects)) as u32);
    // Less than half of a slab has room in those of CPUs: else there would be more slabs than in the boot.
    if rest <= objects / 2 {
        for used in &mut of_cpus {
            let more = rest.min(objects - *used);
            (*used, rest) = (*used + more, rest - more);
        }
    }
    partial.extend((rest > 0).then_some(rest));
    Fill { of_cpus, partial, full }
}

/// Fills the caches of the machine that is entered with what its kernel holds after boot. Outside of calls.
pub(crate) fn boot(heap: &dyn Heap, caches: &[Booted], seed: u64) {
    let mut drawn = Drawn(Pcg64Mcg::seed_from_u64(seed));
    for booted in caches {
        let at = booted.find(heap.caches()).expect("each cache of a boot is there");
        boot_cache(heap, CacheNumber(at as u16), &booted.counts, &mut drawn);
    }
    heap.seeded();
}

fn boot_cache(heap: &dyn Heap, cache: CacheNumber, counts: &Counts, drawn: &mut Drawn) {
    let objects = heap.geometry(cache).objects;
    // Sheaves and arrays of the CPUs are there already, and the boot's counts have them too.
    let own = heap.usage(cache).live_objects() as f64;
    let counts = &Counts { objects: (counts.objects - own).max(0.0), ..*counts };
    let Fill { of_cpus, partial, full } = fill(counts, objects, drawn);
    let mut cpus: Vec<CpuId> = (0..Timed::cpus()).map(CpuId).collect();
    for at in 0..cpus.len() {
        let other = at + drawn.below((cpus.len() - at) as u64) as usize;
        cpus.swap(at, other);
    }
    let node_of = |cpu: CpuId| Timed::cpu_memory_node(cpu);
    let seed = |node: NodeId, place: Place, used: u32, drawn: &mut Drawn| {
        let free = drawn.free(objects, objects - used);
        heap.seed(cache, node, place, &free);
    };
    for (at, used) in of_cpus.into_iter().enumerate() {
        let cpu = cpus[at % cpus.len()];
        let place = if at < cpus.len() { Place::Cpu(cpu) } else { Place::CpuPartial(cpu) };
        seed(node_of(cpu), place, used, drawn);
    }
    let somewhere = |drawn: &mut Drawn| node_of(cpus[drawn.below(cpus.len() as u64) as usize]);
    for used in partial {
        let node = somewhere(drawn);
        seed(node, Place::Node, used, drawn);
    }
    for _ in 0..full {
        let node = somewhere(drawn);
        seed(node, Place::Node, objects, drawn);
    }
}
