//! Where the parts of a trace.dat are: in a row in version 6, behind options in version 7.

use std::io::{Read, Seek};

use super::file::{Algorithm, File, PART_LIMIT};
use super::meta::{Buffer, Meta, Ring, option};
use crate::bytes::{Bytes, text_lossy};
use crate::error::{At, ReadError, What};
use crate::event::Names;

/// The first bytes of a trace.dat.
pub const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Version 7's sections, by number and what an error calls them.
mod section {
    pub(super) const OPTIONS: (u16, &str) = (0, "options section (0)");
    pub(super) const BUFFER: (u16, &str) = (3, "buffer section (3)");
    pub(super) const HEADER_INFO: (u16, &str) = (16, "header section (16)");
    pub(super) const FTRACE_FORMATS: (u16, &str) = (17, "ftrace formats section (17)");
    pub(super) const EVENT_FORMATS: (u16, &str) = (18, "event formats section (18)");
    pub(super) const KALLSYMS: (u16, &str) = (19, "symbols section (19)");
    pub(super) const CMDLINES: (u16, &str) = (21, "task names section (21)");
    /// The option of a latency tracer's text.
    pub(super) const BUFFER_TEXT: u16 = 22;
}

/// The beginning that both versions have.
struct Start {
    version: u8,
    big_endian: bool,
    page_size: u64,
    /// Bytes read so far.
    len: u64,
}

/// Reads all but the events.
pub(super) fn read<R: Read + Seek>(file: &mut File<R>, names: &mut Names) -> Result<Meta, ReadError> {
    let mut head = Vec::new();
    file.read(0, 256, &mut head)?;
    let mut bytes = Bytes::new(&head, 0, false);
    let start = start(&mut bytes)?;
    file.big_endian = start.big_endian;
    let mut bytes = bytes.with_endianness(start.big_endian);
    let mut meta = match start.version {
        6 => version_6(file, &start, names)?,
        _ => {
            let at = bytes.offset();
            file.algorithm = Algorithm::of(bytes.text("compression name")?, at)?;
            bytes.text("compression version")?;
            let first = bytes.u64("offset of the options")?;
            version_7(file, first, names)?
        }
    };
    meta.header.page_size = Some(start.page_size);
    meta.comms.insert(0, names.intern("<idle>"));
    meta.check()?;
    Ok(meta)
}

fn start(bytes: &mut Bytes<'_>) -> Result<Start, ReadError> {
    let magic = bytes.take((bytes.left() as u64).min(MAGIC.len() as u64), "magic")?;
    if magic != MAGIC {
        return Err(ReadError::value(0, "17 08 44 `tracing`", format_args!("{magic:02x?}: not a trace.dat")));
    }
    let version = match bytes.text("version")? {
        b"6" => 6,
        b"7" => 7,
        found => {
            return Err(ReadError::text(10, "version 6 or 7", found));
        }
    };
    let at = bytes.offset();
    let big_endian = match bytes.take(1, "endianness")?[0] {
        0 => false,
        1 => true,
        found => {
            let expected = "0 (little endian) or 1 (big endian)";
            return Err(ReadError::value(at, expected, found));
        }
    };
    // Of user space: a 64-bit kernel is traced by 32-bit programs too. `header_page` tells of the kernel.
    bytes.take(1, "size of long")?;
    let at = bytes.offset();
    *bytes = bytes.with_endianness(big_endian);
    let page_size = u64::from(bytes.u32("page size")?);
    check_page_size(page_size, at)?;
    Ok(Start { version, big_endian, page_size, len: bytes.offset() })
}

/// A page of a machine or of a ring buffer, whose header alone takes 16 bytes.
fn check_page_size(size: u64, offset: u64) -> Result<(), ReadError> {
    if size.is_power_of_two() && (64..=16 << 20).contains(&size) {
        return Ok(());
    }
    Err(ReadError::value(offset, "a page size: a power of two up to 16 MiB", size))
}

/// All parts in a row. How long they are is known when they have been read, so more is taken until it is
/// enough.
fn version_6<R: Read + Seek>(
    file: &mut File<R>,
    start: &Start,
    names: &mut Names,
) -> Result<Meta, ReadError> {
    let mut size = 1 << 20;
    loop {
        let mut head = Vec::new();
        file.read(0, size, &mut head)?;
        let whole = (head.len() as u64) < size;
        let (mut meta, mut bytes) = (Meta::default(), Bytes::new(&head, 0, start.big_endian));
        bytes.take(start.len, "header")?;
        match row_6(&mut meta, &mut bytes, names) {
            Err(ReadError { what: What::Truncated { .. }, .. }) if !whole && size < 2 * PART_LIMIT => {
                size *= 4
            }
            Err(error) => return Err(error),
            Ok(instances) => {
                for offset in instances {
                    let table = file.exact(offset, 10 + 16 * u64::from(CPU_LIMIT), "buffer table");
                    let table = match table {
                        // The last table may be nearer to the end than the largest one.
                        Err(ReadError { what: What::Truncated { have, .. }, .. }) => {
                            file.exact(offset, have, "buffer table")?
                        }
                        other => other?,
                    };
                    let cpus = meta.buffers.first().map_or(0, |buffer| buffer.cpus.len() as u32);
                    let mut bytes = Bytes::new(&table, offset, start.big_endian);
                    flyrecord_6(&mut meta, &mut bytes, cpus)?;
                }
                return Ok(meta);
            }
        }
    }
}

/// More CPUs than any kernel is built for.
pub(super) const CPU_LIMIT: u32 = 1 << 14;

/// The parts of version 6; gives the offsets of further instances' buffers.
fn row_6(meta: &mut Meta, bytes: &mut Bytes<'_>, names: &mut Names) -> Result<Vec<u64>, ReadError> {
    meta.header_info(bytes)?;
    meta.ftrace_formats(bytes)?;
    meta.event_formats(bytes)?;
    meta.kallsyms(bytes)?;
    let size = bytes.u32("size of the printk formats")?;
    bytes.take(u64::from(size), "printk formats")?;
    meta.cmdlines(bytes, names)?;
    let at = bytes.offset();
    let cpus = bytes.u32("number of CPUs")?;
    if cpus > CPU_LIMIT {
        let expected = "at most 16384 CPUs";
        return Err(ReadError::value(at, expected, cpus));
    }
    meta.header.cpus_online = Some(cpus);
    let mut instances = Vec::new();
    let mut peek = *bytes;
    if peek.take(10, "options or events")? == b"options  \0" {
        *bytes = peek;
        loop {
            let id = bytes.u16("option")?;
            if id == option::DONE {
                break;
            }
            let size = bytes.u32("option size")?;
            let at = bytes.offset();
            let mut value = Bytes::new(bytes.take(size.into(), "option")?, at, bytes.is_big_endian());
            if id == option::BUFFER {
                instances.push(value.u64("buffer offset")?);
                if instances.len() > INSTANCE_LIMIT {
                    let expected = "at most 1024 buffers";
                    return Err(ReadError::value(at, expected, instances.len()));
                }
            } else {
                meta.option(id, value)?;
            }
        }
    }
    flyrecord_6(meta, bytes, cpus)?;
    // After the table, since trace-cmd 2.6: the clock, as its size and the list of clocks.
    let mut peek = *bytes;
    if let Ok(size) = peek.u64("size of the clock")
        && size < 4096
        && let Ok(text) = peek.take(size, "clock")
        && is_clocks(text)
    {
        meta.clock(&text_lossy(text));
    }
    Ok(instances)
}

/// Whether this is the kernel's list of clocks, with the used one in brackets; older files have events here.
fn is_clocks(text: &[u8]) -> bool {
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || b"[]-_ \n\0".contains(byte);
    text.iter().all(word) && text.contains(&b'[') && text.contains(&b']')
}

/// Instances of a recording; people make one or two.
const INSTANCE_LIMIT: usize = 1 << 10;

/// The table of the CPUs' events of one instance.
fn flyrecord_6(meta: &mut Meta, bytes: &mut Bytes<'_>, cpus: u32) -> Result<(), ReadError> {
    let at = bytes.offset();
    match bytes.take(10, "kind of recording")? {
        b"flyrecord\0" => {}
        b"latency  \0" => {
            let expected = "events (`flyrecord`), not the text of a latency tracer";
            return Err(ReadError::text(at, expected, b"latency"));
        }
        found => return Err(ReadError::text(at, "`flyrecord`", found)),
    }
    let ring = |bytes: &mut Bytes<'_>, cpu| {
        let what = "place of a CPU's events";
        Ok::<_, ReadError>(Ring { cpu, offset: bytes.u64(what)?, size: bytes.u64(what)? })
    };
    let cpus = (0..cpus).map(|cpu| ring(bytes, cpu)).collect::<Result<_, _>>()?;
    check_page_size(meta.ring_page, at)?;
    meta.buffers.push(Buffer { page_size: meta.ring_page, compressed: false, cpus });
    Ok(())
}

/// Sections that an option of the same number leads to.
const PARTS: [(u16, &str); 5] = [
    section::HEADER_INFO,
    section::FTRACE_FORMATS,
    section::EVENT_FORMATS,
    section::KALLSYMS,
    section::CMDLINES,
];

/// Options sections in a chain; each option is a value or says where a section is.
fn version_7<R: Read + Seek>(file: &mut File<R>, first: u64, names: &mut Names) -> Result<Meta, ReadError> {
    let (mut meta, mut next, mut seen) = (Meta::default(), first, Vec::new());
    let mut parts = Vec::new();
    while next != 0 {
        // A chain that comes back to itself has no end.
        if seen.contains(&next) || seen.len() >= INSTANCE_LIMIT {
            let expected = "options sections that end";
            return Err(ReadError::value(next, expected, seen.len()));
        }
        seen.push(next);
        let (id, what) = section::OPTIONS;
        let (content, at) = match file.section(next, id, what) {
            Err(error) if matches!(error.what, What::Truncated { .. }) && file.length()? <= next => {
                return Err(behind_the_end(file.length()?, next));
            }
            section => section?,
        };
        let mut bytes = Bytes::new(&content, at, file.big_endian);
        next = 0;
        while bytes.left() > 0 {
            let id = bytes.u16("option")?;
            let size = bytes.u32("option size")?;
            let at = bytes.offset();
            let mut value = Bytes::new(bytes.take(size.into(), "option")?, at, file.big_endian);
            if id == option::DONE {
                next = value.u64("offset of the next options")?;
                break;
            }
            if PARTS.iter().any(|(part, _)| *part == id) {
                // A second one would say something else, and a thousand would be a bomb.
                if parts.contains(&id) {
                    let expected = "one section of each kind";
                    return Err(ReadError::value(at, expected, id));
                }
                parts.push(id);
            }
            option_7(file, &mut meta, id, value, names)?;
        }
    }
    Ok(meta)
}

/// Version 7 has its options, which say where everything is, behind the events.
fn behind_the_end(length: u64, options: u64) -> ReadError {
    let (at, of) = (length as f64 / 1e6, options as f64 / 1e6);
    let what = format_args!(
        "cut off after {at:.1} of more than {of:.1} MB: trace-cmd writes what describes the events behind them, so \
         they cannot be read"
    );
    ReadError::new(At::Whole, what)
}

fn option_7<R: Read + Seek>(
    file: &mut File<R>,
    meta: &mut Meta,
    id: u16,
    mut value: Bytes<'_>,
    names: &mut Names,
) -> Result<(), ReadError> {
    if let Some(&(id, what)) = PARTS.iter().find(|(part, _)| *part == id) {
        let (content, at) = file.section(value.u64(what)?, id, what)?;
        let mut bytes = Bytes::new(&content, at, file.big_endian);
        return match (id, what) {
            section::HEADER_INFO => meta.header_info(&mut bytes),
            section::FTRACE_FORMATS => meta.ftrace_formats(&mut bytes),
            section::EVENT_FORMATS => meta.event_formats(&mut bytes),
            section::KALLSYMS => meta.kallsyms(&mut bytes),
            _ => meta.cmdlines(&mut bytes, names),
        };
    }
    match id {
        option::BUFFER => buffer_7(file, meta, value),
        section::BUFFER_TEXT => {
            meta.header.warnings.push("the text of a latency tracer in the recording is left out".into());
            Ok(())
        }
        _ => meta.option(id, value),
    }
}

fn buffer_7<R: Read + Seek>(
    file: &mut File<R>,
    meta: &mut Meta,
    mut value: Bytes<'_>,
) -> Result<(), ReadError> {
    if meta.buffers.len() >= INSTANCE_LIMIT {
        let (expected, found) = ("at most 1024 buffers", meta.buffers.len() as u64);
        return Err(ReadError::value(value.offset(), expected, found));
    }
    let (id, what) = section::BUFFER;
    let offset = value.u64(what)?;
    let section = file.exact(offset, 16, what)?;
    let mut section = Bytes::new(&section, offset, file.big_endian);
    let found = section.u16(what)?;
    if found != id {
        return Err(ReadError::value(offset, what, found));
    }
    let compressed = section.u16(what)? & 1 == 1;
    value.text("name of the instance")?;
    let clock = text_lossy(value.text("clock")?).into_owned();
    meta.clock(&clock);
    let at = value.offset();
    let page_size = u64::from(value.u32("page size of the buffer")?);
    check_page_size(page_size, at)?;
    let mut cpus = Vec::new();
    // Each takes its bytes of the option, which bounds what a wrong count can cost.
    for _ in 0..value.u32("number of CPUs")? {
        let what = "place of a CPU's events";
        cpus.push(Ring { cpu: value.u32(what)?, offset: value.u64(what)?, size: value.u64(what)? });
    }
    meta.buffers.push(Buffer { page_size, compressed, cpus });
    Ok(())
}
