//! The grammar `vm[@release][,word][,knob=value]...` and the table of presets.
//!
//! `vm@6.1,swappiness=200` is the preset of 6.1 with one choice changed; `vm@6.1,lru_gen` is the other policy
//! of that kernel. A release between presets takes the newest that is not newer; a kernel's own release
//! string (`6.12.117+deb12`) is valid. The names of 2.4's columns are exact, as their patches differ. Without
//! a release: the newest preset. Printing a parsed preset and parsing what was printed are inverse.

use crate::classic::Choices as ClassicChoices;
use crate::generations::Rules as GenerationRules;
use crate::knob::{BadKind, BadPreset, Knob, Policy, Setting, knob, near};
use crate::registered::{Refused, Registered, Registration, register as register_among, registered};
use crate::settings::Settings;
use crate::split::Choices as SplitChoices;
use crate::v24;
use crate::vm::Replacement;
use std::fmt;

/// The families: a builder adds a row here, and nothing else.
macro_rules! families {
    ($($family:ident: $choices:ty),+ $(,)?) => {
        /// The policies of a preset.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Policies {
            $(
                #[doc = concat!("Those of `", stringify!($family), "`.")]
                $family($choices),
            )+
            /// Those of a registered family.
            Registered(Registered),
        }

        /// All columns, family by family.
        fn columns() -> Vec<Preset> {
            let mut all = Vec::new();
            $(all.extend(<$choices>::COLUMNS.iter().map(|column| Preset {
                release: column.release,
                kernel: column.kernel,
                what: column.what,
                settings: column.settings,
                policies: Policies::$family(column.policies),
            }));)+
            all.extend(registered().iter().flat_map(|own| own.columns()).map(|column| Preset {
                release: column.release,
                kernel: column.kernel,
                what: column.what,
                settings: column.settings,
                policies: Policies::Registered(column.policies),
            }));
            all
        }

        /// The words of the families of this crate.
        const WORDS: [&str; [$(stringify!($family)),+].len()] = [$(<$choices>::WORD),+];

        impl Policies {
            fn family(&self) -> &'static str {
                match self {
                    $(Policies::$family(_) => stringify!($family),)+
                    Policies::Registered(own) => own.word(),
                }
            }

            fn word(&self) -> &'static str {
                match self {
                    $(Policies::$family(_) => <$choices>::WORD,)+
                    Policies::Registered(own) => own.word(),
                }
            }

            fn setting(&self, index: usize) -> Option<Setting> {
                match self {
                    $(Policies::$family(own) => <$choices>::KNOBS.get(index).map(|knob| knob.setting(own)),)+
                    Policies::Registered(own) => own.setting(index),
                }
            }

            fn set(&mut self, index: usize, value: u64) {
                match self {
                    $(Policies::$family(own) => (<$choices>::KNOBS[index].set)(own, value),)+
                    Policies::Registered(own) => own.set(index, value),
                }
            }

            fn build(self, name: String) -> Box<dyn Replacement> {
                match self {
                    $(Policies::$family(own) => own.build(name),)+
                    Policies::Registered(own) => own.build(name),
                }
            }
        }
    };
}

families!(Classic: ClassicChoices, Generations: GenerationRules, Split: SplitChoices, V24: v24::Choices);

/// What every family has, beside its own knobs: the administrator's settings.
const SETTINGS: &[Knob<Settings>] = &[
    knob!("swappiness", "how readily anonymous pages are reclaimed", swappiness: number 0 to 200),
    knob!("page_cluster", "pages of a read from swap, as a power of two", page_cluster: number 0 to 5),
    knob!(
        "vfs_cache_pressure",
        "how readily dentries and inodes are reclaimed, in percent",
        vfs_cache_pressure: number 0 to 10000
    ),
    knob!(
        "zone_reclaim_mode",
        "pages reclaimed before another node is asked: 1 clean, 2 dirty, 4 mapped ones; auto: by distance",
        zone_reclaim_mode: auto or 0 to 7
    ),
    knob!(
        "min_unmapped_ratio",
        "percent of a node that pages of files keep from zone_reclaim_mode",
        min_unmapped_ratio: number 0 to 100
    ),
    knob!(
        "min_slab_ratio",
        "percent of a node that reclaimable slabs keep from zone_reclaim_mode",
        min_slab_ratio: number 0 to 100
    ),
];

/// Registers the families of policies that this program has beside those of this crate: once, before the
/// first preset is parsed.
///
/// # Errors
/// A word that is given twice or is that of another family; it is too late.
pub fn register(own: Vec<&'static Registration>) -> Result<(), Refused> {
    register_among(own, &WORDS)
}

/// A column with its choices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset {
    /// The column's name, behind `vm@`.
    pub release: &'static str,
    /// The kernel whose rules hold for page allocator (`PagesPolicy::for_release`), page cache and files.
    pub kernel: [u32; 3],
    /// The column in one line.
    pub what: &'static str,
    /// The administrator's settings.
    pub settings: Settings,
    policies: Policies,
}

impl Preset {
    /// Every preset there is, oldest first; of one release, the usual one first.
    pub fn all() -> Vec<Preset> {
        let mut all = columns();
        all.sort_by_key(|preset| preset.kernel);
        all
    }

    /// Parses `vm[@release][,word][,knob=value]...`.
    ///
    /// # Errors
    /// The unknown release, knob or value, with the nearest names.
    pub fn parse(text: &str) -> Result<Preset, BadPreset> {
        let mut parts = text.split(',');
        let head = parts.next().unwrap_or_default();
        let (name, release) = head.split_once('@').map_or((head, None), |(name, at)| (name, Some(at)));
        if name != "vm" {
            return Err(BadPreset { kind: BadKind::Name, given: name.into(), nearest: Vec::new() });
        }
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        let words =
            || columns().into_iter().map(|preset| preset.policies.word()).filter(|word| !word.is_empty());
        let word = words().find(|word| parts.contains(word)).unwrap_or_default();
        let mut preset = column(release, word)?;
        parts.into_iter().filter(|part| *part != word).try_for_each(|part| preset.change(part))?;
        Ok(preset)
    }

    fn change(&mut self, part: &str) -> Result<(), BadPreset> {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let found = self.settings().enumerate().find(|(_, setting)| setting.name == name);
        let Some((index, setting)) = found else {
            let words = columns().into_iter().map(|preset| preset.policies.word());
            let names =
                self.settings().map(|setting| setting.name).chain(words.filter(|word| !word.is_empty()));
            let nearest = near(name, names);
            return Err(BadPreset { kind: BadKind::Knob, given: name.into(), nearest });
        };
        self.set(index, setting.read(value)?);
        Ok(())
    }

    /// The policies' family: presets of one family have the same knobs.
    pub fn family(&self) -> &'static str {
        self.policies.family()
    }

    /// The choices, in the order in which they are printed: the administrator's settings, the family's knobs.
    pub fn settings(&self) -> impl Iterator<Item = Setting> + use<> {
        let preset = *self;
        (0..).map_while(move |index| preset.setting(index))
    }

    /// The choice of this index; `None` beyond the last.
    pub fn setting(&self, index: usize) -> Option<Setting> {
        match SETTINGS.get(index) {
            Some(knob) => Some(knob.setting(&self.settings)),
            None => self.policies.setting(index - SETTINGS.len()),
        }
    }

    /// Sets the choice of this index to a value that [`Setting::values`] has.
    ///
    /// # Panics
    /// If there is no such choice or value.
    pub fn set(&mut self, index: usize, value: u64) {
        match SETTINGS.get(index) {
            Some(knob) => (knob.set)(&mut self.settings, value),
            None => self.policies.set(index - SETTINGS.len(), value),
        }
    }

    /// A new policy of these choices.
    pub fn policy(&self) -> Box<dyn Replacement> {
        self.policies.build(self.to_string())
    }
}

/// The column of a release and a word.
fn column(release: Option<&str>, word: &str) -> Result<Preset, BadPreset> {
    let ours = || Preset::all().into_iter().filter(|preset| preset.policies.word() == word);
    let Some(text) = release else { return Ok(ours().next_back().expect("a family has a column")) };
    if let Some(preset) = ours().find(|preset| preset.release == text) {
        return Ok(preset);
    }
    let unknown = || {
        let nearest = near(text, ours().map(|preset| preset.release));
        BadPreset { kind: BadKind::Release, given: text.into(), nearest }
    };
    let kernel = numbers(text).ok_or_else(unknown)?;
    // Columns that are named by their numbers stand for the releases from them on.
    let is_plain = |preset: &Preset| numbers(preset.release) == Some(preset.kernel);
    ours().rfind(|preset| is_plain(preset) && preset.kernel <= kernel).ok_or_else(unknown)
}

/// The leading numbers of a kernel's release. `None` for a name that its numbers do not tell.
fn numbers(text: &str) -> Option<[u32; 3]> {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let mut numbers = [0; 3];
    for (place, number) in text[..end].trim_end_matches('.').split('.').take(3).enumerate() {
        numbers[place] = number.parse().ok()?;
    }
    let is_patched = numbers[0] == 2 && end < text.len();
    (!is_patched).then_some(numbers)
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.policies.word();
        let usual = column(Some(self.release), word).expect("a preset has a column");
        write!(f, "vm@{}", self.release)?;
        if !word.is_empty() {
            write!(f, ",{word}")?;
        }
        let changed = self.settings().zip(usual.settings()).filter(|(own, usual)| own.value != usual.value);
        changed.into_iter().try_for_each(|(own, _)| write!(f, ",{}={own}", own.name))
    }
}
