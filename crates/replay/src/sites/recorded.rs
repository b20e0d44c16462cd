//! The call sites of a recording.

use super::lifetimes::{Lifetimes, Quantile};
use super::names::Symbols;
use super::options::{Options, Sort};
use super::pass::{CacheKey, Chain, Counts, Pass, TIMES, nodes};
use slablab_report::error::{Error, Result};
use slablab_report::nearest::nearest;
use slablab_report::text::counted;
use slablab_trace::{Metadata, Reader, Table};
use std::cmp::Reverse;
use std::path::{Path, PathBuf};

/// The call sites of a recording, and what is known of it.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The recording.
    pub path: PathBuf,
    /// What is known about it.
    pub metadata: Metadata,
    /// The sites, in the order asked for.
    pub sites: Vec<Site>,
    /// The call chains, if the recording has them.
    pub stacks: Vec<Stack>,
    /// Whether the recording has call chains.
    pub has_stacks: bool,
    /// Whether the recording says which CPU is on which node.
    pub has_nodes: bool,
    /// Seconds from the first row to the last.
    pub seconds: f64,
    /// Frees of objects from before the recording, whose call sites are not known.
    pub older_frees: u64,
    /// What the answer stands on: sentences.
    pub notes: Vec<String>,
}

/// A call site and the cache it allocates from.
#[derive(Clone, Debug, Default)]
pub struct Site {
    /// The cache.
    pub cache: String,
    /// The function and the offset, or an address that has no name.
    pub name: String,
    /// The address, where the recording has that instead of a name.
    pub address: Option<String>,
    /// Allocations.
    pub allocs: u64,
    /// Bytes requested by all allocations.
    pub requested_bytes: u64,
    /// Bytes that the caches gave for them.
    pub allocated_bytes: u64,
    /// Objects that live at the end.
    pub live: u64,
    /// Their bytes.
    pub live_bytes: u64,
    /// Bytes of those that nobody requested.
    pub waste_bytes: u64,
    /// The most bytes that lived at once.
    pub peak_bytes: u64,
    /// Where objects are freed.
    pub frees: Frees,
    /// How long objects live.
    pub lifetimes: Lifetimes,
    /// Allocations by task, most first.
    pub tasks: Vec<(String, u64)>,
    /// Frees by call site, most first.
    pub freed_by: Vec<(String, u64)>,
    /// Live bytes at each place of the time line, which begins and ends with the recording.
    pub line: Vec<u64>,
}

/// Where the objects of a site are freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frees {
    /// By the CPU that allocated.
    pub same_cpu: u64,
    /// By another CPU of its node, or of unknown node.
    pub other_cpu: u64,
    /// By a CPU of another node.
    pub other_node: u64,
    /// By a path without events: the CPU is not known, and the time is that of the next event that shows it.
    pub implied: u64,
}

impl Frees {
    /// Frees whose CPU is known.
    pub fn seen(&self) -> u64 {
        self.same_cpu + self.other_cpu + self.other_node
    }
}

/// A call chain of a site.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The cache.
    pub cache: String,
    /// Frames from the outermost to the call site.
    pub frames: Vec<String>,
    /// Allocations.
    pub allocs: u64,
    /// Bytes that live at the end.
    pub live_bytes: u64,
    /// Bytes of those that nobody requested.
    pub waste_bytes: u64,
}

impl Recorded {
    /// Reads a trace; `path` is its name in errors.
    ///
    /// # Errors
    /// A trace that cannot be read or has no call sites, a list of symbols of another kernel, or a cache that
    /// the recording does not have.
    pub fn of(
        reader: &Reader,
        path: &Path,
        options: &Options,
        progress: &dyn Fn(u64, u64),
    ) -> Result<Recorded> {
        let metadata = reader.metadata().clone();
        let pass = Pass::over(reader, path, progress)?;
        if pass.keys.is_empty() {
            return Err(Error::new(path, "the recording has no allocation"));
        }
        let mut symbols = if pass.texts.call_site.iter().chain(pass.texts.stack.iter()).any(is_address) {
            Symbols::of(&metadata, options.kallsyms.as_ref(), options.force)?
        } else {
            Symbols::default()
        };
        let mut sites: Vec<Site> = pass
            .keys
            .iter()
            .zip(&pass.counts)
            .map(|(key, counts)| site(&pass, *key, counts, &mut symbols))
            .collect();
        let mut stacks = stacks(&pass, &sites, &mut symbols);
        let has_stacks = !stacks.is_empty();
        if let Some(name) = &options.cache {
            only(name, path, &metadata, &mut sites, &mut stacks)?;
        }
        sites.sort_by(|left, right| options.sort.order(left, right));
        let nodes = nodes(&metadata);
        let statistics = &metadata.statistics;
        let mut recorded = Recorded {
            path: path.to_path_buf(),
            seconds: statistics.last_time_ns.saturating_sub(statistics.first_time_ns) as f64 / 1e9,
            older_frees: pass.older,
            has_nodes: !nodes.is_empty(),
            has_stacks,
            notes: Vec::new(),
            metadata,
            sites,
            stacks,
        };
        recorded.notes = recorded.stands_on(&symbols);
        Ok(recorded)
    }

    /// The sum of a value over all sites.
    pub fn sum(&self, of: impl Fn(&Site) -> u64) -> u64 {
        self.sites.iter().map(of).sum()
    }

    /// Sentences on what is not in the numbers.
    fn stands_on(&self, symbols: &Symbols) -> Vec<String> {
        let mut notes = Vec::new();
        if self.older_frees > 0 {
            notes.push(format!(
                "{} {} of objects from before the recording: who allocated those is not known",
                counted(self.older_frees, "free"),
                if self.older_frees == 1 { "is" } else { "are" }
            ));
        }
        let of_recorder = |site: &Site| match site.tasks.first() {
            Some((task, _)) if RECORDERS.contains(&task.as_str()) => site.live_bytes,
            _ => 0,
        };
        let (live, recorder) = (self.sum(|site| site.live_bytes), self.sum(of_recorder));
        if recorder * 100 > live {
            notes.push(format!(
                "{} % of the live bytes are from sites where the recorder itself ({}) allocated most: it writes the \
                 recording",
                recorder * 100 / live,
                RECORDERS.join(", ")
            ));
        }
        let implied = self.sum(|site| site.frees.implied);
        if implied > 0 {
            notes.push(format!(
                "{implied} frees have no event (bulk and RCU paths): they are inferred from later events of the same \
                 address or page, which gives their objects the longest possible lifetime and no CPU"
            ));
        }
        notes.extend(symbols.notes.iter().cloned());
        if symbols.nameless > 0 {
            let nameless = symbols.nameless;
            let have = if nameless == 1 { "has" } else { "have" };
            notes.push(format!("{} {have} no name", counted(nameless, "address")));
        }
        if !self.has_stacks {
            notes.push(
                "the recording has no call chains: `perf record -g -e 'kmem:*' -a` records them".to_string(),
            );
        }
        if !self.has_nodes {
            notes.push("the recording does not say which CPU is on which node".into());
        }
        notes.extend(self.metadata.warnings.iter().cloned());
        notes
    }
}

/// Tasks that record.
const RECORDERS: [&str; 3] = ["slablab", "perf", "trace-cmd"];

impl Sort {
    fn order(self, left: &Site, right: &Site) -> std::cmp::Ordering {
        let by = |of: &dyn Fn(&Site) -> u64| of(right).cmp(&of(left));
        let median = |site: &Site| match site.lifetimes.quantile(50) {
            Quantile::None => (0, false),
            Quantile::Known(ns) => (ns, false),
            // Longer than a known one of the same length.
            Quantile::AtLeast(ns) => (ns, true),
        };
        let first = match self {
            Sort::Live => by(&|site| site.live_bytes),
            Sort::Waste => by(&|site| site.waste_bytes),
            Sort::Peak => by(&|site| site.peak_bytes),
            Sort::Allocs => by(&|site| site.allocs),
            Sort::Bytes => by(&|site| site.allocated_bytes),
            Sort::Lifetime => median(right).cmp(&median(left)),
            Sort::Remote => by(&|site| site.frees.other_cpu + site.frees.other_node),
            Sort::Site => left.name.cmp(&right.name),
            Sort::Cache => left.cache.cmp(&right.cache),
        };
        let rest = |site: &Site| (Reverse(site.live_bytes), Reverse(site.allocs));
        let names = |site: &Site| (site.cache.clone(), site.name.clone());
        first.then_with(|| rest(left).cmp(&rest(right))).then_with(|| names(left).cmp(&names(right)))
    }
}

/// Whether a call site, or a frame of a chain, is an address.
fn is_address(text: &str) -> bool {
    text.starts_with("0x") || text.contains(";0x")
}

fn site(pass: &Pass, (cache, call_site): (CacheKey, u32), counts: &Counts, symbols: &mut Symbols) -> Site {
    let given = pass.texts.call_site.get(call_site).unwrap_or("(not recorded)").to_string();
    let mut sorted = |by: &rustc_hash::FxHashMap<u32, u64>, table: &Table, named: bool| {
        let mut all: Vec<(String, u64)> = by
            .iter()
            .map(|(id, count)| {
                let text = table.get(*id).unwrap_or("(unknown)");
                (if named { symbols.name(text) } else { text.to_string() }, *count)
            })
            .collect();
        all.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
        all
    };
    let tasks = sorted(&counts.tasks, &pass.texts.comm, false);
    let freed_by = sorted(&counts.freed_by, &pass.texts.call_site, true);
    let mut bytes = 0_i64;
    let mut line: Vec<u64> = counts
        .line
        .iter()
        .map(|change| {
            bytes += change;
            bytes.max(0) as u64
        })
        .collect();
    line.resize(TIMES, bytes.max(0) as u64);
    Site {
        cache: pass.cache(cache),
        name: symbols.name(&given),
        address: is_address(&given).then_some(given),
        allocs: counts.allocs,
        requested_bytes: counts.requested,
        allocated_bytes: counts.allocated,
        live: counts.live,
        live_bytes: counts.live_allocated,
        waste_bytes: counts.live_allocated.saturating_sub(counts.live_requested),
        peak_bytes: counts.peak,
        frees: Frees {
            same_cpu: counts.same_cpu,
            other_cpu: counts.other_cpu,
            other_node: counts.other_node,
            implied: counts.implied,
        },
        lifetimes: counts.lifetimes.clone(),
        tasks,
        freed_by,
        line,
    }
}

/// The call chains with names, in the order of their sites. Frames inside the call site are the allocator's
/// and left out.
fn stacks(pass: &Pass, sites: &[Site], symbols: &mut Symbols) -> Vec<Stack> {
    let mut chains: Vec<(&(u32, u32), &Chain)> = pass.chains.iter().collect();
    chains.sort_unstable_by_key(|(key, _)| **key);
    let named = chains.into_iter().map(|(&(site, stack), chain)| {
        let given = pass.texts.call_site.get(pass.keys[site as usize].1).unwrap_or("");
        let site = &sites[site as usize];
        let mut frames: Vec<&str> = pass.texts.stack.get(stack).unwrap_or("").split(';').collect();
        let name = |text: &str| text.split_once('+').map_or(text.to_string(), |(name, _)| name.to_string());
        // In text, a frame may lack the offset that the call site has.
        let at =
            frames.iter().rposition(|frame| *frame == given || (*frame == name(given) && !frame.is_empty()));
        frames.truncate(at.unwrap_or(frames.len()));
        let frames = frames.into_iter().map(|frame| symbols.name(frame)).chain([site.name.clone()]).collect();
        Stack {
            cache: site.cache.clone(),
            frames,
            allocs: chain.allocs,
            live_bytes: chain.live,
            waste_bytes: chain.waste,
        }
    });
    named.collect()
}

/// Keeps one cache, by its name or its directory.
fn only(
    name: &str,
    path: &Path,
    metadata: &Metadata,
    sites: &mut Vec<Site>,
    stacks: &mut Vec<Stack>,
) -> Result<()> {
    let of_directory = metadata.caches.iter().filter(|cache| cache.directory.as_deref() == Some(name));
    let mut wanted: Vec<&str> = of_directory.map(|cache| cache.name.as_str()).collect();
    wanted.push(name);
    if !sites.iter().any(|site| wanted.contains(&site.cache.as_str())) {
        let mut names: Vec<&str> = sites.iter().map(|site| site.cache.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let near = nearest(name, names.into_iter(), 3);
        let hint = if near.is_empty() { String::new() } else { format!("; near it: {}", near.join(", ")) };
        return Err(Error::new(path, format!("nothing is allocated from a cache {name:?}{hint}")));
    }
    sites.retain(|site| wanted.contains(&site.cache.as_str()));
    stacks.retain(|stack| wanted.contains(&stack.cache.as_str()));
    Ok(())
}
