//! The simulation's records in the format of real ones; real ones from files.

use super::runs;
use slablab_readers::procfs::FreeBlocks;
use slablab_readers::slabinfo::SlabinfoRow;
use slablab_readers::vmrecord::{
    Counter, Counts, Disk, Generation, ObjectCounts, ObjectResidency, Phase, Record, Residency, Rusage,
    Section, State,
};
use slablab_report::error::{Error, Result};
use slablab_sim::memory::views::SlabRow;
use slablab_sim::programs::script as sim;
use std::path::Path;

/// A record of the simulation as a real kernel's.
pub fn convert(record: &sim::Record) -> Record {
    let phases = record.phases.iter().map(phase).collect();
    Record { phases, notes: Vec::new(), is_complete: record.is_complete }
}

fn phase(of: &sim::Phase) -> Phase {
    let [ok, fail, stats] = of.counts;
    Phase {
        name: of.label.clone(),
        notes: Vec::new(),
        elapsed_ns: of.elapsed_ns,
        uptime_ns: of.uptime_ns,
        rusage: Rusage {
            minflt: of.usage.minor as i64,
            majflt: of.usage.major as i64,
            inblock: of.usage.read as i64,
            oublock: of.usage.written as i64,
            utime_us: (of.user_ns / 1_000) as i64,
            ..Rusage::default()
        },
        counts: Counts { ok, fail, stats },
        objects: of.objects.iter().map(object).collect(),
        residency: of.residency.iter().map(residency).collect(),
        disks: disks(of),
        vmstat: vmstat(of),
        sections: sections(of),
    }
}

/// In the order of real records.
fn sections(of: &sim::Phase) -> Vec<Section> {
    let all = [meminfo(of), buddyinfo(of)].into_iter().chain(lru_gen(of)).chain(slabinfo(of));
    all.chain(extfrag(of)).collect()
}

fn lru_gen(of: &sim::Phase) -> Option<Section> {
    let generation = |row: &[u64; 5]| {
        let [node, sequence, age_ms, anon, file] = *row;
        Generation { memcg: 1, node: node as u32, sequence, age_ms, anon, file }
    };
    let rows: Vec<Generation> = of.end.generations.iter().map(generation).collect();
    (!rows.is_empty()).then(|| Section::lru_gen(&rows))
}

fn extfrag(of: &sim::Phase) -> Option<Section> {
    let zone = |(name, index): &(&'static str, Vec<i32>)| {
        let orders = index.iter().map(|index| format!("{:2}.{:03} ", index / 1_000, index.abs() % 1_000));
        format!("Node 0, zone {name:>8} {}\n", orders.collect::<String>())
    };
    let text = of.fragmentation.as_ref()?.iter().map(zone).collect();
    Some(Section { name: "extfrag".into(), text })
}

fn object(of: &sim::ObjectUse) -> ObjectCounts {
    ObjectCounts {
        name: of.name.clone(),
        ops: of.accesses,
        minflt: of.usage.minor,
        majflt: of.usage.major,
        inblock: of.usage.read,
        ns: of.ns,
    }
}

fn residency((name, pages): &(String, sim::Pages)) -> ObjectResidency {
    let states = pages.0.iter().map(|state| State::ALL[usize::from(*state)]);
    ObjectResidency { name: name.clone(), pages: Residency::of(states) }
}

fn disks(of: &sim::Phase) -> Vec<Disk> {
    let begin = of.begin.disks.iter().map(|(_, begin)| begin);
    let pairs = of.end.disks.iter().zip(begin);
    let disk = |((name, end), begin): (&(&'static str, [u64; 17]), &[u64; 17])| {
        let mut stat: [i64; Disk::FIELDS] = std::array::from_fn(|at| end[at] as i64 - begin[at] as i64);
        // Requests in flight are as they are now.
        stat[8] = end[8] as i64;
        Disk { name: (*name).into(), stat }
    };
    // The files' disk comes first in real records.
    let mut all: Vec<Disk> = pairs.map(disk).collect();
    all.reverse();
    all
}

fn vmstat(of: &sim::Phase) -> Vec<Counter> {
    let begin = of.begin.vmstat.iter().map(|(_, begin)| *begin);
    let pairs = of.end.vmstat.iter().zip(begin);
    let counter = |((name, end), begin): (&(&'static str, u64), u64)| Counter {
        name: (*name).into(),
        delta: *end as i64 - begin as i64,
        value: *end as i64,
    };
    pairs.map(counter).filter(|counter| counter.value != 0 || counter.delta != 0).collect()
}

fn meminfo(of: &sim::Phase) -> Section {
    Section::meminfo(of.end.meminfo.iter().copied())
}

fn slabinfo(of: &sim::Phase) -> Option<Section> {
    let row = |row: &SlabRow| SlabinfoRow {
        name: row.name.clone(),
        active_objs: row.active,
        num_objs: row.objects,
        objsize: row.bytes.into(),
        objperslab: row.objects / row.slabs,
        pagesperslab: row.frames / row.slabs,
        active_slabs: row.slabs,
        num_slabs: row.slabs,
        ..SlabinfoRow::default()
    };
    let rows = of.slabs.as_ref()?.iter().map(row);
    Some(Section::slabinfo(&rows.collect::<Vec<_>>()))
}

fn buddyinfo(of: &sim::Phase) -> Section {
    let zone = |(name, blocks): &(&'static str, Vec<u64>)| FreeBlocks {
        node: 0,
        zone: (*name).into(),
        migrate_type: None,
        blocks: blocks.clone(),
    };
    Section::buddyinfo(&of.end.buddyinfo.iter().map(zone).collect::<Vec<_>>())
}

/// The real records of the processes of `modelled`: of the main one from a file, of all from a folder.
///
/// # Errors
/// A file that cannot be read, or is no record.
pub fn beside(path: &Path, modelled: &[(String, Record)]) -> Result<Vec<(String, Record)>> {
    let all = modelled.iter().filter(|(name, _)| name.is_empty() || path.is_dir());
    let read = |name: &String| {
        let path = if path.is_dir() { in_folder(path, name)? } else { path.to_path_buf() };
        Ok((name.clone(), runs::read(&path)?))
    };
    all.map(|(name, _)| read(name)).collect()
}

fn in_folder(folder: &Path, process: &str) -> Result<std::path::PathBuf> {
    let name = file_name(process);
    let names = [name.clone(), format!("{name}.xz")];
    let found = names.iter().map(|name| folder.join(name)).find(|path| path.is_file());
    found
        .ok_or_else(|| Error::new(folder, format!("no record {name}: expected {} or {}", names[0], names[1])))
}

/// The file of a process's record.
pub fn file_name(process: &str) -> String {
    if process.is_empty() { "rec".into() } else { format!("rec.{process}") }
}
