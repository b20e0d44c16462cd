//! What a CPU's exit, a shrink and a grace period promise, in the model, where all CPUs stand still.
//!
//! A random program cannot see these: an object that stays in the slot of a CPU that went, or a slab that a
//! shrink forgot, comes back at the latest when the cache is destroyed.

use crate::explore::guard;
use crate::program::FromCache;
use slablab_model::{Machine, MachineSpec, Model};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::conformance::Testable;
use slablab_platform::{CpuId, Frames, Gfp, Memory, Topology};
use slablab_slabs::{Backing, CacheFlags, CacheId, CacheSpec, Engine};

const CACHE: CacheId = CacheId(7);
const METADATA: CacheId = CacheId(8);
/// Objects that a duty allocates: more than an array of a CPU holds.
const OBJECTS: usize = 300;
/// What a holder writes over an object that readers may still read.
const READ: u8 = 0x3D;

/// One cache on a machine of two CPUs and one node.
struct Set<E: Engine<Model>> {
    /// Bytes of alignment that the cache was asked for.
    align: u32,
    pages: Pages<Model>,
    common: E::Common,
    cache: E,
    metadata: E,
}

impl<E: Engine<Model>> Set<E> {
    fn new(policy: &E::Policy, kernel: (u32, u32, u32), spec: &CacheSpec) -> Self {
        let set = Set {
            align: spec.align,
            pages: Pages::new(PagesPolicy::for_release(kernel.0, kernel.1, kernel.2)),
            common: E::Common::default(),
            cache: E::create(CACHE, spec, policy),
            metadata: E::create(METADATA, &CacheSpec::of_size(4096), policy),
        };
        set.with(|cache, backing| (0..2).for_each(|cpu| cache.cpu_up(backing, CpuId(cpu))));
        set
    }

    /// Calls `f` with what the cache uses.
    fn with<R>(&self, f: impl FnOnce(&E, &Backing<'_, Model, E::Common>) -> R) -> R {
        let metadata = FromCache(&self.metadata, Backing::new(&self.pages, &self.common));
        let backing = Backing { metadata: Some(&metadata), ..Backing::new(&self.pages, &self.common) };
        f(&self.cache, &backing)
    }

    fn alloc(&self, cpu: u16) -> Result<Address, String> {
        let object =
            self.with(|cache, backing| Model::on_cpu(CpuId(cpu), || cache.alloc(backing, Gfp::KERNEL, None)));
        object.ok_or_else(|| "an allocation failed with memory free".into())
    }

    fn free(&self, cpu: u16, object: Address) -> Result<(), String> {
        self.with(|cache, backing| Model::on_cpu(CpuId(cpu), || cache.free(backing, object)))
            .map_err(|misuse| misuse.to_string())
    }

    fn shrink(&self) -> u64 {
        self.with(|cache, backing| Model::still(|| cache.shrink(backing)))
    }

    /// Ends all grace periods and runs the work that is due.
    fn settle(&self) {
        Model::end_grace_period();
        while let Some((cpu, work)) = Model::due() {
            self.with(|cache, backing| {
                let of = if work.cache == CACHE.0 { cache } else { &self.metadata };
                Model::still(|| of.work(backing, cpu, work));
            });
        }
    }
}

type Address = <Model as slablab_platform::Frames>::Ptr;

/// Checks the duties of one engine's policy.
///
/// # Errors
/// The duty that the engine does not do.
pub fn duties<E: Engine<Model>>(policy: &E::Policy, kernel: (u32, u32, u32)) -> Result<(), String> {
    type Duty<E> = fn(&Set<E>) -> Result<(), String>;
    let rcu = CacheSpec { flags: CacheFlags::TYPESAFE_BY_RCU, ..CacheSpec::of_size(192) };
    let plain = CacheSpec::of_size(192);
    let duties: [(&str, CacheSpec, Duty<E>); 3] =
        [("shrink", plain, shrink), ("TYPESAFE_BY_RCU", rcu, typesafe), ("cpu_down", plain, cpu_down)];
    // Sizes that leave room for several colours in a slab, and sizes that are multiples of more than asked.
    let alignments = [(24, 8), (48, 16), (72, 8), (96, 32), (384, 64), (384, 128), (640, 8), (4096, 4096)];
    let aligned = alignments.map(|(bytes, align)| {
        ("object_align", CacheSpec { align, ..CacheSpec::of_size(bytes) }, aligned as Duty<E>)
    });
    for (name, spec, duty) in duties.into_iter().chain(aligned) {
        let mut machine = Machine::new(MachineSpec::uniform(2, 1, 1 << 30)).expect("the spec is right");
        let run = || guard(|| duty(&Set::new(policy, kernel, &spec)));
        let done = machine.enter(run).unwrap_or_else(|panic| Err(format!("panic: {panic}")));
        done.map_err(|wrong| format!("{name}: {wrong}"))?;
    }
    Ok(())
}

/// CPU 1 frees every second of its objects, and goes. CPU 0 must get each of them: the others keep the slabs
/// where they are.
fn cpu_down<E: Engine<Model>>(set: &Set<E>) -> Result<(), String> {
    let objects = (0..OBJECTS).map(|_| set.alloc(1)).collect::<Result<Vec<_>, _>>()?;
    let freed: Vec<_> = objects.iter().copied().step_by(2).collect();
    freed.iter().try_for_each(|object| set.free(1, *object))?;
    Model::set_online(CpuId(1), false);
    set.with(|cache, backing| {
        Model::on_cpu(CpuId(0), || Model::still(|| cache.cpu_down(backing, CpuId(1))));
    });
    let mut missing = freed;
    for _ in 0..16 * OBJECTS {
        if missing.is_empty() {
            return Ok(());
        }
        let object = set.alloc(0)?;
        missing.retain(|other| *other != object);
    }
    let count = missing.len();
    Err(format!("{count} objects that a CPU freed before it went offline are out of reach of the other CPU"))
}

/// Every object is aligned as the cache says, and as its specification asks.
fn aligned<E: Engine<Model>>(set: &Set<E>) -> Result<(), String> {
    let says = set.cache.object_align();
    for at in 0..OBJECTS {
        let (frame, offset) = Model::locate(set.alloc(at as u16 % 2)?);
        let address = (u64::from(frame.0) << Model::page_shift()) + u64::from(offset);
        let off = |align: u32| address % u64::from(align.max(1));
        if off(says) > 0 || off(set.align) > 0 {
            let (bytes, align) = (set.cache.geometry().object_size, set.align);
            return Err(format!(
                "an object of {bytes} bytes is at {address:#x}: the cache says multiples of {says}, and was \
                 asked for multiples of {align}"
            ));
        }
    }
    Ok(())
}

/// With all objects free, or all but one, and every CPU at rest, the empty slabs go.
fn shrink<E: Engine<Model>>(set: &Set<E>) -> Result<(), String> {
    let objects = (0..OBJECTS).map(|at| set.alloc(at as u16 % 2)).collect::<Result<Vec<_>, _>>()?;
    let (last, others) = objects.split_last().expect("there are some");
    for (at, object) in others.iter().enumerate() {
        set.free(at as u16 / 2 % 2, *object)?;
    }
    for most in [1, 0] {
        if most == 0 {
            set.free(0, *last)?;
        }
        let before = set.cache.usage().slabs;
        let said = set.shrink();
        let after = set.cache.usage().slabs;
        if after > most {
            return Err(format!("{after} slabs are left, {most} of them with an object, and no CPU runs"));
        }
        if said != before - after {
            return Err(format!("it returned {said}, and {before} slabs became {after}"));
        }
    }
    Ok(())
}

/// Until the grace period ends, the slabs of freed objects are not returned, and the objects are not written.
fn typesafe<E: Engine<Model>>(set: &Set<E>) -> Result<(), String> {
    let objects = (0..OBJECTS).map(|_| set.alloc(0)).collect::<Result<Vec<_>, _>>()?;
    let bytes = set.cache.geometry().object_size;
    objects.iter().for_each(|object| Model::fill(*object, bytes, READ));
    objects.iter().try_for_each(|object| set.free(0, *object))?;
    set.shrink();
    for object in &objects {
        if Pages::<Model>::block_of(*object).is_none() {
            return Err("a slab was returned to the page allocator before the readers had ended".into());
        }
        if let Some((at, byte)) = Model::differs(*object, bytes, READ) {
            return Err(format!("byte {at} of a freed object became {byte:#x} before the readers had ended"));
        }
    }
    set.settle();
    if set.cache.usage().slabs == 0
        && objects.iter().all(|object| Pages::<Model>::block_of(*object).is_some())
    {
        return Err("no slab was returned when the readers had ended".into());
    }
    Ok(())
}
