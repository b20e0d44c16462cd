//! An action, and what every kind of action is offered from.

use crate::act::knobs::{Knob, Way, turnable};
use crate::find::{Finding, Found, Kind};
use crate::measure::{Line, Measured};
use slablab_readers::sysfs::SlabAttrs;

/// An action: a command or a boot parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// The knob.
    pub knob: &'static str,
    /// When it acts.
    pub way: Way,
    /// The command to type, or the words to add to the kernel's command line.
    pub command: String,
    /// The findings it is for.
    pub because: Vec<Kind>,
    /// Bytes it saves: at least, and at most. Below 0 it takes memory.
    pub saves: (i64, i64),
    /// How the range is known.
    pub basis: String,
    /// What it costs.
    pub cost: String,
    /// Nothing needs it: it is for those who want memory back all the same.
    pub optional: bool,
}

/// Caches that one kind of action is offered for.
pub(super) const CACHES: usize = 3;

/// A machine for which actions are offered.
pub(super) struct Offer<'a> {
    pub(super) measured: &'a Measured<'a>,
    pub(super) found: &'a Found,
    /// The least bytes that an action must save to be offered.
    pub(super) worth: u64,
}

impl<'a> Offer<'a> {
    /// The knob of this key, if this kernel lets it be turned.
    pub(super) fn knob(&self, key: &str) -> Option<&'static Knob> {
        turnable(self.measured.state, key)
    }

    /// The first finding of this kind.
    pub(super) fn finding(&self, kind: Kind) -> Option<&Finding> {
        self.found.of(kind).next()
    }

    /// Lines of the caches that findings of a kind are about, with their directories. Leaves out a cache if
    /// the dump gives its directory a name that leads out of /sys/kernel/slab.
    pub(super) fn caches_of(&self, kind: Kind) -> Vec<(&'a Line<'a>, &'a SlabAttrs)> {
        let findings = self.found.of(kind);
        let keys: Vec<&(String, u32)> = findings.flat_map(|finding| &finding.caches).collect();
        let line = |key: &&(String, u32)| {
            let line = self.line(key)?;
            let attrs = line.cache.attrs.as_ref()?;
            is_file_name(folder(line, attrs)).then_some((line, attrs))
        };
        keys.iter().filter_map(line).collect()
    }

    /// The line of the cache with this name and ordinal. It looks at all lines: findings name few caches.
    pub(super) fn line(&self, (name, ordinal): &(String, u32)) -> Option<&'a Line<'a>> {
        self.measured.lines.iter().find(|line| line.cache.name == *name && line.cache.ordinal == *ordinal)
    }

    /// The first of these actions that save enough.
    pub(super) fn worthy(&self, actions: impl Iterator<Item = Action>) -> Vec<Action> {
        actions.filter(|action| action.saves.1 >= self.worth as i64).take(CACHES).collect()
    }
}

/// A cache's directory in sysfs: the cache's name in the report if sysfs has a link with that name.
pub(super) fn folder<'a>(line: &'a Line, attrs: &'a SlabAttrs) -> &'a str {
    let name = &line.cache.name;
    let linked = line.cache.ordinal == 0 && is_file_name(name) && attrs.aliases.contains(name);
    if linked { name } else { &attrs.name }
}

/// Whether `name` is the name of a file in its directory, and no way to another one.
fn is_file_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains('/')
}
