//! /proc files about memory: meminfo, zoneinfo, buddyinfo, pagetypeinfo, vmstat.

use std::collections::BTreeMap;

use crate::text::{ID_LIMIT, LineError, number, utf8};

/// Names and numbers of /proc/meminfo and /proc/vmstat, or of a node's meminfo. Units are the file's: kB for
/// meminfo lines that say so, counts otherwise.
pub type Numbers = BTreeMap<String, u64>;

/// One zone of /proc/zoneinfo. All counts are pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    /// Its node.
    pub node: u32,
    /// `DMA32`, `Normal`, ...
    pub name: String,
    /// Free.
    pub free: u64,
    /// The watermark below which only emergencies allocate.
    pub min: u64,
    /// The watermark that wakes kswapd.
    pub low: u64,
    /// The watermark at which kswapd sleeps.
    pub high: u64,
    /// Temporary rise of the watermarks against fragmentation (since 5.0).
    pub boost: u64,
    /// Number of its first page frame; `None` in kernels that do not say.
    pub start_pfn: Option<u64>,
    /// From first to last page, with holes.
    pub spanned: u64,
    /// Without holes.
    pub present: u64,
    /// Given to the page allocator.
    pub managed: u64,
    /// Held back from allocations that could use a higher zone, per that zone.
    pub protection: Vec<u64>,
    /// Per-CPU page lists.
    pub pagesets: Vec<Pageset>,
    /// `nr_*` and `numa_*` counters of the zone; those of its node are in the node's first zone.
    pub stats: Numbers,
}

/// One CPU's page list in one zone. All counts are pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pageset {
    /// The CPU.
    pub cpu: u32,
    /// On the list.
    pub count: u64,
    /// Gives pages back above this.
    pub high: u64,
    /// Moved at once.
    pub batch: u64,
    /// Lower bound of the tuned `high` (since 6.7).
    pub high_min: Option<u64>,
    /// Upper bound of the tuned `high` (since 6.7).
    pub high_max: Option<u64>,
}

/// Free blocks of one zone by order, from /proc/buddyinfo, or of one migrate type of it, from
/// /proc/pagetypeinfo.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreeBlocks {
    /// The zone's node.
    pub node: u32,
    /// The zone.
    pub zone: String,
    /// The migrate type; `None` for all together.
    pub migrate_type: Option<String>,
    /// Blocks of `2^index` pages.
    pub blocks: Vec<u64>,
}

/// /proc/pagetypeinfo.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageTypes {
    /// A pageblock is `2^order` pages.
    pub pageblock_order: Option<u32>,
    /// Free blocks per zone and type. The kernel stops counting at 100,000 blocks and writes `>100000`, kept
    /// as 100,000.
    pub free: Vec<FreeBlocks>,
    /// Pageblocks per node and zone: counts in the order of `types`.
    pub pageblocks: Vec<(u32, String, Vec<u64>)>,
    /// Migrate types by name.
    pub types: Vec<String>,
}

/// Reads /proc/meminfo, a node's meminfo or /proc/vmstat: a name, a number, perhaps `kB` on each line.
///
/// # Errors
/// The first line that is not so.
pub fn parse_numbers(text: &[u8]) -> Result<Numbers, LineError> {
    let mut numbers = Numbers::new();
    for (index, line) in utf8(text)?.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let mut words = line.split_whitespace();
        let mut next = words.next();
        // A node's meminfo has `Node 0` before the name.
        if next == Some("Node") {
            words.next();
            next = words.next();
        }
        let name = next.map(|name| name.trim_end_matches(':'));
        let pair = name.zip(words.next().and_then(number));
        let (name, value) = pair.ok_or_else(|| LineError::new(index + 1, "a name and a number", line))?;
        numbers.insert(name.to_string(), value);
    }
    Ok(numbers)
}

/// /proc/sys/fs/dentry-state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DentryState {
    /// All directory entries.
    pub all: u64,
    /// Those that nothing uses: the kernel frees them when it needs memory.
    pub unused: u64,
    /// Those of names that do not exist (since 5.0; 0 before).
    pub negative: u64,
}

impl DentryState {
    /// The six numbers of the file; `None` if these words are others.
    pub(crate) fn of(words: &[&str]) -> Option<DentryState> {
        let values: Option<Vec<u64>> = words.iter().map(|word| number(word)).collect();
        let &[all, unused, _, _, negative, _] = values.as_deref()? else { return None };
        (unused <= all && negative <= all).then_some(DentryState { all, unused, negative })
    }
}

/// Reads /proc/sys/fs/dentry-state. Counters of CPUs that are read while they move can add up to what cannot
/// be: such a file tells nothing.
///
/// # Errors
/// Something else than numbers.
pub fn parse_dentry_state(text: &[u8]) -> Result<Option<DentryState>, LineError> {
    let text = utf8(text)?;
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.iter().all(|word| word.parse::<i64>().is_ok()) {
        true => Ok(DentryState::of(&words)),
        false => Err(LineError::new(1, "six numbers", text)),
    }
}

/// Reads /proc/net/protocols: open sockets by protocol, in the network namespace of the reader.
///
/// # Errors
/// A line without a name and, in the third column, a number.
pub fn parse_protocols(text: &[u8]) -> Result<Numbers, LineError> {
    let row = |(index, line): (usize, &str)| {
        let mut words = line.split_whitespace();
        let pair = words.next().map(str::to_string).zip(words.nth(1).and_then(number));
        pair.ok_or_else(|| LineError::new(index + 1, "a protocol, a size and a number of sockets", line))
    };
    utf8(text)?.lines().enumerate().skip(1).map(row).collect()
}

/// Reads /proc/zoneinfo of 2.6 and later. Lines it does not know are passed over, since every release adds
/// some.
///
/// # Errors
/// A line before the first zone, or a number that is none.
pub fn parse_zoneinfo(text: &[u8]) -> Result<Vec<Zone>, LineError> {
    let mut zones: Vec<Zone> = Vec::new();
    for (index, line) in utf8(text)?.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let error = |expected| LineError::new(index + 1, expected, line);
        if line.starts_with("Node ") {
            let (node, name) = node_and_zone(line).ok_or_else(|| error("`Node <n>, zone <name>`"))?;
            zones.push(Zone { node, name: name.trim().to_string(), ..Zone::default() });
            continue;
        }
        let zone = zones.last_mut().ok_or_else(|| error("`Node <n>, zone <name>` first"))?;
        zone_line(zone, line.trim()).ok_or_else(|| error("a name and a number"))?;
    }
    Ok(zones)
}

/// One line inside a zone; `None` if a known name has no number.
fn zone_line(zone: &mut Zone, line: &str) -> Option<()> {
    if let Some(list) = line.strip_prefix("protection:") {
        let list = list.trim().strip_prefix('(')?.strip_suffix(')')?;
        zone.protection = list.split(',').map(|word| number(word.trim())).collect::<Option<_>>()?;
        return Some(());
    }
    let line = line.strip_prefix("pages ").unwrap_or(line).trim_start();
    let (name, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let value = value.trim();
    let mut pageset = |set: fn(&mut Pageset, u64)| {
        zone.pagesets.last_mut().zip(number(value)).map(|(pageset, value)| set(pageset, value))
    };
    match name {
        "free" => zone.free = number(value)?,
        "boost" => zone.boost = number(value)?,
        "min" => zone.min = number(value)?,
        "low" => zone.low = number(value)?,
        "high" => zone.high = number(value)?,
        "start_pfn:" => zone.start_pfn = Some(number(value)?),
        "spanned" => zone.spanned = number(value)?,
        "present" => zone.present = number(value)?,
        "managed" => zone.managed = number(value)?,
        "cpu:" => {
            let cpu = number(value).filter(|&cpu| cpu < ID_LIMIT)?;
            zone.pagesets.push(Pageset { cpu, ..Pageset::default() });
        }
        "count:" => pageset(|pageset, value| pageset.count = value)?,
        "high:" => pageset(|pageset, value| pageset.high = value)?,
        "batch:" => pageset(|pageset, value| pageset.batch = value)?,
        "high_min:" => pageset(|pageset, value| pageset.high_min = Some(value))?,
        "high_max:" => pageset(|pageset, value| pageset.high_max = Some(value))?,
        _ if name.starts_with("nr_") || name.starts_with("numa_") => {
            // The node's counter is in front of the zone's counter of the same name.
            zone.stats.entry(name.to_string()).or_insert(number(value)?);
        }
        _ => {}
    }
    Some(())
}

/// `Node 0, zone    DMA32<rest>`; gives the node and what follows `zone`.
fn node_and_zone(line: &str) -> Option<(u32, &str)> {
    let (node, zone) = line.strip_prefix("Node")?.split_once(',')?;
    let node = number(node.trim()).filter(|&node| node < ID_LIMIT)?;
    Some((node, zone.trim_start().strip_prefix("zone")?))
}

/// Reads /proc/buddyinfo.
///
/// # Errors
/// The first line that is not `Node <n>, zone <name>` and numbers.
pub fn parse_buddyinfo(text: &[u8]) -> Result<Vec<FreeBlocks>, LineError> {
    let lines = utf8(text)?.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let parse = |line| {
        let (node, rest) = node_and_zone(line)?;
        let mut words = rest.split_whitespace();
        let zone = words.next()?.to_string();
        let blocks = words.map(number).collect::<Option<Vec<u64>>>()?;
        Some(FreeBlocks { node, zone, migrate_type: None, blocks })
    };
    lines
        .map(|(index, line)| {
            parse(line).ok_or_else(|| LineError::new(index + 1, "`Node <n>, zone <name>` and numbers", line))
        })
        .collect()
}

/// Reads /proc/pagetypeinfo.
///
/// # Errors
/// The first line of a table that is not like the table.
pub fn parse_pagetypeinfo(text: &[u8]) -> Result<PageTypes, LineError> {
    let mut types = PageTypes::default();
    for (index, line) in utf8(text)?.lines().enumerate() {
        let error = |expected| LineError::new(index + 1, expected, line);
        if let Some(order) = line.strip_prefix("Page block order:") {
            types.pageblock_order = Some(number(order.trim()).ok_or_else(|| error("an order"))?);
        } else if let Some(names) = line.strip_prefix("Number of blocks type") {
            types.types = names.split_whitespace().map(str::to_string).collect();
        } else if let Some((node, rest)) = node_and_zone(line) {
            match rest.split_once(", type") {
                Some((zone, rest)) => {
                    let free = free_of_type(node, zone, rest).ok_or_else(|| error("a type and numbers"))?;
                    types.free.push(free);
                }
                None => {
                    let mut words = rest.split_whitespace();
                    let zone = words.next().ok_or_else(|| error("a zone's name"))?.to_string();
                    let counts = words.map(number).collect::<Option<_>>();
                    types.pageblocks.push((
                        node,
                        zone,
                        counts.ok_or_else(|| error("numbers of pageblocks"))?,
                    ));
                }
            }
        }
    }
    Ok(types)
}

fn free_of_type(node: u32, zone: &str, rest: &str) -> Option<FreeBlocks> {
    let mut words = rest.split_whitespace();
    let migrate_type = Some(words.next()?.to_string());
    let blocks = words.map(|word| number(word.trim_start_matches('>'))).collect::<Option<_>>()?;
    Some(FreeBlocks { node, zone: zone.trim().to_string(), migrate_type, blocks })
}
