//! The program that is recorded: its start, the signals that it gets, its end.

use crate::outcome::{Done, Failure};
use rustix::process::{Pid, Signal, getpgrp, kill_process};
use rustix::termios::tcgetpgrp;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::{Handle, Signals};
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::thread::JoinHandle;

/// A program that runs. Signals that this process gets meanwhile are the program's.
pub(super) struct Program {
    child: Child,
    handle: Handle,
    passer: JoinHandle<()>,
}

impl Program {
    /// Starts the program.
    pub(super) fn start(words: &[OsString], environment: &[(&str, OsString)]) -> Result<Program, Failure> {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).envs(environment.iter().map(|(name, value)| (name, value)));
        let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2])?;
        let handle = signals.handle();
        let child = command.spawn().map_err(|error| format!("{}: {error}", words[0].to_string_lossy()))?;
        let pid = Pid::from_child(&child);
        let passer = std::thread::spawn(move || {
            for signal in signals.forever() {
                // A terminal sends its keys' signals to the program as well.
                if matches!(signal, SIGINT | SIGQUIT) && is_in_foreground() {
                    continue;
                }
                if let Some(signal) = Signal::from_named_raw(signal) {
                    // The program may have ended.
                    let _ = kill_process(pid, signal);
                }
            }
        });
        Ok(Program { child, handle, passer })
    }

    /// Waits for the program's end. Returns it, and the number of its process.
    pub(super) fn wait(mut self) -> Result<(Done, u64), Failure> {
        let status = self.child.wait()?;
        self.handle.close();
        self.passer.join().expect("it does not panic");
        let done = match status.code() {
            Some(0) => Done::Complete,
            Some(code) => Done::Exited { code: code as u8 },
            None => Done::Ended { signal: status.signal().unwrap_or(0) },
        };
        Ok((done, u64::from(self.child.id())))
    }
}

/// Whether this process gets the signals of its terminal's keys.
fn is_in_foreground() -> bool {
    let terminal = File::open("/dev/tty");
    terminal.ok().and_then(|terminal| tcgetpgrp(terminal).ok()) == Some(getpgrp())
}
