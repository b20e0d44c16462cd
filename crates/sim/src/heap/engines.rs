//! Registered engines: which there are in this program, and the choice of an engine by name.
//!
//! A program registers its engines once, before it parses the first name. They are a static, because names
//! of engines are parsed in many places: arguments, files of experiments, folders of results.

use slablab_slabs::Preset;
use slablab_slabs::knob::BadPreset;
use slablab_slabs::preset::{Choice, ENGINES};
use slablab_slabs::registered::Registration;
use std::fmt;
use std::sync::OnceLock;

static REGISTERED: OnceLock<Vec<&'static Registration>> = OnceLock::new();

/// Why engines are not registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is another engine of this name.
    Name(&'static str),
    /// Engines were registered, or the first name was parsed, before.
    Late,
}

/// Registers the engines that this program has beside those of `slablab_slabs`.
///
/// # Errors
/// A name that is given twice or is that of another engine; it is too late.
pub fn register(own: Vec<&'static Registration>) -> Result<(), Refused> {
    for (at, one) in own.iter().enumerate() {
        let is_taken =
            |name: &str| ENGINES.contains(&name) || own[..at].iter().any(|other| other.engine() == name);
        if is_taken(one.engine()) {
            return Err(Refused::Name(one.engine()));
        }
    }
    REGISTERED.set(own).map_err(|_| Refused::Late)
}

/// The registered engines.
pub fn registered() -> &'static [&'static Registration] {
    REGISTERED.get_or_init(Vec::new)
}

/// [`Preset::parse`], with the registered engines.
///
/// # Errors
/// As [`Preset::parse`].
pub fn parse(text: &str) -> Result<Preset, BadPreset<'_>> {
    Preset::parse_among(text, registered())
}

/// [`Choice::parse`], with the registered engines.
///
/// # Errors
/// As [`Choice::parse`].
pub fn parse_choice(text: &str) -> Result<Choice, BadPreset<'_>> {
    Choice::parse_among(text, registered())
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Name(name) => write!(f, "an engine is called {name} already: expected another name"),
            Refused::Late => f.write_str("engines are registered once, before the first is named"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slablab_slabs::engines::slob::SlobPolicy;

    #[test]
    fn names_are_of_one_engine() {
        // SLOB's own policies: the engine's name is taken.
        static SLOB: Registration = Registration::new::<SlobPolicy>(&[]);
        assert_eq!(register(vec![&SLOB]), Err(Refused::Name("slob")));
        assert!(Refused::Name("slob").to_string().contains("slob already"));
    }
}
