//! The eviction of a batch of isolated pages: what becomes of each (`shrink_page_list`).
//!
//! ```text
//! isolated page ── locked ───────────────────────── kept
//!      │        ── under writeback ──────────────── kept or activated, wanted when the write ends
//!      │        ── accessed (references)  ───────── kept, activated
//!      │  swap slot, unmap ── no slot ───────────── activated
//!      │        ── dirty ── may not write ───────── kept or activated; else written, kept
//!      └─ clean ── out of its mapping, shadow ───── freed
//! ```
//!
//! Policies isolate pages with [`State::isolate`], hand them here, and put back what was kept with
//! [`put_back`]. The steps are those of 2.6.29 to 6.18; where these differ, [`Scan`] says which rule holds.

use crate::counters::Counter;
use crate::frames::Flags;
use crate::host::{Io, Place, Waited, Work};
use crate::ids::{Frame, MappingId};
use crate::mappings::{Entry, Kind};
use crate::replacement::Verdict;
use crate::state::State;
use crate::vm::{Host, Vm};

/// The rule for accessed pages, where the policy has none of its own ([`crate::Replacement::references`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum References {
    /// Since 2.6.33 ([`judge_modern`]).
    Modern,
    /// 2.6.29: an accessed page that is mapped, in the swap cache, or of a mapped file is active. With
    /// `lumpy`, a large block is wanted, and accesses do not matter.
    Any {
        /// The wanted block is of an order above 3.
        lumpy: bool,
    },
}

/// What is done with a page under writeback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// It is marked, and waits on the active list for the end of the write (since 4.11).
    Aside,
    /// It stays on its list (2.6.29).
    Keep,
    /// The reclaimer waits for the end (2.6.29's second pass of lumpy reclaim).
    Wait,
}

/// Who writes dirty pages of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileWrites {
    /// Every reclaimer, unless the disk is congested; kswapd even then (2.6.29).
    Reclaim,
    /// kswapd, for pages that come round again when it has met only dirty ones.
    Kswapd,
    /// Only the flusher: the file system has no `writepage`.
    Flusher,
}

/// How a batch is evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// For the limit of a group: its pages count by type alone (from memory).
    pub group: bool,
    /// What accesses of a page mean.
    pub references: References,
    /// The reclaimer may start I/O (`__GFP_IO`).
    pub io: bool,
    /// The reclaimer may enter file systems (`__GFP_FS`).
    pub fs: bool,
    /// Mapped pages may be unmapped.
    pub unmap: bool,
    /// Dirty pages may be written.
    pub write: bool,
    /// For pages under writeback.
    pub writing: Writing,
    /// Who writes dirty pages of files.
    pub file_writes: FileWrites,
    /// kswapd met only pages under writeback in the round before (`PGDAT_WRITEBACK`).
    pub met_writeback: bool,
    /// kswapd met only dirty pages in the round before (`PGDAT_DIRTY`).
    pub met_dirty: bool,
    /// The first visit gives a page of tmpfs its slot, and only the second writes it (2.6.29).
    pub tmpfs_two_visits: bool,
    /// An activated page gives up its slot if more than half of swap is used.
    pub full_frees_slot: bool,
}

/// What became of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evicted {
    /// Pages freed.
    pub freed: u32,
    /// The other pages, in the order of the scan, isolated still: those to activate are [`Flags::ACTIVE`].
    pub kept: Vec<Frame>,
    /// Dirty pages met, and those under writeback (`nr_dirty`).
    pub dirty: u32,
    /// Of these, nobody is writing them (`nr_unqueued_dirty`).
    pub unqueued_dirty: u32,
    /// Pages under writeback that came round again (`nr_congested`).
    pub congested: u32,
    /// Pages under writeback that did not (`nr_writeback`).
    pub writeback: u32,
    /// Pages under writeback that came round again for kswapd (`nr_immediate`).
    pub immediate: u32,
    /// Pages written (`nr_pageout`).
    pub written: u32,
    /// Pages activated: anonymous and tmpfs, of files.
    pub activated: [u32; 2],
    /// Pages kept for their accesses (`nr_ref_keep`).
    pub referenced: u32,
}

/// Where a page goes after its visit.
enum Fate {
    Keep,
    Activate,
    Free,
    Write(Place),
    /// Its write ends first.
    Wait,
}

/// Evicts isolated pages. Those that cannot go are in [`Evicted::kept`].
pub fn evict_batch(vm: &Vm, host: &dyn Host, pages: Vec<Frame>, how: &Scan) -> Evicted {
    let by = (!how.group).then(|| host.is_kswapd());
    vm.with(|state| pages.iter().for_each(|frame| count_scan(state, *frame, by)));
    evict_again(vm, host, pages, how)
}

/// Evicts pages of a batch that could not go before, and that are isolated still: they are not counted as
/// scanned again.
pub fn evict_again(vm: &Vm, host: &dyn Host, pages: Vec<Frame>, how: &Scan) -> Evicted {
    let mut batch = Batch { vm, host, how, kswapd: host.is_kswapd(), rmap: 0, to: Evicted::default() };
    let mut free = Vec::new();
    for frame in pages {
        let mut fate = vm.with(|state| batch.visit(state, frame));
        if matches!(fate, Fate::Wait) {
            batch.charge();
            host.wait(vm, frame, Waited::Writeback);
            fate = vm.with(|state| batch.visit(state, frame));
        }
        if let Fate::Write(place) = fate {
            fate = batch.write(frame, place);
        }
        match fate {
            Fate::Free => {
                vm.with(|state| batch.free(state, frame));
                free.push(frame);
            }
            Fate::Activate => {
                vm.with(|state| batch.activate(state, frame));
                batch.to.kept.push(frame);
            }
            Fate::Keep | Fate::Write(_) | Fate::Wait => batch.to.kept.push(frame),
        }
    }
    batch.charge();
    host.work(Work::Reclaim, free.len() as u32);
    batch.to.freed = free.len() as u32;
    free.into_iter().for_each(|frame| host.free(vm, frame));
    batch.to
}

/// Puts isolated pages back. `list` lists a page; a page that is gone meanwhile is freed instead.
pub fn put_back(vm: &Vm, host: &dyn Host, pages: &[Frame], mut list: impl FnMut(&mut State, Frame)) {
    let mut gone = Vec::new();
    vm.with(|state| {
        for frame in pages {
            if state.let_go(*frame) {
                gone.push(*frame);
            } else {
                list(state, *frame);
            }
        }
    });
    gone.into_iter().for_each(|frame| host.free(vm, frame));
}

/// `by_kswapd`: who scans; `None`: a group.
fn count_scan(state: &mut State, frame: Frame, by_kswapd: Option<bool>) {
    if let Some(kswapd) = by_kswapd {
        state.count(if kswapd { Counter::PgScanKswapd } else { Counter::PgScanDirect });
    }
    state.count_by_type(frame, Counter::PgScanAnon, Counter::PgScanFile);
}

struct Batch<'a> {
    vm: &'a Vm,
    host: &'a dyn Host,
    how: &'a Scan,
    kswapd: bool,
    /// Page table entries looked at and not charged yet.
    rmap: u32,
    to: Evicted,
}

impl Batch<'_> {
    fn charge(&mut self) {
        let entries = std::mem::take(&mut self.rmap);
        self.host.work(Work::Rmap, entries);
    }

    /// Everything up to the write.
    fn visit(&mut self, state: &mut State, frame: Frame) -> Fate {
        let flags = state.frames.flags(frame);
        if flags.any(Flags::LOCKED | Flags::GONE) || !self.how.unmap && state.frames.mapped(frame) > 0 {
            return Fate::Keep;
        }
        if flags.has(Flags::UNEVICTABLE) {
            return Fate::Activate;
        }
        self.to.dirty += u32::from(flags.any(Flags::DIRTY | Flags::WRITEBACK));
        self.to.unqueued_dirty += u32::from(flags.any(Flags::DIRTY) && !flags.any(Flags::WRITEBACK));
        self.to.congested += u32::from(flags.has(Flags::WRITEBACK | Flags::RECLAIM));
        if flags.any(Flags::WRITEBACK) {
            return self.meet_writeback(state, frame);
        }
        let verdict = self.judge(state, frame);
        match verdict {
            Verdict::Activate => return Fate::Activate,
            Verdict::Keep => {
                self.to.referenced += 1;
                return Fate::Keep;
            }
            Verdict::Reclaim | Verdict::ReclaimClean => {}
        }
        if flags.any(Flags::ANON) && !flags.any(Flags::SWAPCACHE) {
            if !self.how.io {
                return Fate::Keep;
            }
            if state.add_to_swap_or_reuse(frame).is_none() {
                return Fate::Activate;
            }
            state.set_dirty(frame);
        }
        self.rmap += state.unmap_all(frame);
        if state.frames.has(frame, Flags::DIRTY) { self.launder(state, frame, verdict) } else { Fate::Free }
    }

    fn judge(&mut self, state: &mut State, frame: Frame) -> Verdict {
        self.rmap += state.frames.mapped(frame);
        match (self.vm.policy.references(state, frame), self.how.references) {
            (Some(verdict), _) => verdict,
            (None, References::Modern) => judge_modern(state, frame),
            (None, References::Any { lumpy }) => judge_any(state, frame, lumpy),
        }
    }

    fn meet_writeback(&mut self, state: &mut State, frame: Frame) -> Fate {
        match self.how.writing {
            Writing::Wait if self.how.fs => Fate::Wait,
            Writing::Keep | Writing::Wait => Fate::Keep,
            Writing::Aside => {
                let again = state.frames.has(frame, Flags::RECLAIM);
                if self.kswapd && again && self.how.met_writeback {
                    self.to.immediate += 1;
                } else {
                    state.frames.set(frame, Flags::RECLAIM);
                    self.to.writeback += 1;
                }
                Fate::Activate
            }
        }
    }

    /// What a dirty, unmapped page needs (docs/theory/vm.md 3.7).
    fn launder(&mut self, state: &mut State, frame: Frame, verdict: Verdict) -> Fate {
        let flags = state.frames.flags(frame);
        let is_swap = flags.any(Flags::ANON | Flags::SWAPCACHE);
        let is_file = !flags.any(Flags::SWAPBACKED);
        if is_file && self.how.file_writes != FileWrites::Reclaim {
            let writes = self.how.file_writes == FileWrites::Kswapd && self.kswapd;
            if !writes || !flags.any(Flags::RECLAIM) || !self.how.met_dirty {
                state.count(Counter::ImmediateReclaim);
                state.frames.set(frame, Flags::RECLAIM);
                return Fate::Activate;
            }
        }
        let may_enter = self.how.fs || is_swap && self.how.io;
        if verdict == Verdict::ReclaimClean || !may_enter || !self.how.write {
            return Fate::Keep;
        }
        let mapping = MappingId(state.frames.owner(frame));
        if !is_swap && state.mappings.get(mapping).kind == Kind::Tmpfs {
            return self.launder_tmpfs(state, frame);
        }
        match state.frames.slot(frame) {
            // Its last user went away: nothing is worth a write.
            Some(slot) if state.swap.users(slot) == 0 => {
                state.leave_swap_cache(frame, Entry::Absent);
                let _isolated = state.end(frame);
                Fate::Keep
            }
            Some(slot) => Fate::Write(Place::Swap(slot)),
            None => Fate::Write(Place::Mapping(mapping, state.frames.index(frame))),
        }
    }

    /// tmpfs writes a page by giving it to the swap cache.
    fn launder_tmpfs(&self, state: &mut State, frame: Frame) -> Fate {
        let Some(slot) = state.add_to_swap_or_reuse(frame) else { return Fate::Activate };
        state.leave_for_slot(frame, slot);
        if self.how.tmpfs_two_visits { Fate::Keep } else { Fate::Write(Place::Swap(slot)) }
    }

    /// Writes a page; it is unlocked meanwhile, and kept until the write has ended.
    fn write(&mut self, frame: Frame, place: Place) -> Fate {
        if matches!(place, Place::Mapping(..)) && !self.kswapd && self.host.is_congested(place) {
            return Fate::Keep;
        }
        self.charge();
        // The charge may have let other tasks run.
        let begun = self.vm.with(|state| {
            let flags = state.frames.flags(frame);
            let still = flags.has(Flags::DIRTY)
                && !flags.any(Flags::LOCKED | Flags::WRITEBACK | Flags::GONE)
                && state.frames.mapped(frame) == 0
                && is_there(state, frame, place);
            if still {
                state.begin_write(frame);
                state.frames.set(frame, Flags::RECLAIM);
                state.count(Counter::VmscanWrite);
            }
            still
        });
        if !begun {
            return Fate::Keep;
        }
        self.to.written += 1;
        self.vm.submit(self.host, Io { place, frames: &[frame], write: true, sync: false, reclaim: true });
        // A device that answers at once has written it already.
        self.vm.with(|state| {
            let flags = state.frames.flags(frame);
            let is_busy = flags.any(Flags::WRITEBACK | Flags::DIRTY | Flags::LOCKED | Flags::GONE);
            if is_busy || state.frames.mapped(frame) > 0 { Fate::Keep } else { Fate::Free }
        })
    }

    /// A clean page leaves the cache.
    fn free(&mut self, state: &mut State, frame: Frame) {
        if !self.how.group {
            state.count(if self.kswapd { Counter::PgStealKswapd } else { Counter::PgStealDirect });
        }
        state.count_by_type(frame, Counter::PgStealAnon, Counter::PgStealFile);
        let left = self.vm.policy.evict(state, frame).map_or(Entry::Absent, Entry::Shadow);
        match state.frames.slot(frame) {
            Some(_) => state.leave_swap_cache(frame, left),
            None => state.leave_mapping(frame, left),
        }
        state.frames.clear(frame, Flags::ISOLATED);
        state.frames.end(frame);
    }

    fn activate(&mut self, state: &mut State, frame: Frame) {
        let frees_slot = self.how.full_frees_slot && state.swap.is_half_full();
        let slot = state.frames.slot(frame).filter(|_| frees_slot);
        let is_written = state.frames.has(frame, Flags::WRITEBACK);
        let is_anon = state.frames.has(frame, Flags::ANON);
        if slot.is_some_and(|slot| is_anon && state.swap.users(slot) == 0) && !is_written {
            state.leave_swap_cache(frame, Entry::Absent);
            state.set_dirty(frame);
        }
        self.to.activated[usize::from(!state.frames.has(frame, Flags::SWAPBACKED))] += 1;
        state.frames.set(frame, Flags::ACTIVE);
        state.count(Counter::PgActivate);
    }
}

/// Whether a frame's page is still where its write would go.
fn is_there(state: &State, frame: Frame, place: Place) -> bool {
    match place {
        Place::Swap(slot) => state.frames.slot(frame) == Some(slot),
        Place::Mapping(mapping, index) => {
            state.mappings.exists(mapping) && state.mappings.get(mapping).entry(index) == Entry::Frame(frame)
        }
    }
}

/// The rule since 2.6.33 (`folio_check_references`): a first access through a page table keeps the page, a
/// second one or two at once activate it, and so does one of a program's text. An access by a system call
/// counts for a page of a file that must not be written (docs/theory/vm.md 3.1).
pub fn judge_modern(state: &mut State, frame: Frame) -> Verdict {
    let looked = state.look(frame);
    let referenced = state.frames.clear(frame, Flags::REFERENCED).any(Flags::REFERENCED);
    let is_file = !state.frames.has(frame, Flags::SWAPBACKED);
    if looked.locked {
        Verdict::Activate
    } else if looked.accessed > 0 {
        state.frames.set(frame, Flags::REFERENCED);
        let activates = referenced || looked.accessed > 1 || looked.exec && is_file;
        if activates { Verdict::Activate } else { Verdict::Keep }
    } else if referenced && is_file {
        Verdict::ReclaimClean
    } else {
        Verdict::Reclaim
    }
}

/// The rule of 2.6.29 (docs/theory/vm.md 6.1).
fn judge_any(state: &mut State, frame: Frame, lumpy: bool) -> Verdict {
    let looked = state.look(frame);
    let referenced = state.frames.clear(frame, Flags::REFERENCED).any(Flags::REFERENCED);
    if lumpy || !referenced && looked.accessed == 0 && !looked.locked {
        return Verdict::Reclaim;
    }
    let flags = state.frames.flags(frame);
    let is_mapped_file = || !state.mappings.get(MappingId(state.frames.owner(frame))).regions.is_empty();
    let in_use =
        looked.entries > 0 || flags.any(Flags::SWAPCACHE) || !flags.any(Flags::ANON) && is_mapped_file();
    if in_use { Verdict::Activate } else { Verdict::ReclaimClean }
}
