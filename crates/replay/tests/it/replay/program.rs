//! A program, as text, becomes a trace.

use slablab_platform::Gfp;
use slablab_trace::{ANY_NODE, CacheCounts, EventKind, Import, Metadata, NONE, Reader, Row, Writer, flags};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where the recorded kernel's linear map begins.
pub(crate) const LINEAR_MAP: u64 = 0xffff_8880_0000_0000;
/// Objects of this number and above were in slabs before the recording; the pages of others are allocated in
/// it.
const FIRST_OLD: u32 = 1000;

/// A trace being written from a program.
struct Recorder {
    writer: Writer<Vec<u8>>,
    row: Row,
    /// Name and size, at the cache's id.
    caches: Vec<(String, u32)>,
    sizes: Vec<u32>,
    /// 64 KiB blocks whose pages have a row.
    pages: HashSet<u64>,
    /// An object's dense id, by its address.
    ids: HashMap<u64, u32>,
    lost: u64,
}

impl Recorder {
    fn push(&mut self, row: Row) {
        self.row.time_ns += 1000;
        let row = Row { time_ns: self.row.time_ns, cpu: self.row.cpu, ..row };
        self.writer.push(&row).expect("memory");
    }

    /// The cache called `name`; a number is a kmalloc size.
    fn home(&mut self, name: &str) -> (u32, u32) {
        if let Some(id) = self.caches.iter().position(|cache| cache.0 == name) {
            return (id as u32, self.caches[id].1);
        }
        let size = name.parse().unwrap_or_else(|_| panic!("{name} is neither a cache nor a size"));
        if !self.sizes.contains(&size) {
            self.sizes.push(size);
        }
        (NONE, size)
    }

    /// Every size and cache has a GiB of addresses.
    fn address(cache: u32, size: u32, object: u32) -> u64 {
        let region = if cache == NONE { 100 + size.ilog2() as u64 } else { cache as u64 + 1 };
        LINEAR_MAP + (region << 30) + object as u64 * size as u64
    }

    fn object(&mut self, event: EventKind, home: &str, object: u32, flags: u8, gfp: u32, node: i16) {
        let (cache, size) = self.home(home);
        let address = Recorder::address(cache, size, object);
        let (kmalloc, alloc) = (cache == NONE, event.is_alloc());
        if alloc && object < FIRST_OLD && self.pages.insert(address >> 16) {
            let pfn = ((address >> 16 << 16) - LINEAR_MAP) as i64 >> 12;
            let pages = Row { event: EventKind::PageAlloc as u8, pfn, order: 4, ..Row::default() };
            self.push(pages);
        }
        let event = match event {
            EventKind::CacheAlloc if kmalloc => EventKind::Kmalloc,
            EventKind::CacheFree if kmalloc => EventKind::Kfree,
            event => event,
        };
        let next = self.ids.len() as u32;
        let id = *self.ids.entry(address).or_insert(next);
        // A free has what its allocation had; one of an unseen object knows neither size nor flags.
        let known = if flags & flags::UNSEEN != 0 && kmalloc { 0 } else { size };
        self.push(Row {
            event: event as u8,
            address,
            object: id,
            cache,
            bytes_req: known,
            bytes_alloc: known,
            gfp,
            node,
            flags,
            ..Row::default()
        });
    }

    /// `CPU VERB HOME OBJECTS`, where objects are `3` or `0-31`; see the arms.
    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let range = |text: &str| -> std::ops::RangeInclusive<u32> {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            first.parse().expect("a number")..=last.parse().expect("a number")
        };
        if let [cpu, ..] = words[..]
            && let Ok(cpu) = cpu.parse()
        {
            self.row.cpu = cpu;
        }
        match words[..] {
            ["cache", name, size] => {
                self.writer.texts().cache.id(name);
                self.caches.push((name.into(), size.parse().expect("a size")));
            }
            ["mark", kind, cache] => {
                let call_site = self.writer.texts().call_site.id(&format!("{kind} {cache}"));
                self.push(Row { event: EventKind::Mark as u8, call_site, ..Row::default() });
            }
            ["lost", events] => {
                self.lost += 1;
                let address = events.parse().expect("a number");
                self.push(Row { event: EventKind::Lost as u8, address, ..Row::default() });
            }
            ["wait", ns] => self.row.time_ns += ns.parse::<u64>().expect("nanoseconds"),
            [_, "kfree", "null"] => {
                self.push(Row { event: EventKind::Kfree as u8, flags: flags::NULL, ..Row::default() });
            }
            [_, "kfree", "zero"] => self.push(Row {
                event: EventKind::Kfree as u8,
                flags: flags::ZERO_SIZE,
                address: 16,
                ..Row::default()
            }),
            // The page that holds an object goes back to the page allocator.
            [_, "return", home, object] => {
                let (cache, size) = self.home(home);
                let address = Recorder::address(cache, size, object.parse().expect("a number"));
                let pfn = (address - LINEAR_MAP) as i64 >> 12;
                self.push(Row { event: EventKind::PageFree as u8, pfn, ..Row::default() });
            }
            [_, verb, home, objects, ref rest @ ..] => {
                let gfp = match rest.first() {
                    Some(&"reclaimable") => Gfp::KERNEL | Gfp::RECLAIMABLE,
                    Some(&"account") => Gfp::KERNEL | Gfp::ACCOUNT,
                    Some(&"dma") => Gfp::KERNEL | Gfp::DMA,
                    _ => Gfp::KERNEL,
                };
                let node = rest.first().and_then(|word| word.strip_prefix("node")).map(|node| node.parse());
                let node = node.map_or(ANY_NODE, |node| node.expect("a node"));
                let (event, flags) = match verb {
                    "alloc" => (EventKind::CacheAlloc, 0),
                    "free" => (EventKind::CacheFree, 0),
                    "implied" => (EventKind::ImpliedFree, 0),
                    "rcu" => (EventKind::KfreeRcu, 0),
                    "unseen" => (EventKind::CacheFree, flags::UNSEEN),
                    "again" => (EventKind::CacheFree, flags::UNSEEN | flags::FREED_BEFORE),
                    other => panic!("{other} is no verb"),
                };
                for object in range(objects) {
                    self.object(event, home, object, flags, gfp.0, node);
                }
            }
            _ => panic!("{line:?} is no line of a program"),
        }
    }
}

/// Opens a trace, from a file that has no name any more.
pub(crate) fn open(trace: &[u8]) -> Reader {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("replay-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, trace).expect("a file can be written");
    let reader = Reader::open(&path).expect("just written");
    std::fs::remove_file(&path).expect("just written");
    reader
}

/// The trace of a program, recorded on `release`.
pub(crate) fn trace(release: &str, program: &str) -> Reader {
    open(&record(release, program, 1 << 18))
}

pub(crate) fn record(release: &str, program: &str, group_rows: usize) -> Vec<u8> {
    let mut recorder = Recorder {
        writer: Writer::new(Vec::new()).expect("memory").with_group_rows(group_rows),
        row: Row::default(),
        caches: Vec::new(),
        sizes: Vec::new(),
        pages: HashSet::new(),
        ids: HashMap::new(),
        lost: 0,
    };
    program.split(';').map(str::trim).filter(|line| !line.is_empty()).for_each(|line| recorder.line(line));
    let counts = |name: &str, bytes: u32| CacheCounts {
        name: name.into(),
        bytes_alloc: bytes.into(),
        ..CacheCounts::default()
    };
    let mut metadata = Metadata {
        release: Some(release.into()),
        page_size_bytes: Some(4096),
        caches: recorder.caches.iter().map(|(name, size)| counts(name, *size)).collect(),
        import: Some(Import {
            linear_map: Some(LINEAR_MAP),
            kmalloc: recorder.sizes.iter().map(|size| counts("", *size)).collect(),
            ..Import::default()
        }),
        ..Metadata::default()
    };
    metadata.losses.records = recorder.lost;
    recorder.writer.finish(metadata).expect("memory").0
}
