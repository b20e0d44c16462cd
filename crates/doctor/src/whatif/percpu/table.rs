//! The table of what kernels allocate for each CPU: built in, or derived.

use crate::state::State;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What one kernel allocates for each CPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PerCpu {
    /// The kernel the dumps are of.
    pub kernel: Kernel,
    /// The numbers of CPUs of the dumps, ascending.
    pub cpus: Vec<u32>,
    /// Threads for each CPU, by the stacks that meminfo counts.
    pub threads: Option<f64>,
    /// Threads that no CPU brings, in these dumps.
    pub threads_once: Option<f64>,
    /// The power of the CPUs that hold slabs with which slabs on those CPUs' partial lists grow, from dumps
    /// after a load.
    pub lists: Option<f64>,
    /// Caches of which the dumps show that their objects grow with the CPUs.
    pub caches: BTreeMap<String, Rate>,
    /// Caches that have a name as if every CPU held a slab of them, and of which a dump shows that some CPUs
    /// do not.
    pub some_cpus: BTreeSet<String>,
}

/// A kernel as far as its allocations for CPUs can depend on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Kernel {
    /// `6.1`, the first two numbers of the release.
    pub release: String,
    /// `x86_64`; empty if the dump does not tell.
    pub arch: String,
    /// Bytes in a page.
    #[serde(rename = "page_size_bytes")]
    pub page_size: u64,
}

/// A cache's objects for each CPU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Rate {
    /// Objects for each CPU: the median over pairs of dumps.
    #[serde(rename = "objects_per_cpu")]
    pub objects: f64,
    /// The least that is possible, whatever CPU slabs hold: the median over pairs.
    #[serde(rename = "objects_per_cpu_low")]
    pub low: f64,
    /// The most that is possible.
    #[serde(rename = "objects_per_cpu_high")]
    pub high: f64,
    /// Whether every CPU held a slab of it in all dumps of at least 64 CPUs. `None` if there was no
    /// such dump.
    pub every_cpu: Option<bool>,
}

/// CPUs from which on a cache that programs touch at random is hardly touched on all.
pub(super) const MANY: u32 = 64;

const BUILTIN: &str = include_str!("../../../data/per-cpu.csv");

/// The columns of the table.
pub const COLUMNS: [&str; 9] = [
    "release",
    "arch",
    "page_size_bytes",
    "cpus",
    "cache",
    "objects_per_cpu",
    "objects_per_cpu_low",
    "objects_per_cpu_high",
    "every_cpu",
];

/// The rows of threads, in the column of caches: for each CPU, and whatever the CPUs.
const THREADS: &str = "(threads)";
const THREADS_ONCE: &str = "(threads once)";
/// The row of the power with which partial lists grow.
const LISTS: &str = "(power of lists)";

impl PerCpu {
    /// The tables of all kernels that are built in.
    pub fn builtin() -> Vec<PerCpu> {
        parse(BUILTIN)
    }

    /// The table of the kernel that is most like this dump's: the same page size counts most, then the
    /// architecture, then the newest release that is not newer.
    pub fn nearest(state: &State, tables: &[PerCpu]) -> Option<PerCpu> {
        let own = Kernel::of(state);
        let alike = |table: &&PerCpu| {
            let other = &table.kernel;
            let release = other.numbers().filter(|release| Some(*release) <= own.numbers());
            (other.page_size == own.page_size, other.arch == own.arch, release)
        };
        // Of equals the first is taken.
        let nearest = |sizes| tables.iter().rev().filter(|table| table.cpus.len() >= sizes).max_by_key(alike);
        let mut table = nearest(2).cloned()?;
        // Dumps with one number of CPUs have no rates, but tell of caches that not every CPU holds.
        if let Some(own) = nearest(1).filter(|own| own.kernel != table.kernel) {
            table.some_cpus = own.some_cpus.clone();
        }
        Some(table)
    }

    /// Whether every CPU holds a slab of this cache; `None` if the dumps do not tell.
    pub fn every_cpu(&self, cache: &str) -> Option<bool> {
        let many = self.cpus.iter().any(|cpus| *cpus >= MANY);
        let listed = self.caches.get(cache).and_then(|rate| rate.every_cpu);
        listed.or((many || self.some_cpus.contains(cache)).then_some(false))
    }

    /// Threads that a CPU brings, on a machine with so many threads and CPUs. Another kernel has as many
    /// threads that no CPU brings, or more, so that the others tell the most that each CPU can have.
    pub fn threads_of_cpu(&self, own: &Kernel, threads: Option<u64>, cpus: u32) -> Option<f64> {
        let (Some(rate), Some(once), Some(threads)) = (self.threads, self.threads_once, threads) else {
            return self.threads;
        };
        let most = (threads as f64 - once).max(0.0) / f64::from(cpus.max(1));
        Some(if self.kernel == *own { rate } else { rate.min(most) })
    }

    /// What using this table for that kernel assumes.
    pub fn assumed(&self, own: &Kernel) -> String {
        let cpus: Vec<String> = self.cpus.iter().map(u32::to_string).collect();
        let from = format!("{}, measured on boots with {} CPUs", self.kernel, cpus.join(", "));
        match self.kernel == *own {
            true => format!("What the kernel allocates for each CPU is that of {from}."),
            false => format!(
                "What {own} allocates for each CPU is not known: it is assumed to be that of {from}. Where both \
                 were known, on 16 and 160 CPUs, such a table was off by 8 % (median) and the kernel's own by \
                 7 %. Two dumps of one machine with different numbers of CPUs tell: --input DUMP --input DUMP."
            ),
        }
    }

    /// The table as rows of [`COLUMNS`], the threads first.
    pub fn rows(&self) -> Vec<[String; 9]> {
        let cpus: Vec<String> = self.cpus.iter().map(u32::to_string).collect();
        let Kernel { release, arch, page_size } = &self.kernel;
        let row = |cache: &str, numbers: [String; 3], every: &str| {
            let [objects, low, high] = numbers;
            let page_size = page_size.to_string();
            let kernel = [release.clone(), arch.clone(), page_size, cpus.join(" ")];
            let [release, arch, page_size, cpus] = kernel;
            [release, arch, page_size, cpus, cache.into(), objects, low, high, every.into()]
        };
        let threads = [(THREADS, self.threads), (THREADS_ONCE, self.threads_once), (LISTS, self.lists)];
        let threads = threads.into_iter().filter_map(|(name, threads)| {
            threads.map(|threads| row(name, [threads, threads, threads].map(three), ""))
        });
        let caches = self.caches.iter().map(|(cache, rate)| {
            let every = rate.every_cpu.map_or("", |every| if every { "yes" } else { "no" });
            row(cache, [rate.objects, rate.low, rate.high].map(three), every)
        });
        let none = || ["", "", ""].map(String::from);
        let some_cpus = self.some_cpus.iter().filter(|cache| !self.caches.contains_key(*cache));
        let some_cpus = some_cpus.map(|cache| row(cache, none(), "no"));
        threads.chain(caches).chain(some_cpus).collect()
    }
}

fn three(number: f64) -> String {
    format!("{number:.3}")
}

impl Kernel {
    /// The kernel of a dump.
    pub fn of(state: &State) -> Kernel {
        let release =
            state.release.map_or(String::new(), |release| format!("{}.{}", release.major, release.minor));
        Kernel { release, arch: state.dump.arch.clone().unwrap_or_default(), page_size: state.page_size }
    }

    /// The two numbers of the release.
    fn numbers(&self) -> Option<(u32, u32)> {
        let (major, minor) = self.release.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kernel { release, arch, page_size } = self;
        let known = |text: &'_ str, unknown: &'static str| {
            if text.is_empty() { unknown.into() } else { text.to_string() }
        };
        let (release, arch) =
            (known(release, "a kernel of unknown release"), known(arch, "an unknown architecture"));
        write!(f, "{release} on {arch} with pages of {}K", page_size >> 10)
    }
}

/// The built-in table. A test writes it anew from the dumps and compares.
fn parse(text: &str) -> Vec<PerCpu> {
    let mut tables: Vec<PerCpu> = Vec::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let Ok([release, arch, page_size, cpus, cache, objects, low, high, every]) =
            <[&str; 9]>::try_from(cells)
        else {
            continue;
        };
        let number = |cell: &str| cell.parse().unwrap_or(0.0);
        let page_size = page_size.parse().unwrap_or(0);
        let kernel = Kernel { release: release.into(), arch: arch.into(), page_size };
        if tables.last().is_none_or(|table| table.kernel != kernel) {
            let cpus = cpus.split(' ').filter_map(|cpus| cpus.parse().ok()).collect();
            tables.push(PerCpu { kernel, cpus, ..PerCpu::default() });
        }
        let Some(table) = tables.last_mut() else { continue };
        if objects.is_empty() {
            table.some_cpus.insert(cache.into());
            continue;
        }
        let of_all = match cache {
            THREADS => Some(&mut table.threads),
            THREADS_ONCE => Some(&mut table.threads_once),
            LISTS => Some(&mut table.lists),
            _ => None,
        };
        if let Some(of_all) = of_all {
            *of_all = Some(number(objects));
            continue;
        }
        let every_cpu = match every {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        };
        let rate = Rate { objects: number(objects), low: number(low), high: number(high), every_cpu };
        table.caches.insert(cache.into(), rate);
    }
    tables
}
