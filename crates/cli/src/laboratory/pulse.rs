//! Progress within simulated runs.

use crate::input::{Progress, style};
use indicatif::ProgressBar;
use slablab_experiment::Pulse;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Time between two looks at how far runs are.
const LOOK_EVERY: Duration = Duration::from_millis(100);

impl Progress {
    /// Progress of simulated runs, within a run too: `pulse` counts in the unit of [`Progress::at`].
    pub(crate) fn of_runs(what: &str, pulse: &Pulse) -> Progress {
        let progress = Progress::new(what);
        if !progress.0.is_hidden() {
            progress.0.set_style(style("{msg} {wide_bar} {percent} % {prefix} {eta}"));
            let (bar, ended, pulse) = (progress.0.clone(), progress.1.clone(), pulse.clone());
            std::thread::spawn(move || show_runs(&bar, &ended, &pulse));
        }
        progress
    }
}

/// Draws how far the runs are until the bar is finished. Nothing is drawn before the whole is known: of
/// nothing the bar would say that all is done.
fn show_runs(bar: &ProgressBar, ended: &[AtomicU64; 2], pulse: &Pulse) {
    while !bar.is_finished() {
        let [done, whole] = [0, 1].map(|at| ended[at].load(Relaxed));
        if whole > 0 {
            bar.set_prefix(format!("{} s simulated", pulse.simulated() / 1_000_000_000_000));
            bar.set_position(done + pulse.partial().min(whole - done.min(whole)));
            bar.tick();
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
