//! Bytes from one object to the next with and without debugging (reference/slub.md 7).
//!
//! ```text
//! plain      object | link if contents survive a free | up to the alignment
//! debugging  left red zone | object | red zone | link | two records of users | size asked | word | up to the alignment
//! ```
//!
//! Checked against a 6.1 booted with slub_debug=FZPU: all 199 caches. What other releases do differently is in
//! [`Debug::assumed`].

use crate::error::{Error, Result};
use crate::state::Cache;
use slablab_slabs::Release;
use slablab_slabs::cache::WORD;
use std::fmt;

/// What `slub_debug` asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Debug {
    /// F: checks.
    pub checks: bool,
    /// Z: red zones.
    pub red_zone: bool,
    /// P: poison.
    pub poison: bool,
    /// U: who allocated and freed.
    pub users: bool,
}

/// A record of a user: address, handle of a stack, CPU, process, time; with whole stacks until 5.17.
const RECORD: u64 = 32;
const RECORD_WITH_STACK: u64 = 152;
const STACK_DEPOT_SINCE: Release = Release::new(5, 18, 0);
const LEFT_RED_ZONE_SINCE: Release = Release::new(4, 7, 0);
const SIZE_ASKED_SINCE: Release = Release::new(6, 1, 0);

impl Debug {
    /// Reads letters as `slub_debug` takes them, or `off`.
    ///
    /// # Errors
    /// Another letter.
    pub fn parse(text: &str) -> Result<Debug> {
        let mut debug = Debug::default();
        if text == "off" {
            return Ok(debug);
        }
        for letter in text.chars() {
            match letter.to_ascii_uppercase() {
                'F' => debug.checks = true,
                'Z' => debug.red_zone = true,
                'P' => debug.poison = true,
                'U' => debug.users = true,
                _ => {
                    return Err(Error::new("--debug", format!("{text}: expected letters of FZPU, or off")));
                }
            }
        }
        if debug == Debug::default() {
            return Err(Error::new("--debug", "expected letters of FZPU, or off"));
        }
        Ok(debug)
    }

    /// Whether CPUs keep no slabs: objects are handed out one by one.
    pub fn is_on(self) -> bool {
        self != Debug::default()
    }

    /// Whether caches keep to themselves.
    pub fn prevents_merging(self) -> bool {
        self.red_zone || self.poison || self.users
    }

    /// What a release does that is not in the reference.
    pub fn assumed(self, release: Release) -> Option<String> {
        (self.prevents_merging() && release < SIZE_ASKED_SINCE).then(|| {
            format!(
                "Sizes with debugging are exact on 6.1. For {release} they assume: the red zone before the object came with \
                 4.7, records of users shrank with 5.18, and kmalloc's caches note the size asked since 6.1."
            )
        })
    }

    /// Bytes from one object to the next; `None` where sysfs does not tell the object's size and alignment.
    pub fn size(self, cache: &Cache, release: Release) -> Option<u64> {
        let attrs = cache.attrs.as_ref()?;
        let (object, align) = (attrs.object_size?, attrs.align?);
        let word = u64::from(WORD);
        if !align.is_power_of_two() || object == 0 || object > 1 << 30 {
            return None;
        }
        let mut size = object.next_multiple_of(word);
        if self.red_zone && size == object {
            size += word;
        }
        let survives = attrs.ctor.is_some() || attrs.destroy_by_rcu == Some(true);
        let no_room = self.red_zone && object < word;
        if survives || self.poison || no_room {
            size += word;
        }
        if self.users {
            size += 2 * if release < STACK_DEPOT_SINCE { RECORD_WITH_STACK } else { RECORD };
            let kmalloc = cache.name.starts_with("kmalloc-") || cache.name.starts_with("dma-kmalloc-");
            size += if kmalloc && release >= SIZE_ASKED_SINCE { word } else { 0 };
        }
        if self.red_zone {
            size += word;
            size += if release < LEFT_RED_ZONE_SINCE { 0 } else { word.next_multiple_of(align) };
        }
        Some(size.next_multiple_of(align.max(word)))
    }
}

/// How a cache is debugged today.
pub(super) fn of_cache(cache: &Cache) -> Debug {
    let Some(attrs) = &cache.attrs else { return Debug::default() };
    Debug {
        checks: attrs.sanity_checks == Some(true),
        red_zone: attrs.red_zone == Some(true),
        poison: attrs.poison == Some(true),
        users: attrs.store_user == Some(true),
    }
}

impl fmt::Display for Debug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = [(self.checks, "F"), (self.red_zone, "Z"), (self.poison, "P"), (self.users, "U")];
        let on = letters.iter().filter(|(on, _)| *on).map(|(_, letter)| *letter);
        f.write_str(if self.is_on() { "" } else { "off" })?;
        f.write_str(&on.collect::<String>())
    }
}
