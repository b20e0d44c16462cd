//! Everything of a trace.dat but its events: formats, task names, symbols, options.
//!
//! The same blocks come one after the other in version 6 and as sections in version 7; `head` knows which is
//! where.

use rustc_hash::FxHashMap;

use super::symbols::Symbols;
use crate::bytes::{Bytes, text_lossy, uint_at};
use crate::error::ReadError;
use crate::event::{FormatText, Header, LossKind, Lost, Name, Names};
use crate::kmem::{self, Decoder};
use crate::text::number;
use crate::tracepoint::{Format, FormatError};

/// What the stream needs to decode payloads.
#[derive(Default)]
pub(super) struct Meta {
    pub(super) header: Header,
    pub(super) decoders: FxHashMap<u16, Decoder>,
    /// The event of texts written to `trace_marker`.
    pub(super) mark: Option<Mark>,
    pub(super) comms: FxHashMap<i32, Name>,
    pub(super) symbols: Symbols,
    pub(super) buffers: Vec<Buffer>,
    /// What the rings' own counts say was lost.
    pub(super) losses: Vec<Lost>,
    pub(super) tsc: Option<Tsc>,
    /// Bytes of a ring buffer's page, as the kernel says in `header_page`.
    pub(super) ring_page: u64,
    known: Vec<String>,
}

/// The ring buffers of one tracing instance.
pub(super) struct Buffer {
    pub(super) page_size: u64,
    pub(super) compressed: bool,
    pub(super) cpus: Vec<Ring>,
}

/// Where one CPU's events are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring {
    pub(super) cpu: u32,
    pub(super) offset: u64,
    pub(super) size: u64,
}

/// The `print` event of ftrace: its number and where its text begins.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    pub(super) id: u16,
    pub(super) text_at: usize,
}

/// Time-stamp counter to nanoseconds.
#[derive(Clone, Copy)]
pub(super) struct Tsc {
    multiplier: u32,
    shift: u32,
    offset: u64,
}

impl Tsc {
    /// Nanoseconds since the offset's origin.
    pub(super) fn nanoseconds(self, ticks: u64) -> u64 {
        let scaled = (u128::from(ticks) * u128::from(self.multiplier)) >> self.shift;
        (scaled as u64).wrapping_sub(self.offset)
    }
}

/// Option numbers that mean the same in both versions.
pub(super) mod option {
    pub(crate) const DONE: u16 = 0;
    pub(crate) const CPUSTAT: u16 = 2;
    pub(crate) const BUFFER: u16 = 3;
    pub(crate) const TRACECLOCK: u16 = 4;
    pub(crate) const UNAME: u16 = 5;
    pub(crate) const CPUCOUNT: u16 = 8;
    pub(crate) const TSC2NSEC: u16 = 14;
}

impl Meta {
    /// Task names kept.
    const COMM_LIMIT: usize = 1 << 20;

    /// `header_page` and `header_event`, which say how a ring buffer's page is laid out.
    pub(super) fn header_info(&mut self, bytes: &mut Bytes<'_>) -> Result<(), ReadError> {
        for what in ["header_page", "header_event"] {
            let at = bytes.offset();
            let name = bytes.text(what)?;
            if name != what.as_bytes() {
                return Err(ReadError::text(at, "`header_page`, then `header_event`", name));
            }
            let size = bytes.u64(what)?;
            let at = bytes.offset();
            let text = text_lossy(bytes.take(size, what)?);
            if what == "header_page" {
                self.header_page(&text, at)?;
            }
        }
        Ok(())
    }

    fn header_page(&mut self, text: &str, at: u64) -> Result<(), ReadError> {
        let fields = ["timestamp", "commit", "data"].map(|name| page_field(text, name));
        let [Some((0, 8)), Some((8, commit)), Some((data, size))] = fields else {
            let expected = "a page header with `timestamp` at 0, `commit` at 8, and `data`";
            return Err(ReadError::text(at, expected, text.trim().as_bytes()));
        };
        if (commit, data) != (8, 16) {
            let expected =
                "a kernel with 64-bit longs: `commit` of 8 bytes, `data` at 16; this one has 32-bit";
            return Err(ReadError::value(at, expected, commit));
        }
        self.ring_page = data.saturating_add(size);
        Ok(())
    }

    /// The formats of ftrace's own events.
    pub(super) fn ftrace_formats(&mut self, bytes: &mut Bytes<'_>) -> Result<(), ReadError> {
        for _ in 0..bytes.u32("number of ftrace formats")? {
            let size = bytes.u64("ftrace format size")?;
            let text = text_lossy(bytes.take(size, "ftrace format")?);
            // The others have types that no trace event has; only this one's is looked into.
            if text.starts_with("name: print\n")
                && let Ok(format) = Format::parse(&text)
                && let Some(buf) = format.field("buf")
            {
                self.mark = Some(Mark { id: format.id, text_at: buf.offset });
            }
        }
        Ok(())
    }

    /// The formats of all other events.
    pub(super) fn event_formats(&mut self, bytes: &mut Bytes<'_>) -> Result<(), ReadError> {
        for _ in 0..bytes.u32("number of event systems")? {
            let system = text_lossy(bytes.text("event system name")?).into_owned();
            for _ in 0..bytes.u32("number of event formats")? {
                let size = bytes.u64("event format size")?;
                let at = bytes.offset();
                let text = bytes.take(size, "event format")?;
                self.format(&system, text, at, bytes.is_big_endian())?;
            }
        }
        Ok(())
    }

    fn format(&mut self, system: &str, text: &[u8], at: u64, big_endian: bool) -> Result<(), ReadError> {
        let text = text_lossy(text);
        let name = text.strip_prefix("name:").and_then(|text| text.lines().next()).unwrap_or("").trim();
        if self.known.len() < 32 {
            self.known.push(format!("{system}:{name}"));
        }
        // A recording has the formats of all events of its kernel, some two thousand: those of others are not
        // read.
        if !kmem::is_known(name) {
            return Ok(());
        }
        let error = |source: FormatError| ReadError::at_byte(at, source);
        let format = Format::parse(&text).map_err(error)?;
        if self.header.gfp.is_empty() {
            self.header.gfp = format.flags("gfp_flags");
        }
        match Decoder::new(&format, big_endian) {
            Ok(decoder) => self.decoders.extend(decoder.map(|decoder| (format.id, decoder))),
            // Kernels before 4.1 record a struct page's address, from which no frame number follows.
            Err(_) if name.starts_with("mm_page") => {
                self.header.warnings.push(format!("{name} has no pfn: page events are left out"));
            }
            Err(source) => return Err(error(source)),
        }
        self.header.formats.push(FormatText { system: system.into(), text: text.into_owned() });
        Ok(())
    }

    /// The kernel's symbols: a 32-bit size, then the text.
    pub(super) fn kallsyms(&mut self, bytes: &mut Bytes<'_>) -> Result<(), ReadError> {
        let size = bytes.u32("size of the symbols")?;
        self.symbols = Symbols::parse(bytes.take(u64::from(size), "symbols")?);
        Ok(())
    }

    /// The tasks' names: a 64-bit size, then lines of number and name.
    pub(super) fn cmdlines(&mut self, bytes: &mut Bytes<'_>, names: &mut Names) -> Result<(), ReadError> {
        let size = bytes.u64("size of the task names")?;
        let text = bytes.take(size, "task names")?;
        for line in text.split(|&byte| byte == b'\n') {
            let line = text_lossy(line);
            let Some((pid, comm)) = line.split_once(' ') else { continue };
            if let Some(pid) = number::<u32>(pid)
                && self.comms.len() < Self::COMM_LIMIT
            {
                self.comms.insert(pid as i32, names.intern(comm));
            }
        }
        Ok(())
    }

    /// One option that means the same in both versions.
    pub(super) fn option(&mut self, id: u16, mut bytes: Bytes<'_>) -> Result<(), ReadError> {
        let at = bytes.offset();
        match id {
            option::CPUSTAT => {
                let text = text_lossy(bytes.take(bytes.left() as u64, "ring statistics")?);
                self.losses.extend(stat_loss(&text, self.losses.len() as u32, at));
            }
            option::TRACECLOCK => {
                let text = bytes.take(bytes.left() as u64, "trace clock")?;
                self.clock(&text_lossy(text));
            }
            option::UNAME => {
                let text = text_lossy(bytes.take(bytes.left() as u64, "uname")?);
                let words: Vec<&str> = text.split_whitespace().collect();
                // `Linux host release [version..] machine [GNU/Linux]`
                self.header.release = words.get(2).map(ToString::to_string);
                let machine = words.iter().skip(3).rfind(|word| **word != "GNU/Linux");
                self.header.arch = machine.map(ToString::to_string);
            }
            option::CPUCOUNT => self.header.cpus_online = Some(bytes.u32("number of CPUs")?),
            option::TSC2NSEC => {
                let (multiplier, shift) = (bytes.u32("multiplier")?, bytes.u32("shift")?);
                if shift >= 64 {
                    let expected = "a shift below 64";
                    return Err(ReadError::value(at + 4, expected, shift));
                }
                self.tsc = Some(Tsc { multiplier, shift, offset: bytes.u64("offset")? });
            }
            _ => {}
        }
        Ok(())
    }

    /// The clock: its name, or the list of all clocks with the used one in brackets.
    pub(super) fn clock(&mut self, text: &str) {
        let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        let name = chosen.map_or(text, |(name, _)| name).trim();
        if !name.is_empty() {
            self.header.clock = Some(name.chars().take(32).collect());
        }
    }

    /// Checks that there is something to read, and says what a user should know.
    pub(super) fn check(&mut self) -> Result<(), ReadError> {
        if self.decoders.is_empty() {
            return Err(ReadError::no_kmem(&self.known));
        }
        let filled = self.buffers.iter().filter(|buffer| buffer.cpus.iter().any(|ring| ring.size > 0));
        if filled.count() > 1 {
            let warning =
                "the recording has several buffers: what more than one recorded is here more than once";
            self.header.warnings.push(warning.into());
        }
        let clock = self.header.clock.as_deref().unwrap_or("local");
        if matches!(clock, "counter" | "uptime" | "x86-tsc" | "ppc-tb") && self.tsc.is_none() {
            let warning =
                format!("the recording's clock, {clock}, does not count nanoseconds: its times are no times");
            self.header.warnings.push(warning);
        }
        // Sums at the end of the recording; rings that lost nothing are no news.
        self.losses.retain(|lost| lost.count > 0);
        Ok(())
    }
}

/// Offset and size of a field in `header_page`.
fn page_field(text: &str, name: &str) -> Option<(u64, u64)> {
    let line = text.lines().find(|line| {
        let declaration = line.split(';').next().unwrap_or("");
        declaration.split_whitespace().next_back() == Some(name)
    })?;
    let value = |key: &str| line.split(';').find_map(|part| number(part.trim().strip_prefix(key)?));
    Some((value("offset:")?, value("size:")?))
}

/// What a CPU's `stats` file says was lost: overwritten before it was read, or dropped as there was no room.
fn stat_loss(text: &str, index: u32, offset: u64) -> Option<Lost> {
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(key));
        line.and_then(|value| number::<u64>(value.trim()))
    };
    let cpu = value("CPU:").and_then(|cpu| u32::try_from(cpu).ok()).unwrap_or(index);
    let parts = ["overrun:", "commit overrun:", "dropped events:"].map(|key| value(key).unwrap_or(0));
    let count = parts.into_iter().fold(0, u64::saturating_add);
    Some(Lost { cpu: Some(cpu), time_ns: None, offset, count, kind: LossKind::Samples })
}

impl Mark {
    /// The text of a payload, if it is one.
    pub(super) fn text(self, payload: &[u8], big_endian: bool) -> Option<std::borrow::Cow<'_, str>> {
        let id = uint_at(payload, 0, 2, big_endian)?;
        (id == u64::from(self.id)).then(|| text_lossy(payload.get(self.text_at..).unwrap_or(&[])))
    }
}
