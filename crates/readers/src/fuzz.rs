//! One function per reader for fuzzing: any bytes must give values or an error, in bounded memory, never a
//! panic.
//!
//! The tests call them with the files in `corpus`, truncated and mutated. A fuzzer calls them directly. They
//! show that the inputs tried cause no panic and no unbounded memory. They do not show that the values are
//! right.

use std::io::{Cursor, Read};

use crate::bundle::{Dump, DumpBuilder};
use crate::compressed::Decompressed;
use crate::event::{Names, Source};
use crate::ftrace::{self, Ftrace};
use crate::gfp::GfpTable;
use crate::kmem::Decoder;
use crate::perfdata::PerfData;
use crate::slabinfo::Slabinfo;
use crate::slabs::Snapshot;
use crate::tidy::Tidy;
use crate::tracedat::TraceDat;
use crate::tracepoint::Format;
use crate::vmrecord::Record;
use crate::{counters, pasted, procfs, sysfs, text};

/// What a fuzzer runs.
pub type Target = fn(&[u8]);

/// All of them by name, as the folders of `corpus` are called.
pub const ALL: [(&str, Target); 14] = [
    ("perfdata", perfdata),
    ("tracedat", tracedat),
    ("ftrace", self::ftrace),
    ("tracepoint", tracepoint),
    ("compressed", compressed),
    ("slabinfo", slabinfo),
    ("slabs", slabs),
    ("sysfs", sysfs),
    ("bundle", bundle),
    ("input", input),
    ("pasted", self::pasted),
    ("tidy", tidy),
    ("counters", counters),
    ("vmrecord", vmrecord),
];

/// [`PerfData`], seeking and reopening; both must say the same.
pub fn perfdata(data: &[u8]) {
    let seeking = PerfData::seekable(Cursor::new(data)).map(drain).map_err(|error| error.to_string());
    let reopening = PerfData::reopen(|| Ok(data)).map(drain).map_err(|error| error.to_string());
    assert_eq!(seeking, reopening, "the two ways to read a file differ");
}

/// [`TraceDat`].
pub fn tracedat(data: &[u8]) {
    let _ = TraceDat::new(Cursor::new(data)).map(drain);
}

/// [`Ftrace`].
pub fn ftrace(data: &[u8]) {
    let _ = (ftrace::is_text(data), drain(Ftrace::new(data)));
}

/// [`Format`] and [`Decoder`]: the text up to a NUL, then a payload.
pub fn tracepoint(data: &[u8]) {
    let (format, payload) = data.split_at(data.iter().position(|&byte| byte == 0).unwrap_or(data.len()));
    let Ok(format) = Format::parse(&String::from_utf8_lossy(format)) else { return };
    let table = format.flags("gfp_flags");
    for (value, name) in table.entries() {
        table.print(value);
        let _ = (table.canonical(value), table.parse(name), GfpTable::default().parse(name));
    }
    for big_endian in [false, true] {
        if let Ok(Some(decoder)) = Decoder::new(&format, big_endian) {
            let payload = payload.get(1..).unwrap_or(&[]);
            for index in 0..decoder.events(payload).unwrap_or(0) {
                decoder.decode(payload, index, &mut Names::new());
            }
        }
    }
}

/// [`Decompressed`], up to 16 MiB.
pub fn compressed(data: &[u8]) {
    if let Ok(reader) = Decompressed::new(data) {
        let _ = std::io::copy(&mut reader.take(16 << 20), &mut std::io::sink());
    }
}

/// [`Snapshot`]: what can be read is read again from its own text.
pub fn slabs(data: &[u8]) {
    if let Ok(snapshot) = Snapshot::parse(data) {
        assert_eq!(Snapshot::parse(snapshot.text().as_bytes()), Ok(snapshot));
    }
}

/// [`Slabinfo`], both forms.
pub fn slabinfo(data: &[u8]) {
    let _ = (Slabinfo::parse(data), Slabinfo::parse_csv(data));
}

/// Attributes, breakdowns and lists of /sys.
pub fn sysfs(data: &[u8]) {
    let _ = sysfs::parse_attrs_csv(data);
    let content = String::from_utf8_lossy(data);
    let _ = (text::id_list(&content), text::Breakdown::parse(&content));
}

/// [`Dump`] from a tar, and each of the /proc readers.
pub fn bundle(data: &[u8]) {
    let _ = Dump::from_tar(data);
    let _ = (procfs::parse_numbers(data), procfs::parse_zoneinfo(data));
    let _ = (procfs::parse_buddyinfo(data), procfs::parse_pagetypeinfo(data));
    let mut builder = DumpBuilder::new();
    for path in [
        "proc/version",
        "proc/uptime",
        "proc/cpuinfo",
        "proc/config.gz",
        "boot/config-6.1.0",
        "sos_commands/kernel/uname_-a",
        "sos_commands/date/date",
        "sos_commands/host/uptime",
        "sos_commands/processor/lscpu",
        "sos_commands/memory/ls_-lanR_.sys.kernel.slab",
        "sys/devices/system/cpu/online",
    ] {
        let _ = builder.file(path, data);
    }
    let _ = builder.finish();
}

/// A dump of any form.
pub fn input(data: &[u8]) {
    let mut builder = DumpBuilder::new();
    if builder.input(data).is_ok() {
        let _ = builder.finish();
    }
}

/// [`pasted::scan`], with everything that is inferred from it, and call sites among other lines.
pub fn pasted(data: &[u8]) {
    let found = pasted::scan(data);
    assert!(found.unread <= found.lines + found.meminfo.len(), "more lines unread than there are");
    let _ = (found.is_empty(), found.caches(), found.earlier(), found.not_of_slabs());
    let _ = (pasted::allocinfo(data), pasted::is_allocinfo(data), pasted::other_tool(data));
}

/// [`Tidy`].
pub fn tidy(data: &[u8]) {
    let _ = Tidy::new(data).map(drain);
}

/// The tables of [`crate::counters`].
pub fn counters(data: &[u8]) {
    let _ = (counters::parse_stats(data), counters::parse_state(data), counters::parse_const(data));
    let _ = (counters::parse_stats_percpu(data), counters::parse_slabinfos(data));
}

/// [`Record`]: what was read is written, and read again.
pub fn vmrecord(data: &[u8]) {
    let Ok(record) = Record::parse(data) else { return };
    let again = Record::parse(record.write().as_bytes()).expect("a record that was written");
    assert_eq!(again, record, "a record is not read as it was written");
}

/// Reads all; gives the number of items and the error that ended them.
fn drain<S: Source>(mut source: S) -> (u64, Option<String>) {
    let mut items = 0;
    loop {
        match source.next() {
            Ok(Some(_)) => items += 1,
            Ok(None) => return (items, None),
            Err(error) => return (items, Some(error.to_string())),
        }
    }
}
