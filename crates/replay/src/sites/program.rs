//! The call sites of a program: who allocates, by a recording of its malloc with call chains.

mod pages;
mod pass;

use super::lifetimes::{Lifetimes, Quantile};
use super::options::{Options, Sort};
use pass::{Counts, Pass, TIMES};
use slablab_report::error::{Error, Result};
use slablab_trace::{Metadata, Reader};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use pages::Pages;

/// The call sites of a program, and what is known of its memory.
#[derive(Clone, Debug)]
pub struct Program {
    /// The recording.
    pub path: PathBuf,
    /// What is known about it.
    pub metadata: Metadata,
    /// Bytes in each of which about one allocation has a chain; 1: every allocation has.
    pub sample_bytes: u64,
    /// The sites, in the order asked for.
    pub sites: Vec<ProgramSite>,
    /// The call chains.
    pub chains: Vec<ProgramChain>,
    /// All allocations.
    pub allocs: u64,
    /// Bytes and blocks that lived at most.
    pub peak: [u64; 2],
    /// Seconds from the first call to then.
    pub peak_s: f64,
    /// Bytes and blocks that live at the end.
    pub end: [u64; 2],
    /// Seconds from the first call to the last.
    pub seconds: f64,
    /// Live bytes at each place of the time line, which begins and ends with the recording.
    pub line: Vec<u64>,
    /// The pages that the live blocks are in at the end.
    pub pages: Pages,
    /// Bytes of the process in memory, if the recording has them.
    pub resident: Option<Resident>,
    /// What the answer stands on: sentences.
    pub notes: Vec<String>,
}

/// Bytes of a process that are in memory, without those of files, such as its code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resident {
    /// When its recording began.
    pub begin: u64,
    /// At most.
    pub most: u64,
    /// At its end.
    pub end: u64,
}

/// The numbers of a call site, or of a call chain: estimates, if not every allocation has a chain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numbers {
    /// Allocations in the recording that have a chain.
    pub seen: u64,
    /// Allocations.
    pub allocs: u64,
    /// Bytes that they requested.
    pub bytes: u64,
    /// Blocks that live at the end, and their bytes.
    pub live: u64,
    /// Their bytes.
    pub live_bytes: u64,
    /// Bytes that lived when most lived of all.
    pub peak_bytes: u64,
    /// Allocations that were freed before their thread allocated again.
    pub brief: u64,
    /// Free bytes in the pages of the blocks that live at the end, each block's part by its bytes.
    pub pinned_bytes: u64,
}

/// The code that asked for memory.
#[derive(Clone, Debug, Default)]
pub struct ProgramSite {
    /// The innermost function that is no library's wrapper, with file and line where they are known.
    pub name: String,
    /// The function that it called, as `malloc`.
    pub called: String,
    /// What it allocated.
    pub numbers: Numbers,
    /// How long blocks live.
    pub lifetimes: Lifetimes,
    /// Live bytes at each place of the time line.
    pub line: Vec<u64>,
}

/// A call chain.
#[derive(Clone, Debug)]
pub struct ProgramChain {
    /// Frames from the outermost to the innermost.
    pub frames: Vec<String>,
    /// The site that it ends in.
    pub site: String,
    /// What it allocated.
    pub numbers: Numbers,
}

/// Functions whose callers are meant when one asks who allocates: of allocators, and of containers that every
/// part of a program shares.
const WRAPPERS: [&str; 24] = [
    "__gnu_cxx::",
    "__interceptor_",
    "__rdl_",
    "__rust_",
    "__rustc::",
    "<alloc::",
    "<core::",
    "<hashbrown::",
    "<std::",
    "PyMem_",
    "PyObject_Calloc",
    "PyObject_Malloc",
    "_PyMem_",
    "_PyObject_Malloc",
    "alloc::",
    "core::",
    "g_malloc",
    "g_realloc",
    "g_slice_alloc",
    "hashbrown::",
    "operator new",
    "std::",
    "xcalloc",
    "xmalloc",
];

/// The frame of a chain, from the outermost to the innermost, that names its site.
fn site_of<'a>(frames: &[&'a str]) -> &'a str {
    let is_wrapper = |frame: &str| WRAPPERS.iter().any(|wrapper| frame.starts_with(wrapper));
    let found = frames.iter().rfind(|frame| !is_wrapper(frame));
    found.or(frames.last()).copied().unwrap_or("(unknown)")
}

/// Bytes in each of which about one allocation of a program's trace has a call chain.
fn sampled(metadata: &Metadata) -> Option<u64> {
    metadata.other.get("malloc")?.get("sample_bytes")?.as_u64().filter(|bytes| *bytes > 0)
}

/// Whether a trace is of a program's malloc.
pub(super) fn is_program(metadata: &Metadata) -> bool {
    metadata.source.as_ref().is_some_and(|source| source.kind == "malloc")
}

impl Program {
    /// Reads a trace; `path` is its name in errors.
    ///
    /// # Errors
    /// A trace that cannot be read, or has no call chains.
    pub fn of(
        reader: &Reader,
        path: &Path,
        options: &Options,
        progress: &dyn Fn(u64, u64),
    ) -> Result<Program> {
        let metadata = reader.metadata().clone();
        let Some(sample_bytes) = sampled(&metadata) else {
            let what = "a recording of a program's malloc without call chains: its rows name the called function \
                        (malloc, free), not the caller; expected one of `slablab record --malloc -g`";
            return Err(Error::new(path, what));
        };
        if options.cache.is_some() || options.kallsyms.is_some() {
            return Err(Error::new(
                path,
                "a program's recording: --cache and --kallsyms are for those of a kernel",
            ));
        }
        // Of allocations of `bytes` bytes one in so many has a chain.
        let mean = sample_bytes as f64;
        let weight = |bytes: u32| match sample_bytes {
            1 => 1.0,
            _ => 1.0 / -(-f64::from(bytes.max(1)) / mean).exp_m1(),
        };
        let pass = Pass::over(reader, path, &weight, progress)?;
        if pass.chains.is_empty() {
            return Err(Error::new(path, few(sample_bytes, &pass)));
        }
        let statistics = &metadata.statistics;
        let mut program = Program {
            path: path.to_path_buf(),
            sample_bytes,
            allocs: pass.allocs,
            peak: pass.peak,
            peak_s: pass.peak_ns as f64 / 1e9,
            end: pass.end,
            seconds: statistics.last_time_ns.saturating_sub(statistics.first_time_ns) as f64 / 1e9,
            resident: resident(&metadata),
            line: pass.line.clone(),
            pages: pass.pages,
            sites: sites(&pass),
            chains: chains(&pass),
            notes: Vec::new(),
            metadata,
        };
        program.sites.sort_by(|left, right| order(options.sort, left, right));
        program.notes = program.stands_on();
        Ok(program)
    }

    /// The sum of a number over all sites.
    pub fn sum(&self, of: impl Fn(&Numbers) -> u64) -> u64 {
        self.sites.iter().map(|site| of(&site.numbers)).sum()
    }

    fn stands_on(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.sample_bytes > 1 {
            notes.push(format!(
                "about one allocation in each {} bytes has a call chain, {} of {}: numbers of sites are estimates, off \
                 by about one in the root of the chains that a site has; sums of the program are exact",
                self.sample_bytes,
                self.sum(|numbers| numbers.seen),
                self.allocs
            ));
        }
        if self.resident.is_none() {
            notes.push("the recording does not say how much memory the process had".into());
        }
        notes.extend(self.metadata.warnings.iter().cloned());
        notes
    }
}

fn few(sample_bytes: u64, pass: &Pass) -> String {
    format!(
        "none of the {} allocations has a call chain, with about one in each {sample_bytes} bytes: expected a smaller \
         --sample of `slablab record --malloc -g`, or a program that allocates more",
        pass.allocs
    )
}

fn resident(metadata: &Metadata) -> Option<Resident> {
    let bytes = metadata.other.get("malloc")?.get("resident_bytes")?;
    let number = |key: &str| bytes.get(key)?.as_u64();
    Some(Resident { begin: number("begin")?, most: number("most")?, end: number("end")? })
}

fn order(sort: Sort, left: &ProgramSite, right: &ProgramSite) -> std::cmp::Ordering {
    let by = |of: fn(&Numbers) -> u64| of(&right.numbers).cmp(&of(&left.numbers));
    let median = |site: &ProgramSite| match site.lifetimes.quantile(50) {
        Quantile::None => 0,
        Quantile::Known(ns) | Quantile::AtLeast(ns) => ns,
    };
    let first = match sort {
        Sort::Live => by(|numbers| numbers.live_bytes),
        Sort::Waste => by(|numbers| numbers.pinned_bytes),
        Sort::Peak => by(|numbers| numbers.peak_bytes),
        Sort::Allocs => by(|numbers| numbers.allocs),
        Sort::Bytes => by(|numbers| numbers.bytes),
        Sort::Remote => by(|numbers| numbers.brief),
        Sort::Lifetime => median(right).cmp(&median(left)),
        Sort::Site | Sort::Cache => left.name.cmp(&right.name),
    };
    let rest = |site: &ProgramSite| (Reverse(site.numbers.peak_bytes), Reverse(site.numbers.allocs));
    first.then_with(|| rest(left).cmp(&rest(right))).then_with(|| left.name.cmp(&right.name))
}

/// The chains of a pass by their numbers, so that answers do not depend on the order of a hash.
fn in_order(pass: &Pass) -> Vec<(Vec<&str>, &Counts)> {
    let mut all: Vec<(&u32, &Counts)> = pass.chains.iter().collect();
    all.sort_unstable_by_key(|(id, _)| **id);
    let frames = |id: u32| pass.texts.stack.get(id).unwrap_or("").split(';').collect();
    all.into_iter().map(|(id, counts)| (frames(*id), counts)).collect()
}

/// Sums of the counts of several chains.
#[derive(Default)]
struct Sum {
    called: String,
    counts: Counts,
}

fn sites(pass: &Pass) -> Vec<ProgramSite> {
    let mut sums: BTreeMap<&str, Sum> = BTreeMap::new();
    for (frames, counts) in in_order(pass) {
        let sum = sums.entry(site_of(&frames)).or_default();
        if sum.called.is_empty() {
            sum.called = pass.texts.call_site.get(counts.called).unwrap_or("").to_string();
        }
        sum.counts.add(counts);
    }
    sums.into_iter()
        .map(|(name, sum)| ProgramSite {
            name: name.to_string(),
            called: sum.called,
            numbers: numbers(&sum.counts),
            line: line(&sum.counts.line),
            lifetimes: sum.counts.lifetimes,
        })
        .collect()
}

fn chains(pass: &Pass) -> Vec<ProgramChain> {
    let chain = |(frames, counts): (Vec<&str>, &Counts)| ProgramChain {
        site: site_of(&frames).to_string(),
        frames: frames.into_iter().map(str::to_string).collect(),
        numbers: numbers(counts),
    };
    in_order(pass).into_iter().map(chain).collect()
}

fn numbers(counts: &Counts) -> Numbers {
    // What is freed is taken off again: a rest of less than nothing is one of rounding.
    let whole = |number: f64| number.round().max(0.0) as u64;
    Numbers {
        seen: counts.seen,
        allocs: whole(counts.allocs),
        bytes: whole(counts.bytes),
        live: whole(counts.live),
        live_bytes: whole(counts.live_bytes),
        peak_bytes: whole(counts.peak_bytes),
        brief: whole(counts.brief),
        pinned_bytes: whole(counts.pinned_bytes),
    }
}

/// Live bytes at each place, from the changes there.
fn line(changes: &[f64]) -> Vec<u64> {
    let mut bytes = 0.0;
    let mut line: Vec<u64> = changes
        .iter()
        .map(|change| {
            bytes += change;
            bytes.round().max(0.0) as u64
        })
        .collect();
    line.resize(TIMES, bytes.round().max(0.0) as u64);
    line
}

#[cfg(test)]
mod tests {
    use super::site_of;

    #[test]
    fn a_site_is_the_innermost_function_that_is_no_wrapper() {
        for (chain, expected) in [
            ("main;load (a.c:3);xmalloc (x.c:9)", "load (a.c:3)"),
            ("_start+0x2;main+0x8;fill+0x10", "fill+0x10"),
            (
                "main (a.cc:1);std::vector<int>::push_back (v.h:2);operator new(unsigned long)+0x3",
                "main (a.cc:1)",
            ),
            (
                "app::run (r.rs:7);<alloc::vec::Vec<T>>::push (m.rs:1);alloc::alloc::alloc (a.rs:9)",
                "app::run (r.rs:7)",
            ),
            // Nothing but wrappers: the innermost.
            ("std::thread::spawn;core::ops::call", "core::ops::call"),
            ("", ""),
        ] {
            assert_eq!(site_of(&chain.split(';').collect::<Vec<_>>()), expected);
        }
    }
}
