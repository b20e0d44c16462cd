//! What the preloaded library does when it cannot write, or should not: a full disk, a dead recorder, lost
//! rights. What the reader does with what it finds in a folder that recorded programs know.

use crate::common::{built, folder, record, the_one};
use slablab_recorder::{COUNTS, DESCRIPTOR, FOLDER, Folder, LIMIT, Left, Owner, convert, processes};
use slablab_trace::Metadata;
use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The least time between two tries, in ms, and the most system calls of one.
const PAUSE_MS: u64 = 20;
const CALLS_OF_A_TRY: u64 = 12;

/// Calls that cannot be written are counted, and tried again some times a second, not each.
#[test]
fn a_refused_call_costs_no_system_call() {
    let folder = folder("refused");
    let options = ["-std=gnu11", "-O1", "-rdynamic", "-Wno-nonnull-compare"];
    let program = built(&folder, "cc", "refused.c", &options).expect("a C compiler");
    for (case, limit, raw, writes_later) in [
        ("full", "8000000000", "raw", true),
        // Two chunks of 2,730 events.
        ("limit", "140000", "raw", false),
        ("no folder", "8000000000", "none/raw", false),
    ] {
        let _ = fs::remove_dir_all(folder.join("raw"));
        let counts = folder.join("counts");
        let _ = fs::remove_dir_all(&counts);
        fs::create_dir(&counts).expect("the test's folder");
        let mut command = Command::new("env");
        command.arg(format!("{FOLDER}={}", folder.join(raw).display())).arg(&program).arg(case);
        command.env(LIMIT, limit).env(COUNTS, &counts);
        let (output, mut all) = record(&folder, &mut command, "");
        let said = String::from_utf8(output.stdout).expect("two numbers");
        let numbers: Vec<u64> = said.split_whitespace().map(|word| word.parse().expect("a number")).collect();
        let [tried, ms] = numbers[..] else { panic!("{case}: {said}") };
        let most = CALLS_OF_A_TRY * (ms / PAUSE_MS + 2);
        assert!(
            tried <= most,
            "{case}: {tried} system calls in {ms} ms for 1,000,000 calls, expected {most}"
        );
        if raw != "raw" {
            all = processes(&[&counts]).expect("the files can be read");
        }
        let process = the_one(&all, "refused");
        // 506,000 blocks and what the program's output needs.
        let calls = process.calls + process.lost;
        assert!((1_012_000..1_012_100).contains(&calls), "{case}: {calls} calls, {process:?}");
        assert_eq!(process.could_not_write(), raw != "raw", "{case}: {process:?}");
        // All of the 10,000 calls before, and of the 2,000 afterwards, or of the two chunks.
        let least = if writes_later { 11_000 } else { 0 };
        assert!(process.calls >= least && process.calls < 30_000, "{case}: {process:?}");
    }
}

/// When its recorder is dead, a program does not write on.
#[test]
fn a_dead_recorder_ends_the_recording() {
    let folder = folder("dead");
    let program = built(&folder, "cc", "phases.c", &["-std=gnu11", "-O1"]).expect("a C compiler");
    for (is_killed, least, most) in [(false, 220_000, 220_100), (true, 20_000, 25_500)] {
        let place = folder.join(is_killed.to_string());
        fs::create_dir(&place).expect("the test's folder");
        let recording = Folder::create(&place, &folder).expect("a folder");
        let mut command = Command::new(&program);
        command.envs(recording.environment(1 << 30, None)).env("LD_PRELOAD", recording.library());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program runs");
        child.stdout.as_mut().expect("a pipe").read_exact(&mut [0]).expect("the first part ends");
        let lock = fs::read_dir(recording.path()).expect("a folder").flatten();
        let lock = lock.map(|entry| entry.path().join("lock")).find(|lock| lock.exists()).expect("a lock");
        if is_killed {
            // The kernel removes the lock of a dead process. Here it is another file that nobody locked.
            fs::remove_file(&lock).and_then(|()| fs::write(&lock, "")).expect("the test's folder");
        }
        drop(child.stdin.take());
        assert!(child.wait().expect("it ends").success());
        let all = recording.processes().expect("the files can be read");
        let process = the_one(&all, "phases");
        assert!((least..most).contains(&process.calls), "killed: {is_killed}: {process:?}");
        assert_eq!(process.lost, 0, "killed: {is_killed}");
    }
}

/// Whether this is root; says what is not tested otherwise.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("not tested: giving up rights needs root");
    }
    is_root
}

/// A process that gave up its rights, and its child, are recorded by the folder's path, or by the descriptor
/// that they inherited; without both they are counted.
#[test]
fn who_gave_up_rights_is_recorded_or_counted() {
    if !is_root() {
        return;
    }
    let own = folder("dropped");
    let program = built(&own, "cc", "dropped.c", &["-std=gnu11", "-O1"]).expect("a C compiler");
    for (case, mode, has_descriptor, is_recorded) in
        [("path", 0o755, false, true), ("descriptor", 0o700, true, true), ("neither", 0o700, false, false)]
    {
        // Everyone may search the folders above it.
        let place = std::env::temp_dir().join(format!("slablab-dropped-{case}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        fs::create_dir(&place).expect("the test's folder");
        fs::set_permissions(&place, Permissions::from_mode(mode)).expect("the test's folder");
        let temporary = if mode == 0o755 { place.clone() } else { std::env::temp_dir() };
        let recording = Folder::create(&place, &temporary).expect("a folder");
        let mut command = Command::new(&program);
        command.envs(recording.environment(1 << 30, None)).env("LD_PRELOAD", recording.library());
        if !has_descriptor {
            command.env_remove(DESCRIPTOR);
        }
        let output = command.output().expect("the program runs");
        assert!(output.status.success() && output.stderr.is_empty(), "{case}: {output:?}");
        let all = recording.processes().expect("the files can be read");
        let [parent, child] = &all[..] else { panic!("{case}: {all:?}") };
        let all_calls = [20_002..20_100, 2000..2100];
        for (process, expected) in [parent, child].into_iter().zip(all_calls) {
            assert!(expected.contains(&(process.calls + process.lost)), "{case}: {process:?}");
            assert_eq!(process.lost == 0, is_recorded, "{case}: {process:?}");
        }
        assert_eq!((child.could_not_write(), parent.could_not_write()), (!is_recorded, false), "{case}");
        drop(recording);
        fs::remove_dir_all(&place).expect("the test's folder");
    }
}

/// What is no regular file is no raw file, and nothing is waited for.
#[test]
fn pipes_links_and_devices_are_left_out() {
    let folder = folder("hostile");
    let program = built(&folder, "cc", "killed.c", &["-std=gnu11", "-O1"]).expect("a C compiler");
    record(&folder, &mut Command::new(&program), "");
    let raw = folder.join("raw");
    let pipe = Command::new("mkfifo").arg(raw.join("a.raw")).status().expect("mkfifo runs");
    assert!(pipe.success());
    symlink("/dev/zero", raw.join("b.raw")).expect("a link");
    symlink("a.raw", raw.join("c.raw")).expect("a link");
    fs::create_dir(raw.join("d.raw")).expect("a folder");
    let _socket = std::os::unix::net::UnixListener::bind(raw.join("e.raw"));
    fs::write(raw.join("f.raw"), "short").expect("a file");
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(processes(&[raw])));
    let all = receiver.recv_timeout(Duration::from_secs(60)).expect("the reader waits for none of them");
    assert_eq!(the_one(&all.expect("the files can be read"), "killed").calls, 10_000);
}

/// A head, and events of any bytes.
#[test]
fn noise_becomes_a_trace_or_an_error() {
    let folder = folder("noise");
    let program = built(&folder, "cc", "killed.c", &["-std=gnu11", "-O1"]).expect("a C compiler");
    let (_, all) = record(&folder, &mut Command::new(&program), "");
    let whole = fs::read(&the_one(&all, "killed").paths[0]).expect("the raw file");
    let raw = folder.join("noise");
    fs::create_dir(&raw).expect("a folder");
    for seed in 1..=20u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut noisy = whole.clone();
        for at in (4096..noisy.len()).step_by(if seed % 2 == 0 { 8 } else { 64 }) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let end = noisy.len().min(at + 8);
            noisy[at..end].copy_from_slice(&state.to_le_bytes()[..end - at]);
        }
        fs::write(raw.join("1-1.raw"), &noisy).expect("a file");
        for process in processes(&[&raw]).expect("the file can be read") {
            let mut last = 0;
            let _ = convert(&process, Vec::new(), Metadata::default(), &mut |done| last = done);
        }
    }
}

/// Folders of dead recorders are found, those of live ones are not.
#[test]
fn what_killed_recorders_left_is_found() {
    let (place, temporary) = (folder("left"), folder("left-temporary"));
    let dead = Owner { pid: 1 << 23, start: Some(1) };
    let live = Folder::create(&place, &temporary).expect("a folder");
    for (case, owner, bytes, is_locked, found) in [
        ("dead", dead, 4096 + 24, false, Some(24)),
        ("without calls", dead, 4096, false, Some(0)),
        // Of another container, whose processes this one does not see.
        ("locked", dead, 4096 + 24, true, None),
        ("alive", Owner { start: None, ..Owner::own() }, 4096 + 24, false, None),
    ] {
        let name = match owner.start {
            Some(_) => format!(".slablab-record.{owner}"),
            None => format!(".slablab-record.{}", owner.pid),
        };
        let (path, library) = (place.join(&name), temporary.join(&name));
        fs::create_dir_all(path.join("raw-1")).expect("a folder");
        fs::create_dir_all(&library).expect("a folder");
        symlink(&path, library.join("recording")).expect("a link");
        let mut file = File::create(path.join("raw-1/1-1.raw")).expect("a file");
        file.write_all(&vec![0; bytes]).expect("a file");
        let locks = [path.join("raw-1/lock"), library.join("lock")];
        let locks = locks.map(|lock| File::create(lock).expect("a file"));
        if is_locked {
            locks.iter().for_each(|lock| lock.try_lock().expect("nobody has it"));
        }
        // By the folder of the recording, and by that of the library alone.
        for folders in [&[&*place, &*temporary][..], &[&*temporary]] {
            let all = Left::find(folders);
            let recording: Vec<u64> = all
                .iter()
                .filter(|left| left.path == path.canonicalize().expect("it is there"))
                .map(|left| left.bytes)
                .collect();
            assert_eq!(recording, Vec::from_iter(found), "{case}: {all:?}");
            // The library stays with its recording.
            let libraries = all.iter().filter(|left| left.path == library).count();
            assert_eq!(libraries, usize::from(found == Some(0)), "{case}: {all:?}");
            assert!(!all.iter().any(|left| left.path == live.path()), "{case}: {all:?}");
        }
        assert_eq!(Left::open(&path).is_ok(), !is_locked, "{case}");
        drop(locks);
        Left::find(&[&temporary]).iter().for_each(|left| left.remove().expect("it is there"));
        let _ = (fs::remove_dir_all(&path), fs::remove_dir_all(&library));
    }
    assert!(Left::open(live.path()).is_err() && Left::open(Path::new("/")).is_err());
    let (path, library) = (live.path().to_path_buf(), live.library());
    assert!(path.exists() && library.exists());
    drop(live);
    assert!(!path.exists() && !library.exists());
}
