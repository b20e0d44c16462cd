//! Runs of scenarios, from a folder or an archive.
//!
//! Both are laid out as `SCENARIO/MACHINE-REPEAT/rec`, with `rec.NAME` for each spawned process. A machine is
//! a kernel and its LRU, such as `61-classic`. A repeat is `r1`, `r2`, or `s1`, `s2` for a model's seeds. In
//! a folder records may be compressed: `rec.xz`, `rec.NAME.xz`.

use super::config::Configs;
use slablab_readers::compressed::Decompressed;
use slablab_readers::vmrecord::{Record, TEXTS_MOST, texts};
use slablab_report::error::At;
use slablab_report::{Error, Limit, files, read_at_most};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One run: its processes' records by name; the script's own process has the empty name.
pub type Run = BTreeMap<String, Record>;

/// The repeats of one scenario on one machine.
pub type Repeats = Vec<Arc<Run>>;

/// Runs by scenario and machine.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// Scenarios, then machines, by name.
    pub scenarios: BTreeMap<String, BTreeMap<String, Repeats>>,
    /// How their machines were set up.
    pub configs: Configs,
}

/// The records of real kernels that come with the project: examples/data/vm.
const BUNDLED: &[u8] = include_bytes!("../../bundled/records.tar.xz");

/// A machine whose runs are not judged: in a memory control group, without kswapd.
const HOST: &str = "host";

impl Runs {
    /// The runs of real kernels that come with the project.
    ///
    /// # Panics
    /// Never: a test reads them.
    pub fn bundled() -> Runs {
        Runs::archive(Path::new("records.tar.xz"), BUNDLED).expect("the bundled records are read by a test")
    }

    /// The runs of a tar, perhaps compressed; `path` is its name in errors.
    ///
    /// # Errors
    /// A tar that is damaged, or a record in it that cannot be read.
    pub fn archive(path: &Path, bytes: &[u8]) -> Result<Runs, Error> {
        let mut found: BTreeMap<PathBuf, Run> = BTreeMap::new();
        let is_known = |path: &Path| place(path).is_some() || describes(path).is_some();
        let files = texts(bytes, |path| is_known(Path::new(path))).at(path)?;
        let mut configs = Configs::default();
        for (name, text) in files {
            let (inside, shown) = (Path::new(&name), path.join(&name));
            match describes(inside) {
                Some(what) => describe(&mut configs, what, inside, &shown, &text)?,
                None => add(&mut found, inside, Record::parse(&text).at(&shown)?),
            }
        }
        check(&found)?;
        Ok(Runs { configs, ..Runs::of(found) })
    }

    /// The runs of a folder, or of an archive if `path` is a file.
    ///
    /// # Errors
    /// What cannot be read, with its path; no record at all.
    pub fn open(path: &Path) -> Result<Runs, Error> {
        if path.is_file() {
            return Runs::archive(path, &read_at_most(path, ARCHIVE)?);
        }
        let mut found: BTreeMap<PathBuf, Run> = BTreeMap::new();
        let table = path.join(TABLE);
        let mut configs = Configs::default();
        if table.is_file() {
            describe(&mut configs, Describes::Runs, &table, &table, &text(&table)?)?;
        }
        for scenario in folders(path)? {
            for run in folders(&scenario)? {
                for entry in std::fs::read_dir(&run).at(&run)? {
                    let file = entry.at(&run)?.path();
                    if place(&file).is_some() {
                        add(&mut found, &file, read(&file)?);
                    } else if let Some(what) = describes(&file) {
                        describe(&mut configs, what, &file, &file, &text(&file)?)?;
                    }
                }
                if is_run(&run) && !found.contains_key(&run) {
                    let what = "it has no record: expected rec or rec.xz, that of the script's own process";
                    return Err(Error::new(&run, what));
                }
            }
        }
        if found.is_empty() {
            return Err(Error::new(path, "expected SCENARIO/MACHINE-REPEAT/rec or rec.xz, found no record"));
        }
        check(&found)?;
        Ok(Runs { configs, ..Runs::of(found) })
    }

    /// The runs of records, by the folders that they were in.
    fn of(found: BTreeMap<PathBuf, Run>) -> Runs {
        let mut runs = Runs::default();
        for (folder, run) in found {
            let name = |path: Option<&Path>| {
                path.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned())
            };
            let (Some(machine), Some(scenario)) = (name(Some(&folder)), name(folder.parent())) else {
                continue;
            };
            let machine =
                machine.rsplit_once('-').map_or(machine.as_str(), |(machine, _)| machine).to_string();
            if !machine.starts_with(HOST) {
                runs.add(scenario, machine, Arc::new(run));
            }
        }
        runs
    }

    /// Adds a repeat.
    pub fn add(&mut self, scenario: String, machine: String, run: Arc<Run>) {
        self.scenarios.entry(scenario).or_default().entry(machine).or_default().push(run);
    }

    /// The null answer "every machine does what `machine` does": for each scenario and machine of these runs,
    /// the repeats of `machine`.
    pub fn all_as(&self, machine: &str) -> Runs {
        let scenarios = self.scenarios.iter().map(|(scenario, machines)| {
            let of = machines.get(machine).cloned().unwrap_or_default();
            (scenario.clone(), machines.keys().map(|name| (name.clone(), of.clone())).collect())
        });
        Runs { scenarios: scenarios.collect(), configs: self.configs.clone() }
    }

    /// The first repeat of each scenario and machine, and the others.
    pub fn split_first(&self) -> (Runs, Runs) {
        let (mut first, mut others) = (Runs::default(), Runs::default());
        for (scenario, machines) in &self.scenarios {
            for (machine, repeats) in machines {
                for (at, run) in repeats.iter().enumerate() {
                    let to = if at == 0 { &mut first } else { &mut others };
                    to.add(scenario.clone(), machine.clone(), run.clone());
                }
            }
        }
        (first, others)
    }
}

/// Reads one record, perhaps compressed.
///
/// # Errors
/// A file that cannot be read or is larger than [`TEXTS_MOST`]; the first line that is not a record's.
pub fn read(path: &Path) -> Result<Record, Error> {
    let text = text(path)?;
    if text.is_empty() {
        let what = "the file is empty: expected a record of a script's run, which begins with `@phase LABEL`";
        return Err(Error::new(path, what));
    }
    Record::parse(&text).at(path)
}

/// An archive of records; that of the program has 1 MiB.
const ARCHIVE: Limit = Limit::mib("an archive of records", 256);

/// A record.
const RECORD: Limit = Limit { what: "a record", bytes: TEXTS_MOST };

/// The bytes of a file, perhaps compressed.
fn text(path: &Path) -> Result<Vec<u8>, Error> {
    RECORD.read(Decompressed::new(files::open(path).at(path)?).at(path)?, path)
}

/// The table of a folder's runs.
const TABLE: &str = "config.csv";

/// What a file says of machines: [`TABLE`], or `facts.start` beside the records of one run.
enum Describes {
    Runs,
    Run,
}

fn describes(path: &Path) -> Option<Describes> {
    match path.file_name()?.to_str()? {
        TABLE => Some(Describes::Runs),
        "facts.start" | "facts.start.xz" => Some(Describes::Run),
        _ => None,
    }
}

/// Adds it; `shown` is its path in errors.
fn describe(
    configs: &mut Configs,
    what: Describes,
    path: &Path,
    shown: &Path,
    text: &[u8],
) -> Result<(), Error> {
    let name = |path: Option<&Path>| Some(path?.file_name()?.to_string_lossy().into_owned());
    match what {
        Describes::Runs => configs.add_table(shown, &String::from_utf8_lossy(text)),
        Describes::Run => {
            let folder = path.parent();
            let names = name(folder.and_then(Path::parent)).zip(name(folder));
            let Some((scenario, run)) = names else { return Ok(()) };
            configs.add_facts(&format!("{scenario}/{run}"), shown, text)
        }
    }
}

/// The name of the process whose record this is, if its file is called as records are.
fn place(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(".xz").unwrap_or(name);
    if name == "rec" { Some("") } else { name.strip_prefix("rec.").filter(|process| !process.is_empty()) }
}

fn add(found: &mut BTreeMap<PathBuf, Run>, path: &Path, record: Record) {
    let (Some(process), Some(folder)) = (place(path), path.parent()) else { return };
    found.entry(folder.to_path_buf()).or_default().insert(process.to_string(), record);
}

/// Refuses runs that lack the record of the script's own process, or in which that is empty.
fn check(found: &BTreeMap<PathBuf, Run>) -> Result<(), Error> {
    for (folder, run) in found {
        let what = match run.get("") {
            Some(record) if record.is_complete || !record.phases.is_empty() => continue,
            Some(_) => "rec is empty: expected a record, `@phase LABEL` in its first line".into(),
            None => {
                let others: Vec<String> = run.keys().map(|process| format!("rec.{process}")).collect();
                format!(
                    "expected rec or rec.xz, that of the script's own process, found {}",
                    others.join(", ")
                )
            }
        };
        return Err(Error::new(folder, what));
    }
    Ok(())
}

/// Whether a folder is called as runs are: `MACHINE-rN`, or `MACHINE-sN`.
fn is_run(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let repeat = name.rsplit_once('-').and_then(|(_, repeat)| repeat.strip_prefix(['r', 's']));
    repeat.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The folders in a folder, by name.
fn folders(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).at(path)? {
        let path = entry.at(path)?.path();
        if path.is_dir() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
