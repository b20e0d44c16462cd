//! The model's memory grows with the slabs and objects that exist, not with the size of the machine.

use slablab_model::{Access, Costs, Hardware, Machine, MachineSpec, Model, Paths, Timed, TimedMachine};
use slablab_pages::{Pages, PagesPolicy};
use slablab_platform::{CpuId, Gfp};
use slablab_slabs::engines::slub::Slub;
use slablab_slabs::preset::Preset;
use slablab_slabs::{Backing, CacheId, CacheSpec, Engine};
use std::cell::Cell;
use std::rc::Rc;

const MIB: usize = 1 << 20;

fn slub() -> slablab_slabs::engines::slub::SlubPolicy {
    match Preset::parse("slub@6.1").expect("a preset") {
        Preset::Slub(policy) => policy,
        other => unreachable!("asked for SLUB, got {other}"),
    }
}

#[test]
fn one_tebibyte_and_1024_cpus() {
    let mut machine = Machine::new(MachineSpec::uniform(1024, 64, 16 << 30)).expect("the spec is right");
    let fresh = machine.bytes();
    assert!(fresh < 64 * MIB, "{fresh} bytes before the first allocation");
    let objects = machine.enter(|| {
        let pages = Pages::<Model>::new(PagesPolicy::for_release(6, 1, 0));
        let cache = Slub::<Model>::create(CacheId(1), &CacheSpec::of_size(192), &slub());
        let backing = Backing::pages(&pages);
        (0..1024)
            .filter(|cpu| {
                Model::run_on(CpuId(*cpu));
                cache.alloc(&backing, Gfp::KERNEL, None).is_some()
            })
            .count()
    });
    assert_eq!(objects, 1024, "every CPU gets an object");
    let used = machine.bytes();
    println!(
        "1 TiB, 1,024 CPUs, 64 nodes: {} KiB fresh, {} KiB with a slab on every CPU",
        fresh / 1024,
        used / 1024
    );
    assert!(used < 64 * MIB, "{used} bytes with a slab on every CPU");
}

#[test]
fn bytes_per_live_object() {
    // Frames and links. A replay adds 16 bytes per object for the object's address.
    const OBJECTS: usize = 1_000_000;
    for (size, most) in [(64, 12.0), (192, 16.0), (256, 14.0), (512, 18.0)] {
        let mut machine = Machine::new(MachineSpec::uniform(2, 1, 8 << 30)).expect("the spec is right");
        let fresh = machine.bytes();
        machine.enter(|| {
            let pages = Pages::<Model>::new(PagesPolicy::for_release(6, 1, 0));
            let cache = Slub::<Model>::create(CacheId(1), &CacheSpec::of_size(size), &slub());
            let backing = Backing::pages(&pages);
            for _ in 0..OBJECTS {
                cache.alloc(&backing, Gfp::KERNEL, None).expect("memory is left");
            }
        });
        let each = (machine.bytes() - fresh) as f64 / OBJECTS as f64;
        println!("{size} bytes: {each:.1} bytes of tables per live object");
        assert!(each <= most, "{each:.1} bytes of tables per live object of {size} bytes, at most {most}");
    }
}

/// A machine with clocks keeps lines and clocks too.
#[test]
fn one_tebibyte_and_1024_cpus_with_clocks() {
    let cpus = 1024u16;
    let each: Vec<u16> = (0..cpus).collect();
    let hardware = Hardware {
        core: each.clone(),
        llc: each.iter().map(|cpu| cpu / 16).collect(),
        socket: vec![0; cpus.into()],
        costs: Costs { tlb_miss: 8_000, tlb_entries: 2048, memory: vec![(10, 90_000)], ..Costs::default() },
    };
    let spec = MachineSpec::uniform(cpus, 64, 16 << 30);
    let mut machine = TimedMachine::new(spec, hardware, Paths::default()).expect("the machine is right");
    let fresh = machine.bytes();
    assert!(fresh < 64 * MIB, "{fresh} bytes before the first allocation");
    let objects = machine.enter(|| {
        let pages = Rc::new(Pages::<Timed>::new(PagesPolicy::for_release(6, 1, 0)));
        let cache = Rc::new(Slub::<Timed>::create(CacheId(1), &CacheSpec::of_size(192), &slub()));
        let objects = Rc::new(Cell::new(0));
        for cpu in 0..cpus {
            let (pages, cache, objects) = (pages.clone(), cache.clone(), objects.clone());
            Timed::spawn(CpuId(cpu), 0, move || {
                let object =
                    cache.alloc(&Backing::pages(&*pages), Gfp::KERNEL, None).expect("memory is left");
                Timed::touch(object, 192, Access::Write);
                objects.set(objects.get() + 1);
            });
        }
        assert_eq!(Timed::run(), []);
        objects.get()
    });
    assert_eq!(objects, cpus, "every CPU gets an object");
    let used = machine.bytes();
    println!(
        "with clocks, 1 TiB, 1,024 CPUs, 64 nodes: {} KiB fresh, {} KiB with a slab on every CPU",
        fresh / 1024,
        used / 1024
    );
    assert!(used < 64 * MIB, "{used} bytes with a slab on every CPU");
}
