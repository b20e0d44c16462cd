//! What an engine does, done by a tree's allocator.

use super::cache::Linux;
use super::classic::kmalloc_size;
use super::files::Said;
use super::layout::{layout, make_known};
use super::policy::LinuxPolicy;
use super::shared::Shared;
use crate::image::Booting;
use slablab_engines::ended;
use slablab_pages::Pages;
use slablab_platform::{CpuId, Event, Field, Gfp, NodeId, Platform, Work, WorkKind};
use slablab_slabs::slab::NewObjects;
use slablab_slabs::{
    Backing, Busy, CacheId, CacheSpec, Engine, Family, FunctionCosts, Geometry, Misuse, Place, Usage,
};
use std::cell::{Cell, RefCell};

/// The trees' allocators in every world.
#[derive(Debug)]
pub enum LinuxFamily {}

impl Family for LinuxFamily {
    type Policy = LinuxPolicy;
    type On<P: Platform> = Linux<P>;
}

impl<P: Platform> Engine<P> for Linux<P> {
    type Policy = LinuxPolicy;
    type Common = ();

    fn layout(spec: &CacheSpec, policy: &LinuxPolicy) -> Option<Geometry> {
        layout::<P>(spec, policy)
    }

    fn create(id: CacheId, spec: &CacheSpec, policy: &LinuxPolicy) -> Self {
        let shared = Shared::<P>::of(policy);
        shared.image.clock.set(P::now() / 4_000_000);
        let made = make_known(&shared, &format!("cache-{}", id.0), spec);
        let Some((cache, geometry)) = made else {
            panic!("no layout: an object of {} bytes fits no slab", spec.object_size.max(spec.known_size))
        };
        shared.made(cache, id.0);
        Linux {
            kmalloc: kmalloc_size(&shared, spec),
            shared,
            cache,
            id,
            geometry,
            live: (0..P::nodes()).map(|_| Cell::new(0)).collect(),
            locks: (0..P::cpus()).map(|_| Default::default()).collect(),
            kinds: RefCell::default(),
            last_kind: Cell::new(None),
            seeds: RefCell::default(),
            loose: RefCell::default(),
        }
    }

    fn set_name(&mut self, name: &str) {
        for attribute in self.shared.attributes.of(name) {
            let written = self.shared.write_file(self.cache, &attribute.file, &attribute.value);
            written.unwrap_or_else(|what| ended(format!("{attribute}: {what}")));
        }
    }

    fn set_new_objects(&mut self, _new: NewObjects<P>) {}

    fn owns(&self, object: P::Ptr) -> Result<(), Misuse> {
        let found = P::aside(|| {
            let (head, _) = Pages::<P::Ground>::block_of(object)?;
            Some((head, P::with_frame(head, |frame| frame.owner.get())))
        });
        let Some((head, owner)) = found else { return Err(Misuse::NotInSlab) };
        if self.shared.is_slob() {
            return Ok(());
        }
        if owner != u64::from(self.id.0) {
            return Err(Misuse::WrongCache(CacheId(owner as u32)));
        }
        // Objects of SLAB begin behind the slab's colour.
        if !self.shared.is_slub() {
            return Ok(());
        }
        let (pfn, offset) = P::locate(object);
        let at = (u64::from(pfn.0 - head.0) << 12) + u64::from(offset);
        match at.is_multiple_of(self.geometry.size.into()) {
            true => Ok(()),
            false => Err(Misuse::NotAnObject),
        }
    }

    fn id(&self) -> CacheId {
        self.id
    }

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn alloc(&self, backing: &Backing<'_, P>, gfp: Gfp, node: Option<NodeId>) -> Option<P::Ptr> {
        self.alloc_sized(backing, self.geometry.object_size, gfp, node)
    }

    fn alloc_sized(
        &self,
        backing: &Backing<'_, P>,
        bytes: u32,
        gfp: Gfp,
        node: Option<NodeId>,
    ) -> Option<P::Ptr> {
        let object = self.object(self.allocate(backing, P::cpu().0, gfp, node, bytes)?);
        self.held(object, 1);
        Some(object)
    }

    fn free(&self, backing: &Backing<'_, P>, object: P::Ptr) -> Result<(), Misuse> {
        self.owns(object)?;
        self.held(object, -1);
        self.release(backing, P::cpu().0, self.address(object));
        Ok(())
    }

    /// Under SLUB all or none, as the tree does; SLAB's and SLOB's calls are counted one by one.
    fn alloc_bulk(&self, backing: &Backing<'_, P>, gfp: Gfp, out: &mut [Option<P::Ptr>]) -> usize {
        if !self.shared.is_slub() {
            let filled = out.iter_mut().map_while(|place| {
                *place = self.alloc(backing, gfp, None);
                place.as_ref().map(drop)
            });
            return filled.count();
        }
        let mut objects = vec![0u64; out.len()];
        // The image writes there.
        let place = objects.as_mut_ptr().expose_provenance() as u64;
        let arguments = [self.cache, gfp.0.into(), objects.len() as u64, place, 0];
        if objects.is_empty()
            || self.run(backing, P::cpu().0, self.shared.image.functions.alloc_bulk, arguments) == 0
        {
            return 0;
        }
        for (place, object) in out.iter_mut().zip(&objects) {
            let object = self.object(*object);
            self.held(object, 1);
            *place = Some(object);
        }
        objects.len()
    }

    fn free_bulk(&self, backing: &Backing<'_, P>, objects: &[P::Ptr]) -> Result<(), Misuse> {
        if !self.shared.is_slub() {
            return objects.iter().try_for_each(|object| self.free(backing, *object));
        }
        let mut found = Ok(());
        let mut addresses = Vec::with_capacity(objects.len());
        for object in objects {
            found = self.owns(*object);
            if found.is_err() {
                break;
            }
            self.held(*object, -1);
            addresses.push(self.address(*object));
        }
        if !addresses.is_empty() {
            let place = addresses.as_mut_ptr().expose_provenance() as u64;
            let arguments = [self.cache, addresses.len() as u64, place, 0, 0];
            self.run(backing, P::cpu().0, self.shared.image.functions.free_bulk, arguments);
        }
        found
    }

    /// By the CPU's sheaf, where the tree has sheaves; such an object is no longer a caller's.
    fn free_rcu(&self, backing: &Backing<'_, P>, object: P::Ptr) -> Result<bool, Misuse> {
        self.owns(object)?;
        let arguments = [self.cache, self.address(object), 0, 0, 0];
        let taken =
            self.run(backing, P::cpu().0, self.shared.image.functions.free_rcu, arguments) & 0xff != 0;
        if taken {
            self.held(object, -1);
        }
        Ok(taken)
    }

    fn shrink(&self, backing: &Backing<'_, P>) -> u64 {
        let before = self.file("slabs").total;
        self.run(backing, P::cpu().0, self.shared.image.functions.shrink, [self.cache, 0, 0, 0, 0]);
        before - self.file("slabs").total.min(before)
    }

    fn destroy(&self, backing: &Backing<'_, P>) -> Result<(), Busy> {
        self.usage().all_free()?;
        match self.run(backing, P::cpu().0, self.shared.image.functions.destroy, [self.cache, 0, 0, 0, 0]) {
            0 => Ok(()),
            _ => ended(format!(
                "cache {}: the tree's code says that objects are left, and all are free",
                self.id.0
            )),
        }
    }

    fn work(&self, backing: &Backing<'_, P>, cpu: CpuId, work: Work) {
        if work.kind == WorkKind::Reap {
            return self.run_later(backing, cpu, work);
        }
        let Some((head, function)) = self.shared.waiting.borrow_mut().remove(&work.argument) else { return };
        self.run(backing, cpu.0, self.shared.image.functions.call_rcu, [head, function, self.cache, 0, 0]);
    }

    fn cpu_down(&self, backing: &Backing<'_, P>, cpu: CpuId) {
        if self.shared.online[cpu.0 as usize].replace(false) {
            let functions = &self.shared.image.functions;
            self.run(backing, P::cpu().0, functions.set_online, [cpu.0.into(), 0, 0, 0, 0]);
            self.run(backing, P::cpu().0, functions.cpu_steps, [cpu.0.into(), 0, 0, 0, 0]);
        }
    }

    fn cpu_up(&self, _backing: &Backing<'_, P>, cpu: CpuId) {
        if !self.shared.online[cpu.0 as usize].replace(true) {
            let image = &self.shared.image;
            image.clock.set(P::now() / 4_000_000);
            for function in [image.functions.set_online, image.functions.cpu_steps] {
                let done = image.run(0, function, [cpu.0.into(), 1, 0, 0, 0], &Booting(image));
                done.unwrap_or_else(|finding| ended(finding.to_string()));
            }
            self.shared.defer_left(self.id.0);
        }
    }

    fn seed(&self, backing: &Backing<'_, P>, node: NodeId, place: Place, free: &[u16]) -> Option<P::Ptr> {
        self.seed_slab(backing, node, place, free)
    }

    fn seed_arrays(&self, backing: &Backing<'_, P>, in_array: u32, _in_shared: u32) {
        self.fill_array(backing, in_array);
    }

    fn seeded(&self, backing: &Backing<'_, P>) {
        self.settle(backing);
    }

    fn usage(&self) -> Usage {
        if self.shared.is_slob() {
            return self.slob_usage(None);
        }
        let live = self.live.iter().map(Cell::get).sum();
        self.usage_of(self.frames(None), live, |said| said.total)
    }

    fn usage_on(&self, node: NodeId) -> Usage {
        if self.shared.is_slob() {
            return self.slob_usage(Some(node));
        }
        let live = self.live[node.0 as usize].get();
        self.usage_of(self.frames(Some(node.0)), live, |said| said.of_node(node.0))
    }

    fn counted(&self, event: Event) -> u64 {
        if !self.shared.is_slub() {
            return self.seen(None, event);
        }
        if let Some(kind) = lock_of(event) {
            return self.locks.iter().map(|locks| locks[kind].get()).sum();
        }
        self.shared.file(self.cache, event.name()).map_or(0, |said| said.total)
    }

    fn counted_on(&self, cpu: CpuId, event: Event) -> u64 {
        if !self.shared.is_slub() {
            return self.seen(Some(cpu), event);
        }
        if let Some(kind) = lock_of(event) {
            return self.locks[cpu.0 as usize][kind].get();
        }
        self.shared.file(self.cache, event.name()).map_or(0, |said| said.of_cpu(cpu.0))
    }

    fn functions(&self, each: &mut dyn FnMut(&str, FunctionCosts)) {
        self.shared.costs.each(&self.shared.image, each);
    }
}

/// The place in [`Linux::locks`].
fn lock_of(event: Event) -> Option<usize> {
    [Event::LockNodeList, Event::LockBarn].iter().position(|lock| *lock == event)
}

impl<P: Platform> Linux<P> {
    fn usage_of(&self, frames: u64, live: u64, of: impl Fn(&Said) -> u64) -> Usage {
        let number = |name: &str| of(&self.file(name));
        let total_objects = number("total_objects");
        // `objects` are those that no node's list has free: of CPUs' slabs, all.
        let active = number("objects");
        // The file leaves out a CPU that has partial slabs, but none to allocate from. Slabs of partial lists
        // are said by CPU alone, so of one node none are known.
        let at_cpus = number("cpu_slabs");
        let cpu_partial = number("slabs_cpu_partial");
        Usage {
            slabs: number("slabs"),
            frames,
            total_objects,
            partial: number("partial"),
            free_in_partial: total_objects - active,
            cpu_slabs: at_cpus.saturating_sub(cpu_partial),
            cpu_partial,
            parked: active - live,
            ..Usage::default()
        }
    }
}
