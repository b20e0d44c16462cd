//! What must hold between the counters of every run, over random scripts on small machines.

use slablab_experiment::pressure::run::{Options, Run};
use slablab_readers::vmrecord::{Phase, Record};
use slablab_trace::script::Script;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// Steele, Lea, Flood 2014: splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % n
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }
}

const DISTRIBUTIONS: [&str; 8] =
    ["seq", "rev", "uni", "stride:16", "stride:7", "part:10:3", "zipf:100", "zipf:150"];
const OBJECTS: [&str; 4] = ["a", "b", "f", "s"];
const OTHERS: [&str; 12] = [
    "punch a 8 3",
    "punch s 4 1",
    "unmap f",
    "unmap b",
    "sync",
    "drop",
    "sleep 200",
    "stat /data/tree 20 40 1",
    "msg 200 4040",
    "msgfree 3",
    "set /proc/sys/vm/swappiness 200",
    "set /proc/sys/vm/page-cluster 0",
];

/// One access: anonymous memory through the mapping, files both ways.
fn access(random: &mut Random) -> String {
    let object = random.one(&OBJECTS);
    let mode = if matches!(object, "a" | "b") { "m" } else { random.one(&["m", "s"]) };
    format!("{object} {} {mode} {}", random.one(&DISTRIBUTIONS), random.one(&["r", "w"]))
}

fn script(seed: u64) -> String {
    let mut random = Random(seed);
    let mut text = format!("seed {seed}\nrecslab 1\n");
    for (kind, name) in ["anon", "anon", "file", "shm"].iter().zip(OBJECTS) {
        writeln!(text, "{kind} {name} {}", 1 + random.below(9)).unwrap();
    }
    for phase in 0..6 {
        writeln!(text, "phase p{phase}").unwrap();
        for _ in 0..2 {
            match random.below(4) {
                0 => writeln!(text, "acc x1 {}", access(&mut random)),
                1 => writeln!(text, "acc {} {}", 500 + random.below(2_500), access(&mut random)),
                2 => writeln!(text, "inter 400 3 {} 2 {}", access(&mut random), access(&mut random)),
                _ => writeln!(text, "{}", random.one(&OTHERS)),
            }
            .unwrap();
        }
    }
    text
}

fn run(vm: &str, text: &str, free: u64, seed: u64) -> Run {
    let engine = if vm.starts_with("vm@6.1,") || vm == "vm@6.1" { "slub@6.1" } else { "slub@6.12" };
    let set = [format!("free={free}"), format!("managed={}", free + 1_500), "min_free_kib=400".into()];
    let options = Options::of(vm, engine, Path::new("vm-guest"), &set).expect("options");
    let script = Script::parse("random.t", text, &mut |_| Err(String::new())).expect(text);
    options.run(&Arc::new(script), seed).unwrap_or_else(|why| panic!("{vm}, {text}: {why}"))
}

/// The value of a counter at a phase's end.
fn value(phase: &Phase, name: &str) -> i64 {
    phase.vmstat.iter().find(|counter| counter.name == name).map_or(0, |counter| counter.value)
}

/// A line of meminfo in pages.
fn meminfo(phase: &Phase, name: &str) -> i64 {
    let text = &phase.sections.iter().find(|section| section.name == "meminfo").expect("meminfo").text;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<i64>().ok());
    kib.unwrap_or_else(|| panic!("no {name} in {text}")) / 4
}

/// Sectors of a disk that were read and written.
fn sectors(phase: &Phase, name: &str) -> [i64; 2] {
    let disk = phase.disks.iter().find(|disk| disk.name == name).expect("a disk");
    [disk.stat[2], disk.stat[6]]
}

/// Each check says what it compares.
fn check(at: &str, phase: &Phase) {
    let of = |name: &str| phase.delta(name);
    let sum = |names: [&str; 2]| of(names[0]) + of(names[1]);
    let equal = |what: &str, one: i64, other: i64| assert_eq!(one, other, "{what}: {at}");
    let most = |what: &str, one: i64, other: i64| assert!(one <= other, "{what}: {one} > {other}: {at}");
    equal(
        "stolen, by who and what",
        sum(["pgsteal_kswapd", "pgsteal_direct"]),
        sum(["pgsteal_anon", "pgsteal_file"]),
    );
    equal(
        "scanned, by who and what",
        sum(["pgscan_kswapd", "pgscan_direct"]),
        sum(["pgscan_anon", "pgscan_file"]),
    );
    for who in ["anon", "file"] {
        most("stolen of scanned", of(&format!("pgsteal_{who}")), of(&format!("pgscan_{who}")));
        // 6.1's generations count protected pages as activated, and no refaults that are not recent.
        most(
            "restored of refaulted",
            of(&format!("workingset_restore_{who}")),
            of(&format!("workingset_refault_{who}")),
        );
    }
    most("refaults of swap-ins", of("workingset_refault_anon"), of("pswpin"));
    most("hits of read-ahead", value(phase, "swap_ra_hit"), value(phase, "swap_ra"));
    most("read-ahead of swap-ins", of("swap_ra"), of("pswpin"));
    let [swap, data] = ["swap", "vda"].map(|name| sectors(phase, name));
    // A read is counted when it is asked for, a disk's sectors when it ends.
    most("swap read", swap[0], 8 * value(phase, "pswpin"));
    most("read", swap[0] + data[0], 2 * value(phase, "pgpgin"));
    most("written to swap", 8 * of("pswpout") - swap[1], 8 * value(phase, "nr_writeback"));
    equal("faults", of("pgfault"), phase.rusage.minflt + phase.rusage.majflt);
    most("major faults", of("pgmajfault"), phase.rusage.majflt);
    equal("faults that read", phase.objects.iter().map(|one| one.majflt as i64).sum(), phase.rusage.majflt);
    equal("blocks", 8 * (of("pgpgin") / 4), phase.rusage.inblock);
    most("swapped of slots", swapped(phase), meminfo(phase, "SwapTotal") - meminfo(phase, "SwapFree"));
    // A page that was only read is mapped to the page of zeros, which is no anonymous page.
    most("anonymous pages", meminfo(phase, "AnonPages"), mapped(phase));
    most("on lists", lists(phase), meminfo(phase, "MemTotal") - value(phase, "nr_free_pages"));
    equal("free", value(phase, "nr_free_pages"), meminfo(phase, "MemFree"));
}

fn lists(phase: &Phase) -> i64 {
    let names = ["nr_inactive_anon", "nr_active_anon", "nr_inactive_file", "nr_active_file"];
    names.iter().map(|name| value(phase, name)).sum()
}

fn anonymous(phase: &Phase, count: fn([i64; 2]) -> i64) -> i64 {
    let anonymous = phase.residency.iter().filter(|one| matches!(one.name.as_str(), "a" | "b"));
    let states = anonymous.map(|one| {
        let count = |state| i64::from(one.pages.count(state));
        [count(slablab_readers::vmrecord::State::Present), count(slablab_readers::vmrecord::State::Swapped)]
    });
    states.map(count).sum()
}

fn swapped(phase: &Phase) -> i64 {
    anonymous(phase, |[_, swapped]| swapped)
}

fn mapped(phase: &Phase) -> i64 {
    anonymous(phase, |[present, _]| present)
}

const VMS: [&str; 4] = ["vm@6.1", "vm@6.1,lru_gen", "vm@6.12", "vm@6.12,lru_gen"];

#[test]
fn counters_keep_their_identities() {
    let rounds = std::env::var("SLABLAB_LONG").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    let (mut swaps, mut steals) = (0, 0);
    for seed in 0..8 * rounds {
        let text = script(seed);
        for vm in VMS {
            let run = run(vm, &text, 2_500, seed);
            assert!(run.killed.is_empty(), "{vm}, {text}: a process was killed");
            for phase in &record(&run).phases {
                check(&format!("{vm}, seed {seed}, {}: {text}", phase.name), phase);
            }
            let all = &record(&run).phases;
            swaps += all.iter().map(|phase| phase.delta("pswpin")).sum::<i64>();
            steals += all.iter().map(|phase| phase.delta("pgsteal_file")).sum::<i64>();
        }
    }
    assert!(
        swaps > 5_000 && steals > 5_000,
        "no pressure: {swaps} pages swapped in, {steals} of files freed"
    );
}

fn record(run: &Run) -> &Record {
    &run.records[0].1
}

/// With memory enough each page that is accessed is read once, and nothing is freed: whatever the policy.
#[test]
fn with_memory_enough_only_first_accesses_read() {
    let text = "seed 3\nanon a 4\nfile f 8\nfile g 8\nshm s 4\nphase new\nacc x1 a seq m w\nacc x1 f seq s r\n\
        acc x1 s seq s w\nacc x1 g rev s w\nphase again\nacc 5000 f uni s r\nacc 5000 f zipf:100 m r\n\
        acc 5000 a uni m w\nacc 5000 s uni s r\nacc 3000 g uni m w\nacc x1 g seq s r\n";
    for vm in VMS {
        let run = run(vm, text, 12_000, 1);
        let [new, again] = &record(&run).phases[..] else { panic!("two phases") };
        assert_eq!((new.delta("pgpgin"), again.delta("pgpgin")), (4 * 2_048, 0), "{vm}");
        for name in ["pgscan_kswapd", "pgscan_direct", "pswpout", "workingset_refault_file", "pgmajfault"] {
            assert_eq!(value(again, name), 0, "{vm}: {name}");
        }
        // 1,024 pages of a, none of s, which system calls alone reach.
        assert_eq!(new.rusage.minflt, 1_024, "{vm}");
        assert!(
            again
                .residency
                .iter()
                .all(|one| one.pages.count(slablab_readers::vmrecord::State::Present) == one.pages.pages())
        );
    }
}
