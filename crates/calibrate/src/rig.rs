//! A run: all probes in turn, one block each, until the time is over.

use crate::host::Host;
use crate::probes::{MAKERS, Pairs, Pinned, Place, Probe};
use crate::series::Samples;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

/// The fewest rounds of a run, whatever time they take.
const ROUNDS_MIN: usize = 8;

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Time for the rounds. Preparation takes about a second more.
    pub time: Duration,
}

impl Options {
    /// About a minute.
    pub const FULL: Options = Options { time: Duration::from_secs(55) };
    /// Some seconds: the spread is wider.
    pub const QUICK: Options = Options { time: Duration::from_secs(6) };
}

/// Hears of progress, and may stop a run.
pub trait Watcher {
    /// `done` of `whole` milliseconds are over. Returns whether the run goes on.
    fn at(&self, done: u64, whole: u64) -> bool;
}

/// A run's result.
#[derive(Clone, Debug, Default)]
pub struct Calibration {
    /// The host.
    pub host: Host,
    /// The samples of every series.
    pub samples: Samples,
    /// How often all probes ran.
    pub rounds: usize,
    /// How long the run took, in seconds.
    pub seconds: f64,
    /// What disturbed the run.
    pub noise: Noise,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

/// What disturbed a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Noise {
    /// Load average before and after: threads that want to run.
    pub load: [f64; 2],
    /// The share of the CPUs' time that other programs used; 0 to 1.
    pub others: f64,
    /// The share of the CPUs' time that the hypervisor gave to others; 0 to 1.
    pub stolen: f64,
    /// The share of blocks that took more than 1.5 times the median of their series; 0 to 1.
    pub disturbed: f64,
}

/// Measures this host. `None` if the watcher stopped the run.
///
/// # Errors
/// If this process may not choose its CPU.
pub fn run(options: Options, watcher: &dyn Watcher) -> io::Result<Option<Calibration>> {
    let host = Host::read();
    let place = Place::new(&host);
    let _pinned = Pinned::to(place.home)?;
    let (before, started) = (CpuTime::now(), Instant::now());
    let load = load();
    let mut notes = Vec::new();
    let mut probes: Vec<(&str, Box<dyn Probe>)> = Vec::new();
    let whole = options.time.as_millis() as u64;
    for (name, make) in MAKERS {
        if !watcher.at(0, whole) {
            return Ok(None);
        }
        match make(&place) {
            Ok(probe) => probes.push((name, probe)),
            Err(error) => notes.push(format!("{name}: left out: {error}")),
        }
    }
    let mut pairs = Pairs::new(&place)?;
    let mut samples = Samples::default();
    let (mut rounds, start) = (0, Instant::now());
    while rounds < ROUNDS_MIN || start.elapsed() < options.time {
        let mut at = 0;
        while at < probes.len() {
            if !watcher.at((start.elapsed().as_millis() as u64).min(whole), whole) {
                return Ok(None);
            }
            let (name, probe) = &mut probes[at];
            match probe.block(&mut samples) {
                Ok(()) => at += 1,
                Err(error) => {
                    notes.push(format!("{name}: stopped in round {}: {error}", rounds + 1));
                    probes.remove(at);
                }
            }
        }
        pairs.block(&mut samples)?;
        rounds += 1;
    }
    if pairs.left() > 0 {
        notes.push(format!("{} pairs of CPUs were not measured: more time is needed", pairs.left()));
    }
    let seconds = started.elapsed().as_secs_f64();
    let [others, stolen] = CpuTime::now().shares_since(before);
    let noise = Noise { load: [load, self::load()], others, stolen, disturbed: samples.disturbed() };
    Ok(Some(Calibration { host: host.clone(), samples, rounds, seconds, noise, notes }))
}

fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

/// Ticks of all CPUs and of this process.
#[derive(Clone, Copy)]
struct CpuTime {
    busy: u64,
    stolen: u64,
    all: u64,
    ours: u64,
}

impl CpuTime {
    fn now() -> CpuTime {
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        let first = text.lines().next().unwrap_or_default();
        let ticks: Vec<u64> = first.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
        let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
        // user, nice, system, idle, iowait, irq, softirq, steal; guests are part of user.
        let all: u64 = (0..8).map(at).sum();
        let own = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let after = own.rsplit_once(')').map_or("", |(_, rest)| rest);
        // utime, stime and those of children that ended are fields 14 to 17; the text begins at field 3.
        let ours =
            after.split_whitespace().skip(11).take(4).filter_map(|word| word.parse::<u64>().ok()).sum();
        CpuTime { busy: all - at(3) - at(4) - at(7), stolen: at(7), all, ours }
    }

    fn shares_since(self, before: CpuTime) -> [f64; 2] {
        let all = self.all.saturating_sub(before.all).max(1) as f64;
        let ours = self.ours.saturating_sub(before.ours);
        let others = self.busy.saturating_sub(before.busy).saturating_sub(ours);
        [others as f64 / all, self.stolen.saturating_sub(before.stolen) as f64 / all]
    }
}
