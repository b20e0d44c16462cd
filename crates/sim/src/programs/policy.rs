//! A policy of page replacement as a parameter of a program: `vm@RELEASE`, with its kernel if that is another
//! one's.

use crate::params::{Field, Given};
use slablab_vm::preset::Preset;

/// What a preset and a kernel are joined by, where the kernel is not the preset's.
const ON: &str = " on ";

/// A policy as a word; with its kernel, if that is another one's: a policy between two others has choices of
/// both.
pub fn word_of(preset: &Preset) -> String {
    let own = Preset::parse(&preset.to_string()).expect("what is printed can be parsed");
    let [major, minor, patch] = preset.kernel;
    match own.kernel == preset.kernel {
        true => preset.to_string(),
        false => format!("{preset}{ON}{major}.{minor}.{patch}"),
    }
}

/// The policy that [`word_of`] prints.
fn policy(word: &str) -> Option<Preset> {
    let (preset, kernel) = word.split_once(ON).map_or((word, None), |(preset, on)| (preset, Some(on)));
    let mut preset = Preset::parse(preset).ok()?;
    if let Some(kernel) = kernel {
        let numbers: Option<Vec<u32>> = kernel.split('.').map(|number| number.parse().ok()).collect();
        preset.kernel = numbers?.try_into().ok()?;
    }
    Some(preset)
}

/// Of a parameter whose words are presets.
impl Field for Preset {
    fn read(values: &dyn Given, name: &str) -> Preset {
        policy(values.word(name)).expect("the words are presets")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_of_another_kernel_is_its_word() {
        let mut other = Preset::parse("vm@2.4.10,slots=until-full").expect("a preset");
        assert_eq!(word_of(&other), "vm@2.4.10,slots=until-full");
        other.kernel = [2, 4, 9];
        let word = word_of(&other);
        assert_eq!((word.as_str(), policy(&word)), ("vm@2.4.10,slots=until-full on 2.4.9", Some(other)));
    }
}
