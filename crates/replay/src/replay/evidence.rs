//! What the start of a replay rests on, and the words for it.

use super::fill::Drawn;
use schemars::JsonSchema;
use serde::Serialize;

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

/// What is known of caches whose slabs were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// Caches of the recording whose slabs were read.
    pub caches: u64,
    /// Their slabs.
    pub slabs: u64,
    /// Objects free in those.
    pub free: u64,
    /// Objects in sheaves.
    pub sheaved: u64,
    /// Objects that were freed without an event, and ones that were allocated so, as the first events show.
    pub untraced: (u64, u64),
    /// Slabs of which events are seen, and that were not read: the kernel took them meanwhile.
    pub unlisted: u64,
}

/// What the start of a replay rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartFacts {
    /// What was used besides the dump and the events of objects.
    pub evidence: Evidence,
    /// Slabs from before the recording whose place and objects are known by the addresses in its events.
    pub seen_slabs: u64,
    /// Objects of those that an event shows to have been allocated or free at the start.
    pub seen_objects: u64,
    /// Slabs of a dumped cache of which only frees are seen, and how many of those begin partial.
    pub drawn: Drawn,
    /// Slabs with objects that page frees prove to have been free at the start; 0 without that evidence.
    pub proven: u64,
    /// What the recorder read slab by slab.
    pub read: Read,
}

impl StartFacts {
    /// What was inferred and not read, in one line; `None` if nothing was.
    pub fn inferred(&self) -> Option<String> {
        if self.seen_slabs + self.drawn.slabs + self.proven == 0 || self.read.caches > 0 {
            return None;
        }
        let mut said = format!(
            "inferred: {} of the start's slabs, by the addresses of {} objects in later events",
            self.seen_slabs, self.seen_objects
        );
        if self.proven > 0 {
            said += &format!("; objects of {} slabs, by frees of their pages", self.proven);
        }
        if self.drawn.slabs > 0 {
            said += &format!("; how full {} of them were, drawn to fit the dump", self.drawn.slabs);
        }
        Some(said)
    }

    pub(super) fn sentences(&self) -> Vec<String> {
        let mut said = Vec::new();
        said.extend(self.inferred());
        let Read { caches, slabs, free, sheaved, untraced, unlisted } = self.read;
        if caches > 0 {
            said.push(format!(
                "the start was read by the recorder: {slabs} slabs of {caches} caches, {free} objects free in \
                 them, {sheaved} in sheaves; {unlisted} slabs were taken while it was read"
            ));
        }
        if untraced != (0, 0) {
            said.push(format!(
                "of those objects {} were freed and {} allocated without an event, as their first events show",
                untraced.0, untraced.1
            ));
        }
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

    /// For a document; `None` if nothing was inferred.
    pub fn inference(&self) -> Option<Inference> {
        Some(Inference {
            inferred: self.inferred()?,
            slabs_seen_by_address: self.seen_slabs,
            objects_seen_by_address: self.seen_objects,
            slabs_only_freed: self.drawn.slabs,
            slabs_only_freed_partial: self.drawn.partial,
            page_frees_used: self.evidence == Evidence::Pages,
            slabs_empty_by_page_frees: self.proven,
        })
    }

    /// [`StartFacts::inference`] as JSON.
    ///
    /// # Panics
    /// Never: every key is a string.
    pub fn json(&self) -> Option<serde_json::Value> {
        Some(serde_json::to_value(self.inference()?).expect("keys are strings"))
    }
}

/// What of the start was inferred from later events.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Inference {
    /// What was inferred, in a sentence.
    pub inferred: String,
    /// Slabs that the addresses of later events show.
    pub slabs_seen_by_address: u64,
    /// Objects whose addresses show them.
    pub objects_seen_by_address: u64,
    /// Slabs of which only frees are seen: how full they were is drawn to fit the dump.
    pub slabs_only_freed: u64,
    /// Of those, slabs that were drawn partial.
    pub slabs_only_freed_partial: u64,
    /// Whether frees of page frames set the start.
    pub page_frees_used: bool,
    /// Slabs whose objects were free by that.
    pub slabs_empty_by_page_frees: u64,
}
