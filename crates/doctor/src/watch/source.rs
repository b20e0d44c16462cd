//! The sources of samples: the running machine, or recorded states.

use super::sample::{Memory, Row, Sample};
use crate::state::{self, Input, Missing, State};
use slablab_readers::bundle::DumpBuilder;
use slablab_readers::cgroups::Owners;
use slablab_readers::procfs::parse_numbers;
use slablab_readers::slabinfo::Slabinfo;
use slablab_report::error::{At, Error, Result};
use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A source of samples.
#[derive(Debug)]
pub enum Source {
    /// The running machine.
    Live(Live),
    /// Recorded states, one per tick.
    Recorded(Recorded),
}

impl Source {
    /// The running machine: each sample reads the two files again. A file without read permission is in
    /// [`Source::missing`].
    ///
    /// # Errors
    /// Neither /proc/slabinfo nor /proc/meminfo can be read.
    pub fn live(page_size: Option<u64>) -> Result<Source> {
        Live::open(page_size).map(Source::Live)
    }

    /// Every state in a directory, in the order of their names: slabinfo texts, tars, directories.
    ///
    /// # Errors
    /// A file that is no state of a machine, or a directory without files.
    pub fn recorded(folder: &Path, delay_s: f64, input: &Input) -> Result<Source> {
        if folder.is_file() {
            return Err(Error::new(folder, "expected a directory with a state for each tick, found a file"));
        }
        let entries = std::fs::read_dir(folder).at(folder)?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<Vec<_>>>();
        let mut paths = paths.at(folder)?;
        paths.sort();
        let read = |path: PathBuf| state::read(&Input { path: Some(path), ..input.clone() });
        let states = paths.into_iter().map(read).collect::<Result<Vec<_>>>()?;
        if states.is_empty() {
            return Err(Error::new(folder, "expected files of slabinfo, tars or directories, found nothing"));
        }
        Ok(Source::states(states, delay_s))
    }

    /// These states. If they have no time, they are `delay_s` apart.
    pub fn states(states: Vec<State>, delay_s: f64) -> Source {
        Source::Recorded(Recorded { states, delay_s, next: 0 })
    }

    /// Takes a sample; `None` when a recording is over.
    ///
    /// # Errors
    /// A file that was readable before is not readable now, or has not the kernel's format.
    pub fn sample(&mut self) -> Result<Option<Sample>> {
        match self {
            Source::Live(live) => live.sample().map(Some),
            Source::Recorded(recorded) => Ok(recorded.sample()),
        }
    }

    /// All information about the cache of `row` of the last sample, as a state with that cache only.
    ///
    /// # Errors
    /// A file has not the kernel's format.
    pub fn cache(&self, row: &Row) -> Result<Option<State>> {
        match self {
            Source::Live(live) => state::one_cache(&row.info, live.page_size).map(Some),
            Source::Recorded(recorded) => Ok(recorded.cache(row)),
        }
    }

    /// Memory cgroups at the last sample.
    ///
    /// # Errors
    /// A file has not the kernel's format.
    pub fn cgroups(&self) -> Result<Owners> {
        match self {
            Source::Live(_) => state::live_cgroups(),
            Source::Recorded(recorded) => Ok(recorded.current().dump.owners.clone()),
        }
    }

    /// The files that could not be read.
    pub fn missing(&self) -> &[Missing] {
        match self {
            Source::Live(live) => &live.missing,
            Source::Recorded(recorded) => &recorded.current().missing,
        }
    }

    /// The kernel's release, if known.
    pub fn release(&self) -> Option<&str> {
        match self {
            Source::Live(live) => live.release.as_deref(),
            Source::Recorded(recorded) => recorded.current().dump.release.as_deref(),
        }
    }
}

/// The running machine.
#[derive(Debug)]
pub struct Live {
    /// The files stay open: each reading starts at the beginning of the file, and needs no new permission
    /// check.
    slabinfo: Option<File>,
    meminfo: Option<File>,
    page_size: u64,
    release: Option<String>,
    started: Instant,
    missing: Vec<Missing>,
    buffer: Vec<u8>,
}

const SLABINFO: &str = "/proc/slabinfo";
const MEMINFO: &str = "/proc/meminfo";

impl Live {
    fn open(page_size: Option<u64>) -> Result<Live> {
        let mut missing = Vec::new();
        let mut open = |path: &str, costs: &str| {
            let file = File::open(path);
            if let Err(error) = &file {
                missing.push(Missing {
                    file: path.into(),
                    why: error.kind().to_string(),
                    costs: costs.into(),
                    command: Some("sudo slablab doctor --watch".into()),
                });
            }
            file.ok()
        };
        let slabinfo = open(SLABINFO, "which caches the memory is in");
        let meminfo = open(MEMINFO, "slab memory that is in no cache");
        if slabinfo.is_none() && meminfo.is_none() {
            let whys: Vec<&str> = missing.iter().map(|missing| missing.why.as_str()).collect();
            return Err(Error::new(SLABINFO, format!("{}; {MEMINFO}: {}", whys[0], whys[1])));
        }
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok();
        let release = release.map(|text| text.trim().to_string());
        let (started, buffer) = (Instant::now(), Vec::new());
        let mut live = Live { slabinfo, meminfo, page_size: 0, release, started, missing, buffer };
        live.page_size = match page_size {
            Some(page_size) => page_size,
            None => live.find_page_size()?,
        };
        Ok(live)
    }

    /// Bytes in a page, which no file states. Without slabinfo it does not matter.
    fn find_page_size(&mut self) -> Result<u64> {
        if self.slabinfo.is_none() {
            return Ok(0);
        }
        let mut builder = DumpBuilder::new();
        for name in ["proc/slabinfo", "proc/meminfo", "proc/zoneinfo"] {
            if let Ok(content) = std::fs::read(Path::new("/").join(name)) {
                builder.file(name, &content).at(Path::new("/"))?;
            }
        }
        let dump = builder.finish().at(Path::new("/"))?;
        let page_size = dump.page_size.map(|(bytes, _)| bytes);
        page_size
            .ok_or_else(|| Error::new(SLABINFO, "does not imply the page size; give it with --page-size"))
    }

    fn sample(&mut self) -> Result<Sample> {
        let mut sample = Sample::default();
        if let Some(file) = &mut self.slabinfo {
            let text = reread(file, &mut self.buffer).at(Path::new(SLABINFO))?;
            let slabinfo = Slabinfo::parse(text).at(Path::new(SLABINFO))?;
            sample.rows = slabinfo.rows.into_iter().map(|info| Row::new(info, self.page_size)).collect();
        }
        sample.at_s = self.started.elapsed().as_secs_f64();
        if let Some(file) = &mut self.meminfo {
            let text = reread(file, &mut self.buffer).at(Path::new(MEMINFO))?;
            sample.memory = Memory::of(&parse_numbers(text).at(Path::new(MEMINFO))?);
        }
        Ok(sample)
    }
}

fn reread<'a>(file: &mut File, buffer: &'a mut Vec<u8>) -> std::io::Result<&'a [u8]> {
    buffer.clear();
    file.rewind()?;
    file.read_to_end(buffer)?;
    Ok(buffer)
}

/// Recorded states.
#[derive(Debug)]
pub struct Recorded {
    states: Vec<State>,
    delay_s: f64,
    /// The next state to sample.
    next: usize,
}

impl Recorded {
    fn sample(&mut self) -> Option<Sample> {
        let state = self.states.get(self.next)?;
        let sample = Sample::of(state, self.at_s(self.next));
        self.next += 1;
        Some(sample)
    }

    /// When a state was taken, in seconds after the first: as they say themselves if all do and in that
    /// order.
    fn at_s(&self, index: usize) -> f64 {
        let told: Option<Vec<u64>> = self.states.iter().map(|state| state.taken_s).collect();
        match told.filter(|told| told.is_sorted_by(|a, b| a < b)) {
            Some(told) => (told[index] - told[0]) as f64,
            None => index as f64 * self.delay_s,
        }
    }

    fn current(&self) -> &State {
        &self.states[self.next.saturating_sub(1)]
    }

    fn cache(&self, row: &Row) -> Option<State> {
        let state = self.current();
        let same = |cache: &&state::Cache| cache.name == row.info.name && cache.ordinal == row.info.ordinal;
        let cache = state.caches.iter().find(same)?.clone();
        Some(State { caches: vec![cache], ..state.clone() })
    }
}
