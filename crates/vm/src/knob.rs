//! Policies that can be changed by name: knobs, their values, and how values are parsed and printed. The
//! grammar is that of the slab engines' presets.

use crate::settings::Settings;
use crate::vm::Replacement;
use std::fmt;

/// A family of policies: one implementation of [`Replacement`] with knobs, and its columns.
pub trait Policy: Copy + PartialEq + 'static {
    /// The word that chooses this family among those of a release, as `lru_gen`; empty: the usual one.
    const WORD: &'static str = "";
    /// The presets, oldest first.
    const COLUMNS: &'static [Column<Self>];
    /// The knobs, in the order in which they are printed.
    const KNOBS: &'static [Knob<Self>];
    /// The policy under this name.
    fn build(self, name: String) -> Box<dyn Replacement>;
}

/// A preset: what a kernel had.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column<T> {
    /// The name behind `vm@`.
    pub release: &'static str,
    /// The kernel whose rules hold for page allocator, page cache and files.
    pub kernel: [u32; 3],
    /// The column in one line.
    pub what: &'static str,
    /// What the administrator found set.
    pub settings: Settings,
    /// The policies.
    pub policies: T,
}

/// One policy that can be changed by name.
#[derive(Debug)]
pub struct Knob<T> {
    /// The name in the grammar.
    pub name: &'static str,
    /// A description in one line.
    pub what: &'static str,
    /// The allowed values.
    pub values: Values,
    /// Its value: a number, or an index into the words.
    pub get: fn(&T) -> u64,
    /// Sets the value.
    pub set: fn(&mut T, u64),
}

/// A row of a table of knobs: name, description, and the field with its allowed values.
#[macro_export]
#[doc(hidden)]
macro_rules! knob_row {
    ($name:literal, $what:literal, $field:ident: number $least:literal to $most:expr) => {
        $crate::knob::Knob {
            name: $name,
            what: $what,
            values: $crate::knob::Values::Number($least, $most),
            get: |p| p.$field as u64,
            set: |p, v| p.$field = v as _,
        }
    };
    ($name:literal, $what:literal, $field:ident: auto or $least:literal to $most:expr) => {
        $crate::knob::Knob {
            name: $name,
            what: $what,
            values: $crate::knob::Values::Auto($least, $most),
            get: |p| p.$field.map_or($crate::knob::AUTO, u64::from),
            set: |p, v| p.$field = (v != $crate::knob::AUTO).then_some(v as _),
        }
    };
    ($name:literal, $what:literal, $field:ident: no or yes) => {
        $crate::knob::Knob {
            name: $name,
            what: $what,
            values: $crate::knob::Values::Words(&["no", "yes"]),
            get: |p| p.$field as u64,
            set: |p, v| p.$field = v == 1,
        }
    };
    ($name:literal, $what:literal, $field:ident: $type:ident [$($word:literal = $variant:ident),+]) => {
        $crate::knob::Knob {
            name: $name,
            what: $what,
            values: $crate::knob::Values::Words(&[$($word),+]),
            get: |p| [$($type::$variant),+].iter().position(|value| *value == p.$field).unwrap_or(0) as u64,
            set: |p, v| p.$field = [$($type::$variant),+][v as usize],
        }
    };
}
pub use knob_row as knob;

/// The values of a knob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// A number from the first to the second, both included.
    Number(u64, u64),
    /// One of these words; the value is its index.
    Words(&'static [&'static str]),
    /// `auto`, or a number from the first to the second; `auto` is [`AUTO`].
    Auto(u64, u64),
}

/// The value of a knob that leaves the choice to the policy's rule.
pub const AUTO: u64 = u64::MAX;

/// One policy of a preset: a knob and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name in the grammar.
    pub name: &'static str,
    /// A description in one line.
    pub what: &'static str,
    /// The allowed values.
    pub values: Values,
    /// Its value: a number, [`AUTO`], or an index into the words.
    pub value: u64,
}

/// Prints the value as the grammar accepts it.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.values {
            Values::Words(words) => f.write_str(words[self.value as usize]),
            Values::Auto(..) if self.value == AUTO => f.write_str("auto"),
            Values::Number(..) | Values::Auto(..) => write!(f, "{}", self.value),
        }
    }
}

impl<T> Knob<T> {
    /// The current value in `of`.
    pub fn setting(&self, of: &T) -> Setting {
        Setting { name: self.name, what: self.what, values: self.values, value: (self.get)(of) }
    }
}

impl Setting {
    /// Reads a value of this knob.
    pub(crate) fn read(&self, value: &str) -> Result<u64, BadPreset> {
        let bad = |nearest| BadPreset { kind: BadKind::Value(*self), given: value.into(), nearest };
        let number = value.bytes().all(|byte| byte.is_ascii_digit()).then(|| value.parse().ok()).flatten();
        match self.values {
            Values::Words(words) => {
                let at = words.iter().position(|word| *word == value);
                at.map(|index| index as u64).ok_or_else(|| bad(near(value, words.iter().copied())))
            }
            Values::Auto(..) if value == "auto" => Ok(AUTO),
            Values::Number(least, most) | Values::Auto(least, most) => {
                number.filter(|number| (least..=most).contains(number)).ok_or_else(|| bad(Vec::new()))
            }
        }
    }
}

/// A preset that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPreset {
    /// The kind of the unknown word.
    pub kind: BadKind,
    /// The unknown word.
    pub given: String,
    /// The nearest names, best first.
    pub nearest: Vec<&'static str>,
}

/// Kinds of things in the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadKind {
    /// It does not begin with `vm`.
    Name,
    /// No such column, or older than the oldest.
    Release,
    /// No such knob.
    Knob,
    /// This knob does not take the value.
    Value(Setting),
}

impl fmt::Display for BadPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given = &self.given;
        match self.kind {
            BadKind::Name => write!(f, "`{given}` is no policy of replacement; expected vm@RELEASE")?,
            BadKind::Release => write!(f, "`{given}` is no release that has a preset")?,
            BadKind::Knob => write!(f, "no knob is called `{given}`")?,
            BadKind::Value(Setting { name, values, .. }) => match values {
                Values::Words(_) => write!(f, "{name}=`{given}` is not known")?,
                Values::Number(least, most) => {
                    write!(f, "{name}=`{given}`: expected a number from {least} to {most}")?;
                }
                Values::Auto(least, most) => {
                    write!(f, "{name}=`{given}`: expected `auto` or a number from {least} to {most}")?;
                }
            },
        }
        let near = self.nearest.join(", ");
        if near.is_empty() { Ok(()) } else { write!(f, "; near it: {near}") }
    }
}

impl std::error::Error for BadPreset {}

/// The three names with the fewest edits from `given`.
pub(crate) fn near(given: &str, names: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let mut all: Vec<_> = names.map(|name| (edits(given, name), name)).collect();
    all.sort_by_key(|(edits, _)| *edits);
    all.dedup();
    all.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Levenshtein's distance.
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
