//! Configurations of a kernel: ours, or a user's with what an image needs.

use super::allocator::Allocator;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What every image needs.
const NEEDED: &str = include_str!("../../kconfig/needed.config");

/// What every image gets if its release has it.
const OPTIONAL: &str = include_str!("../../kconfig/optional.config");

/// What is added to a tree's tinyconfig.
const BASE: &str = include_str!("../../kconfig/base.config");

/// All of these texts.
pub(super) const TEXTS: [&str; 3] = [NEEDED, OPTIONAL, BASE];

/// The value of an option that is not set.
const OFF: &str = "n";

/// An option of a user's configuration that the image's configuration has with another value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Its name, without `CONFIG_`.
    pub option: String,
    /// The user's value; `n` if it was not set.
    pub user_value: String,
    /// The image's value.
    pub image_value: String,
    /// Whether an image needs this value. If not, the change follows from others.
    pub needed: bool,
}

/// Options by name, without `CONFIG_`.
pub(super) type Options = BTreeMap<String, String>;

/// The options of a `.config`. An option that is not set is `n`.
pub(super) fn parse(text: &str) -> Options {
    text.lines().filter_map(option).map(|(name, value)| (name.into(), value.into())).collect()
}

/// The option of a line.
fn option(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    match line.strip_prefix("# CONFIG_") {
        Some(rest) => Some((rest.strip_suffix(" is not set")?, OFF)),
        None => line.strip_prefix("CONFIG_")?.split_once('='),
    }
}

/// What is asked of a configuration.
pub(super) struct Wanted {
    needed: Options,
    optional: Options,
}

impl Wanted {
    /// What an image of `allocator` needs. `is_ours`: the configuration starts from the tree's tinyconfig.
    pub(super) fn of(allocator: Allocator, is_ours: bool) -> Wanted {
        let mut needed = parse(NEEDED);
        let mut optional = parse(OPTIONAL);
        optional.extend(if is_ours { parse(BASE) } else { Options::new() });
        needed.extend(allocator.options().map(|(name, value)| (name.into(), value.into())));
        // In some releases it is this option that a user sets.
        if allocator != Allocator::Slub {
            optional.insert(format!("{}_DEPRECATED", allocator.title()), "y".into());
        }
        Wanted { needed, optional }
    }

    /// A `.config` with these options in the place of its own: input for `make olddefconfig`.
    pub(super) fn put_into(&self, config: &str) -> String {
        let ours = || self.optional.iter().chain(&self.needed);
        let keeps = |line: &&str| {
            option(line)
                .is_none_or(|(name, _)| !self.needed.contains_key(name) && !self.optional.contains_key(name))
        };
        let mut text: String = config.lines().filter(keeps).flat_map(|line| [line, "\n"]).collect();
        for (name, value) in ours() {
            text += &match value.as_str() {
                OFF => format!("# CONFIG_{name} is not set\n"),
                value => format!("CONFIG_{name}={value}\n"),
            };
        }
        text
    }

    /// Checks a whole configuration.
    ///
    /// # Errors
    /// The first option without the value that an image needs, in words.
    pub(super) fn check(&self, whole: &Options) -> Result<(), String> {
        let value = |name: &str| whole.get(name).map_or(OFF, String::as_str);
        let Some((name, wanted)) = self.needed.iter().find(|(name, wanted)| value(name) != wanted.as_str())
        else {
            return Ok(());
        };
        let other = Allocator::ALL.into_iter().find(|one| value(one.title()) == "y");
        let reason = match (name.as_str(), other) {
            ("KCSAN", _) => ", which needs gcc 11 or clang 14".into(),
            ("SLUB" | "SLAB" | "SLOB", Some(other)) => {
                format!(": the configuration chooses {}", other.title())
            }
            _ if whole.contains_key(name) => String::new(),
            _ => ": the tree does not have it, or something that it depends on is off".into(),
        };
        Err(format!("expected CONFIG_{name}={wanted}, found {}{reason}", value(name)))
    }

    /// What of a user's configuration is another value in the whole one. Options that the user's has not are
    /// those of a newer release, unless an image needs them.
    pub(super) fn changes(&self, user: &Options, whole: &Options) -> Vec<Change> {
        let value = |options: &Options, name: &str| options.get(name).map_or(OFF, String::as_str).to_string();
        let is_ours = |name: &String| self.needed.contains_key(name) || self.optional.contains_key(name);
        let ours = self.needed.keys().chain(self.optional.keys());
        // Answers of Kconfig's about the compiler and the tools are no choices of a user.
        let is_choice = |name: &&String| {
            !["CC_", "AS_", "LD_", "GCC_", "CLANG_", "HAVE_", "ARCH_", "RUSTC_", "PAHOLE_", "TOOLS_"]
                .iter()
                .any(|start| name.starts_with(start))
        };
        let others = user.keys().filter(|name| !is_ours(name)).filter(is_choice);
        let change = |(name, needed): (&String, bool)| {
            let (user_value, image_value) = (value(user, name), value(whole, name));
            let is_change = user_value != image_value;
            is_change.then(|| Change { option: name.clone(), user_value, image_value, needed })
        };
        ours.map(|name| (name, true)).chain(others.map(|name| (name, false))).filter_map(change).collect()
    }
}

/// Options that one architecture has, and its name.
const ARCHITECTURES: [(&str, &str); 12] = [
    ("ALPHA", "alpha"),
    ("ARM", "arm"),
    ("ARM64", "arm64"),
    ("LOONGARCH", "loongarch"),
    ("M68K", "m68k"),
    ("MIPS", "mips"),
    ("PARISC", "parisc"),
    ("PPC", "powerpc"),
    ("RISCV", "riscv"),
    ("S390", "s390"),
    ("SPARC", "sparc"),
    ("X86", "x86"),
];

/// The architecture that the first lines of a whole `.config` name, as in `# Linux/x86 6.1.192 Kernel
/// Configuration`; of a part of one, that of its options.
pub(super) fn architecture(text: &str) -> Option<&str> {
    let titles = text.lines().take(8).filter_map(|line| line.strip_prefix("# Linux/"));
    let named =
        titles.filter_map(|title| title.strip_suffix(" Kernel Configuration")?.split(' ').next()).next();
    let of_option = || {
        let chosen = text.lines().filter_map(option).filter(|(_, value)| *value == "y");
        chosen
            .flat_map(|(name, _)| ARCHITECTURES.into_iter().find(|one| one.0 == name))
            .map(|one| one.1)
            .next()
    };
    named.or_else(of_option)
}

/// The allocator that a configuration chooses.
pub(super) fn allocator_of(options: &Options) -> Option<Allocator> {
    Allocator::ALL.into_iter().find(|one| options.get(one.title()).is_some_and(|value| value == "y"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_names_its_architecture() {
        let check = |text: &str, expected: Option<&str>| assert_eq!(architecture(text), expected, "{text}");
        check("#\n# Linux/x86 6.1.192 Kernel Configuration\n#\nCONFIG_SLUB=y\n", Some("x86"));
        check("#\n# Linux/arm64 7.2.13 Kernel Configuration\n#\n", Some("arm64"));
        check("CONFIG_SLUB=y\nCONFIG_ARM64=y\n", Some("arm64"));
        check("# CONFIG_ARM64 is not set\nCONFIG_SLAB=y\n", None);
        check("CONFIG_X86_64=y\nCONFIG_X86=y\n", Some("x86"));
    }

    #[test]
    fn options_are_read_and_written() {
        let wanted = Wanted::of(Allocator::Slub, false);
        let user = "CONFIG_SMP=y\n# CONFIG_NUMA is not set\nCONFIG_NR_CPUS=64\nCONFIG_KASAN=y\n# A comment\n";
        let text = wanted.put_into(user);
        let options = parse(&text);
        let check = |name: &str, value: &str| {
            assert_eq!(options.get(name).map(String::as_str), Some(value), "{name}")
        };
        check("NUMA", "y");
        check("KASAN", "n");
        check("NR_CPUS", "64");
        check("SLUB", "y");
        check("SLAB", "n");
        assert_eq!(text.matches("CONFIG_NUMA").count(), 1, "{text}");
        assert_eq!(wanted.check(&options), Ok(()));
        let changes = wanted.changes(&parse(user), &options);
        let change = |name: &str| changes.iter().find(|change| change.option == name);
        assert_eq!(
            change("KASAN").map(|change| (change.user_value.as_str(), change.needed)),
            Some(("y", true))
        );
        assert_eq!((change("SMP"), change("NR_CPUS")), (None, None));
    }

    #[test]
    fn a_wrong_value_is_named() {
        let wanted = Wanted::of(Allocator::Slub, true);
        let check = |change: &[(&str, &str)], expected: &str| {
            let mut options = wanted.needed.clone();
            options.extend(change.iter().map(|(name, value)| ((*name).into(), (*value).into())));
            assert_eq!(wanted.check(&options), Err(expected.into()));
        };
        check(
            &[("SLUB", "n"), ("SLAB", "y")],
            "expected CONFIG_SLAB=n, found y: the configuration chooses SLAB",
        );
        check(&[("KCSAN", "n")], "expected CONFIG_KCSAN=y, found n, which needs gcc 11 or clang 14");
        check(&[("NUMA", "n")], "expected CONFIG_NUMA=y, found n");
        let mut options = wanted.needed.clone();
        options.remove("XEN_PV");
        let what = "expected CONFIG_XEN_PV=y, found n: the tree does not have it, or something that it depends on is off";
        assert_eq!(wanted.check(&options), Err(what.into()));
    }
}
