//! The grammar `engine[@release][,knob=value]...` and the table of presets.
//!
//! `slub@6.1,max_order=0` is the preset of 6.1 with one policy changed. A release between presets takes the
//! newest that is not newer; a kernel's own release string (`6.12.117+deb12`) is valid. Without a release:
//! the newest preset. Printing a parsed choice and parsing what was printed are inverse.

use crate::engines::slab::SlabPolicy;
use crate::engines::slob::SlobPolicy;
use crate::engines::slqb::SlqbPolicy;
use crate::engines::slub::{FreeList, SlubPolicy};
use crate::knob::{
    BadKind, BadPreset, Knobs, Needs, Policy, Setting, With, assemble, newest_not_newer, no_preset,
};
use crate::registered::{Registered, Registration};
use crate::release::{Release, ZoneReclaimMode};
use crate::wrap::Wrap;
use core::fmt;
pub use slablab_choices::Text;
use slablab_choices::{near, print_changed};
use slablab_pages::PagesPolicy;
use slablab_pages::policy::ZoneReclaim;

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
    /// A registered engine.
    Registered(Registered),
}

/// One expression for the policy of any engine of this crate, and one for a registered engine.
macro_rules! each {
    ($preset:expr, $policy:ident: $ours:expr, $own:ident: $theirs:expr) => {
        match $preset {
            Preset::Slub($policy) => $ours,
            Preset::Slqb($policy) => $ours,
            Preset::Slab($policy) => $ours,
            Preset::Slob($policy) => $ours,
            Preset::Registered($own) => $theirs,
        }
    };
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

    /// Parses `engine[@release][,knob=value]...`.
    ///
    /// # Errors
    /// The unknown engine, release, knob or value, with the nearest names.
    pub fn parse(text: &str) -> Result<Preset, BadPreset<'_>> {
        Preset::parse_among(text, &[])
    }

    /// [`Preset::parse`] where there are also these engines.
    ///
    /// # Errors
    /// As [`Preset::parse`].
    pub fn parse_among<'a>(text: &'a str, own: &[&'static Registration]) -> Result<Preset, BadPreset<'a>> {
        Preset::parse_around(text, own, &mut ())
    }

    /// Parses `engine[@release][,knob=value]...`. `around` has further knobs, and takes their values.
    fn parse_around<'a>(
        text: &'a str,
        own: &[&'static Registration],
        around: &mut dyn Knobs,
    ) -> Result<Preset, BadPreset<'a>> {
        let text = Text::split(text);
        match text.name {
            SlubPolicy::NAME => assemble(text, around).map(Preset::Slub),
            SlqbPolicy::NAME => assemble(text, around).map(Preset::Slqb),
            SlabPolicy::NAME => assemble(text, around).map(Preset::Slab),
            SlobPolicy::NAME => assemble(text, around).map(Preset::Slob),
            SHEAVES => match assemble::<SlubPolicy>(text, around)? {
                policy if policy.release >= SHEAVES_SINCE => Ok(Preset::Slub(policy)),
                _ => Err(no_preset(text.release.unwrap_or_default())),
            },
            name => match own.iter().find(|own| own.engine() == name) {
                Some(own) => own.assemble(text, around).map(Preset::Registered),
                None => {
                    let names = ENGINES.iter().copied().chain(own.iter().map(|own| own.engine()));
                    Err(BadPreset { kind: BadKind::Name("engine"), given: name, nearest: near(name, names) })
                }
            },
        }
    }

    /// The preset that a kernel of this release ran by default.
    pub fn of_kernel(release: Release) -> Option<Preset> {
        newest_not_newer::<SlubPolicy>(release).map(Preset::Slub)
    }

    /// The engine's name.
    pub fn engine(&self) -> &'static str {
        each!(self, policy: name(policy), own: own.engine())
    }

    /// The release of the preset.
    pub fn release(&self) -> Release {
        each!(self, policy: policy.release, own: own.release())
    }

    /// The page allocator of the preset's kernel. SLQB was posted against 2.6.29 and 2.6.31.
    pub fn pages(&self) -> PagesPolicy {
        let mode = each!(self, policy: policy.zone_reclaim(), own: own.zone_reclaim());
        let usual = self.usual_pages();
        match mode {
            ZoneReclaimMode::Boot => usual,
            ZoneReclaimMode::Off => PagesPolicy { zone_reclaim: ZoneReclaim::Off, ..usual },
            ZoneReclaimMode::On => PagesPolicy { zone_reclaim: ZoneReclaim::On, ..usual },
        }
    }

    /// The preset of the same release, as it is without a knob.
    fn usual(&self) -> Preset {
        match self {
            Preset::Slub(policy) => Preset::Slub(usual(policy)),
            Preset::Slqb(policy) => Preset::Slqb(usual(policy)),
            Preset::Slab(policy) => Preset::Slab(usual(policy)),
            Preset::Slob(policy) => Preset::Slob(usual(policy)),
            Preset::Registered(own) => Preset::Registered(own.usual()),
        }
    }

    fn usual_pages(&self) -> PagesPolicy {
        match self.release() {
            posting if posting.major > 1000 => PagesPolicy::for_release(2, 6, 31),
            Release { major, minor, patch } => {
                PagesPolicy::for_release(major.into(), minor.into(), patch.into())
            }
        }
    }

    /// The policy of this index, in the order in which policies are printed; `None` beyond the last. Presets
    /// of one engine have the same policies.
    pub fn setting(&self, index: usize) -> Option<Setting> {
        each!(self, policy: setting(policy, index), own: own.setting(index))
    }

    /// Sets the policy of this index to a value that [`Setting::values`] has.
    ///
    /// # Panics
    /// If there is no such policy or value.
    pub fn set(&mut self, index: usize, value: u64) {
        each!(self, policy: set(policy, index, value), own: own.set(index, value))
    }
}

fn name<T: Policy>(_: &T) -> &'static str {
    T::NAME
}

fn set<T: Policy>(policy: &mut T, index: usize, value: u64) {
    (T::KNOBS[index].set)(policy, value);
}

fn setting<T: Policy>(policy: &T, index: usize) -> Option<Setting> {
    Some(T::KNOBS.get(index)?.setting(policy))
}

impl Knobs for Preset {
    fn setting(&self, index: usize) -> Option<Setting> {
        Preset::setting(self, index)
    }

    fn set(&mut self, index: usize, value: u64) {
        Preset::set(self, index, value);
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.engine(), self.release())?;
        if let Preset::Registered(own) = self {
            f.write_str(own.registration().attributes())?;
        }
        print_changed(f, self, &self.usual())
    }
}

/// The preset of a policy's release, as it is without a knob.
fn usual<T: Policy>(policy: &T) -> T {
    newest_not_newer(policy.release()).expect("a policy's release is a preset's")
}

/// An engine, and the wrappers around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The engine.
    pub preset: Preset,
    /// The wrappers around it.
    pub wrap: Wrap,
}

impl From<Preset> for Choice {
    fn from(preset: Preset) -> Choice {
        Choice { preset, wrap: Wrap::default() }
    }
}

impl Choice {
    /// Whether malloc's hardened profile can be around the engine: no free object has a link, and nothing
    /// else is around it.
    fn can_be_hardened(preset: &Preset, wrap: &Wrap) -> bool {
        let mut alone = Wrap::default();
        (alone.hardened, alone.shuffled, alone.zero_on_free) = (true, true, true);
        let Preset::Slub(policy) = preset else { return false };
        *wrap == alone && !policy.cpu_slab && policy.freelist != FreeList::Links
    }

    /// Parses `engine[@release][,knob=value]...` with the knobs of [`Wrap::KNOBS`] among the engine's.
    ///
    /// # Errors
    /// The unknown engine, release, knob or value, with the nearest names.
    pub fn parse(text: &str) -> Result<Choice, BadPreset<'_>> {
        Choice::parse_among(text, &[])
    }

    /// [`Choice::parse`] where there are also these engines.
    ///
    /// # Errors
    /// As [`Choice::parse`].
    pub fn parse_among<'a>(text: &'a str, own: &[&'static Registration]) -> Result<Choice, BadPreset<'a>> {
        let mut wrap = With(Wrap::default(), Wrap::KNOBS);
        let preset = Preset::parse_around(text, own, &mut wrap)?;
        let wrap = wrap.0;
        if let Preset::Slub(policy) = &preset
            && policy.freelist == FreeList::Map
            && wrap.encoded
        {
            let needs = Needs { knob: "freelist", value: "map", needs: "harden=off or harden=random" };
            return Err(needs.into());
        }
        if wrap.hardened && !Choice::can_be_hardened(&preset, &wrap) {
            let needs = Needs {
                knob: "harden",
                value: "on",
                needs: "slub from 7.0 on without freelist=links, debug=, quarantine= and init=alloc",
            };
            return Err(needs.into());
        }
        Ok(Choice { preset, wrap })
    }
}

/// As [`Choice::parse`] takes it: what is around the engine comes last.
impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.preset.fmt(f)?;
        print_changed(f, &With(self.wrap, Wrap::KNOBS), &With(Wrap::default(), Wrap::KNOBS))
    }
}
