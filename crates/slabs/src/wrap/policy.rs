//! Additions to an engine, and their notation: `slub@6.1,debug=FZPU,quarantine=64K,harden=random,init=free`.

use crate::knob::{Knob, Values};
use crate::release::Release;
use crate::zones::Letters;

/// The additions of a cache. The default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wrap {
    /// The checks (`slub_debug`).
    pub letters: Letters,
    /// Capacity of each cache's quarantine, in bytes of freed objects.
    pub quarantine_bytes: u64,
    /// Whether new slabs hand out their objects in random order.
    pub shuffled: bool,
    /// Whether links are encoded. [`crate::wrap::Hardened`] does that: it wraps the engine's world, not the
    /// engine.
    pub encoded: bool,
    /// Whether a malloc has its hardened profile (`harden=on`). Elsewhere the profile is what it has in
    /// common with the other knobs: new slabs in random order, and objects zeroed when they are freed.
    pub hardened: bool,
    /// Whether objects are zeroed when they are freed (`init_on_free`).
    pub zero_on_free: bool,
    /// Whether objects are zeroed when they are allocated (`init_on_alloc`).
    pub zero_on_alloc: bool,
    /// Whether every free checks that the object is allocated, whatever the letters say, without the other
    /// effects of debugging. For worlds whose callers may be wrong. There is no knob for it.
    pub checked: bool,
}

/// The value `on` of the knob `harden`.
const ON: u64 = 4;

impl Wrap {
    /// Whether the engine needs a wrapper.
    pub fn is_on(&self) -> bool {
        Wrap { encoded: false, checked: false, ..*self } != Wrap::default()
    }

    /// Whether the engine or its world needs a wrapper.
    pub fn is_on_anywhere(&self) -> bool {
        self.is_on() || self.encoded
    }

    /// The knobs that every engine accepts.
    pub const KNOBS: &'static [Knob<Wrap>] = &[
        Knob {
            name: "debug",
            what: "F: checks; Z: red zones; P: poison; U: users; O: none where they would \
                   raise a slab's order (docs/debugging.md)",
            values: Values::Letters(Letters::ALL),
            get: |w| w.letters.bits(),
            set: |w, v| w.letters = Letters::from_bits(v),
        },
        Knob {
            name: "quarantine",
            what: "bytes of freed objects that each cache holds back, the oldest leave first (not in Linux)",
            values: Values::Bytes(1 << 40),
            get: |w| w.quarantine_bytes,
            set: |w, v| w.quarantine_bytes = v,
        },
        Knob {
            name: "harden",
            what: "random: a new slab's free list is in random order; encode: links are encoded, and a \
                   damaged link ends the run (CONFIG_SLAB_FREELIST_RANDOM, CONFIG_SLAB_FREELIST_HARDENED); \
                   on: malloc's hardened profile, elsewhere random with init=free",
            values: Values::Words(&["off", "random", "encode", "random+encode", "on"]),
            get: |w| if w.hardened { ON } else { w.shuffled as u64 | (w.encoded as u64) << 1 },
            set: |w, v| {
                if v == ON || w.hardened {
                    w.zero_on_free = v == ON;
                }
                w.hardened = v == ON;
                (w.shuffled, w.encoded) = (v & 1 == 1 || v == ON, v & 2 == 2);
            },
        },
        Knob {
            name: "init",
            what: "calls that fill an object with zeros (init_on_alloc, init_on_free)",
            values: Values::Words(&["off", "alloc", "free", "alloc+free"]),
            get: |w| w.zero_on_alloc as u64 | (w.zero_on_free as u64 & !w.hardened as u64) << 1,
            set: |w, v| (w.zero_on_alloc, w.zero_on_free) = (v & 1 == 1, v & 2 == 2 || w.hardened),
        },
    ];
}

/// The policies of an engine, and the additions to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Around<T> {
    /// The engine's policies.
    pub engine: T,
    /// The additions.
    pub wrap: Wrap,
    /// The release whose debugging layout is used.
    pub release: Release,
}
