//! The accesses of a process.

use super::process::{Killed, Process};
use super::record::Usage;
use crate::memory::Here;
use slablab_model::{Ps, Timed};
use slablab_trace::script::{Batches, Group, Mode, ObjectId, Rw};
use slablab_vm::RegionId;
use slablab_vm::mm::{self, Touched};

/// Touches that are charged together.
const PIECE: usize = 64;
/// Bytes that a system call copies.
const PAGE: u32 = 4_096;
/// Pages of the longest file.
const MOST: u32 = 1 << 31;

impl Process<'_> {
    /// The accesses of one command.
    pub(super) fn access(&mut self, rounds: u64, groups: &[Group]) -> Result<(), Killed> {
        self.own.lock_tables(&self.shared.memory, self.task, &self.script, groups);
        let mut batches = Batches::new(rounds, groups);
        let walk = self.walk.clone();
        let mut walk = walk.borrow_mut();
        let mut result = Ok(());
        while let Some(batch) = batches.next(&mut walk) {
            let (used, at) = (self.used(), Timed::clock());
            let is_write = batch.rw == Rw::Write;
            result = match batch.mode {
                Mode::Mapped => self.touch(batch.object, batch.pages, is_write),
                Mode::Syscall => self.call(batch.object, batch.pages, is_write),
            };
            self.account(batch.object, batch.pages.len() as u64, used, at);
            if result.is_err() {
                break;
            }
        }
        result
    }

    /// Loads and stores through the mapping.
    fn touch(&mut self, object: ObjectId, pages: &[u32], write: bool) -> Result<(), Killed> {
        let region = self.lend_ahead(object)?;
        for piece in pages.chunks(PIECE) {
            let ended = self.touch_piece(region, piece, write);
            let time = self.shared.memory.prices().touch * piece.len() as u64;
            self.task.charge(time);
            self.user += time;
            self.task.preemption_point();
            ended?;
        }
        self.lend_ahead(object)?;
        Ok(())
    }

    /// The mapping is of the same open file as the descriptor: its faults go on where reads were.
    fn lend_ahead(&mut self, object: ObjectId) -> Result<RegionId, Killed> {
        let Some(open) = &mut self.objects[usize::from(object.0)] else { return Err(Killed) };
        if let Some(file) = &mut open.file {
            mm::lend_ahead(&self.shared.memory.vm, open.region, file);
        }
        Ok(open.region)
    }

    #[inline]
    fn touch_piece(&mut self, region: RegionId, pages: &[u32], write: bool) -> Result<(), Killed> {
        let memory = &self.shared.memory;
        let here = Here::new(memory, self.task);
        let mut left = pages;
        loop {
            let present = mm::touch_present(&memory.vm, region, left.iter().copied(), write);
            left = &left[present as usize..];
            let Some((page, after)) = left.split_first() else { break };
            left = after;
            match mm::touch(&memory.vm, &here, &memory.rules, region, *page, write) {
                Some(Touched::Hit) => continue,
                Some(Touched::Minor) => self.usage.minor += 1,
                Some(Touched::Major) => self.usage.major += 1,
                None => return Err(Killed),
            }
            // A fault ends, as a system call does, with a look for a task that should run.
            self.task.preemption_point();
        }
        if memory.processes.is_killed(self.task.id) { Err(Killed) } else { Ok(()) }
    }

    /// System calls: each reads or writes a page.
    fn call(&mut self, object: ObjectId, pages: &[u32], write: bool) -> Result<(), Killed> {
        let memory = self.shared.memory.clone();
        let Some(open) = &mut self.objects[usize::from(object.0)] else { return Err(Killed) };
        let Some(file) = &mut open.file else {
            // Anonymous memory has no descriptor (EBADF).
            pages.iter().for_each(|_| self.task.syscall(|| {}));
            self.counts[1] += pages.len() as u64;
            return Ok(());
        };
        let here = Here::new(&memory, self.task);
        for page in pages {
            let end = memory.vm.with(|state| state.mappings.get(file.mapping).pages());
            // A read behind the end gives nothing; a write there lengthens the file, but not to this page.
            if *page >= if write { MOST } else { end } {
                self.task.syscall(|| {});
                self.counts[1] += 1;
                continue;
            }
            let done = self.task.syscall(|| {
                let done = if write {
                    mm::write(&memory.vm, &here, &memory.rules, file, *page, page + 1, true)
                } else {
                    mm::read(&memory.vm, &here, &memory.rules, file, *page)
                };
                self.task.copy(PAGE);
                done
            });
            if done.is_none() || memory.processes.is_killed(self.task.id) {
                return Err(Killed);
            }
        }
        Ok(())
    }

    /// Adds accesses to the object's use in this phase.
    fn account(&mut self, object: ObjectId, accesses: u64, before: Usage, at: Ps) {
        self.shared.accesses.set(self.shared.accesses.get() + accesses);
        let used = self.used().since(before);
        let of = &mut self.uses[usize::from(object.0)];
        of.accesses += accesses;
        of.usage.add(used);
        of.ns += (Timed::clock() - at) / 1_000;
    }
}
