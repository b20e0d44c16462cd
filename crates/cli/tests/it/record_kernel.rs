//! `slablab record -- COMMAND`: the kernel, by a perf of the test's own in PATH, and by tracefs where it is
//! there. Reading the machine's state needs root, as recording does.

use crate::common::{argument, check_order, folder, slablab, text};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A perf that records: 1,500 events of a real `perf record -o -`, then it waits for the end as perf does.
const RECORDS: &str =
    "echo 'slablab-record: started' >&2; xz -dc $DATA; read line; echo ended > $MARK; exit 0";

/// Whether this user may read what is to be recorded.
fn may_record() -> bool {
    let may = std::fs::read("/proc/slabinfo").is_ok();
    if !may {
        eprintln!("not tested: /proc/slabinfo is for root");
    }
    may
}

/// A folder of a test, with a perf that is the shell script `perf`.
struct Place(PathBuf);

impl Place {
    fn new(name: &str, perf: &str) -> Place {
        let place = folder(name);
        std::fs::create_dir_all(place.join("bin")).expect("a folder");
        std::fs::create_dir_all(place.join("out")).expect("a folder");
        let path = place.join("bin/perf");
        let script = format!("#!/bin/sh\n[ \"$1\" = --version ] && echo perf version 0 && exit 0\n{perf}\n");
        std::fs::write(&path, script).expect("a file");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("a mode");
        Place(place)
    }

    /// `slablab record ARGS`, with `before` run by the shell in front of it.
    fn command(&self, before: &str, args: &[&str]) -> Command {
        let words: Vec<String> = args.iter().map(|arg| format!("'{arg}'")).collect();
        let line = format!("{before} exec '{}' record {}", env!("CARGO_BIN_EXE_slablab"), words.join(" "));
        let mut command = Command::new("bash");
        command.args(["-c", &line]).current_dir(self.0.join("out"));
        let path = format!("{}:{}", self.0.join("bin").display(), std::env::var("PATH").expect("a path"));
        command.env("PATH", path).env("MARK", self.mark());
        command.env("DATA", argument("crates/cli/tests/data/kmem-1500.perf.data.xz"));
        command
    }

    fn run(&self, before: &str, args: &[&str]) -> Output {
        self.command(before, args).output().expect("it runs")
    }

    fn mark(&self) -> PathBuf {
        self.0.join("mark")
    }

    /// The names in the folder of the output.
    fn left(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.join("out")).expect("it is there").flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    fn file(&self) -> String {
        self.0.join("out/one.tar").to_str().expect("UTF-8").to_string()
    }
}

/// Waits for what another process does.
#[track_caller]
fn until(what: &str, is: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is() {
        assert!(Instant::now() < deadline, "not after a minute: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn signal(name: &str, child: &Child) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status().expect("kill runs");
    assert!(sent.success());
}

/// A folder stands for tracefs: which probes a kernel would get, what perf is told of them, and that they are
/// taken back.
#[test]
fn what_has_no_event_gets_probes() {
    if !may_record() {
        return;
    }
    let place = Place::new("record-kernel-probes", &format!("echo \"$@\" > $MARK.words; {RECORDS}"));
    let tracefs = place.0.join("tracefs");
    let list = tracefs.join("dynamic_events");
    let put = |readme: &str| {
        std::fs::create_dir_all(&tracefs).expect("a folder");
        std::fs::write(tracefs.join("README"), readme).expect("a file");
        std::fs::write(&list, "").expect("a file");
    };
    let recorded = |more: &[&str]| {
        let before = format!("SLABLAB_TRACEFS='{}'", tracefs.display());
        let output = place.run(&before, &[&TO[..], more, &["--", "true"]].concat());
        let words = std::fs::read_to_string(place.0.join("mark.words")).expect("perf ran");
        (text(&output.stderr), std::fs::read_to_string(&list).expect("a file"), words)
    };
    put("           f[:[<group>/][<event>]] <func-name>[%return] [<args>]\n");
    let (said, set, words) = recorded(&[]);
    assert!(said.contains("probes      bulk allocation, bulk free"), "{said}");
    for expected in [
        "/slablab_free_bulk_16 kmem_cache_free_bulk n=$arg2:u64 from=\\16:u32 name=s->name:string ",
        " ptr=+128($arg3):x64[48]\n",
        "/slablab_alloc_bulk_0 kmem_cache_alloc_bulk",
    ] {
        assert!(set.contains(expected), "{expected} in {set}");
    }
    let (defined, removed) = (set.matches("f:slablab_").count(), set.matches("-:slablab_").count());
    assert!(defined >= 8 && removed >= defined, "{set}");
    assert!(words.contains(":slablab_free_bulk_16 --filter n > 16 "), "{words}");
    let (said, set, words) = recorded(&["--no-probes"]);
    assert!(said.contains("probes      none: --no-probes") && !words.contains("slablab_free"), "{said}");
    assert!(set.matches("f:slablab_").count() == defined, "{set}");
    put("           p[:[<group>/][<event>]] <place> [<args>]\n");
    let (said, set, _) = recorded(&[]);
    assert!(said.contains("none: the kernel has no events of fprobe") && set.is_empty(), "{said}");
}

/// Without snapshots: what this perf recorded is of another kernel.
const TO: [&str; 5] = ["--with", "perf", "--no-snapshot", "-o", "one.tar"];

#[test]
fn one_file_that_every_verb_reads() {
    if !may_record() {
        return;
    }
    let place = Place::new("record-kernel", RECORDS);
    let output = place.run("", &[&TO[..], &["--", "sh", "-c", "exit 7"]].concat());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{said}");
    check_order(
        &["record"],
        &said,
        &["one.tar: ", "events      1500 in ", "perf version 0", "lost        0"],
    );
    assert_eq!(place.left(), ["one.tar"]);
    let file = place.file();
    let trace = folder("record-kernel-import").join("one.parquet").to_str().expect("UTF-8").to_string();
    for (verb, args, words) in [
        (
            "replay",
            &[&file[..], "--engine", "slub@7.1"][..],
            &["Under slub@7.1 the recording peaks", " 1,500 rows, recorded", "slub@7.1"][..],
        ),
        ("explain", &[&file, "slub@6.1", "slub@7.1"], &["slub@6.1", "slub@7.1"]),
        ("verify", &[&file], &["skill"]),
        ("doctor", &[&file], &["Slab memory", "dentry"]),
        ("doctor", &[&file, "--since", &file], &["growth is over"]),
        ("whatif", &[&file, "--max-order", "0"], &["max_order"]),
    ] {
        let output = slablab(&[verb], args);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{verb} {args:?}: {said}");
        check_order(&[verb], &said, words);
    }
    let output = slablab(&["import"], &[&file, "-o", &trace]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// What goes wrong, what is said of it, and what is left.
#[test]
fn nothing_is_lost_and_nothing_is_left() {
    if !may_record() {
        return;
    }
    let refused = "echo 'Error: No permission to enable kmem:kmalloc event.' >&2; exit 255";
    let killed = "echo 'slablab-record: started' >&2; xz -dc $DATA; kill -9 $$";
    let early = "echo 'slablab-record: started' >&2; xz -dc $DATA; exit 0";
    // Records of an unknown kind, which do not shrink: 72 is H, 65,528 bytes of which 8 are the header.
    let endless = "echo 'slablab-record: started' >&2; xz -dc $DATA; while :; do \
                   printf 'H\\000\\000\\000\\000\\000\\370\\377'; head -c 65520 /dev/urandom || exit 1; done";
    let file: &[&str] = &["one.tar"];
    for (name, perf, before, code, words, left) in [
        ("refused", refused, "", 2, &["No permission", "(try with sudo)"][..], &[][..]),
        ("silent", "exit 3", "", 2, &["perf record ended at once", "it said nothing"], &[]),
        (
            "foreign",
            "echo 'slablab-record: started' >&2; echo usage: perf record",
            "",
            2,
            &["does not begin"],
            &[],
        ),
        ("killed", killed, "", 7, &["one.tar: ", "events      1500", "cut off", "perf ended early"], file),
        ("early", early, "", 7, &["one.tar: ", "events      1500", "cut off", "ended by itself"], file),
        ("full", endless, "ulimit -f 20000;", 7, &["the disk is nearly full", "one.tar: ", "cut off"], file),
        ("limit", RECORDS, "ulimit -f 1000;", 2, &["too little room"], &[]),
    ] {
        let place = Place::new(&format!("record-{name}"), perf);
        let output = place.run(before, &[&TO[..], &["--", "sh", "-c", "sleep 2; exit 7"]].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{name}: {said}");
        check_order(&[name], &said, words);
        assert_eq!(place.left(), left, "{name}");
        if !left.is_empty() {
            let replayed = slablab(&["replay"], &[&place.file(), "--engine", "slub@7.1"]);
            assert_eq!(replayed.status.code(), Some(3), "{name}: {}", text(&replayed.stderr));
            check_order(&[name], &text(&replayed.stdout), &["the recording ended early ("]);
            // It has addresses of the kernel.
            let mode = std::fs::metadata(place.file()).expect("it is there").permissions();
            assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600, "{name}");
        }
    }
}

/// A signal ends a recording without a command, and the file is whole. However slablab ends, perf does too.
#[test]
fn signals_end_a_recording() {
    if !may_record() {
        return;
    }
    for (name, time, code, left) in [
        ("-INT", None, Some(0), &["one.tar"][..]),
        ("-QUIT", None, Some(0), &["one.tar"]),
        ("-TERM", Some("1h"), Some(128 + 15), &["one.tar"]),
        ("-KILL", None, None, &[]),
    ] {
        let begun = RECORDS.replace("read line", "echo begun > $MARK.begun; read line");
        let place = Place::new(&format!("record-signal{name}"), &begun);
        let time = time.map_or(vec![], |time| vec!["--for", time]);
        let mut command = place.command("", &[&TO[..], &time].concat());
        let mut child = command.stderr(Stdio::null()).spawn().expect("it runs");
        let begun = PathBuf::from(format!("{}.begun", place.mark().display()));
        until("the recording began", || begun.exists());
        signal(name, &child);
        assert_eq!(child.wait().expect("it ends").code(), code, "{name}");
        until("perf ended", || place.mark().exists());
        assert_eq!(place.left(), left, "{name}");
    }
}

/// The time of --for ends the recording, not the command.
#[test]
fn the_command_runs_on_after_its_time() {
    if !may_record() {
        return;
    }
    let place = Place::new("record-time", RECORDS);
    let args = [&TO[..], &["--for", "100ms", "--", "sh", "-c", "sleep 3; test -e $MARK"]].concat();
    let output = place.run("", &args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(place.left(), ["one.tar"]);
}

#[test]
fn no_perf_and_no_tracefs() {
    if !may_record() {
        return;
    }
    let place = Place::new("record-nothing", "exit 1");
    std::fs::remove_file(place.0.join("bin/perf")).expect("it was there");
    let bin = format!("PATH='{}' SLABLAB_TRACEFS=/no/such/tracefs", place.0.join("bin").display());
    for (with, words) in [
        (&["--with", "perf"][..], &["perf: not found", "install"][..]),
        (&["--with", "tracefs"], &["/no/such/tracefs/instances/slablab-"]),
        (&[], &["neither", "perf: not found", "/no/such/tracefs"]),
    ] {
        let output = place.run(&bin, &[with, &["-o", "one.tar", "--", "/bin/true"]].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{with:?}: {said}");
        check_order(with, &said, words);
        assert!(place.left().is_empty());
    }
}

/// Instances of slablab that the kernel has.
fn instances() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/sys/kernel/tracing/instances").into_iter().flatten().flatten();
    let named =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("slablab-"));
    entries.map(|entry| entry.path()).filter(named).collect()
}

/// By the kernel's own tracefs, where this machine has one.
#[test]
fn tracefs_is_as_it_was() {
    let root = Path::new("/sys/kernel/tracing/instances");
    let probe = root.join(format!("probe-{}", std::process::id()));
    if !may_record() || std::fs::create_dir(&probe).is_err() {
        eprintln!("not tested: no instance can be made in {}", root.display());
        return;
    }
    std::fs::remove_dir(&probe).expect("it was just made");
    let place = Place::new("record-tracefs", "exit 1");
    let to = ["--with", "tracefs", "-o", "one.tar"];
    let output = place.run("", &[&to[..], &["--", "find", "/usr/lib", "-maxdepth", "2"]].concat());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    check_order(&["record"], &said, &["one.tar: ", "by tracefs"]);
    assert_eq!((place.left(), instances()), (vec!["one.tar".to_string()], vec![]));
    let verified = slablab(&["verify"], &[&place.file()]);
    assert!(matches!(verified.status.code(), Some(0 | 3)), "{}", text(&verified.stderr));
    check_order(&["verify"], &text(&verified.stdout), &["skill"]);

    let mut command = place.command("", &["--with", "tracefs", "-o", "two.tar"]);
    let child = command.stderr(Stdio::null()).spawn().expect("it runs");
    until("an instance", || !instances().is_empty());
    signal("-KILL", &child);
    let mut child = child;
    assert_eq!(child.wait().expect("it ends").code(), None);
    until("the instance is gone", || instances().is_empty());
}

/// Instances of recorders that were killed together with their remover: the next recording removes them and
/// says so, the doctor names them. Those of living processes and of others stay.
#[test]
fn dead_recorders_instances_are_removed() {
    if !may_record() {
        return;
    }
    let place = Place::new("record-instances", "exit 1");
    let tracefs = place.0.join("tracefs");
    let own = std::process::id();
    let names =
        ["slablab-8388608-77", "slablab-8388609", "other-8388608-77", "slablab-x", &format!("slablab-{own}")];
    for name in names {
        std::fs::create_dir_all(tracefs.join("instances").join(name)).expect("a folder");
    }
    // A process of the same number that started at another time.
    std::fs::create_dir_all(tracefs.join(format!("instances/slablab-{own}-1"))).expect("a folder");
    let root = format!("SLABLAB_TRACEFS='{}'", tracefs.display());
    let doctor =
        Command::new(env!("CARGO_BIN_EXE_slablab")).arg("doctor").env("SLABLAB_TRACEFS", &tracefs).output();
    let said = text(&doctor.expect("it runs").stderr);
    for name in ["slablab-8388608-77: ", "slablab-8388609: ", &format!("slablab-{own}-1: ")] {
        assert!(said.contains(name), "{name}: {said}");
    }
    assert_eq!(said.lines().count(), 3, "{said}");
    let output = place.run(&root, &["--with", "tracefs", "-o", "one.tar", "--", "/bin/true"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for name in
        ["slablab-8388608-77: removed", "slablab-8388609: removed", &format!("slablab-{own}-1: removed")]
    {
        assert!(said.contains(name), "{name}: {said}");
    }
    // It has no files, so this recording failed, and its instance is gone, too.
    assert!(said.contains("instances/slablab-") && said.contains("tracing_on"), "{said}");
    let entries = std::fs::read_dir(tracefs.join("instances")).expect("a folder").flatten();
    let mut left: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    left.sort();
    let mut expected: Vec<&str> = names[2..].to_vec();
    expected.sort();
    assert_eq!(left, expected);
}
