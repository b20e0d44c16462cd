//! Knobs: rules of a policy that can be changed by name, their values, and how values are parsed and printed.

use crate::error::{BadKind, BadPreset, Taken};
use crate::near::near;
use core::fmt;

/// What has knobs: a policy, whatever its type. [`With`] is it for a policy of one type.
pub trait Knobs {
    /// The knob of this index with its value, in the order in which knobs are printed; `None` beyond the
    /// last.
    fn setting(&self, index: usize) -> Option<Setting>;
    /// Sets the knob of this index to a value that [`Setting::values`] has.
    fn set(&mut self, index: usize, value: u64);
}

/// One rule of the policies `T` that can be changed by name.
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

/// A row of a table of knobs: name, description, and the field with its allowed values.
#[macro_export]
#[doc(hidden)]
macro_rules! knob_row {
    ($name:literal, $what:literal, $field:ident, $values:expr, $get:expr, $set:expr) => {
        $crate::knobs::Knob { name: $name, what: $what, values: $values, get: $get, set: $set }
    };
    ($name:literal, $what:literal, $field:ident: number $least:literal to $most:expr) => {
        $crate::knob_row!(
            $name,
            $what,
            $field,
            $crate::knobs::Values::Number($least, $most),
            |p| p.$field as u64,
            |p, v| p.$field = v as _
        )
    };
    ($name:literal, $what:literal, $field:ident: auto or $least:literal to $most:expr) => {
        $crate::knob_row!(
            $name,
            $what,
            $field,
            $crate::knobs::Values::Auto($least, $most),
            |p| p.$field.map_or($crate::knobs::AUTO, u64::from),
            |p, v| p.$field = (v != $crate::knobs::AUTO).then_some(v as _)
        )
    };
    ($name:literal, $what:literal, $field:ident: auto or positive to $most:expr) => {
        $crate::knob_row!(
            $name,
            $what,
            $field,
            $crate::knobs::Values::Auto(1, $most),
            |p| p.$field.map_or($crate::knobs::AUTO, |set: core::num::NonZeroU16| set.get().into()),
            |p, v| p.$field = core::num::NonZeroU16::new(v as u16).filter(|_| v != $crate::knobs::AUTO)
        )
    };
    ($name:literal, $what:literal, $field:ident: no or yes) => {
        $crate::knob_row!(
            $name,
            $what,
            $field,
            $crate::knobs::Values::Words(&["no", "yes"]),
            |p| p.$field as u64,
            |p, v| p.$field = v == 1
        )
    };
    ($name:literal, $what:literal, $field:ident: $type:ident [$($word:literal = $variant:ident),+]) => {
        $crate::knob_row!(
            $name,
            $what,
            $field,
            $crate::knobs::Values::Words(&[$($word),+]),
            |p| [$($type::$variant),+].iter().position(|value| *value == p.$field).unwrap_or(0) as u64,
            |p, v| p.$field = [$($type::$variant),+][v as usize]
        )
    };
    ($name:literal, $what:literal, $field:ident: milliseconds to $most:literal) => {
        $crate::knob_row!(
            $name,
            $what,
            $field,
            $crate::knobs::Values::Number(0, $most),
            |p| p.$field / 1_000_000,
            |p, v| p.$field = v * 1_000_000
        )
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
    /// Bytes up to this number, written with K or M for larger units.
    Bytes(u64),
    /// A set of these letters, or `off`. Bit `n` of the value is letter `n`.
    Letters(&'static str),
}

/// The value of a knob that leaves the choice to the policy's rule.
pub const AUTO: u64 = u64::MAX;

/// One policy of a preset: a knob and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// Prints the values as lists of knobs show them.
impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Values::Number(least, most) => write!(f, "{least}..{most}"),
            Values::Auto(least, most) => write!(f, "auto, {least}..{most}"),
            Values::Words(words) => {
                let mut bar = "";
                words.iter().try_for_each(|word| write!(f, "{}{word}", core::mem::replace(&mut bar, "|")))
            }
            Values::Bytes(most) => write!(f, "bytes, as 64K or 1M, at most {}M", most >> 20),
            Values::Letters(letters) => write!(f, "off, letters of {letters}"),
        }
    }
}

impl Setting {
    /// Reads a value of this knob.
    ///
    /// # Errors
    /// The value, with what the knob takes.
    pub fn read<'a>(&self, value: &'a str) -> Result<u64, BadPreset<'a>> {
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

/// A policy with the table of its knobs.
#[derive(Debug)]
pub struct With<T: 'static>(pub T, pub &'static [Knob<T>]);

impl<T> Knobs for With<T> {
    fn setting(&self, index: usize) -> Option<Setting> {
        Some(self.1.get(index)?.setting(&self.0))
    }

    fn set(&mut self, index: usize, value: u64) {
        (self.1[index].set)(&mut self.0, value);
    }
}

/// Nothing, which has no knobs.
impl Knobs for () {
    fn setting(&self, _index: usize) -> Option<Setting> {
        None
    }

    fn set(&mut self, index: usize, _value: u64) {
        panic!("there is no knob {index}");
    }
}

/// The most knobs of a policy that is kept without its type.
pub const KNOBS_MAX: usize = 12;

/// The value of each knob of a policy, without the policy's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Erased([u64; KNOBS_MAX]);

impl Erased {
    /// The values of a policy. `knobs` are all it has, at most [`KNOBS_MAX`].
    pub fn of<T>(policy: &T, knobs: &[Knob<T>]) -> Erased {
        let mut values = [0; KNOBS_MAX];
        values.iter_mut().zip(knobs).for_each(|(value, knob)| *value = (knob.get)(policy));
        Erased(values)
    }

    /// The policy of these values, made from a preset of its type.
    pub fn policy<T>(&self, mut preset: T, knobs: &[Knob<T>]) -> T {
        knobs.iter().zip(self.0).for_each(|(knob, value)| (knob.set)(&mut preset, value));
        preset
    }

    /// Sets the knob of this index to a value that it allows.
    pub fn set(&mut self, index: usize, value: u64) {
        self.0[index] = value;
    }
}
