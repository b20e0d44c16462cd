//! How much slab memory a machine takes that has only booted.
//!
//! ```text
//! table              data/normal.csv: small guests' boots, and what `predict` makes of them with other CPUs
//! Normal::of         the row of the kernel that is most like a dump's, between two numbers of CPUs
//! ```
//!
//! The guests ran an init and a shell: no services, no modules. The table has powers of two of CPUs, from a
//! tenth of the smallest boot to ten times the largest: 16 and 160 CPUs are the farthest two boots of one
//! kernel that a prediction was compared with. Beyond that, for kernels before the oldest boot, and for
//! architectures and page sizes without a boot, nothing is known, and [`Normal::of`] says which of these it
//! is.
//!
//! Kernels with sheaves (7.0 and later) are one family: two of them with the same number of CPUs differ by
//! 6 % at most. Predictions of 16 CPUs from 4 were off by a third and outside of their ranges, so their table
//! has boots alone, and nothing beyond them. The memory's size is in no table: the guests had 2 to 8 GiB.

use super::boots::{Boot, machine, without};
use super::change::Change;
use super::errors::{Class, Range, is_loaded};
use super::percpu::{Kernel, PerCpu};
use super::predict::{Prediction, predict_with};
use super::{layout, merge, sheaves};
use crate::state::State;
use crate::words::listed;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_report::error::Result;
use std::collections::BTreeSet;
use std::sync::LazyLock;

const BUILTIN: &str = include_str!("../../data/normal.csv");

/// The columns of the table.
pub const COLUMNS: [&str; 9] = [
    "release",
    "arch",
    "page_size_bytes",
    "boots_cpus",
    "cpus",
    "slab_bytes",
    "slab_low_bytes",
    "slab_high_bytes",
    "unreclaimable_bytes",
];

/// How far from the CPUs of a boot predictions were compared with other boots: 16 and 160 CPUs.
const FARTHEST: u32 = 10;

/// The first release in which all caches have sheaves.
const SHEAVES: (u32, u32) = (7, 0);

/// How distributions end the names of their releases, and the architecture.
const ARCHITECTURES: [(&str, &str); 7] = [
    ("amd64", "x86_64"),
    ("x86_64", "x86_64"),
    ("arm64", "aarch64"),
    ("aarch64", "aarch64"),
    ("powerpc64le", "ppc64le"),
    ("ppc64le", "ppc64le"),
    ("s390x", "s390x"),
];

/// What a machine takes that has only booted, predicted.
#[derive(Clone, Debug, PartialEq)]
pub struct Normal {
    /// The kernel of the boots.
    pub kernel: Kernel,
    /// The CPUs of the boots, ascending.
    pub boots: Vec<u32>,
    /// CPUs of the machine.
    pub cpus: u32,
    /// Bytes of all slabs.
    pub slabs: Bytes,
    /// Bytes of slabs that no shrinker frees.
    pub unreclaimable: Bytes,
}

/// Predicted bytes, with the range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Bytes {
    /// The prediction.
    #[serde(rename = "predicted_bytes")]
    pub predicted: u64,
    /// The least that is likely.
    #[serde(rename = "low_bytes")]
    pub low: u64,
    /// The most that is likely.
    #[serde(rename = "high_bytes")]
    pub high: u64,
}

/// Predictions for one kernel, by CPUs.
#[derive(Clone, Debug)]
struct Table {
    kernel: Kernel,
    boots: Vec<u32>,
    /// CPUs, then bytes: slabs, their least and most, and those that no shrinker frees.
    rows: Vec<(u32, [u64; 4])>,
}

static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| parse(BUILTIN));

impl Normal {
    /// What a machine with this kernel, these pages and these CPUs takes.
    ///
    /// # Errors
    /// Why that is not known, in a few words.
    pub fn of(state: &State) -> std::result::Result<Normal, String> {
        let own = family(state);
        let cpus = state.cpus.map(|cpus| cpus.online).filter(|cpus| *cpus > 0);
        let cpus = cpus.ok_or("the input does not tell how many CPUs there are")?;
        if own.arch.is_empty() {
            return Err("the input does not tell the architecture".into());
        }
        let release = numbers(&own.release).ok_or("the input does not tell the kernel's release")?;
        let alike: Vec<&Table> = TABLES
            .iter()
            .filter(|table| table.kernel.arch == own.arch && table.kernel.page_size == own.page_size)
            .collect();
        if alike.is_empty() {
            let page = own.page_size >> 10;
            return Err(format!("no boot of {} with pages of {page} KiB was measured", own.arch));
        }
        let older = alike.iter().filter(|table| numbers(&table.kernel.release) <= Some(release));
        let Some(table) = older.max_by_key(|table| numbers(&table.kernel.release)) else {
            let oldest = alike.iter().map(|table| &table.kernel.release).min_by_key(|text| numbers(text));
            let oldest = oldest.map_or("", String::as_str);
            return Err(format!(
                "boots of Linux {oldest} and later were measured, and this is {}",
                own.release
            ));
        };
        let Some([slab, low, high, unreclaimable]) = table.at(cpus) else {
            let boots: Vec<String> = table.boots.iter().map(u32::to_string).collect();
            let boots = listed(&boots);
            return Err(format!("boots with {boots} CPUs were measured, and this machine has {cpus}"));
        };
        let scaled = |bytes: u64| (bytes as f64 * unreclaimable as f64 / slab.max(1) as f64) as u64;
        Ok(Normal {
            kernel: table.kernel.clone(),
            boots: table.boots.clone(),
            cpus,
            slabs: Bytes { predicted: slab, low, high },
            unreclaimable: Bytes { predicted: unreclaimable, low: scaled(low), high: scaled(high) },
        })
    }
}

impl Table {
    /// The figures for this number of CPUs, on the line between the two next to it.
    fn at(&self, cpus: u32) -> Option<[u64; 4]> {
        let below = self.rows.iter().rev().find(|(known, _)| *known <= cpus)?;
        let above = self.rows.iter().find(|(known, _)| *known >= cpus)?;
        let part = f64::from(cpus - below.0) / f64::from((above.0 - below.0).max(1));
        let mut at = below.1;
        for (bytes, more) in at.iter_mut().zip(above.1) {
            *bytes = (*bytes as f64 + part * (more as f64 - *bytes as f64)) as u64;
        }
        Some(at)
    }
}

/// The table of these boots, as rows of [`COLUMNS`]: of machines that have only booted, without parameters of
/// slabs.
///
/// # Errors
/// A dump that does not tell what the rules need.
pub fn table(boots: &[Boot]) -> Result<Vec<[String; 9]>> {
    let plain: Vec<&State> = boots.iter().map(|boot| &boot.state).filter(|state| is_plain(state)).collect();
    let mut kernels: Vec<Kernel> = Vec::new();
    for state in &plain {
        let kernel = family(state);
        if !kernels.contains(&kernel) {
            kernels.push(kernel);
        }
    }
    kernels.sort_by_key(|kernel| (kernel.arch.clone(), kernel.page_size, numbers(&kernel.release)));
    let (mut rows, tables) = (Vec::new(), PerCpu::builtin());
    for kernel in kernels {
        let same: Vec<&State> = plain.iter().copied().filter(|state| family(state) == kernel).collect();
        let measured: BTreeSet<u32> = same.iter().map(|state| online(state)).collect();
        let words: Vec<String> = measured.iter().map(u32::to_string).collect();
        for cpus in grid(&kernel, &measured) {
            let figures = predicted(&same, cpus, &tables)?.map(|bytes| bytes.to_string());
            let [slab, low, high, unreclaimable] = figures;
            let (release, arch) = (kernel.release.clone(), kernel.arch.clone());
            let page = kernel.page_size.to_string();
            rows.push([
                release,
                arch,
                page,
                words.join(" "),
                cpus.to_string(),
                slab,
                low,
                high,
                unreclaimable,
            ]);
        }
    }
    Ok(rows)
}

/// A boot, predicted from boots of its family with other numbers of CPUs and from the tables of all other
/// machines.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldOut {
    /// The dump that is predicted.
    pub name: String,
    /// The CPUs of the boots that predict.
    pub from: Vec<u32>,
    /// Bytes of all slabs, predicted.
    pub slabs: Bytes,
    /// Bytes of slabs of the boot.
    pub real: u64,
}

/// Every boot that boots with other numbers of CPUs predict.
///
/// # Errors
/// Those of [`table`].
pub fn held_out(boots: &[Boot]) -> Result<Vec<HeldOut>> {
    let mut all = Vec::new();
    for boot in boots.iter().filter(|boot| is_plain(&boot.state)) {
        let (own, cpus) = (family(&boot.state), online(&boot.state));
        let others = boots.iter().map(|boot| &boot.state).filter(|state| is_plain(state));
        let others: Vec<&State> =
            others.filter(|state| family(state) == own && online(state) != cpus).collect();
        if others.is_empty() {
            continue;
        }
        let tables = without(&machine(&boot.state), boots);
        let [predicted, low, high, _] = predicted(&others, cpus, &tables)?;
        let from: BTreeSet<u32> = others.iter().map(|state| online(state)).collect();
        all.push(HeldOut {
            name: boot.name.clone(),
            from: from.into_iter().collect(),
            slabs: Bytes { predicted, low, high },
            real: boot.state.bytes(),
        });
    }
    Ok(all)
}

/// Whether a dump is of a machine that has only booted, with the kernel's own choice of orders, merging and
/// debugging.
fn is_plain(state: &State) -> bool {
    let cmdline = state.dump.cmdline.as_deref().unwrap_or_default();
    let has_parameters = ["slub_", "slab_"].iter().any(|word| cmdline.contains(word));
    online(state) > 0
        && !has_parameters
        && merge::is_on(state)
        && !layout::of_most(state).is_on()
        && !match has_sheaves(state) {
            true => sheaves::is_loaded(state),
            false => is_loaded(state),
        }
}

fn has_sheaves(state: &State) -> bool {
    numbers(&Kernel::of(state).release) >= Some(SHEAVES)
}

/// The kernel, where the dump does not tell the architecture with that in the name of its release; those with
/// sheaves under the name of the oldest.
fn family(state: &State) -> Kernel {
    let mut kernel = Kernel::of(state);
    if kernel.arch.is_empty() {
        let release = state.dump.release.as_deref().unwrap_or_default();
        let end = release.rsplit(['-', '.', '+']).next().unwrap_or_default();
        let known = ARCHITECTURES.iter().find(|(name, _)| *name == end);
        kernel.arch = known.map_or("", |(_, arch)| arch).into();
    }
    if has_sheaves(state) {
        kernel.release = format!("{}.{}", SHEAVES.0, SHEAVES.1);
    }
    kernel
}

fn online(state: &State) -> u32 {
    state.cpus.map_or(0, |cpus| cpus.online)
}

/// The CPUs of the boots; where predictions between them were in their ranges, powers of two too.
fn grid(kernel: &Kernel, measured: &BTreeSet<u32>) -> BTreeSet<u32> {
    let (Some(fewest), Some(most)) = (measured.first(), measured.last()) else { return BTreeSet::new() };
    let has_sheaves = numbers(&kernel.release) >= Some(SHEAVES);
    let farthest = if has_sheaves { 1 } else { FARTHEST };
    let (low, high) = (fewest.div_ceil(farthest), most.saturating_mul(farthest));
    let powers = (0..u32::BITS).map(|power| 1u32 << power).filter(|cpus| (low..=high).contains(cpus));
    let powers = powers.filter(|_| !has_sheaves);
    powers.chain(measured.iter().copied()).collect()
}

/// The figures of a row: the geometric mean of what the boots nearest to this number of CPUs predict.
fn predicted(boots: &[&State], cpus: u32, tables: &[PerCpu]) -> Result<[u64; 4]> {
    let distance = |state: &&&State| (f64::from(online(state)) / f64::from(cpus)).ln().abs();
    let nearest = boots.iter().map(|state| distance(&state)).fold(f64::INFINITY, f64::min);
    let (mut sums, mut count) = ([0.0; 4], 0.0);
    for state in boots.iter().filter(|state| distance(state) == nearest) {
        let change = Change { cpus: (online(state) != cpus).then_some(cpus), ..Change::default() };
        let prediction = predict_with(state, &change, tables)?;
        // Other CPUs are predicted no better than another boot of the same machine.
        let again = Range::measured(Class::of(state, &Change::default(), &prediction.rules_whatif), 1.0);
        let range = if again.ln() > prediction.range.ln() { again } else { prediction.range };
        let bytes = prediction.whatif.bytes;
        let (low, high) = range.around(bytes);
        let unreclaimable = unreclaimable(state, &prediction);
        for (sum, figure) in sums.iter_mut().zip([bytes, low, high, unreclaimable]) {
            *sum += (figure.max(1) as f64).ln();
        }
        count += 1.0;
    }
    // Rounded to KiB: a boot tells no more.
    Ok(sums.map(|sum| ((sum / f64::max(count, 1.0)).exp() / 1024.0).round() as u64 * 1024))
}

/// Bytes that no shrinker frees, with the large kmallocs of the boot, which are in no cache and in
/// /proc/meminfo.
fn unreclaimable(state: &State, prediction: &Prediction) -> u64 {
    let kept = state
        .caches
        .iter()
        .filter(|cache| cache.attrs.as_ref().is_some_and(|attrs| attrs.reclaim_account == Some(false)));
    let kept: BTreeSet<(&str, u32)> = kept.map(|cache| (cache.name.as_str(), cache.ordinal)).collect();
    let rows = prediction.rows.iter().filter(|row| kept.contains(&(row.cache.as_str(), row.ordinal)));
    let slab = state.dump.meminfo.get("Slab").map_or(0, |kib| kib.saturating_mul(1024));
    rows.fold(slab.saturating_sub(state.bytes()), |sum, row| sum.saturating_add(row.whatif.bytes))
}

/// The first two numbers of a release.
fn numbers(release: &str) -> Option<(u32, u32)> {
    let (major, minor) = release.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn parse(csv: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for line in csv.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let Ok([release, arch, page_size, boots, cpus, figures @ ..]) = <[&str; 9]>::try_from(cells) else {
            continue;
        };
        let number = |cell: &str| cell.parse().unwrap_or(0);
        let kernel = Kernel { release: release.into(), arch: arch.into(), page_size: number(page_size) };
        if tables.last().is_none_or(|table| table.kernel != kernel) {
            let boots = boots.split(' ').filter_map(|cpus| cpus.parse().ok()).collect();
            tables.push(Table { kernel, boots, rows: Vec::new() });
        }
        let Some(table) = tables.last_mut() else { continue };
        table.rows.push((cpus.parse().unwrap_or(0), figures.map(number)));
    }
    tables
}
