//! Everything of a perf.data but its data: file header, attributes, feature sections, tracing data.

use rustc_hash::FxHashMap;

use super::sample::Layout;
use crate::bytes::{Bytes, Short, text_lossy, uint};
use crate::error::{At, ReadError};
use crate::event::{CutOff, FormatText, Header, NodeOf};
use crate::kmem::{self, Decoder};
use crate::text::id_list;
use crate::tracepoint::{Format, FormatError};

/// `perf_file_header`.
pub(super) struct FileHeader {
    pub(super) attr_size: u64,
    pub(super) attrs: Section,
    pub(super) data: Section,
    pub(super) features: [u64; 4],
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Section {
    pub(super) offset: u64,
    pub(super) size: u64,
}

impl FileHeader {
    /// Bytes of the header, the first 16 of which (magic and header size) a pipe has too.
    pub(super) const SIZE: u64 = 104;

    /// Reads it from just after its first 16 bytes.
    pub(super) fn parse(mut bytes: Bytes<'_>) -> Result<FileHeader, ReadError> {
        let attr_size = bytes.u64("attribute size")?;
        let attrs = section(&mut bytes, "attribute section")?;
        let data = section(&mut bytes, "data section")?;
        let _event_types = section(&mut bytes, "event type section")?;
        let mut features = [0; 4];
        for word in &mut features {
            *word = bytes.u64("feature bits")?;
        }
        Ok(FileHeader { attr_size, attrs, data, features })
    }
}

impl FileHeader {
    /// Bytes of the table behind the data, which says where the features are.
    pub(super) fn feature_table(&self) -> u64 {
        16 * self.features.iter().map(|word| u64::from(word.count_ones())).sum::<u64>()
    }
}

fn section(bytes: &mut Bytes<'_>, what: &'static str) -> Result<Section, ReadError> {
    Ok(Section { offset: bytes.u64(what)?, size: bytes.u64(what)? })
}

/// The known parts of the file around the data section.
pub(super) struct Parts<'a> {
    /// From byte 0 to the data section.
    pub(super) head: &'a [u8],
    /// From the data section's end to the file's.
    pub(super) tail: &'a [u8],
    pub(super) tail_at: u64,
    pub(super) big_endian: bool,
}

impl<'a> Parts<'a> {
    fn section(&self, section: Section, what: &'static str) -> Result<Bytes<'a>, ReadError> {
        let Section { offset, size } = section;
        let (data, base) = if offset < self.tail_at { (self.head, 0) } else { (self.tail, self.tail_at) };
        let mut bytes = Bytes::new(data, base, self.big_endian);
        let inside = (offset - base).min(data.len() as u64);
        bytes.take(inside, what)?;
        if base + inside < offset {
            return Err(Short { offset, what, need: size, have: 0 }.into());
        }
        let at = bytes.offset();
        Ok(Bytes::new(bytes.take(size, what)?, at, self.big_endian))
    }
}

/// What the stream needs to decode records, gathered from the file's sections or the pipe's first records.
#[derive(Default)]
pub(super) struct Meta {
    pub(super) header: Header,
    pub(super) layouts: Vec<Layout>,
    pub(super) layout_of_id: FxHashMap<u64, u16>,
    pub(super) decoders: FxHashMap<u16, Decoder>,
    known: Vec<String>,
    /// The numbers of the tracepoints that were recorded.
    tracepoints: Vec<u64>,
    has_formats: bool,
}

/// Feature bits (`HEADER_*`).
const TRACING_DATA: u64 = 1;
const BUILD_ID: u64 = 2;
const OSRELEASE: u64 = 4;
const ARCH: u64 = 6;
const NRCPUS: u64 = 7;
const CMDLINE: u64 = 11;
const NUMA_TOPOLOGY: u64 = 14;

impl Meta {
    /// More attributes than any perf opens; one event on every CPU is one attribute.
    const LAYOUT_LIMIT: usize = 1 << 12;
    /// More event ids (one per attribute and CPU) than that machine has.
    const ID_LIMIT: usize = 1 << 22;

    /// Reads the sections of file mode.
    pub(super) fn of_file(file: &FileHeader, parts: &Parts<'_>) -> Result<Meta, ReadError> {
        let mut meta = Meta::default();
        meta.read_attrs(file, parts)?;
        let table = Section { offset: parts.tail_at, size: file.feature_table() };
        let mut table = parts.section(table, "feature section table")?;
        for feature in 0..256u64 {
            if file.features[feature as usize / 64] >> (feature % 64) & 1 == 1 {
                let at = section(&mut table, "feature section table")?;
                if matches!(
                    feature,
                    TRACING_DATA | BUILD_ID | OSRELEASE | ARCH | NRCPUS | CMDLINE | NUMA_TOPOLOGY
                ) {
                    meta.feature(feature, parts.section(at, "feature section")?)?;
                }
            }
        }
        Ok(meta)
    }

    /// What a file says before its data, with formats from elsewhere.
    pub(super) fn with_formats(
        file: &FileHeader,
        parts: &Parts<'_>,
        formats: &[FormatText],
        cut_off: CutOff,
    ) -> Result<Meta, ReadError> {
        let mut meta = Meta::default();
        meta.read_attrs(file, parts)?;
        for FormatText { system, text } in formats {
            meta.format(system, text, 0, parts.big_endian)?;
        }
        meta.has_formats = true;
        let is_known = |id: &u64| u16::try_from(*id).is_ok_and(|id| meta.decoders.contains_key(&id));
        if !meta.tracepoints.iter().any(is_known) {
            let what = format_args!(
                "the recording's events have the numbers {:?}, and the formats others: they are of another kernel",
                &meta.tracepoints[..meta.tracepoints.len().min(16)]
            );
            return Err(ReadError::new(At::Whole, what));
        }
        meta.header.cut_off = Some(cut_off);
        Ok(meta)
    }

    fn read_attrs(&mut self, file: &FileHeader, parts: &Parts<'_>) -> Result<(), ReadError> {
        const IDS: u64 = 16;
        if file.attr_size < IDS + 64 || file.attr_size > 4096 {
            let expected = "an attribute size of 80 to 4096 bytes";
            return Err(ReadError::value(16, expected, file.attr_size));
        }
        let mut attrs = parts.section(file.attrs, "attribute section")?;
        while attrs.left() as u64 >= file.attr_size {
            let at = attrs.offset();
            let attr = attrs.take(file.attr_size - IDS, "attribute")?;
            let ids = section(&mut attrs, "attribute's id section")?;
            let ids = parts.section(ids, "event ids")?;
            self.attr(Bytes::new(attr, at, parts.big_endian), ids)?;
        }
        Ok(())
    }

    /// One `perf_event_attr` and its event ids.
    fn attr(&mut self, attr: Bytes<'_>, mut ids: Bytes<'_>) -> Result<(), ReadError> {
        let at = attr.offset();
        let (layout, facts) = Layout::of_attr(attr)?;
        self.header.clock.get_or_insert_with(|| facts.clock.to_string());
        if self.tracepoints.len() < Self::LAYOUT_LIMIT {
            self.tracepoints.extend(facts.tracepoint);
        }
        if facts.sampled && self.header.warnings.is_empty() {
            let warning = "the recording was sampled: it has only every n-th event of some kinds";
            self.header.warnings.push(warning.into());
        }
        let index = match self.layouts.iter().position(|known| *known == layout) {
            Some(index) => index,
            None if self.layouts.len() >= Self::LAYOUT_LIMIT => {
                let expected = "fewer different attributes";
                return Err(ReadError::value(at, expected, self.layouts.len()));
            }
            None => {
                self.layouts.push(layout);
                self.layouts.len() - 1
            }
        };
        while ids.left() >= 8 && self.layout_of_id.len() < Self::ID_LIMIT {
            self.layout_of_id.insert(ids.u64("event id")?, index as u16);
        }
        Ok(())
    }

    /// The body of a pipe's HEADER_ATTR record.
    pub(super) fn pipe_attr(&mut self, mut body: Bytes<'_>, big_endian: bool) -> Result<(), ReadError> {
        let at = body.offset();
        let mut peek = body;
        peek.take(4, "attribute type")?;
        let size = match peek.u32("attribute size")? {
            0 => 64,
            size => size,
        };
        let attr = body.take(u64::from(size), "attribute")?;
        self.attr(Bytes::new(attr, at, big_endian), body)
    }

    /// One feature section, or the body of a pipe's HEADER_FEATURE record after its number.
    pub(super) fn feature(&mut self, feature: u64, mut bytes: Bytes<'_>) -> Result<(), ReadError> {
        match feature {
            TRACING_DATA => self.tracing_data(bytes)?,
            BUILD_ID => self.header.build_id = kernel_build_id(bytes).or(self.header.build_id.take()),
            OSRELEASE => self.header.release = Some(string(&mut bytes)?),
            ARCH => self.header.arch = Some(string(&mut bytes)?),
            NRCPUS => {
                self.header.cpus_available = Some(bytes.u32("number of CPUs")?);
                self.header.cpus_online = Some(bytes.u32("number of online CPUs")?);
            }
            NUMA_TOPOLOGY => {
                let count = bytes.u32("number of nodes")?;
                // Every node takes 24 bytes, which bounds what a wrong count can cost.
                for _ in 0..u64::from(count).min(bytes.left() as u64 / 24) {
                    let node = bytes.u32("node")?;
                    let kib = bytes.u64("memory of a node")?;
                    bytes.take(8, "free memory of a node")?;
                    let cpus = id_list(&string(&mut bytes)?).unwrap_or_default();
                    self.header.nodes.push(NodeOf { node, bytes: kib.saturating_mul(1024), cpus });
                }
            }
            CMDLINE => {
                let count = bytes.u32("number of command words")?;
                // Every word takes at least its length field, which bounds what a wrong count can cost.
                for _ in 0..u64::from(count).min(bytes.left() as u64 / 4) {
                    let word = string(&mut bytes)?;
                    self.header.command.push(word);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The `tracing_data` block: the trace.dat preamble that perf embeds.
    pub(super) fn tracing_data(&mut self, mut bytes: Bytes<'_>) -> Result<(), ReadError> {
        self.has_formats = true;
        let at = bytes.offset();
        let magic = bytes.take(10, "tracing data magic")?;
        if magic != b"\x17\x08\x44tracing" {
            let expected = "the magic of tracing data, 17 08 44 `tracing`";
            return Err(ReadError::value(at, expected, magic[0]));
        }
        bytes.text("tracing data version")?;
        let big_endian = bytes.take(1, "tracing data endianness")?[0] != 0;
        let mut bytes = bytes.with_endianness(big_endian);
        bytes.take(1, "size of long")?;
        self.header.page_size =
            Some(u64::from(bytes.u32("page size")?)).filter(|size| size.is_power_of_two());
        for what in ["header_page", "header_event"] {
            bytes.text(what)?;
            let size = bytes.u64(what)?;
            bytes.take(size, what)?;
        }
        for _ in 0..bytes.u32("number of ftrace formats")? {
            let size = bytes.u64("ftrace format size")?;
            bytes.take(size, "ftrace format")?;
        }
        for _ in 0..bytes.u32("number of event systems")? {
            let system = text_lossy(bytes.text("event system name")?).into_owned();
            for _ in 0..bytes.u32("number of event formats")? {
                let size = bytes.u64("event format size")?;
                let at = bytes.offset();
                let text = bytes.take(size, "event format")?;
                self.format(&system, &text_lossy(text), at, big_endian)?;
            }
        }
        Ok(())
    }

    fn format(&mut self, system: &str, text: &str, at: u64, big_endian: bool) -> Result<(), ReadError> {
        let error = |source: FormatError| ReadError::at_byte(at, source);
        let format = Format::parse(text).map_err(error)?;
        if self.known.len() < 32 {
            self.known.push(format!("{system}:{}", format.name));
        }
        if !kmem::is_known(&format.name) {
            return Ok(());
        }
        if self.header.gfp.is_empty() {
            self.header.gfp = format.flags("gfp_flags");
        }
        match Decoder::new(&format, big_endian) {
            Ok(decoder) => self.decoders.extend(decoder.map(|decoder| (format.id, decoder))),
            // Kernels before 4.1 record a struct page's address, from which no frame number follows.
            Err(_) if format.name.starts_with("mm_page") => {
                let warning = format!("{} has no pfn: page events are left out", format.name);
                self.header.warnings.push(warning);
            }
            Err(source) => return Err(error(source)),
        }
        self.header.formats.push(FormatText { system: system.into(), text: text.into() });
        Ok(())
    }

    /// The layout that the id in `id_bytes` stands for; the first if there is only one or the id is unknown.
    #[inline]
    pub(super) fn layout_of(&self, id_bytes: Option<&[u8]>, big_endian: bool) -> &Layout {
        let id = id_bytes.filter(|_| self.layouts.len() > 1).map(|bytes| uint(bytes, big_endian));
        let index = id.and_then(|id| self.layout_of_id.get(&id)).map_or(0, |&index| usize::from(index));
        &self.layouts[index]
    }

    /// Checks that there is something to read.
    pub(super) fn check(&self) -> Result<(), ReadError> {
        if !self.has_formats {
            let what = "the recording has no tracepoint formats (HEADER_TRACING_DATA): record with \
                        `perf record -e 'kmem:*'`, not as hardware or software events";
            return Err(ReadError::new(At::Whole, what));
        }
        if self.decoders.is_empty() {
            return Err(ReadError::no_kmem(&self.known));
        }
        Ok(())
    }
}

/// A `perf_header_string`: length, then a NUL-padded text.
fn string(bytes: &mut Bytes<'_>) -> Result<String, ReadError> {
    let len = bytes.u32("string length")?;
    Ok(text_lossy(bytes.take(u64::from(len), "string")?).into_owned())
}

/// The build id of the running kernel among `build_id_event` records: header, pid, 20 bytes and padding, file
/// name.
fn kernel_build_id(mut bytes: Bytes<'_>) -> Option<String> {
    const BEFORE_NAME: u64 = 8 + 4 + 24;
    while bytes.left() as u64 > BEFORE_NAME {
        bytes.take(4, "record type").ok()?;
        let misc_and_size = bytes.u32("record size").ok()?;
        // Two 16-bit fields, misc first in memory, read as one word of either endianness.
        let halves = [misc_and_size as u16, (misc_and_size >> 16) as u16];
        let size = u64::from(if bytes.is_big_endian() { halves[0] } else { halves[1] });
        bytes.take(4, "pid").ok()?;
        let id = bytes.take(24, "build id").ok()?;
        let name = text_lossy(bytes.take(size.checked_sub(BEFORE_NAME)?, "file name").ok()?);
        if name.starts_with("[kernel.kallsyms]") {
            return Some(id[..20].iter().map(|byte| format!("{byte:02x}")).collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_their_cpus() {
        let mut data = 2u32.to_le_bytes().to_vec();
        for (node, cpus) in [(0u32, "0-1,4"), (3, "2-3")] {
            data.extend(node.to_le_bytes());
            data.extend([2048u64, 1024].map(u64::to_le_bytes).concat());
            data.extend(8u32.to_le_bytes());
            data.extend(cpus.bytes().chain(std::iter::repeat_n(0, 8 - cpus.len())));
        }
        let mut meta = Meta::default();
        meta.feature(NUMA_TOPOLOGY, Bytes::new(&data, 0, false)).unwrap();
        let node = |node, cpus: &[u32]| NodeOf { node, bytes: 2 << 20, cpus: cpus.to_vec() };
        assert_eq!(meta.header.nodes, [node(0, &[0, 1, 4]), node(3, &[2, 3])]);
        assert!(Meta::default().feature(NUMA_TOPOLOGY, Bytes::new(&data[..30], 0, false)).is_err());
    }
}
