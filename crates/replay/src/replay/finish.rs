//! The end of a run: everything must balance, or the run is an error.

use super::Variant;
use super::caches::CacheEntry;
use super::outcome::{CacheOutcome, Counts, NoLayout, Outcome, Traffic};
use super::run::{Run, World};
use slablab_model::Model;
use slablab_platform::{Event, FrameState, Frames, Pfn, Time, Topology, Word, WorkKind};
use slablab_report::error::{Error, Result};
use slablab_slabs::{Common, Engine};

impl<W: World, E: Engine<W>> Run<'_, W, E> {
    pub(super) fn counts(&self, cache: usize) -> Counts {
        let mut counts = Counts::default();
        for event in Event::ALL {
            counts.0[*event as usize] = self.caches[cache].counted(*event);
        }
        counts
    }

    pub(super) fn global() -> Counts {
        let mut counts = Counts::default();
        for event in Event::ALL {
            counts.0[*event as usize] = Model::counted(*event);
        }
        counts
    }

    pub(super) fn finish(
        mut self,
        variant: &Variant,
        rows: u64,
        start_frames: u64,
        elapsed: std::time::Duration,
        zero: &Counts,
    ) -> Result<Outcome> {
        let mut caches = Vec::new();
        let shared = self.common.held();
        let (mut frames, mut shared_bytes) = (shared.frames, shared.free_bytes);
        for cache in 0..self.caches.len() {
            let usage = self.caches[cache].usage();
            frames += usage.frames;
            shared_bytes += usage.shared_bytes;
            if !self.windows[cache].open && self.windows[cache].closed.is_none() {
                // No mark opened it: nothing of it counts.
                continue;
            }
            let (counts, end) = self.windows[cache]
                .closed
                .take()
                .unwrap_or_else(|| (self.counts(cache), self.caches[cache].usage()));
            let window = &self.windows[cache];
            let entry = &self.job.table.entries[cache];
            let outcome = CacheOutcome {
                index: cache,
                name: entry.name.clone(),
                aliases: entry.aliases.clone(),
                geometry: *self.caches[cache].geometry(),
                counts: counts.since(&window.zero),
                traffic: self.traffic[cache],
                start: window.start,
                end,
            };
            self.balance(&outcome)?;
            if end.slabs > 0 || outcome.start.slabs > 0 || outcome.traffic != Traffic::default() {
                caches.push(outcome);
            }
        }
        let mut violations = std::mem::take(&mut self.violations);
        for cache in &self.caches {
            let reports = cache.reports();
            if reports.total > 0 {
                let name = self.job.table.entries[cache.id().0 as usize].name.clone();
                violations.caches.push((name, reports));
            }
        }
        let (mapped, peak_frames) = Model::mapped_frames();
        let wrong = |what: String| {
            Error::new(self.job.path, format!("replay of {} is wrong: {what}", variant.preset))
        };
        // Slabs whose readers may still run are no cache's any more, but their pages are not back yet.
        let in_grace = Model::waiting().into_iter().filter(|(_, work)| work.kind == WorkKind::FreeSlab);
        let order = |pfn: u64| {
            Model::with_frame(Pfn(pfn as u32), |frame| FrameState::unpack(frame.state.load()).order)
        };
        let frames = frames + in_grace.map(|(_, work)| 1u64 << order(work.argument)).sum::<u64>();
        if mapped != frames {
            return Err(wrong(format!(
                "the caches have {frames} page frames, the machine has mapped {mapped}"
            )));
        }
        // A kernel tree's SLOB says of each frame whose call took it, and of none what is free in it.
        let all = |frames: u64| frames << Model::page_shift();
        let is_even = match shared.frames {
            0 => shared_bytes <= all(frames),
            shared => shared_bytes == all(shared),
        };
        if !is_even {
            return Err(wrong(format!(
                "{shared_bytes} bytes are in objects or free in {} shared page frames",
                shared.frames
            )));
        }
        self.pages.check().map_err(|imbalance| wrong(format!("page balance: {imbalance:?}")))?;
        let (slab_bytes, live_bytes) = self.held();
        let no_layout = self.no_layout();
        Ok(Outcome {
            preset: variant.preset,
            wrap: variant.wrap,
            partition: variant.partition,
            of_caches: variant.of_caches,
            violations,
            caches,
            timeline: self.sampler.finish(Model::now(), slab_bytes, live_bytes),
            global: Self::global().since(zero),
            large: self.large,
            no_layout,
            shared,
            rows,
            page_size: 1 << Model::page_shift(),
            peak_frames,
            start_frames,
            end_frames: mapped,
            unknown_frees: self.unknown_frees,
            elsewhere: self.plugged.elsewhere,
            model_bytes: 0,
            elapsed,
        })
    }

    fn no_layout(&self) -> Vec<NoLayout> {
        let asked = self.job.table.entries.iter().zip(&self.unserved).filter(|(_, allocs)| **allocs > 0);
        let of = |(entry, allocs): (&CacheEntry, &u64)| NoLayout {
            name: entry.name.clone(),
            object_size: entry.spec.object_size,
            allocs: *allocs,
        };
        asked.map(of).collect()
    }

    /// Objects and counters of a cache must balance.
    fn balance(&self, cache: &CacheOutcome) -> Result<()> {
        let wrong =
            |what: String| Err(Error::new(self.job.path, format!("replay is wrong: {}: {what}", cache.name)));
        let traffic = &cache.traffic;
        let metadata = self.metadata[cache.index].get();
        let (allocs, frees) = (traffic.allocs + metadata.allocs, traffic.frees + metadata.frees);
        let live = cache.start.live_objects() + allocs + self.waiting[cache.index] - frees;
        if cache.end.live_objects() != live {
            return wrong(format!("{} objects are live, {live} by the rows", cache.end.live_objects()));
        }
        let counted = (cache.counts.allocs(), cache.counts.frees());
        if counted != (allocs + traffic.failed + metadata.failed, frees) {
            return wrong(format!(
                "{} allocations and {} frees counted, {} and {} replayed",
                counted.0, counted.1, allocs, frees
            ));
        }
        Ok(())
    }
}
