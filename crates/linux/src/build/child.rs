//! Commands: each in a process group of its own, so that a caller that stops ends all of its processes.

use rustix::process::{Pid, Signal, kill_process_group};
use slablab_report::Error;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Time between two questions whether to go on.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// The time that processes have to end by themselves: make removes the file that it was making.
const PATIENCE: Duration = Duration::from_secs(3);

/// Why a build ended without an image.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The caller said so.
    Stopped,
    /// It cannot be built.
    Bad(Error),
}

impl From<Error> for Ending {
    fn from(error: Error) -> Ending {
        Ending::Bad(error)
    }
}

/// What a command wrote, and how it ended.
pub(crate) struct Ran {
    /// Standard output and standard error, in the order in which they were written.
    pub(crate) lines: Vec<String>,
    pub(crate) status: ExitStatus,
}

/// Runs a command to its end. `heard` hears every line, and `None` from time to time; if it says false, all
/// processes of the command are ended.
///
/// # Errors
/// A command that cannot be started; [`Ending::Stopped`].
pub(crate) fn run(command: &mut Command, heard: &mut dyn FnMut(Option<&str>) -> bool) -> Result<Ran, Ending> {
    let program = Path::new(command.get_program()).to_path_buf();
    let bad = |error: std::io::Error| Ending::Bad(Error::new(&program, error));
    let (reader, writer) = std::io::pipe().map_err(bad)?;
    command.stdin(Stdio::null()).stdout(writer.try_clone().map_err(bad)?).stderr(writer).process_group(0);
    let child = command.spawn();
    // The command holds the other end of the pipe, which would never end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut group = Group { child: child.map_err(bad)?, is_over: false };
    let (sender, lines) = channel();
    let listener = std::thread::spawn(move || {
        let whole = BufReader::new(reader).split(b'\n').map_while(std::io::Result::ok);
        let text = whole.map(|line| String::from_utf8_lossy(&line).into_owned());
        text.take_while(|line| sender.send(line.clone()).is_ok()).for_each(drop);
    });
    let lines = listen(&lines, heard).ok_or(Ending::Stopped)?;
    let status = group.child.wait().map_err(bad)?;
    group.is_over = true;
    listener.join().expect("a reader of lines does not panic");
    Ok(Ran { lines, status })
}

/// All lines to the last one; `None` if `heard` said to stop.
fn listen(from: &Receiver<String>, heard: &mut dyn FnMut(Option<&str>) -> bool) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    loop {
        let goes_on = match from.recv_timeout(ASK_EVERY) {
            Ok(line) => {
                let goes_on = heard(Some(&line));
                lines.push(line);
                goes_on
            }
            Err(RecvTimeoutError::Timeout) => heard(None),
            Err(RecvTimeoutError::Disconnected) => return Some(lines),
        };
        if !goes_on {
            return None;
        }
    }
}

/// A process group, ended and reaped when it is dropped before its end.
struct Group {
    child: Child,
    is_over: bool,
}

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.signal(Signal::TERM);
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            std::thread::sleep(ASK_EVERY);
        }
        // Also what make left behind.
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn lines_come_in_order_from_both_outputs() {
        let ran = run(&mut shell("echo one; echo two >&2; echo three; exit 3"), &mut |_| true);
        let Ok(ran) = ran else { panic!("sh runs") };
        assert_eq!((ran.lines.join(" ").as_str(), ran.status.code()), ("one two three", Some(3)));
    }

    #[test]
    fn a_stop_ends_the_children_of_the_command() {
        let mut pids = String::new();
        let begun = Instant::now();
        let ran = run(&mut shell("sleep 60 & echo $! $$; wait"), &mut |line| {
            line.inspect(|line| pids = (*line).into()).is_none()
        });
        assert!(matches!(ran, Err(Ending::Stopped)) && begun.elapsed() < Duration::from_secs(20));
        assert_eq!(pids.split(' ').count(), 2, "{pids}");
        // A process that was killed ends when it runs next, on a busy machine not at once.
        let is_there = |pid: &str| {
            let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            state.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['R', 'S', 'D']))
        };
        while pids.split(' ').any(is_there) {
            assert!(begun.elapsed() < Duration::from_secs(20), "{pids}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_missing_command_is_named() {
        let ran = run(&mut Command::new("/nonexistent/make"), &mut |_| true);
        let Err(Ending::Bad(error)) = ran else { panic!("there is no such command") };
        assert!(error.to_string().starts_with("/nonexistent/make: "), "{error}");
    }
}
