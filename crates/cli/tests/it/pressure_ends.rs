//! Ends of memory: what is printed, and the exit codes. And logs of programs that are no scripts.

use crate::common::{check_error, check_order, folder, slablab, text};
use std::path::Path;

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("a file");
    path.to_str().expect("UTF-8").to_string()
}

/// An experiment of one cell for each of `parameters`' combinations.
fn experiment(folder: &Path, name: &str, [machine, engine, workload]: [&str; 3], parameters: &str) -> String {
    let text = format!(
        "name = \"x\"\ntitle = \"t\"\nmachines = [\"{machine}\"]\nengines = [\"{engine}\"]\nworkload = \
         \"{workload}\"\nsize = \"quick\"\nrepeats = 2\nseed = 1\n[parameters]\n{parameters}\n"
    );
    write(folder, name, &text)
}

const APPS: [&str; 3] = ["laptop", "slab@2.4", "apps"];

/// A disk that takes 70 s for a request: no page is freed for a minute. Who waits for what is a result, and
/// the other runs go on.
#[test]
fn a_livelock_says_who_waits_for_what() {
    let folder = folder("livelock");
    let machine = text(&slablab(&["machines"], &["vm-guest"]).stdout);
    let usual = "request = { ms = 0.790, source = \"uniswap";
    assert!(machine.contains(usual), "{machine}");
    let slow = machine.replace(usual, "request = { ms = 70000, source = \"uniswap");
    let slow = slow
        .replace("request = { ms = 0.790, source = \"assumed", "request = { ms = 70000, source = \"assumed");
    let slow = write(&folder, "slow.toml", &slow.replace("name = \"vm-guest\"", "name = \"slow\""));
    let writes = "file f 64\nanon a 12\nphase fill\nacc x1 a seq m w\nacc x1 f seq s w\n";
    let script = write(&folder, "writes.t", writes);
    let memory = ["--set", "managed=4096", "--set", "free=4000", "--machine", &slow, "--seeds", "2"];
    let said = slablab(&["pressure", "run", &script, "--vm", "vm@2.4.9-ac14"], &memory);
    let words = [
        "vm@2.4.9-ac14, seed 1: livelock: reclaim freed no page for 6",
        " seconds; ",
        " tasks:",
        "on CPU 0: for ",
        "vm@2.4.9-ac14, seed 2: livelock",
    ];
    check_order(&[], &text(&said.stderr), &words);
    assert_eq!((said.status.code(), said.stdout.len()), (Some(3), 0));
}

/// Two builds in too little swap: the cell has no numbers, and the answer says what each cache has.
#[test]
fn an_experiment_out_of_memory_is_a_result() {
    let folder = folder("run-oom");
    let builds = ["laptop", "slub@2.6.29", "tmpfs-swap"];
    let small = experiment(&folder, "small.toml", builds, "swap_mib = 64\npart = 32\niterations = 1");
    let said = slablab(&["run", &small, "--threads", "1"], &[]);
    assert_eq!(said.status.code(), Some(3), "{}", text(&said.stderr));
    let words = ["out of memory after ", " allocations and frees", "mm_struct", " objects ", " KiB"];
    check_order(&[], &text(&said.stdout), &words);
    let said = slablab(&["run", &small, "--threads", "1", "--format", "json"], &[]);
    check_order(&[], &text(&said.stdout), &["\"failed\"", "\"kind\": \"out of memory\""]);
    // What was until then is logged.
    let said = slablab(&["run", &small, "--vmstat", "5"], &[]);
    assert_eq!(said.status.code(), Some(3));
    check_order(&[], &text(&said.stdout), &["procs -----------memory----------", " r  b   swpd   free"]);
    check_order(&[], &text(&said.stderr), &["cell 1: out of memory after"]);
}

/// The logs of a program under page replacement: those of scripts, of one repeat of a cell.
#[test]
fn programs_have_logs() {
    let folder = folder("run-logs");
    let apps =
        experiment(&folder, "apps.toml", APPS, "vm = [\"vm@2.4.10\", \"vm@2.4.9-ac14\"]\nfiles = 2000");
    let log = |args: &[&str]| {
        let said = slablab(&[&["run", &apps][..], args].concat(), &[]);
        assert_eq!(said.status.code(), Some(0), "{args:?}: {}", text(&said.stderr));
        text(&said.stdout)
    };
    let vmstat = log(&["--vmstat", "2"]);
    let heads: Vec<&str> = vmstat.lines().take(2).collect();
    assert_eq!(heads[0], "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----");
    assert_eq!(heads[1], " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st");
    let rows = vmstat.lines().skip(2);
    let numbers = |line: &str| line.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    let rows: Vec<Vec<u64>> = rows.map(numbers).collect();
    assert!(rows.len() > 20 && rows.iter().all(|row| row.len() == 17), "{vmstat}");
    assert!(
        rows.iter().any(|row| row[7] > 0) && rows.iter().any(|row| row[15] > 0),
        "nothing is swapped: {vmstat}"
    );
    let other = log(&["--vmstat", "2", "--cell", "2"]);
    assert_ne!(other, vmstat);
    assert_eq!(log(&["--vmstat", "2"]), vmstat);
    let meminfo = log(&["--meminfo"]);
    check_order(&[], &meminfo, &["s: end of phase boot\nMemTotal:", "end of phase slocate", "PageTables:"]);
    assert!(log(&["--meminfo", "10"]).contains("s: sample\n"));
    // Daemons of 2 MB, some of which run from time to time.
    let processes = log(&["--ps"]);
    check_order(&[], &processes, &["VSZ-RSS", "boot", "daemon", " 2048 ", "boot", "X"]);
    let daemons = processes.lines().filter(|line| {
        line.trim_start().starts_with("boot") && (line.contains(" daemon ") || line.contains(" cron "))
    });
    assert_eq!(daemons.count(), 12, "{processes}");
    check_error(&["run"], &[&apps, "--ps", "--format", "csv"], &["expected no --format"]);
    check_error(&["run"], &[&apps, "--ps", "--cell", "3"], &["--cell 3: expected 1 to 2"]);
    check_error(&["run"], &[&apps, "--vmstat", "x"], &["expected seconds from 0.001"]);
    let pairs = experiment(&folder, "micro.toml", ["laptop", "slub@6.1", "micro"], "");
    check_error(&["run"], &[&pairs, "--vmstat"], &["the workload micro has no page replacement"]);
}

/// Programs under page replacement say the same on any number of threads.
#[test]
fn programs_are_the_same_on_any_number_of_threads() {
    let folder = folder("run-threads");
    let both = "vm = [\"vm@2.4.10\", \"vm@2.4.9-ac14\"]\nfiles = 2000\nmusic = [\"no\", \"yes\"]";
    let apps = experiment(&folder, "apps.toml", APPS, both);
    let builds = ["laptop", "slub@2.6.29", "tmpfs-swap"];
    let builds = experiment(&folder, "builds.toml", builds, "part = 32\niterations = 1\njobs = [1, 2]");
    for given in [&apps, &builds] {
        let run = |threads: &str| {
            let said = slablab(&["run", given, "--format", "json", "--threads", threads], &[]);
            assert_eq!(said.status.code(), Some(0), "{}", text(&said.stderr));
            text(&said.stdout)
        };
        let one = run("1");
        assert!(one.contains("swapped_out_kib") || one.contains("swap_outs"), "{one}");
        assert!(run("8") == one, "{given}");
    }
}
