//! Slabs that no shrinker frees beside those of a machine that has only booted, in words.

use crate::state::State;
use crate::whatif::normal::{Bytes, Normal};
use crate::words::{counted, size};

/// How often a distribution's modules and services make a boot's slabs: measured were 3 to 6 times
/// (docs/doctor.md).
const USUAL: f64 = 6.0;
/// How often a boot's slabs are worth a sentence, whatever else is fine: three times the most that is usual.
const MANY: f64 = 18.0;

/// What the machine has, beside what is normal.
pub(super) struct Compared {
    normal: Normal,
    stays: u64,
}

impl Compared {
    /// `stays` bytes of slabs that no shrinker frees, beside a boot; `None` where that is not known.
    pub(super) fn of(state: &State, stays: u64) -> Option<Compared> {
        let normal = Normal::of(state).ok()?;
        (stays > 0).then_some(Compared { normal, stays })
    }

    /// Whether a boot takes as much.
    pub(super) fn fits(&self) -> bool {
        self.stays <= self.normal.unreclaimable.high
    }

    /// Whether that is worth a sentence, whatever else is fine.
    pub(super) fn is_much(&self) -> bool {
        self.times() >= MANY
    }

    fn times(&self) -> f64 {
        self.stays as f64 / self.normal.unreclaimable.predicted.max(1) as f64
    }

    /// How much a boot takes: `8 to 11.7 MiB on 4 CPUs with 4 KiB pages, predicted from boots of Linux 6.1`.
    pub(super) fn boot(&self) -> String {
        let Bytes { low, high, .. } = self.normal.unreclaimable;
        format!("{} on {}, {}", range(low, high), self.machine(), from(&self.normal))
    }

    /// How often the machine has what a boot takes.
    pub(super) fn words(&self) -> String {
        let Bytes { low, high, .. } = self.normal.unreclaimable;
        if self.fits() {
            return format!("no more than a boot takes: {}", self.boot());
        }
        let times = self.times();
        let times = if times < 9.95 { format!("{times:.1}") } else { format!("{times:.0}") };
        let usual = match self.times() {
            ..=USUAL => "; modules and services make it 3 to 6 times",
            _ => "",
        };
        let (low_high, machine) = (range(low, high), self.machine());
        format!("{times} times what a boot takes on {machine} ({low_high}{usual})")
    }

    fn machine(&self) -> String {
        let pages = self.normal.kernel.page_size >> 10;
        format!("{} with {pages} KiB pages", counted(self.normal.cpus.into(), "CPU"))
    }
}

/// A range with one unit if both ends have the same.
fn range(low: u64, high: u64) -> String {
    let (low, high) = (size(low), size(high));
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, of))) if unit == of => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

fn from(normal: &Normal) -> String {
    let how = if normal.boots.contains(&normal.cpus) { "by" } else { "predicted from" };
    format!("{how} boots of Linux {}", normal.kernel.release)
}
