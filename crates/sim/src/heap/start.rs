//! The slab caches as a program finds them: made, then as after boot, then as a placement draws them.

use crate::heap::boot::boot;
use crate::heap::placement::place;
use crate::heap::{Heap, Named, class_names, heap};
use crate::setup::Setup;
use slablab_slabs::CacheSpec;
use std::rc::Rc;

/// The slab caches of a setup's kernel on the machine that is entered. `seed` draws what a boot leaves open.
pub(crate) fn started_heap(setup: &Setup, seed: u64, named: Vec<Named>) -> Rc<dyn Heap> {
    start(setup, seed, named, |named| heap(&setup.preset, named))
}

/// [`started_heap`] of caches that `make` makes.
pub(crate) fn start(
    setup: &Setup,
    seed: u64,
    mut named: Vec<Named>,
    make: impl FnOnce(&[Named]) -> Rc<dyn Heap>,
) -> Rc<dyn Heap> {
    let caches = setup.boot.caches(&setup.preset, &setup.spec);
    let classes = if caches.is_empty() { Vec::new() } else { class_names(&setup.preset) };
    for booted in caches.iter().filter(|booted| !classes.contains(&booted.named().name)) {
        match booted.find(&named) {
            Some(at) => {
                let sheaf_capacity = named[at].spec.sheaf_capacity;
                named[at].spec = CacheSpec { sheaf_capacity, ..booted.spec };
            }
            None => named.push(booted.named()),
        }
    }
    let heap = make(&named);
    if !caches.is_empty() {
        boot(&*heap, &caches, seed);
    }
    if let Some(seed) = setup.placement {
        place(&*heap, seed);
    }
    heap
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::CacheNumber;
    use crate::heap::boot::{Boot, Row, boots_of};
    use slablab_model::{Hardware, MachineSpec, TimedMachine};
    use slablab_slabs::Preset;

    fn setup(preset: &str, cpus: u16, page_shift: u32) -> Setup {
        let spec = MachineSpec { page_shift, ..MachineSpec::uniform(cpus, 1, 16 << 30) };
        let hardware = Hardware {
            core: (0..cpus).collect(),
            llc: vec![0; cpus.into()],
            socket: vec![0; cpus.into()],
            costs: Default::default(),
        };
        let preset = Preset::parse(preset).expect("a preset");
        Setup { spec, hardware, preset, boot: Boot::Kernel, placement: None }
    }

    /// Bytes of the table's slabs and of the model's after boot, and the objects that are allocated then.
    fn booted(preset: &str, cpus: u16, page_shift: u32) -> (u64, u64, u64) {
        let setup = setup(preset, cpus, page_shift);
        let paths = crate::heap::paths::paths(&setup.preset, &setup.hardware.costs);
        let machine = TimedMachine::new(setup.spec.clone(), setup.hardware.clone(), paths);
        machine.expect("a machine").enter(|| {
            let heap = started_heap(&setup, 1, Vec::new());
            let boots = boots_of(setup.preset.release(), page_shift).expect("a boot");
            let bytes = |row: &&Row| {
                let at = row.booted.find(heap.caches()).expect("a cache");
                row.slabs << heap.geometry(CacheNumber(at as u16)).order << page_shift
            };
            let caches = 0..heap.caches().len() as u16;
            let objects = caches.map(|at| heap.usage(CacheNumber(at)).live_objects()).sum();
            (boots[&u32::from(cpus)].iter().map(bytes).sum(), heap.slab_bytes(), objects)
        })
    }

    /// A machine that has booted holds as many bytes of slabs as that boot, within `percent`.
    #[track_caller]
    fn check(preset: &str, cpus: u16, page_shift: u32, percent: f64) {
        let (of_boot, held, _) = booted(preset, cpus, page_shift);
        let off = (held as f64 / of_boot as f64 - 1.0) * 100.0;
        assert!(off.abs() <= percent, "{preset} on {cpus} CPUs: {held} bytes, booted {of_boot}: {off:.1} %");
    }

    #[test]
    fn a_machine_of_a_boot_holds_what_it_held() {
        check("slub@6.1", 1, 12, 3.0);
        check("slub@6.1", 4, 12, 3.0);
        check("slub@6.1", 8, 12, 3.0);
        check("slub@6.18", 4, 12, 3.0);
        // Sheaves are there first, and begin slabs of their own. Two boots of a kernel differ by 2 to 5 %.
        check("slub@7.0", 4, 12, 6.0);
        check("slub@7.0", 16, 12, 6.0);
        check("slub@6.1", 16, 16, 3.0);
        check("slub@6.1", 160, 16, 3.0);
        // Another engine of that release holds the same objects in its own slabs; its arrays are objects too.
        let [slub, slab] = ["slub@6.1", "slab@6.1"].map(|preset| booted(preset, 8, 12).2 as f64);
        assert!((slab / slub - 1.0).abs() < 0.06, "{slub} and {slab} objects");
    }

    #[test]
    fn other_machines_are_between_boots_or_refused() {
        let objects = |preset: &str, cpus: u16, shift: u32| -> f64 {
            let setup = setup(preset, cpus, shift);
            setup.boot.caches(&setup.preset, &setup.spec).iter().map(|one| one.objects()).sum()
        };
        for (preset, shift, cpus) in [("slub@6.1", 16, [16, 64, 160, 320]), ("slub@7.1", 12, [4, 9, 16, 224])]
        {
            let found = cpus.map(|cpus| objects(preset, cpus, shift));
            assert!(found.is_sorted(), "{preset}: {found:?}");
        }
        // Where one boot is known, its counts are taken.
        assert_eq!(objects("slub@6.18", 2, 12), objects("slub@6.18", 64, 12));
        let refused = |preset: &str, shift: u32| {
            let setup = setup(preset, 4, shift);
            setup.boot.check(&setup.preset, &setup.spec).expect_err("it is not known")
        };
        assert_eq!(refused("slub@5.10", 12), "boot = kernel: no boot before 6.1 is known");
        let pages = "boot = kernel: no boot with pages of 16 KiB is known, only of 4 and 64";
        assert_eq!(refused("slub@6.1", 14), pages);
    }
}
