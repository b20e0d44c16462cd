//! The grammar `name[@release][,knob=value]...`: split, set, printed.

use crate::error::{BadKind, BadPreset};
use crate::knobs::{Knobs, Setting};
use crate::near::near;
use core::fmt;

/// A choice as it is written, in its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// The name: all before the first `@` or comma.
    pub name: &'a str,
    /// The release: what is between the first `@` and the first comma. `None` without an `@`.
    pub release: Option<&'a str>,
    rest: &'a str,
}

impl<'a> Text<'a> {
    /// Splits a text. Every text has parts; whether they are known is for others to say.
    pub fn split(text: &'a str) -> Text<'a> {
        let (head, rest) = text.split_once(',').unwrap_or((text, ""));
        let (name, release) = head.split_once('@').map_or((head, None), |(name, at)| (name, Some(at)));
        Text { name, release, rest }
    }

    /// What follows the head, between commas: `knob=value`, or a word. Empty parts are left out.
    pub fn parts(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.rest.split(',').filter(|part| !part.is_empty())
    }
}

/// Sets the knob of a part, `knob=value`, in the first of `sets` that has it. `words` may stand in a text
/// too: they are suggested for a knob that is not known.
///
/// # Errors
/// The unknown knob or value, with the nearest names; a word with a value.
pub fn change<'a>(
    part: &'a str,
    sets: &mut [&mut dyn Knobs],
    words: &[&'static str],
) -> Result<(), BadPreset<'a>> {
    let (name, value) = part.split_once('=').unwrap_or((part, ""));
    for set in sets.iter_mut() {
        let found = settings(*set).enumerate().find(|(_, setting)| setting.name == name);
        if let Some((index, setting)) = found {
            set.set(index, setting.read(value)?);
            return Ok(());
        }
    }
    if words.contains(&name) {
        return Err(BadPreset { kind: BadKind::Word, given: name, nearest: [""; 3] });
    }
    let names = sets.iter().flat_map(|set| settings(*set)).map(|setting| setting.name);
    let nearest = near(name, names.chain(words.iter().copied()));
    Err(BadPreset { kind: BadKind::Knob, given: name, nearest })
}

/// Whether `name` is what `pattern` asks for: the same, or with a `*` at the pattern's end a name that begins
/// so.
pub fn is_called(name: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => name == pattern,
    }
}

/// Prints the knobs that differ from the preset's as the grammar accepts them: `,knob=value`, in their order.
///
/// # Errors
/// As the formatter.
pub fn print_changed(f: &mut fmt::Formatter<'_>, own: &dyn Knobs, preset: &dyn Knobs) -> fmt::Result {
    let mut both = settings(own).zip(settings(preset));
    both.try_for_each(|(own, preset)| match own.value == preset.value {
        true => Ok(()),
        false => write!(f, ",{}={own}", own.name),
    })
}

fn settings(of: &dyn Knobs) -> impl Iterator<Item = Setting> {
    (0..).map_while(|index| of.setting(index))
}
