//! A page moves from one frame to another.

use crate::frames::Flags;
use crate::ids::{Frame, MappingId};
use crate::mappings::Entry;
use crate::spaces::Pte;
use crate::state::State;

impl State {
    /// Moves the page of an isolated frame to an unused one, which is isolated afterwards; the old frame is
    /// unused. Its entries, mapping and slot, flags and contents, and the policy's word go with it.
    ///
    /// # Panics
    /// A frame that is not isolated, is locked or written, or whose page is gone.
    pub fn migrate(&mut self, from: Frame, to: Frame) {
        let flags = self.frames.flags(from);
        let is_free = !flags.any(Flags::LOCKED | Flags::WRITEBACK | Flags::GONE | Flags::LISTED);
        assert!(flags.has(Flags::ISOLATED) && is_free, "frame {}: {flags:?}", from.0);
        let mappers: Vec<_> = self.mappers(from).collect();
        let (owner, index) = (self.frames.owner(from), self.frames.index(from));
        let slot = self.frames.slot(from);
        self.frames.begin(to, owner, index, flags);
        self.frames.set_policy(to, self.frames.policy(from));
        self.frames.set_content(to, self.frames.content(from));
        if let Some(slot) = slot {
            self.frames.set_slot(to, slot);
            self.swap.replace_cached(slot, to);
        }
        for (region, page) in mappers {
            let old = self.unmap(region, page, Pte::NONE);
            let new = Pte::map(to, old.is_writable()).accessed(old.is_accessed()).dirty(old.is_dirty());
            self.map(region, page, new);
        }
        let mapping = MappingId(owner);
        let is_owned = !flags.has(Flags::ANON) && self.mappings.exists(mapping);
        if is_owned && self.mappings.get(mapping).entry(index) == Entry::Frame(from) {
            self.mappings.get_mut(mapping).set(index, Entry::Frame(to));
        }
        self.frames.clear(from, Flags::ISOLATED | Flags::SWAPCACHE);
        self.frames.end(from);
    }
}
