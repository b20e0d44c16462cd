//! Parameters of programs: what each one is, may be and sets, written once.
//!
//! ```text
//! params! { groups: u32 = [2, 10, 400], 1..=10_000, "groups of senders", "sched-messaging.c: 10"; }
//!   ── the struct's field, its default for each size, its limits, its help, and its row for experiments
//! ```
//!
//! A field is the parameter: a name with a typing error does not compile, nor does a default beyond its
//! limits.

use std::marker::PhantomData;

/// How long a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Size {
    /// Seconds for a whole experiment.
    Quick,
    /// What an experiment takes if it does not say.
    #[default]
    Standard,
    /// As long as the real program.
    Full,
}

impl Size {
    /// The names in files.
    pub const NAMES: [(&'static str, Size); 3] =
        [("quick", Size::Quick), ("standard", Size::Standard), ("full", Size::Full)];

    /// The name in files.
    pub fn name(self) -> &'static str {
        Size::NAMES[self as usize].0
    }
}

/// A parameter of a program.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name in files, with the unit.
    pub name: &'static str,
    /// What it sets.
    pub about: &'static str,
    /// Where its default is from; `assumed` if no document says it.
    pub source: &'static str,
    /// What it may be.
    pub kind: Kind,
}

/// What a parameter may be.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A whole number from `least` to `most`, with a default for each [`Size`].
    Number {
        /// The smallest.
        least: u64,
        /// The largest.
        most: u64,
        /// Defaults for quick, standard and full runs.
        defaults: [u64; 3],
    },
    /// One of these words, the first by default.
    Word(&'static [&'static str]),
    /// A recording in the experiment's folder; an experiment has to name it.
    File,
}

/// The values of an experiment's cell, by the names of parameters.
pub trait Given {
    /// The number of a parameter, inside of its limits.
    fn number(&self, name: &str) -> u64;
    /// The word of a parameter, one of its words.
    fn word(&self, name: &str) -> &str;
}

/// The parameters of a program.
pub trait Params: Sized {
    /// Each of them, in the order of the struct.
    const ROWS: &'static [Parameter];

    /// Those of a cell.
    fn read(values: &dyn Given) -> Self;

    /// The defaults of a size.
    fn sized(size: Size) -> Self {
        Self::read(&Defaults::<Self> { size, of: PhantomData })
    }
}

/// The defaults of a size, as values.
struct Defaults<P> {
    size: Size,
    of: PhantomData<P>,
}

impl<P: Params> Defaults<P> {
    fn kind(name: &str) -> Kind {
        let row = P::ROWS.iter().find(|row| row.name == name);
        row.expect("a field asks for its own row").kind
    }
}

impl<P: Params> Given for Defaults<P> {
    fn number(&self, name: &str) -> u64 {
        match Self::kind(name) {
            Kind::Number { defaults, .. } => defaults[self.size as usize],
            kind => unreachable!("{name} is a number: {kind:?}"),
        }
    }

    fn word(&self, name: &str) -> &str {
        match Self::kind(name) {
            Kind::Word(words) => words[0],
            kind => unreachable!("{name} is a word: {kind:?}"),
        }
    }
}

/// A type of a field that a word sets.
pub trait Word: Sized {
    /// The words; the first is the default.
    const WORDS: &'static [&'static str];
}

/// A type of a field.
pub trait Field: Sized {
    /// The value of the parameter of this name.
    fn read(values: &dyn Given, name: &str) -> Self;
}

impl Field for u32 {
    fn read(values: &dyn Given, name: &str) -> u32 {
        u32::try_from(values.number(name)).expect("the limits of a u32 are those of its row at most")
    }
}

impl Field for u64 {
    fn read(values: &dyn Given, name: &str) -> u64 {
        values.number(name)
    }
}

/// Whether defaults are inside of their limits. The macro asks for it when it is compiled.
pub const fn are_inside(rows: &[Parameter]) -> bool {
    let mut at = 0;
    while at < rows.len() {
        if let Kind::Number { least, most, defaults: [quick, standard, full] } = rows[at].kind {
            let inside = least <= quick && quick <= most && least <= standard && standard <= most;
            if !inside || full < least || full > most {
                return false;
            }
        }
        at += 1;
    }
    true
}

/// The struct of a program's parameters, with their rows.
///
/// `NAME: TYPE = [QUICK, STANDARD, FULL], LEAST..=MOST, ABOUT, SOURCE;` is a number, of which one default
/// stands for all sizes; `NAME: TYPE, ABOUT, SOURCE;` is a [`Word`].
macro_rules! params {
    ($(#[$doc:meta])* $vis:vis struct $name:ident { $(
        $field:ident: $ty:ty $(= [$($default:literal),+], $least:literal..=$most:literal)?, $about:literal,
        $source:literal;
    )+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis struct $name { $(
            #[doc = concat!("The parameter `", stringify!($field), "`: ", $about, ".")]
            $vis $field: $ty,
        )+ }

        impl $crate::params::Params for $name {
            const ROWS: &'static [$crate::params::Parameter] = &[$(
                $crate::params::Parameter {
                    name: stringify!($field),
                    about: $about,
                    source: $source,
                    kind: $crate::params::params!(@kind $ty $(, [$($default),+], $least, $most)?),
                },
            )+];

            fn read(values: &dyn $crate::params::Given) -> Self {
                $name { $($field: $crate::params::Field::read(values, stringify!($field)),)+ }
            }
        }

        const _: () = assert!(
            $crate::params::are_inside(<$name as $crate::params::Params>::ROWS),
            "a default is outside of its limits"
        );

        impl Default for $name {
            /// The parameters of a standard run.
            fn default() -> Self {
                <$name as $crate::params::Params>::sized($crate::params::Size::Standard)
            }
        }
    };
    (@kind $ty:ty) => {
        $crate::params::Kind::Word(<$ty as $crate::params::Word>::WORDS)
    };
    (@kind $ty:ty, [$all:literal], $least:literal, $most:literal) => {
        $crate::params::params!(@kind $ty, [$all, $all, $all], $least, $most)
    };
    (@kind $ty:ty, [$quick:literal, $standard:literal, $full:literal], $least:literal, $most:literal) => {
        $crate::params::Kind::Number {
            least: $least,
            most: $most,
            defaults: [$quick, $standard, $full],
        }
    };
}

/// The words of an enum of which each value is a parameter's word; the first is the default.
macro_rules! words {
    ($name:ident { $first:ident = $first_word:literal $(, $value:ident = $word:literal)* $(,)? }) => {
        impl $crate::params::Word for $name {
            const WORDS: &'static [&'static str] = &[$first_word $(, $word)*];
        }

        impl $crate::params::Field for $name {
            fn read(values: &dyn $crate::params::Given, name: &str) -> Self {
                match values.word(name) {
                    $($word => $name::$value,)*
                    _ => $name::$first,
                }
            }
        }
    };
}

pub(crate) use {params, words};

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Over {
        Sockets,
        Pipes,
    }

    words! { Over { Sockets = "sockets", Pipes = "pipes" } }

    params! {
        /// Parameters of a test.
        struct Test {
            groups: u32 = [2, 10, 400], 1..=10_000, "groups", "assumed";
            bytes: u64 = [100], 1..=65_536, "bytes of a message", "assumed";
            over: Over, "what messages go over", "assumed";
        }
    }

    struct Pipes;

    impl Given for Pipes {
        fn number(&self, name: &str) -> u64 {
            name.len() as u64
        }

        fn word(&self, _name: &str) -> &str {
            "pipes"
        }
    }

    #[test]
    fn a_struct_is_read_by_the_names_of_its_fields() {
        let rows: Vec<&str> = Test::ROWS.iter().map(|row| row.name).collect();
        assert_eq!(rows, ["groups", "bytes", "over"]);
        assert_eq!(Test::read(&Pipes), Test { groups: 6, bytes: 5, over: Over::Pipes });
        let sized = [Size::Quick, Size::Standard, Size::Full].map(Test::sized);
        let of = |groups| Test { groups, bytes: 100, over: Over::Sockets };
        assert_eq!(sized, [of(2), of(10), of(400)]);
        assert_eq!(Test::default(), of(10));
        assert!(matches!(Test::ROWS[2].kind, Kind::Word(["sockets", "pipes"])));
        let outside =
            Parameter { kind: Kind::Number { least: 1, most: 5, defaults: [1, 5, 6] }, ..Test::ROWS[0] };
        assert!(are_inside(Test::ROWS) && !are_inside(&[outside]));
    }
}
