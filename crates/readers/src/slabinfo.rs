//! /proc/slabinfo: versions 1.1 (2.4) and 2.x, with or without SLAB's statistics.
//!
//! What it cannot say: active objects include those parked in per-CPU slabs, sheaves and arrays; `objsize` is
//! the padded size; merged caches appear under one name; large kmallocs are absent; and since 6.10 the free
//! objects of long partial lists are estimated.

use crate::error::ReadError;
use crate::lines::Csv;
use crate::text::{LineError, number, utf8};

/// Why a slabinfo could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SlabinfoError {
    /// A line is not as the kernel writes it.
    #[error(transparent)]
    Line(#[from] LineError),
    /// The tidy CSV form could not be read.
    #[error(transparent)]
    Csv(#[from] ReadError),
}

/// A /proc/slabinfo.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slabinfo {
    /// The version line's number, such as (2, 1); (0, 0) for the tidy form, which has none.
    pub version: (u32, u32),
    /// Rows in the file's order.
    pub rows: Vec<SlabinfoRow>,
}

/// One cache. Names repeat (each device of some drivers has its own cache of the same name): the key is name
/// and ordinal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlabinfoRow {
    /// The cache's name.
    pub name: String,
    /// 0 for the first row of that name, 1 for the second.
    pub ordinal: u32,
    /// Objects in use or parked.
    pub active_objs: u64,
    /// Objects there is room for.
    pub num_objs: u64,
    /// Bytes of an object with its padding and metadata.
    pub objsize: u64,
    /// Objects in a slab. Version 1.1 does not say: there it is `num_objs / num_slabs`, 0 without slabs.
    pub objperslab: u64,
    /// Pages in a slab.
    pub pagesperslab: u64,
    /// SLAB: objects of a CPU's array; 0 under SLUB.
    pub limit: u64,
    /// SLAB: objects moved at once.
    pub batchcount: u64,
    /// SLAB: size of the shared array in limits.
    pub sharedfactor: u64,
    /// Slabs with an object in use.
    pub active_slabs: u64,
    /// Slabs.
    pub num_slabs: u64,
    /// SLAB: objects in shared arrays.
    pub sharedavail: u64,
    /// SLAB with statistics.
    pub global: Option<GlobalStat>,
    /// SLAB with statistics on SMP.
    pub cpu: Option<CpuStat>,
}

/// `globalstat` of SLAB. Kernels before 2.6.20 lack the last fields, which are then 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // The kernel's names.
pub struct GlobalStat {
    pub allocs: u64,
    pub high: u64,
    pub grown: u64,
    pub reaped: u64,
    pub errors: u64,
    pub maxfreeable: u64,
    pub nodeallocs: u64,
    pub nodefrees: u64,
    pub overflows: u64,
}

/// `cpustat` of SLAB, summed over CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // The kernel's names.
pub struct CpuStat {
    pub allochit: u64,
    pub allocmiss: u64,
    pub freehit: u64,
    pub freemiss: u64,
}

impl Slabinfo {
    /// Reads the text of /proc/slabinfo.
    ///
    /// # Errors
    /// The first line that is not as the kernel writes it.
    pub fn parse(text: &[u8]) -> Result<Slabinfo, SlabinfoError> {
        let mut lines = utf8(text)?.lines().enumerate().map(|(index, line)| (index + 1, line));
        let (_, first) = lines.next().unwrap_or((1, ""));
        let version = parse_version(first).ok_or_else(|| {
            LineError::new(
                1,
                "`slabinfo - version: 1.1` or `2.x`, as the first line of /proc/slabinfo",
                first,
            )
        })?;
        let mut slabinfo = Slabinfo { version, rows: Vec::new() };
        for (line, text) in lines.filter(|(_, text)| !text.starts_with('#') && !text.trim().is_empty()) {
            let row = if version.0 >= 2 { parse_row(text) } else { parse_row_1(text) };
            slabinfo.rows.push(row.map_err(|expected| LineError::new(line, expected, text))?);
        }
        slabinfo.number_duplicates();
        Ok(slabinfo)
    }

    /// Reads the tidy form: a CSV with the kernel's column names (`name,active_objs,...`), columns of SLAB's
    /// statistics prefixed `g_` and `c_`.
    ///
    /// # Errors
    /// A missing column, or the first field that is no number.
    pub fn parse_csv(text: &[u8]) -> Result<Slabinfo, SlabinfoError> {
        let mut csv = Csv::new(text)?;
        let columns = Columns::of(&csv)?;
        let mut slabinfo = Slabinfo::default();
        while csv.next()? {
            slabinfo.rows.push(columns.row(&csv)?);
        }
        slabinfo.number_duplicates();
        Ok(slabinfo)
    }

    /// The first row called `name`.
    pub fn row(&self, name: &str) -> Option<&SlabinfoRow> {
        self.rows.iter().find(|row| row.name == name)
    }

    pub(crate) fn number_duplicates(&mut self) {
        let mut seen = std::collections::HashMap::new();
        for row in &mut self.rows {
            let count = seen.entry(row.name.clone()).or_insert(0);
            row.ordinal = *count;
            *count += 1;
        }
    }
}

/// Columns of the tidy form, in the order of [`SlabinfoRow`]'s numbers.
pub(crate) struct Columns {
    name: usize,
    numbers: [usize; 11],
    global: Option<[usize; 9]>,
    cpu: Option<[usize; 4]>,
}

impl Columns {
    pub(crate) fn of<R: std::io::Read>(csv: &Csv<R>) -> Result<Columns, ReadError> {
        const NUMBERS: [&str; 11] = [
            "active_objs",
            "num_objs",
            "objsize",
            "objperslab",
            "pagesperslab",
            "limit",
            "batchcount",
            "sharedfactor",
            "active_slabs",
            "num_slabs",
            "sharedavail",
        ];
        let mut numbers = [0; 11];
        for (column, name) in numbers.iter_mut().zip(NUMBERS) {
            *column = csv.column(name)?;
        }
        let first = |name| csv.find(name).filter(|&column| column + 9 <= csv.header().len());
        let global = first("g_allocs").map(|column| std::array::from_fn(|index| column + index));
        let cpu = csv.find("c_allochit").filter(|&column| column + 4 <= csv.header().len());
        let cpu = cpu.map(|column| std::array::from_fn(|index| column + index));
        Ok(Columns { name: csv.column("name")?, numbers, global, cpu })
    }

    pub(crate) fn row<R: std::io::Read>(&self, csv: &Csv<R>) -> Result<SlabinfoRow, ReadError> {
        let mut values = [0; 11];
        for (value, &column) in values.iter_mut().zip(&self.numbers) {
            *value = csv.number(column)?;
        }
        let mut row = SlabinfoRow::new(csv.field(self.name), &values[..5], &values[5..8], &values[8..]);
        if let Some(columns) = self.global {
            row.global = Some(GlobalStat::of(&read_all(csv, &columns)?));
        }
        if let Some(columns) = self.cpu {
            row.cpu = Some(CpuStat::of(&read_all(csv, &columns)?));
        }
        Ok(row)
    }
}

fn read_all<R: std::io::Read>(csv: &Csv<R>, columns: &[usize]) -> Result<Vec<u64>, ReadError> {
    columns.iter().map(|&column| csv.number(column)).collect()
}

impl SlabinfoRow {
    fn new(name: &str, objects: &[u64], tunables: &[u64], slabs: &[u64]) -> Self {
        SlabinfoRow {
            name: name.to_string(),
            active_objs: objects[0],
            num_objs: objects[1],
            objsize: objects[2],
            objperslab: objects[3],
            pagesperslab: objects[4],
            limit: tunables[0],
            batchcount: tunables[1],
            sharedfactor: tunables[2],
            active_slabs: slabs[0],
            num_slabs: slabs[1],
            sharedavail: slabs[2],
            ..SlabinfoRow::default()
        }
    }
}

impl GlobalStat {
    fn of(values: &[u64]) -> Self {
        let at = |index: usize| values.get(index).copied().unwrap_or(0);
        GlobalStat {
            allocs: at(0),
            high: at(1),
            grown: at(2),
            reaped: at(3),
            errors: at(4),
            maxfreeable: at(5),
            nodeallocs: at(6),
            nodefrees: at(7),
            overflows: at(8),
        }
    }
}

impl CpuStat {
    fn of(values: &[u64]) -> Self {
        let &[allochit, allocmiss, freehit, freemiss] = values else { return CpuStat::default() };
        CpuStat { allochit, allocmiss, freehit, freemiss }
    }
}

fn parse_version(line: &str) -> Option<(u32, u32)> {
    let rest = line.trim().strip_prefix("slabinfo - version:")?.trim_start();
    let (major, minor) = rest.split_whitespace().next()?.split_once('.')?;
    let version = (number(major)?, number(minor)?);
    // 1.0, of 2.2, has neither slabs nor sizes.
    (version.0 == 2 || version == (1, 1) || version == (1, 2)).then_some(version)
}

/// `name a b c` with exactly `N` numbers; the name may contain spaces.
fn name_and_numbers<const N: usize>(text: &str) -> Option<(&str, [u64; N])> {
    let (mut values, mut rest) = ([0; N], text.trim());
    for value in values.iter_mut().rev() {
        let (head, last) = rest.rsplit_once(char::is_whitespace)?;
        *value = number(last)?;
        rest = head.trim_end();
    }
    (!rest.is_empty()).then_some((rest, values))
}

fn numbers(text: &str) -> Option<Vec<u64>> {
    text.split_whitespace().map(number).collect()
}

/// A row of version 2.
fn parse_row(text: &str) -> Result<SlabinfoRow, &'static str> {
    let mut parts = text.split(" : ");
    let objects = "a cache name and five numbers before ` : `";
    let (name, objects) = parts.next().and_then(name_and_numbers::<5>).ok_or(objects)?;
    let mut section = |name: &str| parts.next().and_then(|part| numbers(part.trim().strip_prefix(name)?));
    let three = |values: &Vec<u64>| values.len() == 3;
    let tunables = section("tunables").filter(three).ok_or("`: tunables` and three numbers")?;
    let slabs = section("slabdata").filter(three).ok_or("`: slabdata` and three numbers")?;
    let mut row = SlabinfoRow::new(name, &objects, &tunables, &slabs);
    for part in parts {
        match part.trim().split_once(char::is_whitespace) {
            Some(("globalstat", values)) => {
                let values = numbers(values).filter(|values| (7..=9).contains(&values.len()));
                row.global = Some(GlobalStat::of(&values.ok_or("`: globalstat` and seven to nine numbers")?));
            }
            Some(("cpustat", values)) => {
                let values = numbers(values).filter(|values| values.len() == 4);
                row.cpu = Some(CpuStat::of(&values.ok_or("`: cpustat` and four numbers")?));
            }
            _ => return Err("`globalstat` or `cpustat` after `slabdata`"),
        }
    }
    Ok(row)
}

/// A row of version 1.1: sections are told apart by how many numbers they have.
fn parse_row_1(text: &str) -> Result<SlabinfoRow, &'static str> {
    let mut parts = text.split(" : ");
    let objects = "a cache name and six numbers";
    let (name, values) = parts.next().and_then(name_and_numbers::<6>).ok_or(objects)?;
    let [active, total, objsize, active_slabs, num_slabs, pages] = values;
    let per_slab = total.checked_div(num_slabs).unwrap_or(0);
    let objects = [active, total, objsize, per_slab, pages];
    let mut row = SlabinfoRow::new(name, &objects, &[0; 3], &[active_slabs, num_slabs, 0]);
    for part in parts {
        match numbers(part).as_deref() {
            Some(&[limit, batchcount]) => (row.limit, row.batchcount) = (limit, batchcount),
            Some(values @ &[_, _, _, _]) => row.cpu = Some(CpuStat::of(values)),
            Some(&[high, allocs, grown, reaped, errors]) => {
                row.global =
                    Some(GlobalStat { allocs, high, grown, reaped, errors, ..GlobalStat::default() });
            }
            _ => return Err("two, four or five numbers after ` : `"),
        }
    }
    Ok(row)
}
