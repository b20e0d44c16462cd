//! Policies that can be changed by name: knobs, their values, and how values are parsed and printed.

use crate::release::{Release, ZoneReclaimMode};
use core::fmt;

/// A set of policies with knobs that can be named.
pub trait Policy: Copy + PartialEq + 'static {
    /// The engine's name in the grammar.
    const ENGINE: &'static str;
    /// The presets, oldest first.
    const PRESETS: &'static [Self];
    /// The knobs, in the order in which they are printed.
    const KNOBS: &'static [Knob<Self>];
    /// The release of these policies.
    fn release(&self) -> Release;
    /// What the administrator set `zone_reclaim_mode` to.
    fn zone_reclaim(&self) -> ZoneReclaimMode;
    /// A value that needs another knob's value, which that does not have.
    fn lacks(&self) -> Option<Needs> {
        None
    }
}

/// One policy that can be changed by name.
#[derive(Debug)]
pub struct Knob<T> {
    /// The name in the grammar.
    pub name: &'static str,
    /// A description in one line, with its source.
    pub what: &'static str,
    /// The allowed values.
    pub values: Values,
    /// Its value: a number, or an index into the words.
    pub get: fn(&T) -> u64,
    /// Sets the value.
    pub set: fn(&mut T, u64),
}

/// A row of an engine's table of knobs: name, description, and the field with its allowed values.
#[macro_export]
#[doc(hidden)]
macro_rules! knob_row {
    ($name:literal, $what:literal, $field:ident, $values:expr, $get:expr, $set:expr) => {
        $crate::knob::Knob { name: $name, what: $what, values: $values, get: $get, set: $set }
    };
    ($name:literal, $what:literal, $field:ident: number $least:literal to $most:expr) => {
        $crate::knob_row!(
            $name,
            $what,
            $field,
            $crate::knob::Values::Number($least, $most),
            |p| p.$field as u64,
            |p, v| p.$field = v as _
        )
    };
    ($name:literal, $what:literal, $field:ident: auto or $least:literal to $most:expr) => {
        $crate::knob_row!(
            $name,
            $what,
            $field,
            $crate::knob::Values::Auto($least, $most),
            |p| p.$field.map_or($crate::knob::AUTO, u64::from),
            |p, v| p.$field = (v != $crate::knob::AUTO).then_some(v as _)
        )
    };
    ($name:literal, $what:literal, $field:ident: no or yes) => {
        $crate::knob_row!(
            $name,
            $what,
            $field,
            $crate::knob::Values::Words(&["no", "yes"]),
            |p| p.$field as u64,
            |p, v| p.$field = v == 1
        )
    };
    ($name:literal, $what:literal, $field:ident: $type:ident [$($word:literal = $variant:ident),+]) => {
        $crate::knob_row!(
            $name,
            $what,
            $field,
            $crate::knob::Values::Words(&[$($word),+]),
            |p| [$($type::$variant),+].iter().position(|value| *value == p.$field).unwrap_or(0) as u64,
            |p, v| p.$field = [$($type::$variant),+][v as usize]
        )
    };
    ($name:literal, $what:literal, $field:ident: milliseconds to $most:literal) => {
        $crate::knob_row!(
            $name,
            $what,
            $field,
            $crate::knob::Values::Number(0, $most),
            |p| p.$field / 1_000_000,
            |p, v| p.$field = v * 1_000_000
        )
    };
}
pub use knob_row as knob;

/// The values of a knob.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// A number from the first to the second, both included.
    Number(u64, u64),
    /// One of these words; the value is its index.
    Words(&'static [&'static str]),
    /// `auto`, or a number from the first to the second; `auto` is [`AUTO`].
    Auto(u64, u64),
    /// Bytes up to this number, written with K or M for larger units.
    Bytes(u64),
    /// A set of these letters, or `off`. Bit `n` of the value is letter `n`.
    Letters(&'static str),
}

/// The value of a knob that leaves the choice to the engine's rule.
pub const AUTO: u64 = u64::MAX;

/// One policy of a preset: a knob and its value.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The name in the grammar.
    pub name: &'static str,
    /// A description in one line, with its source.
    pub what: &'static str,
    /// The allowed values.
    pub values: Values,
    /// Its value: a number, [`AUTO`], or an index into the words.
    pub value: u64,
}

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
    /// No such engine.
    Engine,
    /// Not a release, or older than the oldest preset.
    Release,
    /// No such knob.
    Knob,
    /// The knob does not take this value.
    Value(Taken),
    /// The knob's value needs another knob's.
    Needs(Needs),
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

impl<T> Knob<T> {
    /// The current value in `of`.
    pub fn setting(&self, of: &T) -> Setting {
        Setting { name: self.name, what: self.what, values: self.values, value: (self.get)(of) }
    }
}

/// Prints the value as the grammar accepts it.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.values {
            Values::Words(words) => f.write_str(words[self.value as usize]),
            Values::Auto(..) if self.value == AUTO => f.write_str("auto"),
            Values::Bytes(_) => match self.value {
                value if value > 0 && value.is_multiple_of(1 << 20) => write!(f, "{}M", value >> 20),
                value if value > 0 && value.is_multiple_of(1 << 10) => write!(f, "{}K", value >> 10),
                value => write!(f, "{value}"),
            },
            Values::Letters(_) if self.value == 0 => f.write_str("off"),
            Values::Letters(letters) => {
                let mut given = letters.chars().enumerate().filter(|(index, _)| self.value >> index & 1 == 1);
                given.try_for_each(|(_, letter)| write!(f, "{letter}"))
            }
            Values::Number(..) | Values::Auto(..) => write!(f, "{}", self.value),
        }
    }
}

/// Knobs of the wrappers around an engine.
pub(crate) trait Around {
    /// Sets the knob `name` from the text `value`; `None` if there is no such knob.
    fn set<'a>(&mut self, _name: &str, _value: &'a str) -> Option<Result<(), BadPreset<'a>>> {
        None
    }
    /// The names of all knobs.
    fn names(&self) -> &'static [&'static str] {
        &[]
    }
}

/// No wrapper, and no knobs.
impl Around for () {}

impl<T> Knob<T> {
    pub(crate) fn read<'a>(&self, value: &'a str) -> Result<u64, BadPreset<'a>> {
        let auto = matches!(self.values, Values::Auto(..));
        let bad = |number, nearest| BadPreset {
            kind: BadKind::Value(Taken { knob: self.name, number, auto }),
            given: value,
            nearest,
        };
        match self.values {
            Values::Words(words) => words
                .iter()
                .position(|word| *word == value)
                .map(|index| index as u64)
                .ok_or_else(|| bad(None, near(value, words.iter().copied()))),
            Values::Auto(..) if value == "auto" => Ok(AUTO),
            Values::Bytes(most) => {
                let (number, unit) = match value.strip_suffix(['K', 'k']) {
                    Some(number) => (number, 10),
                    None => value.strip_suffix(['M', 'm']).map_or((value, 0), |number| (number, 20)),
                };
                let number =
                    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse::<u64>().ok());
                let bytes = number.flatten().and_then(|number| number.checked_mul(1 << unit));
                bytes.filter(|bytes| *bytes <= most).ok_or_else(|| bad(Some((0, most)), [""; 3]))
            }
            Values::Letters(_) if value == "off" => Ok(0),
            Values::Letters(letters) => {
                let bit = |given: char| letters.find(given.to_ascii_uppercase()).map(|index| 1 << index);
                let bits = value.chars().try_fold(0, |bits, given| Some(bits | bit(given)?));
                bits.filter(|bits| *bits > 0).ok_or_else(|| bad(None, [letters, "off", ""]))
            }
            Values::Number(least, most) | Values::Auto(least, most) => value
                .bytes()
                .all(|byte| byte.is_ascii_digit())
                .then(|| value.parse().ok())
                .flatten()
                .filter(|number| (least..=most).contains(number))
                .ok_or_else(|| bad(Some((least, most)), [""; 3])),
        }
    }
}

/// The newest preset that is not newer than `release`.
pub(crate) fn newest_not_newer<T: Policy>(release: Release) -> Option<T> {
    T::PRESETS.iter().rev().find(|preset| preset.release() <= release).copied()
}

/// The preset of a release, and the values of knobs after it. `around` has further knobs.
pub(crate) fn assemble<'a, T: Policy>(
    release: Option<&'a str>,
    knobs: &'a str,
    around: &mut dyn Around,
) -> Result<T, BadPreset<'a>> {
    let mut policy = match release {
        None => *T::PRESETS.last().expect("every engine has a preset"),
        Some(text) => Release::parse(text).and_then(newest_not_newer::<T>).ok_or(BadPreset {
            kind: BadKind::Release,
            given: text,
            nearest: [""; 3],
        })?,
    };
    for setting in knobs.split(',').filter(|setting| !setting.is_empty()) {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        if let Some(taken) = around.set(name, value) {
            taken?;
            continue;
        }
        let names = T::KNOBS.iter().map(|knob| knob.name).chain(around.names().iter().copied());
        let knob = T::KNOBS.iter().find(|knob| knob.name == name).ok_or_else(|| BadPreset {
            kind: BadKind::Knob,
            given: name,
            nearest: near(name, names),
        })?;
        (knob.set)(&mut policy, knob.read(value)?);
    }
    if let Some(needs) = policy.lacks() {
        return Err(BadPreset { kind: BadKind::Needs(needs), given: needs.value, nearest: [""; 3] });
    }
    Ok(policy)
}

impl fmt::Display for BadPreset<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            BadKind::Engine => write!(f, "no engine is called `{}`", self.given)?,
            BadKind::Release => {
                return write!(f, "`{}` is no release that has a preset (see `slablab engines`)", self.given);
            }
            BadKind::Needs(Needs { knob, value, needs }) => {
                return write!(f, "{knob}=`{value}`: expected {needs} with it");
            }
            BadKind::Knob => write!(f, "no knob is called `{}`", self.given)?,
            BadKind::Value(Taken { knob, number: Some((least, most)), auto }) => {
                let auto = if auto { "`auto` or " } else { "" };
                return write!(f, "{knob}=`{}`: expected {auto}a number from {least} to {most}", self.given);
            }
            BadKind::Value(Taken { knob, number: None, .. }) => {
                write!(f, "{knob}=`{}` is not known", self.given)?
            }
        }
        let mut word = "; near it: ";
        for name in self.nearest.iter().filter(|name| !name.is_empty()) {
            write!(f, "{word}{name}")?;
            word = ", ";
        }
        Ok(())
    }
}

/// The three names with the fewest edits from `given`.
pub(crate) fn near(given: &str, names: impl Iterator<Item = &'static str>) -> [&'static str; 3] {
    let mut best = [(usize::MAX, ""); 3];
    for name in names {
        let mut candidate = (edits(given, name), name);
        for place in &mut best {
            if candidate.0 < place.0 {
                core::mem::swap(place, &mut candidate);
            }
        }
    }
    best.map(|(_, name)| name)
}

/// Levenshtein's distance of the first 32 bytes.
fn edits(a: &str, b: &str) -> usize {
    const LONGEST: usize = 32;
    let (a, b) = (&a.as_bytes()[..a.len().min(LONGEST)], &b.as_bytes()[..b.len().min(LONGEST)]);
    let mut row: [usize; LONGEST + 1] = core::array::from_fn(|index| index);
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
