//! Policies of page replacement, which are chosen by name. What a knob is, is in `slablab-choices`.

use crate::settings::Settings;
use crate::vm::Replacement;
pub use slablab_choices::{AUTO, BadKind, BadPreset, Knob, Knobs, Setting, Values, With, knob};

/// A family of policies: one implementation of [`Replacement`] with knobs, and its presets.
pub trait Policy: Copy + PartialEq + 'static {
    /// The word that chooses this family among those of a release, as `lru_gen`; empty: the usual one.
    const WORD: &'static str = "";
    /// The presets, oldest first.
    const PRESETS: &'static [Preset<Self>];
    /// The knobs, in the order in which they are printed.
    const KNOBS: &'static [Knob<Self>];
    /// The policy under this name.
    fn build(self, name: String) -> Box<dyn Replacement>;
}

/// A preset: what a kernel had.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset<T> {
    /// The name behind `vm@`.
    pub release: &'static str,
    /// The kernel whose rules hold for page allocator (`PagesPolicy::for_release`), page cache and files.
    pub kernel: [u32; 3],
    /// The preset in one line.
    pub what: &'static str,
    /// What the administrator found set.
    pub settings: Settings,
    /// The policies.
    pub policies: T,
}

impl<T> Preset<T> {
    /// The preset with its policies in another form.
    pub(crate) fn map<U>(self, form: impl FnOnce(T) -> U) -> Preset<U> {
        let Preset { release, kernel, what, settings, policies } = self;
        Preset { release, kernel, what, settings, policies: form(policies) }
    }
}
