//! The rig: the choice of workloads, their order, and the number of repetitions.

use crate::child::{self, Child};
use crate::clock::Sample;
use crate::contestants::{Known, identify};
use crate::memory::{Footprint, Held};
use crate::patterns::{Contestant, Group, Task, Workload};
use crate::random::Random;
use crate::subject::{Subject, Subjects, Visitor};
use crate::{own, threads};
use std::sync::Mutex;

/// The name of the workload [`crate::memory`], which runs in separate processes.
pub const MEMORY: &str = "memory";

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names of workloads or groups. If empty, all.
    pub workloads: Vec<String>,
    /// Names of contestants. If empty, all.
    pub allocators: Vec<String>,
    /// The number of blocks: in each, every contestant runs every workload.
    pub repeats: usize,
    /// Factor on the usual number of operations.
    pub scale: f64,
    /// Seed of orders, sizes and resamples.
    pub seed: u64,
    /// How the program runs [`crate::memory`] and the groups that are alone in children. If `None`, they are
    /// left out.
    pub child: Option<Child>,
    /// Live bytes of [`crate::memory`].
    pub memory_bytes: u64,
}

/// The samples of one contestant for a workload, one per block.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The contestant.
    pub contestant: Contestant,
    /// The samples, in the order of blocks.
    pub samples: Vec<Sample>,
}

/// A workload and all its samples.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The workload.
    pub workload: Workload,
    /// The contestants with their samples, in the order of tables.
    pub lanes: Vec<Lane>,
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct Results {
    /// The options of the run.
    pub options: Options,
    /// The timed workloads.
    pub ran: Vec<Ran>,
    /// The footprints of each allocator's processes.
    pub memory: Vec<(Held, Vec<Footprint>)>,
    /// The number of complete blocks.
    pub blocks: usize,
    /// Workloads and samples that were left out, with the reason.
    pub notes: Vec<String>,
    /// The number of runnable processes on all CPUs before and after, from /proc/loadavg.
    pub load: [f64; 2],
}

/// Decides before every sample whether to continue.
pub trait Watcher {
    /// `done` of `whole` samples are finished. Returns whether to continue.
    fn at(&self, done: u64, whole: u64) -> bool;
}

/// Runs the chosen workloads. An interrupted run returns the complete blocks.
///
/// # Errors
/// Unknown names, a block that another allocator served, or a failed child.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Results, String> {
    /// Two runs at once would measure each other.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(|broken| broken.into_inner());
    let (mut ran, mut notes) = chosen(options)?;
    let memory = memory_chosen(options);
    identify_all()?;
    let mut random = Random::new(options.seed);
    let load = load();
    let memory_repeats = options.repeats.min(MEMORY_REPEATS);
    let lanes: u64 = ran.iter().map(|one| one.lanes.len() as u64).sum();
    let whole = lanes * options.repeats as u64 + (memory.len() * memory_repeats) as u64;
    let mut done = 0;
    let mut go_on = || {
        done += 1;
        watcher.at(done - 1, whole)
    };
    let mut blocks = 0;
    'blocks: for block in 0..options.repeats {
        let mut order: Vec<(usize, usize)> = Vec::new();
        let mut workloads: Vec<usize> = (0..ran.len()).collect();
        random.shuffle(&mut workloads);
        for workload in workloads {
            let mut lanes: Vec<usize> = (0..ran[workload].lanes.len()).collect();
            random.shuffle(&mut lanes);
            order.extend(lanes.into_iter().map(|lane| (workload, lane)));
        }
        for (workload, lane) in order {
            if !go_on() {
                break 'blocks;
            }
            let one = &mut ran[workload];
            let ops = ((one.workload.ops as f64 * options.scale) as u64).max(1);
            let task = Task { ops, seed: options.seed + block as u64 };
            let lane = &mut one.lanes[lane];
            let sample = match &options.child {
                Some(child) if one.workload.group.is_alone() => {
                    let name = child::asked(one.workload.name, lane.contestant.name);
                    child.run(&name, task.ops, task.seed)
                }
                _ => (lane.contestant.run)(task),
            };
            match sample {
                Ok(sample) => lane.samples.push(sample),
                // A child gets the signal that ends the run, too. That is no error of its own.
                Err(_) if !go_on() => break 'blocks,
                Err(error) => return Err(format!("{}: {error}", one.workload.name)),
            }
        }
        blocks = block + 1;
    }
    ran.iter_mut().flat_map(|one| &mut one.lanes).for_each(|lane| lane.samples.truncate(blocks));
    let mut held: Vec<(Held, Vec<Footprint>)> = memory.into_iter().map(|held| (held, Vec::new())).collect();
    if let Some(child) = &options.child {
        'memory: for _ in 0..memory_repeats {
            let mut order: Vec<usize> = (0..held.len()).collect();
            random.shuffle(&mut order);
            for index in order {
                if !go_on() {
                    break 'memory;
                }
                let (allocator, footprints) = &mut held[index];
                footprints.push(child.run(allocator.name, options.memory_bytes, options.seed)?);
            }
        }
    }
    if blocks < options.repeats {
        notes.push(format!("interrupted: {blocks} of {} blocks are complete", options.repeats));
    }
    if blocks < ENOUGH && !ran.is_empty() {
        notes.push(format!("intervals of fewer than {ENOUGH} blocks are too narrow"));
    }
    held.retain(|(_, footprints)| !footprints.is_empty());
    let load = [load, self::load()];
    Ok(Results { options: options.clone(), ran, memory: held, blocks, notes, load })
}

/// The number of blocks from which a bootstrap of medians is reliable. With 3 values, even their whole range
/// contains the median in only 3 of 4 cases.
pub(crate) const ENOUGH: usize = 8;
/// The most children per allocator: the memory of a process varies little from run to run.
const MEMORY_REPEATS: usize = 3;

pub(crate) fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(f64::NAN)
}

/// Checks that every allocator is the one that its name says.
fn identify_all() -> Result<(), String> {
    struct Identify(Result<(), String>);
    impl Visitor for Identify {
        fn visit<A: Subject>(&mut self) {
            if self.0.is_ok() {
                self.0 = identify::<A>();
            }
        }
    }
    let mut identify = Identify(Ok(()));
    Known::each(&mut identify);
    identify.0?;
    own::registered().iter().try_for_each(|own| (own.identify)())
}

/// The names of all workloads and groups, and of all contestants.
pub fn names() -> (Vec<&'static str>, Vec<&'static str>) {
    let all = own::workloads();
    let mut workloads: Vec<&str> = Group::ALL.iter().map(|group| group.name()).collect();
    // A workload may have its group's name, which then means the group.
    let own =
        all.iter().map(|one| one.name).filter(|name| Group::ALL.iter().all(|group| group.name() != *name));
    workloads.extend(own);
    workloads.push(MEMORY);
    let mut contestants: Vec<&str> = Vec::new();
    for one in all.iter().flat_map(|one| &one.contestants) {
        if !contestants.contains(&one.name) {
            contestants.push(one.name);
        }
    }
    (workloads, contestants)
}

fn check_names(what: &str, asked: &[String], known: &[&str]) -> Result<(), String> {
    match asked.iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(format!("{what} {name}: expected some of {}", known.join(", "))),
        None => Ok(()),
    }
}

/// The chosen lanes, and notes about those that are left out.
fn chosen(options: &Options) -> Result<(Vec<Ran>, Vec<String>), String> {
    let (workloads, contestants) = names();
    check_names("--workloads", &options.workloads, &workloads)?;
    check_names("--allocators", &options.allocators, &contestants)?;
    let asked = |list: &[String], name: &str| list.is_empty() || list.iter().any(|one| one == name);
    let cpus = threads::cpus().len();
    let mut notes = Vec::new();
    let mut ran = Vec::new();
    for workload in own::workloads() {
        if !asked(&options.workloads, workload.name) && !asked(&options.workloads, workload.group.name()) {
            continue;
        }
        if options.workloads.is_empty() && workload.group.is_long() {
            continue;
        }
        if workload.group.is_alone() && options.child.is_none() {
            notes.push(format!("{} needs a process of its own: left out", workload.name));
            continue;
        }
        if workload.cpus > cpus {
            notes.push(format!("{} needs {} CPUs: left out", workload.name, workload.cpus));
            continue;
        }
        let lane = |contestant: &Contestant| Lane { contestant: contestant.clone(), samples: Vec::new() };
        let chosen = |one: &&Contestant| asked(&options.allocators, one.name);
        // A floor has one contestant, whatever allocators are chosen.
        let floors = workload.group == Group::Floors;
        let lanes: Vec<Lane> =
            workload.contestants.iter().filter(|one| floors || chosen(one)).map(lane).collect();
        if !lanes.is_empty() {
            ran.push(Ran { workload, lanes });
        }
    }
    if let Ok(engine) = std::env::var("SLABLAB_ENGINE") {
        notes.push(format!("slablab is SLABLAB_ENGINE={engine}"));
    }
    notes.extend(own::notes());
    if cfg!(not(feature = "peers")) {
        notes.push(
            "built without other allocators than glibc: cargo build --profile dist --features peers".into(),
        );
    }
    if PROFILE != "dist" {
        notes.push(format!(
            "built with the profile {PROFILE}: allocators run faster when the program is built as a whole; \
             for figures to report: cargo build --profile dist"
        ));
    }
    Ok((ran, notes))
}

/// The cargo profile that this library was built with.
pub(crate) const PROFILE: &str = env!("SLABLAB_BENCH_PROFILE");

fn memory_chosen(options: &Options) -> Vec<Held> {
    let asked = options.workloads.is_empty() || options.workloads.iter().any(|name| name == MEMORY);
    if !asked || options.child.is_none() {
        return Vec::new();
    }
    let mut all = own::holders();
    all.retain(|held| {
        options.allocators.is_empty() || options.allocators.iter().any(|name| name == held.name)
    });
    all
}
