//! Signals that end a long verb: exit code 128 + signal, and no file half written.

use crate::input::Progress;
use crate::outcome::Failure;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// From its making on SIGINT and SIGTERM end the program at once, except while an answer is written: then as
/// soon as that is whole.
pub(crate) struct Interrupts(Arc<Mutex<()>>);

impl Interrupts {
    /// `progress` is cleared before the program ends.
    pub(crate) fn new(progress: &Progress) -> Result<Interrupts, Failure> {
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let (writing, progress) = (Arc::new(Mutex::new(())), progress.bar());
        let held = writing.clone();
        std::thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                progress.finish_and_clear();
                let _whole = held.lock().unwrap_or_else(PoisonError::into_inner);
                std::process::exit(128 + signal);
            }
        });
        Ok(Interrupts(writing))
    }

    /// The program is not ended as long as the guard lives.
    pub(crate) fn hold(&self) -> MutexGuard<'_, ()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
