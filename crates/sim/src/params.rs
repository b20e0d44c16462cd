//! Parameters of programs: what each one is, may be and sets, written once.
//!
//! ```text
//! params! { groups: u32 = [2, 10, 400], 1..=10_000, "groups of senders", "sched-messaging.c: 10"; }
//!   ── the struct's field, its default for each size, its limits, its help, and its row for experiments
//! ```
//!
//! A field is the parameter: a name with a typing error does not compile, nor does a default beyond its
//! limits. A row that several programs have is a constant, and their fields name it.

use crate::recorded::Recorded;
use slablab_model::disk::Disk;
use std::marker::PhantomData;
use std::sync::Arc;

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
    /// The disk that a parameter names.
    fn disk(&self, name: &str) -> Disk;
    /// The recording that a parameter names, or why it cannot be read.
    fn recording(&self, name: &str) -> File;
}

/// A recording that was read, or why it cannot be.
pub type File = Result<Arc<Recorded>, String>;

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

    fn disk(&self, name: &str) -> Disk {
        panic!("{name}: no disk is known here: experiments have disks by their names")
    }

    fn recording(&self, name: &str) -> File {
        Err(format!("{name}: no recording is named"))
    }
}

/// A type of a field that says what its parameter may be.
pub trait Typed {
    /// What the parameter may be.
    const KIND: Kind;
}

/// A type of a field of which each value is one of the parameter's words.
pub trait Word: Typed {
    /// The parameter's word.
    fn word(self) -> &'static str;
}

/// A type of a field.
pub trait Field: Sized {
    /// The largest number that it holds; 0: it is no number.
    const MOST: u64 = 0;

    /// The value of the parameter of this name.
    fn read(values: &dyn Given, name: &str) -> Self;
}

impl Field for u16 {
    const MOST: u64 = u16::MAX as u64;

    fn read(values: &dyn Given, name: &str) -> u16 {
        u16::try_from(values.number(name)).expect("a row's limits fit its type")
    }
}

impl Field for u32 {
    const MOST: u64 = u32::MAX as u64;

    fn read(values: &dyn Given, name: &str) -> u32 {
        u32::try_from(values.number(name)).expect("a row's limits fit its type")
    }
}

impl Field for u64 {
    const MOST: u64 = u64::MAX;

    fn read(values: &dyn Given, name: &str) -> u64 {
        values.number(name)
    }
}

/// Of a parameter with the words `yes` and `no`.
impl Field for bool {
    fn read(values: &dyn Given, name: &str) -> bool {
        values.word(name) == "yes"
    }
}

/// Of a parameter whose words are names of disks.
impl Field for Disk {
    fn read(values: &dyn Given, name: &str) -> Disk {
        values.disk(name)
    }
}

impl Field for File {
    fn read(values: &dyn Given, name: &str) -> File {
        values.recording(name)
    }
}

impl Typed for File {
    const KIND: Kind = Kind::File;
}

/// Whether each row's defaults are inside of its limits, and its limits inside of the field's type, which
/// holds at most so much ([`Field::MOST`]). The macro asks for it when it is compiled.
pub const fn fit(rows: &[Parameter], most_of_types: &[u64]) -> bool {
    let mut at = 0;
    while at < rows.len() {
        let fits = match rows[at].kind {
            Kind::Number { least, most, defaults: [quick, standard, full] } => {
                most <= most_of_types[at]
                    && least <= quick
                    && quick <= most
                    && least <= standard
                    && standard <= most
                    && least <= full
                    && full <= most
            }
            Kind::Word(_) | Kind::File => most_of_types[at] == 0,
        };
        if !fits {
            return false;
        }
        at += 1;
    }
    true
}

/// A row that several programs have, of a field with this name. The macro asks for it when it is compiled.
pub const fn shared(field: &str, row: Parameter) -> Parameter {
    let (field, name) = (field.as_bytes(), row.name.as_bytes());
    let mut at = 0;
    while at < field.len() && at < name.len() && field[at] == name[at] {
        at += 1;
    }
    assert!(at == field.len() && at == name.len(), "a field has the row of another parameter");
    row
}

/// The struct of a program's parameters, with their rows.
///
/// | row | parameter |
/// |---|---|
/// | `NAME: TYPE = [QUICK, STANDARD, FULL], LEAST..=MOST, ABOUT, SOURCE;` | a number; one default for all sizes |
/// | `NAME: TYPE = "FIRST" \| "OTHER", ABOUT, SOURCE;` | one of these words, the first by default |
/// | `NAME: TYPE, ABOUT, SOURCE;` | what the type says ([`Typed`]) |
/// | `NAME: TYPE = ROW;` | the constant `ROW`, a [`Parameter`] of this name that several programs have |
macro_rules! params {
    ($(#[$doc:meta])* $vis:vis struct $name:ident { $(
        $field:ident: $ty:ty
            $(= [$($default:literal),+], $least:literal..=$most:literal)?
            $(= $word:literal $(| $other:literal)*)?
            $(= $shared:path)?
            $(, $about:literal, $source:literal)?;
    )+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $name { $(
            #[doc = concat!("The parameter `", stringify!($field), "`" $(, ": ", $about)?, ".")]
            $vis $field: $ty,
        )+ }

        impl $crate::params::Params for $name {
            const ROWS: &'static [$crate::params::Parameter] = &[$(
                $crate::params::params!(@row $field $ty;
                    $([$($default),+], $least, $most;)?
                    $($word $(| $other)*;)?
                    $(= $shared;)?
                    $($about, $source)?
                ),
            )+];

            fn read(values: &dyn $crate::params::Given) -> Self {
                $name { $($field: $crate::params::Field::read(values, stringify!($field)),)+ }
            }
        }

        const _: () = assert!(
            $crate::params::fit(
                <$name as $crate::params::Params>::ROWS,
                &[$(<$ty as $crate::params::Field>::MOST),+]
            ),
            "a default is outside of its limits, or these outside of the field's type"
        );

        impl Default for $name {
            /// The parameters of a standard run.
            fn default() -> Self {
                <$name as $crate::params::Params>::sized($crate::params::Size::Standard)
            }
        }
    };
    (@row $field:ident $ty:ty; [$all:literal], $least:literal, $most:literal;
        $about:literal, $source:literal) => {
        $crate::params::params!(@row $field $ty; [$all, $all, $all], $least, $most; $about, $source)
    };
    (@row $field:ident $ty:ty; [$($default:literal),+], $least:literal, $most:literal;
        $about:literal, $source:literal) => {
        $crate::params::Parameter {
            name: stringify!($field),
            about: $about,
            source: $source,
            kind: $crate::params::Kind::Number { least: $least, most: $most, defaults: [$($default),+] },
        }
    };
    (@row $field:ident $ty:ty; $word:literal $(| $other:literal)*; $about:literal, $source:literal) => {
        $crate::params::Parameter {
            name: stringify!($field),
            about: $about,
            source: $source,
            kind: $crate::params::Kind::Word(&[$word $(, $other)*]),
        }
    };
    (@row $field:ident $ty:ty; = $shared:path;) => {
        $crate::params::shared(stringify!($field), $shared)
    };
    (@row $field:ident $ty:ty; $about:literal, $source:literal) => {
        $crate::params::Parameter {
            name: stringify!($field),
            about: $about,
            source: $source,
            kind: <$ty as $crate::params::Typed>::KIND,
        }
    };
}

/// The words of an enum of which each value is a parameter's word; the first is the default.
macro_rules! words {
    ($name:ident { $first:ident = $first_word:literal $(, $value:ident = $word:literal)* $(,)? }) => {
        impl $crate::params::Word for $name {
            fn word(self) -> &'static str {
                match self {
                    $name::$first => $first_word,
                    $($name::$value => $word,)*
                }
            }
        }

        impl $crate::params::Typed for $name {
            const KIND: $crate::params::Kind = $crate::params::Kind::Word(&[$first_word $(, $word)*]);
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

    const BYTES: Parameter = Parameter {
        name: "bytes",
        about: "bytes of a message",
        source: "assumed",
        kind: Kind::Number { least: 1, most: 65_536, defaults: [100; 3] },
    };

    params! {
        /// Parameters of a test.
        #[derive(Copy, Eq)]
        struct Test {
            groups: u32 = [2, 10, 400], 1..=10_000, "groups", "assumed";
            bytes: u64 = BYTES;
            over: Over, "what messages go over", "assumed";
            copies: bool = "no" | "yes", "whether they are copied", "assumed";
        }
    }

    struct Pipes;

    impl Given for Pipes {
        fn number(&self, name: &str) -> u64 {
            name.len() as u64
        }

        fn word(&self, name: &str) -> &str {
            if name == "over" { "pipes" } else { "yes" }
        }

        fn disk(&self, name: &str) -> Disk {
            panic!("{name} is no disk")
        }

        fn recording(&self, name: &str) -> File {
            Err(name.into())
        }
    }

    #[test]
    fn a_struct_is_read_by_the_names_of_its_fields() {
        let rows: Vec<&str> = Test::ROWS.iter().map(|row| row.name).collect();
        assert_eq!(rows, ["groups", "bytes", "over", "copies"]);
        assert_eq!(Test::read(&Pipes), Test { groups: 6, bytes: 5, over: Over::Pipes, copies: true });
        let sized = [Size::Quick, Size::Standard, Size::Full].map(Test::sized);
        let of = |groups| Test { groups, bytes: 100, over: Over::Sockets, copies: false };
        assert_eq!(sized, [of(2), of(10), of(400)]);
        assert_eq!(Test::default(), of(10));
        assert!(matches!(Test::ROWS[2].kind, Kind::Word(["sockets", "pipes"])));
        assert!(matches!(Test::ROWS[3].kind, Kind::Word(["no", "yes"])));
        assert_eq!([Over::Sockets, Over::Pipes].map(Over::word), ["sockets", "pipes"]);
        assert!(matches!(<File as Typed>::KIND, Kind::File));
        let number = |most, defaults| {
            let kind = Kind::Number { least: 1, most, defaults };
            fit(&[Parameter { kind, ..Test::ROWS[0] }], &[u16::MAX.into()])
        };
        assert!(number(5, [1, 5, 5]) && !number(5, [1, 5, 6]) && !number(65_536, [1; 3]));
        assert!(fit(&Test::ROWS[2..], &[0, 0]) && !fit(&Test::ROWS[2..], &[1, 0]));
    }
}
