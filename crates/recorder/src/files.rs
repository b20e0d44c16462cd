//! The files of a recording: processes, and their events in the order of time.

use crate::raw::{
    ALLOCATOR_AT, CHUNK_BYTES, CHUNK_EVENTS, COMMAND_AT, EVENT_BYTES, HEAD_BYTES, MAGIC, TEXT_BYTES, kind,
    word,
};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A process of a recording.
#[derive(Clone, Debug)]
pub struct Process {
    /// The file.
    pub path: PathBuf,
    /// Bytes of the file.
    pub bytes: u64,
    /// The process's number in the kernel.
    pub pid: u64,
    /// Its parent's.
    pub parent: u64,
    /// When the recording of the process began, in ns of CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// The command line; of a child that executed nothing, that of its parent.
    pub command: Vec<String>,
    /// The path of the library whose `malloc` it uses.
    pub allocator: String,
    /// Calls: allocations, frees, and changes of size.
    pub calls: u64,
    /// Threads that called.
    pub threads: u64,
    /// Calls that could not be written.
    pub lost: u64,
    segments: Vec<Segment>,
}

impl Process {
    /// The name of the program, without its folder.
    pub fn name(&self) -> &str {
        let first = self.command.first().map_or("", String::as_str);
        first.rsplit('/').next().unwrap_or(first).trim_start_matches('-')
    }
}

/// Events of one thread that are next to each other in a chunk.
#[derive(Clone, Copy, Debug)]
struct Segment {
    serial: u64,
    thread: u64,
    offset: u64,
    events: u32,
    first_ns: u64,
}

/// The processes of a recording in the order of their starts. Files without a head, of processes that ended
/// at their first call, are left out.
///
/// # Errors
/// A folder or a file that cannot be read.
pub fn processes(folder: &Path) -> io::Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "raw") {
            found.extend(process(path)?);
        }
    }
    found.sort_by_key(|process| (process.start_ns, process.pid));
    Ok(found)
}

/// A file's process. `None`: it has no head.
fn process(path: PathBuf) -> io::Result<Option<Process>> {
    let mut file = File::open(&path)?;
    let bytes = file.metadata()?.len();
    let mut head = vec![0; HEAD_BYTES];
    if bytes < HEAD_BYTES as u64 {
        return Ok(None);
    }
    file.read_exact(&mut head)?;
    let word = |word: usize| number(&head[word * 8..]);
    if word(word::MAGIC) != MAGIC {
        return Ok(None);
    }
    let text = |at: usize| String::from_utf8_lossy(&head[at..at + TEXT_BYTES]).into_owned();
    let allocator = text(ALLOCATOR_AT);
    let mut process = Process {
        bytes,
        pid: word(word::PID),
        parent: word(word::PARENT),
        start_ns: word(word::START),
        page_bytes: word(word::PAGE),
        command: text(COMMAND_AT).trim_end_matches('\0').split('\0').map(str::to_string).collect(),
        allocator: allocator.split('\0').next().unwrap_or("").to_string(),
        calls: 0,
        threads: 0,
        lost: word(word::LOST),
        segments: Vec::new(),
        path,
    };
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut offset = HEAD_BYTES as u64;
    while offset < bytes {
        let length = (bytes - offset).min(CHUNK_BYTES as u64) as usize;
        file.read_exact(&mut chunk[..length])?;
        process.look_through(&chunk[..length], offset);
        offset += length as u64;
    }
    let mut serials: Vec<u64> = process.segments.iter().map(|segment| segment.serial).collect();
    serials.sort_unstable();
    serials.dedup();
    process.threads = serials.len() as u64;
    Ok(Some(process))
}

impl Process {
    /// Finds the segments of a chunk, which is at `offset` in the file, and counts calls.
    fn look_through(&mut self, chunk: &[u8], offset: u64) {
        let mut open: Option<Segment> = None;
        for (index, event) in chunk.chunks_exact(EVENT_BYTES).take(CHUNK_EVENTS).enumerate() {
            let event = Event::read(event);
            if event.kind == kind::THREAD {
                self.segments.extend(open.take().filter(|segment| segment.events > 0));
                let offset = offset + ((index + 1) * EVENT_BYTES) as u64;
                let (serial, thread) = (event.size, event.address);
                open = Some(Segment { serial, thread, offset, events: 0, first_ns: event.time_ns });
            } else if let Some(segment) = &mut open {
                segment.events += 1;
                self.calls += u64::from(event.is_call());
            }
        }
        self.segments.extend(open.filter(|segment| segment.events > 0));
    }

    /// The events in the order of time.
    ///
    /// # Errors
    /// A file that cannot be opened.
    pub(crate) fn events(&self) -> io::Result<Events> {
        let mut waiting: FxHashMap<u64, VecDeque<Segment>> = FxHashMap::default();
        let mut segments = self.segments.clone();
        segments.sort_by_key(|segment| segment.first_ns);
        for segment in segments {
            waiting.entry(segment.serial).or_default().push_back(segment);
        }
        let heads = waiting.iter().map(|(serial, queue)| Reverse((queue[0].first_ns, *serial))).collect();
        Ok(Events { file: File::open(&self.path)?, heads, waiting, loaded: FxHashMap::default() })
    }
}

/// An event of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) time_ns: u64,
    pub(crate) address: u64,
    pub(crate) kind: u8,
    /// Bytes; 1 without a request for alignment.
    pub(crate) align: u64,
    pub(crate) size: u64,
    /// The thread's number in the process.
    pub(crate) serial: u64,
    /// The thread's number in the kernel.
    pub(crate) thread: u64,
}

impl Event {
    fn read(bytes: &[u8]) -> Event {
        let word = number(&bytes[16..]);
        Event {
            time_ns: number(bytes),
            address: number(&bytes[8..]),
            kind: word as u8,
            align: 1 << ((word >> 8) as u8).min(47),
            size: word >> 16,
            serial: 0,
            thread: 0,
        }
    }

    fn is_call(&self) -> bool {
        !matches!(self.kind, 0 | kind::REALLOC_BEGIN | kind::THREAD | kind::END)
    }
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"))
}

/// The events of all threads, merged by their times. One segment of each thread that has begun is in memory.
#[derive(Debug)]
pub(crate) struct Events {
    file: File,
    /// The time of each thread's next event.
    heads: BinaryHeap<Reverse<(u64, u64)>>,
    waiting: FxHashMap<u64, VecDeque<Segment>>,
    /// The rest of each thread's segment, the next event last.
    loaded: FxHashMap<u64, Vec<Event>>,
}

impl Events {
    /// The next event.
    pub(crate) fn next(&mut self) -> io::Result<Option<Event>> {
        while let Some(Reverse((_, serial))) = self.heads.pop() {
            let (event, next_ns) = match self.loaded.get_mut(&serial) {
                Some(events) if !events.is_empty() => {
                    (events.pop(), events.last().map(|event| event.time_ns))
                }
                _ => (None, self.load(serial)?),
            };
            let next_ns = next_ns.or_else(|| Some(self.waiting.get(&serial)?.front()?.first_ns));
            match next_ns {
                Some(next_ns) => self.heads.push(Reverse((next_ns, serial))),
                None => drop(self.loaded.remove(&serial)),
            }
            if event.is_some() {
                return Ok(event);
            }
        }
        Ok(None)
    }

    /// Loads a thread's next segment. Returns the time of its first event, `None` if there is none.
    fn load(&mut self, serial: u64) -> io::Result<Option<u64>> {
        let Some(segment) = self.waiting.get_mut(&serial).and_then(VecDeque::pop_front) else {
            return Ok(None);
        };
        let mut bytes = vec![0; segment.events as usize * EVENT_BYTES];
        self.file.seek(SeekFrom::Start(segment.offset))?;
        self.file.read_exact(&mut bytes)?;
        let of_thread = |event: Event| Event { serial, thread: segment.thread, ..event };
        let events = bytes.chunks_exact(EVENT_BYTES).map(Event::read).filter(|event| event.kind != 0);
        let mut events: Vec<Event> = events.map(of_thread).collect();
        // Signal handlers write between the parts of what they interrupt.
        events.sort_by_key(|event| event.time_ns);
        events.reverse();
        let first = events.last().map(|event| event.time_ns);
        self.loaded.insert(serial, events);
        Ok(first)
    }
}
