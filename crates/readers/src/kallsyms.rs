//! /proc/kallsyms, and System.map, which has the same lines: functions by address.

/// The functions of a kernel and its modules.
#[derive(Clone, Debug, Default)]
pub struct Kallsyms {
    text: String,
    /// Address, and where its name is in `text`; ascending.
    table: Vec<(u64, u32, u32)>,
    /// Symbols of another kind that say where the kernel lies.
    hidden: usize,
}

/// A function and a place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// The function.
    pub name: &'a str,
    /// Bytes from its start.
    pub offset: u64,
    /// Its module; `None` for the kernel itself.
    pub module: Option<&'a str>,
}

impl Kallsyms {
    /// An address farther behind the function before it is in no function: data, or a module not listed.
    const REACH: u64 = 16 << 20;
    /// The largest text read, so that places fit in 32 bits. A kernel's list has some ten MB.
    const TEXT_LIMIT: usize = 1 << 30;

    /// Reads lines `address type name [module]`. Lines of another form are skipped, and so are addresses of
    /// 0, which the kernel shows to users without permission ([`Kallsyms::hidden`]).
    pub fn parse(text: &[u8]) -> Kallsyms {
        let text = String::from_utf8_lossy(&text[..text.len().min(Self::TEXT_LIMIT)]).into_owned();
        let start = text.as_ptr() as usize;
        let mut hidden = 0;
        let mut place = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            let kind = words.next()?;
            // Text, and weak text; the rest is data, which contains no call.
            let name = words.next().filter(|_| matches!(kind, "t" | "T" | "w" | "W"))?;
            if address == 0 {
                hidden += 1;
                return None;
            }
            let at = name.as_ptr() as usize - start;
            Some((address, at as u32, (at + name.len()) as u32))
        };
        let mut table: Vec<_> = text.lines().filter_map(&mut place).collect();
        // Stable: of two names for an address the first in the list stays in front.
        table.sort_by_key(|&(address, ..)| address);
        Kallsyms { text, table, hidden }
    }

    /// Functions with an address.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is no function with an address.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Functions whose address the kernel did not show.
    pub fn hidden(&self) -> usize {
        self.hidden
    }

    /// The address of the kernel's function `name`.
    pub fn address(&self, name: &str) -> Option<u64> {
        let entry = self.table.iter().find(|entry| self.name(entry) == name && self.module(entry).is_none());
        entry.map(|&(address, ..)| address)
    }

    /// Whether a function of `module` is at `start` or in the `length` bytes behind it.
    pub fn has_module_at(&self, module: &str, start: u64, length: u64) -> bool {
        let first = self.table.partition_point(|&(address, ..)| address < start);
        let inside = self.table[first..].iter().take_while(|(address, ..)| address - start < length);
        inside.into_iter().any(|entry| self.module(entry) == Some(module))
    }

    /// The function around `address`.
    pub fn find(&self, address: u64) -> Option<Found<'_>> {
        let after = self.table.partition_point(|&(start, ..)| start <= address);
        let &(start, ..) = self.table.get(after.checked_sub(1)?)?;
        let first = self.table.partition_point(|&(other, ..)| other < start);
        let (entry, offset) = (&self.table[first], address - start);
        let found = Found { name: self.name(entry), offset, module: self.module(entry) };
        (offset < Self::REACH).then_some(found)
    }

    fn name(&self, &(_, from, to): &(u64, u32, u32)) -> &str {
        &self.text[from as usize..to as usize]
    }

    /// What is in brackets behind the name.
    fn module(&self, &(_, _, to): &(u64, u32, u32)) -> Option<&str> {
        let rest = self.text[to as usize..].lines().next()?;
        rest.trim().strip_prefix('[')?.strip_suffix(']')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "0000000000000000 A hidden\nffffffff81000100 t second\t[module]\n\
                        ffffffff81000000 T first\nffffffff81000000 t alias\nffffffff81000180 d data\n\
                        nonsense\n0000000000000000 T secret\n";

    #[test]
    fn an_address_has_the_name_of_the_function_around_it() {
        let list = Kallsyms::parse(LIST.as_bytes());
        assert_eq!((list.len(), list.hidden()), (2 + 1, 1));
        #[track_caller]
        fn check(list: &Kallsyms, address: u64, expected: Option<(&str, u64, Option<&str>)>) {
            let found = list.find(address).map(|found| (found.name, found.offset, found.module));
            assert_eq!(found, expected, "{address:#x}");
        }
        check(&list, 0xffffffff81000024, Some(("first", 0x24, None)));
        check(&list, 0xffffffff81000100, Some(("second", 0, Some("module"))));
        check(&list, 0xffffffff81000200, Some(("second", 0x100, Some("module"))));
        check(&list, 0xffffffff80ffffff, None);
        check(&list, 0xffffffffc0000000, None);
    }

    #[test]
    fn symbols_say_where_kernel_and_modules_lie() {
        let list = Kallsyms::parse(LIST.as_bytes());
        assert_eq!(list.address("first"), Some(0xffffffff81000000));
        assert_eq!(list.address("second"), None, "a module's function");
        assert_eq!(list.address("secret"), None);
        assert!(list.has_module_at("module", 0xffffffff81000080, 0x100));
        assert!(!list.has_module_at("module", 0xffffffff81000101, 0x100));
        assert!(!list.has_module_at("other", 0xffffffff81000080, 0x100));
    }
}
