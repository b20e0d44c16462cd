//! Events in, rows out: the rules of [`super`] applied.

use std::io::Write;

use slablab_readers::event::{Alloc, Free, LARGEST_BLOCK_BYTES, PageAlloc, PageFree, ZERO_SIZE_PTR};
use slablab_readers::{Event, Item, Kind, Lost, Source};
use slablab_trace::{
    ANY_NODE, EventKind, Import, Loss, Losses, Metadata, NO_CONTEXT, NONE, Repairs, Row, Writer, flags,
};

use super::ORDER_WINDOW_NS;
use super::describe;
use super::effect::{self, Effects};
use super::lookahead::{Deed, Lookahead, deed};
use super::pairing::{Object, Pairing, State};
use super::words::{Flags, Ids};

/// Events between two ticks.
const TICK: u64 = 1 << 16;

/// Why a conversion stopped.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stop<E: std::error::Error> {
    /// The recording is not readable to its end.
    #[error(transparent)]
    Input(E),
    /// The trace cannot be written.
    #[error(transparent)]
    Output(#[from] slablab_trace::Error),
    /// A number that the format has no room for.
    #[error("an event at {time_ns} ns is of CPU {cpu}: expected less than {}", u16::MAX)]
    Cpu { cpu: u32, time_ns: u64 },
}

/// Converts all of `source`, in the order of effects of this draw. `known` is what is known about the machine
/// from elsewhere; `complete` gets the metadata last, when all of the source has been read.
pub(super) fn convert<S: Source, W: Write + Send + 'static>(
    (source, draw): (&mut S, u64),
    writer: Writer<W>,
    known: Metadata,
    freed_limit: usize,
    complete: impl FnOnce(&mut Metadata),
    tick: &mut dyn FnMut(u64),
) -> Result<(W, Metadata), Stop<S::Error>> {
    let mut effects = Effects::new(source, draw);
    let mut conversion = Conversion {
        ahead: Lookahead::new(&mut effects),
        writer,
        pairing: Pairing::new(freed_limit),
        comms: Ids::default(),
        caches: Ids::default(),
        sites: Ids::default(),
        stacks: Ids::default(),
        flags: Flags::default(),
        repairs: Repairs::default(),
        losses: Losses::default(),
        last_ns: 0,
    };
    if let Some(bytes) = known.page_size_bytes {
        conversion.pairing.pages.set_page_size(bytes);
    }
    let mut events = 0u64;
    while let Some(item) = conversion.ahead.next().map_err(Stop::Input)? {
        events += 1;
        if events.is_multiple_of(TICK) {
            tick(events);
        }
        match item {
            Item::Event(event) => conversion.event(&event)?,
            Item::Lost(lost) => conversion.lost(&lost)?,
        }
    }
    tick(events);
    conversion.finish(known, complete)
}

struct Conversion<'a, S, W: Write + Send + 'static> {
    ahead: Lookahead<'a, S>,
    writer: Writer<W>,
    pairing: Pairing,
    comms: Ids,
    caches: Ids,
    sites: Ids,
    stacks: Ids,
    flags: Flags,
    repairs: Repairs,
    losses: Losses,
    last_ns: u64,
}

type Done<S> = Result<(), Stop<<S as Source>::Error>>;

impl<S: Source, W: Write + Send + 'static> Conversion<'_, S, W> {
    /// Rule 1, then the event.
    fn event(&mut self, event: &Event) -> Done<S> {
        if let Some((what, address)) = deed(event) {
            let wanted = match (what, self.pairing.state(address)) {
                (Deed::Alloc, State::Live(_)) => Some(Deed::Free),
                (Deed::Free, State::Freed) => Some(Deed::Alloc),
                _ => None,
            };
            if let Some(earlier) = wanted.and_then(|wanted| self.ahead.take(event, address, wanted)) {
                if earlier.time_ns <= event.time_ns {
                    // The recording has them in this order, only the guessed order of effects had not.
                    self.row(&earlier, 0)?;
                } else {
                    self.repairs.reordered += 1;
                    self.row(&Event { time_ns: event.time_ns, ..earlier }, flags::REPAIRED)?;
                }
            }
        }
        self.row(event, 0)
    }

    fn row(&mut self, event: &Event, flag: u8) -> Done<S> {
        self.repairs.behind += u64::from(event.time_ns < self.last_ns);
        let late = event.time_ns + effect::REACH_NS < self.last_ns;
        self.repairs.late += u64::from(late);
        self.last_ns = self.last_ns.max(event.time_ns);
        let cpu = u16::try_from(event.cpu).ok().filter(|&cpu| cpu < u16::MAX);
        let names = self.ahead.source().names();
        let row = Row {
            time_ns: event.time_ns,
            cpu: cpu.ok_or(Stop::Cpu { cpu: event.cpu, time_ns: event.time_ns })?,
            pid: event.pid,
            comm: self.comms.name(event.comm, names, &mut self.writer.texts().comm),
            context: event
                .context
                .map_or(NO_CONTEXT, |context| u16::from_le_bytes([context.flags, context.preempt])),
            flags: flag | if late { flags::LATE } else { 0 },
            stack: self.stacks.name(event.stack, names, &mut self.writer.texts().stack),
            ..Row::default()
        };
        match &event.kind {
            Kind::Kmalloc(alloc) => self.alloc(row, EventKind::Kmalloc, alloc),
            Kind::CacheAlloc(alloc) => self.alloc(row, EventKind::CacheAlloc, alloc),
            Kind::Kfree(free) => self.free(row, EventKind::Kfree, free),
            Kind::CacheFree(free) => self.free(row, EventKind::CacheFree, free),
            Kind::KfreeRcu(free) => self.free(row, EventKind::KfreeRcu, free),
            Kind::PageAlloc(block) => self.page_alloc(row, block),
            Kind::PageFree(block) => self.page_free(row, block),
            Kind::Mark(name) => {
                let text = names.text(*name);
                let texts = self.writer.texts();
                // The recorder's words for "just before this cache's counters were read, before and after".
                let cache = text.strip_prefix("SB ").or_else(|| text.strip_prefix("SA "));
                let cache = cache.map_or(NONE, |cache| texts.cache.id(cache.trim_end()));
                let call_site = texts.call_site.id(text);
                self.push(Row { event: EventKind::Mark as u8, cache, call_site, ..row })
            }
        }
    }

    fn push(&mut self, row: Row) -> Done<S> {
        Ok(self.writer.push(&row)?)
    }

    fn alloc(&mut self, row: Row, kind: EventKind, alloc: &Alloc) -> Done<S> {
        if alloc.bytes_alloc.max(alloc.bytes_req) > LARGEST_BLOCK_BYTES {
            self.repairs.damaged_sizes += 1;
            return Ok(());
        }
        let names = self.ahead.source().names();
        let cache = self.caches.name(alloc.cache.or(alloc.dir), names, &mut self.writer.texts().cache);
        let narrow = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let (bytes_req, bytes_alloc) = (narrow(alloc.bytes_req), narrow(alloc.bytes_alloc));
        let row = Row {
            event: kind as u8,
            address: alloc.ptr.unwrap_or(0),
            cache,
            bytes_req,
            bytes_alloc,
            gfp_raw: alloc.gfp.raw.map_or(0, narrow),
            gfp: self.flags.canonical(alloc.gfp, self.ahead.source().header(), names),
            node: alloc.node.map_or(ANY_NODE, |node| i16::try_from(node).unwrap_or(ANY_NODE)),
            accounted: alloc.accounted.map_or(2, u8::from),
            call_site: self.sites.site(alloc.call_site, names, &mut self.writer.texts().call_site),
            ..row
        };
        let Some(address) = alloc.ptr else {
            self.repairs.failed_allocs += 1;
            return self.push(Row { flags: row.flags | flags::NULL, ..row });
        };
        if address == ZERO_SIZE_PTR {
            return self.push(Row { flags: row.flags | flags::ZERO_SIZE, ..row });
        }
        if let State::Live(_) = self.pairing.state(address) {
            self.repairs.implied_by_alloc += 1;
            self.imply(&row, address)?;
        }
        let slot = self.pairing.slot(cache, bytes_alloc);
        let object = self.pairing.alloc(address, slot, bytes_req, bytes_alloc, row.cpu.into());
        let line = self.pairing.at(slot);
        line.directory = line.directory.or(alloc.dir);
        line.counts.reordered += u64::from(row.flags & flags::REPAIRED != 0);
        self.push(Row { object: object.id, ..row })
    }

    fn free(&mut self, row: Row, kind: EventKind, free: &Free) -> Done<S> {
        let names = self.ahead.source().names();
        let cache = self.caches.name(free.cache.or(free.dir), names, &mut self.writer.texts().cache);
        let call_site = self.sites.site(free.call_site, names, &mut self.writer.texts().call_site);
        let row = Row { event: kind as u8, address: free.ptr.unwrap_or(0), cache, call_site, ..row };
        let Some(address) = free.ptr else {
            self.repairs.null_frees += 1;
            return self.push(Row { flags: row.flags | flags::NULL, ..row });
        };
        if address == ZERO_SIZE_PTR {
            self.repairs.zero_size_frees += 1;
            return self.push(Row { flags: row.flags | flags::ZERO_SIZE, ..row });
        }
        if let State::Live(object) = self.pairing.state(address) {
            let from = self.pairing.at(object.slot).cache;
            if cache == NONE || from == NONE || cache == from {
                let object = self.pairing.free(address);
                let counts = &mut self.pairing.at(object.slot).counts;
                counts.frees += 1;
                counts.frees_other_cpu += u64::from(object.cpu != u32::from(row.cpu));
                counts.reordered += u64::from(row.flags & flags::REPAIRED != 0);
                let cache = if from == NONE { cache } else { from };
                return self.push(Row { cache, ..of(&object, row) });
            }
            self.repairs.cache_changed += 1;
            self.imply(&row, address)?;
        }
        let before = self.pairing.state(address) == State::Freed;
        let object = self.pairing.free_unseen(address);
        self.repairs.unseen_frees += 1;
        self.repairs.freed_before += u64::from(before);
        let slot = self.pairing.slot(cache, 0);
        let line = self.pairing.at(slot);
        line.directory = line.directory.or(free.dir);
        line.counts.frees += 1;
        line.counts.unseen_frees += 1;
        line.counts.freed_before += u64::from(before);
        line.counts.reordered += u64::from(row.flags & flags::REPAIRED != 0);
        let flag = flags::UNSEEN | if before { flags::FREED_BEFORE } else { 0 };
        self.push(Row { object, flags: row.flags | flag, ..row })
    }

    /// Rule 2: the live object at `address` was freed before `by`, which shows it.
    fn imply(&mut self, by: &Row, address: u64) -> Done<S> {
        let object = self.pairing.free(address);
        let line = self.pairing.at(object.slot);
        line.counts.implied_frees += 1;
        let cache = line.cache;
        let free = Row { event: EventKind::ImpliedFree as u8, address, cache, ..Row::default() };
        // The task that freed it is unknown. The row has no pid and no name: those of the task that showed
        // the free would blame the wrong one.
        self.push(of(
            &object,
            Row { time_ns: by.time_ns, cpu: by.cpu, flags: by.flags & flags::LATE, ..free },
        ))
    }

    fn page_alloc(&mut self, row: Row, block: &PageAlloc) -> Done<S> {
        let names = self.ahead.source().names();
        let row = Row {
            event: EventKind::PageAlloc as u8,
            order: i8::try_from(block.order).unwrap_or(i8::MAX),
            pfn: block.pfn.map_or(-1, |pfn| pfn as i64),
            migrate_type: block.migratetype.map_or(-1, |kind| i8::try_from(kind).unwrap_or(-1)),
            gfp_raw: block.gfp.raw.map_or(0, |raw| u32::try_from(raw).unwrap_or(u32::MAX)),
            gfp: self.flags.canonical(block.gfp, self.ahead.source().header(), names),
            ..row
        };
        if let Some(pfn) = block.pfn {
            if let Some(bytes) = self.ahead.source().header().page_size {
                self.pairing.pages.set_page_size(bytes);
            }
            self.vacate(&row, pfn, block.order)?;
            self.pairing.pages.block(row.cpu.into(), pfn, block.order);
        }
        self.push(Row { flags: row.flags | if block.pfn.is_none() { flags::NULL } else { 0 }, ..row })
    }

    fn page_free(&mut self, row: Row, block: &PageFree) -> Done<S> {
        let (order, pfn) = (i8::try_from(block.order).unwrap_or(i8::MAX), block.pfn as i64);
        let row = Row { event: EventKind::PageFree as u8, order, pfn, ..row };
        self.vacate(&row, block.pfn, block.order)?;
        self.push(row)
    }

    /// Rule 2: no object lives in these pages.
    fn vacate(&mut self, by: &Row, pfn: u64, order: u32) -> Done<S> {
        let Some(residents) = self.pairing.residents(pfn, order) else {
            self.repairs.pages_unchecked += 1;
            return Ok(());
        };
        for address in residents {
            self.repairs.implied_by_page += 1;
            self.imply(by, address)?;
        }
        Ok(())
    }

    fn lost(&mut self, lost: &Lost) -> Done<S> {
        let time_ns = lost.time_ns.unwrap_or(self.last_ns).max(self.last_ns);
        let cpu = lost.cpu.and_then(|cpu| u16::try_from(cpu).ok());
        self.losses.records += 1;
        if self.losses.list.len() < Losses::LIMIT {
            self.losses.list.push(Loss {
                row: self.writer.rows(),
                time_ns,
                cpu: lost.cpu,
                events: lost.count,
                kind: format!("{:?}", lost.kind).to_lowercase(),
                offset_bytes: lost.offset,
            });
        }
        let event = EventKind::Lost as u8;
        self.push(Row { event, time_ns, cpu: cpu.unwrap_or(0), address: lost.count, ..Row::default() })
    }

    fn finish(
        mut self,
        known: Metadata,
        complete: impl FnOnce(&mut Metadata),
    ) -> Result<(W, Metadata), Stop<S::Error>> {
        let source = self.ahead.source();
        let tally = source.tally();
        self.losses.events = tally.lost;
        let by_cpu = tally.lost_by_cpu.iter().enumerate().filter(|(_, count)| **count > 0);
        self.losses.by_cpu = by_cpu.map(|(cpu, &count)| (cpu as u32, count)).collect();
        self.repairs.forgotten = self.pairing.forgotten;
        self.repairs.gfp_bits_unknown = self.flags.unknown_bits;
        let (caches, kmalloc, unknown) = self.pairing.counts(&self.writer.texts().cache, source.names());
        let mut metadata = describe::header(known, source.header());
        metadata.losses = self.losses;
        metadata.caches = caches;
        metadata.import = Some(Import {
            program: concat!("slablab ", env!("CARGO_PKG_VERSION")).into(),
            order_window_ns: ORDER_WINDOW_NS,
            linear_map: self.pairing.pages.base(),
            skipped_events: tally.skipped,
            repairs: self.repairs,
            kmalloc,
            unknown,
        });
        let strange = self.flags.unknown_names.iter();
        metadata
            .warnings
            .extend(strange.map(|name| format!("allocation flag {name}: no kernel known here has it")));
        if self.flags.unknown_bits != 0 {
            let bits = self.flags.unknown_bits;
            metadata.warnings.push(format!("allocation flags {bits:#x} of the recording have no name here"));
        }
        complete(&mut metadata);
        Ok(self.writer.finish(metadata)?)
    }
}

/// The row of a free of `object`.
fn of(object: &Object, row: Row) -> Row {
    Row { object: object.id, bytes_req: object.bytes_req, bytes_alloc: object.bytes_alloc, ..row }
}
