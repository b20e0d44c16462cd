//! A trace through engines.
//!
//! ```text
//! Recording ── survey      one pass: what existed before, by real addresses
//!    │
//!    ├─ caches   which cache a row belongs to
//!    ├─ before   what a dump says about the start
//!    ├─ plan     the slabs to begin with
//!    ├─ hotplug  CPUs that go off and on, as asked
//!    └─ run      start, one pass per engine, side by side, finish ── outcome
//!       └─ plug  what they do to engines
//! ```
//!
//! The rules where a recording is silent are in docs/replay.md; each has a count in the outcome.

pub mod before;
pub mod caches;
mod finish;
pub mod hotplug;
pub mod outcome;
pub mod plan;
mod plug;
pub mod run;
mod start;
pub mod survey;
pub mod timeline;

use crate::error::{Error, Result};
use crate::machine::{self, Chosen, MachineFile};
use before::Before;
use caches::CacheTable;
use hotplug::{Command, Schedule};
use outcome::Outcome;
use rayon::prelude::*;
use slablab_slabs::preset::Preset;
use slablab_slabs::{Release, slqb::Slqb, slub::Slub};
use slablab_workloads::{Metadata, Reader};
use std::path::{Path, PathBuf};

/// What to replay, on what, from which start.
#[derive(Debug, Default)]
pub struct Options {
    /// Engines; none means the recording kernel's own and the others.
    pub engines: Vec<Preset>,
    /// Changes to the machine.
    pub machine: MachineFile,
    /// The state before the recording.
    pub before: Option<Before>,
    /// Without engines: the recording kernel's own alone.
    pub kernel_only: bool,
    /// CPUs that go off and on.
    pub hotplug: Vec<Command>,
}

/// A replay's answer.
#[derive(Debug)]
pub struct Replay {
    /// The trace.
    pub path: PathBuf,
    /// What is known about the recording.
    pub metadata: Metadata,
    /// The machine, and what was assumed about it.
    pub machine: Chosen,
    /// What was assumed about the start and the caches.
    pub assumed: Vec<String>,
    /// CPUs that went off and on.
    pub hotplug: Vec<Command>,
    /// One per engine, in the order asked.
    pub outcomes: Vec<Outcome>,
}

/// Replays a trace; `path` is its name in errors.
///
/// # Errors
/// A trace that cannot be read, or a machine that cannot be modelled.
pub fn replay(
    reader: &Reader,
    path: &Path,
    options: &Options,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Replay> {
    let metadata = reader.metadata().clone();
    let dump = options.before.as_ref().and_then(|before| before.dump.as_ref());
    check_numbers(&metadata, reader.rows(), path)?;
    let machine = machine::choose(&metadata, dump, &options.machine, path)?;
    let hotplug = Schedule::new(&options.hotplug, &metadata, &machine.spec)?;
    let mut assumed = hotplug.assumed.clone();
    let kernel = recorded_kernel(&metadata, &mut assumed);
    let engines = match options.engines.is_empty() {
        true if options.kernel_only => vec![kernel],
        true => default_engines(kernel),
        false => options.engines.clone(),
    };
    let table =
        CacheTable::new(&metadata, options.before.as_ref(), machine.spec.page_shift, kernel, &machine);
    assumed.extend(table.ambiguous.clone());
    if metadata.pairing_only {
        assumed.push(
            "the recording's addresses are hashed: who allocated and freed what is as recorded; which objects shared a \
             slab or page before it, on which node they were, and which untraced frees its page events show, cannot be \
             known"
                .into(),
        );
    }
    let survey = survey::survey(path, reader, &table, options)?;
    let plan = plan::plan(&table, &survey, options.before.as_ref(), &machine, &mut assumed);
    let rows = reader.rows() * engines.len() as u64;
    let done = std::sync::atomic::AtomicU64::new(0);
    let tick = |n: u64| progress(done.fetch_add(n, std::sync::atomic::Ordering::Relaxed) + n, rows);
    let job =
        run::Job { path, reader, table: &table, plan: &plan, machine: &machine.spec, hotplug: &hotplug };
    let outcomes = engines
        .par_iter()
        .map(|preset| match preset {
            Preset::Slub(policy) => job.run::<Slub<_>>(*preset, policy, &tick),
            Preset::Slqb(policy) => job.run::<Slqb<_>>(*preset, policy, &tick),
        })
        .collect::<Result<Vec<_>>>()?;
    let hotplug = options.hotplug.clone();
    Ok(Replay { path: path.to_path_buf(), metadata, machine, assumed, hotplug, outcomes })
}

/// Caches are numbered in 16 bits, with the types of each kmalloc size.
const CACHES_MAX: usize = 1 << 15;

/// Numbers by which tables are made: a file may say anything.
fn check_numbers(metadata: &Metadata, rows: u64, path: &Path) -> Result<()> {
    let ids = metadata.statistics.object_ids;
    if ids > rows {
        return Err(Error::new(path, format!("object ids below {ids} in {rows} rows: expected dense ids")));
    }
    let caches = metadata.caches.len();
    if caches > CACHES_MAX {
        return Err(Error::new(path, format!("{caches} caches: expected at most {CACHES_MAX}")));
    }
    Ok(())
}

/// The SLUB that the recording kernel ran.
fn recorded_kernel(metadata: &Metadata, assumed: &mut Vec<String>) -> Preset {
    let release = metadata.release.as_deref().and_then(Release::parse);
    match release.and_then(|release| Some((release, Preset::of_kernel(release)?))) {
        Some((release, preset)) => {
            // The third number of 2.6 is a release, of later ones it is a bug fix.
            let series = |release: Release| {
                (release.major, release.minor, if release.major == 2 { release.patch } else { 0 })
            };
            if series(release) != series(preset.release()) {
                assumed.push(format!(
                    "{preset} stands for {release}: it is the newest preset that is not newer"
                ));
            }
            preset
        }
        None => {
            let preset = Preset::parse("slub").expect("slub has presets");
            assumed.push(format!("{preset} ran on the recording machine: it does not say which kernel"));
            preset
        }
    }
}

/// The recording kernel's own preset, and the newest of every other engine.
fn default_engines(kernel: Preset) -> Vec<Preset> {
    let others = slablab_slabs::preset::ENGINES.iter().filter(|engine| **engine != kernel.engine());
    std::iter::once(kernel).chain(others.map(|engine| Preset::parse(engine).expect("an engine"))).collect()
}
