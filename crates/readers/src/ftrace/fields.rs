//! The fields of an event's text, by name.

use crate::event::{Alloc, Free, Gfp, Kind, Names, PageAlloc, PageFree, Site};
use crate::text::number;

/// An error in a field: the expected and the found text.
pub(super) type Wrong = (&'static str, String);

/// The fields of one line.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a str);

/// A pointer as printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pointer {
    /// The number; a hash stays one.
    pub(super) value: u64,
    /// Whether it looks hashed: 16 digits of which the first eight are 0, and no `0x`.
    pub(super) hashed: bool,
}

impl<'a> Fields<'a> {
    /// The value of `key`: up to the next ` word=`, as names and call sites may have spaces.
    pub(super) fn get(self, key: &str) -> Option<&'a str> {
        let text = self.0;
        let mut from = 0;
        let value = loop {
            let at = from + text[from..].find(key)?;
            from = at + key.len();
            let begins = text[..at].chars().next_back().is_none_or(char::is_whitespace);
            if let Some(value) = text[from..].strip_prefix('=')
                && begins
            {
                break value;
            }
        };
        // The next field begins at the first space before a word with a `=`.
        let is_field =
            |at: &usize| value[*at..].split_whitespace().next().is_some_and(|word| word.contains('='));
        let end = value.match_indices(char::is_whitespace).map(|(at, _)| at).find(is_field);
        Some(value[..end.unwrap_or(value.len())].trim())
    }

    fn need<T>(
        self,
        key: &str,
        expected: &'static str,
        read: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<T, Wrong> {
        let found = self.get(key);
        found.and_then(read).ok_or_else(|| (expected, found.unwrap_or(self.0).to_string()))
    }

    /// What happened; `None` for an event that the vocabulary has no word for. With it, the pointer as it was
    /// printed.
    pub(super) fn kind(
        self,
        event: &str,
        names: &mut Names,
    ) -> Result<Option<(Kind, Option<Pointer>)>, Wrong> {
        let kind = match event {
            "kmalloc" | "kmalloc_node" => self.alloc(true, names).map(|(it, at)| (Kind::Kmalloc(it), at))?,
            "kmem_cache_alloc" | "kmem_cache_alloc_node" => {
                self.alloc(false, names).map(|(it, at)| (Kind::CacheAlloc(it), at))?
            }
            "kfree" => self.free(names).map(|(it, at)| (Kind::Kfree(it), at))?,
            "kmem_cache_free" => self.free(names).map(|(it, at)| (Kind::CacheFree(it), at))?,
            "mm_page_alloc" => (Kind::PageAlloc(self.page_alloc(names)?), None),
            "mm_page_free" | "mm_page_free_direct" => {
                let pfn = self.need("pfn", "`pfn=` and a frame number", frame)?;
                (Kind::PageFree(PageFree { pfn, order: self.order()? }), None)
            }
            "tracing_mark_write" => (Kind::Mark(names.intern(self.0.trim_end())), None),
            "print" | "bprint" => match self.0.split_once(": ") {
                Some(("tracing_mark_write", text)) => (Kind::Mark(names.intern(text.trim_end())), None),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        Ok(Some(kind))
    }

    /// `flags_decide`: only the flags say whether a kmalloc is accounted, while a cache may be so as a whole.
    fn alloc(self, flags_decide: bool, names: &mut Names) -> Result<(Alloc, Option<Pointer>), Wrong> {
        let pointer = self.pointer()?;
        let flags = self.need("gfp_flags", "`gfp_flags=` and flags", Some)?;
        let by_flags = flags.split('|').any(|flag| flag.ends_with("_ACCOUNT"));
        let accounted = match self.get("accounted") {
            Some("true") => Some(true),
            Some("false") => Some(false),
            Some(found) => return Err(("`accounted=` and `true` or `false`", found.into())),
            None => Some(by_flags).filter(|&by_flags| by_flags || flags_decide),
        };
        let node = |text: &str| text.parse::<i32>().ok().filter(|&node| node >= -1);
        let node = match self.get("node") {
            None => None,
            Some(_) => Some(self.need("node", "`node=` and a node or -1", node)?),
        };
        let alloc = Alloc {
            call_site: self.site(names),
            ptr: pointer.map(|pointer| pointer.value),
            cache: self.name(names),
            dir: None,
            bytes_req: self.need("bytes_req", "`bytes_req=` and a number", number)?,
            bytes_alloc: self.need("bytes_alloc", "`bytes_alloc=` and a number", number)?,
            gfp: gfp(flags, names),
            node,
            accounted,
        };
        Ok((alloc, pointer))
    }

    fn free(self, names: &mut Names) -> Result<(Free, Option<Pointer>), Wrong> {
        let pointer = self.pointer()?;
        let ptr = pointer.map(|pointer| pointer.value);
        Ok((Free { call_site: self.site(names), ptr, cache: self.name(names), dir: None }, pointer))
    }

    fn page_alloc(self, names: &mut Names) -> Result<PageAlloc, Wrong> {
        let pfn = self.need("pfn", "`pfn=` and a frame number", frame)?;
        // An allocation that failed is printed as frame 0 of no page.
        let no_page = self.get("page").is_some_and(|page| matches!(pointer(page), Some(None)));
        let migratetype = match self.get("migratetype") {
            None => None,
            Some(_) => Some(self.need("migratetype", "`migratetype=` and a number", number)?),
        };
        Ok(PageAlloc {
            pfn: Some(pfn).filter(|&pfn| !(no_page && pfn == 0)),
            order: self.order()?,
            gfp: gfp(self.need("gfp_flags", "`gfp_flags=` and flags", Some)?, names),
            migratetype,
        })
    }

    fn order(self) -> Result<u32, Wrong> {
        self.need("order", "`order=` and a number", number)
    }

    fn pointer(self) -> Result<Option<Pointer>, Wrong> {
        self.need("ptr", "`ptr=` and an address", pointer)
    }

    fn name(self, names: &mut Names) -> Option<crate::event::Name> {
        self.get("name").filter(|name| !matches!(*name, "" | "(null)")).map(|name| names.intern(name))
    }

    /// Symbol and offset as in `getname_flags+0x24`: what the kernel adds of the symbol's size and module is
    /// left out, so that a place has one name in every kind of recording. Older kernels print an address.
    fn site(self, names: &mut Names) -> Site {
        let Some(text) = self.get("call_site").and_then(|text| text.split_whitespace().next()) else {
            return Site::default();
        };
        let digits = text.strip_prefix("0x").unwrap_or(text);
        if let Some(addr) = hexadecimal(digits).filter(|_| digits.len() >= 8) {
            return Site { addr: Some(addr), symbol: None };
        }
        let symbol = text.split_once("+0x").and_then(|(_, offset)| {
            let size = offset.find('/')?;
            Some(&text[..text.len() - offset.len() + size])
        });
        Site { addr: None, symbol: Some(names.intern(symbol.unwrap_or(text))) }
    }
}

fn gfp(text: &str, names: &mut Names) -> Gfp {
    match text.strip_prefix("0x").and_then(hexadecimal) {
        Some(raw) => Gfp { raw: Some(raw), names: None },
        None => Gfp { raw: None, names: Some(names.intern(text)) },
    }
}

/// A frame number: hexadecimal with `0x`, decimal without, as kernels before 5.19 print it.
fn frame(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => hexadecimal(digits),
        None => number(text),
    }
}

/// A pointer, `Some(None)` for NULL in its spellings.
fn pointer(text: &str) -> Option<Option<Pointer>> {
    if matches!(text, "(nil)" | "(null)") {
        return Some(None);
    }
    let digits = text.strip_prefix("0x");
    let hashed = digits.is_none() && text.len() == 16 && text.starts_with("00000000");
    let value = hexadecimal(digits.unwrap_or(text))?;
    Some((value != 0).then_some(Pointer { value, hashed }))
}

/// Digits only; `from_str_radix` would also take a sign.
fn hexadecimal(digits: &str) -> Option<u64> {
    let digit = digits.starts_with(|c: char| c.is_ascii_hexdigit());
    digit.then(|| u64::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_by_name() {
        #[track_caller]
        fn check(fields: &str, key: &str, expected: Option<&str>) {
            assert_eq!(Fields(fields).get(key), expected, "{key} of `{fields}`");
        }
        let fields = "(f+0x1) call_site=nft_x+0x10/0x20 [nf_tables] ptr=0x10 name=jbd2 1k a=b=c node=-1";
        check(fields, "call_site", Some("nft_x+0x10/0x20 [nf_tables]"));
        check(fields, "ptr", Some("0x10"));
        check(fields, "name", Some("jbd2 1k"));
        check(fields, "node", Some("-1"));
        check(fields, "a", Some("b=c"));
        check(fields, "f", None);
        check("", "ptr", None);
        check("ptr=", "ptr", Some(""));
    }

    #[test]
    fn pointers_in_their_spellings() {
        #[track_caller]
        fn check(text: &str, expected: Option<Option<(u64, bool)>>) {
            let found = pointer(text).map(|pointer| pointer.map(|pointer| (pointer.value, pointer.hashed)));
            assert_eq!(found, expected, "{text}");
        }
        check("0xffff888100d03000", Some(Some((0xffff888100d03000, false))));
        check("ffff888100d03000", Some(Some((0xffff888100d03000, false))));
        check("0000000019de907b", Some(Some((0x19de907b, true))));
        check("0x10", Some(Some((16, false))));
        check("0000000000000000", Some(None));
        check("(null)", Some(None));
        check("(nil)", Some(None));
        check("(____ptrval____)", None);
        check("+5", None);
    }
}
