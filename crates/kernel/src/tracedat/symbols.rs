//! Names for call sites, from the recording's copy of /proc/kallsyms.

use rustc_hash::FxHashMap;

use crate::event::{Name, Names};

/// Symbols by address, and the call sites named so far.
#[derive(Default)]
pub(super) struct Symbols {
    text: String,
    /// Address, and where its name is in `text`; ascending.
    table: Vec<(u64, u32, u32)>,
    known: FxHashMap<u64, Option<Name>>,
}

impl Symbols {
    /// Call sites remembered; a kernel has some ten thousand that allocate.
    const KNOWN_LIMIT: usize = 1 << 18;
    /// A call site farther behind the symbol before it is in no function: data, or a module not listed.
    const REACH: u64 = 16 << 20;

    /// Reads lines `address type name [module]`. It skips lines of another form and addresses of 0, which the
    /// kernel shows to users without permission.
    pub(super) fn parse(text: &[u8]) -> Symbols {
        let text = String::from_utf8_lossy(text).into_owned();
        let start = text.as_ptr() as usize;
        let place = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok().filter(|&address| address != 0)?;
            let kind = words.next()?;
            // Text, and weak text; the rest is data, which contains no call.
            let name = words.next().filter(|_| matches!(kind, "t" | "T" | "w" | "W"))?;
            let at = name.as_ptr() as usize - start;
            Some((address, at as u32, (at + name.len()) as u32))
        };
        let mut table: Vec<_> = text.lines().filter_map(place).collect();
        // Stable: of two names for an address the first in the list stays in front.
        table.sort_by_key(|&(address, ..)| address);
        Symbols { text, table, known: FxHashMap::default() }
    }

    /// The name of `address`: symbol and offset as in `getname_flags+0x24`.
    #[inline]
    pub(super) fn name(&mut self, address: u64, names: &mut Names) -> Option<Name> {
        if let Some(&name) = self.known.get(&address) {
            return name;
        }
        let name = self.find(address).map(|text| names.intern(&text));
        if self.known.len() < Self::KNOWN_LIMIT {
            self.known.insert(address, name);
        }
        name
    }

    fn find(&self, address: u64) -> Option<String> {
        let after = self.table.partition_point(|&(start, ..)| start <= address);
        let &(start, ..) = self.table.get(after.checked_sub(1)?)?;
        let first = self.table.partition_point(|&(other, ..)| other < start);
        let (_, from, to) = self.table[first];
        let offset = address - start;
        let name = &self.text[from as usize..to as usize];
        (offset < Self::REACH).then(|| format!("{name}+{offset:#x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_site_has_the_name_of_the_function_around_it() {
        let list = "0000000000000000 A hidden\nffffffff81000100 t second\t[module]\nffffffff81000000 T first\n\
                    ffffffff81000000 t alias\nffffffff81000180 d data\nnonsense\n";
        let mut symbols = Symbols::parse(list.as_bytes());
        let mut names = Names::new();
        let mut check = |address: u64, expected: Option<&str>| {
            for _ in 0..2 {
                let name = symbols.name(address, &mut names);
                assert_eq!(name.map(|name| names.text(name)), expected, "{address:#x}");
            }
        };
        check(0xffffffff81000024, Some("first+0x24"));
        check(0xffffffff81000100, Some("second+0x0"));
        check(0xffffffff81000200, Some("second+0x100"));
        check(0xffffffff80ffffff, None);
        check(0xffffffffc0000000, None);
    }
}
