//! One machine and one change, with the rules that choose orders today and then.

use super::change::Change;
use super::held::SHEAVES_ONLY_SINCE;
use super::layout::Debug;
use super::rules::Rules;
use super::sheaves::{Holders, KNOWN_SINCE, known_size, policy};
use crate::state::{Cache, State};
use slablab_report::error::{Error, Result};
use slablab_slabs::engines::slub::SlubPolicy;
use slablab_slabs::{Preset, Release};
use std::path::Path;

/// What is predicted.
pub(super) struct Case<'a> {
    pub(super) state: &'a State,
    pub(super) change: &'a Change,
    /// The rules that gave today's orders.
    pub(super) rules: Rules,
    /// The rules with the change.
    pub(super) rules_whatif: Rules,
    /// What another release or engine would keep.
    pub(super) kept: Keeping,
}

/// What CPUs and nodes keep with the change.
pub(super) enum Keeping {
    /// What they keep today.
    Same,
    /// What the release asked for keeps.
    Known(Holders),
    /// It is not known: why.
    Unknown(&'static str),
}

impl<'a> Case<'a> {
    /// Adds to `assumed` what had to be assumed.
    ///
    /// # Errors
    /// A state that does not tell what the rules need, or a value that no kernel takes.
    pub(super) fn new(state: &'a State, change: &'a Change, assumed: &mut Vec<String>) -> Result<Case<'a>> {
        if state.caches.is_empty() || state.caches.iter().any(|cache| cache.bytes_only) {
            let expected = "expected /proc/slabinfo, slabtop's list or vmstat -m";
            let root = if state.path == Path::new("/") { " (try with sudo)" } else { "" };
            return Err(Error::new(&state.path, format!("has no counts of objects; {expected}{root}")));
        }
        let rules = Rules::of(state, assumed)?;
        let rules_whatif = rules.with(change)?;
        let kept = Keeping::new(state, change, [&rules, &rules_whatif])?;
        let case = Case { state, change, rules, rules_whatif, kept };
        case.check()?;
        assumed.extend(case.debug().assumed(case.release()));
        Ok(case)
    }

    fn check(&self) -> Result<()> {
        let Case { state, change, .. } = self;
        let needs_attrs = change.debug.is_some() || change.merge == Some(true);
        if needs_attrs && state.caches.iter().all(|cache| cache.attrs.is_none()) {
            let what =
                "has nothing of /sys/kernel/slab: --debug and --merge on need the sizes and flags there";
            return Err(Error::new(&state.path, what));
        }
        let debug = self.debug();
        if change.merge == Some(true) && debug.prevents_merging() {
            return Err(Error::new("--merge on", format!("caches with debugging {debug} are never merged")));
        }
        Ok(())
    }

    /// The debugging asked for.
    fn debug(&self) -> Debug {
        self.change.debug.unwrap_or_default()
    }

    /// CPUs online: today, and with the change.
    pub(super) fn cpus(&self) -> (u32, u32) {
        (self.rules.cpus.online, self.rules_whatif.cpus.online)
    }

    /// The release whose layout of objects is predicted.
    pub(super) fn release(&self) -> Release {
        match self.change.engine {
            Some(Preset::Slub(policy)) => policy.release,
            _ => self.state.release.unwrap_or(Release::new(6, 1, 0)),
        }
    }

    /// The release asked for, if the dump is of another, or of none that it tells.
    pub(super) fn other_release(&self) -> Option<Release> {
        let Some(Preset::Slub(policy)) = self.change.engine else { return None };
        let minor = |release: Release| (release.major, release.minor);
        let same = self.state.release.is_some_and(|own| minor(own) == minor(policy.release));
        (!same).then_some(policy.release)
    }

    /// The holders of objects with the change, if they are another release's.
    pub(super) fn holders(&self) -> Option<&Holders> {
        match &self.kept {
            Keeping::Known(holders) => Some(holders),
            Keeping::Same | Keeping::Unknown(_) => None,
        }
    }

    /// Bytes from one object of the cache to the next in the release asked for, if dumps tell.
    pub(super) fn size_then(&self, cache: &Cache) -> Option<u64> {
        match (self.holders(), self.state.release, self.change.engine) {
            (Some(_), Some(today), Some(Preset::Slub(then))) => {
                known_size(&cache.name, (cache.size, today), then.release)
            }
            _ => None,
        }
    }

    /// Caches whose objects have another size in the release asked for.
    pub(super) fn resized(&self) -> usize {
        let other = |cache: &&Cache| self.size_then(cache).is_some_and(|size| size != cache.size);
        self.state.caches.iter().filter(other).count()
    }

    /// Whether pages have another size.
    pub(super) fn other_pages(&self) -> bool {
        self.rules.page_size != self.rules_whatif.page_size
    }

    /// Whether names that share slabs come apart.
    pub(super) fn comes_apart(&self) -> bool {
        self.change.merge == Some(false) || self.debug().prevents_merging()
    }

    /// The assumption for engines whose CPUs hold objects elsewhere than in CPU slabs, which are all that the
    /// theory covers.
    pub(super) fn holds_otherwise(&self) -> Option<&'static str> {
        match self.change.engine {
            Some(Preset::Slqb(_)) => Some("SLQB's queues are taken to hold as much as SLUB's CPU slabs."),
            Some(Preset::Slab(_)) => Some("SLAB's arrays are taken to hold as much as SLUB's CPU slabs."),
            _ if self.has_sheaves_only() && !matches!(self.kept, Keeping::Known(_)) => {
                Some("Sheaves are not predicted: slabs are taken for as full as today.")
            }
            _ => None,
        }
    }

    /// Whether CPUs of this kernel hold no slabs.
    pub(super) fn has_sheaves_only(&self) -> bool {
        self.state.release.is_some_and(|release| release >= SHEAVES_ONLY_SINCE)
    }
}

impl Keeping {
    /// With other CPUs, sheaves come and go with them. How full they are with debugging, other pages or other
    /// merging is not known.
    fn of_cpus(state: &State, change: &Change, [rules, then]: [&Rules; 2]) -> Keeping {
        let Change { page_size, merge, debug, .. } = *change;
        let has_sheaves = state.release.is_some_and(|release| release >= SHEAVES_ONLY_SINCE);
        let same = page_size.is_none() && merge.is_none() && debug.is_none();
        match has_sheaves && same && rules.cpus.online != then.cpus.online {
            true => Keeping::Known(Holders::new(state, [rules, then], policy(state))),
            false => Keeping::Same,
        }
    }

    fn new(state: &State, change: &Change, rules: [&Rules; 2]) -> Result<Keeping> {
        let then = match change.engine {
            None if change.sheaf_capacity.is_none() => return Ok(Keeping::of_cpus(state, change, rules)),
            None => policy(state),
            Some(Preset::Slub(then)) => then,
            Some(_) => return Ok(Keeping::Unknown("what another engine keeps for CPUs is not predicted")),
        };
        let Some(own) = state.release else {
            return Ok(Keeping::Unknown("the input does not tell its kernel's release"));
        };
        let then = change.sheaf_capacity.map_or(Ok(then), |capacity| capacity.of(then))?;
        let minor = |release: Release| (release.major, release.minor);
        if minor(own) == minor(then.release) && keeps_as(&policy(state), &then) {
            return Ok(Keeping::Same);
        }
        if own < KNOWN_SINCE || then.release < KNOWN_SINCE {
            return Ok(Keeping::Unknown(
                "what releases before 6.12 allocate is not in the dump of another one",
            ));
        }
        let Change { cpus, page_size, merge, debug, .. } = *change;
        if cpus.is_some() || page_size.is_some() || merge.is_some() || debug.is_some() {
            return Ok(Keeping::Unknown(
                "another release is predicted on the same CPUs and pages, with the same merging and debugging",
            ));
        }
        Ok(Keeping::Known(Holders::new(state, [rules[0]; 2], then)))
    }
}

/// Whether two policies keep the same for CPUs and nodes.
fn keeps_as(one: &SlubPolicy, other: &SlubPolicy) -> bool {
    let kept = |policy: &SlubPolicy| {
        let sizes = (policy.sheaf_rule, policy.sheaf_capacity, policy.sheaf_factor, policy.max_full_sheaves);
        (policy.cpu_slab, policy.sheaves, policy.barns, sizes)
    };
    kept(one) == kept(other)
}
