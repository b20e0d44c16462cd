//! The files of a recording: processes, and their events in the order of time.

use crate::frames::{self, Mapping};
use crate::raw::{
    ALLOCATOR_AT, CHUNK_BYTES, CHUNK_EVENTS, COMMAND_AT, EVENT_BYTES, HEAD_BYTES, MAGIC, MAPS, TEXT_BYTES,
    kind, word,
};
use rustc_hash::FxHashMap;
use rustix::fs::OFlags;
use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A process of a recording.
#[derive(Clone, Debug)]
pub struct Process {
    /// The files: more than one if the process gave up the right to write to the first.
    pub paths: Vec<PathBuf>,
    /// Bytes of the files.
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
    /// Bytes in each of which about one allocation has a call chain. `None`: no allocation has one.
    pub sample_bytes: Option<u64>,
    /// Call chains were asked for, and the process's C library cannot walk stacks.
    pub no_chains: bool,
    /// The start of the process's first file.
    first: u64,
    segments: Vec<Segment>,
}

impl Process {
    /// The name of the program, without its folder.
    pub fn name(&self) -> &str {
        let first = self.command.first().map_or("", String::as_str);
        first.rsplit('/').next().unwrap_or(first).trim_start_matches('-')
    }

    /// Whether the process called, and none of its calls could be written.
    pub fn could_not_write(&self) -> bool {
        self.calls == 0 && self.lost > 0
    }

    /// Adds another file of the process.
    fn join(&mut self, other: Process) {
        let files = self.paths.len();
        self.segments
            .extend(other.segments.iter().map(|segment| Segment { file: files + segment.file, ..*segment }));
        self.paths.extend(other.paths);
        self.bytes += other.bytes;
        self.calls += other.calls;
        self.lost = self.lost.saturating_add(other.lost);
    }

    fn count_threads(&mut self) {
        let mut serials: Vec<u64> = self.segments.iter().map(|segment| segment.serial).collect();
        serials.sort_unstable();
        serials.dedup();
        self.threads = serials.len() as u64;
    }
}

/// Events of one thread that are next to each other in a chunk.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// The file, by its index in [`Process::paths`].
    file: usize,
    serial: u64,
    thread: u64,
    offset: u64,
    events: u32,
    first_ns: u64,
}

/// The processes of a recording, which is in `folders`, in the order of their starts. Files without a head,
/// of processes that ended at their first call, are left out. So is what is no regular file.
///
/// # Errors
/// A folder or a file that cannot be read.
pub fn processes<P: AsRef<Path>>(folders: &[P]) -> io::Result<Vec<Process>> {
    let mut files = Vec::new();
    for folder in folders {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "raw") {
                files.extend(process(path)?);
            }
        }
    }
    files.sort_by_key(|process| (process.start_ns, process.pid));
    let mut found: Vec<Process> = Vec::new();
    let mut indices: FxHashMap<(u64, u64), usize> = FxHashMap::default();
    for file in files {
        match indices.entry((file.pid, file.first)) {
            Entry::Occupied(index) => found[*index.get()].join(file),
            Entry::Vacant(index) => {
                index.insert(found.len());
                found.push(file);
            }
        }
    }
    found.iter_mut().for_each(Process::count_threads);
    Ok(found)
}

/// Opens a raw file. `None`: it is a link, a pipe or a device. Recorded programs know the folder, and may put
/// anything there.
fn open(path: &Path) -> io::Result<Option<File>> {
    if !path.symlink_metadata()?.is_file() {
        return Ok(None);
    }
    // Another file may be there by now: no link is followed, and no pipe's other end is waited for.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match File::options().read(true).custom_flags(flags.bits() as i32).open(path) {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return Ok(None);
        }
        file => file?,
    };
    Ok(file.metadata()?.is_file().then_some(file))
}

/// A file's process. `None`: it has no head.
fn process(path: PathBuf) -> io::Result<Option<Process>> {
    let Some(file) = open(&path)? else { return Ok(None) };
    let bytes = file.metadata()?.len();
    let mut head = Vec::new();
    (&file).take(HEAD_BYTES as u64).read_to_end(&mut head)?;
    if head.len() < HEAD_BYTES {
        return Ok(None);
    }
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
        sample_bytes: Some(word(word::SAMPLE)).filter(|bytes| !matches!(*bytes, 0 | word::NO_CHAINS)),
        no_chains: word(word::SAMPLE) == word::NO_CHAINS,
        first: word(word::FIRST),
        segments: Vec::new(),
        paths: vec![path],
    };
    let (mut chunk, mut offset) = (Vec::with_capacity(CHUNK_BYTES), HEAD_BYTES as u64);
    while offset < bytes {
        chunk.clear();
        let length = (bytes - offset).min(CHUNK_BYTES as u64);
        if (&file).take(length).read_to_end(&mut chunk)? == 0 {
            break;
        }
        process.look_through(&chunk, offset);
        offset += length;
    }
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
                open = Some(Segment { file: 0, serial, thread, offset, events: 0, first_ns: event.time_ns });
            } else if let Some(segment) = &mut open {
                segment.events += 1;
                self.calls += u64::from(event.is_call());
            }
        }
        self.segments.extend(open.filter(|segment| segment.events > 0));
    }

    /// The mappings of the process's code, as far as its call chains lead through them.
    pub(crate) fn mappings(&self) -> Vec<Mapping> {
        // A file that is not there, or is cut off, has fewer.
        let text = |path: &PathBuf| {
            let mut text = Vec::new();
            open(&path.with_extension(MAPS)).ok()??.read_to_end(&mut text).ok()?;
            Some(text)
        };
        let all: Vec<Vec<u8>> = self.paths.iter().filter_map(text).collect();
        all.iter().flat_map(|text| frames::mappings(&String::from_utf8_lossy(text))).collect()
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
        let files = self.paths.iter().map(|path| {
            let gone = || io::Error::other(format!("{}: no longer a regular file", path.display()));
            open(path)?.ok_or_else(gone)
        });
        let files = files.collect::<io::Result<_>>()?;
        Ok(Events { files, heads, waiting, loaded: FxHashMap::default() })
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
        !matches!(self.kind, 0 | kind::REALLOC_BEGIN | kind::THREAD..)
    }
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"))
}

/// The events of all threads, merged by their times. One segment of each thread that has begun is in memory.
#[derive(Debug)]
pub(crate) struct Events {
    files: Vec<File>,
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
        let mut file = &self.files[segment.file];
        file.seek(SeekFrom::Start(segment.offset))?;
        file.read_exact(&mut bytes)?;
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
