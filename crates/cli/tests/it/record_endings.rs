//! How `slablab record --malloc` ends: by a signal after its program's end, by SIGKILL, with a raw folder
//! that a recorded program has changed; and where its library is.

use crate::common::{check_error, check_order, folder, text};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A shell that allocates some ten thousand times, says so, and waits for the end of its input.
const ALLOCATES: &str = "for word in {1..10000}; do :; done; echo ready; read line";

/// `slablab record --malloc ARGS` in a folder, with a folder for temporary files beside it.
fn command(place: &Path, args: &[&str]) -> Command {
    let temporary = place.join("temporary");
    std::fs::create_dir_all(&temporary).expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_slablab"));
    command.args(["record", "--malloc"]).args(args).current_dir(place).env("TMPDIR", temporary);
    command
}

fn run(place: &Path, args: &[&str]) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command(place, args).output().expect("it runs");
    (status.code(), text(&stderr))
}

/// The names in the folder and in that for temporary files, sorted.
fn left(place: &Path) -> Vec<String> {
    let entries = [place.to_path_buf(), place.join("temporary")].map(std::fs::read_dir);
    let entries = entries.into_iter().flat_map(|entries| entries.expect("it is there")).flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names.retain(|name| name != "temporary");
    names
}

fn send(name: &str, child: &Child) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status().expect("kill runs");
    assert!(sent.success());
}

/// The exit code of a process that ends within a minute.
#[track_caller]
fn ended(child: &mut Child, what: &str) -> Option<i32> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(status) = child.try_wait().expect("it is a child") {
            return status.code();
        }
        if Instant::now() >= deadline {
            let _ = child.kill();
            panic!("{what}: it does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What a recorded program puts into the folder of its raw files keeps nothing from ending.
#[test]
fn a_pipe_among_the_raw_files_is_left_out() {
    let place = folder("record-pipe");
    let script = "mkfifo $SLABLAB_RECORD/a.raw; ln -s /dev/zero $SLABLAB_RECORD/b.raw";
    let mut command = command(&place, &["-o", "one.trace.parquet", "--", "sh", "-c", script]);
    let mut child = command.stderr(Stdio::null()).spawn().expect("it runs");
    assert_eq!(ended(&mut child, "a pipe"), Some(0));
    assert_eq!(left(&place), ["one.trace.parquet"]);
}

/// The trace goes to a pipe that nobody reads, so slablab does not end by itself. The recording stays.
#[test]
fn signals_after_the_programs_end_end_slablab() {
    for (name, number) in [("-INT", 2), ("-TERM", 15), ("-HUP", 1)] {
        let place = folder(&format!("record-after{name}"));
        let pipe = place.join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
        // Open at both ends, so that a writer does not wait for it to be opened.
        let _both = File::options().read(true).write(true).open(&pipe).expect("a pipe");
        let script = ALLOCATES.replace("; read line", "");
        let mut command = command(&place, &["-o", "pipe", "--", "bash", "-c", &script]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        // The program has standard output, and slablab too: the program's end is seen in its state.
        out.read_line(&mut String::new()).expect("the program says so");
        until(|| children(child.id()).is_empty());
        // A signal before slablab knows of the end goes to the program, which is no more.
        until(|| {
            send(name, &child);
            std::thread::sleep(Duration::from_millis(200));
            !is_running(child.id())
        });
        assert_eq!(ended(&mut child, name), Some(128 + number), "{name}");
        let said = std::io::read_to_string(child.stderr.take().expect("a pipe")).expect("UTF-8");
        check_order(&[name], &said, &["ended by signal", "--recover"]);
        let names = left(&place);
        assert!(names.iter().any(|name| name.starts_with(".slablab-record.")), "{names:?}");
        let kept = names.iter().find(|name| name.starts_with(".slablab-record.")).expect("just seen");
        let (code, said) = run(&place, &["--recover", kept, "-o", "one.trace.parquet"]);
        assert_eq!(code, Some(0), "{said}");
        check_order(&[name], &said, &["one.trace.parquet: ", "rows, bash (process", "the recording stays"]);
    }
}

#[track_caller]
fn until(is: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is() {
        assert!(Instant::now() < deadline, "not after a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a child runs: it has ended if its parent could ask for its end.
fn is_running(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("its end was not asked for");
    !stat.rsplit(") ").next().expect("a state").starts_with('Z')
}

/// The processes that a process started and that run.
fn children(process: u32) -> String {
    let path = format!("/proc/{process}/task/{process}/children");
    std::fs::read_to_string(path).expect("the process runs").trim().to_string()
}

/// slablab is killed while the program runs: the next recording names the folder, and does not touch it;
/// --recover makes the trace.
#[test]
fn a_killed_recorders_folder_is_named_and_recovered() {
    let place = folder("record-killed");
    let mut command = command(&place, &["-o", "one.trace.parquet", "--", "bash", "-c", ALLOCATES]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it runs");
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    out.read_line(&mut String::new()).expect("the program says so");
    let own: Vec<String> = left(&place);
    let [folder, _library] = &own[..] else { panic!("{own:?}") };
    // As long as it lives, nothing is said of it, and nothing is recovered.
    let (code, said) = run(&place, &["-o", "two.trace.parquet", "--", "ls", "/"]);
    assert_eq!((code, said.contains(".slablab-record")), (Some(0), false), "{said}");
    check_error(
        &["record", "--malloc", "--recover"],
        &[place.join(folder).to_str().expect("UTF-8")],
        &["still runs"],
    );
    send("-KILL", &child);
    child.wait().expect("it ends");
    // Of a recorder that recorded nothing.
    std::fs::create_dir_all(place.join(".slablab-record.8388608-1/raw-1")).expect("a folder");
    let (code, said) = run(&place, &["-o", "two.trace.parquet", "--", "ls", "/"]);
    assert_eq!(code, Some(0), "{said}");
    check_order(
        &["next"],
        &said,
        &[folder, "ended before it made the trace", "--recover", "two.trace.parquet"],
    );
    check_order(&["next"], &said, &[".slablab-record.8388608-1: removed"]);
    let (code, said) = run(&place, &["--recover", folder]);
    assert_eq!(code, Some(0), "{said}");
    check_order(&["recover"], &said, &["bash.trace.parquet: ", "rows, bash (process", "rm -r"]);
    std::fs::remove_dir_all(place.join(folder)).expect("it is still there");
    // The library goes with its recording.
    let (code, said) = run(&place, &["-o", "two.trace.parquet", "--", "ls", "/"]);
    assert_eq!(code, Some(0), "{said}");
    check_order(&["library"], &said, &["temporary/.slablab-record.", ": removed"]);
    assert_eq!(left(&place), ["bash.trace.parquet", "two.trace.parquet"]);
}

/// A wrong name after a long run loses nothing.
#[test]
fn a_recording_without_a_trace_is_kept() {
    let place = folder("record-kept");
    let (code, said) = run(&place, &["--process", "nobody", "-o", "one.trace.parquet", "--", "ls", "/"]);
    assert_eq!(code, Some(2), "{said}");
    check_order(&["nobody"], &said, &["expected a number, or one of ls", "--recover", "is kept"]);
    let kept = left(&place).remove(0);
    assert!(!place.join("one.trace.parquet").exists());
    let (code, said) = run(&place, &["--recover", &kept, "--process", "ls"]);
    assert_eq!(code, Some(0), "{said}");
    check_order(&["ls"], &said, &["ls.trace.parquet: ", "rows, ls (process"]);
}

#[test]
fn recover_says_what_it_expects() {
    let place = folder("record-recover");
    let path = place.to_str().expect("UTF-8");
    for (args, words) in [
        (&["--malloc", "--recover", path][..], &[path, "no recording: expected a folder"][..]),
        (&["--malloc", "--recover", "/no/such/folder"], &["/no/such/folder"]),
        (&["--recover", path], &["--malloc"]),
        (&["--malloc", "--recover", path, "--", "ls"], &["--recover", "COMMAND"]),
        (&["--malloc"], &["COMMAND", "--recover"]),
    ] {
        check_error(&["record"], args, words);
    }
}

/// Runs `slablab record --malloc` in a mount namespace of its own, where `mounts` are mounted noexec.
fn without_exec(place: &Path, mounts: &[PathBuf]) -> Option<(Option<i32>, String)> {
    let unshare = |script: &str| {
        let mut command = command(place, &[]);
        let program = command.get_program().to_os_string();
        command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script, "sh"]).arg(program).current_dir(place);
        command.env("TMPDIR", place.join("temporary")).output()
    };
    if !unshare("mount -t tmpfs none temporary").is_ok_and(|output| output.status.success()) {
        eprintln!("not tested: a mount namespace needs root");
        return None;
    }
    let mounts =
        mounts.iter().map(|mount| format!("mount -t tmpfs -o noexec none '{}' && ", mount.display()));
    let script =
        mounts.collect::<String>() + "cd \"$PWD\" && \"$1\" record --malloc -o out/one.parquet -- ls /";
    let output = unshare(&script).expect("it ran before");
    Some((output.status.code(), text(&output.stderr)))
}

/// A library cannot be loaded from a folder that is mounted noexec: it is in the trace's.
#[test]
fn a_noexec_folder_for_temporary_files() {
    let place = folder("record-noexec");
    std::fs::create_dir_all(place.join("out")).expect("a folder");
    let Some((code, said)) = without_exec(&place, &[place.join("temporary")]) else { return };
    assert_eq!(code, Some(0), "{said}");
    check_order(&["noexec"], &said, &["rows, ls (process"]);
    assert!(!said.contains("cannot be preloaded"), "{said}");
    let both = [place.join("temporary"), place.join("out")];
    let (code, said) = without_exec(&place, &both).expect("it ran before");
    assert_eq!(code, Some(2), "{said}");
    check_order(&["both"], &said, &["temporary", "is mounted noexec", "out is mounted noexec", "TMPDIR"]);
}
