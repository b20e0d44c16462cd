//! Reads a record. Lines that the recording program does not write are errors.

use super::{
    Counter, Counts, Disk, ObjectCounts, ObjectResidency, Phase, Record, Residency, Rusage, Section, State,
};
use crate::error::{At, ReadError};
use crate::slabinfo::SlabinfoError;
use crate::text::{LineError, number, utf8};
use std::str::FromStr;

/// The most pages of all residency maps of a record: 64 MiB of memory.
const PAGES_MOST: u64 = 1 << 28;

impl Record {
    /// Reads the text of a record, decompressed.
    ///
    /// # Errors
    /// The first line that is not as the recording program writes it. Sections whose form is known are read
    /// as well: their errors name the line of the record.
    pub fn parse(text: &[u8]) -> Result<Record, ReadError> {
        let mut lines = Lines { rest: utf8(text)?, number: 0, line: "" };
        let mut record = Record::default();
        let mut pages_left = PAGES_MOST;
        let mut notes = Vec::new();
        while lines.next() {
            let line = lines.line;
            if record.is_complete {
                return Err(lines.error("the end of the record after `@end`"));
            } else if line.starts_with("note") {
                notes.push(line.to_string());
            } else if let Some(name) = line.strip_prefix("@phase ") {
                let notes = std::mem::take(&mut notes);
                record.phases.push(Phase { name: name.to_string(), notes, ..Phase::default() });
            } else if line == "@end" {
                record.is_complete = true;
            } else {
                let Some(phase) = record.phases.last_mut() else {
                    return Err(
                        lines.error("`@phase LABEL`, as the first line of a record of a script's run")
                    );
                };
                phase_line(phase, &mut lines, &mut pages_left)?;
            }
        }
        record.notes = notes;
        Ok(record)
    }
}

/// The lines of a record, one after the other.
struct Lines<'a> {
    rest: &'a str,
    /// The number of `line`, from 1.
    number: usize,
    line: &'a str,
}

impl<'a> Lines<'a> {
    /// Moves to the next line; false at the end.
    fn next(&mut self) -> bool {
        if self.rest.is_empty() {
            return false;
        }
        (self.line, self.rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.number += 1;
        true
    }

    #[cold]
    fn error(&self, expected: &'static str) -> ReadError {
        LineError::new(self.number, expected, self.line).into()
    }

    /// The text up to the line `</name>`.
    fn section(&mut self, name: &str) -> Result<&'a str, ReadError> {
        let (text, mut length) = (self.rest, 0);
        while self.next() {
            if self.line.strip_prefix("</").and_then(|line| line.strip_suffix('>')) == Some(name) {
                return Ok(&text[..length]);
            }
            length = text.len() - self.rest.len();
        }
        Err(self.error("the end of the section, `</NAME>`: the record ends early"))
    }
}

/// One line inside of a phase, or a whole section.
fn phase_line(phase: &mut Phase, lines: &mut Lines, pages_left: &mut u64) -> Result<(), ReadError> {
    let line = lines.line;
    if let Some(name) = line.strip_prefix('<').and_then(|line| line.strip_suffix('>')) {
        return section(phase, name, lines);
    }
    let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
    match kind {
        "elapsed_ns" => {
            phase.elapsed_ns = number(rest).ok_or_else(|| lines.error("`elapsed_ns` and a number"))?
        }
        "uptime_ns" => {
            phase.uptime_ns = number(rest).ok_or_else(|| lines.error("`uptime_ns` and a number"))?
        }
        "rusage" => phase.rusage = rusage(rest).ok_or_else(|| lines.error("`rusage minflt=N ...`"))?,
        "counts" => phase.counts = counts(rest).ok_or_else(|| lines.error("`counts ok=N fail=N stats=N`"))?,
        "obj" => {
            let object = object(rest);
            phase.objects.push(
                object.ok_or_else(|| lines.error("`obj NAME ops=N minflt=N majflt=N inblock=N ns=N`"))?,
            );
        }
        "res" => phase.residency.push(residency(rest, lines, pages_left)?),
        "blk" => phase.disks.push(disk(rest).ok_or_else(|| lines.error("`blk NAME` and 17 numbers"))?),
        _ => {
            return Err(lines
                .error("a line of a phase: elapsed_ns, uptime_ns, rusage, counts, obj, res, blk, <NAME>"));
        }
    }
    Ok(())
}

/// The values of `a=1 b=2`, whose names are `names`, in this order.
fn fields<T: FromStr, const N: usize>(text: &str, names: [&str; N]) -> Option<[T; N]> {
    let mut words = text.split(' ');
    let mut values = Vec::with_capacity(N);
    for name in names {
        values.push(words.next()?.strip_prefix(name)?.strip_prefix('=')?.parse().ok()?);
    }
    words.next().is_none().then(|| values.try_into().ok())?
}

fn rusage(text: &str) -> Option<Rusage> {
    let names = ["minflt", "majflt", "inblock", "oublock", "utime_us", "stime_us", "nvcsw", "nivcsw"];
    let [minflt, majflt, inblock, oublock, utime_us, stime_us, nvcsw, nivcsw] = fields(text, names)?;
    Some(Rusage { minflt, majflt, inblock, oublock, utime_us, stime_us, nvcsw, nivcsw })
}

fn counts(text: &str) -> Option<Counts> {
    let [ok, fail, stats] = fields(text, ["ok", "fail", "stats"])?;
    Some(Counts { ok, fail, stats })
}

fn object(text: &str) -> Option<ObjectCounts> {
    let (name, rest) = text.split_once(' ')?;
    let [ops, minflt, majflt, inblock, ns] = fields(rest, ["ops", "minflt", "majflt", "inblock", "ns"])?;
    Some(ObjectCounts { name: name.to_string(), ops, minflt, majflt, inblock, ns })
}

/// `NAME pages=N present=N swapped=N absent=N MAP`, whose counts are those of the map.
fn residency(text: &str, lines: &Lines, pages_left: &mut u64) -> Result<ObjectResidency, ReadError> {
    let parse = || {
        let (name, rest) = text.split_once(' ')?;
        let (numbers, map) = rest.rsplit_once(' ')?;
        let counts: [u32; 4] = fields(numbers, ["pages", "present", "swapped", "absent"])?;
        Some((name, counts, map))
    };
    let form = "`res NAME pages=N present=N swapped=N absent=N MAP`";
    let (name, [pages, present, swapped, absent], map) = parse().ok_or_else(|| lines.error(form))?;
    let left = pages_left.checked_sub(pages.into());
    *pages_left = left.ok_or_else(|| lines.error("at most 2^28 pages in the maps of a record"))?;
    let map = Residency::decode(map, pages).map_err(|error| lines.error(error.0))?;
    if State::ALL.map(|state| map.count(state)) != [absent, present, swapped] {
        return Err(lines.error("counts of present, swapped and absent pages that are the map's"));
    }
    Ok(ObjectResidency { name: name.to_string(), pages: map })
}

fn disk(text: &str) -> Option<Disk> {
    let mut words = text.split(' ');
    let name = words.next()?.to_string();
    let mut stat = [0; Disk::FIELDS];
    for field in &mut stat {
        *field = words.next()?.parse().ok()?;
    }
    words.next().is_none().then_some(Disk { name, stat })
}

/// The section that the current line begins.
fn section(phase: &mut Phase, name: &str, lines: &mut Lines) -> Result<(), ReadError> {
    let first = lines.number;
    let text = lines.section(name)?;
    let shifted = |error: LineError| ReadError::from(LineError { line: first + error.line, ..error });
    if name == "vmstat" {
        for (index, line) in text.lines().enumerate() {
            let counter = counter(line);
            let expected = "a counter's name, its difference, its value";
            phase.vmstat.push(counter.ok_or_else(|| shifted(LineError::new(index + 1, expected, line)))?);
        }
        return Ok(());
    }
    phase.sections.push(Section { name: name.to_string(), text: text.to_string() });
    match name {
        "meminfo" => drop(phase.meminfo().map_err(shifted)?),
        "buddyinfo" => drop(phase.buddyinfo().map_err(shifted)?),
        "pagetypeinfo" => drop(phase.pagetypeinfo().map_err(shifted)?),
        "lru_gen" => drop(phase.lru_gen().map_err(shifted)?),
        "slabinfo" => drop(phase.slabinfo().map_err(|error| match error {
            SlabinfoError::Line(error) => shifted(error),
            SlabinfoError::Csv(error) => ReadError::new(At::Line(first), error),
        })?),
        _ => {}
    }
    Ok(())
}

fn counter(line: &str) -> Option<Counter> {
    let mut words = line.split(' ');
    let name = words.next().filter(|name| !name.is_empty())?.to_string();
    let (delta, value) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    words.next().is_none().then_some(Counter { name, delta, value })
}
