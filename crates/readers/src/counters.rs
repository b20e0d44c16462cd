//! Tidy tables of a kernel with SLUB_STATS: its counters, its state and its caches' constants, one row each.

use std::io::Read;

use crate::error::ReadError;
use crate::lines::Csv;
use crate::slabinfo::{Columns, Slabinfo, SlabinfoRow};
use crate::text::{Breakdown, Count, ID_LIMIT, number};

/// One SLUB_STATS counter of one cache around one workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatRow {
    /// The workload.
    pub label: String,
    /// The directory in /sys/kernel/slab.
    pub cache: String,
    /// Names merged into it.
    pub aliases: Vec<String>,
    /// The counter's file name, such as `alloc_fastpath`.
    pub stat: String,
    /// Before the workload.
    pub before: u64,
    /// Right after it.
    pub after: u64,
    /// Some seconds later.
    pub settled: Option<u64>,
    /// `after - before`; negative if the counter was reset.
    pub delta: i64,
}

/// The state of one cache at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateRow {
    /// The workload.
    pub label: String,
    /// `before`, `after` or `settled`.
    pub phase: String,
    /// The directory in /sys/kernel/slab.
    pub cache: String,
    /// Slabs, per node.
    pub slabs: Breakdown,
    /// Objects in use or parked, per node.
    pub objects: Breakdown,
    /// Objects there is room for, per node.
    pub total_objects: Breakdown,
    /// Objects in use on partial slabs, per node.
    pub objects_partial: Breakdown,
    /// Slabs on the nodes' partial lists.
    pub partial: Breakdown,
    /// Slabs held by CPUs, per node.
    pub cpu_slabs: Breakdown,
    /// Objects and slabs of the CPUs' partial lists, per CPU.
    pub slabs_cpu_partial: Breakdown,
}

/// What never changes of one cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstRow {
    /// The directory in /sys/kernel/slab.
    pub cache: String,
    /// Names merged into it.
    pub aliases: Vec<String>,
    /// Bytes of an object without padding.
    pub object_size: u64,
    /// Bytes from one object to the next.
    pub slab_size: u64,
    /// A slab is `2^order` pages.
    pub order: u64,
    /// Objects in a slab.
    pub objs_per_slab: u64,
    /// Objects to keep on a CPU's partial list.
    pub cpu_partial: u64,
    /// Slabs to keep on a node's partial list.
    pub min_partial: u64,
    /// Alignment in bytes.
    pub align: u64,
    /// Aligned to cache lines.
    pub hwcache_align: bool,
    /// Freed after a grace period.
    pub destroy_by_rcu: bool,
    /// Reclaimable.
    pub reclaim_account: bool,
    /// In the DMA zone; `None` without that zone.
    pub cache_dma: Option<bool>,
    /// Percentage of allocations that may take another node's partial slab; `None` without NUMA.
    pub remote_node_defrag_ratio: Option<u64>,
}

/// A slabinfo at one moment of one workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlabinfoAt {
    /// The workload.
    pub label: String,
    /// `before`, `after` or `settled`.
    pub phase: String,
    /// Its rows.
    pub slabinfo: Slabinfo,
}

/// Reads `label,cache,aliases,stat,before,after,settled,delta`.
///
/// # Errors
/// A missing column, a field that is no number, or `reader`'s.
pub fn parse_stats(reader: impl Read) -> Result<Vec<StatRow>, ReadError> {
    let mut csv = Csv::new(reader)?;
    let [label, cache, aliases, stat] = columns(&csv, ["label", "cache", "aliases", "stat"])?;
    let [before, after, settled, delta] = columns(&csv, ["before", "after", "settled", "delta"])?;
    let mut rows = Vec::new();
    while csv.next()? {
        rows.push(StatRow {
            label: csv.field(label).to_string(),
            cache: csv.field(cache).to_string(),
            aliases: names(csv.field(aliases)),
            stat: csv.field(stat).to_string(),
            before: csv.number(before)?,
            after: csv.number(after)?,
            settled: csv.number_or_empty(settled)?,
            delta: csv.field(delta).parse().map_err(|_| csv.error(delta, "a whole number"))?,
        });
    }
    Ok(rows)
}

/// Reads `label,phase,cache,slabs,...,detail`, where `detail` is `slabs:9 N0=2 N1=7 | objects:466 ...`: the
/// parts `slabs`, `objects`, `total`, `objp`, `partial`, `cpu` per node, and `cpupart` per CPU. A part that
/// is missing is zero; the totals are those of the columns.
///
/// # Errors
/// A missing column, a field that is not what it should be, or `reader`'s.
pub fn parse_state(reader: impl Read) -> Result<Vec<StateRow>, ReadError> {
    let mut csv = Csv::new(reader)?;
    let [label, phase, cache, detail] = columns(&csv, ["label", "phase", "cache", "detail"])?;
    let totals =
        columns(&csv, ["slabs", "objects", "total_objects", "objects_partial", "partial", "cpu_slabs"])?;
    let [cpu_partial] = columns(&csv, ["slabs_cpu_partial"])?;
    let mut rows = Vec::new();
    while csv.next()? {
        let text = |column| csv.field(column).to_string();
        let mut row =
            StateRow { label: text(label), phase: text(phase), cache: text(cache), ..StateRow::default() };
        for part in csv.field(detail).split(" | ").filter(|part| !part.is_empty()) {
            let expected = "parts such as `slabs:9 N0=2 N1=7`";
            let error = || csv.error(detail, expected);
            let (name, counts) = part.split_once(':').ok_or_else(error)?;
            *row.part(name).ok_or_else(error)? = Breakdown::parse(counts).ok_or_else(error)?;
        }
        let names = ["slabs", "objects", "total", "objp", "partial", "cpu"];
        for (name, column) in names.into_iter().zip(totals).chain([("cpupart", cpu_partial)]) {
            let total = csv.number(column)?;
            row.part(name).expect("these are its parts").total.value = total;
        }
        rows.push(row);
    }
    Ok(rows)
}

impl StateRow {
    fn part(&mut self, name: &str) -> Option<&mut Breakdown> {
        Some(match name {
            "slabs" => &mut self.slabs,
            "objects" => &mut self.objects,
            "total" => &mut self.total_objects,
            "objp" => &mut self.objects_partial,
            "partial" => &mut self.partial,
            "cpu" => &mut self.cpu_slabs,
            "cpupart" => &mut self.slabs_cpu_partial,
            _ => return None,
        })
    }
}

/// Reads `cache,alias_names,object_size,slab_size,order,...`.
///
/// # Errors
/// A missing column, a field that is no number, or `reader`'s.
pub fn parse_const(reader: impl Read) -> Result<Vec<ConstRow>, ReadError> {
    let mut csv = Csv::new(reader)?;
    let [cache, aliases] = columns(&csv, ["cache", "alias_names"])?;
    let [object_size, slab_size, order] = columns(&csv, ["object_size", "slab_size", "order"])?;
    let [per_slab, cpu_partial, min_partial] =
        columns(&csv, ["objs_per_slab", "cpu_partial", "min_partial"])?;
    let [align, hwcache, rcu] = columns(&csv, ["align", "hwcache_align", "destroy_by_rcu"])?;
    let [reclaim, dma, defrag] = columns(&csv, ["reclaim_account", "cache_dma", "remote_node_defrag_ratio"])?;
    let mut rows = Vec::new();
    while csv.next()? {
        rows.push(ConstRow {
            cache: csv.field(cache).to_string(),
            aliases: names(csv.field(aliases)),
            object_size: csv.number(object_size)?,
            slab_size: csv.number(slab_size)?,
            order: csv.number(order)?,
            objs_per_slab: csv.number(per_slab)?,
            cpu_partial: csv.number(cpu_partial)?,
            min_partial: csv.number(min_partial)?,
            align: csv.number(align)?,
            hwcache_align: csv.number(hwcache)? != 0,
            destroy_by_rcu: csv.number(rcu)? != 0,
            reclaim_account: csv.number(reclaim)? != 0,
            cache_dma: csv.number_or_empty(dma)?.map(|value| value != 0),
            remote_node_defrag_ratio: csv.number_or_empty(defrag)?,
        });
    }
    Ok(rows)
}

/// Reads `label,cache,stat,cpu,before,after,delta` into one [`StatRow`]-like breakdown per label, cache and
/// counter: its `before` and `after` per CPU.
///
/// # Errors
/// A missing column, a field that is no number, or `reader`'s.
pub fn parse_stats_percpu(reader: impl Read) -> Result<Vec<StatPerCpu>, ReadError> {
    let mut csv = Csv::new(reader)?;
    let [label, cache, stat, cpu] = columns(&csv, ["label", "cache", "stat", "cpu"])?;
    let [before, after] = columns(&csv, ["before", "after"])?;
    let mut rows: Vec<StatPerCpu> = Vec::new();
    while csv.next()? {
        let [of_label, of_cache, of_stat] = [label, cache, stat].map(|column| csv.field(column));
        let same =
            |row: &&mut StatPerCpu| row.label == of_label && row.cache == of_cache && row.stat == of_stat;
        let cpu = number::<u32>(csv.field(cpu)).filter(|&id| id < ID_LIMIT);
        let cpu = cpu.ok_or_else(|| csv.error(label, "a CPU number in the column `cpu`"))?;
        let values = (csv.number(before)?, csv.number(after)?);
        let count = |value| (cpu, Count { value, slabs: None });
        // Rows of one counter stand together.
        let mut row = match rows.pop_if(|row| same(&row)) {
            Some(row) => row,
            None => StatPerCpu {
                label: of_label.into(),
                cache: of_cache.into(),
                stat: of_stat.into(),
                ..StatPerCpu::default()
            },
        };
        for (breakdown, value) in [(&mut row.before, values.0), (&mut row.after, values.1)] {
            breakdown.total.value = breakdown.total.value.saturating_add(value);
            breakdown.cpus.push(count(value));
        }
        rows.push(row);
    }
    Ok(rows)
}

/// One SLUB_STATS counter of one cache by CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatPerCpu {
    /// The workload.
    pub label: String,
    /// The directory in /sys/kernel/slab.
    pub cache: String,
    /// The counter's file name.
    pub stat: String,
    /// Before the workload; CPUs that are zero at both times are absent.
    pub before: Breakdown,
    /// Right after it.
    pub after: Breakdown,
}

/// Reads `label,phase,name,active_objs,...`: slabinfos one after another.
///
/// # Errors
/// A missing column, a field that is no number, or `reader`'s.
pub fn parse_slabinfos(reader: impl Read) -> Result<Vec<SlabinfoAt>, ReadError> {
    let mut csv = Csv::new(reader)?;
    let [label, phase] = columns(&csv, ["label", "phase"])?;
    let numbers = Columns::of(&csv)?;
    let mut all: Vec<SlabinfoAt> = Vec::new();
    while csv.next()? {
        let row: SlabinfoRow = numbers.row(&csv)?;
        let (of_label, of_phase) = (csv.field(label), csv.field(phase));
        match all.last_mut().filter(|last| last.label == of_label && last.phase == of_phase) {
            Some(last) => last.slabinfo.rows.push(row),
            None => all.push(SlabinfoAt {
                label: of_label.into(),
                phase: of_phase.into(),
                slabinfo: Slabinfo { rows: vec![row], ..Slabinfo::default() },
            }),
        }
    }
    for at in &mut all {
        at.slabinfo.number_duplicates();
    }
    Ok(all)
}

fn columns<R: Read, const N: usize>(csv: &Csv<R>, names: [&'static str; N]) -> Result<[usize; N], ReadError> {
    let mut found = [0; N];
    for (column, name) in found.iter_mut().zip(names) {
        *column = csv.column(name)?;
    }
    Ok(found)
}

fn names(text: &str) -> Vec<String> {
    text.split(';').filter(|name| !name.is_empty()).map(str::to_string).collect()
}
