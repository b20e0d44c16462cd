//! The grammar `engine[@release][,knob=value]...` and the table of presets.
//!
//! `slub@6.1,max_order=0` is the preset of 6.1 with one policy changed. A release between presets takes the newest that is
//! not newer; a kernel's own release string (`6.12.117+deb12`) is valid. Without a release: the newest preset. Printing a
//! parsed choice and parsing what was printed are inverse.

use crate::engines::slab::SlabPolicy;
use crate::engines::slob::SlobPolicy;
use crate::engines::slqb::SlqbPolicy;
use crate::engines::slub::SlubPolicy;
use core::fmt;

/// A kernel release, or the date of a posting (year, month).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// 2 in 2.6.32, 6 in 6.1; the year of a posting.
    pub major: u16,
    /// 6 in 2.6.32, 1 in 6.1; the month of a posting.
    pub minor: u16,
    /// 32 in 2.6.32, 0 in 6.1.
    pub patch: u16,
}

impl Release {
    /// A release by its numbers.
    pub const fn new(major: u16, minor: u16, patch: u16) -> Release {
        Release { major, minor, patch }
    }

    /// Reads the leading numbers of a release string; what follows them is a distribution's own.
    pub fn parse(text: &str) -> Option<Release> {
        let mut numbers = [0u16; 3];
        let mut rest = text;
        for (place, number) in numbers.iter_mut().enumerate() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            *number = rest.get(..digits)?.parse().ok()?;
            rest = &rest[digits..];
            match rest.as_bytes().first() {
                Some(b'.' | b'-') if rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit) => {
                    // 6.1.0-50-amd64: a dash after a kernel's number ends it; after a year it is a date.
                    match rest.starts_with('-') && *number < 1000 {
                        true if place == 0 => return None,
                        true => break,
                        false => {}
                    }
                    rest = &rest[1..];
                }
                _ if place == 0 => return None,
                _ => break,
            }
        }
        Some(Release { major: numbers[0], minor: numbers[1], patch: numbers[2] })
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.major, self.patch) {
            (1000.., _) => write!(f, "{}-{:02}", self.major, self.minor),
            (2, patch) => write!(f, "2.{}.{patch}", self.minor),
            (major, 0) => write!(f, "{major}.{}", self.minor),
            (major, patch) => write!(f, "{major}.{}.{patch}", self.minor),
        }
    }
}

/// An engine with its policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// SLUB, with or without sheaves.
    Slub(SlubPolicy),
    /// SLQB.
    Slqb(SlqbPolicy),
    /// SLAB.
    Slab(SlabPolicy),
    /// SLOB.
    Slob(SlobPolicy),
}

/// A set of policies with knobs that can be named.
pub trait Policy: Copy + PartialEq + 'static {
    /// The engine's name in the grammar.
    const ENGINE: &'static str;
    /// The presets, oldest first.
    const PRESETS: &'static [Self];
    /// What can be changed, in the order it is printed.
    const KNOBS: &'static [Knob<Self>];
    /// The release of these policies.
    fn release(&self) -> Release;
}

/// One policy that can be changed by name.
#[derive(Debug)]
pub struct Knob<T> {
    /// The name in the grammar.
    pub name: &'static str,
    /// What it changes, in a line, and where it is from.
    pub what: &'static str,
    /// What values it takes.
    pub values: Values,
    /// Its value: a number, or an index into the words.
    pub get: fn(&T) -> u64,
    /// Sets it.
    pub set: fn(&mut T, u64),
}

/// The values of a knob.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// A number from the first to the second, inclusive.
    Number(u64, u64),
    /// One of these words; the value is its index.
    Words(&'static [&'static str]),
    /// `auto`, or a number from the first to the second; `auto` is [`AUTO`].
    Auto(u64, u64),
    /// Bytes, at most so many, with K or M behind a number of units.
    Bytes(u64),
    /// Some of these letters, or `off`; bit `n` of the value is the `n`th.
    Letters(&'static str),
}

/// The value of a knob that is left to the engine's rule.
pub const AUTO: u64 = u64::MAX;

/// One policy of a preset: a knob and its value.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The name in the grammar.
    pub name: &'static str,
    /// What it changes, in a line, and where it is from.
    pub what: &'static str,
    /// What values it takes.
    pub values: Values,
    /// Its value: a number, [`AUTO`], or an index into the words.
    pub value: u64,
}

/// A choice of engine that cannot be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPreset<'a> {
    /// What kind of thing is not known.
    pub kind: BadKind,
    /// The text that is not known.
    pub given: &'a str,
    /// The nearest names, best first; `""` where there are fewer.
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
}

/// The values a knob would have taken, for the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The knob.
    pub knob: &'static str,
    /// Bounds of a number, if it takes one.
    pub number: Option<(u64, u64)>,
    /// Whether it takes `auto` beside a number.
    pub auto: bool,
}

/// Engines in the grammar, with the aliases behind them.
pub const ENGINES: &[&str] = &["slub", "slqb", "slab", "slob", SHEAVES];
/// `sheaves@7.0` is another name of `slub@7.0`: SLUB since it has sheaves for every cache.
const SHEAVES: &str = "sheaves";
const SHEAVES_SINCE: Release = Release::new(7, 0, 0);

impl Preset {
    /// Every preset there is: the engines as they are declared, each oldest first.
    pub fn all() -> impl Iterator<Item = Preset> {
        let slub = SlubPolicy::PRESETS.iter().copied().map(Preset::Slub);
        let slqb = SlqbPolicy::PRESETS.iter().copied().map(Preset::Slqb);
        let slab = SlabPolicy::PRESETS.iter().copied().map(Preset::Slab);
        let slob = SlobPolicy::PRESETS.iter().copied().map(Preset::Slob);
        slub.chain(slqb).chain(slab).chain(slob)
    }

    /// Understands `engine[@release][,knob=value]...`.
    ///
    /// # Errors
    /// What is not known, with the nearest names.
    pub fn parse(text: &str) -> Result<Preset, BadPreset<'_>> {
        Preset::parse_around(text, &mut ())
    }

    /// The same where `around` has knobs of its own, which it takes the values of.
    pub(crate) fn parse_around<'a>(text: &'a str, around: &mut dyn Around) -> Result<Preset, BadPreset<'a>> {
        let (head, knobs) = text.split_once(',').map_or((text, ""), |(head, knobs)| (head, knobs));
        let (engine, release) = head.split_once('@').map_or((head, None), |(engine, at)| (engine, Some(at)));
        match engine {
            SlubPolicy::ENGINE => assemble(release, knobs, around).map(Preset::Slub),
            SlqbPolicy::ENGINE => assemble(release, knobs, around).map(Preset::Slqb),
            SlabPolicy::ENGINE => assemble(release, knobs, around).map(Preset::Slab),
            SlobPolicy::ENGINE => assemble(release, knobs, around).map(Preset::Slob),
            SHEAVES => match assemble::<SlubPolicy>(release, knobs, around)? {
                policy if policy.release >= SHEAVES_SINCE => Ok(Preset::Slub(policy)),
                _ => Err(BadPreset {
                    kind: BadKind::Release,
                    given: release.unwrap_or_default(),
                    nearest: [""; 3],
                }),
            },
            _ => Err(BadPreset {
                kind: BadKind::Engine,
                given: engine,
                nearest: near(engine, ENGINES.iter().copied()),
            }),
        }
    }

    /// The preset that a kernel of this release ran by default.
    pub fn of_kernel(release: Release) -> Option<Preset> {
        newest_not_newer::<SlubPolicy>(release).map(Preset::Slub)
    }

    /// The engine's name.
    pub fn engine(&self) -> &'static str {
        match self {
            Preset::Slub(_) => SlubPolicy::ENGINE,
            Preset::Slqb(_) => SlqbPolicy::ENGINE,
            Preset::Slab(_) => SlabPolicy::ENGINE,
            Preset::Slob(_) => SlobPolicy::ENGINE,
        }
    }

    /// The release of the preset.
    pub fn release(&self) -> Release {
        match self {
            Preset::Slub(policy) => policy.release,
            Preset::Slqb(policy) => policy.release,
            Preset::Slab(policy) => policy.release,
            Preset::Slob(policy) => policy.release,
        }
    }

    /// The policy of this index, in the order in which policies are printed; `None` beyond the last. Presets of one engine
    /// have the same policies.
    pub fn setting(&self, index: usize) -> Option<Setting> {
        match self {
            Preset::Slub(policy) => setting(policy, index),
            Preset::Slqb(policy) => setting(policy, index),
            Preset::Slab(policy) => setting(policy, index),
            Preset::Slob(policy) => setting(policy, index),
        }
    }

    /// Sets the policy of this index to a value that [`Setting::values`] has.
    ///
    /// # Panics
    /// If there is no such policy or value.
    pub fn set(&mut self, index: usize, value: u64) {
        match self {
            Preset::Slub(policy) => (SlubPolicy::KNOBS[index].set)(policy, value),
            Preset::Slqb(policy) => (SlqbPolicy::KNOBS[index].set)(policy, value),
            Preset::Slab(policy) => (SlabPolicy::KNOBS[index].set)(policy, value),
            Preset::Slob(policy) => (SlobPolicy::KNOBS[index].set)(policy, value),
        }
    }
}

fn setting<T: Policy>(policy: &T, index: usize) -> Option<Setting> {
    Some(T::KNOBS.get(index)?.setting(policy))
}

impl<T> Knob<T> {
    /// The value it has.
    pub fn setting(&self, of: &T) -> Setting {
        Setting { name: self.name, what: self.what, values: self.values, value: (self.get)(of) }
    }
}

/// The value alone, as the grammar takes it.
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

fn newest_not_newer<T: Policy>(release: Release) -> Option<T> {
    T::PRESETS.iter().rev().find(|preset| preset.release() <= release).copied()
}

/// Knobs that are no engine's: of what is put around one.
pub(crate) trait Around {
    /// Takes the value of a knob; `None` if there is no such knob.
    fn set<'a>(&mut self, _name: &str, _value: &'a str) -> Option<Result<(), BadPreset<'a>>> {
        None
    }
    /// The names of all.
    fn names(&self) -> &'static [&'static str] {
        &[]
    }
}

/// Nothing is put around it.
impl Around for () {}

fn assemble<'a, T: Policy>(
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
    Ok(policy)
}

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

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Preset::Slub(policy) => print(policy, f),
            Preset::Slqb(policy) => print(policy, f),
            Preset::Slab(policy) => print(policy, f),
            Preset::Slob(policy) => print(policy, f),
        }
    }
}

fn print<T: Policy>(policy: &T, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{}@{}", T::ENGINE, policy.release())?;
    let preset = newest_not_newer::<T>(policy.release()).expect("a policy's release is a preset's");
    let settings = |of: T| (0..).map_while(move |index| setting(&of, index));
    let changed = settings(*policy).zip(settings(preset)).filter(|(own, usual)| own.value != usual.value);
    changed.into_iter().try_for_each(|(own, _)| write!(f, ",{}={own}", own.name))
}

impl fmt::Display for BadPreset<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            BadKind::Engine => write!(f, "no engine is called `{}`", self.given)?,
            BadKind::Release => {
                return write!(f, "`{}` is no release that has a preset (see `slablab engines`)", self.given);
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

/// The three nearest names by edits needed.
fn near(given: &str, names: impl Iterator<Item = &'static str>) -> [&'static str; 3] {
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

/// Levenshtein's distance, over the first 32 bytes.
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
