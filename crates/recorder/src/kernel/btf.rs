//! The kernel's types, as it describes them itself in /sys/kernel/btf/vmlinux: where fields are.
//!
//! Only what a snapshot asks for is read: structs and unions with their members, and the names of enums. The
//! format is that of the kernel's documentation (Documentation/bpf/btf.rst).

use std::collections::HashMap;

/// Kinds of types with members or names.
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;

/// The types of a kernel.
pub(super) struct Btf {
    bytes: Vec<u8>,
    /// Where the names are.
    names: usize,
    /// Where each type is, by its number; number 0 is no type.
    types: Vec<usize>,
    /// Structs by name.
    structs: HashMap<String, usize>,
}

/// A field: bits from the start of its struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// Its first bit.
    pub(super) bit: u32,
    /// Its bits, of a bit field; 0 for another.
    pub(super) bits: u32,
}

impl Field {
    /// Its first byte.
    pub(super) fn byte(self) -> u64 {
        u64::from(self.bit / 8)
    }
}

impl Btf {
    /// Reads the types.
    ///
    /// # Errors
    /// What is no such file, in a sentence.
    pub(super) fn parse(bytes: Vec<u8>) -> Result<Btf, String> {
        let wrong = |at: usize| format!("/sys/kernel/btf/vmlinux: byte {at}: expected a type");
        let word = |at: usize| word(&bytes, at).ok_or_else(|| wrong(at));
        if word(0)? & 0xffff != 0xeb9f {
            return Err("/sys/kernel/btf/vmlinux: expected the magic number 0xeb9f".into());
        }
        let head = word(4)? as usize;
        let (first, length) = (head + word(8)? as usize, word(12)? as usize);
        let names = head + word(16)? as usize;
        let mut btf = Btf { names, types: vec![0], structs: HashMap::new(), bytes: Vec::new() };
        let mut at = first;
        while at < first + length {
            let (name, info) = (word(at)?, word(at + 4)?);
            let (kind, count) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
            if matches!(kind, STRUCT | UNION)
                && let Some(name) = text(&bytes, names + name as usize).filter(|name| !name.is_empty())
            {
                btf.structs.entry(name.to_string()).or_insert(btf.types.len());
            }
            btf.types.push(at);
            at += 12 + after(kind, count).ok_or_else(|| wrong(at))?;
        }
        btf.bytes = bytes;
        Ok(btf)
    }

    /// Bytes of a struct.
    pub(super) fn size(&self, of: &str) -> Option<u64> {
        let at = self.types[*self.structs.get(of)?];
        word(&self.bytes, at + 8).map(u64::from)
    }

    /// A field of a struct, also of one without a name inside of it.
    pub(super) fn field(&self, of: &str, name: &str) -> Option<Field> {
        self.field_of(*self.structs.get(of)?, name, 0)
    }

    fn field_of(&self, id: usize, name: &str, depth: u32) -> Option<Field> {
        let at = *self.types.get(id)?;
        let info = word(&self.bytes, at + 4)?;
        if !matches!(info >> 24 & 0x1f, STRUCT | UNION) || depth > 8 {
            return None;
        }
        (0..(info & 0xffff) as usize).find_map(|index| {
            let at = at + 12 + 12 * index;
            let (offset, id) = (word(&self.bytes, at + 8)?, word(&self.bytes, at + 4)? as usize);
            // Of a struct with bit fields an offset has their bits in its upper byte.
            let (bit, bits) = if info >> 31 == 1 { (offset & 0xff_ffff, offset >> 24) } else { (offset, 0) };
            match text(&self.bytes, self.names + word(&self.bytes, at)? as usize)? {
                "" => {
                    let inner = self.field_of(id, name, depth + 1)?;
                    Some(Field { bit: bit + inner.bit, ..inner })
                }
                found => (found == name).then_some(Field { bit, bits }),
            }
        })
    }

    /// The value of a name of any enum.
    pub(super) fn value(&self, name: &str) -> Option<u32> {
        self.types.iter().skip(1).find_map(|at| {
            let info = word(&self.bytes, at + 4)?;
            if info >> 24 & 0x1f != ENUM {
                return None;
            }
            let mut values = (0..(info & 0xffff) as usize).map(|index| at + 12 + 8 * index);
            let at = values.find(|at| {
                let place = word(&self.bytes, *at).map(|place| self.names + place as usize);
                place.and_then(|place| text(&self.bytes, place)) == Some(name)
            })?;
            word(&self.bytes, at + 4)
        })
    }
}

/// Bytes of a type behind its first three words.
fn after(kind: u32, count: usize) -> Option<usize> {
    Some(match kind {
        // Pointers, forwards, typedefs, qualifiers, functions, floats, tags of types.
        2 | 7..=12 | 16 | 18 => 0,
        // Integers, variables, tags of declarations.
        1 | 14 | 17 => 4,
        // Arrays.
        3 => 12,
        STRUCT | UNION | 15 | 19 => 12 * count,
        ENUM | 13 => 8 * count,
        _ => return None,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn text(bytes: &[u8], at: usize) -> Option<&str> {
    let rest = bytes.get(at..)?;
    std::str::from_utf8(&rest[..rest.iter().position(|byte| *byte == 0)?]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types of a file: name, info, size, and words behind; names are places in [`NAMES`].
    fn file(types: &[&[u32]]) -> Vec<u8> {
        let words: Vec<u32> = types.concat();
        let length = 4 * words.len() as u32;
        let head = [0x0001_eb9f, 24, 0, length, length, NAMES.len() as u32];
        let words = head.iter().chain(&words).flat_map(|word| word.to_ne_bytes());
        words.chain(NAMES.iter().copied()).collect()
    }

    /// `slab` is at 1, `next` at 6, `inuse` at 11, `frozen` at 17, `PGTY_slab` at 24.
    const NAMES: &[u8] = b"\0slab\0next\0inuse\0frozen\0PGTY_slab\0";

    #[test]
    fn fields_are_found_in_structs_without_a_name() {
        let bits = 1 << 31 | STRUCT << 24;
        let types = file(&[
            &[0, 1 << 24, 4, 32],
            &[0, UNION << 24 | 1, 8, 6, 1, 0],
            &[0, bits | 2, 4, 11, 1, 16 << 24, 17, 1, 1 << 24 | 31],
            &[1, STRUCT << 24 | 2, 16, 0, 2, 64, 0, 3, 96],
            &[0, ENUM << 24 | 1, 4, 24, 245],
        ]);
        let btf = Btf::parse(types).unwrap();
        assert_eq!(btf.size("slab"), Some(16));
        assert_eq!(btf.field("slab", "next"), Some(Field { bit: 64, bits: 0 }));
        assert_eq!(btf.field("slab", "inuse"), Some(Field { bit: 96, bits: 16 }));
        assert_eq!(btf.field("slab", "frozen"), Some(Field { bit: 127, bits: 1 }));
        assert_eq!((btf.field("slab", "freelist"), btf.field("page", "next")), (None, None));
        assert_eq!((btf.value("PGTY_slab"), btf.value("PG_slab")), (Some(245), None));
    }

    #[test]
    fn another_file_is_refused() {
        #[track_caller]
        fn check(bytes: Vec<u8>, expected: &str) {
            let error = Btf::parse(bytes).err().expect("refused");
            assert!(error.contains(expected), "{error}");
        }
        check(b"ELF".to_vec(), "byte 0");
        check(vec![0; 64], "magic number");
        check(file(&[&[0, 30 << 24, 4]]), "expected a type");
        let cut = file(&[&[0, 1 << 24, 4, 32]]);
        check(cut[..30].to_vec(), "byte 28");
    }
}
