//! What may be put around an engine, and how it is written: `slub@6.1,debug=FZPU,quarantine=64K,harden=random,init=free`.

use crate::knob::{BadPreset, Knob, Values};
use crate::release::Release;
use crate::zones::Letters;

/// What is put around a cache. The default is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wrap {
    /// What is checked (`slub_debug`).
    pub letters: Letters,
    /// Bytes of freed objects that each cache holds back.
    pub quarantine_bytes: u64,
    /// New slabs hand their objects out in an order that nobody can guess.
    pub shuffled: bool,
    /// Links are encoded: the engine runs over [`crate::wrap::Hardened`], which is around its world, not around it.
    pub encoded: bool,
    /// Objects are zeroed when they are freed (`init_on_free`).
    pub zero_on_free: bool,
    /// Objects are zeroed when they are allocated (`init_on_alloc`).
    pub zero_on_alloc: bool,
    /// Whether an object is free is looked at whatever the letters say, without what else debugging does: for a world whose
    /// callers may be wrong. No knob.
    pub checked: bool,
}

impl Wrap {
    /// Whether anything is put around an engine; else it is used as it is.
    pub fn is_on(&self) -> bool {
        Wrap { encoded: false, checked: false, ..*self } != Wrap::default()
    }

    /// Whether anything is put around an engine or its world.
    pub fn is_on_anywhere(&self) -> bool {
        self.is_on() || self.encoded
    }

    /// What can be put around every engine.
    pub const KNOBS: &'static [Knob<Wrap>] = &[
        Knob {
            name: "debug",
            what: "F checks, Z red zones, P poison, U users, O not where orders grow (docs/debugging.md)",
            values: Values::Letters(Letters::ALL),
            get: |w| w.letters.bits(),
            set: |w, v| w.letters = Letters::from_bits(v),
        },
        Knob {
            name: "quarantine",
            what: "bytes of freed objects that each cache holds back, oldest first to go (ours)",
            values: Values::Bytes(1 << 40),
            get: |w| w.quarantine_bytes,
            set: |w, v| w.quarantine_bytes = v,
        },
        Knob {
            name: "harden",
            what: "random: new slabs hand objects out in random order; encode: links are encoded, a broken one ends the run \
                   (CONFIG_SLAB_FREELIST_RANDOM, _HARDENED)",
            values: Values::Words(&["off", "random", "encode", "random+encode"]),
            get: |w| w.shuffled as u64 | (w.encoded as u64) << 1,
            set: |w, v| (w.shuffled, w.encoded) = (v & 1 == 1, v & 2 == 2),
        },
        Knob {
            name: "init",
            what: "objects are zeroed when allocated, freed, or both (init_on_alloc, init_on_free)",
            values: Values::Words(&["off", "alloc", "free", "alloc+free"]),
            get: |w| w.zero_on_alloc as u64 | (w.zero_on_free as u64) << 1,
            set: |w, v| (w.zero_on_alloc, w.zero_on_free) = (v & 1 == 1, v & 2 == 2),
        },
    ];
    const NAMES: [&'static str; Wrap::KNOBS.len()] = {
        let mut names = [""; Wrap::KNOBS.len()];
        let mut index = 0;
        while index < names.len() {
            names[index] = Wrap::KNOBS[index].name;
            index += 1;
        }
        names
    };
}

impl crate::knob::Around for Wrap {
    fn set<'a>(&mut self, name: &str, value: &'a str) -> Option<Result<(), BadPreset<'a>>> {
        let knob = Wrap::KNOBS.iter().find(|knob| knob.name == name)?;
        Some(knob.read(value).map(|value| (knob.set)(self, value)))
    }

    fn names(&self) -> &'static [&'static str] {
        &Wrap::NAMES
    }
}

/// An engine's policies, and what is around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Around<T> {
    /// The engine's.
    pub engine: T,
    /// What is around it.
    pub wrap: Wrap,
    /// Whose sizes debugging has.
    pub release: Release,
}
