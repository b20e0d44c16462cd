//! Compares every counter of a kernel that counted with the model's counter: SLUB with SLUB_STATS, SLAB with
//! its statistics.

use super::cpustat::{self, COUNTERS, RealCounts};
use super::seeds::{Spread, judge, sentence};
use super::{Both, CacheCounters, Compared, Verified, without_page_frees};
use crate::replay::before::nodes::{NodeSpan, of_messages};
use crate::replay::{Options, Replay, before::Before, replay};
use slablab_platform::Event;
use slablab_readers::compressed::Decompressed;
use slablab_readers::counters::{parse_const, parse_state, parse_stats};
use slablab_report::error::{At, Error, Result};
use slablab_report::{Limit, files, read_at_most, read_text_at_most};
use slablab_slabs::Preset;
use slablab_slabs::engines::slub::{Sheaves, SlabUpdate, SlubPolicy};
use slablab_trace::Reader;
use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;

/// A counter of a cache, real and predicted.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// The cache; `all` for all together.
    pub cache: String,
    /// The counter's name.
    pub counter: String,
    /// Its values.
    pub values: Values,
}

/// Real and predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Values {
    /// How often something was counted.
    Counts(i64, i64),
    /// A share of all counted events, in percent.
    Percent(f64, f64),
}

impl Counter {
    /// Whether the prediction is right.
    pub fn is_exact(&self) -> bool {
        match self.values {
            Values::Counts(real, predicted) => real == predicted,
            Values::Percent(real, predicted) => real == predicted,
        }
    }
}

/// How far the counters of single caches are off, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Counters.
    pub counters: usize,
    /// Of these, predicted exactly.
    pub exact: usize,
    /// What the kernel counted in all of them.
    pub real: u64,
    /// By how much the predictions are off, each counter's sign aside.
    pub errors: u64,
    /// Counters of which the kernel counted more than [`MANY`].
    pub many: usize,
    /// Of these, predicted more than 5 % and more than 10 % wrong.
    pub off: (usize, usize),
}

/// Below this one event decides about percents.
pub const MANY: u64 = 100;

impl Tally {
    /// Adds up the values of all caches, without percentages and without values that already are such sums.
    pub fn of(counters: &[Counter]) -> Tally {
        let mut tally = Tally::default();
        for counter in counters.iter().filter(|counter| counter.cache != ALL) {
            let Values::Counts(real, predicted) = counter.values else { continue };
            tally.counters += 1;
            tally.exact += usize::from(counter.is_exact());
            tally.real += real.unsigned_abs();
            let error = predicted.abs_diff(real);
            tally.errors += error;
            if real.unsigned_abs() > MANY {
                tally.many += 1;
                tally.off.0 += usize::from(20 * error > real.unsigned_abs());
                tally.off.1 += usize::from(10 * error > real.unsigned_abs());
            }
        }
        tally
    }

    /// The errors in percent of what the kernel counted.
    pub fn error_percent(&self) -> f64 {
        100.0 * self.errors as f64 / self.real.max(1) as f64
    }
}

/// What stands for all caches together.
pub(crate) const ALL: &str = "all";

/// Reads the start of a counters run: `slub_const.csv` and `slub_state.csv.gz` in its folder, or the
/// `slabinfo.csv` of a kernel with SLAB.
///
/// # Errors
/// A file that is missing or damaged.
pub fn start_of(run: &Path, label: &str) -> Result<Before> {
    if cpustat::is_run(run) {
        let mut before = Before::from_counted_slabinfo(run, cpustat::start(run, label)?);
        before.nodes = spans(run)?;
        return Ok(before);
    }
    if !run.join("slub_const.csv").is_file() {
        return Err(Error::new(
            run,
            "expected the folder of a counters run, with slub_const.csv and slub_stats.csv, or with the \
             slabinfo.csv of a kernel with SLAB and its statistics",
        ));
    }
    let open = |name: &str| {
        let path = run.join(name);
        let file = Decompressed::new(files::open(&path).at(&path)?).at(&path)?;
        COUNTERS.read(file, &path).map(Cursor::new)
    };
    let constants = parse_const(open("slub_const.csv")?).at(&run.join("slub_const.csv"))?;
    let states = parse_state(open("slub_state.csv.gz")?).at(&run.join("slub_state.csv.gz"))?;
    let mut before = Before::from_counters(run, &constants, &states, label);
    before.nodes = spans(run)?;
    Ok(before)
}

/// Where each node's memory is: what the kernel said of it, in the run's description of its machine.
fn spans(run: &Path) -> Result<Vec<NodeSpan>> {
    let path = run.join("machine.json");
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = read_text_at_most(&path, Limit::mib("the description of a machine (JSON)", 64))?;
    let machine: serde_json::Value = serde_json::from_str(&text).at(&path)?;
    let lines = machine["mem_layout"].as_array().into_iter().flatten();
    Ok(of_messages(lines.filter_map(serde_json::Value::as_str)))
}

/// Verifies one recorded workload of a counters run: `reader` is its imported trace.
///
/// # Errors
/// An input that cannot be read.
pub fn verify_counters(
    run: &Path,
    label: &str,
    reader: &Reader,
    (options, seeds): (&Options, u64),
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<(Verified, Replay)> {
    without_page_frees(options, run)?;
    let mut counted =
        if cpustat::is_run(run) { Counted::slab(run, label)? } else { Counted::slub(run, label)? };
    let complete = complete_caches(run, label)?;
    counted.real.retain(|cache, _| complete.contains(cache));
    let replay = replay(reader, run, options, progress)?;
    let (counters, caches) = compare(&replay, &counted);
    let tally = Tally::of(&counters);
    let mut summary = vec![
        format!("{label} of {}: {} caches whose trace is complete", run.display(), caches.len()),
        format!(
            "{}: {} of {} counters exact; all errors together are {:.1} % of what the kernel counted",
            replay.outcomes[0].preset,
            tally.exact,
            tally.counters,
            tally.error_percent()
        ),
        format!(
            "of {} counters above {MANY}, {} are more than 5 % off and {} more than 10 %",
            tally.many, tally.off.0, tally.off.1
        ),
    ];
    let spreads = spreads((reader, run, label), (options, seeds), &counted, tally, progress)?;
    if !spreads.is_empty() {
        summary.push(sentence(&spreads));
    }
    identities(&replay)?;
    let basis = super::Counted { label: label.into(), caches, spreads };
    Ok((Verified { compared: Compared::Counters(counters, basis), summary }, replay))
}

/// What a kernel counted.
struct Counted {
    real: RealCounts,
    /// What it counts.
    events: &'static [Event],
    /// Shares in percent, of the first event in both.
    shares: [(&'static str, [Event; 2]); 2],
}

impl Counted {
    /// SLUB with SLUB_STATS.
    fn slub(run: &Path, label: &str) -> Result<Counted> {
        let path = run.join("slub_stats.csv");
        let mut real = RealCounts::new();
        for row in parse_stats(&*read_at_most(&path, COUNTERS)?).at(&path)? {
            if row.label == label {
                real.entry(row.cache).or_default().insert(row.stat, row.delta);
            }
        }
        let shares = [
            ("fast alloc %", [Event::AllocFastpath, Event::AllocSlowpath]),
            ("fast free %", [Event::FreeFastpath, Event::FreeSlowpath]),
        ];
        Ok(Counted { real, events: &Event::ALL[..=Event::CpuPartialDrain as usize], shares })
    }

    /// SLAB with its statistics in /proc/slabinfo.
    fn slab(run: &Path, label: &str) -> Result<Counted> {
        let shares = [
            ("fast alloc %", [Event::SlabAllocHit, Event::SlabAllocMiss]),
            ("fast free %", [Event::SlabFreeHit, Event::SlabFreeMiss]),
        ];
        Ok(Counted { real: cpustat::counted(run, label)?, events: cpustat::EVENTS, shares })
    }
}

/// Every counter of every cache that the kernel counted completely, and the caches by name.
fn compare(replay: &Replay, counted: &Counted) -> (Vec<Counter>, Vec<CacheCounters>) {
    let mut counters = Vec::new();
    let mut sums: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    let mut caches = Vec::new();
    for cache in &replay.outcomes[0].caches {
        let Some(real) = counted.real.get(&cache.name) else { continue };
        let found_of = |event: Event| real.get(event.name()).copied().unwrap_or(0);
        let predicted_of = |event: Event| cache.counts.get(event) as i64;
        let mut by_name = BTreeMap::new();
        for event in counted.events {
            let (found, predicted) = (found_of(*event), predicted_of(*event));
            if found == 0 && predicted == 0 {
                continue;
            }
            let sum = sums.entry(event.name()).or_default();
            *sum = (sum.0 + found, sum.1 + predicted);
            counters.push(count(&cache.name, *event, found, predicted));
            by_name.insert(event.name().into(), Both { real: found, predicted });
        }
        for (name, [fast, slow]) in counted.shares {
            let share = |of: &dyn Fn(Event) -> i64| {
                let (fast, slow) = (of(fast), of(slow));
                (fast + slow > 0).then(|| 100.0 * fast as f64 / (fast + slow) as f64)
            };
            if let (Some(found), Some(predicted)) = (share(&found_of), share(&predicted_of)) {
                counters.push(Counter {
                    cache: cache.name.clone(),
                    counter: name.into(),
                    values: Values::Percent(found, predicted),
                });
            }
        }
        caches.push(CacheCounters { cache: cache.name.clone(), counters: by_name });
    }
    for event in counted.events {
        if let Some((found, predicted)) = sums.get(event.name()) {
            counters.push(count(ALL, *event, *found, *predicted));
        }
    }
    (counters, caches)
}

/// How the tally is spread over draws, of which the first is known.
fn spreads(
    (reader, run, label): (&Reader, &Path, &str),
    (options, seeds): (&Options, u64),
    counted: &Counted,
    first: Tally,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Vec<Spread>> {
    if seeds < 2 {
        return Ok(Vec::new());
    }
    let tally = |replay: Replay| -> Result<Tally> { Ok(Tally::of(&compare(&replay, counted).0)) };
    let mut draws = vec![first];
    draws.extend(judge(reader, (run, Some(label)), (options, seeds), progress, &tally)?);
    let of = |name, get: fn(&Tally) -> f64| Spread::new(name, None, draws.iter().map(get).collect());
    Ok(vec![
        of("counters_exact", |tally| tally.exact as f64),
        of("above_100_over_5_percent", |tally| tally.off.0 as f64),
        of("above_100_over_10_percent", |tally| tally.off.1 as f64),
        of("error_percent", Tally::error_percent),
    ])
}

fn count(cache: &str, event: Event, real: i64, predicted: i64) -> Counter {
    Counter { cache: cache.into(), counter: event.name().into(), values: Values::Counts(real, predicted) }
}

/// Caches of which the trace has every allocation and free.
fn complete_caches(run: &Path, label: &str) -> Result<Vec<String>> {
    let path = run.join("trace_check.csv");
    let mut reader = csv::Reader::from_path(&path).at(&path)?;
    let mut complete = Vec::new();
    for record in reader.records() {
        let record = record.at(&path)?;
        let field = |index: usize| record.get(index).unwrap_or("");
        if field(0) == label && field(5) == "0" && field(8) == "0" {
            complete.push(field(1).to_string());
        }
    }
    if complete.is_empty() {
        let lacks = format!("no cache of \"{label}\" has its trace whole: expected rows `{label},CACHE,...`");
        return Err(Error::new(&path, format!("{lacks} whose differences are 0")));
    }
    Ok(complete)
}

/// Checks the identities between SLUB_STATS counters (docs/engines/slub.md) for every cache without sheaves.
fn identities(replay: &Replay) -> Result<()> {
    use Event::{AllocFromPartial, AllocRefill, AllocSlab, AllocSlowpath, CpuPartialAlloc};
    // 2.6 counts looks that found nothing, and SLQB has no refills.
    let since_3_2 = |preset| {
        let fits = |policy: SlubPolicy| policy.update == SlabUpdate::Word && policy.sheaves == Sheaves::Off;
        matches!(preset, Preset::Slub(policy) if fits(policy))
    };
    for cache in replay.outcomes[0].caches.iter().filter(|_| since_3_2(replay.outcomes[0].preset)) {
        let count = |event| cache.counts.get(event);
        let slow = count(AllocSlowpath);
        let parts = count(AllocRefill) + count(AllocFromPartial) + count(AllocSlab);
        if slow != parts || count(AllocRefill) < count(CpuPartialAlloc) {
            return Err(Error::new(
                &replay.path,
                format!("{}: alloc_slowpath is {slow}, its parts are {parts}", cache.name),
            ));
        }
    }
    Ok(())
}
