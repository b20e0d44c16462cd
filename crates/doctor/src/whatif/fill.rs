//! How many slabs objects take.
//!
//! A CPU that ever allocated from a cache holds a slab of it, whatever the slab's size and however few
//! objects of it are in use. All other slabs were filled before a CPU went on to its next one. So, of a cache
//! with `c` CPU slabs, `f` others and `m` objects in each:
//!
//! - The `f` others were filled by `d` of the `c` CPUs: `c (1 - (1 - 1/c)^f)` if each slab is equally likely
//!   anyone's.
//! - A CPU that has filled slabs is somewhere in the next slab. On average half of that slab is in use. A CPU
//!   that has filled no slab holds an unknown, small number of objects. The model gives it one slab.
//! - So those `d` CPUs have `f m + d m / 2` objects in use. In slabs of `m'` objects these are
//!   `(f m + d m / 2 - d m' / 2) / m'` full slabs, in addition to one slab for each of the `c` CPUs.
//!
//! - With other CPUs, the objects in use that no CPU brings or takes stay. `d` follows from the slabs that
//!   they fill on the new CPUs: `f' m' + d' m' / 2` objects with `d' = c' (1 - (1 - 1/c')^f')`.
//!
//! Slabs on partial lists are taken for as full as today: what frees leave of smaller or larger slabs is not
//! known. A CPU's own partial list comes and goes with the CPU.

/// Where the objects of a cache are today.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Held {
    /// CPU slabs, without those on the CPUs' partial lists.
    pub cpu_slabs: u64,
    /// All other slabs.
    pub others: u64,
    /// Those of `others` that are on the CPUs' partial lists.
    pub listed: u64,
    /// Objects in a slab.
    pub per_slab: u64,
    /// Objects that are free in slabs on lists.
    pub free: u64,
    /// Objects in use, where something else than the cache tells.
    pub live: Option<u64>,
}

/// What is different for a cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Then {
    /// Objects in a slab.
    pub per_slab: u64,
    /// CPUs that hold a slab, on average.
    pub cpu_slabs: f64,
    /// Slabs of today's size on the CPUs' partial lists.
    pub listed: f64,
    /// Objects in use that come, or go if negative.
    pub more: f64,
}

impl Held {
    /// Slabs today.
    pub fn slabs(&self) -> u64 {
        self.cpu_slabs + self.others
    }

    /// CPUs that have filled a slab.
    fn fillers(&self) -> f64 {
        distinct(self.cpu_slabs as f64, self.others as f64)
    }

    /// Objects in use that stay whatever CPUs there are: without slabs on CPUs' lists, and without what those
    /// CPUs that filled them have in their next slabs.
    fn elsewhere(&self) -> f64 {
        let (per_slab, full) = (self.per_slab as f64, (self.others - self.listed) as f64);
        full * per_slab + distinct(self.cpu_slabs as f64, full) * per_slab / 2.0
    }

    /// Objects in use, half of a slab for each CPU that has filled one: what the theory counts.
    pub fn objects(&self) -> f64 {
        let per_slab = self.per_slab as f64;
        self.others as f64 * per_slab + self.fillers() * per_slab / 2.0
    }

    /// Objects in use, from one in each slab of a CPU or on a CPU's list to all of them.
    pub fn bounds(&self) -> (u64, u64) {
        let of_cpus = self.cpu_slabs.saturating_add(self.listed);
        let elsewhere = (self.others - self.listed).saturating_mul(self.per_slab).saturating_sub(self.free);
        (elsewhere.saturating_add(of_cpus), elsewhere.saturating_add(of_cpus.saturating_mul(self.per_slab)))
    }

    /// What stays as it is.
    pub fn unchanged(&self) -> Then {
        let (cpu_slabs, listed) = (self.cpu_slabs as f64, self.listed as f64);
        Then { per_slab: self.per_slab, cpu_slabs, listed, more: 0.0 }
    }

    /// Slabs with a change; what is not different leaves them as they are.
    pub fn with(&self, then: &Then) -> u64 {
        if *then == self.unchanged() || self.slabs() == 0 {
            return self.slabs();
        }
        let after = then.per_slab.max(1) as f64;
        let per_slab = self.per_slab as f64;
        let same_cpus = then.cpu_slabs == self.cpu_slabs as f64 && then.more == 0.0;
        let counted = self.live.map(|live| (live as f64 + then.more).max(0.0));
        let held = then.cpu_slabs.round() as u64;
        let slabs = if same_cpus {
            let listed = (then.listed - self.listed as f64) * per_slab;
            let objects = counted.unwrap_or(self.objects() + listed);
            held + whole((objects - self.fillers() * after / 2.0).max(0.0) / after)
        } else {
            let elsewhere = counted.unwrap_or((self.elsewhere() + then.more).max(0.0));
            let listed = if counted.is_some() { 0.0 } else { then.listed * per_slab };
            // An average: a part of a slab is in a CPU's slab, if there is one.
            let filled = beside(then.cpu_slabs, elsewhere / after) + listed / after;
            held + if held > 0 { filled.round() as u64 } else { whole(filled) }
        };
        match counted {
            // One CPU's slab after the other is full, and how full the last one is, is counted.
            Some(objects) if then.cpu_slabs.round() <= 1.0 => whole(objects / after),
            Some(objects) => slabs.max(whole(objects / after)),
            None => slabs,
        }
    }

    /// Slabs when no CPU holds one, as with debugging: each object comes from the first slab that has room.
    /// Slabs on the nodes' lists keep their room for the objects that a load freed. Of those on CPUs' lists
    /// half of the objects are taken to be in use: at least one is not, and the kernel does not count
    /// further.
    pub fn without_cpu_slabs(&self, per_slab: u64) -> u64 {
        let fillers = self.fillers();
        let few = self.cpu_slabs as f64 - fillers;
        let room = (self.others as f64 - self.listed as f64 / 2.0) * self.per_slab as f64;
        let objects = match self.live {
            Some(live) => live as f64,
            None => room + fillers * self.per_slab as f64 / 2.0 + few,
        };
        whole(objects / per_slab.max(1) as f64)
    }
}

/// Slabs that CPUs have filled, if those and the halves of the CPUs' next slabs are this many slabs' objects:
/// the `f` of `f + d / 2` with `d` of `f`, by halving an interval.
pub(super) fn beside(cpu_slabs: f64, objects: f64) -> f64 {
    let (mut low, mut high) = (0.0, objects);
    for _ in 0..64 {
        let middle = (low + high) / 2.0;
        let fits = middle + distinct(cpu_slabs, middle) / 2.0 <= objects;
        *(if fits { &mut low } else { &mut high }) = middle;
    }
    low
}

/// Rounds up. A difference to a whole number that is only a rounding error of the arithmetic does not count.
pub(super) fn whole(slabs: f64) -> u64 {
    (slabs - 1e-9).ceil().max(0.0) as u64
}

/// How many of `places` are hit by `hits` that each are equally likely to hit any.
pub(super) fn distinct(places: f64, hits: f64) -> f64 {
    if places < 1.0 { 0.0 } else { places * (1.0 - (1.0 - 1.0 / places).powf(hits)) }
}
