//! Names and flags of a recording, in the words of a trace.

use rustc_hash::FxHashMap;
use slablab_platform::gfp::Gfp;
use slablab_readers::event::Site;
use slablab_readers::{Header, Name, Names, event};
use slablab_trace::{NONE, Table};

/// Ids of a source's names in one column's table, looked up once each.
#[derive(Default)]
pub(super) struct Ids {
    by_name: Vec<u32>,
    by_address: FxHashMap<u64, u32>,
}

impl Ids {
    #[inline]
    pub(super) fn name(&mut self, name: Option<Name>, names: &Names, table: &mut Table) -> u32 {
        let Some(name) = name else { return NONE };
        match self.by_name.get(name.index()) {
            Some(&id) if id != NONE => id,
            _ => {
                let id = table.id(names.text(name));
                if self.by_name.len() <= name.index() {
                    self.by_name.resize(name.index() + 1, NONE);
                }
                self.by_name[name.index()] = id;
                id
            }
        }
    }

    #[inline]
    pub(super) fn site(&mut self, site: Site, names: &Names, table: &mut Table) -> u32 {
        match (site.symbol, site.addr) {
            (Some(_), _) => self.name(site.symbol, names, table),
            (None, None) => NONE,
            (None, Some(address)) => {
                if let Some(&id) = self.by_address.get(&address) {
                    return id;
                }
                let id = table.id(&format!("{address:#x}"));
                if self.by_address.len() < Table::LIMIT {
                    self.by_address.insert(address, id);
                }
                id
            }
        }
    }
}

/// Allocation flags in the trace's bits.
#[derive(Default)]
pub(super) struct Flags {
    known: FxHashMap<event::Gfp, u32>,
    /// Bits of the recording that have no name here.
    pub(super) unknown_bits: u64,
    /// Names that no kernel has.
    pub(super) unknown_names: Vec<String>,
}

impl Flags {
    /// Different sets of flags remembered, and unknown names kept.
    const LIMIT: usize = 1 << 12;
    const NAMES_LIMIT: usize = 16;

    #[inline]
    pub(super) fn canonical(&mut self, gfp: event::Gfp, header: &Header, names: &Names) -> u32 {
        match self.known.get(&gfp) {
            Some(&bits) => bits,
            None => self.translate(gfp, header, names),
        }
    }

    #[cold]
    fn translate(&mut self, gfp: event::Gfp, header: &Header, names: &Names) -> u32 {
        let (bits, whole) = match (gfp.raw, gfp.names) {
            (Some(raw), _) => self.of_raw(raw, header),
            (None, Some(name)) => self.of_names(names.text(name), header),
            (None, None) => (0, true),
        };
        // What is not known now may be in a table that a pipe delivers later.
        if whole && self.known.len() < Self::LIMIT {
            self.known.insert(gfp, bits);
        }
        bits
    }

    fn of_raw(&mut self, raw: u64, header: &Header) -> (u32, bool) {
        let (mut set, mut rest) = (Gfp::NONE, raw);
        for (bit, name) in
            header.gfp.entries().filter(|(value, _)| value.is_power_of_two() && raw & value != 0)
        {
            if let Some(flag) = Gfp::from_name(name) {
                (set, rest) = (set | flag, rest & !bit);
            }
        }
        self.unknown_bits |= rest;
        (set.0, rest == 0)
    }

    fn of_names(&mut self, text: &str, header: &Header) -> (u32, bool) {
        let (mut bits, mut whole) = (0, true);
        for name in text.split('|').filter(|name| !matches!(*name, "" | "0" | "none")) {
            match (Gfp::from_name(name), header.gfp.value(name)) {
                (Some(flags), _) => bits |= flags.0,
                (None, Some(raw)) => bits |= self.of_raw(raw, header).0,
                (None, None) => {
                    whole = false;
                    let new = !self.unknown_names.iter().any(|known| known == name);
                    if new && self.unknown_names.len() < Self::NAMES_LIMIT {
                        self.unknown_names.push(name.chars().take(40).collect());
                    }
                }
            }
        }
        (bits, whole)
    }
}
