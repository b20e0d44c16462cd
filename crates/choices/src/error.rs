//! What can be wrong with a text of the grammar.

use core::error::Error;
use core::fmt;

/// A preset that cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPreset<'a> {
    /// The kind of the unknown word.
    pub kind: BadKind,
    /// The unknown word.
    pub given: &'a str,
    /// The nearest names, best first; `""` if there are fewer than three.
    pub nearest: [&'static str; 3],
}

/// Kinds of things in the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadKind {
    /// Nothing of this kind ("engine") has the name.
    Name(&'static str),
    /// Not a release, or older than the oldest preset. The command that lists presets.
    Release(&'static str),
    /// No such knob.
    Knob,
    /// A word that takes no value has one.
    Word,
    /// The knob does not take this value.
    Value(Taken),
    /// The knob's value needs another knob's.
    Needs(Needs),
    /// What was looked for by name was not found: why, and what was expected.
    Found(&'static str),
}

/// The allowed values of a knob, for the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The knob.
    pub knob: &'static str,
    /// Bounds of a number, if the knob takes a number.
    pub number: Option<(u64, u64)>,
    /// Whether the knob takes `auto` as well as a number.
    pub auto: bool,
}

/// A value that needs another knob's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The knob with the value.
    pub knob: &'static str,
    /// The value.
    pub value: &'static str,
    /// The setting that it needs.
    pub needs: &'static str,
}

impl From<Needs> for BadPreset<'_> {
    fn from(needs: Needs) -> Self {
        BadPreset { kind: BadKind::Needs(needs), given: needs.value, nearest: [""; 3] }
    }
}

impl fmt::Display for BadPreset<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given = self.given;
        match self.kind {
            BadKind::Name(kind) => write!(f, "no {kind} is called `{given}`")?,
            BadKind::Release(list) => {
                write!(f, "`{given}` is no release that has a preset (see `{list}`)")?;
            }
            BadKind::Found(why) => f.write_str(why)?,
            BadKind::Needs(Needs { knob, value, needs }) => {
                write!(f, "{knob}=`{value}`: expected {needs} with it")?;
            }
            BadKind::Knob => write!(f, "no knob is called `{given}`")?,
            BadKind::Word => write!(f, "`{given}` is a word of its own: expected it without a value")?,
            BadKind::Value(Taken { knob, number: Some((least, most)), auto }) => {
                let auto = if auto { "`auto` or " } else { "" };
                write!(f, "{knob}=`{given}`: expected {auto}a number from {least} to {most}")?;
            }
            BadKind::Value(Taken { knob, number: None, .. }) => write!(f, "{knob}=`{given}` is not known")?,
        }
        let mut word = "; near it: ";
        for name in self.nearest.iter().filter(|name| !name.is_empty()) {
            write!(f, "{word}{name}")?;
            word = ", ";
        }
        Ok(())
    }
}

impl Error for BadPreset<'_> {}
