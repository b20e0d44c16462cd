//! One cache: where its objects are today, and the slabs they take under another layer.

use super::layer::Layer;
use super::level::Level;
use crate::state::Cache;
use crate::whatif::fill::{Held, Then, beside, distinct, whole};

/// What frees left of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Freed {
    /// Few objects were freed.
    Few,
    /// Many, and the objects in use keep the slabs of the peak.
    Seen,
    /// Many, and the slabs of the peak went, or only parked objects keep them.
    Hidden,
}

/// Where the objects of a cache are today.
#[derive(Clone, Copy, Debug)]
pub(super) struct Today {
    layer: Kept,
    slabs: u64,
    per_slab: u64,
    /// Empty slabs that lists keep.
    empty: u64,
    /// Objects that are free in slabs.
    free: u64,
    /// Objects in use: what the theory counts.
    live: f64,
    freed: Freed,
    /// CPUs that have objects of it, of all that can.
    holding: f64,
    /// Those of them that have used up more than a slab, or a sheaf.
    fillers: f64,
}

/// What a layer keeps of one cache.
#[derive(Clone, Copy, Debug)]
struct Kept {
    capacity: f64,
    cpus: f64,
    cpu_slabs: bool,
    barns: f64,
    full_sheaves: f64,
    /// The part of the CPUs whose sheaves take nothing.
    without: f64,
}

impl Kept {
    fn new(layer: &Layer, capacity: u32) -> Kept {
        // CPU slabs are there for every CPU.
        let cpus = if layer.cpu_slabs { layer.cpus } else { layer.cpus_with_sheaves };
        Kept {
            capacity: capacity.into(),
            cpus: cpus.into(),
            cpu_slabs: layer.cpu_slabs,
            barns: layer.barns.into(),
            full_sheaves: layer.full_sheaves.into(),
            without: 1.0 - f64::from(cpus) / f64::from(layer.cpus),
        }
    }

    /// Objects of a full barn.
    fn barn(&self) -> f64 {
        self.full_sheaves * self.capacity
    }
}

/// Slabs on the nodes' lists.
pub(super) fn partial(cache: &Cache) -> u64 {
    let partial = cache.attrs.as_ref().and_then(|attrs| attrs.partial.as_ref());
    partial.map_or(0, |counts| counts.total.value)
}

impl Today {
    pub(super) fn new(cache: &Cache, held: &Held, layer: &Layer, capacity: u32, loaded: bool) -> Today {
        let kept = Kept::new(layer, capacity);
        let of = Cut { cache, held, kept, empty: layer.kept_slabs(cache), loaded };
        if layer.cpu_slabs { of.with_cpu_slabs() } else { of.with_sheaves() }
    }

    /// CPUs that have objects of it under `layer`.
    pub(super) fn holding(&self, layer: &Layer) -> f64 {
        self.holding * self.share(&Kept::new(layer, 0))
    }

    /// Full sheaves in barns of `layer`.
    pub(super) fn barn_sheaves(&self, layer: &Layer, level: Level) -> f64 {
        match (self.freed, level) {
            (Freed::Hidden, Level::Expected | Level::Most) => {
                f64::from(layer.barns) * f64::from(layer.full_sheaves)
            }
            _ => 0.0,
        }
    }

    /// How many CPUs of a layer keep objects for one of today's.
    fn share(&self, then: &Kept) -> f64 {
        then.cpus / self.layer.cpus.max(1.0)
    }

    /// Slabs under a layer where a sheaf has `capacity` objects, a slab `wanted.per_slab`, and `wanted.more`
    /// objects come.
    pub(super) fn slabs(&self, layer: &Layer, capacity: u32, wanted: &Then, level: Level) -> u64 {
        let then = Kept::new(layer, capacity);
        let per_slab = wanted.per_slab.max(1) as f64;
        // The same objects in slabs of the new size.
        let same = self.slabs as f64 * self.per_slab as f64 / per_slab;
        let slabs = match (self.layer.cpu_slabs, then.cpu_slabs) {
            (true, false) => self.with_sheaves(&then, same, per_slab, level),
            (false, true) => self.with_cpu_slabs(&then, same, per_slab),
            _ => self.other_sheaves(&then, same, wanted, level),
        };
        whole(slabs)
    }

    /// CPU slabs become sheaves.
    fn with_sheaves(&self, then: &Kept, same: f64, per_slab: f64, level: Level) -> f64 {
        let (share, capacity) = (self.share(then), then.capacity);
        let few = self.holding - self.fillers;
        // A CPU without sheaves takes its few objects one by one.
        let parked =
            share * (self.fillers * capacity * level.filled() + few * capacity) + few * (1.0 - share);
        let filled = (self.live + parked) / per_slab;
        match self.freed {
            Freed::Few => filled + self.sparse(then),
            Freed::Seen => same.max(filled + self.free as f64 / per_slab),
            Freed::Hidden => {
                let parked = self.holding * share * capacity + then.barns * then.barn();
                same.max(filled).max((self.live + parked * level.room()) / per_slab)
            }
        }
    }

    /// Slabs beyond the filled ones where CPUs have no sheaves: they take objects of another node's list only
    /// while it has more slabs than it keeps empty (docs/theory/sheaves.md 3.1). Those are half full.
    fn sparse(&self, then: &Kept) -> f64 {
        (self.empty as f64 / 2.0).min(self.holding * then.without)
    }

    /// Sheaves become CPU slabs: each CPU that has objects holds a slab, and slabs that only parked objects
    /// kept go back.
    fn with_cpu_slabs(&self, then: &Kept, same: f64, per_slab: f64) -> f64 {
        let holding = (self.holding * self.share(then)).round();
        let filled = holding + beside(holding, self.live / per_slab).round();
        match self.freed {
            Freed::Few => filled,
            Freed::Seen | Freed::Hidden => {
                let objects = (self.slabs * self.per_slab).max(1) as f64;
                // A slab stays if one of its objects is in use; which ones are is chance.
                let empty = (1.0 - (self.live / objects).clamp(0.0, 1.0)).powf(per_slab);
                filled.max(same * (1.0 - empty))
            }
        }
    }

    /// Sheaves of another capacity, on other CPUs or in other barns; sheaves that come beside CPU slabs, or
    /// go.
    fn other_sheaves(&self, then: &Kept, same: f64, wanted: &Then, level: Level) -> f64 {
        let now = &self.layer;
        let per_slab = wanted.per_slab.max(1) as f64;
        let few = self.holding - self.fillers;
        let on_cpu = match self.freed {
            Freed::Hidden => self.holding,
            _ => few + self.fillers * level.filled(),
        };
        let mut more = on_cpu * (self.share(then) * then.capacity - now.capacity) + wanted.more;
        if self.freed != Freed::Few {
            // Barns of today are full; nothing tells how full another one would be.
            let known = if now.capacity > 0.0 { now.barns.min(then.barns) } else { 0.0 };
            more += known * (then.barn() - now.barn());
            more += (then.barns - known) * then.barn() * level.filled();
            if now.capacity > 0.0 {
                more -= (now.barns - known) * now.barn();
            }
        }
        let active = (self.slabs * self.per_slab) as f64 - self.free as f64 + more;
        match self.freed {
            Freed::Hidden => same + more / per_slab,
            _ if more < 0.0 => (same + more / per_slab).max(active / per_slab + self.sparse(then)),
            _ => same.max(active / per_slab),
        }
    }
}

/// What [`Today`] is made of.
struct Cut<'a> {
    cache: &'a Cache,
    held: &'a Held,
    kept: Kept,
    /// Empty slabs that lists keep.
    empty: u64,
    /// Whether the machine was under load.
    loaded: bool,
}

impl Cut<'_> {
    /// Whether lists have about as many slabs as they keep empty ones, or more: the kernel has given slabs
    /// back.
    fn gave_back(&self) -> bool {
        self.loaded && partial(self.cache) * 5 >= self.empty * 4
    }

    fn with_cpu_slabs(&self) -> Today {
        let Held { cpu_slabs, others, listed, per_slab, free, .. } = *self.held;
        let (holding, per_slab) = (cpu_slabs as f64, per_slab as f64);
        let fillers = distinct(holding, others as f64);
        let freed = match partial(self.cache) {
            _ if !self.gave_back() => Freed::Few,
            slabs if slabs <= 2 * self.empty => Freed::Hidden,
            _ => Freed::Seen,
        };
        // Where the peak is hidden, slabs on CPUs' lists are what frees left of it.
        let full = others - if freed == Freed::Hidden { listed } else { 0 };
        let live = (full as f64 * per_slab - free as f64).max(0.0) + fillers * per_slab / 2.0;
        self.today(live, freed, holding, fillers)
    }

    fn with_sheaves(&self) -> Today {
        let Kept { capacity, cpus, barns, .. } = self.kept;
        let total = self.held.slabs() * self.held.per_slab;
        let active = total.saturating_sub(self.held.free) as f64;
        let holding = (active / capacity.max(1.0)).ceil().min(cpus);
        // Without more objects than one sheaf for each CPU, each has but its first refill.
        let fillers = if active > cpus * capacity { holding } else { 0.0 };
        let in_barns = barns * self.kept.barn();
        let parked = holding * capacity + in_barns;
        let freed = match active {
            active if !self.gave_back() || capacity == 0.0 || active < in_barns => Freed::Few,
            active if active < 2.0 * parked => Freed::Hidden,
            _ => Freed::Seen,
        };
        let parked = match freed {
            Freed::Few if fillers > 0.0 => holding * capacity / 2.0,
            Freed::Few => holding * (capacity - 1.0),
            _ => parked,
        };
        self.today((active - parked).max(0.0), freed, holding, fillers)
    }

    fn today(&self, live: f64, freed: Freed, holding: f64, fillers: f64) -> Today {
        let Held { per_slab, free, .. } = *self.held;
        let (layer, slabs, empty) = (self.kept, self.held.slabs(), self.empty);
        Today { layer, slabs, per_slab, empty, free, live, freed, holding, fillers }
    }
}
