//! What the error of a prediction depends on, and the width of the range of a class.

use crate::state::State;
use crate::whatif::change::Change;
use crate::whatif::held::SHEAVES_ONLY_SINCE;
use crate::whatif::rules::Rules;
use crate::whatif::sheaves;
use std::fmt;

/// The part of boots that a range is meant to contain.
pub const COVERAGE: f64 = 0.9;

/// Errors of a class that a range needs, so that the rank of 90 % is not the largest error.
pub const FEWEST: usize = 10;

/// CPUs up to which a machine is small.
const SMALL: u32 = 8;

/// The part of slab memory on partial lists from which on a machine has been under load. Between 20 pairs of
/// dumps: at most 5.1 % five seconds after boot, at least 8.3 % after a load.
const LOADED: f64 = 0.0625;

/// What was asked, as far as errors depend on it. Of several changes the first in this order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// Debugging of all caches switched.
    Debug,
    /// Another number of CPUs.
    Cpus,
    /// Other orders, or merging switched.
    Order,
    /// Nothing: another boot of the same machine.
    Nothing,
}

/// What the error of a prediction depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class {
    /// What was asked.
    pub question: Question,
    /// Whether the machine has more than 8 CPUs, today or then.
    pub large: bool,
    /// Whether it has been under load since it booted.
    pub loaded: bool,
    /// Whether there are more than four times as many CPUs, or fewer than a fourth.
    pub far: bool,
}

/// The ratio of CPUs up to which a prediction is near.
const NEAR: u32 = 4;

/// The largest ratio of CPUs that boots measured: beyond, ranges grow as its logarithm does (assumed).
const MEASURED: f64 = 16.0;

impl Question {
    /// All of them.
    pub const ALL: [Question; 4] = [Question::Debug, Question::Cpus, Question::Order, Question::Nothing];

    fn of(change: &Change) -> Question {
        let same = Change::default();
        match change {
            Change { debug: Some(_), .. } => Question::Debug,
            Change { cpus: Some(_), .. } => Question::Cpus,
            _ if *change == same => Question::Nothing,
            _ => Question::Order,
        }
    }

    /// The word in tables.
    pub fn name(self) -> &'static str {
        match self {
            Question::Debug => "debug",
            Question::Cpus => "cpus",
            Question::Order => "order",
            Question::Nothing => "nothing",
        }
    }
}

impl Class {
    /// The class of a prediction.
    pub fn of(state: &State, change: &Change, then: &Rules) -> Class {
        let today = state.cpus.map_or(0, |cpus| cpus.online);
        let (fewer, more) = (today.min(then.cpus.online), today.max(then.cpus.online));
        let far = more > fewer.saturating_mul(NEAR);
        Class { question: Question::of(change), large: more > SMALL, loaded: is_loaded(state), far }
    }
}

/// How much wider the range of so many CPUs instead of `today` is than any that boots measured.
pub fn beyond(today: u32, then: u32) -> f64 {
    let ratio = f64::from(today.max(then)) / f64::from(today.min(then).max(1));
    (ratio.ln() / MEASURED.ln()).max(1.0)
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = if self.large { "more than 8 CPUs" } else { "up to 8 CPUs" };
        let state = if self.loaded { "after a load" } else { "just after boot" };
        let far = if self.far { ", more than a factor of four" } else { "" };
        write!(f, "{}, {size}, {state}{far}", self.question.name())
    }
}

/// Whether a machine has been under load: what it freed is on partial lists. Without sysfs that does not
/// show, and a load is assumed.
pub fn is_loaded(state: &State) -> bool {
    if state.release.is_some_and(|release| release >= SHEAVES_ONLY_SINCE) {
        // Slabs that CPUs would hold are on the nodes' lists there.
        return sheaves::is_loaded(state);
    }
    let (mut partial, mut all, mut known) = (0u64, 0u64, false);
    for cache in &state.caches {
        let slab = cache.slab_bytes(state.page_size);
        let Some(attrs) = &cache.attrs else { continue };
        // Both counts are of one walk through sysfs.
        let slabs = attrs.slabs.as_ref().map_or(cache.slabs, |counts| counts.total.value);
        all = all.saturating_add(slabs.saturating_mul(slab));
        let on_cpus = attrs.slabs_cpu_partial.as_ref().and_then(|counts| counts.total.slabs);
        let on_nodes = attrs.partial.as_ref().map(|counts| counts.total.value);
        known |= on_nodes.is_some();
        let slabs = on_cpus.unwrap_or(0).saturating_add(on_nodes.unwrap_or(0));
        partial = partial.saturating_add(slabs.saturating_mul(slab));
    }
    !known || partial as f64 > LOADED * all as f64
}

/// The error of one prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct LogError {
    /// What it depends on.
    pub class: Class,
    /// Architecture and CPUs of the predicted machine.
    pub machine: String,
    /// `ln(real / predicted)`.
    pub ln: f64,
}

/// Half the width of the range of a class, as a logarithm, from measured errors. If they are fewer than
/// [`FEWEST`], or on one machine only, the range is at least as wide as that of the question in any state,
/// then on machines of any size, then of any ratio of CPUs, then of all questions. With other CPUs it is at
/// least as wide as two boots of one machine differ.
pub fn half_width<'a>(errors: impl Iterator<Item = &'a LogError>, class: Class) -> f64 {
    let errors: Vec<&LogError> = errors.collect();
    let same = |other: Class| other.question == class.question;
    let far = |other: Class| same(other) && other.far == class.far;
    let wider: [&dyn Fn(Class) -> bool; 5] = [
        &|other| other == class,
        &|other| far(other) && other.large == class.large,
        &|other| far(other),
        &|other| same(other),
        &|_| true,
    ];
    let of = |wanted: &dyn Fn(Class) -> bool| -> Vec<&LogError> {
        errors.iter().copied().filter(|error| wanted(error.class)).collect()
    };
    // No prediction of other CPUs is better than a second boot of a machine of that size.
    let again = of(&|other| other.question == Question::Nothing && other.large == class.large);
    let mut width = if class.question == Question::Cpus { quantile(&again) } else { 0.0 };
    for of_class in wider {
        let chosen = of(of_class);
        width = width.max(quantile(&chosen));
        let several = chosen.iter().any(|error| error.machine != chosen[0].machine);
        if chosen.len() >= FEWEST && several {
            break;
        }
    }
    width
}

/// The size of the error of rank `ceil(0.9 (n + 1))`, or of the largest.
fn quantile(errors: &[&LogError]) -> f64 {
    let mut sizes: Vec<f64> = errors.iter().map(|error| error.ln.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let rank = (COVERAGE * (sizes.len() + 1) as f64).ceil() as usize;
    sizes.get(rank.min(sizes.len()).saturating_sub(1)).copied().unwrap_or(0.0)
}
