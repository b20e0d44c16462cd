//! Frees of wrong addresses, and what every engine must do then.

use super::{Runner, SHEAVES};
use slablab_platform::conformance::Testable;
use slablab_platform::{CpuId, FrameKind, Gfp};
use slablab_slabs::{Backing, Engine, Misuse};

/// The result of a free as text.
fn said(answer: Result<(), Misuse>) -> String {
    answer.map_or_else(|misuse| misuse.to_string(), |()| "freed".into())
}

impl<P: Testable, E: Engine<P>> Runner<P, E> {
    /// Frees another cache's object. The engine must refuse it and change nothing.
    pub(super) fn misuse(&mut self, cpu: CpuId) -> Result<(), String> {
        let backing = Backing::new(&self.pages, &self.common);
        let sheaf = P::on_cpu(cpu, || self.sheaves.alloc(&backing, Gfp::KERNEL, None));
        if let Some(foreign) = sheaf {
            let found = P::on_cpu(cpu, || self.cache.free(&backing, foreign));
            self.ran.misuses += 1;
            if found != Err(Misuse::WrongCache(SHEAVES)) {
                return Err(format!("the free of another cache's object was not refused: {}", said(found)));
            }
            if P::on_cpu(cpu, || self.cache.free_rcu(&backing, foreign)) == Ok(true) {
                return Err("free_rcu accepted another cache's object".into());
            }
            P::on_cpu(cpu, || self.sheaves.free(&backing, foreign)).map_err(|misuse| misuse.to_string())?;
        }
        Ok(())
    }

    /// Frees bulks with one wrong address, one bulk for each kind that the engine can recognise.
    pub(super) fn misuse_bulk(&mut self, cpu: CpuId, count: u8, at: u8) -> Result<(), String> {
        let no_slab =
            P::on_cpu(cpu, || self.pages.alloc(Gfp::KERNEL, 0, P::cpu_node(P::cpu()), FrameKind::Allocated));
        if let Some(frame) = no_slab {
            let found = self.free_wrong_bulk(cpu, count, at, P::address(frame, 0), Misuse::NotInSlab);
            P::on_cpu(cpu, || self.pages.free(frame));
            found?;
        }
        if !E::KNOWS_OWNERS {
            return Ok(());
        }
        let backing = Backing::new(&self.pages, &self.common);
        let foreign = P::on_cpu(cpu, || self.sheaves.alloc(&backing, Gfp::KERNEL, None));
        if let Some(foreign) = foreign {
            self.free_wrong_bulk(cpu, count, at, foreign, Misuse::WrongCache(SHEAVES))?;
            let backing = Backing::new(&self.pages, &self.common);
            P::on_cpu(cpu, || self.sheaves.free(&backing, foreign)).map_err(|misuse| misuse.to_string())?;
        }
        if self.cache.geometry().object_size > 8
            && let Some(object) = self.reference.take(at.into())
        {
            // The object is not part of the bulk. If it were, its slab could be freed, and the address would
            // be in no slab.
            let (pfn, offset) = P::locate(object);
            let inside = P::address(pfn, offset as u64 + 8);
            self.free_wrong_bulk(cpu, count, at, inside, Misuse::NotAnObject)?;
            self.reference.add(object, None)?;
        }
        Ok(())
    }

    /// Frees `count` live objects with the address `wrong` in front of the `at`-th object. The contract of
    /// `Engine::free_bulk`: the engine frees the objects before `wrong`, and does not free those after it.
    fn free_wrong_bulk(
        &mut self,
        cpu: CpuId,
        count: u8,
        at: u8,
        wrong: P::Ptr,
        expected: Misuse,
    ) -> Result<(), String> {
        let backing = Backing::new(&self.pages, &self.common);
        let mut objects: Vec<_> =
            (0..count).filter_map(|which| self.reference.take(which as u16 * 7)).collect();
        let at = at as usize % (objects.len() + 1);
        objects.insert(at, wrong);
        let live = || P::still(|| self.cache.usage().live_objects());
        let before = live();
        let found = P::on_cpu(cpu, || self.cache.free_bulk(&backing, &objects));
        self.ran.misuses += 1;
        if found != Err(expected) {
            return Err(format!("a bulk with {wrong:?} in it: {}, not {expected}", said(found)));
        }
        let freed = before - live();
        if P::SERVES && freed != at as u64 {
            return Err(format!(
                "an address that is {expected}, after {at} of {} objects: {freed} freed",
                objects.len() - 1
            ));
        }
        objects[at + 1..].iter().try_for_each(|object| self.reference.add(*object, None))
    }
}
