//! The tables `[disk.NAME]` of a machine file: disks with numbers and sources, or the name of one that comes
//! with the program.
//!
//! ```toml
//! [disk.swap]
//! is = "scsi-15k-2009"                     # one of data/disks.toml
//! [disk.data]
//! kind = "fixed"                           # or "rotating", "card", "flash"
//! rotational = "yes"                       # what the kernel takes it for
//! bytes = { bytes = "384M", source = ".." }
//! depth = { number = 1, source = ".." }    # commands at a time
//! request = { ms = 0.1, source = ".." }    # then the keys of the kind, in docs/model.md
//! ```

use crate::costs::entry;
use crate::doc::{Doc, Read, Value, shown};
use slablab_model::Ps;
use slablab_model::disk::{Card, Disk, DiskKind, Fixed, Flash, Rotating};
use slablab_report::nearest::nearest;
use toml::de::{DeTable, DeValue};

/// The disks that come with the program.
const INSTALLED: &str = include_str!("../data/disks.toml");
const MINUTE: Ps = 60_000_000_000_000;
/// Largest number of a disk's table.
const NUMBER_MAX: f64 = 1e6;

const COMMON: [&str; 4] = ["kind", "rotational", "bytes", "depth"];
const ROTATING: [&str; 12] = [
    "rpm",
    "heads",
    "seek_track",
    "seek_average",
    "seek_full",
    "seek_write",
    "outer",
    "inner",
    "interface",
    "overhead",
    "ahead",
    "write_cache",
];
const CARD: [&str; 7] = ["read", "write", "read_rate", "write_rate", "unit", "open_units", "unit_copy"];
const FLASH: [&str; 4] = ["read", "write", "read_rate", "write_rate"];
const FIXED: [&str; 3] = ["request", "kib", "write_limit"];

/// A disk of a machine file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskFile {
    /// Its name in the file.
    pub name: String,
    /// The numbers.
    pub disk: Disk,
    /// Where each number is from: key and source.
    pub sources: Vec<(&'static str, String)>,
}

/// The disks that come with the program.
pub fn installed() -> Vec<DiskFile> {
    let read = || {
        let (doc, table) = Doc::parse(INSTALLED)?;
        doc.known(&table, &["disk"])?;
        read(&doc, &table["disk"], false)
    };
    read().unwrap_or_else(|bad| panic!("the installed disks: {bad}"))
}

/// Reads the table `disk` of a file, whose value is `whole`. `may_name`: a disk may be an installed one.
pub(crate) fn read(doc: &Doc<'_>, whole: &Value<'_>, may_name: bool) -> Read<Vec<DiskFile>> {
    let table = doc.table(whole, "disk", "tables [disk.NAME]")?;
    let one = |(name, value): (&_, &Value<'_>)| {
        let name: &toml::Spanned<std::borrow::Cow<'_, str>> = name;
        let (disk, sources) = one(doc, value, may_name)?;
        Ok(DiskFile { name: name.get_ref().to_string(), disk, sources })
    };
    table.iter().map(one).collect()
}

type Sourced = (Disk, Vec<(&'static str, String)>);

fn one(doc: &Doc<'_>, value: &Value<'_>, may_name: bool) -> Read<Sourced> {
    let table = doc.table(value, "disk", "a table [disk.NAME]")?;
    if let Some(is) = table.get("is").filter(|_| may_name) {
        doc.known(table, &["is"])?;
        return named(doc, is);
    }
    let kinds: [(&str, &[&'static str]); 4] =
        [("rotating", &ROTATING), ("card", &CARD), ("flash", &FLASH), ("fixed", &FIXED)];
    let Some(kind) = table.get("kind") else {
        let or = if may_name { ", or is = \"scsi-15k-2009\", say" } else { "" };
        let names = "kind = \"rotating\", \"card\", \"flash\" or \"fixed\"";
        return Err(doc.bad(value, format!("the disk has no kind: expected {names}{or}")));
    };
    let keys = doc.word(kind, "kind", &kinds)?;
    let known: Vec<&'static str> = COMMON.iter().chain(keys).copied().collect();
    doc.known(table, &known)?;
    let mut numbers = Numbers { doc, value, table, sources: Vec::new() };
    let word =
        table.get("rotational").map(|value| doc.word(value, "rotational", &[("yes", true), ("no", false)]));
    let rotational = word.transpose()?.unwrap_or(kind.get_ref().as_str() == Some("rotating"));
    let bytes = numbers.bytes("bytes")?;
    let depth = numbers.number("depth")?;
    let kind = match kind.get_ref().as_str() {
        Some("rotating") => DiskKind::Rotating(rotating(&mut numbers)?),
        Some("card") => DiskKind::Card(card(&mut numbers)?),
        Some("flash") => DiskKind::Flash(Flash {
            read: numbers.ms("read")?,
            write: numbers.ms("write")?,
            read_rate: numbers.rate("read_rate")?,
            write_rate: numbers.rate("write_rate")?,
        }),
        _ => DiskKind::Fixed(Fixed {
            request: numbers.ms("request")?,
            kib: numbers.ms("kib")?,
            write_limit: table.get("write_limit").map(|_| numbers.rate("write_limit")).transpose()?,
        }),
    };
    Ok((Disk { bytes, depth, rotational, kind }, numbers.sources))
}

/// The installed disk of a name.
fn named(doc: &Doc<'_>, is: &Value<'_>) -> Read<Sourced> {
    let name = doc.text(is, "is")?;
    let installed = installed();
    let near = nearest(&name, installed.iter().map(|disk| disk.name.as_str()), 3);
    let expected = match near.is_empty() {
        true => installed.iter().map(|disk| disk.name.as_str()).collect::<Vec<_>>().join(", "),
        false => near.join(", "),
    };
    match installed.into_iter().find(|disk| disk.name == name) {
        Some(found) => Ok((found.disk, found.sources)),
        None => Err(doc.bad(is, format!("is = {name:?}: no installed disk; near it: {expected}"))),
    }
}

fn rotating(numbers: &mut Numbers<'_, '_>) -> Read<Rotating> {
    let disk = Rotating {
        turn: MINUTE / u64::from(numbers.number("rpm")?),
        heads: numbers.number("heads")?,
        seek_track: numbers.ms("seek_track")?,
        seek_average: numbers.ms("seek_average")?,
        seek_full: numbers.ms("seek_full")?,
        seek_write: numbers.ms("seek_write")?,
        outer: numbers.rate("outer")?,
        inner: numbers.rate("inner")?,
        interface: numbers.rate("interface")?,
        overhead: numbers.ms("overhead")?,
        ahead: numbers.bytes("ahead")?,
        write_cache: numbers.bytes("write_cache")?,
    };
    if !(disk.seek_track <= disk.seek_average && disk.seek_average <= disk.seek_full) {
        return numbers.refuse("seek_full", "expected seek_track <= seek_average <= seek_full");
    }
    if disk.inner > disk.outer {
        return numbers.refuse("inner", "expected at most outer");
    }
    Ok(disk)
}

fn card(numbers: &mut Numbers<'_, '_>) -> Read<Card> {
    let card = Card {
        read: numbers.ms("read")?,
        write: numbers.ms("write")?,
        read_rate: numbers.rate("read_rate")?,
        write_rate: numbers.rate("write_rate")?,
        unit: numbers.bytes("unit")?,
        open_units: numbers.number("open_units")?,
        unit_copy: numbers.ms("unit_copy")?,
    };
    if card.unit < 4096 {
        return numbers.refuse("unit", "expected at least 4096 bytes");
    }
    Ok(card)
}

/// The numbers of one disk's table, and their sources so far.
struct Numbers<'v, 'i> {
    doc: &'v Doc<'i>,
    value: &'v Value<'i>,
    table: &'v DeTable<'i>,
    sources: Vec<(&'static str, String)>,
}

impl<'v, 'i> Numbers<'v, 'i> {
    fn refuse<T>(&self, key: &str, what: &str) -> Read<T> {
        Err(self.doc.bad(&self.table[key], format!("{key}: {what}")))
    }

    fn entry(&mut self, key: &'static str, unit: &str) -> Read<&'v Value<'i>> {
        let Some(value) = self.table.get(key) else {
            return Err(self
                .doc
                .bad(self.value, format!("the disk has no {key}: expected {{ {unit} = .. }}")));
        };
        let (number, source) = entry(self.doc, key, unit, value)?;
        self.sources.push((key, source));
        Ok(number)
    }

    fn bytes(&mut self, key: &'static str) -> Read<u64> {
        let value = self.entry(key, "bytes")?;
        self.doc.bytes(value, key)
    }

    fn number(&mut self, key: &'static str) -> Read<u32> {
        let value = self.entry(key, "number")?;
        Ok(self.doc.number(value, key, 1..=NUMBER_MAX as u64)? as u32)
    }

    /// Milliseconds, as picoseconds.
    fn ms(&mut self, key: &'static str) -> Read<Ps> {
        self.scaled(key, "ms", 0.0, 1e9)
    }

    /// Megabytes of 10^6 bytes a second, as bytes a second.
    fn rate(&mut self, key: &'static str) -> Read<u64> {
        self.scaled(key, "mb_s", 1e-3, 1e6)
    }

    fn scaled(&mut self, key: &'static str, unit: &str, least: f64, by: f64) -> Read<u64> {
        let value = self.entry(key, unit)?;
        let number: Option<f64> = match value.get_ref() {
            DeValue::Integer(n) => u64::from_str_radix(n.as_str(), n.radix()).ok().map(|n| n as f64),
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => None,
        };
        // NaN is in no range.
        let number = number.filter(|number| (least..=NUMBER_MAX).contains(number));
        number.map(|number| (number * by).round() as u64).ok_or_else(|| {
            let found = shown(value.get_ref());
            self.doc.bad(value, format!("{key}: expected {unit} from {least} to {NUMBER_MAX}, found {found}"))
        })
    }
}
