//! Text recordings: tracefs' `trace` and `trace_pipe`, `trace-cmd report`, `perf script`.
//!
//! ```text
//! next
//!   read_line            one line, at most 1 MiB
//!   line::parse          task, CPU, time, event
//!   Fields::kind         the event's fields, by name
//!   between              a line that is no event: comments, losses, stacks
//! ```
//! Lines come in file order, which all four programs make the order of time. Lines of other events and of
//! tracers are counted as skipped. A line that none of these programs writes is an error. The exception is
//! a last line without a line end: it is truncated and its values may be wrong, so the reader drops it with a
//! warning.
//!
//! The text that a kernel prints has hashes instead of addresses (option `hash-ptr`, on by default). An
//! address counts as a hash if it is printed with 16 digits of which the first eight are 0, because `%p`
//! prints 32-bit hashes in this form. It counts as real if it is in the kernel's half of the address space.
//! Other addresses, such as [`ZERO_SIZE_PTR`], are not conclusive. The first conclusive address decides for
//! all ([`Header::hashed_addresses`]).

mod fields;
mod line;
mod stack;

use std::io::{BufRead, BufReader, ErrorKind, Read};

use crate::error::{At, ReadError};
use crate::event::{CutOff, Event, Header, Item, LossKind, Lost, Names, Source, Tally, ZERO_SIZE_PTR};
use crate::text::{LineError, number};
use fields::{Fields, Pointer};
use stack::{Frames, is_frame};

/// The longest line believed.
const LINE_LIMIT: u64 = 1 << 20;

/// A text recording being read. See [`Source`] for its stream.
pub struct Ftrace<R> {
    reader: BufReader<R>,
    raw: Vec<u8>,
    line: usize,
    /// Byte offset of the current line.
    offset: u64,
    header: Header,
    names: Names,
    tally: Tally,
    /// Losses before the first event, which have no time yet.
    early: Vec<Lost>,
    /// What the header of `trace` says was overwritten.
    overwritten: Option<Lost>,
    /// Whether an address has said if they are hashed.
    decided: bool,
    /// The event after a loss: the loss is delivered first.
    waiting: Option<Event>,
    /// What is delivered next, once the lines of its stack have been read.
    held: Option<Item>,
    /// An error behind the held item.
    failed: Option<ReadError>,
    frames: Frames,
    last_ns: u64,
    /// A mail quotes it.
    is_quoted: bool,
    /// There are lines that are no events: it was pasted.
    has_others: bool,
    ended: bool,
}

/// Whether an input that begins like this is a text recording: one of its first lines is an event's, or one
/// that the programs put in front of events, where there may be more of them than `head` has. `head` may end
/// anywhere.
pub fn is_text(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let begins = |line: &str| {
        let report = line.strip_prefix("cpus=").is_some_and(|count| number::<u32>(count).is_some());
        report || line.starts_with("# tracer: ") || line.starts_with("# captured on")
    };
    text.lines().map(unquoted).any(|line| begins(line) || line::parse(line).is_some())
}

/// A line without the marks of a mail that quotes it.
fn unquoted(line: &str) -> &str {
    if line.starts_with('>') { line.trim_start_matches(['>', ' ']) } else { line }
}

/// Lines that may stand before the first event of a text that was pasted: a prompt, a sentence.
const BEFORE_LIMIT: usize = 200;

impl<R: Read> Ftrace<R> {
    /// Losses kept until the first event.
    const EARLY_LIMIT: usize = 1 << 10;

    /// Reads `reader`, which is not compressed (see [`crate::compressed`]).
    pub fn new(reader: R) -> Self {
        Ftrace {
            reader: BufReader::with_capacity(1 << 16, reader),
            raw: Vec::new(),
            line: 0,
            offset: 0,
            header: Header::default(),
            names: Names::new(),
            tally: Tally::default(),
            early: Vec::new(),
            overwritten: None,
            decided: false,
            waiting: None,
            held: None,
            failed: None,
            frames: Frames::default(),
            last_ns: 0,
            is_quoted: false,
            has_others: false,
            ended: false,
        }
    }

    fn advance(&mut self) -> Result<Option<Item>, ReadError> {
        if let Some(event) = self.waiting {
            return Ok(Some(match self.early.pop() {
                Some(lost) => self.lost(Lost { time_ns: Some(event.time_ns), ..lost }),
                None => {
                    self.waiting = None;
                    self.event(event)
                }
            }));
        }
        loop {
            if !self.read_line()? {
                return self.end();
            }
            let raw = std::mem::take(&mut self.raw);
            let item = self.item(&String::from_utf8_lossy(&raw));
            self.raw = raw;
            if let Some(item) = item? {
                return Ok(Some(item));
            }
        }
    }

    /// Reads the next line that is whole; false at the end.
    fn read_line(&mut self) -> Result<bool, ReadError> {
        self.offset += self.raw.len() as u64;
        self.raw.clear();
        let read = self.reader.by_ref().take(LINE_LIMIT).read_until(b'\n', &mut self.raw);
        let read = match read {
            // A compressed file that was cut off: the line it ends in is not whole.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                self.header.cut_off = Some(CutOff { at: self.offset + self.raw.len() as u64, of: None });
                self.raw.clear();
                return Ok(false);
            }
            read => read.map_err(|source| ReadError::io(At::Line(self.line + 1), source))?,
        };
        self.line += usize::from(read > 0);
        if read as u64 == LINE_LIMIT {
            return Err(LineError::new(self.line, "a line shorter than 1 MiB", "").into());
        }
        if read > 0 && self.raw.last() != Some(&b'\n') {
            let line = self.line;
            self.header.warnings.push(format!("line {line}, the last one, is cut off and left out"));
            return Ok(false);
        }
        Ok(read > 0)
    }

    fn item(&mut self, text: &str) -> Result<Option<Item>, ReadError> {
        self.is_quoted |= text.starts_with('>');
        // The indentation of a frame stays.
        let text = match text.trim_start_matches('>') {
            inside if inside.len() < text.len() => inside.strip_prefix(' ').unwrap_or(inside),
            text => text,
        };
        let text = text.trim_end();
        let Some(line) = line::parse(text) else { return self.between(text) };
        if line.event.is_empty() {
            return Ok(self.tracer_line(&line));
        }
        let kind = Fields(line.fields).kind(line.event, &mut self.names);
        let kind = match kind {
            Ok(kind) => kind,
            // The last line of a text that was cut: the field is not wrong, it is not there.
            Err((expected, _)) if self.tally.events > 0 && lacks(text, expected) && self.is_at_end() => {
                let line = self.line;
                self.header.warnings.push(format!("line {line} is cut off and left out"));
                return Ok(None);
            }
            Err((expected, found)) => return Err(LineError::new(self.line, expected, &found).into()),
        };
        let Some((kind, pointer)) = kind else {
            self.tally.skipped += 1;
            if !stack::is_head(&line) {
                self.frames.of_another();
            }
            return Ok(None);
        };
        if let Some(pointer) = pointer {
            self.decide(pointer);
        }
        if line.ticks && self.tally.events == 0 {
            let warning = "the recording's clock does not count seconds: its times are taken as nanoseconds";
            self.header.warnings.push(warning.into());
        }
        let comm = (!line.is_nameless()).then(|| self.names.intern(line.comm));
        let line::Line { time_ns, cpu, pid, context, .. } = line;
        let event = Event { time_ns, cpu, pid, comm, context, stack: None, kind };
        if self.early.is_empty() {
            return Ok(Some(self.event(event)));
        }
        self.early.reverse();
        self.waiting = Some(event);
        self.advance()
    }

    fn is_at_end(&mut self) -> bool {
        self.reader.fill_buf().is_ok_and(<[u8]>::is_empty)
    }

    fn event(&mut self, event: Event) -> Item {
        self.tally.event(event.time_ns, &mut self.last_ns);
        Item::Event(event)
    }

    fn lost(&mut self, lost: Lost) -> Item {
        self.tally.lost(&lost);
        Item::Lost(lost)
    }

    /// The first address that can tell decides.
    #[inline]
    fn decide(&mut self, pointer: Pointer) {
        let hashed = is_hashed(pointer);
        match hashed {
            Some(true) if !self.decided => {
                self.header.hashed_addresses = true;
                let warning = "addresses are hashed (tracefs option hash-ptr): objects are paired, but which page and \
                               node they are in cannot be known; two objects in four billion have one hash";
                self.header.warnings.push(warning.into());
            }
            Some(hashed) if self.decided && hashed != self.header.hashed_addresses => {
                let warning = "some addresses look hashed and some do not: this is more than one recording";
                if !self.header.warnings.iter().any(|known| known == warning) {
                    self.header.warnings.push(warning.into());
                }
            }
            _ => {}
        }
        self.decided |= hashed.is_some();
    }

    /// A line with task, CPU and time but no event: a function, a stack, a record of perf.
    fn tracer_line(&mut self, line: &line::Line<'_>) -> Option<Item> {
        if let Some(lost) = line.fields.strip_prefix("PERF_RECORD_LOST") {
            let count = lost.split_whitespace().find_map(number).unwrap_or(0);
            let (cpu, time_ns, offset) = (Some(line.cpu), Some(line.time_ns), self.offset);
            return Some(self.lost(Lost { cpu, time_ns, offset, count, kind: LossKind::Ring }));
        }
        self.tally.skipped += 1;
        if !stack::is_head(line) {
            self.frames.of_another();
        }
        None
    }

    /// A line that stands between events.
    fn between(&mut self, text: &str) -> Result<Option<Item>, ReadError> {
        let trimmed = text.trim_start();
        if let Some(comment) = trimmed.strip_prefix('#') {
            self.comment(comment.trim());
            return Ok(None);
        }
        if let Some((cpu, count)) = loss(trimmed) {
            let lost =
                Lost { cpu: Some(cpu), time_ns: None, offset: self.offset, count, kind: LossKind::Ring };
            if self.tally.events == 0 && self.early.len() < Self::EARLY_LIMIT {
                self.early.push(lost);
                return Ok(None);
            }
            return Ok(Some(self.lost(lost)));
        }
        if let Some(cpus) = trimmed.strip_prefix("cpus=").and_then(number) {
            self.header.cpus_online = Some(cpus);
            return Ok(None);
        }
        if is_frame(text) {
            self.frames.add(trimmed);
            return Ok(None);
        }
        let empty_cpu = trimmed.strip_prefix("CPU ").is_some_and(|rest| rest.ends_with(" is empty"));
        if trimmed.is_empty() || trimmed.starts_with("version = ") || empty_cpu {
            return Ok(None);
        }
        // A text that was pasted has a prompt or a sentence before its events, and may have some after them.
        let is_before = self.tally.events == 0 && self.tally.skipped == 0 && self.line <= BEFORE_LIMIT;
        if is_before || self.is_quoted || self.has_others {
            if !self.has_others {
                let line = self.line;
                let warning = format!("lines that are no events are left out, the first is line {line}");
                self.header.warnings.push(warning);
            }
            self.has_others = true;
            return Ok(None);
        }
        Err(LineError::new(self.line, "an event as in `bash-12 [000] 3.141592: kmalloc: ..`", trimmed).into())
    }

    /// What the head of `trace`, and of `perf script --header`, says.
    fn comment(&mut self, text: &str) {
        if let Some(counts) = text.strip_prefix("entries-in-buffer/entries-written:") {
            let mut words = counts.split_whitespace();
            let both = words.next().and_then(|both| both.split_once('/'));
            if let Some((kept, written)) = both
                && let (Some(kept), Some(written)) = (number::<u64>(kept), number::<u64>(written))
                && written > kept
            {
                let (offset, count) = (self.offset, written - kept);
                let kind = LossKind::Samples;
                self.overwritten = Some(Lost { cpu: None, time_ns: None, offset, count, kind });
            }
            self.header.cpus_online =
                words.next().and_then(|cpus| number(cpus.strip_prefix("#P:")?)).or(self.header.cpus_online);
        }
        let Some((key, value)) = text.split_once(" : ") else { return };
        match key.trim() {
            "os release" => self.header.release = Some(value.trim().into()),
            "arch" => self.header.arch = Some(value.trim().into()),
            "nrcpus online" => self.header.cpus_online = number(value.trim()),
            "nrcpus avail" => self.header.cpus_available = number(value.trim()),
            _ => {}
        }
    }

    /// Losses that no event came after, and what the head said.
    fn end(&mut self) -> Result<Option<Item>, ReadError> {
        if let Some(lost) = self.early.pop().or_else(|| self.overwritten.take()) {
            return Ok(Some(self.lost(lost)));
        }
        if self.tally.events == 0 {
            let found = match self.tally.skipped {
                0 => "there are no events at all".to_string(),
                others => format!("all its {others} events are of other kinds"),
            };
            let expected = "lines such as `bash-12 [000] 3.141592: kmalloc: ..`";
            return Err(ReadError::no_events(expected, &found));
        }
        Ok(None)
    }
}

impl<R: Read> Source for Ftrace<R> {
    type Error = ReadError;

    fn next(&mut self) -> Result<Option<Item>, ReadError> {
        loop {
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            if self.ended && self.held.is_none() {
                return Ok(None);
            }
            let item = if self.ended { Ok(None) } else { self.advance() };
            self.ended |= !matches!(item, Ok(Some(_)));
            // The lines of a stack follow its event.
            let stack = self.frames.take(&mut self.names);
            let next = item.unwrap_or_else(|error| {
                self.failed = Some(error);
                None
            });
            match std::mem::replace(&mut self.held, next) {
                Some(Item::Event(event)) => return Ok(Some(Item::Event(Event { stack, ..event }))),
                Some(lost) => return Ok(Some(lost)),
                None => {}
            }
        }
    }

    fn state(&self) -> (&Header, &Names, &Tally) {
        (&self.header, &self.names, &self.tally)
    }
}

/// Whether a line has no field of the name that was expected (`` `ptr=` and an address ``).
fn lacks(line: &str, expected: &str) -> bool {
    expected.split('`').nth(1).is_some_and(|key| !line.contains(&format!(" {key}")))
}

/// Whether an address is a hash, by the rule in the module's documentation; `None` if it does not say.
fn is_hashed(pointer: Pointer) -> Option<bool> {
    match pointer {
        Pointer { value: ZERO_SIZE_PTR, .. } => None,
        Pointer { hashed: true, .. } => Some(true),
        Pointer { value, .. } => (value >> 63 == 1).then_some(false),
    }
}

/// `CPU:2 [LOST 123 EVENTS]` of a kernel, `CPU:2 [123 EVENTS DROPPED]` of trace-cmd: the CPU, and how many, 0
/// if the line does not say.
fn loss(text: &str) -> Option<(u32, u64)> {
    if !(text.starts_with("CPU:") || text.starts_with("[CPU ")) {
        return None;
    }
    if !(text.contains("LOST") || text.contains("DROPPED")) {
        return None;
    }
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(number::<u64>);
    Some((u32::try_from(numbers.next()?).ok()?, numbers.next().unwrap_or(0)))
}
