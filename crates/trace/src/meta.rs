//! What is known about a recording: the footer's keys, each a JSON value under `slablab.`.
//!
//! A field of [`Metadata`] is a key of the footer; docs/trace-format.md lists them with their units. A key
//! this version does not know is kept as it is through a rewrite ([`Metadata::other`]).

use std::collections::BTreeMap;

use parquet::file::metadata::KeyValue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::Error;

/// The major version this program writes and the newest it reads.
pub const MAJOR: u32 = 1;
/// The minor version this program writes.
pub const MINOR: u32 = 2;

/// Before every key of ours.
const PREFIX: &str = "slablab.";
const FORMAT: &str = "slablab.format";

/// What is known about a recording. What is not known is absent, never a guess.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// `uname -r` of the recording machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// `uname -m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// Bytes in a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_size_bytes: Option<u64>,
    /// CPUs and memory nodes.
    pub topology: Topology,
    /// Kernel configuration, names without `CONFIG_`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// The kernel's command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_line: Option<String>,
    /// The clock of `time_ns`, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
    /// The kernel's build id in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// Where the kernel and its modules lay in memory, for call sites that are addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub symbols: Vec<Symbol>,
    /// Whether addresses are hashes: they pair an object's events, and say nothing of pages and nodes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pairing_only: bool,
    /// What the recorder lost.
    pub losses: Losses,
    /// Where the recording was cut off; absent for a whole one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<CutOff>,
    /// The file the trace was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// What import found and repaired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub import: Option<Import>,
    /// Counts over all rows, filled in by the writer.
    pub statistics: Statistics,
    /// The caches; a reader gives cache `i` of this list the id `i`.
    pub caches: Vec<CacheCounts>,
    /// What a user of this trace should be told, in sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Keys under `slablab.` that this version does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
    /// Keys of other programs.
    #[serde(skip)]
    pub foreign: Vec<(String, Option<String>)>,
}

/// CPUs and memory nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct Topology {
    /// CPUs online when recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus_online: Option<u32>,
    /// CPUs the kernel was prepared for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus_possible: Option<u32>,
    /// The nodes; empty when not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
}

/// One memory node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct Node {
    /// Its number.
    pub node: u32,
    /// Its CPUs.
    pub cpus: Vec<u32>,
    /// Its memory, 0 for a node without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Distances to the nodes in the order of the list.
    pub distances: Vec<u32>,
}

/// A mapping of kernel text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Symbol {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub length_bytes: u64,
    /// The kernel's or a module's name.
    pub name: String,
}

/// Where a recording was cut off: its events up to there are in the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct CutOff {
    /// Bytes that are there, of the decompressed recording.
    pub at_bytes: u64,
    /// Bytes that the recording should have, if it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_bytes: Option<u64>,
    /// Why the recorder ended it early, if it did; else the file was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What the recorder lost. The sums are exact; the list is cut off at [`Losses::LIMIT`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct Losses {
    /// Events lost, as far as the recording says.
    pub events: u64,
    /// Records that say so; some do not say how many events.
    pub records: u64,
    /// Events lost by CPU, as far as known.
    pub by_cpu: BTreeMap<u32, u64>,
    /// The records.
    pub list: Vec<Loss>,
}

impl Metadata {
    /// Whether the recording is known to miss events: the recorder lost some, or the recording was cut off.
    pub fn is_incomplete(&self) -> bool {
        self.losses.records > 0 || self.cut_off.is_some()
    }

    /// The recording's incompleteness, a sentence each: for the first lines of an answer.
    pub fn gaps(&self) -> Vec<String> {
        let mut said = Vec::new();
        if let Some(CutOff { at_bytes, of_bytes, why }) = &self.cut_off {
            let of = of_bytes.map_or(String::new(), |bytes| format!(" of {}", megabytes(bytes)));
            let how = match why {
                Some(why) => format!("ended early ({why})"),
                None => format!("is cut off after {}{of}", megabytes(*at_bytes)),
            };
            said.push(format!("the recording {how}: the answer is for its events up to there"));
        }
        let Losses { events, records, .. } = self.losses;
        if records > 0 {
            let count = if events == 0 { "an unknown number of".to_string() } else { events.to_string() };
            let places = if records == 1 { "1 place".to_string() } else { format!("{records} places") };
            said.push(format!("the recording lost {count} events in {places}: the answer is incomplete"));
        }
        said
    }
}

/// Bytes in decimal megabytes, below one in kilobytes or bytes.
fn megabytes(bytes: u64) -> String {
    match bytes {
        0..=999 => format!("{bytes} bytes"),
        1_000..=999_999 => format!("{:.1} KB", bytes as f64 / 1e3),
        1_000_000..=9_999_999 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.0} MB", bytes as f64 / 1e6),
    }
}

impl Losses {
    /// The longest list kept. Rows of event `lost` are in the trace beyond that.
    pub const LIMIT: usize = 4096;
}

/// One record of loss.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loss {
    /// The row of event `lost`, from 0: the lost events were before it.
    pub row: u64,
    /// When it was noticed.
    pub time_ns: u64,
    /// The CPU whose buffer overran, if the record says so.
    pub cpu: Option<u32>,
    /// How many events, 0 when it does not say.
    pub events: u64,
    /// `ring`, `samples` or `throttled`.
    pub kind: String,
    /// Byte offset of the record in the (decompressed) source.
    pub offset_bytes: u64,
}

/// The file a trace was made from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct Source {
    /// What it was: `perf.data`, `trace.dat`, `ftrace text`, `csv`, `counters csv`, `malloc`.
    pub kind: String,
    /// SHA-256 of the file as it was, compressed or not. Empty: the file was not kept.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// Its size as it was.
    pub size_bytes: u64,
    /// The command that recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
}

/// What import found and repaired.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct Import {
    /// The program that imported.
    pub program: String,
    /// How far apart in time two rows may be for the order rule.
    pub order_window_ns: u64,
    /// Where the kernel's linear map begins, if it could be found: frame `n` is at this plus `n` pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linear_map: Option<u64>,
    /// Events of kinds that a trace has no number for.
    pub skipped_events: u64,
    /// Counts over all caches.
    pub repairs: Repairs,
    /// Per `bytes_alloc`: kmalloc and kfree of objects whose cache was not recorded.
    pub kmalloc: Vec<CacheCounts>,
    /// Frees of unknown objects.
    pub unknown: Counts,
}

/// What import did to the recording as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct Repairs {
    /// Rows moved by the order rule.
    pub reordered: u64,
    /// Rows whose time is before that of an earlier row, since rows are in the order in which events took
    /// effect.
    pub behind: u64,
    /// Of these: farther behind than that order explains, because the recording itself is not in order.
    pub late: u64,
    /// Frees implied by an allocation of an address still live.
    pub implied_by_alloc: u64,
    /// Frees implied by a page freed, or allocated, under live objects.
    pub implied_by_page: u64,
    /// Frees of objects whose allocation is not in the recording.
    pub unseen_frees: u64,
    /// Of these: the address had been freed before, so that the allocation was during the recording.
    pub freed_before: u64,
    /// Frees whose event names another cache than the allocation's did.
    pub cache_changed: u64,
    /// `kfree(NULL)`.
    pub null_frees: u64,
    /// `kfree(ZERO_SIZE_PTR)`.
    pub zero_size_frees: u64,
    /// Allocations that returned NULL.
    pub failed_allocs: u64,
    /// Allocation events of more than 512 MiB, the largest block of any kernel: damaged, and not in the
    /// trace.
    pub damaged_sizes: u64,
    /// Page events before the place of memory was known (see docs/trace-format.md), and so not checked
    /// against objects.
    pub pages_unchecked: u64,
    /// Times the memory of freed addresses was full and forgotten.
    pub forgotten: u64,
    /// Allocation flags, in the recording's bits, that have no name here.
    pub gfp_bits_unknown: u64,
}

/// One cache and its counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct CacheCounts {
    /// Its name in the events; empty for a kmalloc size.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its directory in /sys/kernel/slab, where the recording says it is another name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Bytes it gives for an object; that of the last allocation seen.
    pub bytes_alloc: u64,
    /// Its counts.
    #[serde(flatten)]
    pub counts: Counts,
}

/// Counts of one cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct Counts {
    /// Objects allocated.
    pub allocs: u64,
    /// Objects freed by an event.
    pub frees: u64,
    /// Of these: by another CPU than allocated.
    pub frees_other_cpu: u64,
    /// Of the frees: the allocation is not in the recording.
    pub unseen_frees: u64,
    /// Of these: the address had been freed before.
    pub freed_before: u64,
    /// Untraced frees that follow from later events; not in `frees`.
    pub implied_frees: u64,
    /// Rows moved by the order rule.
    pub reordered: u64,
    /// Most objects live at once, of those allocated in the recording.
    pub live_max: u64,
    /// Objects live at the end, of those allocated in the recording.
    pub live_end: u64,
}

/// Counts over all rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(!default)]
pub struct Statistics {
    /// Rows in the file.
    pub rows: u64,
    /// Rows by event name. Without the synthetic events, these are the recorded events.
    pub events: BTreeMap<String, u64>,
    /// Object ids are below this: the length of an array indexed by object.
    pub object_ids: u64,
    /// CPU numbers are below this.
    pub cpu_ids: u32,
    /// Time of the first row.
    pub first_time_ns: u64,
    /// The latest time of a row.
    pub last_time_ns: u64,
}

impl Metadata {
    /// The metadata in a footer. The version is looked at first: a newer major version may mean anything by
    /// its keys.
    pub(crate) fn from_footer(footer: Option<&Vec<KeyValue>>) -> Result<Metadata, Error> {
        let footer = footer.map_or(&[][..], |list| list);
        let format = footer.iter().find(|entry| entry.key == FORMAT).and_then(|entry| entry.value.as_deref());
        let (major, minor) = version(format.ok_or(Error::NotATrace(FORMAT))?)?;
        if major > MAJOR {
            return Err(Error::TooNew { major, minor, read: MAJOR });
        }
        let (mut ours, mut foreign) = (Map::new(), Vec::new());
        for entry in footer.iter().filter(|entry| entry.key != FORMAT) {
            match entry.key.strip_prefix(PREFIX) {
                Some(key) => {
                    let text = entry.value.as_deref().unwrap_or("null");
                    let value = serde_json::from_str(text)
                        .map_err(|why| Error::Metadata { key: key.into(), why: why.to_string() })?;
                    // One key at a time, so that the error can name it.
                    let alone = Value::Object(Map::from_iter([(key.to_string(), value)]));
                    serde_json::from_value::<Metadata>(alone.clone())
                        .map_err(|why| Error::Metadata { key: key.into(), why: why.to_string() })?;
                    let Value::Object(mut alone) = alone else { unreachable!("just made as an object") };
                    ours.append(&mut alone);
                }
                None => foreign.push((entry.key.clone(), entry.value.clone())),
            }
        }
        let parsed = serde_json::from_value(Value::Object(ours));
        let mut metadata: Metadata =
            parsed.map_err(|why| Error::Metadata { key: "*".into(), why: why.to_string() })?;
        metadata.foreign = foreign;
        Ok(metadata)
    }

    /// The footer's entries.
    pub(crate) fn to_footer(&self) -> Vec<KeyValue> {
        let json = serde_json::to_value(self).expect("numbers, strings, lists and maps with string keys");
        let Value::Object(keys) = json else { unreachable!("a struct is an object") };
        let version = KeyValue::new(FORMAT.into(), format!("\"{MAJOR}.{MINOR}\""));
        let ours = keys.iter().map(|(key, value)| KeyValue::new(format!("{PREFIX}{key}"), value.to_string()));
        let foreign = self.foreign.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
        std::iter::once(version).chain(ours).chain(foreign).collect()
    }
}

fn version(text: &str) -> Result<(u32, u32), Error> {
    let parse = || {
        let (major, minor) = text.trim_matches('"').split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    parse().ok_or_else(|| Error::Metadata {
        key: "format".into(),
        why: format!("expected \"major.minor\", found {text}"),
    })
}
