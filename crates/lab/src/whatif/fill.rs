//! How many slabs objects take.
//!
//! A CPU that ever allocated from a cache holds a slab of it, whatever the slab's size and however few objects of it are in
//! use. All other slabs were filled before the CPU went on to its next one. So, of a cache with `c` CPU slabs, `f` others and
//! `m` objects in each:
//!
//! - The `f` others were filled by `d` of the `c` CPUs: `c (1 - (1 - 1/c)^f)` if each slab is equally likely anyone's.
//! - A CPU that has filled slabs is somewhere in the next one: half of it is in use on average. One that has not holds few
//!   objects for certain, and how few is not known: for it there is a slab, and nothing else.
//! - So the objects in use of those `d` CPUs are `f m + d m / 2`, which with slabs of `m'` objects are in
//!   `(f m + d m / 2 - d m' / 2) / m'` full slabs and, with those of all CPUs, `c` CPU slabs.
//!
//! Slabs on lists are taken for as full as today: what frees leave of smaller slabs is not known.

/// Where the objects of a cache are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Held {
    /// CPU slabs, without those on the CPUs' partial lists.
    pub cpu_slabs: u64,
    /// All other slabs.
    pub others: u64,
    /// Objects in a slab.
    pub per_slab: u64,
    /// Objects in use, where something else than the cache tells.
    pub live: Option<u64>,
}

/// Slabs, with the bounds that hold however full the CPU slabs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slabs {
    /// If each CPU slab that follows a full one is half full.
    pub likely: u64,
    /// If CPU slabs hold as few objects as can be.
    pub low: u64,
    /// If all objects in them are in use.
    pub high: u64,
}

impl Held {
    /// CPUs that have filled a slab.
    pub fn fillers(&self) -> f64 {
        distinct(self.cpu_slabs as f64, self.others as f64)
    }

    /// Objects in use, as far as they need slabs beside one for each CPU.
    pub fn in_use(&self) -> f64 {
        match self.live {
            Some(live) => live as f64,
            None => self.others as f64 * self.per_slab as f64 + self.fillers() * self.per_slab as f64 / 2.0,
        }
    }

    /// Slabs with `per_slab` objects each.
    pub fn with(&self, per_slab: u64) -> Slabs {
        let per_slab = per_slab.max(1);
        if per_slab == self.per_slab {
            let today = self.cpu_slabs + self.others;
            return Slabs { likely: today, low: today, high: today };
        }
        let beside = |objects: f64| self.cpu_slabs + (objects.max(0.0) / per_slab as f64).ceil() as u64;
        let outside = self.others as f64 * self.per_slab as f64;
        let fillers = self.fillers();
        let half = per_slab as f64 / 2.0;
        let in_cpu_slabs = self.cpu_slabs as f64 * self.per_slab as f64;
        Slabs {
            likely: beside(self.in_use() - fillers * half),
            low: beside(outside - fillers * per_slab as f64),
            high: beside(outside + in_cpu_slabs - self.cpu_slabs as f64),
        }
    }
}

/// How many of `places` are hit by `hits` that each are equally likely to hit any.
pub fn distinct(places: f64, hits: f64) -> f64 {
    if places < 1.0 { 0.0 } else { places * (1.0 - (1.0 - 1.0 / places).powf(hits)) }
}
