//! The kernel's memory: words of it, where the parts of CPUs are, and how pages are told by addresses.

use super::bpf::Peek;
use super::words::word_at;

/// Something whose bytes can be read by the kernel's addresses.
pub(super) trait Memory {
    /// `bytes` bytes at an address; `None` if not all of them are there.
    fn bytes(&mut self, address: u64, bytes: usize) -> Option<&[u8]>;

    /// The word at an address.
    fn word(&mut self, address: u64) -> Option<u64> {
        Some(word_at(self.bytes(address, 8)?, 0))
    }

    /// The first half of the word at an address.
    fn half(&mut self, address: u64) -> Option<u32> {
        let bytes = self.bytes(address, 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().expect("four bytes")))
    }

    /// The word that a way of pointers leads to: each is a field of what the one before points to.
    fn follow(&mut self, start: u64, fields: &[u64]) -> Option<u64> {
        fields
            .iter()
            .try_fold(start, |at, field| self.word(at.wrapping_add(*field)).filter(|next| *next != 0))
    }

    /// The text at an address, up to its zero byte.
    fn text(&mut self, address: u64) -> Option<String> {
        /// Names of caches are shorter; the kernel's page may end behind a name.
        const STEP: usize = 16;
        let mut text = Vec::new();
        while text.len() < 256 {
            let bytes = self.bytes(address + text.len() as u64, STEP)?;
            match bytes.iter().position(|byte| *byte == 0) {
                Some(end) => {
                    text.extend_from_slice(&bytes[..end]);
                    return String::from_utf8(text).ok();
                }
                None => text.extend_from_slice(bytes),
            }
        }
        None
    }
}

impl Memory for Peek {
    fn bytes(&mut self, address: u64, bytes: usize) -> Option<&[u8]> {
        Peek::bytes(self, address, bytes)
    }
}

/// How far the part of each CPU is from an address of a variable that each CPU has.
pub(super) fn cpu_parts(peek: &mut Peek, cpus: &[u32], pointer: u64) -> Option<Vec<(u16, u64)>> {
    let part = |peek: &mut Peek, cpu: u32| {
        let here = peek.here(cpu)?;
        let start = peek.word(here.map + pointer)?;
        Some((cpu as u16, here.element.wrapping_sub(start)))
    };
    cpus.iter().map(|cpu| part(peek, *cpu)).collect()
}

/// The kernel's pages: where their descriptions are, and their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pages {
    /// Bytes of a page, and of its description.
    pub(super) page_bytes: u64,
    pub(super) struct_bytes: u64,
    /// The address of frame 0, and of its description.
    pub(super) linear_map: u64,
    pub(super) descriptions: u64,
}

impl Pages {
    pub(super) fn frame(&self, page: u64) -> u64 {
        page.wrapping_sub(self.descriptions) / self.struct_bytes
    }

    pub(super) fn page(&self, frame: u64) -> u64 {
        self.descriptions.wrapping_add(frame * self.struct_bytes)
    }

    pub(super) fn address(&self, page: u64) -> u64 {
        self.linear_map.wrapping_add(self.frame(page) * self.page_bytes)
    }
}

/// Linear maps begin at a multiple of this, as the kernel's randomization places them.
const STEP: u64 = 1 << 30;

/// The address of frame 0: the linear map in which `frame` has `content`. `known` is an address in the map.
/// The memory has `frames` frames at most.
pub(super) fn linear_map(
    memory: &mut impl Memory,
    known: u64,
    (frame, content): (u64, &[u8]),
    (frames, page_bytes): (u64, u64),
) -> Option<u64> {
    let top = known & !(STEP - 1);
    (0..=frames * page_bytes / STEP + 1).map(|step| top.wrapping_sub(step * STEP)).find(|base| {
        let found = memory.bytes(base.wrapping_add(frame * page_bytes), content.len());
        found == Some(content)
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Bytes at addresses.
    #[derive(Default)]
    pub(crate) struct Fake(pub(crate) BTreeMap<u64, Vec<u8>>);

    impl Fake {
        pub(crate) fn put(&mut self, address: u64, words: &[u64]) {
            self.0.insert(address, words.iter().flat_map(|word| word.to_ne_bytes()).collect());
        }
    }

    impl Memory for Fake {
        fn bytes(&mut self, address: u64, bytes: usize) -> Option<&[u8]> {
            let (start, part) = self.0.range(..=address).next_back()?;
            let at = (address - start) as usize;
            part.get(at..at + bytes)
        }
    }

    #[test]
    fn the_linear_map_is_where_a_known_frame_is() {
        let base = 0xffff_8d3c_4000_0000;
        let content = *b"a page of this process";
        let mut memory = Fake::default();
        let address = base + 0x1_2345 * 4096;
        memory.0.insert(address, content.to_vec());
        // The same frame of other maps has something else, or nothing.
        memory.0.insert(address + STEP, vec![0; 64]);
        let found = |memory: &mut Fake, frames| {
            linear_map(memory, base + 5 * STEP + 77, (0x1_2345, &content), (frames, 4096))
        };
        assert_eq!(found(&mut memory, 6 * STEP / 4096), Some(base));
        assert_eq!(found(&mut memory, STEP / 4096), None);
    }

    #[test]
    fn ways_and_texts_end_where_memory_does() {
        let mut memory = Fake::default();
        memory.put(0x1000, &[0, 0x2000]);
        memory.put(0x2000, &[0x3000, 0]);
        memory.put(0x3000, &[7]);
        assert_eq!(memory.follow(0x1000, &[8, 0, 0]), Some(7));
        assert_eq!(memory.follow(0x1000, &[8, 8, 0]), None, "a null pointer");
        memory.0.insert(0x5000, [&b"kmalloc-rnd-01-cg-128\0"[..], &[0; 16]].concat());
        assert_eq!(memory.text(0x5000).as_deref(), Some("kmalloc-rnd-01-cg-128"));
        assert_eq!(memory.text(0x9000), None);
    }

    #[test]
    fn pages_and_addresses() {
        let pages = Pages {
            page_bytes: 4096,
            struct_bytes: 64,
            linear_map: 0xffff_8880_0000_0000,
            descriptions: 0xffff_ea00_0000_0000,
        };
        let page = pages.page(0x123);
        assert_eq!(page, 0xffff_ea00_0000_48c0);
        assert_eq!((pages.frame(page), pages.address(page)), (0x123, 0xffff_8880_0012_3000));
    }
}
