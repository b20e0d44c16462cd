//! What tables of workloads name is there: costs of machines, disks, policies of page replacement.

use slablab_experiment::workload::{Kind, Size, Valued, Values};
use slablab_experiment::workloads::WORKLOADS;
use slablab_machines::{COSTS, disks};
use slablab_model::MachineSpec;
use slablab_sim::programs::program::OF_TASKS;
use slablab_vm::preset::Preset;

/// The words of all workloads' parameters of this name, with the workload.
fn words(name: &str) -> Vec<(&'static str, &'static str)> {
    let parameters = WORKLOADS.iter().flat_map(|workload| {
        let named = workload.parameters.iter().filter(|parameter| parameter.name == name);
        named.map(|parameter| (workload.name, parameter.kind))
    });
    let words = parameters.flat_map(|(workload, kind)| match kind {
        Kind::Word(words) => words.iter().map(move |word| (workload, *word)),
        kind => panic!("{workload}: {name} is a word: {kind:?}"),
    });
    words.collect()
}

#[test]
fn policies_are_presets_and_disks_are_installed() {
    let (policies, named) = (words("vm"), words("disk"));
    assert_eq!([policies.len(), named.len()], [4 * 10 + 4 + 8, 6 * 2]);
    for (workload, word) in policies {
        let preset = Preset::parse(word).unwrap_or_else(|bad| panic!("{workload}: {word}: {bad}"));
        let releases: &[[u32; 2]] = match workload {
            "tmpfs-swap" => &[[2, 6]],
            "ycsb" => &[[6, 18], [7, 2]],
            _ => &[[2, 4]],
        };
        let [major, minor, _] = preset.kernel;
        assert!(releases.contains(&[major, minor]), "{workload}: {word}");
    }
    let installed = disks::installed();
    for (workload, word) in named {
        assert!(installed.iter().any(|disk| disk.name == word), "{workload}: {word}");
    }
}

#[test]
fn costs_of_tasks_are_costs_of_machines() {
    for name in OF_TASKS {
        assert!(COSTS.iter().any(|cost| cost.name == *name), "{name}");
    }
}

/// Every workload reads its defaults of every size, and none contradicts a large machine.
#[test]
fn defaults_are_read_and_agree() {
    let machine = MachineSpec::uniform(64, 2, 1 << 40);
    for workload in WORKLOADS.iter().filter(|workload| !workload.needs_file()) {
        for size in [Size::Quick, Size::Standard, Size::Full] {
            let defaults = workload.parameters.iter().map(|one| (one.name, one.default(size)));
            let values = Values(defaults.collect());
            assert_eq!((workload.check)(&machine, &values), Ok(()), "{} {size:?}", workload.name);
            assert!((workload.estimate)(&machine, &values).host_ns > 0, "{} {size:?}", workload.name);
        }
    }
}
