//! From the command's start to its end, or to a signal's, the time's or the disk's.

use super::super::program::Program;
use super::Recorder;
use super::spool::{CLOSED, Room};
use crate::outcome::{Done, Failure};
use indicatif::{ProgressBar, ProgressStyle};
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How often the disk's room is looked at, and progress is drawn.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Why a recording ended.
pub(super) enum End {
    /// The command ended.
    Command,
    /// There was no command, and a signal came.
    Signal(i32),
    /// The time is over.
    Time,
    /// There is no room for more.
    Room,
    /// The recorder ended by itself.
    Recorder,
}

impl End {
    /// What the user should know of it.
    pub(super) fn problem(&self) -> Option<String> {
        match self {
            End::Room => {
                Some("the disk is nearly full: free some space, or write to another disk with -o".into())
            }
            End::Recorder => Some("the recorder ended by itself".into()),
            End::Command | End::Signal(_) | End::Time => None,
        }
    }
}

/// Signals from the beginning on, and the command once it runs. No signal ends this process: what is switched
/// on is switched off first.
pub(super) struct Session {
    signals: Signals,
    /// The command's end, when it comes; `None` without a command.
    ended: Option<Receiver<Result<Done, String>>>,
    done: Option<Result<Done, String>>,
    progress: ProgressBar,
}

impl Session {
    pub(super) fn new() -> Result<Session, Failure> {
        // A file that grows beyond a limit is an error of its writer, not the end of this process.
        signal_hook::flag::register(Signal::XFSZ.as_raw(), std::sync::Arc::default())?;
        let signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP])?;
        let progress = match std::io::stderr().is_terminal() {
            true => ProgressBar::new_spinner(),
            false => ProgressBar::hidden(),
        };
        let style = ProgressStyle::with_template("record {spinner} {elapsed} {msg}");
        progress.set_style(style.expect("the template is right"));
        Ok(Session { signals, ended: None, done: None, progress })
    }

    /// Starts the command, if there is one.
    pub(super) fn begin(&mut self, words: &[OsString]) -> Result<(), Failure> {
        // Without a command, a signal ends the recording, which goes on already: [`Session::wait`] finds it.
        if words.is_empty() {
            return Ok(());
        }
        // A signal while the state was read, or perf began.
        if self.is_interrupted() {
            return Err("interrupted before the command began: nothing was recorded".into());
        }
        let program = Program::start(words, &[])?;
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let done = program.wait().map(|(done, _)| done).map_err(|error| error.to_string());
            // The receiver is gone if this process ends with an error.
            let _ = sender.send(done);
        });
        self.ended = Some(receiver);
        Ok(())
    }

    /// Waits for what ends the recording. The command gets the signals that come meanwhile.
    pub(super) fn wait(&mut self, recorder: &mut Recorder, room: &Room, time: Option<Duration>) -> End {
        let deadline = time.map(|time| Instant::now() + time);
        let end = loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let nap = left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY));
            if self.has_ended(nap) {
                break End::Command;
            }
            // With a command they are the command's, which has got them.
            let signal = self.signals.pending().next();
            if let (Some(signal), None) = (signal, &self.ended) {
                break End::Signal(signal);
            }
            if left.is_some_and(|left| left.is_zero()) {
                break End::Time;
            }
            if !room.is_enough() {
                CLOSED.store(true, Relaxed);
                break End::Room;
            }
            if !recorder.is_alive() {
                break End::Recorder;
            }
            if !self.progress.is_hidden() {
                let (events, lost) = recorder.counts();
                self.progress.set_message(format!("{events} events, {lost} lost"));
                self.progress.tick();
            }
        };
        self.progress.finish_and_clear();
        end
    }

    /// Whether the command ended within `nap`; without one, a nap.
    fn has_ended(&mut self, nap: Duration) -> bool {
        let Some(ended) = &self.ended else {
            std::thread::sleep(nap);
            return false;
        };
        match ended.recv_timeout(nap) {
            Ok(done) => self.done = Some(done),
            Err(RecvTimeoutError::Timeout) => return false,
            Err(RecvTimeoutError::Disconnected) => {
                self.done = Some(Err("the command's end is not known".into()))
            }
        }
        true
    }

    /// Whether the command still runs.
    pub(super) fn runs(&self) -> bool {
        self.ended.is_some() && self.done.is_none()
    }

    /// Waits for the command's end; `None` without a command.
    pub(super) fn finish(&mut self) -> Result<Option<Done>, Failure> {
        let Some(ended) = &self.ended else { return Ok(None) };
        let done = match self.done.take() {
            Some(done) => done,
            None => ended.recv()?,
        };
        // Those that were the command's.
        self.signals.pending().for_each(drop);
        Ok(Some(done?))
    }

    /// Whether a signal came since the last look.
    pub(super) fn is_interrupted(&mut self) -> bool {
        self.signals.pending().next().is_some()
    }
}
