//! The calls of a recorded program, by thread, and the file in which a child process gets them.
//!
//! A trace is read once, by the process that starts the others. A child that decoded the trace would begin
//! with the freed memory of that work in the C library's heap, and glibc would be measured with it.
//!
//! ```text
//! Prepared    a trace's calls in a temporary file
//!   Reading     rows of the trace: which thread, which place, which are freed by other threads
//! Calls       the calls, as the child reads them
//! ```

use slablab_trace::{Batch, Columns, EventKind, NONE, Reader, flags};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// Traces of at most this number of threads are replayed with as many; those of more, in one thread.
pub const THREADS_MAX: u32 = 64;
/// Rows of the trace that are a window. No thread is two windows ahead of another one.
const WINDOW: u64 = 4096;
/// The bit of a place that threads share.
const SHARED: u32 = 1 << 31;
/// The first word of the file.
const MAGIC: u32 = u32::from_le_bytes(*b"slc1");

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Alloc = 0,
    Zeroed = 1,
    Free = 2,
    FreeNull = 3,
    /// The next operation of the thread says the new size and place.
    Resize = 4,
}

const KINDS: [Kind; 5] = [Kind::Alloc, Kind::Zeroed, Kind::Free, Kind::FreeNull, Kind::Resize];

/// An operation of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Op {
    place: u32,
    pub(crate) bytes: u32,
    pub(crate) kind: Kind,
    /// The alignment's power of two.
    align: u8,
}

/// Where a block is while it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the thread's own table.
    Own(usize),
    /// In the table of all threads, each place for one block.
    Shared(usize),
}

impl Op {
    pub(crate) fn place(&self) -> Place {
        match self.place & SHARED {
            0 => Place::Own(self.place as usize),
            _ => Place::Shared((self.place & !SHARED) as usize),
        }
    }

    pub(crate) fn align(&self) -> usize {
        1 << self.align
    }

    fn words(&self) -> [u32; 3] {
        [self.place, self.bytes, self.kind as u32 | u32::from(self.align) << 8]
    }

    fn of_words([place, bytes, rest]: [u32; 3]) -> Option<Op> {
        let (kind, align) = (*KINDS.get((rest & 0xff) as usize)?, (rest >> 8) as u8);
        Some(Op { place, bytes, kind, align })
    }
}

/// The operations of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Thread {
    pub(crate) ops: Vec<Op>,
    /// Windows in which the thread has operations, and how many.
    pub(crate) parts: Vec<(u32, u32)>,
    /// Places of the thread's own table.
    pub(crate) places: u32,
}

/// The calls of a recorded program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Calls {
    pub(crate) threads: Vec<Thread>,
    /// Places of the table of all threads.
    pub(crate) shared: u32,
    /// Calls: a change of size is one.
    pub(crate) calls: u64,
}

impl Calls {
    /// Operations by window.
    pub(crate) fn windows(&self) -> Vec<u32> {
        let parts = || self.threads.iter().flat_map(|thread| &thread.parts);
        let mut windows = vec![0; parts().map(|(window, _)| *window as usize + 1).max().unwrap_or(0)];
        parts().for_each(|(window, ops)| windows[*window as usize] += ops);
        windows
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut put = |words: &[u32]| words.iter().try_for_each(|word| out.write_all(&word.to_le_bytes()));
        put(&[MAGIC, self.threads.len() as u32, self.shared, self.calls as u32, (self.calls >> 32) as u32])?;
        for thread in &self.threads {
            put(&[thread.places, thread.parts.len() as u32, thread.ops.len() as u32])?;
            thread.parts.iter().try_for_each(|(window, ops)| put(&[*window, *ops]))?;
            thread.ops.iter().try_for_each(|op| put(&op.words()))?;
        }
        Ok(())
    }

    /// Reads the file of a [`Prepared`].
    pub(crate) fn read(path: &Path) -> Result<Calls, String> {
        let error = |error: io::Error| format!("{}: {error}", path.display());
        let mut file = BufReader::new(File::open(path).map_err(error)?);
        let mut word = || {
            let mut bytes = [0; 4];
            file.read_exact(&mut bytes).map(|()| u32::from_le_bytes(bytes)).map_err(error)
        };
        let wrong = || format!("{}: expected the calls of a trace", path.display());
        if word()? != MAGIC {
            return Err(wrong());
        }
        let (threads, shared) = (word()?, word()?);
        let mut calls = Calls { threads: Vec::new(), shared, calls: u64::from(word()?) };
        calls.calls |= u64::from(word()?) << 32;
        for _ in 0..threads {
            let (places, parts, ops) = (word()?, word()? as usize, word()? as usize);
            let mut thread =
                Thread { ops: Vec::with_capacity(ops), parts: Vec::with_capacity(parts), places };
            for _ in 0..parts {
                thread.parts.push((word()?, word()?));
            }
            for _ in 0..ops {
                thread.ops.push(Op::of_words([word()?, word()?, word()?]).ok_or_else(wrong)?);
            }
            calls.threads.push(thread);
        }
        Ok(calls)
    }
}

/// A trace's calls in a temporary file. Its end removes the file.
#[derive(Debug)]
pub struct Prepared {
    path: PathBuf,
    /// The workload's name: that of the trace.
    pub name: String,
    /// The workload in one line.
    pub about: String,
    /// The number of calls.
    pub calls: u64,
}

impl Prepared {
    /// Reads the first `share` of a trace, 1 for all of it.
    ///
    /// # Errors
    /// A trace that cannot be read, or has no calls.
    pub fn new(trace: &Path, share: f64) -> Result<Prepared, String> {
        let shown = trace.display();
        // A FIFO without a writer is refused here; the reader would wait for one.
        drop(slablab_report::files::open(trace).map_err(|error| format!("{shown}: {error}"))?);
        let reader = Reader::open(trace).map_err(|error| {
            let why = error.without_path();
            format!("{shown}: {why}; expected a trace (slablab record, slablab import)")
        })?;
        let calls = Reading::of(&reader, share).map_err(|error| format!("{shown}: {error}"))?;
        if calls.calls == 0 {
            return Err(format!("{shown}: expected a trace with allocations, found none"));
        }
        let file = trace.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = file.split('.').next().filter(|name| !name.is_empty()).unwrap_or("trace").to_string();
        let recorded = reader.metadata().statistics.cpu_ids;
        let threads = match (calls.threads.len(), recorded > THREADS_MAX) {
            (_, true) => format!("of {recorded} threads, in one thread in the trace's order"),
            (1, _) => "of one thread".into(),
            (threads, _) => format!("of {threads} threads"),
        };
        let about = format!("{} calls {threads}, from {file}; CPU ns per call", calls.calls);
        let path = std::env::temp_dir().join(format!("slablab-{}-{name}.calls", std::process::id()));
        let prepared = Prepared { path, name, about, calls: calls.calls };
        let error = |error| format!("{}: {error}", prepared.path.display());
        let mut out = BufWriter::new(File::create(&prepared.path).map_err(error)?);
        calls.write(&mut out).and_then(|()| out.flush()).map_err(error)?;
        Ok(prepared)
    }

    /// The file, for a child process.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // What is left in the folder for temporary files does no harm.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A block that is live in the trace.
#[derive(Clone, Copy)]
struct Live {
    /// The thread and the operation that allocated it.
    thread: u32,
    op: usize,
}

/// A trace being read.
struct Reading {
    calls: Calls,
    /// By the trace's object id.
    live: Vec<Option<Live>>,
    /// Free places of each thread's table.
    free: Vec<Vec<u32>>,
    /// The free of each thread that may be half of a change of size.
    half: Vec<Option<usize>>,
    one_thread: bool,
    rows: u64,
}

/// A row of the trace.
struct Call<'a> {
    event: EventKind,
    object: u32,
    bytes: u32,
    zeroed: bool,
    null: bool,
    site: &'a str,
}

impl Reading {
    fn of(reader: &Reader, share: f64) -> Result<Calls, slablab_trace::Error> {
        let statistics = &reader.metadata().statistics;
        let one_thread = statistics.cpu_ids > THREADS_MAX;
        let threads = if one_thread { 1 } else { statistics.cpu_ids.max(1) as usize };
        let mut reading = Reading {
            calls: Calls { threads: vec![Thread::default(); threads], ..Calls::default() },
            live: vec![None; statistics.object_ids as usize],
            free: vec![Vec::new(); threads],
            half: vec![None; threads],
            one_thread,
            rows: 0,
        };
        let last = (reader.rows() as f64 * share.clamp(0.0, 1.0)).ceil() as u64;
        let mut batch = Batch::default();
        let columns = Columns::REPLAY | Columns::BYTES_REQ | Columns::CALL_SITE;
        let mut batches = reader.batches(columns);
        while reading.rows < last && batches.next(&mut batch)? {
            for row in 0..batch.len().min((last - reading.rows) as usize) {
                let Some(event) = EventKind::from_u8(batch.event[row]) else { continue };
                let null = flags::NULL | flags::ZERO_SIZE;
                let call = Call {
                    event,
                    object: if batch.flags[row] & flags::UNSEEN == 0 { batch.object[row] } else { NONE },
                    bytes: if batch.bytes_req[row] == 0 {
                        batch.bytes_alloc[row]
                    } else {
                        batch.bytes_req[row]
                    },
                    zeroed: batch.gfp[row] & (1 << 8) != 0,
                    null: batch.flags[row] & null != 0,
                    site: batches.texts().call_site.get(batch.call_site[row]).unwrap_or(""),
                };
                reading.row(if one_thread { 0 } else { u32::from(batch.cpu[row]) }, &call);
                reading.rows += 1;
            }
        }
        reading.calls.threads.retain(|thread| !thread.ops.is_empty());
        Ok(reading.calls)
    }

    fn row(&mut self, thread: u32, call: &Call) {
        if call.event.is_alloc() && !call.null && call.object != NONE {
            self.alloc(thread, call);
        } else if call.event.is_free() {
            self.half[thread as usize] = None;
            match self.live.get_mut(call.object as usize).and_then(Option::take) {
                Some(live) => self.free(thread, live, call),
                None if call.null => self.push(thread, 0, Kind::FreeNull, 0, 0),
                None => {}
            }
        }
    }

    fn alloc(&mut self, thread: u32, call: &Call) {
        let index = thread as usize;
        // A power of two, as `memalign 64` says it; anything else has no more than malloc's alignment.
        let align = call.site.strip_prefix("memalign ").and_then(|align| align.parse::<u64>().ok());
        let align = align.filter(|align| align.is_power_of_two()).map_or(0, |align| align.ilog2() as u8);
        let half = self.half[index].take().filter(|_| call.site == "realloc");
        if let Some(op) = half {
            self.calls.threads[index].ops[op].kind = Kind::Resize;
        }
        let place = self.free[index].pop().unwrap_or_else(|| {
            self.calls.threads[index].places += 1;
            self.calls.threads[index].places - 1
        });
        let kind = if call.zeroed { Kind::Zeroed } else { Kind::Alloc };
        self.push(thread, place, kind, call.bytes, align);
        // The two halves of a change of size are one call.
        self.calls.calls -= u64::from(half.is_some());
        let op = self.calls.threads[index].ops.len() - 1;
        if let Some(live) = self.live.get_mut(call.object as usize) {
            *live = Some(Live { thread, op });
        }
    }

    fn free(&mut self, thread: u32, live: Live, call: &Call) {
        let allocated = self.calls.threads[live.thread as usize].ops[live.op];
        self.free[live.thread as usize].push(allocated.place);
        let mut place = allocated.place;
        if thread != live.thread {
            place = SHARED | self.calls.shared;
            self.calls.shared += 1;
            self.calls.threads[live.thread as usize].ops[live.op].place = place;
        }
        self.push(thread, place, Kind::Free, allocated.bytes, allocated.align);
        if call.site == "realloc" && allocated.align == 0 {
            self.half[thread as usize] = Some(self.calls.threads[thread as usize].ops.len() - 1);
        }
    }

    fn push(&mut self, thread: u32, place: u32, kind: Kind, bytes: u32, align: u8) {
        let row_window = if self.one_thread { 0 } else { (self.rows / WINDOW) as u32 };
        let thread = &mut self.calls.threads[thread as usize];
        // The second half of a change of size is in the window of the first.
        let second = thread.ops.last().is_some_and(|op| op.kind == Kind::Resize);
        thread.ops.push(Op { place, bytes, kind, align });
        self.calls.calls += 1;
        match thread.parts.last_mut() {
            Some((window, ops)) if *window == row_window || second => *ops += 1,
            _ => thread.parts.push((row_window, 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slablab_trace::{Metadata, Row, Writer};

    /// Rows: thread, event, object, bytes, call site. Object 99: none.
    type Rows<'a> = &'a [(u16, EventKind, u32, u32, &'a str)];

    /// The operations of each thread in words.
    fn check(name: &str, rows: Rows, expected: &[&str], calls: u64) {
        let path = std::env::temp_dir().join(format!("slablab-calls-{}-{name}.parquet", std::process::id()));
        let mut writer = Writer::new(File::create(&path).expect("a file")).expect("a writer");
        for (time_ns, (cpu, event, object, bytes_req, site)) in rows.iter().enumerate() {
            let (object, flags) = if *object == 99 { (NONE, flags::NULL) } else { (*object, 0) };
            let gfp = if *site == "calloc" { 1 << 8 } else { 0 };
            let call_site = writer.texts().call_site.id(site);
            let (time_ns, event) = (time_ns as u64, *event as u8);
            let row = Row { time_ns, cpu: *cpu, event, object, bytes_req: *bytes_req, ..Row::default() };
            writer.push(&Row { gfp, call_site, flags, ..row }).expect("a row");
        }
        writer.finish(Metadata::default()).expect("a trace");
        let prepared = Prepared::new(&path, 1.0).expect("it has calls");
        std::fs::remove_file(&path).expect("it is there");
        let read = Calls::read(prepared.path()).expect("the file of another process");
        let op = |op: &Op| format!("{:?} {} {:?}", op.kind, op.bytes, op.place());
        let words = |thread: &Thread| thread.ops.iter().map(op).collect::<Vec<_>>().join(", ");
        assert_eq!(read.threads.iter().map(words).collect::<Vec<_>>(), expected, "{name}");
        assert_eq!((read.calls, prepared.calls), (calls, calls), "{name}");
        let ops: usize = read.threads.iter().map(|thread| thread.ops.len()).sum();
        assert_eq!(read.windows().iter().sum::<u32>() as usize, ops, "{name}");
    }

    #[test]
    fn rows_become_operations() {
        use EventKind::{Kfree, Kmalloc};
        check(
            "places",
            &[(0, Kmalloc, 0, 64, "malloc"), (0, Kfree, 0, 64, "free"), (0, Kmalloc, 0, 32, "calloc")],
            &["Alloc 64 Own(0), Free 64 Own(0), Zeroed 32 Own(0)"],
            3,
        );
        check(
            "handed-over",
            &[
                (0, Kmalloc, 0, 64, "malloc"),
                (1, Kfree, 0, 64, "free"),
                (0, Kmalloc, 0, 80, "memalign 64"),
                (1, Kfree, 99, 0, "free"),
                (0, Kfree, 0, 80, "free"),
            ],
            &["Alloc 64 Shared(0), Alloc 80 Own(0), Free 80 Own(0)", "Free 64 Shared(0), FreeNull 0 Own(0)"],
            5,
        );
        check(
            "resized",
            &[
                (0, Kmalloc, 0, 64, "malloc"),
                (0, Kfree, 0, 64, "realloc"),
                (1, Kmalloc, 0, 16, "malloc"),
                (0, Kmalloc, 1, 200, "realloc"),
                (0, Kfree, 1, 200, "realloc"),
                (1, Kfree, 7, 200, "free"),
            ],
            &["Alloc 64 Own(0), Resize 64 Own(0), Alloc 200 Own(0), Free 200 Own(0)", "Alloc 16 Own(0)"],
            4,
        );
    }
}
