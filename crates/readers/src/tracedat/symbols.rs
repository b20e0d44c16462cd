//! Names for call sites, from the recording's copy of /proc/kallsyms.

use rustc_hash::FxHashMap;

use crate::event::{Name, Names};
use crate::kallsyms::Kallsyms;

/// Symbols by address, and the call sites named so far.
#[derive(Default)]
pub(super) struct Symbols {
    list: Kallsyms,
    known: FxHashMap<u64, Option<Name>>,
}

impl Symbols {
    /// Call sites remembered; a kernel has some ten thousand that allocate.
    const KNOWN_LIMIT: usize = 1 << 18;

    /// Reads the list, whose addresses may be 0.
    pub(super) fn parse(text: &[u8]) -> Symbols {
        Symbols { list: Kallsyms::parse(text), known: FxHashMap::default() }
    }

    /// The name of `address`: symbol and offset as in `getname_flags+0x24`.
    #[inline]
    pub(super) fn name(&mut self, address: u64, names: &mut Names) -> Option<Name> {
        if let Some(&name) = self.known.get(&address) {
            return name;
        }
        let text = self.list.find(address).map(|found| format!("{}+{:#x}", found.name, found.offset));
        let name = text.map(|text| names.intern(&text));
        if self.known.len() < Self::KNOWN_LIMIT {
            self.known.insert(address, name);
        }
        name
    }
}
