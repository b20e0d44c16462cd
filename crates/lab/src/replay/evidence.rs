//! What the start of a replay rests on, and the words for it.

use super::fill::Drawn;

/// What of a recording may set the start besides the events of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evidence {
    /// Nothing: what the kernel did with pages is to be predicted.
    #[default]
    None,
    /// Frees of pages: a slab whose pages were freed had no object at that moment. Right for another engine;
    /// a prediction of the kernel's own page events would contain its answer.
    Pages,
}

/// What the start of a replay rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartFacts {
    /// What was used besides the dump and the events of objects.
    pub evidence: Evidence,
    /// Slabs of a dumped cache of which only frees are seen, and how many of those begin partial.
    pub drawn: Drawn,
    /// Slabs with objects that page frees prove to have been free at the start; 0 without that evidence.
    pub proven: u64,
}

impl StartFacts {
    pub(super) fn sentences(&self) -> Vec<String> {
        let mut said = Vec::new();
        if self.drawn.slabs > 0 {
            said.push(format!(
                "of {} slabs of which only frees are seen {} begin partial: drawn, so that partial slabs and \
                 their objects are as many as the dump counts",
                self.drawn.slabs, self.drawn.partial
            ));
        }
        if self.proven > 0 {
            said.push(format!(
                "{} slabs of which not all objects are seen were empty when the recording freed their pages, so \
                 those not seen were free; verify does not use this",
                self.proven
            ));
        }
        said
    }

    /// As JSON; `None` if nothing was drawn or proven.
    pub fn json(&self) -> Option<serde_json::Value> {
        let json = serde_json::json!({
            "slabs_only_freed": self.drawn.slabs,
            "slabs_only_freed_partial": self.drawn.partial,
            "page_frees_used": self.evidence == Evidence::Pages,
            "slabs_empty_by_page_frees": self.proven,
        });
        (self.drawn.slabs + self.proven > 0).then_some(json)
    }
}
