//! A process's events become rows of a trace.
//!
//! | call | rows |
//! |---|---|
//! | `malloc`, `calloc`, aligned requests, `operator new` | `kmalloc` |
//! | `free`, `operator delete` | `kfree` |
//! | `realloc` | `kfree`, then `kmalloc`, both with `realloc` as call site; a failed one gives the block back |
//!
//! The cache of a block is the size class of slablab's malloc. A block above the largest class has no cache,
//! and whole pages.

use crate::files::{Event, Process};
use crate::frames::Frames;
use crate::objects::{Object, Objects};
use crate::preloaded::LIBRARY_NAME;
use crate::raw::kind;
use rustc_hash::FxHashMap;
use slablab_malloc::classes;
use slablab_trace::{Error, EventKind, Loss, Losses, Metadata, NONE, Row, Source, Writer, flags};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::Write;

/// `source.kind` of a trace that was recorded here.
pub const KIND: &str = "malloc";

/// The bit of `GFP_ZERO` in the trace's column `gfp`.
const ZERO: u32 = 1 << 8;

/// What a trace contains.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Allocations, by the call.
    pub allocs: u64,
    /// Frees.
    pub frees: u64,
    /// Changes of size: each is a free and an allocation in the trace.
    pub resizes: u64,
    /// Threads, and the most that lived at once.
    pub threads: [u64; 2],
    /// Requested bytes that were live at most, and the number of blocks then.
    pub peak: [u64; 2],
    /// Requested bytes and blocks that were live at the end.
    pub end: [u64; 2],
    /// Sizes of requests: how many of each.
    pub sizes: BTreeMap<u64, u64>,
    /// Frees of blocks that were allocated before the recording, or by calls that it did not see.
    pub unseen_frees: u64,
    /// Calls that could not be written.
    pub lost: u64,
    /// Allocations with a call chain.
    pub chains: u64,
    /// Bytes of the process that were in memory: when it began, at most, and at the end.
    pub resident: Option<[u64; 3]>,
    /// Time from the first to the last call in ns.
    pub wall_ns: u64,
    /// Rows of the trace.
    pub rows: u64,
}

impl Summary {
    /// The size in bytes that the part `share` of all requests is at most.
    pub fn size_at(&self, share: f64) -> u64 {
        let all: u64 = self.sizes.values().sum();
        let mut left = (all as f64 * share).ceil() as u64;
        for (size, count) in &self.sizes {
            match left.checked_sub(*count) {
                Some(more) if more > 0 => left = more,
                _ => return *size,
            }
        }
        0
    }
}

/// What is known of a thread.
#[derive(Debug, Default)]
struct Thread {
    cpu: u16,
    /// The block whose size the thread changes.
    resized: Option<(u64, Object)>,
    /// The addresses of the thread's last allocation and free.
    last: [u64; 2],
    chain: Chain,
}

/// A call chain, and the allocation that it is of.
#[derive(Debug, Default)]
struct Chain {
    address: u64,
    /// From the innermost.
    frames: Vec<u64>,
}

struct Converter<W: Write + Send + 'static> {
    writer: Writer<W>,
    objects: Objects,
    threads: FxHashMap<u64, Thread>,
    /// Numbers of ended threads.
    free_cpus: BinaryHeap<Reverse<u16>>,
    cpus: u16,
    comm: u32,
    sites: FxHashMap<(u8, u64), u32>,
    frames: Frames,
    stacks: FxHashMap<Vec<u64>, u32>,
    caches: Vec<u32>,
    page_bytes: u64,
    summary: Summary,
}

/// Writes a process's calls as a trace. `known` is what the caller knows of the machine. `tick` gets the
/// number of events that were read.
///
/// # Errors
/// A file that cannot be read, or a trace that cannot be written.
pub fn convert<W: Write + Send + 'static>(
    process: &Process,
    out: W,
    known: Metadata,
    tick: &mut dyn FnMut(u64),
) -> Result<(W, Summary), Error> {
    let io = |source| Error::Io { path: process.paths[0].clone(), source };
    let mut writer = Writer::new(out)?;
    let comm = writer.texts().comm.id(process.name());
    let mut converter = Converter {
        writer,
        objects: Objects::default(),
        threads: FxHashMap::default(),
        free_cpus: BinaryHeap::new(),
        cpus: 0,
        comm,
        sites: FxHashMap::default(),
        frames: Frames::of(process.mappings()),
        stacks: FxHashMap::default(),
        caches: vec![NONE; classes::COUNT],
        page_bytes: process.page_bytes.max(1),
        summary: Summary { lost: process.lost, ..Summary::default() },
    };
    let mut events = process.events().map_err(io)?;
    let (mut done, mut last_ns, mut first_ns) = (0u64, 0, None);
    while let Some(event) = events.next().map_err(io)? {
        last_ns = event.time_ns.max(last_ns);
        first_ns.get_or_insert(event.time_ns);
        converter.event(&event)?;
        done += 1;
        if done.is_multiple_of(1 << 16) {
            tick(done);
        }
    }
    converter.summary.wall_ns = last_ns - first_ns.unwrap_or(last_ns);
    converter.finish(process, known, last_ns)
}

impl<W: Write + Send + 'static> Converter<W> {
    fn event(&mut self, event: &Event) -> Result<(), Error> {
        if !self.threads.contains_key(&event.serial) {
            self.begin_thread(event.serial);
        }
        match event.kind {
            kind::MALLOC | kind::CALLOC | kind::ALIGNED | kind::NEW => self.alloc(event),
            kind::FREE | kind::DELETE => self.free(event),
            kind::REALLOC_BEGIN => self.begin_resize(event),
            kind::REALLOC_DONE => self.end_resize(event),
            kind::END => {
                if let Some(thread) = self.threads.remove(&event.serial) {
                    self.free_cpus.push(Reverse(thread.cpu));
                }
                Ok(())
            }
            kind::CHAIN => {
                let chain = &mut self.thread(event).chain;
                chain.address = event.address;
                chain.frames.clear();
                Ok(())
            }
            kind::FRAME => {
                self.thread(event).chain.frames.push(event.address);
                Ok(())
            }
            kind::RESIDENT => {
                let bytes = event.size.saturating_mul(self.page_bytes);
                let [first, most, _] = self.summary.resident.unwrap_or([bytes; 3]);
                self.summary.resident = Some([first, most.max(bytes), bytes]);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn begin_thread(&mut self, serial: u64) {
        let cpu = match self.free_cpus.pop() {
            Some(Reverse(cpu)) => cpu,
            // A trace has 65,535 CPUs. With more threads at once the last ones share a number.
            None => {
                self.cpus = self.cpus.saturating_add(1).min(u16::MAX - 1);
                self.cpus - 1
            }
        };
        self.threads.insert(serial, Thread { cpu, ..Thread::default() });
        let [all, most] = &mut self.summary.threads;
        *all += 1;
        *most = (*most).max(self.threads.len() as u64);
    }

    fn thread(&mut self, event: &Event) -> &mut Thread {
        self.threads.get_mut(&event.serial).expect("begun before its first event")
    }

    fn row(&mut self, event: &Event, kind: EventKind) -> Row {
        Row {
            time_ns: event.time_ns,
            cpu: self.thread(event).cpu,
            pid: event.thread as i32,
            comm: self.comm,
            event: kind as u8,
            address: event.address,
            call_site: self.site(event),
            ..Row::default()
        }
    }

    /// The call chain of an allocation, if it has one.
    fn stack(&mut self, event: &Event) -> u32 {
        let chain = &mut self.thread(event).chain;
        if chain.address != event.address || chain.frames.is_empty() {
            return NONE;
        }
        let frames = std::mem::take(&mut chain.frames);
        self.summary.chains += 1;
        if let Some(stack) = self.stacks.get(&frames) {
            return *stack;
        }
        let text = self.frames.chain(&frames, LIBRARY_NAME);
        let stack = if text.is_empty() { NONE } else { self.writer.texts().stack.id(&text) };
        self.stacks.insert(frames, stack);
        stack
    }

    /// The name of the called function; for aligned requests with the alignment.
    fn site(&mut self, event: &Event) -> u32 {
        let key = (event.kind, if event.kind == kind::ALIGNED { event.align } else { 0 });
        let texts = self.writer.texts();
        *self.sites.entry(key).or_insert_with(|| {
            let text = match key {
                (kind::MALLOC, _) => "malloc".into(),
                (kind::CALLOC, _) => "calloc".into(),
                (kind::ALIGNED, align) => format!("memalign {align}"),
                (kind::NEW, _) => "operator new".into(),
                (kind::DELETE, _) => "operator delete".into(),
                (kind::REALLOC_BEGIN | kind::REALLOC_DONE, _) => "realloc".into(),
                _ => String::from("free"),
            };
            texts.call_site.id(&text)
        })
    }

    /// The cache and the bytes of a block under slablab's malloc.
    fn place(&mut self, bytes: u64, align: u64) -> (u32, u32) {
        let fits = bytes <= classes::MAX as u64 && align <= classes::MAX as u64;
        let sized = if fits { classes::aligned(bytes as usize, align as usize) } else { None };
        let Some(sized) = sized else {
            let pages = bytes.max(align).div_ceil(self.page_bytes).saturating_mul(self.page_bytes);
            return (NONE, u32::try_from(pages).unwrap_or(u32::MAX));
        };
        let class = classes::of(sized);
        let bytes_alloc = classes::size(class);
        if self.caches[class] == NONE {
            let name = format!("malloc-{bytes_alloc}");
            self.caches[class] = self.writer.texts().cache.id(&name);
            self.objects.caches.push(slablab_trace::CacheCounts { name, ..Default::default() });
        }
        (self.caches[class], bytes_alloc)
    }

    fn alloc(&mut self, event: &Event) -> Result<(), Error> {
        if event.address != 0 && self.objects.get(event.address).is_some() {
            if self.thread(event).last[0] == event.address {
                // An allocator's function that calls another one of its own by its public name.
                return Ok(());
            }
            self.imply_free(event)?;
        }
        self.summary.allocs += 1;
        *self.summary.sizes.entry(event.size).or_default() += 1;
        self.begin(event, event.size, event.align)
    }

    /// A block begins, or the request for it failed.
    fn begin(&mut self, event: &Event, bytes: u64, align: u64) -> Result<(), Error> {
        let (cache, bytes_alloc) = self.place(bytes, align);
        let stack = self.stack(event);
        let row = Row { stack, ..self.row(event, EventKind::Kmalloc) };
        let gfp = if event.kind == kind::CALLOC { ZERO } else { 0 };
        let mut object = Object { id: NONE, cache, bytes, bytes_alloc, cpu: row.cpu };
        let row = Row { gfp, ..row };
        if event.address == 0 {
            return self.writer.push(&Row { flags: flags::NULL, ..object.of(row) });
        }
        object.id = self.objects.take_id();
        self.objects.begin(event.address, object);
        self.thread(event).last = [event.address, 0];
        self.writer.push(&object.of(row))
    }

    /// The block that was live at the event's address was freed by a call that was not seen.
    fn imply_free(&mut self, event: &Event) -> Result<(), Error> {
        let cpu = self.thread(event).cpu;
        let Some(object) = self.objects.end(event.address, None) else { return Ok(()) };
        let (time_ns, address) = (event.time_ns, event.address);
        let row = Row { time_ns, cpu, address, event: EventKind::ImpliedFree as u8, ..Row::default() };
        self.writer.push(&object.of(row))
    }

    fn free(&mut self, event: &Event) -> Result<(), Error> {
        let thread = self.thread(event);
        let again = thread.last[1] == event.address
            || thread.resized.is_some_and(|(address, _)| address == event.address);
        if event.address != 0 && again && self.objects.get(event.address).is_none() {
            return Ok(());
        }
        self.summary.frees += 1;
        self.end(event).map(drop)
    }

    /// A block ends. Returns it if its allocation was seen.
    fn end(&mut self, event: &Event) -> Result<Option<Object>, Error> {
        let row = self.row(event, EventKind::Kfree);
        if event.address == 0 {
            self.writer.push(&Row { flags: flags::NULL, ..row })?;
            return Ok(None);
        }
        self.thread(event).last = [0, event.address];
        if let Some(object) = self.objects.end(event.address, Some(row.cpu)) {
            self.writer.push(&object.of(row))?;
            return Ok(Some(object));
        }
        self.summary.unseen_frees += 1;
        let id = self.objects.take_id();
        self.objects.give_id(id);
        self.writer.push(&Row { object: id, flags: flags::UNSEEN, ..row })?;
        Ok(None)
    }

    fn begin_resize(&mut self, event: &Event) -> Result<(), Error> {
        let object = self.end(event)?;
        self.thread(event).resized = object.map(|object| (event.address, object));
        Ok(())
    }

    fn end_resize(&mut self, event: &Event) -> Result<(), Error> {
        let old = self.thread(event).resized.take();
        self.summary.resizes += 1;
        if event.address == 0 && (event.size == 0 || old.is_some()) {
            // Without a size it is a free. Else it failed, and the old block is still there.
            let Some((address, object)) = old.filter(|_| event.size != 0) else { return Ok(()) };
            return self.begin(&Event { address, ..*event }, object.bytes, 1);
        }
        if self.objects.get(event.address).is_some() {
            if self.thread(event).last[0] == event.address {
                return Ok(());
            }
            self.imply_free(event)?;
        }
        *self.summary.sizes.entry(event.size).or_default() += 1;
        self.begin(event, event.size, 1)
    }

    fn finish(mut self, process: &Process, known: Metadata, last_ns: u64) -> Result<(W, Summary), Error> {
        let mut losses = Losses::default();
        if process.lost > 0 {
            let events = process.lost;
            let row = self.writer.rows();
            let kind = "limit".into();
            let loss = Loss { row, time_ns: last_ns, cpu: None, events, kind, offset_bytes: process.bytes };
            losses = Losses { events, records: 1, list: vec![loss], ..losses };
            let event = EventKind::Lost as u8;
            self.writer.push(&Row { time_ns: last_ns, event, address: events, ..Row::default() })?;
        }
        let command = process.command.clone();
        let source = Source { kind: KIND.into(), size_bytes: process.bytes, command, ..Source::default() };
        let objects = self.objects;
        self.summary.peak = [objects.peak_bytes, objects.peak_blocks];
        self.summary.end = [objects.live_bytes, objects.count()];
        self.summary.rows = self.writer.rows();
        let metadata = Metadata {
            architecture: Some(std::env::consts::ARCH.into()),
            page_size_bytes: Some(self.page_bytes),
            clock: Some("mono".into()),
            // The addresses say nothing of slabs of the kernel.
            pairing_only: true,
            losses,
            source: Some(source),
            caches: objects.caches,
            other: of_program(process, &self.summary),
            ..known
        };
        let (out, _) = self.writer.finish(metadata)?;
        Ok((out, self.summary))
    }
}

/// The footer's key `malloc`.
fn of_program(process: &Process, summary: &Summary) -> serde_json::Map<String, serde_json::Value> {
    let mut value = serde_json::json!({
        "pid": process.pid,
        "allocator": process.allocator,
        "threads": summary.threads[0],
        "threads_at_once": summary.threads[1],
        "peak_bytes": summary.peak[0],
        "peak_blocks": summary.peak[1],
        "wall_ns": summary.wall_ns,
    });
    if let Some(bytes) = process.sample_bytes {
        value["sample_bytes"] = bytes.into();
    }
    if let Some([first, most, last]) = summary.resident {
        value["resident_bytes"] = serde_json::json!({ "begin": first, "most": most, "end": last });
    }
    serde_json::Map::from_iter([("malloc".to_string(), value)])
}
