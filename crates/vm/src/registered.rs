//! Registered policies, in the grammar beside the families of this crate.

use crate::knob::{Policy, Preset, Setting};
use crate::vm::Replacement;
use slablab_choices::Erased;
pub use slablab_choices::KNOBS_MAX;
use std::fmt;
use std::sync::OnceLock;

static REGISTERED: OnceLock<Vec<&'static Registration>> = OnceLock::new();

/// A registered family, without its type.
pub struct Registration {
    word: &'static str,
    preset: fn(&'static Registration, usize) -> Option<Preset<Registered>>,
    setting: fn(&Registered, usize) -> Option<Setting>,
    build: fn(&Registered, String) -> Box<dyn Replacement>,
}

/// The policies of a registered family, without their type: their preset, and the value of each knob.
#[derive(Clone, Copy)]
pub struct Registered {
    registration: &'static Registration,
    preset: usize,
    values: Erased,
}

impl Registration {
    /// The family of `T`.
    pub const fn new<T: Policy>() -> Registration {
        assert!(!T::WORD.is_empty(), "a word chooses the family");
        assert!(T::KNOBS.len() <= KNOBS_MAX, "more knobs than a registered family may have");
        assert!(!T::PRESETS.is_empty(), "a family has at least one preset");
        Registration {
            word: T::WORD,
            preset: |own, index| {
                let preset = *T::PRESETS.get(index)?;
                let values = Erased::of(&preset.policies, T::KNOBS);
                Some(preset.map(|_| Registered { registration: own, preset: index, values }))
            },
            setting: |of, index| Some(T::KNOBS.get(index)?.setting(&of.policies::<T>())),
            build: |of, name| of.policies::<T>().build(name),
        }
    }

    /// The family's presets, oldest first.
    pub(crate) fn presets(&'static self) -> impl Iterator<Item = Preset<Registered>> {
        (0..).map_while(move |index| (self.preset)(self, index))
    }
}

impl Registered {
    fn policies<T: Policy>(&self) -> T {
        self.values.policy(T::PRESETS[self.preset].policies, T::KNOBS)
    }

    pub(crate) fn word(&self) -> &'static str {
        self.registration.word
    }

    pub(crate) fn setting(&self, index: usize) -> Option<Setting> {
        (self.registration.setting)(self, index)
    }

    /// Sets the knob of this index to a value that it allows.
    pub(crate) fn set(&mut self, index: usize, value: u64) {
        assert!(self.setting(index).is_some(), "{} has no knob {index}", self.word());
        self.values.set(index, value);
    }

    pub(crate) fn build(&self, name: String) -> Box<dyn Replacement> {
        (self.registration.build)(self, name)
    }
}

impl PartialEq for Registered {
    fn eq(&self, other: &Registered) -> bool {
        (self.word(), self.preset, self.values) == (other.word(), other.preset, other.values)
    }
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.word()).field("preset", &self.preset).field("values", &self.values).finish()
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("word", &self.word).finish_non_exhaustive()
    }
}

/// Registers the families of policies that this program has beside those of this crate. `known` are the words
/// of those.
pub(crate) fn register(own: Vec<&'static Registration>, known: &[&str]) -> Result<(), Refused> {
    for (at, one) in own.iter().enumerate() {
        if known.contains(&one.word) || own[..at].iter().any(|other| other.word == one.word) {
            return Err(Refused::Word(one.word));
        }
    }
    REGISTERED.set(own).map_err(|_| Refused::Late)
}

/// The registered families.
pub(crate) fn registered() -> &'static [&'static Registration] {
    REGISTERED.get_or_init(Vec::new)
}

/// Why families are not registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is another family of this word.
    Word(&'static str),
    /// Families were registered, or the first preset was parsed, before.
    Late,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Word(word) => {
                write!(f, "a policy of page replacement has the word {word} already: expected another")
            }
            Refused::Late => f.write_str("policies are registered once, before the first is named"),
        }
    }
}
