//! Machines of records: what `config.csv` and `facts.start` say, and what is modelled then.

use slablab_experiment::Pulse;
use slablab_experiment::pressure::config::Configs;
use slablab_experiment::pressure::guests::{Facts, GUESTS};
use slablab_experiment::pressure::runs::Runs;
use slablab_experiment::pressure::scenario::Settings;
use slablab_experiment::pressure::suite::{MACHINES, Wanted, model};
use std::collections::BTreeMap;
use std::path::Path;

/// The guest of the kernel of `vm`: the last one that fits, as `vm@6.12` begins like `vm@6.1`.
fn guest_of(vm: &str) -> &'static Facts {
    let guest = GUESTS.iter().rfind(|guest| vm.starts_with(&format!("vm@6.{}", guest.kernel[1])));
    guest.expect("a guest of this kernel")
}

/// The bundled table says what the built-in guests are: nothing is known of them that the table has not. What
/// is free at the start is that of all scenarios together.
#[test]
fn the_table_gives_the_guests_that_are_built_in() {
    let real = Runs::bundled();
    let mut ranges: BTreeMap<&str, [[u64; 2]; 2]> = BTreeMap::new();
    for (scenario, machines) in &real.scenarios {
        for machine in machines.keys() {
            let found = real.configs.of(scenario, machine, &Settings::default()).unwrap().expect("a row");
            let [_, vm, engine] = MACHINES.into_iter().find(|known| known[0] == machine).unwrap();
            assert_eq!(found.names, Some([vm, engine].map(str::to_string)), "{scenario} {machine}");
            let guest = guest_of(vm);
            let Facts { free, cached, .. } = found.facts;
            let all = ranges.entry(vm).or_insert([free, cached]);
            for (all, one) in all.iter_mut().zip([free, cached]) {
                *all = [all[0].min(one[0]), all[1].max(one[1])];
            }
            let facts = Facts { free: guest.free, cached: guest.cached, ..found.facts };
            assert_eq!(&facts, guest, "{scenario} {machine}");
            let expected =
                Settings { swap_pages: Some(98_303), read_ahead_kib: Some(128), ..Settings::default() };
            assert_eq!(found.settings, expected, "{scenario} {machine}");
        }
    }
    for guest in &GUESTS {
        let of = |(vm, _): &(&&str, &[[u64; 2]; 2])| guest_of(vm).kernel == guest.kernel;
        let of_kernel: Vec<_> = ranges.iter().filter(of).map(|(_, ranges)| ranges).collect();
        if of_kernel.is_empty() {
            continue;
        }
        let whole = |which: usize| {
            let least = of_kernel.iter().map(|ranges| ranges[which][0]).min();
            let most = of_kernel.iter().map(|ranges| ranges[which][1]).max();
            [least.unwrap(), most.unwrap()]
        };
        assert_eq!([whole(0), whole(1)], [guest.free, guest.cached], "{:?}", guest.kernel);
    }
}

/// What is free at the start scatters between the repeats of a scenario on a machine. Other scenarios and
/// other machines have other zones, and say nothing of it, although kernel and memory are the same.
#[test]
fn free_pages_are_those_of_the_same_scenario_and_machine() {
    let mut configs = Configs::default();
    let table = "run,MemTotal_kB,zone_free,release\n\
        a/box-r1,120000,27800,6.1.0\na/box-r2,120000,27900,6.1.0\n\
        b/box-r1,120000,23907,6.1.0\na/box-small-r1,120000,20000,6.1.0\n";
    configs.add_table(Path::new("config.csv"), table).unwrap();
    let check = |scenario: &str, machine: &str, expected: [u64; 2]| {
        let found = configs.of(scenario, machine, &Settings::default()).unwrap().expect("a machine");
        assert_eq!(found.facts.free, expected, "{scenario} {machine}");
    };
    check("a", "box", [27_800, 27_900]);
    check("b", "box", [23_907, 23_907]);
    check("a", "box-small", [20_000, 20_000]);
}

const FACTS: &str = "@facts start\nLinux (none) 6.12.9-test #1 SMP x86_64\n/proc/sys/vm/swappiness: 10 \n\
    /proc/sys/vm/dirty_ratio: 20 \n/sys/kernel/mm/lru_gen/enabled: 0x0003 \n/proc/sys/vm/min_free_kbytes: 1000 \n\
    /sys/block/vda/queue/read_ahead_kb: 64 \n/sys/block/vdb/queue/rotational: 0 \n\
    <//proc/meminfo>\nSwapTotal:       40000 kB\n</proc/meminfo>\n</proc/zoneinfo>\nNode 0, zone    DMA\n  pages free 0\n\
    managed 0\nNode 0, zone    DMA32\n  pages free     15000\n        managed  20000\n  pagesets\n    cpu: 0\n\
    count: 100\n    cpu: 1\n    count: 20\n<//proc/zoneinfo>\n";

/// Without a row: `facts.start` alone. A row goes before it.
#[test]
fn facts_say_what_no_row_says() {
    let mut configs = Configs::default();
    configs.add_facts("mine/box-r1", Path::new("facts.start"), FACTS.as_bytes()).unwrap();
    let of = |configs: &Configs| configs.of("mine", "box", &Settings::default()).unwrap().expect("a machine");
    let found = of(&configs);
    assert_eq!(found.names, Some(["vm@6.12,lru_gen,skips_tables=no".into(), "slub@6.12".into()]));
    assert_eq!((found.facts.managed, found.facts.free, found.facts.cpus), (20_000, [15_000; 2], 2));
    assert_eq!(found.facts.min_free_kib, 1_000);
    let expected = Settings {
        swap_is_flash: true,
        swap_pages: Some(10_000),
        read_ahead_kib: Some(64),
        set: vec![("/proc/sys/vm/swappiness", 10)],
        ..Settings::default()
    };
    assert_eq!(found.settings, expected);
    let table = "run,zone_free,swappiness,release\nmine/box-r1,14000,,\nmine/box-r2,14500,70,6.12.9-test\n";
    configs.add_table(Path::new("config.csv"), table).unwrap();
    configs.add_facts("mine/box-r2", Path::new("facts.start"), FACTS.as_bytes()).unwrap();
    let found = of(&configs);
    assert_eq!((found.facts.free, found.settings.set), ([14_000, 14_500], expected.set));
    assert!(configs.of("mine", "other", &Settings::default()).unwrap().is_none());
}

#[test]
fn bad_tables_name_their_line() {
    for (table, part) in [
        ("scenario,zone_free\n", "config.csv: line 1: expected a column `run`"),
        ("run,zone_free\na/b-r1\n", "config.csv: line 2: expected 2 fields, found 1"),
        ("run,zone_free\n\na/b-r1,many\n", "line 3: zone_free: expected a number, found \"many\""),
    ] {
        let error = Configs::default().add_table(Path::new("config.csv"), table).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let mut configs = Configs::default();
    configs.add_table(Path::new("c"), "run,MemTotal_kB,zone_free,release\na/b-r1,100,10,6.1.0\n").unwrap();
    let error = configs.of("a", "b", &Settings::default()).unwrap_err().to_string();
    assert!(error.contains("c: line 2: managed=25: expected 1024"), "{error}");
}

/// A folder whose machine has half of the memory and a name of its own is modelled with that memory; and one
/// whose `.sh` alone says the memory.
#[test]
fn a_folder_of_another_memory_size_is_judged_with_it() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pressure-config");
    let _ = std::fs::remove_dir_all(&folder);
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let record = Runs::bundled().scenarios["uniswap"]["61-classic"][0][""].write();
    write("scen/mine.t", "anon a 40\nphase fill\nacc x1 a seq m w\n");
    write("scen/sized.t", "anon a 40\nphase fill\nacc x1 a seq m w\n");
    write("scen/sized.sh", "MEM=96M\n");
    write("mine/box-r1/rec", &record);
    write("sized/612-classic-r1/rec", &record);
    write("config.csv", "run,zone_managed,zone_free,release,lru_gen\nmine/box-r1,14000,8000,6.1.0,0x0000\n");
    let real = Runs::open(&folder).unwrap();
    let scripts = folder.join("scen");
    let (machine, pulse) = (Path::new("vm-guest"), Pulse::default());
    let wanted = Wanted { scripts: &scripts, machine, seeds: 1, threads: Some(1), force: false, pulse };
    let modelled = model(&real, &wanted, &|_, _| {}).unwrap();
    assert_eq!(modelled.failed, Vec::<String>::new());
    let run = |scenario: &str, machine: &str| modelled.runs.scenarios[scenario][machine][0][""].clone();
    let swapped = |scenario: &str, machine: &str| run(scenario, machine).phases[0].delta("pswpout");
    // 10,240 pages into 8,000 free ones, and into some 4,100 (28,400 of 192 MiB, 24,192 fewer).
    assert!((2_200..5_000).contains(&swapped("mine", "box")), "{}", swapped("mine", "box"));
    assert!((6_100..9_500).contains(&swapped("sized", "612-classic")), "{}", swapped("sized", "612-classic"));
}
