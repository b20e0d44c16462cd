//! Two passes over the rows of a program's trace: when most lived, then what each call chain did.

use super::super::lifetimes::Lifetimes;
use super::pages::{Block, Pages, pinned};
use rustc_hash::FxHashMap;
use slablab_report::error::{Error, Result};
use slablab_trace::{Batch, Columns, EventKind, NONE, Reader, Texts, flags};
use std::path::Path;

/// Places of the time line.
pub(super) const TIMES: usize = 240;

/// What is known of the allocations with one call chain. Numbers of a sample are those of all, as estimated.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// Allocations that have the chain in the recording.
    pub(super) seen: u64,
    pub(super) allocs: f64,
    pub(super) bytes: f64,
    pub(super) live: f64,
    pub(super) live_bytes: f64,
    pub(super) peak_bytes: f64,
    /// Freed before their thread allocated again.
    pub(super) brief: f64,
    pub(super) pinned_bytes: f64,
    pub(super) lifetimes: Lifetimes,
    /// The function that was called, as the first row says.
    pub(super) called: u32,
    /// Change of live bytes in each part of the recording.
    pub(super) line: Vec<f64>,
}

impl Counts {
    /// Adds those of another chain.
    pub(super) fn add(&mut self, other: &Counts) {
        self.seen += other.seen;
        self.allocs += other.allocs;
        self.bytes += other.bytes;
        self.live += other.live;
        self.live_bytes += other.live_bytes;
        self.peak_bytes += other.peak_bytes;
        self.brief += other.brief;
        self.pinned_bytes += other.pinned_bytes;
        self.lifetimes.add(&other.lifetimes);
        if self.line.len() < other.line.len() {
            self.line.resize(other.line.len(), 0.0);
        }
        self.line.iter_mut().zip(&other.line).for_each(|(sum, change)| *sum += change);
    }

    /// The numbers of which the program's sum is known.
    fn known(&mut self) -> [&mut f64; 6] {
        let Counts { allocs, bytes, live, live_bytes, peak_bytes, pinned_bytes, .. } = self;
        [allocs, bytes, live, live_bytes, peak_bytes, pinned_bytes]
    }
}

/// What the passes find.
pub(super) struct Pass {
    /// By the number of the chain in [`Texts::stack`].
    pub(super) chains: FxHashMap<u32, Counts>,
    pub(super) texts: Texts,
    /// Live bytes and blocks: at most, and at the end.
    pub(super) peak: [u64; 2],
    pub(super) end: [u64; 2],
    pub(super) allocs: u64,
    /// Bytes that were requested.
    pub(super) bytes: u64,
    /// Time from the first row to the peak in ns.
    pub(super) peak_ns: u64,
    /// Live bytes at each place of the time line.
    pub(super) line: Vec<u64>,
    pub(super) pages: Pages,
}

#[derive(Clone, Copy)]
struct Object {
    stack: u32,
    cpu: u16,
    since: u64,
    address: u64,
    bytes: u32,
    lives: bool,
}

const FREE: Object = Object { stack: NONE, cpu: 0, since: 0, address: 0, bytes: 0, lives: false };

struct Running<'a> {
    pass: Pass,
    objects: Vec<Object>,
    /// The object that each thread allocated last, if it has not been freed.
    last: Vec<u32>,
    live: [u64; 2],
    /// Rows up to the peak: after the last of them it is reached.
    until_peak: u64,
    rows: u64,
    /// The last place of the time line that has its bytes.
    place: usize,
    times: Times,
    sample: &'a dyn Fn(u32) -> f64,
}

/// Places of the time line.
struct Times {
    first: u64,
    span: u64,
}

impl Times {
    fn place(&self, time_ns: u64) -> usize {
        let since = u128::from(time_ns.saturating_sub(self.first).min(self.span));
        (since * (TIMES as u128 - 1) / u128::from(self.span)) as usize
    }
}

impl Pass {
    /// Reads all rows, twice. `sample` says how many allocations of so many bytes one with a chain stands
    /// for.
    pub(super) fn over(
        reader: &Reader,
        path: &Path,
        sample: &dyn Fn(u32) -> f64,
        progress: &dyn Fn(u64, u64),
    ) -> Result<Pass> {
        let statistics = &reader.metadata().statistics;
        let (ids, rows) = (statistics.object_ids, reader.rows());
        if ids > rows {
            return Err(Error::new(
                path,
                format!("object ids below {ids} in {rows} rows: expected dense ids"),
            ));
        }
        let first = statistics.first_time_ns;
        let page_bytes = reader.metadata().page_size_bytes.filter(|bytes| bytes.is_power_of_two());
        let mut running = Running {
            pass: Pass {
                chains: FxHashMap::default(),
                texts: Texts::default(),
                peak: [0; 2],
                end: [0; 2],
                allocs: 0,
                bytes: 0,
                peak_ns: 0,
                line: vec![0; TIMES],
                pages: Pages { page_bytes: page_bytes.unwrap_or(4096), ..Pages::default() },
            },
            objects: vec![FREE; ids as usize],
            last: Vec::new(),
            live: [0; 2],
            until_peak: peak(reader, path)?,
            rows: 0,
            place: 0,
            times: Times { first, span: statistics.last_time_ns.saturating_sub(first).max(1) },
            sample,
        };
        let mut batches = reader.batches(COLUMNS.into_iter().fold(Columns::FLAGS, |all, one| all | one));
        let mut batch = Batch::default();
        while batches.next(&mut batch).map_err(|error| Error::new(path, error.without_path()))? {
            (0..batch.len()).for_each(|row| running.row(&batch, row));
            progress(running.rows, rows);
        }
        let mut pass = running.finish(statistics.last_time_ns);
        pass.texts = batches.texts().clone();
        pass.limit();
        Ok(pass)
    }

    /// Makes estimates of a sample smaller, all by one factor, where they are more together than there was.
    fn limit(&mut self) {
        let exact =
            [self.allocs, self.bytes, self.end[1], self.end[0], self.peak[0], self.pages.free_bytes()];
        let mut sums = [0.0; 6];
        for counts in self.chains.values_mut() {
            sums.iter_mut().zip(counts.known()).for_each(|(sum, number)| *sum += *number);
        }
        for counts in self.chains.values_mut() {
            for ((number, sum), exact) in counts.known().into_iter().zip(sums).zip(exact) {
                if sum > exact as f64 {
                    *number *= exact as f64 / sum;
                }
            }
        }
    }
}

const COLUMNS: [Columns; 8] = [
    Columns::TIME_NS,
    Columns::CPU,
    Columns::EVENT,
    Columns::ADDRESS,
    Columns::OBJECT,
    Columns::BYTES_REQ,
    Columns::CALL_SITE,
    Columns::STACK,
];

/// Whether a row begins (`Some(true)`) or ends a block, and which.
fn block(batch: &Batch, row: usize) -> Option<(bool, u32)> {
    let object = batch.object[row];
    let kind = EventKind::ALL.get(usize::from(batch.event[row])).filter(|_| object != NONE)?;
    let is_unseen = batch.flags[row] & flags::UNSEEN != 0;
    (kind.is_alloc() || kind.is_free() && !is_unseen).then_some((kind.is_alloc(), object))
}

/// The number of rows up to the one with which most bytes live.
fn peak(reader: &Reader, path: &Path) -> Result<u64> {
    let (mut live, mut most, mut at, mut rows) = (0u64, 0, 0, 0);
    let mut batches = reader.batches(Columns::EVENT | Columns::OBJECT | Columns::BYTES_REQ | Columns::FLAGS);
    let mut batch = Batch::default();
    while batches.next(&mut batch).map_err(|error| Error::new(path, error.without_path()))? {
        for row in 0..batch.len() {
            rows += 1;
            let bytes = u64::from(batch.bytes_req[row]);
            match block(&batch, row) {
                Some((true, _)) => live += bytes,
                Some((false, _)) => live = live.saturating_sub(bytes),
                None => {}
            }
            if live > most {
                (most, at) = (live, rows);
            }
        }
    }
    Ok(at)
}

impl Running<'_> {
    fn row(&mut self, batch: &Batch, row: usize) {
        match block(batch, row) {
            Some((true, object)) => self.alloc(batch, row, object),
            Some((false, object)) => self.free(batch, row, object),
            None => {}
        }
        self.at_place(self.times.place(batch.time_ns[row]));
        self.rows += 1;
        if self.rows == self.until_peak {
            self.pass.peak = self.live;
            self.pass.peak_ns = batch.time_ns[row].saturating_sub(self.times.first);
            self.pass.chains.values_mut().for_each(|counts| counts.peak_bytes = counts.live_bytes);
        }
    }

    /// Notes what lives at a place of the time line. Places before it without a row are as the one before
    /// them.
    fn at_place(&mut self, place: usize) {
        let line = &mut self.pass.line;
        if place > self.place {
            let before = line[self.place];
            line[self.place + 1..=place].fill(before);
            self.place = place;
        }
        line[self.place] = self.live[0];
    }

    fn alloc(&mut self, batch: &Batch, row: usize, object: u32) {
        let (bytes, cpu, stack) = (batch.bytes_req[row], batch.cpu[row], batch.stack[row]);
        let (since, address) = (batch.time_ns[row], batch.address[row]);
        // An id is free when it is given out; a damaged file may say otherwise.
        let Some(place) = self.objects.get_mut(object as usize).filter(|place| !place.lives) else { return };
        *place = Object { stack, cpu, since, address, bytes, lives: true };
        self.pass.allocs += 1;
        self.pass.bytes += u64::from(bytes);
        self.live[0] += u64::from(bytes);
        self.live[1] += 1;
        if self.last.len() <= usize::from(cpu) {
            self.last.resize(usize::from(cpu) + 1, NONE);
        }
        self.last[usize::from(cpu)] = object;
        if stack != NONE {
            let (weight, called) = ((self.sample)(bytes), batch.call_site[row]);
            let counts =
                self.pass.chains.entry(stack).or_insert_with(|| Counts { called, ..Counts::default() });
            counts.seen += 1;
            counts.allocs += weight;
            counts.bytes += weight * f64::from(bytes);
            counts.live += weight;
            moved(counts, self.times.place(since), weight * f64::from(bytes));
        }
    }

    fn free(&mut self, batch: &Batch, row: usize, object: u32) {
        let Some(place) = self.objects.get_mut(object as usize).filter(|place| place.lives) else { return };
        let Object { stack, cpu, since, bytes, .. } = std::mem::replace(place, FREE);
        self.live[0] -= u64::from(bytes);
        self.live[1] -= 1;
        let is_brief = cpu == batch.cpu[row] && self.last[usize::from(cpu)] == object;
        if let Some(counts) = self.pass.chains.get_mut(&stack) {
            let weight = (self.sample)(bytes);
            counts.live -= weight;
            counts.brief += if is_brief { weight } else { 0.0 };
            counts.lifetimes.freed(batch.time_ns[row].saturating_sub(since));
            moved(counts, self.times.place(batch.time_ns[row]), -weight * f64::from(bytes));
        }
    }

    /// Adds what lives at the end, and what it pins.
    fn finish(mut self, end_ns: u64) -> Pass {
        let live: Vec<&Object> = self.objects.iter().filter(|object| object.lives).collect();
        let blocks: Vec<Block> =
            live.iter().map(|object| Block { at: object.address, bytes: u64::from(object.bytes) }).collect();
        let (pages, pinned) = pinned(&blocks, self.pass.pages.page_bytes);
        for (object, pinned) in live.iter().zip(pinned) {
            if let Some(counts) = self.pass.chains.get_mut(&object.stack) {
                counts.lifetimes.lives(end_ns.saturating_sub(object.since));
                counts.pinned_bytes += pinned * (self.sample)(object.bytes);
            }
        }
        self.at_place(TIMES - 1);
        Pass { pages, end: self.live, ..self.pass }
    }
}

/// Notes a change of live bytes.
fn moved(counts: &mut Counts, place: usize, by: f64) {
    counts.live_bytes += by;
    if counts.line.len() <= place {
        counts.line.resize(place + 1, 0.0);
    }
    counts.line[place] += by;
}
