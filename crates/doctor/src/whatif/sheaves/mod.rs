//! Slab memory under another release of SLUB, from 6.12 on: what its CPUs and nodes keep of each cache.
//!
//! ```text
//! Layer     what one release gives each cache: CPU slabs or sheaves, their capacity, barns
//! Today     where the objects of a cache are: in use, parked, free in slabs
//! Level     how much is parked: the least, what is expected, the most
//! Holders   the two layers: the slabs of each cache under the other one
//! own       the memory of sheaves and barns themselves: objects of kmalloc
//! sizes     objects that have another size in the other release, where dumps tell
//! ```
//!
//! The theory (docs/whatif.md has its errors):
//!
//! 1. A CPU that allocates from a cache refills a whole sheaf. So a CPU with few objects in use has
//!    `capacity` objects of the slabs, where in 6.18 it had one slab. A CPU with many has a sheaf that is
//!    half full on average.
//! 2. The slabs below sheaves belong to no CPU: the objects of all CPUs fill them one after the other.
//! 3. After a load, objects were freed by the thousand. Each barn is then full, and each CPU has a sheaf
//!    more. The parked objects lie in slabs that were filled at the peak of the load and keep them: each has
//!    room for [`ROOM`] objects with it.
//! 4. CPU slabs leave no trace of a peak that was freed, if few objects in use are left: such a cache has at
//!    most the empty slabs that lists keep. If the objects in use keep the slabs, the peak shows, and
//!    parked objects are in those slabs.
//! 5. Each CPU has a main sheaf of each cache, each CPU that refilled it a spare, each barn of 3 its full
//!    ones; they and the barns are objects of kmalloc.

mod cache;
mod layer;
mod level;
mod own;
mod sizes;

pub use layer::{asked_capacity, is_without_sheaves};
pub(super) use level::Level;
pub use level::{ROOM, SCATTER};
pub(super) use sizes::{known as known_size, names as known_releases};

use super::fill::Then;
use super::held;
use super::rules::Rules;
use crate::state::{Cache, State};
use cache::Today;
use layer::Layer;
use own::Own;
use slablab_slabs::engines::slub::SlubPolicy;
use slablab_slabs::knob::Policy;
use slablab_slabs::{Preset, Release};

/// The first release whose CPU slabs are known to be those of 6.18: what a dump of an older one says of
/// another's objects is not known.
pub(super) const KNOWN_SINCE: Release = Release::new(6, 12, 0);

/// What CPUs and nodes keep: today, and with the change.
#[derive(Clone, Debug)]
pub(super) struct Holders {
    today: Layer,
    then: Layer,
    /// Whether the machine was under load: lists have more slabs than the empty ones that they keep.
    loaded: bool,
}

impl Holders {
    /// The holders under `then`, of a machine whose release is known, with the rules of today and then.
    pub(super) fn new(state: &State, [rules, rules_then]: [&Rules; 2], then: SlubPolicy) -> Holders {
        let own = policy(state);
        let today = Layer::new(state, rules, own);
        let then = Layer::new(state, rules_then, then);
        Holders { today, then, loaded: is_loaded(state) }
    }

    /// Whether the cache is kept in the same way.
    fn same(&self, cache: &Cache, state: &State) -> bool {
        let capacities = [&self.today, &self.then].map(|layer| layer.capacity(cache, state));
        let kept = |layer: &Layer, capacity: u32| match capacity {
            0 => (layer.cpu_slabs, 0, 0, 0),
            _ => (layer.cpu_slabs, layer.cpus_with_sheaves, layer.barns, layer.full_sheaves),
        };
        capacities[0] == capacities[1] && kept(&self.today, capacities[0]) == kept(&self.then, capacities[1])
    }

    /// Slabs of the cache with the change, whose slabs then have as many objects as `wanted` says, with
    /// `wanted.more` objects in use that come, or go if negative; `None` if it is kept in the same way.
    pub(super) fn slabs(&self, cache: &Cache, state: &State, wanted: &Then, level: Level) -> Option<u64> {
        if cache.slabs == 0 || cache.objects_per_slab == 0 || self.same(cache, state) {
            return None;
        }
        Some(self.read(cache, state).slabs(&self.then, self.then.capacity(cache, state), wanted, level))
    }

    /// Objects of kmalloc that come with the change, or go: those of 64 bytes, 128, and so on. `rows` are the
    /// caches.
    pub(super) fn own(&self, caches: &[Cache], state: &State, level: Level) -> Vec<(u64, f64)> {
        let mut own = Own::default();
        for cache in caches {
            let seen = self.read(cache, state);
            own.add(&self.then, self.then.capacity(cache, state), &seen, level, 1.0);
            // What there is today is in the dump: it is not more or less likely.
            own.add(&self.today, self.today.capacity(cache, state), &seen, Level::Expected, -1.0);
        }
        own.objects()
    }

    fn read(&self, cache: &Cache, state: &State) -> Today {
        let held = held::held(cache, state, held::has_attrs(state), None);
        Today::new(cache, &held, &self.today, self.today.capacity(cache, state), self.loaded)
    }
}

/// The SLUB of the kernel that was read.
pub(super) fn policy(state: &State) -> SlubPolicy {
    match state.release.and_then(Preset::of_kernel) {
        Some(Preset::Slub(policy)) => policy,
        _ => SlubPolicy::PRESETS[0],
    }
}

/// The part of slab memory on nodes' lists, beyond the empty slabs that lists keep, from which on a machine
/// has been under load. Each list keeps as many empty slabs as it wants to have slabs.
const LOADED: f64 = 0.0625;

/// Whether the machine was under load. Without sysfs that does not show, and it is taken for one that was
/// not.
pub(super) fn is_loaded(state: &State) -> bool {
    let Ok(rules) = Rules::of(state, &mut Vec::new()) else { return false };
    let layer = Layer::new(state, &rules, policy(state));
    let beyond = |cache: &Cache| {
        let slabs = cache::partial(cache).saturating_sub(layer.kept_slabs(cache));
        slabs.saturating_mul(cache.slab_bytes(state.page_size))
    };
    let bytes: u64 = state.caches.iter().map(beyond).fold(0, u64::saturating_add);
    bytes as f64 > LOADED * state.bytes() as f64
}
