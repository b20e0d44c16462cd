//! Bytes from one object to the next with and without debugging, from what sysfs tells of a cache.
//!
//! The rules are [`slablab_slabs::cache::layout`] and [`slablab_slabs::zones`]; checked against a 6.1 booted
//! with slub_debug=FZPU: all 199 caches. What other releases do differently is in [`Debug::assumed`].

use crate::state::{Cache, State};
use slablab_report::error::{Error, Result};
use slablab_slabs::cache::{LinkPlace, layout};
use slablab_slabs::zones::{Letters, Zones, sizes_are_known};
use slablab_slabs::{CacheFlags, CacheSpec, Release};
use std::fmt;

/// What `slub_debug` asks of all caches: letters of FZPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Debug(Letters);

impl Debug {
    /// Reads letters as `slub_debug` takes them, or `off`.
    ///
    /// # Errors
    /// Another letter.
    pub fn parse(text: &str) -> Result<Debug> {
        let letters = Letters::parse(text).filter(|letters| !letters.keep_orders);
        letters.map(Debug).ok_or_else(|| Error::new("--debug", "expected letters of FZPU, or off"))
    }

    /// Whether CPUs keep no slabs: objects are handed out one by one.
    pub fn is_on(self) -> bool {
        self.0.is_on()
    }

    /// Whether caches keep to themselves.
    pub fn prevents_merging(self) -> bool {
        self.0.widens()
    }

    /// The assumption about this release, if no source dates the change; else `None`.
    pub fn assumed(self, release: Release) -> Option<String> {
        (self.prevents_merging() && !sizes_are_known(release)).then(|| {
            format!(
                "Sizes with debugging are exact on 6.1. For {release} they assume: the red zone before the \
                 object came with 4.7, records of users shrank with 5.18, and kmalloc's caches note the \
                 size asked since 6.1."
            )
        })
    }

    /// Bytes from one object to the next; `None` where sysfs does not tell the object's size and alignment.
    pub fn size(self, cache: &Cache, release: Release) -> Option<u64> {
        let attrs = cache.attrs.as_ref()?;
        let (object, align) = (attrs.object_size?, attrs.align?);
        if !align.is_power_of_two() || object == 0 || object > 1 << 30 || align > 1 << 30 {
            return None;
        }
        let kmalloc = cache.name.starts_with("kmalloc-") || cache.name.starts_with("dma-kmalloc-");
        let flags = CacheFlags::NONE
            .with(CacheFlags::CONSTRUCTOR, attrs.ctor.is_some())
            .with(CacheFlags::TYPESAFE_BY_RCU, attrs.destroy_by_rcu == Some(true))
            .with(CacheFlags::KMALLOC, kmalloc);
        let spec = CacheSpec { align: align as u32, flags, ..CacheSpec::of_size(object as u32) };
        // Where the link is inside, it takes no room wherever that is.
        let place = LinkPlace::Middle;
        let zones = Zones::new(&spec, place, self.0, release);
        Some(zones.map_or_else(|| layout(&spec, place).0, |zones| zones.size).into())
    }
}

/// How a cache is debugged today.
pub(super) fn of_cache(cache: &Cache) -> Debug {
    let Some(attrs) = &cache.attrs else { return Debug::default() };
    Debug(Letters {
        checks: attrs.sanity_checks == Some(true),
        red_zone: attrs.red_zone == Some(true),
        poison: attrs.poison == Some(true),
        users: attrs.store_user == Some(true),
        keep_orders: false,
    })
}

/// The debugging of most caches of a machine; none if that is none.
pub(super) fn of_most(state: &State) -> Debug {
    let on: Vec<Debug> = state.caches.iter().map(of_cache).filter(|debug| debug.is_on()).collect();
    let most = on.len() > state.caches.len() / 2;
    on.first().copied().filter(|_| most).unwrap_or_default()
}

impl fmt::Display for Debug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
