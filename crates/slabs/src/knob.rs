//! The policies of an engine, which are chosen by name. What a knob is, is in `slablab-choices`.

use crate::release::ZoneReclaimMode;
use core::any::Any;
use slablab_choices::Text;
pub use slablab_choices::{
    AUTO, BadKind, BadPreset, Knob, Knobs, Needs, Release, Setting, Taken, Values, With, knob,
};
pub use slablab_choices::{change, is_called, print_changed};

/// A table that a registered engine was registered with.
pub type Table = dyn Any + Send + Sync;

/// A set of policies with knobs that can be named.
pub trait Policy: Copy + PartialEq + 'static {
    /// The engine's name in the grammar.
    const NAME: &'static str;
    /// The presets, oldest first.
    const PRESETS: &'static [Self];
    /// The knobs, in the order in which they are printed.
    const KNOBS: &'static [Knob<Self>];
    /// The release of these policies.
    fn release(&self) -> Release;
    /// What the administrator set `zone_reclaim_mode` to.
    fn zone_reclaim(&self) -> ZoneReclaimMode;
    /// These policies with what the tables of their registration tell them; most engines' need nothing.
    #[must_use]
    fn with_tables(self, _tables: &'static [&'static Table]) -> Self {
        self
    }
    /// A value that needs another knob's value, which that does not have.
    fn lacks(&self) -> Option<Needs> {
        None
    }
}

/// The newest preset that is not newer than `release`.
pub(crate) fn newest_not_newer<T: Policy>(release: Release) -> Option<T> {
    slablab_choices::newest_not_newer(T::PRESETS.iter().copied(), T::release, release)
}

/// A release without a preset.
pub(crate) fn no_preset(given: &str) -> BadPreset<'_> {
    BadPreset { kind: BadKind::Release("slablab list engines"), given, nearest: [""; 3] }
}

/// The preset of the text's release, with the values of its knobs. `around` has further knobs.
pub(crate) fn assemble<'a, T: Policy>(text: Text<'a>, around: &mut dyn Knobs) -> Result<T, BadPreset<'a>> {
    let preset = match text.release {
        None => *T::PRESETS.last().expect("every engine has a preset"),
        Some(given) => Release::named(given).and_then(newest_not_newer).ok_or_else(|| no_preset(given))?,
    };
    let mut own = With(preset, T::KNOBS);
    text.parts().try_for_each(|part| change(part, &mut [&mut own, around], &[]))?;
    own.0.lacks().map_or(Ok(own.0), |needs| Err(needs.into()))
}
