//! Signals after the end of the recorded program, when there is no program that they could be passed to.

use crate::outcome::{Failure, tell};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// From [`Ending::begin`] on SIGINT, SIGTERM and SIGHUP end this process, with 128 + signal as exit code. The
/// recording stays where it is, and the message says how to make the trace of it.
pub(super) struct Ending {
    /// Signals that came since the program's start: [`Ending::begin`] takes them.
    signals: Mutex<Option<Signals>>,
    folder: PathBuf,
    whole: Arc<Mutex<()>>,
}

impl Ending {
    /// Made before the program starts, so that a signal ends nothing by itself from then on.
    pub(super) fn new(folder: PathBuf) -> Result<Ending, Failure> {
        let signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        Ok(Ending { signals: Mutex::new(Some(signals)), folder, whole: Arc::default() })
    }

    /// The program has ended.
    pub(super) fn begin(&self) {
        let taken = self.signals.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut signals) = taken else { return };
        // These were passed to the program, and one of them may have ended it.
        signals.pending().for_each(drop);
        let (folder, whole) = (self.folder.clone(), self.whole.clone());
        std::thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                let _whole = whole.lock().unwrap_or_else(PoisonError::into_inner);
                tell(format_args!("ended by signal {signal}, before the trace was made"));
                super::left::tell_kept(&folder);
                std::process::exit(128 + signal);
            }
        });
    }

    /// No signal ends this process as long as the guard lives.
    pub(super) fn hold(&self) -> MutexGuard<'_, ()> {
        self.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
