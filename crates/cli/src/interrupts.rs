//! Signals that end a long verb: exit code 128 + signal, and no file half written.

use crate::input::Progress;
use crate::outcome::Failure;
use indicatif::ProgressBar;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Signals in this time are one: `timeout` sends its own to the program and to its process group.
const ONE_SIGNAL: Duration = Duration::from_secs(1);

/// The number of the first SIGINT or SIGTERM from now on, 0 until one comes, for a verb that looks at it. A
/// later one ends the program at once.
pub(crate) fn polled() -> Result<Arc<AtomicUsize>, Failure> {
    let first = Arc::new(AtomicUsize::new(0));
    let (mut signals, seen) = (Signals::new([SIGINT, SIGTERM])?, first.clone());
    std::thread::spawn(move || {
        let mut since = None;
        for signal in signals.forever() {
            seen.compare_exchange(0, signal as usize, Relaxed, Relaxed).ok();
            if since.get_or_insert_with(Instant::now).elapsed() > ONE_SIGNAL {
                let _ = emulate_default_handler(signal);
            }
        }
    });
    Ok(first)
}

/// From its making on SIGINT and SIGTERM end the program at once, except while an answer is written: then as
/// soon as that is whole.
pub(crate) struct Interrupts;

/// Held while an answer is written.
static WRITING: Mutex<()> = Mutex::new(());
/// A file that nobody asked to keep.
pub(crate) static TEMPORARY: Mutex<Option<PathBuf>> = Mutex::new(None);
/// The bar to be cleared; `None`: no thread waits for signals yet.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

impl Interrupts {
    /// `progress` is cleared before the program ends, in the place of an earlier one.
    pub(crate) fn new(progress: &Progress) -> Result<Interrupts, Failure> {
        let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.replace(progress.bar()).is_some() {
            return Ok(Interrupts);
        }
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        std::thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                if let Some(bar) = &*SHOWN.lock().unwrap_or_else(PoisonError::into_inner) {
                    bar.finish_and_clear();
                }
                let _whole = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(path) = TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner).take() {
                    // It may not be there yet.
                    let _ = std::fs::remove_file(path);
                }
                std::process::exit(128 + signal);
            }
        });
        Ok(Interrupts)
    }

    /// The program is not ended as long as the guard lives.
    pub(crate) fn hold(&self) -> MutexGuard<'static, ()> {
        WRITING.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
