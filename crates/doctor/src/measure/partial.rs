//! Snapshots with a part of their machine's caches: a file that was cut off, or a text with some of the rows.
//!
//! A cache that such a snapshot lacks is new, or was there and is not in the snapshot: how it grew is
//! unknown. So growth is that of the caches which every such snapshot has.

use crate::state::{Cache, State};
use std::collections::BTreeSet;

/// How a snapshot is known to have a part of its machine's caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partial {
    /// It has less than half as many caches as another snapshot.
    Few,
    /// It lacks a cache that the kernel makes when it boots, and that another snapshot has.
    Boot,
    /// Its input ends too early, or is a text that has some of the caches.
    Input,
}

/// The snapshots that have a part of the caches, and the names of those caches.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts<'a>(Vec<(&'a State, Partial, BTreeSet<&'a str>)>);

impl Partial {
    /// How `state` is known to have a part of the caches of its machine, of which `all` are snapshots.
    fn of(state: &State, all: &[&State]) -> Option<Partial> {
        let most = all.iter().map(|other| other.caches.len()).max().unwrap_or(0);
        let has = names(state);
        let of_boot =
            |other: &&State| names(other).into_iter().any(|name| is_of_boot(name) && !has.contains(name));
        if state.caches.len() < most.div_ceil(2) {
            Some(Partial::Few)
        } else if all.iter().any(of_boot) {
            Some(Partial::Boot)
        } else {
            (!state.has_all_caches() || state.is_cut_off()).then_some(Partial::Input)
        }
    }
}

impl<'a> Parts<'a> {
    /// Those of `states`; none if no cache is left out for them.
    pub(super) fn of(states: &[&'a State]) -> Parts<'a> {
        let part = |state: &&'a State| Some((*state, Partial::of(state, states)?, names(state)));
        let parts = Parts(states.iter().filter_map(part).collect());
        let mut caches = states.iter().flat_map(|state| &state.caches);
        match caches.all(|cache| parts.have(cache)) {
            true => Parts::default(),
            false => parts,
        }
    }

    /// Whether all of them have a cache of this name, so that its growth is known.
    pub(super) fn have(&self, cache: &Cache) -> bool {
        self.0.iter().all(|(.., names)| names.contains(cache.name.as_str()))
    }

    /// The one with fewest caches, and how it is known.
    pub(super) fn least(&self) -> Option<(&'a State, Partial)> {
        let least = self.0.iter().min_by_key(|(state, ..)| state.caches.len());
        least.map(|(state, partial, _)| (*state, *partial))
    }
}

fn names(state: &State) -> BTreeSet<&str> {
    state.caches.iter().map(|cache| cache.name.as_str()).collect()
}

/// Whether a kernel has this cache from boot to shutdown: those of kmalloc (`size-` in SLAB before 3.7) and
/// of caches themselves.
fn is_of_boot(name: &str) -> bool {
    name.starts_with("kmalloc-") || name.starts_with("size-") || name == "kmem_cache"
}
