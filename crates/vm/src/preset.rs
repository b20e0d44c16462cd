//! The grammar `vm[@release][,word][,knob=value]...` and the table of presets.
//!
//! `vm@6.1,swappiness=200` is the preset of 6.1 with one choice changed; `vm@6.1,lru_gen` is the other policy
//! of that kernel. A release between presets takes the newest that is not newer; a kernel's own release
//! string (`6.12.117+deb12`) is valid. The names of 2.4's presets are exact, as their patches differ. Without
//! a release: the newest preset. Printing a parsed preset and parsing what was printed are inverse.

use crate::cache_ext::{lhd, mru, s3fifo, stride};
use crate::classic::{Choices as ClassicChoices, Classic};
use crate::generations::{Generations, Rules as GenerationRules};
use crate::knob::{self, BadKind, BadPreset, Knob, Knobs, Policy, Setting, knob};
use crate::reclaim::switch::Switch;
use crate::registered::{Refused, Registered, Registration, register as register_among, registered};
use crate::settings::Settings;
use crate::split::Choices as SplitChoices;
use crate::v24;
use crate::vm::Replacement;
use slablab_choices::{Release, Text, change, near, newest_not_newer, print_changed};
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

        /// All presets, family by family.
        fn presets() -> Vec<Preset> {
            let mut all = Vec::new();
            $(all.extend(<$choices>::PRESETS.iter().map(|preset| preset.map(Policies::$family)));)+
            let own = registered().iter().flat_map(|own| own.presets());
            all.extend(own.map(|preset| preset.map(Policies::Registered)));
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

families!(
    Classic: ClassicChoices,
    Generations: GenerationRules,
    Split: SplitChoices,
    V24: v24::Choices,
    S3Fifo: s3fifo::Choices,
    Lhd: lhd::Choices,
    Mru: mru::Choices,
    Stride: stride::Choices,
);

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

/// A preset with its choices.
pub type Preset = knob::Preset<Policies>;

impl Preset {
    /// Every preset there is, oldest first; of one release, the usual one first.
    pub fn all() -> Vec<Preset> {
        let mut all = presets();
        all.sort_by_key(|preset| preset.kernel);
        all
    }

    /// Parses `vm[@release][,word][,knob=value]...`.
    ///
    /// # Errors
    /// The unknown release, knob or value, with the nearest names.
    pub fn parse(text: &str) -> Result<Preset, BadPreset<'_>> {
        let text = Text::split(text);
        if text.name != "vm" {
            let kind = BadKind::Name("policy of page replacement");
            return Err(BadPreset { kind, given: text.name, nearest: ["vm", "", ""] });
        }
        let words: Vec<_> = presets().iter().map(|preset| preset.policies.word()).collect();
        let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let word = words.iter().find(|word| text.parts().any(|part| part == **word)).unwrap_or(&"");
        let mut preset = preset(text.release, word)?;
        let knobs = text.parts().filter(|part| part != word);
        knobs.into_iter().try_for_each(|part| change(part, &mut [&mut preset], &words))?;
        Ok(preset)
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

    /// As [`Preset::policy`], and generations can be turned on and off: the other policy is that of the same
    /// kernel. `None`: the kernel has one of them, or the policy is none of a kernel.
    pub fn switchable(&self) -> Option<Box<dyn Replacement>> {
        let all = presets();
        let mut policies = all.iter().filter(|other| other.kernel == self.kernel).map(|other| other.policies);
        let name = self.to_string();
        let (rules, choices, is_on) = match self.policies {
            Policies::Generations(rules) => {
                let classic = |of| if let Policies::Classic(choices) = of { Some(choices) } else { None };
                (rules, policies.find_map(classic)?, true)
            }
            Policies::Classic(choices) => {
                let generations = |of| if let Policies::Generations(rules) = of { Some(rules) } else { None };
                (policies.find_map(generations)?, choices, false)
            }
            _ => return None,
        };
        let generations = Generations::new(rules, name.clone());
        Some(Box::new(Switch::new(generations, Classic::new(choices, name.clone()), is_on, name)))
    }
}

impl Knobs for Preset {
    fn setting(&self, index: usize) -> Option<Setting> {
        Preset::setting(self, index)
    }

    fn set(&mut self, index: usize, value: u64) {
        Preset::set(self, index, value);
    }
}

/// The preset of a release and a word.
fn preset<'a>(release: Option<&'a str>, word: &str) -> Result<Preset, BadPreset<'a>> {
    let ours = || Preset::all().into_iter().filter(|preset| preset.policies.word() == word);
    let Some(given) = release else { return Ok(ours().next_back().expect("a family has a preset")) };
    if let Some(preset) = ours().find(|preset| preset.release == given) {
        return Ok(preset);
    }
    // Presets that are named by their kernel's numbers stand for the releases from them on.
    let of = |preset: &Preset| numbers(preset.release);
    let named = ours().filter(|preset| of(preset).is_some_and(|release| kernel(release) == preset.kernel));
    let found = numbers(given)
        .and_then(|release| newest_not_newer(named, |preset| of(preset).expect("named by numbers"), release));
    found.ok_or_else(|| {
        let nearest = near(given, ours().map(|preset| preset.release));
        BadPreset { kind: BadKind::Release("slablab list vm"), given, nearest }
    })
}

/// The release of a text. `None` for one of 2.x with more than numbers: 2.4's patched kernels differ.
fn numbers(text: &str) -> Option<Release> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    Release::parse(text).filter(|release| release.major != 2 || is_plain)
}

fn kernel(Release { major, minor, patch }: Release) -> [u32; 3] {
    [major, minor, patch].map(u32::from)
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.policies.word();
        let usual = preset(Some(self.release), word).expect("it is a preset");
        write!(f, "vm@{}", self.release)?;
        if !word.is_empty() {
            write!(f, ",{word}")?;
        }
        print_changed(f, self, &usual)
    }
}
