//! The file of an image: what is mapped where, which words depend on the place, and where symbols are.

use object::elf::{R_X86_64_32, R_X86_64_32S, R_X86_64_64};
use object::read::elf::ElfFile64;
use object::{
    Endianness, Object, ObjectSection, ObjectSegment, ObjectSymbol, RelocationFlags, RelocationTarget,
};
use slablab_report::error::{Error, Result};
use std::collections::HashMap;
use std::path::Path;

/// An image as the linker left it.
#[derive(Debug)]
pub(crate) struct Program {
    /// Its segments: address, bytes in memory, contents, whether it is code.
    pub(crate) segments: Vec<Segment>,
    /// Words that hold an address of the image: place, and bytes of the word.
    places: Vec<(u64, u8)>,
    symbols: HashMap<String, u64>,
    /// Functions by address, for call chains.
    functions: Vec<(u64, String)>,
}

/// A segment of the image.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) contents: Vec<u8>,
    pub(crate) is_code: bool,
}

impl Program {
    /// Reads the file of an image.
    pub(crate) fn read(path: &Path) -> Result<Program> {
        let bytes = std::fs::read(path).map_err(|error| Error::new(path, error))?;
        let damaged = |what: &str| {
            Error::new(path, format!("expected an image that `slablab linux build` made: {what}"))
        };
        let file = ElfFile64::<Endianness>::parse(&*bytes).map_err(|error| damaged(&error.to_string()))?;
        let mut segments = Vec::new();
        for segment in file.segments() {
            let contents = segment.data().map_err(|error| damaged(&error.to_string()))?.to_vec();
            let object::SegmentFlags::Elf { p_flags, .. } = segment.flags() else { continue };
            segments.push(Segment {
                address: segment.address(),
                bytes: segment.size(),
                contents,
                is_code: p_flags.contains(object::elf::PF_X),
            });
        }
        if segments.is_empty() {
            return Err(damaged("it has no segment"));
        }
        let mut symbols = HashMap::new();
        let mut functions = Vec::new();
        for symbol in file.symbols().filter(|symbol| symbol.is_definition()) {
            let Ok(name) = symbol.name() else { continue };
            if symbol.kind() == object::SymbolKind::Text {
                functions.push((symbol.address(), name.to_string()));
            }
            if symbol.is_global() {
                symbols.insert(name.to_string(), symbol.address());
            }
        }
        functions.sort_unstable();
        Ok(Program { segments, places: places(&file), symbols, functions })
    }

    /// The first address, and the one after the last.
    pub(crate) fn span(&self) -> (u64, u64) {
        let first = self.segments.iter().map(|segment| segment.address).min().unwrap_or(0);
        let end = self.segments.iter().map(|segment| segment.address + segment.bytes).max().unwrap_or(0);
        (first, end)
    }

    /// The address of a global symbol, as linked.
    pub(crate) fn symbol(&self, name: &str) -> Option<u64> {
        self.symbols.get(name).copied()
    }

    /// The function that an address as linked is in, and how far.
    pub(crate) fn function(&self, address: u64) -> Option<(&str, u64)> {
        let after = self.functions.partition_point(|(start, _)| *start <= address);
        let (start, name) = self.functions.get(after.checked_sub(1)?)?;
        Some((name, address - start))
    }

    /// Moves an image that lies in memory, `delta` bytes from where it was linked. `write` changes the word
    /// at an address as linked: its bytes, and what is added to it.
    pub(crate) fn relocate(&self, delta: i64, mut write: impl FnMut(u64, u8, i64)) {
        if delta != 0 {
            self.places.iter().for_each(|(place, bytes)| write(*place, *bytes, delta));
        }
    }
}

/// The words that hold addresses: absolute relocations against symbols that move.
fn places(file: &ElfFile64<'_, Endianness>) -> Vec<(u64, u8)> {
    let mut places = Vec::new();
    for section in file.sections() {
        let object::SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
        if !sh_flags.contains(object::elf::SHF_ALLOC) {
            continue;
        }
        for (place, relocation) in section.relocations() {
            let bytes = match relocation.flags() {
                RelocationFlags::Elf { r_type: R_X86_64_64 } => 8,
                RelocationFlags::Elf { r_type: R_X86_64_32 | R_X86_64_32S } => 4,
                _ => continue,
            };
            let moves = match relocation.target() {
                RelocationTarget::Symbol(index) => file
                    .symbol_by_index(index)
                    .is_ok_and(|symbol| symbol.section() != object::SymbolSection::Absolute),
                RelocationTarget::Section(_) => true,
                _ => false,
            };
            if moves {
                places.push((place, bytes));
            }
        }
    }
    places
}
