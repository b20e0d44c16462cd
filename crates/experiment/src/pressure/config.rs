//! What a folder of records says of the machine of each run, read before a run and not from it.
//!
//! ```text
//! config.csv                        a row a run: column `run` is SCENARIO/MACHINE-REPEAT
//! SCENARIO/MACHINE-REPEAT/facts.start   /proc/zoneinfo, /proc/sys/vm and so on, before the script
//!   both ── Configs ── of(scenario, machine) ── Configured: kernel, LRU, memory, swap, settings
//! ```
//!
//! A row of `config.csv` goes before `facts.start`. What neither says is as on the built-in guests.

use super::guests::Facts;
use super::scenario::Settings;
use slablab_readers::procfs::{Zone, parse_zoneinfo};
use slablab_report::error::{Error, Result};
use slablab_sim::programs::script::is_setting;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A number that both files have: its column, its file, and its usual value if a script could set it.
type Known = (&'static str, &'static str, Option<u64>);

/// The numbers that are read; other columns and files are passed over.
const KNOWN: [Known; 17] = [
    ("zone_managed", "", None),
    ("zone_free", "", None),
    ("MemTotal_kB", "", None),
    ("SwapTotal_kB", "", None),
    ("min_free_kbytes", "/proc/sys/vm/min_free_kbytes", None),
    ("swappiness", "/proc/sys/vm/swappiness", Some(60)),
    ("page-cluster", "/proc/sys/vm/page-cluster", Some(3)),
    ("dirty_ratio", "/proc/sys/vm/dirty_ratio", Some(20)),
    ("dirty_background_ratio", "/proc/sys/vm/dirty_background_ratio", Some(10)),
    ("dirty_expire_centisecs", "/proc/sys/vm/dirty_expire_centisecs", Some(3_000)),
    ("dirty_writeback_centisecs", "/proc/sys/vm/dirty_writeback_centisecs", Some(500)),
    ("vfs_cache_pressure", "/proc/sys/vm/vfs_cache_pressure", Some(100)),
    ("watermark_scale_factor", "/proc/sys/vm/watermark_scale_factor", Some(10)),
    ("watermark_boost_factor", "/proc/sys/vm/watermark_boost_factor", Some(15_000)),
    ("lru_gen", "/sys/kernel/mm/lru_gen/enabled", None),
    ("data_read_ahead_kb", "/sys/block/vda/queue/read_ahead_kb", None),
    ("swap_rotational", "/sys/block/vdb/queue/rotational", None),
];

/// One run's machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Row {
    /// File and line, for errors.
    place: (PathBuf, usize),
    release: Option<String>,
    numbers: BTreeMap<&'static str, u64>,
    /// Pages on the lists of CPUs, and how many CPUs there are.
    cached: Option<u64>,
    cpus: Option<u16>,
}

/// The machines of a folder's runs, by `SCENARIO/MACHINE-REPEAT`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configs {
    rows: BTreeMap<String, Row>,
}

/// How the machine of a scenario was set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configured {
    /// The VM's preset with its knobs, and the slab allocator; `None` if the release is not known.
    pub names: Option<[String; 2]>,
    /// Memory.
    pub facts: Facts,
    /// Swap, disks, and settings.
    pub settings: Settings,
}

impl Row {
    fn number(&self, name: &str) -> Option<u64> {
        self.numbers.get(name).copied()
    }

    fn set(&mut self, name: &str, value: &str) -> std::result::Result<(), String> {
        let Some((name, ..)) = KNOWN.iter().find(|known| known.0 == name) else { return Ok(()) };
        if value.is_empty() {
            return Ok(());
        }
        let number = match value.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => value.parse().ok(),
        };
        let number = number.ok_or_else(|| format!("{name}: expected a number, found {value:?}"))?;
        self.numbers.insert(name, number);
        Ok(())
    }

    /// Reads a run's `facts.start`. Lines that it does not know are passed over.
    fn of_facts(path: &Path, text: &[u8]) -> Result<Row> {
        let text = String::from_utf8_lossy(text);
        let mut row = Row { place: (path.to_path_buf(), 1), ..Row::default() };
        for (line, number) in text.lines().zip(1..) {
            if let Some(uname) = line.strip_prefix("Linux ") {
                row.release = uname.split_whitespace().nth(1).map(str::to_string);
            }
            let Some((file, value)) = line.split_once(':') else { continue };
            let value = value.split_whitespace().next().unwrap_or_default();
            let name = match file {
                "SwapTotal" => "SwapTotal_kB",
                "MemTotal" => "MemTotal_kB",
                _ => KNOWN.iter().find(|known| known.1 == file).map_or("", |known| known.0),
            };
            row.set(name, value).map_err(|what| Error::new(path, format!("line {number}: {what}")))?;
        }
        let Some(zones) = section(&text, "/proc/zoneinfo") else { return Ok(row) };
        let zones = parse_zoneinfo(zones.as_bytes()).map_err(|error| Error::new(path, error))?;
        let zones: Vec<Zone> = zones.into_iter().filter(|zone| zone.managed > 0).collect();
        let sum = |of: fn(&Zone) -> u64| zones.iter().map(of).sum();
        row.numbers.insert("zone_managed", sum(|zone| zone.managed));
        row.numbers.insert("zone_free", sum(|zone| zone.free));
        row.cached = Some(sum(|zone| zone.pagesets.iter().map(|set| set.count).sum()));
        row.cpus = zones.first().and_then(|zone| u16::try_from(zone.pagesets.len()).ok());
        Ok(row)
    }

    /// What this row does not say, from another one of the same run.
    fn complete(&mut self, other: Row) {
        self.release = self.release.take().or(other.release);
        self.cached = self.cached.or(other.cached);
        self.cpus = self.cpus.or(other.cpus);
        for (name, number) in other.numbers {
            self.numbers.entry(name).or_insert(number);
        }
    }

    /// Managed pages: of all zones, which are modelled as one.
    fn managed(&self) -> Option<u64> {
        self.number("MemTotal_kB").map(|kib| kib / 4).or(self.number("zone_managed"))
    }

    fn error(&self, what: String) -> Error {
        let (path, line) = &self.place;
        Error::new(path, format!("line {line}: {what}"))
    }

    /// The kernel, such as `6.12` of `6.12.117+deb12-cloud-amd64`.
    fn kernel(&self) -> Option<String> {
        let mut parts = self.release.as_ref()?.split(['.', '-', '+']);
        let number = |part: Option<&str>| part?.parse::<u32>().ok();
        Some(format!("{}.{}", number(parts.next())?, number(parts.next())?))
    }

    /// The VM's preset with the bits of `lru_gen/enabled` as knobs, and the slab allocator.
    fn names(&self) -> Option<[String; 2]> {
        let kernel = self.kernel()?;
        let mut vm = format!("vm@{kernel}");
        let bits = self.number("lru_gen").unwrap_or(0);
        if bits & 1 != 0 {
            vm += ",lru_gen";
            for (bit, knob) in [(2, ",walks=no"), (4, ",skips_tables=no")] {
                if bits & bit == 0 {
                    vm += knob;
                }
            }
        }
        Some([vm, format!("slub@{kernel}")])
    }
}

/// What stands between `</proc/NAME>` and `<//proc/NAME>`.
fn section<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let begin = format!("<{name}>\n");
    let (_, rest) = text.split_once(&begin)?;
    Some(rest.split_once(&format!("</{name}>")).map_or(rest, |(section, _)| section))
}

impl Configs {
    /// Adds the rows of `config.csv`.
    ///
    /// # Errors
    /// The first line whose fields are not as many as the head's; a known column's field that is no
    /// number.
    pub fn add_table(&mut self, path: &Path, text: &str) -> Result<()> {
        let at = |line: usize, what: String| Error::new(path, format!("line {line}: {what}"));
        let mut lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
        let head: Vec<&str> = lines.next().map_or(Vec::new(), |(head, _)| head.split(',').collect());
        let Some(run) = head.iter().position(|name| *name == "run") else {
            return Err(at(1, "expected a column `run` with SCENARIO/MACHINE-REPEAT".into()));
        };
        for (line, number) in lines {
            let fields: Vec<&str> = line.split(',').collect();
            if fields.len() != head.len() {
                let found = fields.len();
                return Err(at(number, format!("expected {} fields, found {found}", head.len())));
            }
            let mut row = Row { place: (path.to_path_buf(), number), ..Row::default() };
            for (name, value) in head.iter().zip(&fields) {
                match *name {
                    "release" => row.release = Some((*value).to_string()).filter(|name| !name.is_empty()),
                    name => row.set(name, value).map_err(|what| at(number, what))?,
                }
            }
            // What `facts.start` said before stays where the row does not say it.
            row.complete(self.rows.remove(fields[run]).unwrap_or_default());
            self.rows.insert(fields[run].to_string(), row);
        }
        Ok(())
    }

    /// Adds what `facts.start` says of a run that has no row, or a row that does not say it.
    ///
    /// # Errors
    /// A number that is none.
    pub fn add_facts(&mut self, run: &str, path: &Path, text: &[u8]) -> Result<()> {
        let facts = Row::of_facts(path, text)?;
        match self.rows.get_mut(run) {
            Some(row) => row.complete(facts),
            None => _ = self.rows.insert(run.to_string(), facts),
        }
        Ok(())
    }

    /// How the machine of a scenario was set up: its first repeat's row. What is free at the start scatters
    /// between the repeats, so it is the fewest and the most of all of them. Rows of other scenarios are left
    /// out: a machine of the same kernel and the same memory may have other zones there. `given`: what
    /// `SCENARIO.sh` says.
    ///
    /// # Errors
    /// A machine that is not modelled; a setting that is not.
    pub fn of(&self, scenario: &str, machine: &str, given: &Settings) -> Result<Option<Configured>> {
        let begin = format!("{scenario}/{machine}-");
        let mine = |run: &str| run.strip_prefix(&begin).is_some_and(|repeat| !repeat.contains('-'));
        let Some((_, row)) = self.rows.iter().find(|(run, _)| mine(run)) else { return Ok(None) };
        let Some(managed) = row.managed() else { return Ok(None) };
        let kernel = row.kernel().unwrap_or_default();
        let mut version = kernel.split('.').filter_map(|part| part.parse().ok());
        let version = [version.next().unwrap_or(6), version.next().unwrap_or(1), 0];
        let repeats = || self.rows.iter().filter(|(run, _)| mine(run)).map(|(_, row)| row);
        let range = |of: &dyn Fn(&Row) -> Option<u64>| {
            let (least, most) = (repeats().filter_map(of).min(), repeats().filter_map(of).max());
            least.zip(most).map(|(least, most)| [least, most])
        };
        let mut facts = Facts::of(version).resized(managed);
        facts.free = range(&|row| row.number("zone_free")).unwrap_or(facts.free);
        // Of kernels whose lists grow the built-in guest says why the number is not taken.
        if facts.cached != [0, 0] {
            facts.cached = range(&|row| row.cached).unwrap_or(facts.cached);
        }
        if let Some(kib) = row.number("min_free_kbytes").and_then(|kib| u32::try_from(kib).ok()) {
            facts.min_free_kib = kib;
        }
        facts.cpus = row.cpus.unwrap_or(1);
        let settings = row.settings(given)?;
        facts.check().map_err(|error| row.error(error.what))?;
        Ok(Some(Configured { names: row.names(), facts, settings }))
    }
}

impl Row {
    /// The scenario's settings, with what this row says.
    fn settings(&self, given: &Settings) -> Result<Settings> {
        let mut settings = given.clone();
        if let Some(kib) = self.number("SwapTotal_kB") {
            settings.swap_pages = u32::try_from(kib / 4).ok();
            settings.no_swap = kib == 0;
        }
        if let Some(rotates) = self.number("swap_rotational") {
            settings.swap_is_flash = rotates == 0;
        }
        settings.read_ahead_kib = self.number("data_read_ahead_kb").or(settings.read_ahead_kib);
        for (name, path, usual) in KNOWN {
            let (Some(usual), Some(value)) = (usual, self.number(name)) else { continue };
            if value == usual {
                continue;
            }
            if !is_setting(path) {
                return Err(self.error(format!("{name} is {value}: only {usual} is modelled")));
            }
            settings.set.push((path, value.min(u64::from(u32::MAX)) as u32));
        }
        Ok(settings)
    }
}
