//! The places of one cache's objects, row of the trace by row.

use crate::replay::run::Note;
use rustc_hash::FxHashMap;
use slablab_model::Addr;
use slablab_platform::{CpuId, Pfn, Platform};
use slablab_report::html::movie::{Change, Event, Movie};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An object's state: there is no slab.
pub(super) const NONE: u8 = 0;
/// Free since the slab was taken.
pub(super) const FRESH: u8 = 1;
/// Free in its slab.
pub(super) const FREE: u8 = 2;
/// On a CPU's list.
pub(super) const ON_LIST: u8 = 3;
/// In a CPU's array or sheaf.
pub(super) const IN_ARRAY: u8 = 4;
/// In a sheaf or array that no CPU allocates from: a spare one, a barn's, a shared one.
pub(super) const ELSEWHERE: u8 = 5;
/// Allocated.
pub(super) const LIVE: u8 = 6;

/// An event's kinds, which may be together.
pub(super) const ALLOC: u8 = 1;
pub(super) const FREED: u8 = 2;
pub(super) const REMOTE: u8 = 4;
pub(super) const TAKEN: u8 = 8;
pub(super) const RETURNED: u8 = 16;

/// Changes above which a movie is refused.
pub(super) const CHANGES_MAX: usize = 20_000_000;

/// A slab: its first frame, its row on the map.
#[derive(Clone, Copy)]
struct Slab {
    head: Pfn,
    row: u32,
}

/// A cell: its state and the CPU of that state, with 0 for none.
type Cell = (u8, u16);

/// What is seen of one cache.
pub(super) struct Watcher {
    cache: u32,
    size: u32,
    page_shift: u32,
    cells: u32,
    slabs: FxHashMap<u32, Slab>,
    free_rows: BinaryHeap<Reverse<u32>>,
    rows: u32,
    now: Vec<Cell>,
    shown: Vec<Cell>,
    dirty: Vec<u32>,
    lists: Vec<Vec<u32>>,
    event: Event,
    events: Vec<Event>,
    changes: Vec<Change>,
    pub(super) overflowed: bool,
}

impl Watcher {
    /// `cells`: the places of the cache's objects in a slab of the usual order.
    pub(super) fn new(cache: u32, cells: u32) -> Watcher {
        Watcher {
            cache,
            size: 0,
            page_shift: 0,
            cells,
            slabs: FxHashMap::default(),
            free_rows: BinaryHeap::new(),
            rows: 0,
            now: Vec::new(),
            shown: Vec::new(),
            dirty: Vec::new(),
            lists: Vec::new(),
            event: Event::default(),
            events: Vec::new(),
            changes: Vec::new(),
            overflowed: false,
        }
    }

    pub(super) fn noted<P: Platform<Ptr = Addr>>(&mut self, note: Note<'_>) {
        match note {
            Note::Row { row, time_ns, cpu } => {
                self.end_event();
                let first = self.changes.len() as u32;
                // Rows are in the order of their effects, which their times may contradict by a little.
                let time_ns = time_ns.max(self.event.time_ns);
                self.event = Event { time_ns, row: row + 1, cpu, kind: 0, first };
            }
            Note::Allocated(object) => {
                if let Some(cell) = self.cell::<P>(object) {
                    self.event.kind |= ALLOC;
                    self.set(cell, LIVE, Some(P::cpu()));
                }
            }
            Note::Freed(object) => {
                if let Some(cell) = self.cell::<P>(object) {
                    let here = P::cpu().0 + 1;
                    let by = self.now[cell as usize].1;
                    self.event.kind |= if by == here || by == 0 { FREED } else { FREED | REMOTE };
                    self.set(cell, FREE, Some(P::cpu()));
                }
            }
            Note::Seeded { base, objects, free, .. } => {
                for index in 0..objects {
                    let (pfn, offset) = P::locate(base);
                    let object = P::address(pfn, offset as u64 + index as u64 * self.size as u64);
                    let Some(cell) = self.cell::<P>(object) else { return };
                    match free.contains(&(index as u16)) {
                        true if self.now[cell as usize].0 != FRESH => {}
                        true => self.set(cell, FREE, None),
                        false => self.set(cell, LIVE, None),
                    }
                }
            }
        }
    }

    pub(super) fn slab_taken(&mut self, head: Pfn, (frames, page_shift): (u32, u32), size: u32, cache: u32) {
        if cache != self.cache {
            return;
        }
        (self.size, self.page_shift) = (size, page_shift);
        let row = self.free_rows.pop().map_or(self.rows, |Reverse(row)| row);
        if row == self.rows {
            self.rows += 1;
            let cells = (self.rows * self.cells) as usize;
            self.now.resize(cells, (NONE, 0));
            self.shown.resize(cells, (NONE, 0));
        }
        self.slabs.extend((head.0..head.0 + frames).map(|frame| (frame, Slab { head, row })));
        self.event.kind |= TAKEN;
        self.fill(row, FRESH);
        // A slab of a smaller order.
        let cells = ((u64::from(frames) << page_shift) / u64::from(size)) as u32;
        (cells..self.cells).for_each(|cell| self.set(row * self.cells + cell, NONE, None));
    }

    pub(super) fn slab_returned(&mut self, head: Pfn, frames: u32) {
        let Some(slab) = self.slabs.get(&head.0).copied() else { return };
        for frame in head.0..head.0 + frames {
            self.slabs.remove(&frame);
        }
        self.free_rows.push(Reverse(slab.row));
        self.event.kind |= RETURNED;
        self.fill(slab.row, NONE);
    }

    /// All cells of a row get a state.
    fn fill(&mut self, row: u32, state: u8) {
        let first = row * self.cells;
        let cells = first as usize..(first + self.cells) as usize;
        self.now[cells.clone()].fill((state, 0));
        self.shown[cells].fill((state, 0));
        self.push(Change { cell: first, state, cpu: 0, is_row: true });
    }

    /// An object is in a CPU's list or array, or in other storage.
    pub(super) fn is_at<P: Platform<Ptr = Addr>>(
        &mut self,
        object: Option<Addr>,
        state: u8,
        cpu: Option<CpuId>,
    ) {
        if let Some(cell) = object.and_then(|object| self.cell::<P>(object)) {
            self.set(cell, state, cpu);
        }
    }

    /// An object leaves one of these places. Where it goes, what follows says.
    pub(super) fn leaves<P: Platform<Ptr = Addr>>(&mut self, object: Option<Addr>, from: &[u8]) {
        if let Some(cell) = object.and_then(|object| self.cell::<P>(object))
            && from.contains(&self.now[cell as usize].0)
        {
            self.set(cell, FREE, None);
        }
    }

    /// An object that is at `from` is at `to`.
    pub(super) fn moves<P: Platform<Ptr = Addr>>(&mut self, object: Addr, from: u8, to: u8) {
        if let Some(cell) = self.cell::<P>(object)
            && self.now[cell as usize].0 == from
        {
            self.set(cell, to, None);
        }
    }

    /// A CPU gets another list.
    pub(super) fn list_ends(&mut self, cpu: CpuId) {
        let Some(list) = self.lists.get_mut(usize::from(cpu.0)) else { return };
        for cell in std::mem::take(list) {
            if self.now.get(cell as usize) == Some(&(ON_LIST, cpu.0 + 1)) {
                self.set(cell, FREE, None);
            }
        }
    }

    fn cell<P: Platform<Ptr = Addr>>(&self, object: Addr) -> Option<u32> {
        let (pfn, offset) = P::locate(object);
        let slab = self.slabs.get(&pfn.0)?;
        let bytes = (u64::from(pfn.0 - slab.head.0) << self.page_shift) + u64::from(offset);
        Some(slab.row * self.cells + ((bytes / u64::from(self.size)) as u32).min(self.cells - 1))
    }

    fn set(&mut self, cell: u32, state: u8, cpu: Option<CpuId>) {
        if state == ON_LIST
            && let Some(cpu) = cpu
        {
            self.put_on_list(cell, cpu);
        }
        self.now[cell as usize] = (state, cpu.map_or(0, |cpu| cpu.0 + 1));
        self.dirty.push(cell);
    }

    /// Notes that a cell is on a CPU's list. Cells that have left it stay in the note: without
    /// [`Self::list_ends`] it would grow with every free.
    fn put_on_list(&mut self, cell: u32, cpu: CpuId) {
        let at = usize::from(cpu.0);
        if self.lists.len() <= at {
            self.lists.resize(at + 1, Vec::new());
        }
        let (list, now) = (&mut self.lists[at], &self.now);
        if list.len() > 2 * now.len() {
            list.retain(|cell| now[*cell as usize] == (ON_LIST, cpu.0 + 1));
            list.sort_unstable();
            list.dedup();
        }
        list.push(cell);
    }

    fn push(&mut self, change: Change) {
        self.overflowed |= self.changes.len() >= CHANGES_MAX;
        if !self.overflowed {
            self.changes.push(change);
        }
    }

    /// Ends the event: what is other than before it is a change.
    pub(super) fn end_event(&mut self) {
        for cell in std::mem::take(&mut self.dirty) {
            let (now, shown) = (self.now[cell as usize], self.shown[cell as usize]);
            if now != shown {
                self.shown[cell as usize] = now;
                self.push(Change { cell, state: now.0, cpu: now.1, is_row: false });
            }
        }
        if self.changes.len() as u32 > self.event.first {
            self.events.push(self.event);
        }
        self.event = Event { kind: 0, first: self.changes.len() as u32, ..self.event };
    }

    /// What was seen.
    pub(super) fn movie(self, name: String) -> Movie {
        let Watcher { rows, cells, events, changes, .. } = self;
        Movie { name, rows, cells, events, changes }
    }
}
