//! Engines that leave out one of their duties, each found by the checks of a registered engine.

use slablab_check::duties::duties;
use slablab_check::oracle::{self, machines, specs};
use slablab_model::{Machine, Model};
use slablab_platform::{CpuId, Event, Frames, Gfp, NodeId, Platform, Work};
use slablab_slabs::engines::slab::{SlabEngine, SlabPolicy};
use slablab_slabs::engines::slub::{Slub, SlubPolicy};
use slablab_slabs::knob::Policy;
use slablab_slabs::slab::NewObjects;
use slablab_slabs::{Backing, Busy, CacheFlags, CacheId, CacheSpec, Engine, Geometry, Misuse, Place, Usage};

/// What is left out.
const NOTHING: u8 = 0;
const ZEROS: u8 = 1;
const CONSTRUCTOR: u8 = 2;
const CPU_DOWN: u8 = 3;
const SHRINK: u8 = 4;
const SHRINK_COUNT: u8 = 5;
const TYPESAFE: u8 = 6;
/// A panic in a free.
const PANIC: u8 = 7;
/// It says a larger alignment than its objects have.
const ALIGN: u8 = 8;

/// An engine without one of its duties.
struct Without<const DUTY: u8, E>(E);

type Ptr<P> = <P as Frames>::Ptr;

impl<const DUTY: u8, P: Platform, E: Engine<P>> Engine<P> for Without<DUTY, E> {
    type Policy = E::Policy;
    type Common = E::Common;
    const KNOWS_OWNERS: bool = E::KNOWS_OWNERS;

    fn layout(spec: &CacheSpec, policy: &E::Policy) -> Option<Geometry> {
        E::layout(spec, policy)
    }
    fn create(id: CacheId, spec: &CacheSpec, policy: &E::Policy) -> Self {
        let is_kept = DUTY != TYPESAFE && spec.flags.has(CacheFlags::TYPESAFE_BY_RCU);
        let flags = spec.flags.with(CacheFlags::TYPESAFE_BY_RCU, is_kept);
        Without(E::create(id, &CacheSpec { flags, ..*spec }, policy))
    }
    fn set_new_objects(&mut self, new: NewObjects<P>) {
        if DUTY != CONSTRUCTOR {
            self.0.set_new_objects(new);
        }
    }
    fn owns(&self, object: Ptr<P>) -> Result<(), Misuse> {
        self.0.owns(object)
    }
    fn id(&self) -> CacheId {
        self.0.id()
    }
    fn geometry(&self) -> &Geometry {
        self.0.geometry()
    }
    fn object_align(&self) -> u32 {
        self.0.object_align() << u32::from(DUTY == ALIGN)
    }
    fn alloc(&self, backing: &Backing<'_, P, E::Common>, gfp: Gfp, node: Option<NodeId>) -> Option<Ptr<P>> {
        let gfp = if DUTY == ZEROS { gfp & !Gfp::ZERO } else { gfp };
        self.0.alloc(backing, gfp, node)
    }
    fn free(&self, backing: &Backing<'_, P, E::Common>, object: Ptr<P>) -> Result<(), Misuse> {
        assert!(DUTY != PANIC || self.0.counted(Event::AllocSlab) < 3, "the third slab is too much");
        self.0.free(backing, object)
    }
    fn shrink(&self, backing: &Backing<'_, P, E::Common>) -> u64 {
        match DUTY {
            SHRINK => 0,
            SHRINK_COUNT => self.0.shrink(backing) + 1,
            _ => self.0.shrink(backing),
        }
    }
    fn destroy(&self, backing: &Backing<'_, P, E::Common>) -> Result<(), Busy> {
        self.0.destroy(backing)
    }
    fn work(&self, backing: &Backing<'_, P, E::Common>, cpu: CpuId, work: Work) {
        self.0.work(backing, cpu, work);
    }
    fn cpu_down(&self, backing: &Backing<'_, P, E::Common>, cpu: CpuId) {
        if DUTY != CPU_DOWN {
            self.0.cpu_down(backing, cpu);
        }
    }
    fn cpu_up(&self, backing: &Backing<'_, P, E::Common>, cpu: CpuId) {
        self.0.cpu_up(backing, cpu);
    }
    fn seed(
        &self,
        backing: &Backing<'_, P, E::Common>,
        node: NodeId,
        place: Place,
        free: &[u16],
    ) -> Option<Ptr<P>> {
        self.0.seed(backing, node, place, free)
    }
    fn usage_on(&self, node: NodeId) -> Usage {
        self.0.usage_on(node)
    }
    fn counted_on(&self, cpu: CpuId, event: Event) -> u64 {
        self.0.counted_on(cpu, event)
    }
}

/// What the checks in the model find.
fn finding<E: Engine<Model>>(policy: &E::Policy) -> Result<(), String> {
    let kernel = (6, 1, 0);
    duties::<E>(policy, kernel)?;
    let (name, machine) = machines().swap_remove(0);
    for spec in specs() {
        let mut machine = Machine::new(machine.clone()).expect("the spec is right");
        machine.enter(|| oracle::run::<Model, E>(name, policy, kernel, &spec, 0..4))?;
    }
    Ok(())
}

/// Every engine without a duty is found, by words that name the duty.
fn check<E: Engine<Model>>(name: &str, policy: &E::Policy) {
    let found = |duty: &str, finding: Result<(), String>, words: &str| {
        let text = finding.err().unwrap_or_else(|| panic!("{name} without {duty}: not found"));
        println!("{name} without {duty}: {text}");
        assert!(text.contains(words), "{name} without {duty}: {text}");
    };
    assert_eq!(finding::<Without<NOTHING, E>>(policy), Ok(()), "{name}");
    found("zeros", finding::<Without<ZEROS, E>>(policy), "__GFP_ZERO");
    found("a constructor", finding::<Without<CONSTRUCTOR, E>>(policy), "set_new_objects");
    found("cpu_down", finding::<Without<CPU_DOWN, E>>(policy), "cpu_down: ");
    found("shrink", finding::<Without<SHRINK, E>>(policy), "shrink: ");
    found("the count of a shrink", finding::<Without<SHRINK_COUNT, E>>(policy), "shrink: it returned");
    found("RCU", finding::<Without<TYPESAFE, E>>(policy), "TYPESAFE_BY_RCU: ");
    found("an alignment", finding::<Without<ALIGN, E>>(policy), "object_align: ");
    found("a quiet free", finding::<Without<PANIC, E>>(policy), "the third slab is too much");
}

#[test]
fn a_missing_duty_is_found() {
    check::<SlabEngine<Model>>("slab", SlabPolicy::PRESETS.last().expect("a preset"));
    check::<Slub<Model>>("slub", SlubPolicy::PRESETS.last().expect("a preset"));
}
