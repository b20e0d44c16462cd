//! What existed before: one pass over the trace's real addresses.
//!
//! Two objects whose addresses fall into one slab's bytes shared that slab. A slab was there before when the
//! recording does not see its pages allocated first; an object was allocated before when its first event is a
//! free. Pages and objects are matched by where the linear map begins, which import found. Hashed addresses
//! say none of this: then only which objects are old is known, and each stands alone.

use super::Options;
use super::before::{Before, Windows};
use super::caches::{CacheTable, Home};
use super::untraced::{Deed, Silence};
use crate::import::FREED_LIMIT;
use rustc_hash::FxHashMap;
use slablab_readers::slabs::Snapshot;
use slablab_report::error::{At, Error, Result};
use slablab_slabs::order::MAX_ORDER;
use slablab_trace::{Batch, Columns, EventKind, Reader, flags};
use std::num::NonZeroU32;
use std::path::Path;

/// What the trace says about the start.
#[derive(Debug, Default)]
pub struct Survey {
    /// Per cache of the table.
    pub caches: Vec<CacheSurvey>,
    /// Frees of objects that existed before, in the trace's order: row, cache and object.
    pub old: Vec<OldFree>,
    /// Rows from which and up to which a cache counts; the whole trace without marks.
    pub windows: Vec<(u64, u64)>,
    /// Addresses whose state changed without an event, or perhaps did.
    pub(super) silences: Vec<Silence>,
    /// Frees whose cache is unknown.
    pub unknown_frees: u64,
    /// Allocations of more than the largest block of the machine's page allocator.
    pub too_large: u64,
    /// Where the kernel's linear map begins: an address minus its frame's number times the page size.
    pub linear_map: Option<u64>,
    /// Whether the recording has frees of pages.
    pub has_page_frees: bool,
    /// The recording's allocations and frees in one number: equal for equal ones, whatever file they are
    /// read from.
    pub fingerprint: Fingerprint,
}

/// A number of the allocations and frees of a recording: their order, CPUs, objects and sizes. Times are
/// left out, which some forms of a recording round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint(u64);

impl Fingerprint {
    fn add(&mut self, batch: &Batch, index: usize) {
        let event = batch.event[index];
        let words = [
            u64::from(event) << 32 | u64::from(batch.cpu[index]),
            u64::from(batch.object[index]),
            u64::from(batch.bytes_req[index]),
        ];
        for word in words {
            // The golden ratio in 64 bits: every bit of a word moves the upper half.
            self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Survey {
    /// For each cache the first row behind its window, in a trace of `rows`.
    pub(super) fn ends(&self, rows: u64) -> Vec<u64> {
        self.windows.iter().map(|(_, last)| *last.min(&rows)).collect()
    }

    /// Slabs from before that events show, and their objects whose start they show.
    pub(super) fn seen(&self) -> (u64, u64) {
        let slabs = || self.caches.iter().flat_map(|cache| cache.slabs.values());
        let objects = slabs().map(|slab| (slab.free.len() + slab.live.len()) as u64).sum();
        (slabs().filter(|slab| slab.free.len() + slab.live.len() > 0).count() as u64, objects)
    }
}

/// A free of an object from before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldFree {
    /// The trace's row.
    pub row: u64,
    /// The cache of the table; `u32::MAX` when not known.
    pub cache: u32,
    /// The slab's real address.
    pub slab: u64,
    /// The object's index in it.
    pub index: u16,
}

/// What the trace touched of one cache's slabs from before.
#[derive(Clone, Debug, Default)]
pub struct CacheSurvey {
    /// By real address.
    pub slabs: FxHashMap<u64, SlabSurvey>,
}

/// One slab from before.
#[derive(Clone, Debug, Default)]
pub struct SlabSurvey {
    /// First row that touched it.
    pub first_row: u64,
    /// Objects that were free, in the order they were handed out; with the CPU that got each.
    pub free: Vec<(u16, u16)>,
    /// The rows that handed them out.
    pub free_rows: Vec<u64>,
    /// Objects that were allocated and are freed later.
    pub live: Vec<u16>,
    /// Its pages were freed in the recording: then it had no object.
    pub emptied: bool,
    /// Its pages were allocated in the recording, or again: nothing more is learnt from it.
    closed: bool,
    /// A bit for each object whose start is known.
    known: Vec<u64>,
}

impl SlabSurvey {
    /// Whether an object's start is still unknown; it is known from here on.
    fn is_news(&mut self, index: u16) -> bool {
        let (word, bit) = (index as usize / 64, 1 << (index % 64));
        if self.known.len() <= word {
            self.known.resize(word + 1, 0);
        }
        let news = self.known[word] & bit == 0;
        self.known[word] |= bit;
        news
    }
}

struct Pass<'a> {
    table: &'a CacheTable,
    survey: Survey,
    /// Per dense object id: its allocation, if that is inside its cache's window.
    in_window: Vec<Option<Born>>,
    /// Row and cache of the last free of each address in its cache's window, unless an event allocated it
    /// again.
    freed: FxHashMap<u64, (u64, u32)>,
    /// Frame number to the last row that allocated it.
    page_rows: FxHashMap<u64, u64>,
    /// The cache of a slab from before, by its real address.
    owners: FxHashMap<u64, u32>,
    /// Frees whose cache is found when all slabs are known.
    homeless: Vec<(u64, u64)>,
    page_shift: u32,
    /// Addresses are hashes: no two objects are known to share a slab.
    hashed: bool,
}

/// An allocation.
#[derive(Clone, Copy)]
struct Born {
    row: u64,
    /// One more than the cache of the table, so that an absent one takes no room.
    cache: NonZeroU32,
    /// Bytes requested and given.
    bytes: (u32, u32),
}

impl Born {
    /// Its object `object` is or may be freed without an event.
    fn silence(self, object: usize, until: Option<u64>) -> Silence {
        let deed = Deed::Free(object as u32, self.bytes);
        Silence { cache: self.cache.get() - 1, deed, after: self.row, until }
    }
}

const COLUMNS: Columns = Columns::REPLAY;

/// The largest block that a page allocator of Linux ever had: 512 MiB of 64K pages.
const ORDER_MAX: i8 = 13;

/// Surveys a trace.
///
/// # Errors
/// A trace that cannot be read.
pub fn survey(path: &Path, reader: &Reader, table: &CacheTable, options: &Options) -> Result<Survey> {
    let metadata = reader.metadata();
    let page_shift = metadata.page_size_bytes.unwrap_or(4096).max(1).ilog2();
    let windows = options.before.as_ref().map_or(Windows::All, |before| before.windows);
    let windowed = windows != Windows::All;
    let mut edges = edges(table, options.before.as_ref().filter(|_| !windowed));
    // The recorder read it with the slabs; import finds it by pages and objects, if there are enough.
    let snapshots = options.before.as_ref().and_then(|before| before.snapshots.as_ref());
    snapshots.map_or(Ok(()), |snapshots| snapshots.same_clock(metadata)).at(path)?;
    let read_map = snapshots.map(|snapshots| snapshots.start.linear_map);
    let columns = COLUMNS | Columns::ADDRESS | Columns::PFN | Columns::ORDER | Columns::CALL_SITE;
    let mut pass = Pass {
        table,
        survey: Survey {
            caches: vec![CacheSurvey::default(); table.entries.len()],
            windows: vec![if windowed { (u64::MAX, u64::MAX) } else { (0, u64::MAX) }; table.entries.len()],
            linear_map: read_map.or(metadata.import.as_ref().and_then(|import| import.linear_map)),
            ..Survey::default()
        },
        in_window: vec![None; metadata.statistics.object_ids as usize],
        freed: FxHashMap::default(),
        page_rows: FxHashMap::default(),
        owners: FxHashMap::default(),
        homeless: Vec::new(),
        page_shift,
        hashed: metadata.pairing_only,
    };
    for edge in edges.iter().filter(|edge| edge.opens) {
        pass.survey.windows[edge.cache].0 = u64::MAX;
    }
    let mut batch = Batch::default();
    let mut row = 0;
    let mut batches = reader.batches(columns);
    while batches.next(&mut batch).at(path)? {
        for index in 0..batch.len() {
            while let Some(edge) = edges.pop_if(|edge| edge.time_ns <= batch.time_ns[index]) {
                let window = &mut pass.survey.windows[edge.cache];
                if edge.opens { window.0 = row } else { window.1 = row }
            }
            if windowed && batch.event[index] == EventKind::Mark as u8 {
                pass.mark(row, windows, batches.texts().call_site.get(batch.call_site[index]).unwrap_or(""));
            } else {
                pass.row(row, &batch, index);
                if EventKind::from_u8(batch.event[index])
                    .is_some_and(|event| event.is_alloc() || event.is_free())
                {
                    pass.survey.fingerprint.add(&batch, index);
                }
            }
            row += 1;
        }
    }
    if windows == Windows::One
        && pass.survey.windows.iter().any(|(first, last)| *last == u64::MAX || first >= last)
    {
        let expected =
            "expected the marks `PH before_end` and `PH after_begin`, between which the kernel counted";
        return Err(Error::new(path, expected));
    }
    pass.find_homes();
    pass.find_open();
    pass.survey.old.sort_by_key(|old| old.row);
    Ok(pass.survey)
}

/// A moment at which a cache was read.
struct Edge {
    time_ns: u64,
    cache: usize,
    opens: bool,
}

/// When the windows of caches open and close by the snapshots of a recording, the last one first.
fn edges(table: &CacheTable, before: Option<&Before>) -> Vec<Edge> {
    let Some(snapshots) = before.and_then(|before| before.snapshots.as_ref()) else { return Vec::new() };
    let mut edges = Vec::new();
    for (cache, entry) in table.entries.iter().enumerate() {
        let of = |snapshot: &Snapshot| entry.names().find_map(|name| Some(snapshot.only(name)?.at_ns));
        if let Some((start, end)) = of(&snapshots.start).zip(of(&snapshots.end)) {
            edges.push(Edge { time_ns: start, cache, opens: true });
            edges.push(Edge { time_ns: end, cache, opens: false });
        }
    }
    edges.sort_unstable_by_key(|edge| (std::cmp::Reverse(edge.time_ns), edge.cache));
    edges
}

impl Pass<'_> {
    fn mark(&mut self, row: u64, windows: Windows, text: &str) {
        if windows == Windows::One {
            match text {
                "PH before_end" => self.survey.windows.iter_mut().for_each(|window| window.0 = row),
                "PH after_begin" => self.survey.windows.iter_mut().for_each(|window| window.1 = row),
                _ => {}
            }
            return;
        }
        let Some((kind, name)) = text.split_once(' ') else { return };
        let Some(index) = self.table.entries.iter().position(|entry| entry.name == name) else { return };
        match kind {
            "SB" => self.survey.windows[index].0 = row,
            "SA" => self.survey.windows[index].1 = row,
            _ => {}
        }
    }

    fn row(&mut self, row: u64, batch: &Batch, index: usize) {
        let Some(event) = EventKind::from_u8(batch.event[index]) else { return };
        let address = batch.address[index];
        match event {
            EventKind::PageAlloc if batch.pfn[index] >= 0 => {
                let first = batch.pfn[index] as u64;
                for frame in first..first.saturating_add(1 << batch.order[index].clamp(0, ORDER_MAX)) {
                    self.page_rows.insert(frame, row);
                }
            }
            EventKind::PageFree if batch.pfn[index] >= 0 => self.page_free(batch.pfn[index] as u64),
            _ if address == 0 || batch.flags[index] & (flags::NULL | flags::ZERO_SIZE) != 0 => {}
            _ if event.is_alloc() || event.is_free() => {
                let home = self.table.home(batch.cache[index], batch.bytes_alloc[index], batch.gfp[index]);
                let object = batch.object[index] as usize;
                match home {
                    Home::Cache(cache) => {
                        let bytes = (batch.bytes_req[index], batch.bytes_alloc[index]);
                        self.object(row, event, cache, (object, bytes), address, batch.cpu[index]);
                    }
                    Home::Large(order) if order <= MAX_ORDER => {}
                    Home::Large(_) | Home::TooLarge => self.survey.too_large += u64::from(event.is_alloc()),
                    Home::Unknown if event.is_free() => self.homeless.push((row, address)),
                    Home::Unknown => {}
                }
            }
            _ => {}
        }
    }

    fn page_free(&mut self, frame: u64) {
        self.survey.has_page_frees = true;
        let Some(base) = self.survey.linear_map else { return };
        let address = base.wrapping_add(frame << self.page_shift);
        let Some(cache) = self.owners.remove(&address) else { return };
        let slab = self.survey.caches[cache as usize].slabs.get_mut(&address);
        if let Some(slab) = slab.filter(|slab| !slab.closed) {
            slab.emptied = true;
        }
    }

    fn object(
        &mut self,
        row: u64,
        event: EventKind,
        cache: u32,
        (object, bytes): (usize, (u32, u32)),
        address: u64,
        cpu: u16,
    ) {
        let (first, last) = self.survey.windows[cache as usize];
        let inside = row >= first && row < last;
        let seen = self.in_window.get_mut(object);
        let born = NonZeroU32::new(cache + 1).filter(|_| event.is_alloc() && inside);
        let born = born.map(|cache| Born { row, cache, bytes });
        let was = seen.and_then(|seen| std::mem::replace(seen, born));
        let was_in_window = was.is_some();
        // Before its window opens a cache has only a start to learn from: what is allocated then is old.
        if !inside {
            return;
        }
        if event.is_alloc() {
            self.freed.remove(&address);
        } else {
            let before = self.freed.insert(address, (row, cache));
            let shown = match (was, before) {
                (Some(was), _) if event == EventKind::ImpliedFree => Some(was.silence(object, Some(row))),
                // The slab may have become one of another cache meanwhile.
                (None, Some((after, of))) if of == cache => {
                    Some(Silence { cache, deed: Deed::Alloc(None), after, until: Some(row) })
                }
                _ => None,
            };
            self.survey.silences.extend(shown);
            if self.freed.len() > FREED_LIMIT {
                self.freed.clear();
            }
        }
        if self.hashed {
            if event.is_free() && !was_in_window {
                self.survey.old.push(OldFree { row, cache, slab: address, index: 0 });
            }
            return;
        }
        let entry = &self.table.entries[cache as usize];
        let bytes = 1u64 << (self.page_shift + entry.order);
        let slab = address & !(bytes - 1);
        let at = ((address - slab) / entry.size.max(1) as u64) as u16;
        let page_row = self.page_row(slab);
        let is_new = page_row.is_some_and(|page_row| page_row >= first);
        if event.is_free() && !was_in_window {
            self.survey.old.push(OldFree { row, cache, slab, index: at });
        }
        let touched = self.survey.caches[cache as usize].slabs.entry(slab).or_insert_with(|| SlabSurvey {
            first_row: row,
            closed: is_new,
            ..SlabSurvey::default()
        });
        touched.closed |= page_row.is_some_and(|page_row| page_row > touched.first_row);
        if touched.closed || !touched.is_news(at) {
            return;
        }
        if touched.first_row == row {
            self.owners.insert(slab, cache);
        }
        if event.is_alloc() {
            touched.free.push((at, cpu));
            touched.free_rows.push(row);
        } else if !was_in_window {
            touched.live.push(at);
        }
    }

    fn page_row(&self, slab: u64) -> Option<u64> {
        let frame = slab.wrapping_sub(self.survey.linear_map?) >> self.page_shift;
        self.page_rows.get(&frame).copied()
    }

    /// Adds addresses without a further event, of caches of which others changed without one.
    fn find_open(&mut self) {
        let kind = |silence: &Silence| usize::from(matches!(silence.deed, Deed::Alloc(_)));
        let mut untraced = vec![[false; 2]; self.table.entries.len()];
        for silence in &self.survey.silences {
            untraced[silence.cache as usize][kind(silence)] = true;
        }
        let live = self.in_window.iter().enumerate();
        let live = live.filter_map(|(object, born)| Some((*born)?.silence(object, None)));
        let free = self.freed.values();
        let deed = Deed::Alloc(None);
        let free = free.map(|(row, cache)| Silence { cache: *cache, deed, after: *row, until: None });
        let open = live.chain(free).filter(|silence| untraced[silence.cache as usize][kind(silence)]);
        let mut open: Vec<Silence> = open.collect();
        open.sort_unstable_by_key(|silence| silence.after);
        self.survey.silences.append(&mut open);
    }

    /// A kfree of an unseen object has no cache: its neighbours in the slab tell.
    fn find_homes(&mut self) {
        for (row, address) in std::mem::take(&mut self.homeless) {
            let neighbours = |cache: usize| {
                let entry = &self.table.entries[cache];
                let bytes = 1u64 << (self.page_shift + entry.order);
                let slab = address & !(bytes - 1);
                self.survey.caches[cache].slabs.contains_key(&slab).then_some(slab)
            };
            let found = (0..self.table.entries.len()).find_map(|cache| Some((cache, neighbours(cache)?)));
            let Some((cache, slab)) = found else {
                self.survey.unknown_frees += 1;
                continue;
            };
            let index = ((address - slab) / self.table.entries[cache].size.max(1) as u64) as u16;
            let touched = self.survey.caches[cache].slabs.get_mut(&slab).expect("just found");
            if !touched.closed && touched.is_news(index) {
                touched.live.push(index);
            }
            self.survey.old.push(OldFree { row, cache: cache as u32, slab, index });
        }
    }
}

impl CacheSurvey {
    /// The slabs from before, by the row that first touched each.
    pub fn initial(&self) -> Vec<(u64, &SlabSurvey)> {
        let mut slabs: Vec<_> = self
            .slabs
            .iter()
            .filter(|(_, slab)| !slab.free.is_empty() || !slab.live.is_empty())
            .map(|(address, slab)| (*address, slab))
            .collect();
        slabs.sort_by_key(|(address, slab)| (slab.first_row, *address));
        slabs
    }
}
