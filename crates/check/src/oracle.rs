//! Random programs of one engine in the model, on many machines.

use crate::broken::Refuse;
use crate::explore::guard;
use crate::program::{Beside, Op, Program, Ran, Runner};
use crate::twist::Twisted;
use slablab_model::{Machine, MachineSpec, Model, NodeSpec};
use slablab_platform::conformance::Testable;
use slablab_slabs::{CacheFlags, CacheSpec, Engine, Family};
use std::ops::Range;

const GIB: u64 = 1 << 30;

/// Runs programs of one engine's policy in a world. `kernel` is the release of the page allocator. Returns
/// what they did.
///
/// # Errors
/// What the reference found, with the seed.
pub fn run<P: Testable, E: Engine<P>>(
    what: &str,
    policy: &E::Policy,
    kernel: (u32, u32, u32),
    spec: &CacheSpec,
    seeds: Range<u64>,
) -> Result<Ran, String> {
    let mut total = Ran::default();
    for seed in seeds {
        // A panic of the engine or of its world (a store beyond an array, a lock taken twice) is a finding of
        // this program.
        let run = || Runner::<P, E>::new(spec, policy, kernel).run(&Program::random(seed, 600));
        let ran = guard(run).unwrap_or_else(|panic| Err(format!("panic: {panic}")));
        total += ran.map_err(|wrong| format!("{what}, {}, seed {seed}: {wrong}", words(spec)))?;
    }
    Ok(total)
}

/// The model on every machine, with slots that serve and with slots that are always unavailable.
///
/// # Errors
/// As [`run`].
pub fn model<E: Engine<Model>, R: Engine<Twisted<Model, Refuse>, Policy = E::Policy>>(
    name: &str,
    policy: &E::Policy,
    kernel: (u32, u32, u32),
    seeds: u64,
) -> Result<Ran, String> {
    let mut ran = Ran::default();
    for (on, machine) in machines() {
        for spec in specs() {
            let enter = || Machine::new(machine.clone()).expect("the spec is right");
            let what = format!("{name} on {on}");
            ran += enter().enter(|| run::<Model, E>(&what, policy, kernel, &spec, 0..seeds))?;
            let what = format!("{name} on {on}, slots refuse");
            let first = 0..seeds.div_ceil(2);
            enter().enter(|| run::<Twisted<Model, Refuse>, R>(&what, policy, kernel, &spec, first))?;
        }
    }
    Ok(ran)
}

/// Programs of a kernel tree's allocator, on the machines that it has an image for. What the tree's engine
/// does about wrong addresses, constructors and prefilled sheaves is the project's, not the tree's: programs
/// have none. `catch` calls a program, and turns what ends it from within the tree into an error.
///
/// # Errors
/// What the reference found, or the tree's code; with the machine, the cache and the seed.
pub fn tree<F: Family>(
    policy: &F::Policy,
    kernel: (u32, u32, u32),
    seeds: u64,
    beside: impl Fn() -> Beside<Model, F::On<Model>>,
    catch: impl Fn(&mut dyn FnMut() -> Result<Ran, String>) -> Result<Ran, String>,
) -> Result<Ran, String> {
    let has_image = |spec: &MachineSpec| {
        let moves_nodes = spec.memoryless_nodes && spec.nodes.iter().any(|node| node.bytes == 0);
        spec.page_shift == 12 && !moves_nodes
    };
    let of_tree = |op: &Op| {
        let misuse = matches!(op, Op::Misuse { .. } | Op::MisuseBulk { .. });
        !misuse && !matches!(op, Op::Lend { .. } | Op::UseLent { .. } | Op::Return { .. })
    };
    let machines = machines().into_iter().filter(|(_, spec)| has_image(spec));
    let specs = specs().into_iter().filter(|spec| !spec.flags.has(CacheFlags::CONSTRUCTOR));
    let specs: Vec<CacheSpec> = specs.collect();
    let mut total = Ran::default();
    for (on, machine) in machines {
        for (spec, seed) in specs.iter().flat_map(|spec| (0..seeds).map(move |seed| (spec, seed))) {
            let mut program = Program::random(seed, 600);
            program.0.retain(of_tree);
            let mut run = || {
                let mut machine = Machine::new(machine.clone()).expect("the spec is right");
                machine.enter(|| {
                    let runner = Runner::<Model, F::On<Model>>::new(spec, policy, kernel);
                    runner.beside(beside()).run(&program)
                })
            };
            let ran = catch(&mut run);
            total += ran.map_err(|wrong| format!("on {on}, {}, seed {seed}: {wrong}", words(spec)))?;
        }
    }
    Ok(total)
}

/// Machines by their names.
pub fn machines() -> Vec<(&'static str, MachineSpec)> {
    let plain = MachineSpec::uniform(4, 2, GIB);
    let two_of_eight = MachineSpec {
        cpu_node: (0..8).collect(),
        nodes: (0..8).map(|node| NodeSpec { bytes: if node % 4 == 1 { GIB } else { 0 } }).collect(),
        ..plain.clone()
    };
    vec![
        ("one node", MachineSpec::uniform(2, 1, GIB)),
        ("two nodes", plain.clone()),
        ("64K pages", MachineSpec { page_shift: 16, ..plain.clone() }),
        ("memory on 2 of 8 nodes", two_of_eight.clone()),
        ("memory on 2 of 8 nodes, own memory nodes", MachineSpec { memoryless_nodes: false, ..two_of_eight }),
        ("no high orders", MachineSpec { fail_order: Some(1), ..plain.clone() }),
        ("little memory", MachineSpec { nodes: vec![NodeSpec { bytes: 16 << 20 }; 2], ..plain }),
    ]
}

/// Caches.
pub fn specs() -> Vec<CacheSpec> {
    vec![
        CacheSpec::of_size(8),
        CacheSpec::of_size(192),
        CacheSpec { align: 64, ..CacheSpec::of_size(700) },
        CacheSpec { sheaf_capacity: 32, ..CacheSpec::of_size(256) },
        CacheSpec { flags: CacheFlags::TYPESAFE_BY_RCU, ..CacheSpec::of_size(1000) },
        CacheSpec { flags: CacheFlags::CONSTRUCTOR | CacheFlags::HWCACHE_ALIGN, ..CacheSpec::of_size(4096) },
    ]
}

/// A cache in words.
fn words(spec: &CacheSpec) -> String {
    let flags = [
        (CacheFlags::HWCACHE_ALIGN, ", aligned to cache lines"),
        (CacheFlags::TYPESAFE_BY_RCU, ", typesafe by RCU"),
        (CacheFlags::CONSTRUCTOR, ", with a constructor"),
    ];
    let mut said = format!("a cache of {}-byte objects", spec.object_size);
    if spec.align > 0 {
        said += &format!(", aligned to {} bytes", spec.align);
    }
    if spec.sheaf_capacity > 0 {
        said += &format!(", with sheaves of {} objects", spec.sheaf_capacity);
    }
    flags.iter().filter(|(flag, _)| spec.flags.has(*flag)).for_each(|(_, word)| said += word);
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_said_in_words() {
        let found: Vec<String> = specs().iter().map(words).collect();
        let expected = [
            "a cache of 8-byte objects",
            "a cache of 192-byte objects",
            "a cache of 700-byte objects, aligned to 64 bytes",
            "a cache of 256-byte objects, with sheaves of 32 objects",
            "a cache of 1000-byte objects, typesafe by RCU",
            "a cache of 4096-byte objects, aligned to cache lines, with a constructor",
        ];
        assert_eq!(found, expected);
    }
}
