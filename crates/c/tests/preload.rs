//! The library preloaded into programs that were not built for it.
//!
//! The programs in C and C++ beside this file are built by the system's compilers and run with the library
//! preloaded, once per engine and kind of slots. A machine that builds Rust has a compiler for C. Without one
//! for C++ the test of C++ is skipped, unless `SLABLAB_CXX_REQUIRED` is set, as in CI.

mod library;

use library::ENGINES;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

const SLOTS: [&str; 2] = ["thread", "cpu"];

/// The library's message if its heap cannot start.
const NO_HEAP: &str = "slablab: cannot reserve address space for the heap";

fn library() -> PathBuf {
    library::folder().join("libslablab.so")
}

/// Builds a program. Each test has its own, because tests run in parallel.
fn built(compiler: &str, source: &str, arguments: &[&str], name: &str) -> PathBuf {
    built_with(compiler, source, arguments, name, &[])
}

/// [`built`] with arguments that follow the source, as linkers want libraries.
fn built_with(compiler: &str, source: &str, arguments: &[&str], name: &str, libraries: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let done =
        Command::new(compiler).args(arguments).arg(&source).arg("-o").arg(&program).args(libraries).output();
    let done = done.unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    program
}

fn run(program: &Path, arguments: &[&str], engine: &str, slots: &str) -> Output {
    let mut command = Command::new(program);
    // A variable of `.ci/long`, which the library would report as unknown.
    command.env_remove("SLABLAB_LONG");
    command.args(arguments).env("LD_PRELOAD", library()).env("SLABLAB_ENGINE", engine);
    command.env("SLABLAB_SLOTS", slots);
    command.output().expect("it runs")
}

fn check(program: &Path, arguments: &[&str], says: &str) {
    check_with(ENGINES, program, arguments, says);
}

fn check_with(engines: &[&str], program: &Path, arguments: &[&str], says: &str) {
    for (engine, slots) in engines.iter().flat_map(|engine| SLOTS.map(|slots| (engine, slots))) {
        let done = run(program, arguments, engine, slots);
        let said = String::from_utf8_lossy(&done.stdout);
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(
            done.status.success() && said.contains(says),
            "{engine}, {slots}: {}\n{said}{errors}",
            done.status
        );
        // A program may make the library's start fail, which is reported.
        let unexpected = errors.lines().filter(|line| !line.starts_with(NO_HEAP)).count();
        assert_eq!(unexpected, 0, "{engine}, {slots}: {errors}");
        println!("{engine}, {slots}: {}", said.trim());
    }
}

/// The refusing area, half a MiB of zeros, is not part of the file.
#[test]
fn the_library_holds_no_zeros() {
    let bytes = std::fs::read(library()).expect("it was built");
    let longest = bytes.split(|byte| *byte != 0).map(<[u8]>::len).max().unwrap_or(0);
    assert!(longest < 1 << 17, "{longest} zeros in a row");
}

/// `ls` closes standard error before the library's function at exit runs.
#[test]
fn statistics_are_printed_after_standard_error_is_closed() {
    let mut command = Command::new("ls");
    command.arg("/").env("LD_PRELOAD", library()).env("SLABLAB_STATS", "1");
    let said = String::from_utf8(command.output().expect("ls runs").stderr).expect("text");
    assert!(said.starts_with("slablab: slub@7.1, a slot per thread"), "{said}");
}

#[test]
fn the_interface_of_c_and_posix() {
    let program = built("cc", "api.c", &["-std=gnu11", "-O1", "-Wall", "-pthread"], "api");
    check(&program, &["40"], "all holds");
}

#[test]
fn addresses_are_aligned_as_asked() {
    let program = built("cc", "aligned.c", &["-std=gnu11", "-O1", "-Wall"], "aligned");
    check_with(ENGINES, &program, &[], "all holds, ");
    check_with(&["slab@2.4", "slab@2.6.29", "slqb@2009-01"], &program, &[], "all holds, ");
}

#[test]
fn calls_that_succeed_leave_errno() {
    let program = built("cc", "errno.c", &["-std=gnu11", "-O1", "-Wall", "-pthread"], "errno");
    check(&program, &[], "all holds");
}

#[test]
fn short_threads_leave_nothing() {
    let program = built("cc", "threads.c", &["-std=gnu11", "-O1", "-Wall", "-pthread"], "threads");
    check(&program, &["rounds", "60"], "trimmed");
}

/// Threads that allocate little and sleep keep nothing, and leave nothing when they end.
#[test]
fn idle_threads_hold_little() {
    let program = built("cc", "idle_threads.c", &["-std=gnu11", "-O1", "-Wall", "-pthread"], "idle_threads");
    check_with(&plain(), &program, &["freed"], "KiB a thread that sleeps");
    check_with(&plain(), &program, &["live"], "KiB a thread that sleeps");
}

/// The engines with nothing around them.
fn plain() -> Vec<&'static str> {
    ENGINES.iter().copied().filter(|engine| !engine.contains(',')).collect()
}

/// Programs have few blocks of each large size.
#[test]
fn many_large_sizes_share_memory() {
    let program = built("cc", "sizes.c", &["-std=gnu11", "-O1", "-Wall", "-pthread"], "sizes");
    check_with(&["slub@7.1"], &program, &["1000"], "in a hundred");
}

/// Caches free the objects that they keep when the process grows.
#[test]
fn memory_stays_bounded_when_sizes_change() {
    let program = built("cc", "phases.c", &["-std=gnu11", "-O1", "-Wall"], "phases");
    check_with(&plain(), &program, &[], "of 40 MB live");
}

/// A process that frees what it used, and then makes no call, keeps little: by the default engine. Small,
/// medium and large blocks, in the order of their allocation and in another one.
#[test]
fn memory_goes_back_before_a_sleep() {
    let program = built("cc", "phases.c", &["-std=gnu11", "-O1", "-Wall"], "asleep");
    for (low, high) in [("200", "1000"), ("1000", "8000"), ("8000", "32000"), ("100000", "300000")] {
        for order in ["order", "mixed"] {
            check_with(&ENGINES[..1], &program, &[low, high, order], "MB stay");
        }
    }
}

/// A purge reaches what every thread keeps: at once, or when the thread allocates again.
#[test]
fn a_purge_is_of_all_threads() {
    let program =
        built_with("cc", "purge.c", &["-std=gnu11", "-O1", "-Wall", "-pthread"], "purge", &["-ldl"]);
    check_with(&["slub@7.1", "slab@6.1", "slub@7.1,harden=on"], &program, &["within"], "all holds");
}

/// Near the limit of its cgroup a process gives back what it keeps: it ends with 140 MB, of which it maps 120
/// itself, although it kept 97. A folder stands for the cgroup: a test may not make one.
#[test]
fn a_process_gives_back_before_its_limit() {
    let program = built("cc", "pressure.c", &["-std=gnu11", "-O1", "-Wall"], "limit-pressure");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("limit-cgroup");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("memory.max"), (140 << 20).to_string()).expect("a file");
    std::fs::write(folder.join("memory.current"), "0").expect("a file");
    let limit = format!("cgroup:{}", folder.display());
    for slots in SLOTS {
        let mut command = Command::new(&program);
        command.arg(&folder).env("LD_PRELOAD", library()).env("SLABLAB_SLOTS", slots);
        let done = command.env("SLABLAB_LIMIT", &limit).output().expect("it runs");
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        println!("{slots}: {}", said.trim());
        let numbers: Vec<u64> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
        assert!(done.status.success() && done.stderr.is_empty(), "{slots}: {done:?}");
        assert!(numbers[0] >= 90 && numbers[1] <= 140, "{slots}: {said}");
    }
}

/// Tasks of its cgroup wait for memory: a process far from its limit gives back at once what it keeps.
#[test]
fn a_process_gives_back_while_tasks_wait() {
    let program = built("cc", "pressure.c", &["-std=gnu11", "-O1", "-Wall"], "waits-pressure");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("waits-cgroup");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("memory.max"), (10u64 << 30).to_string()).expect("a file");
    std::fs::write(folder.join("memory.current"), "0").expect("a file");
    std::fs::write(folder.join("memory.pressure"), "some avg10=0.00 total=0\n").expect("a file");
    let mut command = Command::new(&program);
    command.arg(&folder).arg("waits").env("LD_PRELOAD", library());
    command.env("SLABLAB_LIMIT", format!("cgroup:{}", folder.display()));
    let done = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let numbers: Vec<u64> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
    assert!(numbers[0] >= 90 && numbers[2] < 30, "{said}");
}

/// A profiler by OpenTelemetry's contract sees sampled allocations and their frees, whose weights add up to
/// the bytes; after it, nothing is sampled.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_profiler_sees_what_is_allocated() {
    let program =
        built_with("cc", "probes.c", &["-std=gnu11", "-O1", "-Wall", "-pthread"], "probes", &["-lm"]);
    for (engine, slots) in
        ["slub@7.1", "slub@6.1"].iter().flat_map(|engine| SLOTS.map(|slots| (engine, slots)))
    {
        let mut command = Command::new(&program);
        command.arg(library()).env("SLABLAB_ENGINE", engine).env("SLABLAB_SLOTS", slots);
        let done = command.output().expect("it runs");
        let (said, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success() && errors.is_empty(), "{engine}, {slots}: {said}{errors}");
        println!("{engine}, {slots}: {said}");
    }
}

/// The helper thread, in processes that fork, execute another program, change their rights, handle signals,
/// and refuse new threads; and no helper where little is idle, and where no variable asks for one.
#[test]
fn a_helper_gives_back_while_the_process_sleeps() {
    let program = built("cc", "helper.c", &["-std=gnu11", "-O1", "-Wall", "-pthread"], "helper");
    let run = |what: &str, slots: &str, background: &str| {
        let mut command = Command::new(&program);
        command.arg(what).env("LD_PRELOAD", library()).env("SLABLAB_SLOTS", slots);
        command.env("SLABLAB_BACKGROUND", background).output().expect("it runs")
    };
    let cases = ["below", "sleeps", "forks", "execs", "rights", "sandbox"];
    for (what, slots) in cases.iter().flat_map(|what| SLOTS.map(|slots| (what, slots))) {
        let done = run(what, slots, "1");
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() && errors.is_empty(), "{what}, {slots}: {}\n{errors}", done.status);
    }
    let without = run("sleeps", "thread", "0");
    assert!(String::from_utf8_lossy(&without.stderr).contains("threads() == 2"), "there is no helper");
    let wrong = run("below", "thread", "2");
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("SLABLAB_BACKGROUND=2: expected 0 or 1"));
}

/// For a second; for a minute in `.ci/long`, where memory must not drift.
#[test]
fn blocks_keep_their_bytes_in_a_churn() {
    let program = built("cc", "churn.c", &["-std=gnu11", "-O1", "-Wall", "-pthread"], "churn");
    let seconds = if std::env::var_os("SLABLAB_LONG").is_some() { "60" } else { "1" };
    check(&program, &[seconds], "all holds");
}

/// The second word of a block that the library hands out is 0, whatever the freed memory held.
#[test]
fn blocks_begin_without_a_mark() {
    let program = built("cc", "unwritten.c", &["-std=gnu11", "-O1", "-Wall"], "unwritten");
    check_with(&plain(), &program, &[], "no mark came back");
}

/// Memory of freed blocks stays for the next ones, counts as free, and goes back after a while.
#[test]
fn freed_blocks_stay_for_a_while() {
    let program = built("cc", "blocks.c", &["-std=gnu11", "-O1", "-Wall"], "blocks");
    check_with(&ENGINES[..1], &program, &[], "all holds");
}

/// A slab with a map of its free objects is used page by page; links are in all its pages.
#[test]
fn new_slabs_are_not_touched() {
    let program = built("cc", "untouched.c", &["-std=gnu11", "-O1", "-Wall"], "untouched");
    check_with(&["slub@7.1"], &program, &[], "0 of 3 pages");
    // The program's exit status says that pages have memory.
    let linked = run(&program, &[], "slub@7.1,harden=encode", "thread");
    assert_eq!(String::from_utf8_lossy(&linked.stdout), "3 of 3 pages\n");
}

/// With the default engine; with all engines in `.ci/long`.
#[test]
fn every_mapping_may_fail() {
    let arguments = ["-std=gnu11", "-O1", "-Wall", "-rdynamic", "-pthread"];
    let program = built("cc", "exhausted.c", &arguments, "exhausted");
    let engines = if std::env::var_os("SLABLAB_LONG").is_some() { ENGINES } else { &ENGINES[..1] };
    check_with(engines, &program, &["all"], "all holds");
}

/// Runs a program under a limit that a shell sets. Returns its standard output and standard error.
fn under(limit: &str, program: &Path, argument: &str, engine: &str, slots: &str) -> Option<(String, String)> {
    let mut shell = Command::new("sh");
    let script = format!("ulimit {limit}; LD_PRELOAD=$LIBRARY exec $0 $1");
    shell.arg("-c").arg(script).arg(program).arg(argument).env("SLABLAB_ENGINE", engine);
    let library = if engine.is_empty() { PathBuf::new() } else { library() };
    let done = shell.env("LIBRARY", library).env("SLABLAB_SLOTS", slots).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    done.status.success().then(|| (text(&done.stdout), text(&done.stderr)))
}

/// Calls `f` with every engine and kind of slots.
fn each_way(mut f: impl FnMut(&str, &str)) {
    ENGINES.iter().for_each(|engine| SLOTS.iter().for_each(|slots| f(engine, slots)));
}

fn limits() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || built("cc", "limits.c", &["-std=gnu11", "-O1", "-Wall", "-pthread"], "limits");
    BUILT.get_or_init(build).clone()
}

/// Reserved address space is no data: under a limit of data the program can map memory and start threads as
/// with the C library's malloc.
#[test]
fn a_limit_of_data_leaves_room_for_the_program() {
    let program = limits();
    each_way(|engine, slots| {
        let done = under("-d 1048576", &program, "data", engine, slots);
        assert!(done.is_some_and(|(said, _)| said.contains("all holds")), "{engine}, {slots}");
    });
    check(&program, &["reserved"], "all holds");
}

/// `ls` runs in twice the address space that it needs with the C library's malloc, plus the library's code.
#[test]
fn a_limit_of_address_space_leaves_a_heap() {
    let ls = Path::new("/bin/ls");
    let runs = |program: &Path, argument: &str, kib: u64, engine: &str, slots: &str| {
        let done = under(&format!("-v {kib}"), program, argument, engine, slots);
        // If the loader cannot load the library, it prints a message and runs the program without it.
        done.is_some_and(|(_, errors)| errors.is_empty())
    };
    let least = |program: &Path, argument: &str, engine: &str| {
        let some = (1..1000).map(|step| step << 8);
        some.into_iter().find(|kib| runs(program, argument, *kib, engine, "thread")).expect("it runs")
    };
    let limits = limits();
    let code = least(&limits, "nothing", "slub") - least(&limits, "nothing", "");
    let enough = 2 * least(ls, "/", "") + code;
    println!("ls in {enough} KiB, of which the library's code is {code} KiB");
    each_way(|engine, slots| {
        assert!(runs(ls, "/", enough, engine, slots), "{engine}, {slots}: {enough} KiB")
    });
}

/// Large requests get mappings of their own if the heap's address space is used up.
#[test]
fn large_requests_are_served_when_the_heap_is_used_up() {
    each_way(|engine, slots| {
        let (said, _) = under("-v 1000000", &limits(), "requests", engine, slots).expect("it runs");
        assert!(said.starts_with("0 not served"), "{engine}, {slots}: {said}");
    });
}

/// Without address space for a heap the library prints one message.
#[test]
fn a_heap_that_cannot_start_is_reported_once() {
    let limits = limits();
    let said = (4..64).map(|mib| under(&format!("-v {}", mib << 10), &limits, "once", "slub", "thread"));
    // Where the loader finds no address space for the library, it runs the program without it.
    let loaded = |(_, errors): &(String, String)| !errors.contains("cannot be preloaded");
    let (said, errors) = said.flatten().find(loaded).expect("with enough it runs");
    assert_eq!(said, "100 not served\n", "{errors}");
    assert_eq!(errors.matches(NO_HEAP).count(), 1, "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
}

/// The first allocation finds no address space; later ones are served.
#[test]
fn a_start_that_failed_is_tried_again() {
    let arguments = ["-std=gnu11", "-O1", "-Wall", "-rdynamic", "-pthread"];
    let program = built("cc", "exhausted.c", &arguments, "late");
    each_way(|engine, slots| {
        let done = run(&program, &["late"], engine, slots);
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{engine}, {slots}: {errors}");
        assert_eq!(errors.matches(NO_HEAP).count(), 1, "{engine}, {slots}: {errors}");
    });
}

#[test]
#[ignore = "a minute per engine"]
fn a_minute_of_short_threads_leaves_nothing() {
    let program = built("cc", "threads.c", &["-std=gnu11", "-O1", "-Wall", "-pthread"], "minute");
    check(&program, &["seconds", "60"], "trimmed");
}

#[test]
#[ignore = "minutes per engine"]
fn ten_thousand_forks_while_threads_allocate() {
    let program = built("cc", "api.c", &["-std=gnu11", "-O1", "-pthread"], "forks");
    check(&program, &["10000"], "all holds");
}

/// A fork takes locks of the C library. Threads that hold such locks allocate, and must not wait for the
/// fork.
#[test]
fn forks_while_threads_use_streams() {
    let program = built("cc", "forks.c", &["-std=gnu11", "-O1", "-Wall", "-pthread"], "streams");
    let forks = if std::env::var_os("SLABLAB_LONG").is_some() { "2000" } else { "50" };
    check(&program, &["lines", forks], "all holds");
    check(&program, &["streams", forks], "all holds");
}

#[test]
fn the_interface_of_cplusplus() {
    let required = std::env::var_os("SLABLAB_CXX_REQUIRED").is_some();
    if !required && Command::new("c++").arg("--version").output().is_err() {
        return eprintln!("no C++ compiler (c++): skipped");
    }
    let program = built("c++", "new.cpp", &["-std=c++17", "-O1", "-Wall", "-pthread"], "new");
    check(&program, &[], "all holds");
}

#[test]
fn settings_are_read_and_wrong_ones_reported() {
    let program = built("cc", "api.c", &["-std=gnu11", "-O1", "-pthread"], "settings");
    let with = |name: &str, value: &str| {
        let mut command = Command::new(&program);
        command.arg("1").env("LD_PRELOAD", library()).env(name, value);
        let done = command.output().expect("it runs");
        assert!(done.status.success());
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let stats = with("SLABLAB_STATS", "1");
    assert!(
        stats.contains("slub@7.1") && stats.contains("<active_objs>") && stats.contains("malloc-"),
        "{stats}"
    );
    let slots = with("SLABLAB_SLOTS", "node");
    assert!(slots.contains("SLABLAB_SLOTS=node: expected thread or cpu"), "{slots}");
    let unknown = with("SLABLAB_ENGIN", "slqb");
    assert!(unknown.contains("SLABLAB_ENGIN: no such setting"), "{unknown}");
    let engine = with("SLABLAB_ENGINE", "slurb");
    assert!(engine.contains("SLABLAB_ENGINE=slurb:") && engine.contains("slub"), "{engine}");
    for wrong in ["many", "cgroup:here", "0"] {
        let limit = with("SLABLAB_LIMIT", wrong);
        assert!(limit.contains(&format!("SLABLAB_LIMIT={wrong}: expected bytes such as 512M")), "{limit}");
    }
    assert_eq!(with("SLABLAB_LIMIT", "64M"), "");
    let slob = with("SLABLAB_ENGINE", "slob");
    assert!(slob.contains("SLOB does not store the size"), "{slob}");
}

/// Statistics say what slots belong to, and why not to CPUs.
#[test]
fn statistics_say_why_slots_are_not_per_cpu() {
    let program = built("cc", "api.c", &["-std=gnu11", "-O1", "-pthread"], "slots");
    let launcher = built("cc", "without.c", &["-std=gnu11", "-O1", "-Wall"], "without");
    let check = |slots: &str, lacks: &str, says: &[&str]| {
        let mut command = Command::new(if lacks == "membarrier" { &launcher } else { &program });
        let tunables = if lacks == "rseq" { "glibc.pthread.rseq=0" } else { "" };
        if lacks == "membarrier" {
            command.arg(&program);
        }
        command.arg("20").env("LD_PRELOAD", library()).env("SLABLAB_STATS", "1").env("SLABLAB_SLOTS", slots);
        let done = command.env("GLIBC_TUNABLES", tunables).output().expect("it runs");
        let said = String::from_utf8_lossy(&done.stderr);
        let holds = done.status.success() && says.iter().any(|says| said.contains(says));
        assert!(holds, "{slots}, no {lacks}: {said}");
    };
    check("thread", "", &["a slot per thread, "]);
    // An older C library or kernel cannot have slots per CPU.
    check("cpu", "", &["a slot per CPU", "a slot per thread (per CPU: "]);
    check("cpu", "rseq", &["a slot per thread (per CPU: the C library registered no rseq area)"]);
    check("thread", "membarrier", &["a slot per thread, "]);
    // A machine may lack both; either reason may be printed.
    check("cpu", "membarrier", &["a slot per thread (per CPU: the "]);
}

#[test]
fn plugins_and_ending_threads_allocate() {
    let flags = ["-std=gnu11", "-O1", "-Wall", "-pthread"];
    let program = built("cc", "life.c", &flags, "life");
    let plugin =
        built("cc", "life.c", &[&flags[..], &["-shared", "-fPIC", "-DPLUGIN"]].concat(), "plugin.so");
    check(&program, &["plugins", plugin.to_str().expect("a text"), "100"], "all holds");
    check(&program, &["threads", "300"], "all holds");
    // The library opened and closed, not preloaded. Then preloaded, with statistics, which print how many
    // slots were used.
    for engine in ENGINES {
        let mut itself = Command::new(&program);
        itself.args(["itself", library().to_str().expect("a text"), "20"]).env("SLABLAB_ENGINE", engine);
        let done = itself.output().expect("it runs");
        assert!(
            done.status.success(),
            "{engine}: {}: {}",
            done.status,
            String::from_utf8_lossy(&done.stderr)
        );
        let mut threads = Command::new(&program);
        threads.args(["threads", "300"]).env("LD_PRELOAD", library()).env("SLABLAB_ENGINE", engine);
        let done = threads.env("SLABLAB_STATS", "1").output().expect("it runs");
        let stats = String::from_utf8_lossy(&done.stderr);
        assert!(stats.contains(" 2 slots used"), "{engine}: threads one after another share a slot: {stats}");
    }
}

#[test]
fn the_c_example_linked_against_the_library() {
    // The install recipe puts the library under its SONAME.
    let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("installed-for-words");
    let recipe = Path::new(env!("CARGO_MANIFEST_DIR")).join("install.sh");
    let beside = library();
    let installed =
        Command::new(recipe).arg(&prefix).env("BUILT", beside.parent().expect("it is in a folder")).status();
    assert!(installed.expect("it runs").success());
    let folder = prefix.join("lib");
    let folder = folder.to_str().expect("a text");
    let rpath = format!("-Wl,-rpath,{folder}");
    let program =
        built("cc", "../../../examples/c/words.c", &["-O1", "-Wall", "-L", folder, &rpath], "words");
    let linked = built_with(
        "cc",
        "../../../examples/c/words.c",
        &["-O1", "-L", folder, &rpath],
        "words-linked",
        &["-lslablab"],
    );
    let count = |program: &Path, engine: &str| {
        let text = std::fs::File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../LICENSE-APACHE"))
            .expect("a text");
        let mut command = Command::new(program);
        let done = command
            .stdin(text)
            .env("SLABLAB_ENGINE", engine)
            .env("SLABLAB_STATS", "1")
            .output()
            .expect("it runs");
        assert!(done.status.success(), "{engine}: {}", done.status);
        (done.stdout, String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let (expected, silent) = count(&program, "slub");
    assert!(
        expected.starts_with(b"    82 the\n") && silent.is_empty(),
        "{}",
        String::from_utf8_lossy(&expected)
    );
    for engine in ENGINES {
        let (said, stats) = count(&linked, engine);
        assert_eq!(said, expected, "{engine}");
        assert!(stats.contains(engine) && stats.contains("malloc-"), "{engine} served it: {stats}");
    }
}

/// Handlers run by a timer, at any instruction.
#[test]
fn signal_handlers_that_allocate() {
    let program = built("cc", "signals.c", &["-std=gnu11", "-O1", "-Wall", "-pthread"], "signals");
    check(&program, &["20000"], "all holds, ");
    check_with(&ENGINES[..1], &program, &["100000", "forks"], "all holds, ");
}

/// Handlers run after every instruction. Slots per CPU are left out: single steps would abort a restartable
/// sequence each time.
#[test]
#[cfg(target_arch = "x86_64")]
fn signal_handlers_that_allocate_after_every_instruction() {
    let program = built("cc", "signals.c", &["-std=gnu11", "-O1", "-Wall", "-pthread"], "steps");
    let long = std::env::var_os("SLABLAB_LONG").is_some();
    for engine in ENGINES {
        // Wrappers take thousands of instructions.
        let steps = match engine.contains(',') {
            true if !long => continue,
            true => "10",
            false => "40",
        };
        let done = run(&program, &[steps, "steps"], engine, "thread");
        let (said, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        let signals = said.trim().strip_prefix("all holds, ").and_then(|said| said.split(' ').next());
        let signals: Option<u64> = signals.and_then(|signals| signals.parse().ok());
        assert!(signals.is_some_and(|signals| signals > 10_000), "{engine}: {}\n{said}{errors}", done.status);
        println!("{engine}: {}", said.trim());
    }
}

/// A signal handler that interrupts malloc and frees an address at which no object starts: the process ends
/// with one line that says so, and the memory at the address is not written to.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_signal_handler_that_frees_a_wrong_address() {
    let program = built("cc", "wrong.c", &["-std=gnu11", "-O1", "-Wall", "-fno-builtin"], "wrong");
    let cases = [
        ("static", "not allocated here: outside the heap, or in an empty slab"),
        ("stack", "not allocated here: outside the heap, or in an empty slab"),
        ("inside", "not the start of an object: at offset "),
        ("inside a large block", "not the start of an allocation: 64 bytes into a large block"),
        ("object of a cache", "an object of limited, not of malloc"),
    ];
    for (engine, (name, report)) in ENGINES.iter().flat_map(|engine| cases.map(|case| (engine, case))) {
        let done = run(&program, &[name], engine, "thread");
        let (said, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        let what = format!("{engine}, {name}: {}\n{said}{errors}", done.status);
        assert_eq!(said, "the handler frees\nuntouched\n", "{what}");
        assert!(errors.starts_with("slablab: free of 0x") && errors.contains(report), "{what}");
        assert_eq!(errors.lines().count(), 1, "{what}");
    }
}

/// A signal handler that interrupted malloc frees a block twice. Neither free takes a lock. A large block is
/// known to be freed at the second free; so is an object, unless debugging surrounds the engine: then the
/// report comes with a later request.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_signal_handler_that_frees_twice() {
    let program = built("cc", "wrong.c", &["-std=gnu11", "-O1", "-Wall", "-fno-builtin"], "twice");
    let cases = [("large block", "(a large block)"), ("small block", "(malloc-112)")];
    for (engine, (name, block)) in ENGINES.iter().flat_map(|engine| cases.map(|case| (engine, case))) {
        let done = run(&program, &[name, "twice"], engine, "thread");
        let (said, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        let what = format!("{engine}, {name}: {}\n{said}{errors}", done.status);
        let later = name == "small block" && engine.contains(',');
        assert!(said == "the handler frees\n" || later && said == "the handler frees\nfreed\n", "{what}");
        let report = errors.lines().last().unwrap_or_default();
        assert!(report.starts_with("slablab: double free of 0x") && report.ends_with(block), "{what}");
    }
}
