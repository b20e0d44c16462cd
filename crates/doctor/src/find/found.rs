//! Everything that is worth saying of a machine.

use super::finding::{Finding, Kind};
use super::{caches, climbing, dying, machine, pasted, rounding, trust};
use crate::measure::Measured;

/// What is worth saying: growth first, then most bytes first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The findings.
    pub findings: Vec<Finding>,
}

/// Finds what is worth saying of a machine that was measured: growth in its own order, then most bytes first.
pub fn find(measured: &Measured) -> Found {
    let worth = measured.worth();
    let mut found: Vec<Finding> = caches::find(measured, worth);
    found.extend(machine::find(measured, worth));
    found.extend(trust::find(measured));
    found.extend(pasted::find(measured, worth));
    found.extend(dying::find(measured));
    found.extend(measured.rounding.and_then(|rounding| rounding::find(rounding, worth)));
    found.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.kind.cmp(&b.kind)).then(a.caches.cmp(&b.caches)));
    let mut findings = climbing::find(measured, worth);
    findings.append(&mut found);
    Found { findings }
}

impl Found {
    /// The findings of a kind.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.kind == kind)
    }
}
