//! Order policies by name.

use slablab_slabs::order::{CpusCounted, OrderRule};

/// An order policy by name: a rule, or which CPUs a rule counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Another rule.
    Rule(OrderRule),
    /// This order rule, counting another set of CPUs (docs/theory/slub.md 5.1).
    Count(CpusCounted),
}

impl Policy {
    const COUNTS: [(&'static str, CpusCounted, &'static str); 3] = [
        ("possible-cpus", CpusCounted::Possible, "CPUs that may ever come, until 5.10"),
        ("online-cpus", CpusCounted::Online, "CPUs that run, 5.11.0 (Bharata Rao)"),
        ("present-cpus", CpusCounted::Present, "CPUs plugged in, 5.11.1 and later (Vlastimil Babka)"),
    ];

    /// The policy of this name.
    ///
    /// # Errors
    /// The names there are.
    pub fn parse(name: &str) -> std::result::Result<Policy, String> {
        if let Some(rule) = OrderRule::parse(name) {
            return Ok(Policy::Rule(rule));
        }
        let count = Policy::COUNTS.iter().find(|(known, _, _)| *known == name);
        count.map(|(_, counted, _)| Policy::Count(*counted)).ok_or_else(|| {
            let rules = OrderRule::ALL.iter().map(|rule| rule.name());
            let counts = Policy::COUNTS.iter().map(|(name, _, _)| *name);
            format!("expected one of: {}", rules.chain(counts).collect::<Vec<_>>().join(", "))
        })
    }

    /// The name it is parsed by.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Rule(rule) => rule.name(),
            Policy::Count(counted) => {
                let known = Policy::COUNTS.iter().find(|(_, known, _)| *known == counted);
                known.map_or("", |(name, _, _)| name)
            }
        }
    }

    /// Whose it is.
    pub fn whose(self) -> &'static str {
        match self {
            Policy::Rule(rule) => rule.whose(),
            Policy::Count(counted) => {
                let known = Policy::COUNTS.iter().find(|(_, known, _)| *known == counted);
                known.map_or("", |(_, _, whose)| whose)
            }
        }
    }
}
