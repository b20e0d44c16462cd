//! All findings about a machine, in their order.

use super::finding::{Finding, Kind};
use super::{
    accounting, caches, climbing, dentries, dying, each, machine, made_of, pasted, rounding, trust, who,
};
use crate::measure::Measured;

/// The findings about a machine: growth and holders first, then most bytes first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The findings.
    pub findings: Vec<Finding>,
}

/// Finds the facts about a measured machine that are worth a sentence.
pub fn find(measured: &Measured) -> Found {
    let worth = measured.worth;
    let mut found: Vec<Finding> = caches::find(measured, worth);
    found.extend(machine::find(measured, worth));
    found.extend(trust::find(measured));
    found.extend(pasted::find(measured, worth));
    found.extend(dentries::find(measured, worth));
    found.extend(dying::find(measured));
    found.extend(made_of::find(measured, worth));
    found.extend(accounting::find(measured, worth));
    found.extend(each::find(measured));
    found.extend(measured.rounding.and_then(|rounding| rounding::find(rounding, worth)));
    found.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.kind.cmp(&b.kind)).then(a.caches.cmp(&b.caches)));
    let mut findings = climbing::find(measured, worth);
    findings.extend(who::find(measured, worth));
    findings.append(&mut found);
    Found { findings }
}

impl Found {
    /// The findings of a kind.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.kind == kind)
    }
}
