//! A trace through engines.
//!
//! ```text
//! Recording ── survey      one pass: what existed before, by real addresses
//!    │
//!    ├─ caches   which cache a row belongs to
//!    ├─ before   what a dump says about the start
//!    ├─ plan     the slabs to begin with; differences: where the dump has others
//!    │  ├─ observed the slabs of a cache that the recorder read
//!    │  └─ fill     what the dump counts beyond the objects seen; occupancy: how full slabs were
//!    ├─ untraced when objects were freed and allocated that no event shows
//!    ├─ hotplug  CPUs that go offline and online, by `--at`
//!    └─ run      start, one pass per engine, side by side, finish ── outcome
//!       ├─ run/world    the model, or a world around it
//!       ├─ run/windows  the rows between which a cache counts
//!       ├─ run/unseen   frees of objects that no row allocated
//!       ├─ run/sheaves  memory for sheaves
//!       └─ run/plug     the effects of hotplug on engines
//! ```
//!
//! The rules where a recording is silent are in docs/replay.md; each has a count in the outcome.

pub mod before;
pub mod caches;
mod differences;
mod evidence;
pub mod fill;
mod finish;
pub mod hotplug;
mod observed;
mod occupancy;
pub mod outcome;
mod own;
mod parked;
pub mod partitioned;
pub mod plan;
mod planned;
pub mod run;
mod start;
mod suited;
pub mod survey;
pub mod timeline;
pub mod tuned;
mod untraced;

use crate::machine::{self, Chosen};
use before::Before;
use caches::CacheTable;
pub use evidence::{Evidence, Inference, Read, StartFacts};
use hotplug::{Command, Schedule};
use outcome::Outcome;
use own::Own;
use partitioned::Partitioned;
use rayon::prelude::*;
use slablab_engines::{self as engines, ByCache};
use slablab_machines::MachineFile;
use slablab_model::Model;
use slablab_report::error::{Error, Result};
use slablab_slabs::order::MAX_ORDER;
use slablab_slabs::partition::Partition;
use slablab_slabs::preset::{Choice, Preset};
use slablab_slabs::wrap::{Around, Debugged, Hardened, Wrap};
use slablab_slabs::{
    CacheSpec, Common, Engine, Release, engines::slab::SlabEngine, engines::slob::Slob, engines::slqb::Slqb,
    engines::slub::Slub,
};
use slablab_trace::{Metadata, Reader};
use std::path::{Path, PathBuf};
pub(crate) use suited::check_after;

/// What to replay, on what, from which start.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Engines; none means the recording kernel's own and the others.
    pub engines: Vec<ByCache>,
    /// Changes to the machine.
    pub machine: MachineFile,
    /// The state before the recording.
    pub before: Option<Before>,
    /// Without engines: the recording kernel's own alone.
    pub kernel_only: bool,
    /// CPUs that go off and on.
    pub hotplug: Vec<Command>,
    /// The recording kernel's release, if neither recording nor dump tells it.
    pub release: Option<Release>,
    /// Take a dump of another release, architecture or page size.
    pub force: bool,
    /// What may set the start besides the dump and the events of objects.
    pub evidence: Evidence,
    /// Which of the starts that fit the dump is drawn, and the machine's random numbers with it: 0 for the
    /// machine's own.
    pub seed: u64,
}

/// A replay's answer.
#[derive(Debug)]
pub struct Replay {
    /// The trace.
    pub path: PathBuf,
    /// What is known about the recording.
    pub metadata: Metadata,
    /// The machine, and the assumptions about it.
    pub machine: Chosen,
    /// What was assumed about the start and the caches.
    pub assumed: Vec<String>,
    /// What the start rests on.
    pub start: StartFacts,
    /// The state before the recording that was given, if there was one.
    pub before: Option<before::Given>,
    /// Where the planned start is not what the dump says.
    pub warnings: Vec<String>,
    /// CPUs that went off and on.
    pub hotplug: Vec<Command>,
    /// The recording's allocations and frees in one number.
    pub fingerprint: survey::Fingerprint,
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
    let prepared = Prepared::new(reader, path, options)?;
    let engines = match options.engines.is_empty() {
        true if options.kernel_only => vec![prepared.kernel.into()],
        true => default_engines(prepared.kernel),
        false => options.engines.clone(),
    };
    let rows = reader.rows() * engines.len() as u64;
    let done = std::sync::atomic::AtomicU64::new(0);
    let tick = |n: u64| progress(done.fetch_add(n, std::sync::atomic::Ordering::Relaxed) + n, rows);
    let outcomes = engines
        .par_iter()
        .map(|choice| {
            // A cancelled caller unwinds here, before the engine's start is made.
            tick(0);
            prepared.run(&Variant::from(*choice), &tick)
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(prepared.replay(outcomes))
}

/// A start that was planned as if the recorder had read no slabs.
pub(crate) struct Guessed {
    /// The caches.
    pub(crate) table: CacheTable,
    /// What the recording shows of the start.
    pub(crate) survey: survey::Survey,
    /// The slabs.
    pub(crate) plan: plan::Plan,
}

impl Guessed {
    /// The start of a recording that has snapshots, guessed at the moment of the first one.
    pub(crate) fn of(reader: &Reader, path: &Path, options: &Options) -> Result<Guessed> {
        let (metadata, before) = (reader.metadata(), options.before.as_ref());
        let dump = before.and_then(|before| before.dump.as_ref());
        let machine = machine::choose(metadata, dump, &options.machine, path)?;
        let kernel = recorded_kernel(metadata, options, &mut Vec::new(), &mut Vec::new());
        let table = CacheTable::new(metadata, before, machine.spec.page_shift, kernel, &machine);
        let survey = survey::survey(path, reader, &table, options)?;
        let mut blind = options.clone();
        if let Some(before) = &mut blind.before {
            before.snapshots = None;
        }
        let plan = plan::plan(&table, &survey, &machine, &blind, &mut Vec::new());
        Ok(Guessed { table, survey, plan })
    }
}

/// What one run is of: an engine, and what it takes from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The engine.
    pub preset: Preset,
    /// Whose kernel's page allocator it stands on.
    pub pages: Preset,
    /// Whose slab orders it has; `None` for its own.
    pub orders: Option<Preset>,
    /// What is around it.
    pub wrap: Wrap,
    /// How kmalloc is divided among its callers.
    pub partition: Partition,
    /// Knobs of single caches, as in a [`ByCache`].
    pub of_caches: &'static str,
}

impl From<ByCache> for Variant {
    fn from(ByCache { choice: Choice { preset, wrap }, partition, of_caches }: ByCache) -> Variant {
        Variant { preset, pages: preset, orders: None, wrap, partition, of_caches }
    }
}

impl From<Preset> for Variant {
    fn from(preset: Preset) -> Variant {
        ByCache::from(preset).into()
    }
}

/// All that runs of one recording share.
pub(crate) struct Prepared<'a> {
    pub(crate) reader: &'a Reader,
    pub(crate) path: &'a Path,
    metadata: Metadata,
    machine: Chosen,
    /// What ran on the recording machine.
    kernel: Preset,
    assumed: Vec<String>,
    start: StartFacts,
    before: Option<before::Given>,
    fingerprint: survey::Fingerprint,
    warnings: Vec<String>,
    pub(crate) table: CacheTable,
    pub(crate) plan: plan::Plan,
    /// The address of frame 0, if addresses tell pages.
    pub(crate) linear_map: Option<u64>,
    commands: Vec<Command>,
    hotplug: Schedule,
}

impl<'a> Prepared<'a> {
    /// Looks a trace through.
    pub(crate) fn new(reader: &'a Reader, path: &'a Path, options: &Options) -> Result<Prepared<'a>> {
        let metadata = reader.metadata().clone();
        let dump = options.before.as_ref().and_then(|before| before.dump.as_ref());
        check_numbers(&metadata, reader.rows(), path)?;
        let unsuited = suited::check(&metadata, options, path)?;
        let mut machine = machine::choose(&metadata, dump, &options.machine, path)?;
        machine.spec.seed = machine.spec.seed.wrapping_add(options.seed);
        let hotplug = Schedule::new(&options.hotplug, &metadata, &machine.spec)?;
        let mut assumed = hotplug.assumed.clone();
        let mut unknown = Vec::new();
        let kernel = recorded_kernel(&metadata, options, &mut assumed, &mut unknown);
        let table =
            CacheTable::new(&metadata, options.before.as_ref(), machine.spec.page_shift, kernel, &machine);
        assumed.extend(table.ambiguous.clone());
        if metadata.pairing_only {
            assumed.push(unplaced(&metadata).into());
        }
        let survey = survey::survey(path, reader, &table, options)?;
        let mut plan = plan::plan(&table, &survey, &machine, options, &mut assumed);
        let names = table.entries.iter().map(|entry| entry.name.as_str());
        let caches: Vec<(&str, u64)> = names.zip(survey.ends(reader.rows())).collect();
        plan.untraced = untraced::moments(&survey.silences, &caches, options.seed);
        let evidence = options.evidence;
        let (seen_slabs, seen_objects) = survey.seen();
        let start = StartFacts {
            evidence,
            seen_slabs,
            seen_objects,
            drawn: plan.drawn,
            proven: plan.proven,
            read: plan.read,
        };
        assumed.extend(start.sentences());
        let mut warnings = Vec::new();
        if let Some(before) = &options.before {
            assumed.extend(before.assumed.iter().cloned());
            let caches = table.entries.iter().map(|entry| (entry.name.as_str(), &entry.tuned));
            assumed.extend(tuned::sentence(caches));
            warnings = differences::found(&table, &survey, &plan, before);
        }
        warnings.splice(
            0..0,
            unsuited.into_iter().chain(unknown).chain(suited::idle(&metadata, machine.spec.cpu_node.len())),
        );
        warnings.extend(impossible(&metadata, &table, &survey, &machine));
        let commands = options.hotplug.clone();
        Ok(Prepared {
            reader,
            path,
            metadata,
            machine,
            kernel,
            assumed,
            start,
            before: options.before.as_ref().map(before::Given::from),
            fingerprint: survey.fingerprint,
            warnings,
            table,
            plan,
            linear_map: survey.linear_map,
            commands,
            hotplug,
        })
    }

    /// One run.
    pub(crate) fn run(&self, variant: &Variant, tick: &dyn Fn(u64)) -> Result<Outcome> {
        let names = self.table.entries.iter().map(|entry| entry.name.as_str());
        if let Some(unmet) = own::unmet(variant.of_caches, names) {
            let expected = format!("{unmet} of {}: expected a cache of the recording", variant.preset);
            return Err(Error::new(self.path, expected));
        }
        match variant.wrap.encoded {
            false => self.run_in::<Model>(variant, tick),
            true => self.run_in::<Hardened<Model>>(variant, tick),
        }
    }

    /// One run, in this world.
    pub(crate) fn run_in<W: run::World>(&self, variant: &Variant, tick: &dyn Fn(u64)) -> Result<Outcome> {
        let Prepared { reader, path, table, plan, hotplug, .. } = self;
        let machine = &self.machine.spec;
        let takes_over = variant.preset.engine() == self.kernel.engine();
        let job = run::Job { path, reader, table, plan, machine, hotplug, takes_over, copies: None };
        if variant.partition.count() == 1 {
            return in_world::<W>(&job, variant, tick);
        }
        let parts = Partitioned::new((table, plan), &variant.preset, variant.partition, machine.seed);
        let copies = Some(&parts.copies);
        in_world::<W>(&run::Job { table: &parts.table, plan: &parts.plan, copies, ..job }, variant, tick)
    }

    /// Runs with what they rest on.
    pub(crate) fn replay(self, outcomes: Vec<Outcome>) -> Replay {
        let path = self.path.to_path_buf();
        let Prepared {
            metadata,
            machine,
            mut assumed,
            start,
            before,
            mut warnings,
            commands,
            fingerprint,
            ..
        } = self;
        warnings.extend(outcomes.iter().flat_map(no_layout));
        for sentence in outcomes.iter().filter_map(|outcome| partitioned::sentence(outcome.partition)) {
            if !assumed.contains(&sentence) {
                assumed.push(sentence);
            }
        }
        let hotplug = commands;
        Replay { path, metadata, machine, assumed, start, before, warnings, hotplug, fingerprint, outcomes }
    }
}

/// One run in the model, or in a world around it.
fn in_world<W: run::World>(job: &run::Job<'_>, variant: &Variant, tick: &dyn Fn(u64)) -> Result<Outcome> {
    match &variant.preset {
        Preset::Slub(policy) => {
            wrapped::<W, Slub<W>>(job, variant, &|own| own.of(own.tuned.slub(policy)), tick)
        }
        Preset::Slqb(policy) => wrapped::<W, Slqb<W>>(job, variant, &|own| own.of(*policy), tick),
        Preset::Slab(policy) => {
            wrapped::<W, SlabEngine<W>>(job, variant, &|own| own.of(own.tuned.slab(policy)), tick)
        }
        Preset::Slob(policy) => wrapped::<W, Slob<W>>(job, variant, &|own| own.of(*policy), tick),
        Preset::Registered(own) => W::registered(own.table())(job, variant, tick),
    }
}

/// One run of an engine, with the requested wrappers.
pub(crate) fn wrapped<W: run::World, E: Engine<W>>(
    job: &run::Job<'_>,
    variant: &Variant,
    policy: &dyn Fn(&Own<'_>) -> E::Policy,
    tick: &dyn Fn(u64),
) -> Result<Outcome> {
    let is_on = variant.wrap.is_on();
    // What a kernel debugged, it does without lists at CPUs, and no wrapper says so.
    let engine = |own: &Own<'_>| match own.tuned.debugged && !is_on {
        true => E::debugged(&policy(own)),
        false => policy(own),
    };
    if !is_on && let Some(outcome) = W::bare::<E>(job, variant, &engine, tick) {
        return outcome;
    }
    // Postings of 2009 are of kernels before every change of the sizes.
    let release = match variant.preset.release() {
        posting if posting.major > 1000 => Release::new(2, 6, 29),
        release => release,
    };
    let around = |own: &Own<'_>| Around { engine: engine(own), wrap: variant.wrap, release };
    job.run::<W, Debugged<W, E>>(variant, &around, tick)
}

/// Whether an engine's slabs have an order by cache, which another engine's can take over.
pub(crate) fn takes_orders(preset: &Preset) -> bool {
    fn of<E: Engine<Model>>() -> bool {
        !E::Common::SHARES_PAGES
    }
    match preset {
        Preset::Slub(_) => of::<Slub<_>>(),
        Preset::Slqb(_) => of::<Slqb<_>>(),
        Preset::Slab(_) => of::<SlabEngine<_>>(),
        Preset::Slob(_) => of::<Slob<_>>(),
        Preset::Registered(own) => !own.table::<run::Replayed>().shares_pages,
    }
}

/// The order of a cache's slabs under a preset, on the machine that runs; `None` without a layout.
fn order_under(preset: &Preset, spec: &CacheSpec) -> Option<u8> {
    fn of<E: Engine<Model>>(spec: &CacheSpec, policy: &E::Policy) -> Option<u8> {
        E::layout(spec, policy).map(|layout| layout.order)
    }
    match preset {
        Preset::Slub(policy) => of::<Slub<_>>(spec, policy),
        Preset::Slqb(policy) => of::<Slqb<_>>(spec, policy),
        Preset::Slab(policy) => of::<SlabEngine<_>>(spec, policy),
        Preset::Slob(policy) => of::<Slob<_>>(spec, policy),
        Preset::Registered(own) => (own.table::<run::Replayed>().order)(spec, own),
    }
}

/// Caches are numbered in 16 bits, with the types of each kmalloc size.
const CACHES_MAX: usize = 1 << 15;

/// Bytes of the largest page that a kernel can be built with.
const PAGE_MAX: u64 = 256 << 10;

/// Numbers by which tables are made: a file may say anything.
fn check_numbers(metadata: &Metadata, rows: u64, path: &Path) -> Result<()> {
    let ids = metadata.statistics.object_ids;
    if ids > rows {
        return Err(Error::new(path, format!("object ids below {ids} in {rows} rows: expected dense ids")));
    }
    if let Some(bytes) = metadata.page_size_bytes
        && !(bytes.is_power_of_two() && (1024..=PAGE_MAX).contains(&bytes))
    {
        let expected = format!("expected a power of two from 1024 to {PAGE_MAX}");
        return Err(Error::new(path, format!("a page of {bytes} bytes: {expected}")));
    }
    let caches = metadata.caches.len();
    if caches > CACHES_MAX {
        return Err(Error::new(path, format!("{caches} caches: expected at most {CACHES_MAX}")));
    }
    Ok(())
}

/// What the recording and the dump say that this machine, or any kernel, cannot have.
fn impossible(
    metadata: &Metadata,
    table: &CacheTable,
    survey: &survey::Survey,
    machine: &Chosen,
) -> Vec<String> {
    let mut said = Vec::new();
    // A program's large blocks are mapped: their sizes are its own.
    if survey.too_large > 0 && !is_malloc(metadata) {
        let mib = (1u64 << (machine.spec.page_shift + u32::from(MAX_ORDER))) >> 20;
        said.push(format!(
            "{} allocations of more than {mib} MiB, the largest block of the machine's page allocator, fail in \
             every engine: they are damaged, or of a machine with larger blocks",
            survey.too_large
        ));
    }
    if let Some(first) = table.damaged.first() {
        let more = match table.damaged.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        said.push(format!(
            "the dump's row of {first}{more} has sizes that no kernel has: it counts as not in the dump"
        ));
    }
    said
}

/// The caches that an engine has no layout for.
fn no_layout(outcome: &Outcome) -> impl Iterator<Item = String> {
    let engine = outcome.engine();
    outcome.no_layout.iter().map(move |cache| {
        format!(
            "{engine} has no layout for {}: no block of the machine holds an object of {} bytes with what the \
             engine puts around it; {} allocations are left out",
            cache.name, cache.object_size, cache.allocs
        )
    })
}

fn is_malloc(metadata: &Metadata) -> bool {
    metadata.source.as_ref().is_some_and(|source| source.kind == "malloc")
}

/// What cannot be known where addresses are only names of objects.
fn unplaced(metadata: &Metadata) -> &'static str {
    if is_malloc(metadata) {
        return "the recording is of a program's malloc: its CPUs are threads, its caches the size classes of \
                slablab's malloc, and blocks above them take whole pages; every slab is taken in the recording";
    }
    "the recording's addresses are hashed: who allocated and freed what is as recorded; which objects shared a \
     slab or page before it, on which node they were, and which untraced frees its page events show, cannot be \
     known"
}

/// The SLUB or SLAB that the recording kernel ran: as the user says, the recording, or the dump.
fn recorded_kernel(
    metadata: &Metadata,
    options: &Options,
    assumed: &mut Vec<String>,
    unknown: &mut Vec<String>,
) -> Preset {
    let before = options.before.as_ref();
    let dump = before.and_then(|before| before.dump.as_ref());
    let texts = [metadata.release.as_deref(), dump.and_then(|dump| dump.release.as_deref())];
    let release = options.release.or_else(|| texts.into_iter().flatten().find_map(Release::parse));
    // SLUB writes 0 for the limit of arrays that it does not have.
    let has_arrays = |before: &Before| before.caches.iter().any(|cache| cache.knobs.limit.is_some());
    let is_slab =
        metadata.config.get("SLAB").is_some_and(|value| value == "y") || before.is_some_and(has_arrays);
    let preset = |release: Release| match is_slab {
        true => Preset::parse(&format!("slab@{release}")).ok(),
        false => Preset::of_kernel(release),
    };
    match release.and_then(|release| Some((release, preset(release)?))) {
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
            let preset = Preset::parse(if is_slab { "slab" } else { "slub" }).expect("both have presets");
            // A program's malloc has no kernel that would matter.
            let said = if is_malloc(metadata) { assumed } else { unknown };
            said.push(format!(
                "neither recording nor dump says which kernel ran: {preset}, the newest of its engine, is taken \
                 (--release says another)"
            ));
            preset
        }
    }
}

/// The recording kernel's own preset, the newest of every other engine, and the newest of SLUB with sheaves.
fn default_engines(kernel: Preset) -> Vec<ByCache> {
    let others = slablab_slabs::preset::ENGINES.iter().filter(|engine| **engine != kernel.engine());
    let own = engines::registered().iter().map(|own| own.engine());
    let newest = others.copied().chain(own).map(|engine| engines::parse(engine).expect("an engine"));
    std::iter::once(kernel).chain(newest.filter(|preset| *preset != kernel)).map(ByCache::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_engine_is_run_twice_unasked() {
        let check = |kernel: &str, expected: &[&str]| {
            let found = default_engines(Preset::parse(kernel).expect("a preset"));
            assert_eq!(found.iter().map(ByCache::to_string).collect::<Vec<_>>(), expected, "{kernel}");
        };
        check("slub@6.18", &["slub@6.18", "slqb@2009-09", "slab@6.1", "slob@6.1", "slub@7.3"]);
        check("slub@7.1", &["slub@7.1", "slqb@2009-09", "slab@6.1", "slob@6.1", "slub@7.3"]);
        check("slub@7.3", &["slub@7.3", "slqb@2009-09", "slab@6.1", "slob@6.1"]);
    }
}
