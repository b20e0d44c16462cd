//! The machines that come with the program: whole, true to their mails, and within what the model can do.

use slablab_machines::{INSTALLED, Machine, MachineFile, find, list};
use slablab_model::{Machine as Model, MachineSpec};
use std::path::Path;

fn machine(name: &str) -> Machine {
    find(Path::new(name)).expect(name).machine().expect(name)
}

/// A machine as `CPUs, page, nodes with memory, parts (cores, caches, sockets), memoryless_nodes`.
fn shape(name: &str) -> (usize, u64, Vec<usize>, [usize; 3], bool) {
    let machine = machine(name);
    let MachineSpec { cpu_node, nodes, page_shift, memoryless_nodes, .. } = machine.spec;
    let with_memory = (0..nodes.len()).filter(|node| nodes[*node].bytes > 0).collect();
    let count = |parts: &[u16]| parts.iter().collect::<std::collections::BTreeSet<_>>().len();
    let parts = [&machine.hardware.core, &machine.hardware.llc, &machine.hardware.socket].map(|of| count(of));
    (cpu_node.len(), 1 << page_shift, with_memory, parts, memoryless_nodes)
}

#[test]
fn machines_are_those_of_the_mails() {
    let check = |name: &str, cpus, page, memory: &[usize], parts, memoryless_nodes| {
        assert_eq!(shape(name), (cpus, page, memory.to_vec(), parts, memoryless_nodes), "{name}");
    };
    check("barcelona", 8, 4096, &[0, 1], [8, 2, 2], false);
    check("tigerton", 16, 4096, &[0], [16, 8, 1], false);
    check("stoakley", 8, 4096, &[0], [8, 4, 1], false);
    check("x86-2way", 2, 4096, &[0], [2, 1, 1], false);
    check("rx8640-clm100", 64, 16384, &[0, 1, 2, 3, 4], [32, 32, 4], true);
    check("rx8640-clm0", 64, 16384, &[4], [32, 32, 4], true);
    check("power16", 16, 65536, &[0], [2, 1, 1], true);
    check("power160", 160, 65536, &[0, 1], [20, 2, 2], true);
    check("numa8", 64, 4096, &[0, 4], [32, 8, 2], false);
    check("numa8-full", 64, 4096, &[0, 1, 2, 3, 4, 5, 6, 7], [32, 8, 2], false);
    check("i7-4790k", 8, 4096, &[0], [4, 1, 1], false);
    check("ryzen5700", 16, 4096, &[0], [8, 1, 1], false);
    check("laptop", 8, 4096, &[0], [4, 1, 1], false);
    check("spr224", 224, 4096, &[0, 1], [112, 2, 2], false);
    check("graviton3", 64, 4096, &[0], [64, 1, 1], true);
    check("icelake128", 128, 4096, &[0, 1], [64, 2, 2], false);
    check("milan192", 192, 4096, &[0, 1], [96, 12, 2], false);
    check("arm224", 224, 4096, &[0, 1], [56, 2, 2], true);
    check("turin512", 512, 4096, &[0, 1], [256, 32, 2], false);
    check("kulesa-2001", 1, 4096, &[0], [1, 1, 1], false);
    check("vm-guest", 1, 4096, &[0], [1, 1, 1], false);
    assert_eq!(INSTALLED.len(), 21, "a machine is not in this test");
}

/// The CPUs of the machine of 2026 are numbered as its report has them.
#[test]
fn numa8_is_numbered_as_reported() {
    let machine = machine("numa8");
    for cpu in 0..64 {
        assert_eq!(machine.spec.cpu_node[cpu] as usize, cpu % 32 / 4, "CPU {cpu}");
        assert_eq!(machine.hardware.core[cpu], machine.hardware.core[(cpu + 32) % 64], "siblings of {cpu}");
        assert_eq!(machine.hardware.socket[cpu] as usize, cpu % 32 / 16, "CPU {cpu}");
    }
}

#[test]
fn installed_machines_are_whole() {
    for installed in INSTALLED {
        let name = installed.name;
        let file = MachineFile::parse(installed.text).expect(name);
        assert_eq!(file.name.as_deref(), Some(name));
        assert!(file.about.is_some() && installed.text.starts_with('#'), "{name} says what it is");
        let machine = file.machine().expect(name);
        Model::new(machine.spec.clone()).expect(name);
        let costs = &machine.hardware.costs;
        // Every distance on the machine has a price of its own.
        let listed = |prices: &[(u32, u64)], distance| prices.iter().any(|(at, _)| *at == distance);
        for (from, row) in machine.spec.distance.iter().enumerate() {
            for (to, distance) in row.iter().enumerate().filter(|(to, _)| machine.spec.nodes[*to].bytes > 0) {
                let on_from = machine.spec.cpu_node.iter().any(|node| *node as usize == from);
                assert!(!on_from || listed(&costs.memory, *distance), "{name}: memory from {from} to {to}");
            }
        }
        // What is farther is dearer.
        assert!(costs.l1 <= costs.l2 && costs.l2 <= costs.llc && costs.llc <= costs.memory[0].1, "{name}");
        assert!(costs.transfer_core <= costs.transfer_llc, "{name}");
        assert!(costs.transfer_llc <= costs.transfer[0].1, "{name}");
        for prices in [&costs.transfer, &costs.memory] {
            assert!(prices.is_sorted_by_key(|(_, price)| *price), "{name}: {prices:?}");
        }
        assert!(costs.local_exchange <= costs.locked_exchange, "{name}");
        assert!(costs.switch_thread <= costs.switch_mm && costs.wake_local <= costs.wake_remote, "{name}");
        assert!(machine.priced.assumed().count() > 0, "{name}");
    }
}

#[test]
fn a_name_that_is_none_is_answered_with_the_nearest() {
    let check = |name: &str, expected: &str| {
        let said = find(Path::new(name)).expect_err(name).to_string();
        assert!(said.contains(expected), "{name}: {said}");
    };
    check(
        "nuna8",
        "nuna8: no file and no installed machine (slablab list machines lists them); near it: numa8",
    );
    check("power", "near it: power16, power160");
    check("zzz", "no installed machine (slablab list machines lists them)");
    check("./numa8", "./numa8: No such file");
    check("numa8.toml", "No such file");
}

#[test]
fn the_list_has_every_machine_in_every_format() {
    let answer = list::machines_answer();
    let (table, csv, json) = (answer.text(false), answer.csv().expect("rows"), answer.json());
    assert!(answer.sentence().starts_with(&format!("{} machines come with", INSTALLED.len())), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert_eq!(csv.lines().count(), INSTALLED.len() + 1);
    assert_eq!(json["machines"].as_array().map(Vec::len), Some(INSTALLED.len()));
    for installed in INSTALLED {
        assert!(table.contains(installed.name) && csv.contains(installed.name), "{}", installed.name);
    }
}

/// The disks that machines have, each as `kind, GiB or MiB, tags`, and that every number has a source.
#[test]
fn installed_disks_are_whole() {
    use slablab_model::disk::DiskKind;
    let disks = slablab_machines::disks::installed();
    let names: Vec<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
    let expected = [
        "ide-7200-2001",
        "laptop-5400-2009",
        "nvme",
        "sata-7200-2009",
        "scsi-10k-2001",
        "scsi-15k-2009",
        "sd-usb-2009",
        "virtio",
    ];
    assert_eq!(names, expected);
    for disk in &disks {
        let numbers = match &disk.disk.kind {
            DiskKind::Rotating(_) => 14,
            DiskKind::Card(_) => 9,
            DiskKind::Flash(_) => 6,
            DiskKind::Fixed(_) => 4,
        };
        assert_eq!(disk.sources.len(), numbers, "{}", disk.name);
    }
    let check = |name: &str, disk: &str, bytes, depth, rotational| {
        let machine = machine(name);
        let disk = machine.disk(disk).unwrap_or_else(|| panic!("{name} has no disk {disk}"));
        assert_eq!((disk.bytes, disk.depth, disk.rotational), (bytes, depth, rotational), "{name}");
    };
    check("stoakley", "swap", 419 << 30, 32, true);
    check("kulesa-2001", "data", 28 << 30, 1, true);
    check("vm-guest", "swap", 384 << 20, 1, true);
}
