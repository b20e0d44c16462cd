//! Which slab serves each allocation: the kernel's, by the address in its event, and the engine's.
//!
//! A slab from before is the same one if the engine's was made of it. A slab that was taken in the recording
//! is paired with the one that the engine takes for the first object of it.

use crate::replay::Prepared;
use crate::replay::caches::Home;
use crate::replay::run::Note;
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::Serialize;
use slablab_model::{Addr, Model};
use slablab_platform::{Frames, Pfn};
use slablab_report::error::{At, Result};
use slablab_trace::{Batch, Columns, EventKind};

/// How many allocations and returned slabs are the kernel's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Same {
    /// Allocations of which both slabs are known.
    pub allocs: u64,
    /// Of these, served from the real slab.
    pub same: u64,
    /// Slabs from before that the kernel returned.
    pub emptied: u64,
    /// Of these, returned by the engine.
    pub both: u64,
    /// Slabs from before that the engine returned, and the kernel did not.
    pub others: u64,
}

/// A slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Slab {
    /// From before, at this address of the kernel.
    Old(u64),
    /// Taken meanwhile: its number.
    New(u64),
}

/// What the kernel did.
#[derive(Debug, Default)]
pub(super) struct Real {
    /// The slab that each allocation was served from, by its row.
    rows: Vec<(u64, Slab)>,
    /// Slabs from before that were returned.
    returned: FxHashSet<u64>,
}

impl Real {
    /// Looks a recording through; `None` if its addresses tell no pages.
    pub(super) fn of(prepared: &Prepared<'_>) -> Result<Option<Real>> {
        let (reader, path, table, plan) = (prepared.reader, prepared.path, &prepared.table, &prepared.plan);
        let metadata = reader.metadata();
        let Some(base) = prepared.linear_map else { return Ok(None) };
        let page = metadata.page_size_bytes.unwrap_or(4096).max(1);
        let mut owners: FxHashMap<u64, usize> = FxHashMap::default();
        for (cache, slabs) in plan.caches.iter().enumerate() {
            owners.extend(slabs.iter().filter(|slab| slab.address != 0).map(|slab| (slab.address, cache)));
        }
        let mut taken: FxHashMap<u64, u64> = FxHashMap::default();
        let mut real = Real::default();
        let columns = Columns::REPLAY | Columns::ADDRESS | Columns::PFN | Columns::ORDER;
        let (mut row, mut batch, mut batches) = (0, Batch::default(), reader.batches(columns));
        while batches.next(&mut batch).at(path)? {
            for index in 0..batch.len() {
                let inside = |cache: usize| (plan.windows[cache].0..plan.windows[cache].1).contains(&row);
                match EventKind::from_u8(batch.event[index]) {
                    Some(EventKind::PageAlloc) if batch.pfn[index] >= 0 => {
                        taken.insert(batch.pfn[index] as u64, row);
                    }
                    Some(EventKind::PageFree) if batch.pfn[index] >= 0 => {
                        let address = base.wrapping_add(batch.pfn[index] as u64 * page);
                        if owners.remove(&address).is_some_and(inside) {
                            real.returned.insert(address);
                        }
                    }
                    Some(event) if event.is_alloc() => {
                        let home = table.home(batch.cache[index], batch.bytes_alloc[index], batch.gfp[index]);
                        if let Home::Cache(cache) = home {
                            let bytes = page << table.entries[cache as usize].order;
                            let address = batch.address[index] & !(bytes - 1);
                            let frame = address.wrapping_sub(base) / page;
                            real.rows.push((
                                row,
                                taken.get(&frame).map_or(Slab::Old(address), |at| Slab::New(*at)),
                            ));
                        }
                    }
                    _ => {}
                }
                row += 1;
            }
        }
        Ok(Some(real))
    }
}

/// What an engine does, beside what the kernel did.
#[derive(Debug, Default)]
pub(super) struct Identity {
    real: Real,
    next: usize,
    row: u64,
    /// Slabs of the model, by each of their frames.
    slabs: FxHashMap<u32, Slab>,
    taken: u64,
    returned: FxHashSet<u64>,
    pairs: FxHashMap<u64, u64>,
    paired: FxHashSet<u64>,
    found: Same,
}

impl Identity {
    pub(super) fn new(real: Real) -> Identity {
        Identity { real, ..Identity::default() }
    }

    pub(super) fn noted(&mut self, note: Note<'_>) {
        match note {
            Note::Row { row, .. } => self.row = row,
            Note::Seeded { base, address, .. } if address != 0 => {
                let (pfn, _) = Model::locate(base);
                let Some(made) = self.slabs.get(&pfn.0).copied() else { return };
                let mut frame = pfn.0;
                while let Some(slab) = self.slabs.get_mut(&frame).filter(|slab| **slab == made) {
                    *slab = Slab::Old(address);
                    frame += 1;
                }
            }
            Note::Allocated(object) => self.allocated(object),
            Note::Seeded { .. } | Note::Freed(_) => {}
        }
    }

    pub(super) fn taken(&mut self, pfn: Pfn, frames: u32) {
        self.taken += 1;
        self.slabs.extend((pfn.0..pfn.0 + frames).map(|frame| (frame, Slab::New(self.taken))));
    }

    pub(super) fn returned(&mut self, pfn: Pfn, frames: u32) {
        for frame in pfn.0..pfn.0 + frames {
            if let Some(Slab::Old(address)) = self.slabs.remove(&frame) {
                self.returned.insert(address);
            }
        }
    }

    fn allocated(&mut self, object: Addr) {
        while self.real.rows.get(self.next).is_some_and(|(row, _)| *row < self.row) {
            self.next += 1;
        }
        let Some((_, real)) = self.real.rows.get(self.next).filter(|(row, _)| *row == self.row) else {
            return;
        };
        let Some(ours) = self.slabs.get(&Model::locate(object).0.0) else { return };
        self.found.allocs += 1;
        self.found.same += u64::from(match (real, ours) {
            (Slab::Old(real), Slab::Old(ours)) => real == ours,
            (Slab::New(real), Slab::New(ours)) => match self.pairs.get(real) {
                Some(pair) => pair == ours,
                None => {
                    let is_free = self.paired.insert(*ours);
                    if is_free {
                        self.pairs.insert(*real, *ours);
                    }
                    is_free
                }
            },
            _ => false,
        });
    }

    pub(super) fn found(self) -> Same {
        let both = self.returned.intersection(&self.real.returned).count() as u64;
        let (emptied, returned) = (self.real.returned.len() as u64, self.returned.len() as u64);
        Same { emptied, both, others: returned - both, ..self.found }
    }
}

impl Same {
    /// A sentence with the numbers.
    pub fn sentence(&self) -> String {
        let percent = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
        format!(
            "{:.1} % of {} allocations are served from the slab that the kernel took; of {} slabs from before \
             that the kernel emptied, {} ({:.1} %) are emptied, and {} others",
            percent(self.same, self.allocs),
            self.allocs,
            self.emptied,
            self.both,
            percent(self.both, self.emptied),
            self.others
        )
    }
}
