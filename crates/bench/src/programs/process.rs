//! One run of a program: what it took, and what it printed.

use crate::proof::{Ended, apart, end_of};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use slablab_report::visible;
use std::ffi::OsString;
use std::fs::File;
use std::hash::Hasher;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// What a run took: of the program and of the processes that it waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// From the start to the end.
    pub wall_ns: u64,
    /// CPU time outside of the kernel.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub system_ns: u64,
    /// Page faults, of memory and of files.
    pub faults: u64,
    /// The largest resident set of one process.
    pub peak_bytes: u64,
    /// The exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// A hash of what it printed; `None` if a process that it left behind still can.
    pub printed: Option<u64>,
}

/// How a program is started.
pub(super) struct Start<'a> {
    pub(super) words: &'a [OsString],
    pub(super) input: Option<&'a Path>,
    pub(super) environment: &'a [(&'static str, OsString)],
}

/// A run, or that it was ended because `go_on` said so.
pub(super) enum Run {
    Whole(Sample, Vec<u8>),
    Stopped,
}

/// How often `go_on` is asked while the program runs.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// How long the output of a program that ended may stay open.
const DRAIN: Duration = Duration::from_secs(1);
/// The last bytes of the standard error that are kept.
const TAIL: usize = 2000;

/// Runs a program once. With a whole run comes the end of what it said on standard error.
///
/// # Errors
/// It cannot be started or waited for.
pub(super) fn once(start: &Start<'_>, go_on: &dyn Fn() -> bool) -> Result<Run, String> {
    let name = start.words[0].to_string_lossy();
    let failed = |error: std::io::Error| format!("{name}: {error}");
    let input = match start.input {
        Some(path) => File::open(path).map_err(|error| format!("{}: {error}", visible::path(path)))?.into(),
        None => Stdio::null(),
    };
    let mut command = Command::new(&start.words[0]);
    command.args(&start.words[1..]).envs(start.environment.iter().map(|(key, value)| (key, value)));
    apart(&mut command).stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
    let begin = Instant::now();
    let mut child = command.spawn().map_err(failed)?;
    let printed = drained(child.stdout.take().expect("it is piped"));
    let said = drained(child.stderr.take().expect("it is piped"));
    let pid = Pid::from_child(&child);
    let watched = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| failed(error.into()))?;
    let mut is_stopped = false;
    while poll(&mut [PollFd::new(&watched, PollFlags::IN)], Some(&LOOK)) == Ok(0) {
        if !is_stopped && !go_on() {
            is_stopped = true;
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::TERM);
        }
    }
    let wall_ns = begin.elapsed().as_nanos() as u64;
    let Ended { code, usage, peak_bytes } = end_of(pid).map_err(failed)?;
    let printed = printed.recv_timeout(DRAIN).ok();
    let said = said.recv_timeout(DRAIN).map_or(Vec::new(), |drained| drained.tail);
    if is_stopped {
        return Ok(Run::Stopped);
    }
    let sample = Sample {
        wall_ns,
        user_ns: usage.user_ns,
        system_ns: usage.system_ns,
        faults: usage.faults,
        peak_bytes,
        code,
        printed: printed.map(|drained| drained.hash),
    };
    Ok(Run::Whole(sample, said))
}

/// What came out of a pipe.
struct Drained {
    hash: u64,
    tail: Vec<u8>,
}

/// Reads a pipe to its end, in a thread of its own.
fn drained(mut pipe: impl Read + Send + 'static) -> Receiver<Drained> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut hash = std::hash::DefaultHasher::new();
        let (mut tail, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            hash.write(&buffer[..count]);
            tail.extend_from_slice(&buffer[..count]);
            tail.drain(..tail.len().saturating_sub(TAIL));
        }
        // The run may have been given up.
        let _ = sender.send(Drained { hash: hash.finish(), tail });
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str) -> (Sample, String) {
        let words = ["sh", "-c", script].map(OsString::from);
        let start = Start { words: &words, input: None, environment: &[("WORD", "seen".into())] };
        match once(&start, &|| true).expect("it runs") {
            Run::Whole(sample, said) => (sample, String::from_utf8_lossy(&said).into_owned()),
            Run::Stopped => panic!("nobody stops it"),
        }
    }

    #[test]
    fn ends_of_programs() {
        #[track_caller]
        fn check(script: &str, code: Option<i32>, said: &str) {
            let (sample, found) = run(script);
            assert_eq!((sample.code, found.as_str()), (code, said), "{script}");
        }
        check("true", Some(0), "");
        check("echo why >&2; exit 3", Some(3), "why\n");
        check("kill -9 $$", None, "");
        check("test $WORD = seen", Some(0), "");
        check("cat", Some(0), "");
        // Output above a pipe's size, which nobody else reads.
        check("head -c 300000 /dev/zero", Some(0), "");
    }

    #[test]
    fn outputs_are_told_apart_and_pieces_are_not() {
        let printed = |script: &str| run(script).0.printed.expect("nothing holds it open");
        assert_eq!(printed("echo a; echo b"), printed("printf 'a\\nb\\n'"));
        assert_ne!(printed("echo a"), printed("echo b"));
    }

    /// A program of a known size: what it takes is the program's, not this process's.
    #[test]
    fn peaks_are_the_programs() {
        let ballast = vec![1u8; 64 << 20];
        let peak = |script| run(script).0.peak_bytes;
        let (small, large) =
            (peak("true"), peak("head -c 40000000 /dev/zero | tail -c 40000000 > /dev/null"));
        assert!(large > 40_000_000, "{large}");
        // A child has a copy of this process's memory until it executes: that much is the least.
        assert!(small < (80 << 20) + ballast.len() as u64, "{small}");
    }

    #[test]
    fn a_program_is_stopped() {
        let words = ["sleep", "60"].map(OsString::from);
        let start = Start { words: &words, input: None, environment: &[] };
        assert!(matches!(once(&start, &|| false), Ok(Run::Stopped)));
    }
}
