//! Dumps of machines: their state, its diagnosis, and predictions.

use crate::answer::Answer;
use crate::errors::{Raised, usage};
use crate::recording::{Given, Wanted};
use crate::table::Table;
use crate::work::{Work, work};
use pyo3::prelude::*;
use slablab_doctor::measure::SortKey;
use slablab_doctor::measure::rounding::Rounding;
use slablab_doctor::output::{Shown, changes_frame, doctor_answer, doctor_frame, whatif_answer};
use slablab_doctor::state::{Input, Moment, State, read, read_at};
use slablab_doctor::whatif::{
    Against, Config, Debug, Grid, PerCpu, Policy, Prediction, SheafCapacity, missing, predict_with,
};
use slablab_doctor::{Options, examine};
use slablab_slabs::Preset;
use std::path::PathBuf;
use std::sync::Arc;

/// Caches that a text or a page lists, as the program does.
const TOP: usize = 15;

/// The slab memory of a machine at a moment.
#[pyclass(frozen, module = "slablab")]
pub(crate) struct Dump(Arc<State>);

#[pymethods]
impl Dump {
    /// The file or folder; `/` for this machine.
    #[getter]
    fn path(&self) -> PathBuf {
        self.0.path.clone()
    }

    /// The kernel's release; `None` if the dump does not tell.
    #[getter]
    fn release(&self) -> Option<String> {
        self.0.dump.release.clone()
    }

    /// Bytes in a page.
    #[getter]
    fn page_size_bytes(&self) -> u64 {
        self.0.page_size
    }

    /// CPUs that are online; `None` if the dump does not tell.
    #[getter]
    fn cpus_online(&self) -> Option<u32> {
        self.0.cpus.map(|cpus| cpus.online)
    }

    /// A row for each cache, in the dump's order.
    #[getter]
    fn caches(&self) -> PyResult<Table> {
        let report = examine(&self.0, &nothing_more()).raised()?;
        Ok(Table::of(&doctor_frame(&report)))
    }

    /// What was not in the dump: file, why, what it costs, and the command that collects it.
    #[getter]
    fn missing(&self) -> Vec<(String, String, String, Option<String>)> {
        let missing = self.0.missing.iter().cloned();
        missing.map(|missing| (missing.file, missing.why, missing.costs, missing.command)).collect()
    }

    fn __len__(&self) -> usize {
        self.0.caches.len()
    }

    fn __repr__(&self) -> String {
        format!("<slablab.Dump {}: {} caches>", self.0.path.display(), self.0.caches.len())
    }
}

fn nothing_more() -> Options<'static> {
    Options::default()
}

/// A dump that was read, or a file to read.
#[derive(FromPyObject)]
pub(crate) enum Of<'py> {
    Read(Bound<'py, Dump>),
    Path(PathBuf),
}

impl Of<'_> {
    fn source(self) -> Source {
        match self {
            Of::Read(dump) => Source::Read(dump.get().0.clone()),
            Of::Path(path) => Source::Path(Some(path)),
        }
    }
}

/// An [`Of`] for a job: it is read without the interpreter's lock, on the job's own threads, which a process
/// that was forked has, too.
enum Source {
    Read(Arc<State>),
    /// A file; `None` for this machine.
    Path(Option<PathBuf>),
}

impl Source {
    fn of(dump: Option<Of<'_>>) -> Source {
        dump.map_or(Source::Path(None), Of::source)
    }

    fn state(self) -> slablab_report::Result<Arc<State>> {
        self.state_of(None, None)
    }

    /// The state; of a file that does not tell them with this page size and number of CPUs.
    fn state_of(self, page_size: Option<u64>, cpus: Option<u32>) -> slablab_report::Result<Arc<State>> {
        match self {
            Source::Read(state) => Ok(state),
            Source::Path(path) => Ok(Arc::new(read(&Input { path, page_size, cpus })?)),
        }
    }

    /// As an earlier state: of a recording, the one before it.
    fn earlier(self) -> slablab_report::Result<State> {
        match self {
            Source::Read(state) => Ok(State::clone(&state)),
            Source::Path(path) => read_at(&Input { path, ..Input::default() }, Moment::Before),
        }
    }
}

/// Reads a dump: a folder, tar, support bundle or slabinfo; without a path, this machine.
#[pyfunction]
#[pyo3(signature = (path = None, *, page_size = None, cpus = None))]
pub(crate) fn read_dump(
    py: Python<'_>,
    path: Option<PathBuf>,
    page_size: Option<u64>,
    cpus: Option<u32>,
) -> PyResult<Dump> {
    let input = Input { path, page_size, cpus };
    work(py, None, Some(1), |_| read(&input)).map(|state| Dump(Arc::new(state)))
}

/// What was found on a machine.
#[pyclass(frozen, extends = Answer, module = "slablab")]
pub(crate) struct Diagnosis;

#[pymethods]
impl Diagnosis {
    /// A row for each cache, in the dump's order.
    #[getter]
    fn caches(of: PyRef<'_, Self>) -> Option<Table> {
        of.as_super().rows()
    }

    /// What is worth saying, most bytes first.
    #[getter]
    fn findings<'py>(of: PyRef<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        of.as_super().part(of.py(), "findings")
    }

    /// What can be done about it on this kernel, most likely savings first.
    #[getter]
    fn actions<'py>(of: PyRef<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        of.as_super().part(of.py(), "actions")
    }
}

/// The key of a letter, as `slablab doctor --sort` takes it.
fn sort_key(letter: char) -> PyResult<SortKey> {
    SortKey::of(letter).ok_or_else(|| {
        let known = SortKey::ALL.iter().map(|(_, letter, words)| format!("{letter} {words}"));
        usage(format!("sort {letter}: expected one of: {}", known.collect::<Vec<_>>().join(", ")))
    })
}

/// Finds the uses of slab memory.
#[pyfunction]
#[pyo3(signature = (
    dump = None, *, since = vec![], hours = None, force = false, recording = None, sort = None, lines = TOP,
    aliases = false, bytes = false
))]
#[allow(clippy::too_many_arguments, reason = "Python's keywords")]
pub(crate) fn doctor(
    py: Python<'_>,
    dump: Option<Of<'_>>,
    since: Vec<Of<'_>>,
    hours: Option<f64>,
    force: bool,
    recording: Option<Given<'_>>,
    sort: Option<char>,
    lines: usize,
    aliases: bool,
    bytes: bool,
) -> PyResult<Py<Diagnosis>> {
    let (dump, since) = (Source::of(dump), since.into_iter().map(Of::source).collect::<Vec<_>>());
    let reading = |_: &Work| {
        let state = dump.state()?;
        let since = since.into_iter().map(Source::earlier).collect::<slablab_report::Result<Vec<_>>>()?;
        Ok((state, since))
    };
    let (state, mut since) = work(py, None, Some(1), reading)?;
    // A text may have several snapshots.
    since.extend(state.earlier());
    if hours.is_some() && since.is_empty() {
        return Err(usage("hours: expected an earlier snapshot: since=[dump], or several in the text"));
    }
    let sort = match sort {
        Some(letter) => sort_key(letter)?,
        None if since.is_empty() => SortKey::CacheSize,
        None => SortKey::Growth,
    };
    let shown = Shown { sort, lines, aliases, bytes };
    let wanted = recording.map(Given::wanted);
    let job = |work: &Work| {
        let rounding = wanted.map(|wanted: Wanted| {
            let opened = wanted.open(work)?;
            Rounding::read(&opened.path, &opened.reader)
        });
        let rounding = rounding.transpose()?;
        let options = Options { since: &since, hours, force, rounding: rounding.as_ref(), worth: None };
        let report = examine(&state, &options)?;
        Ok((doctor_answer(&report, &shown), report.measured.is_incomplete()))
    };
    let (answer, is_incomplete) = work(py, None, Some(1), job)?;
    Answer::with(py, (answer, "slablab.doctor()"), is_incomplete, Diagnosis)
}

/// Predictions of slab memory with something changed.
#[pyclass(frozen, extends = Answer, module = "slablab")]
pub(crate) struct Whatif {
    changes: Table,
}

#[pymethods]
impl Whatif {
    /// A row for each change: today's sums, and the predicted ones with their range.
    #[getter]
    fn changes(&self) -> Table {
        self.changes.clone()
    }

    /// A row for each change and cache.
    #[getter]
    fn caches(of: PyRef<'_, Self>) -> Option<Table> {
        of.as_super().rows()
    }
}

/// One value, or a list of them.
#[derive(FromPyObject)]
pub(crate) enum OneOrMore<T> {
    One(T),
    More(Vec<T>),
}

/// The values that were given.
pub(crate) fn all<T>(given: Option<OneOrMore<T>>) -> Vec<T> {
    match given {
        None => Vec::new(),
        Some(OneOrMore::One(one)) => vec![one],
        Some(OneOrMore::More(more)) => more,
    }
}

/// Predicts slab memory with something changed; lists give a change for each combination.
#[pyfunction]
#[pyo3(signature = (
    dump = None, *, engine = None, policy = None, max_order = None, min_order = None, min_objects = None,
    page_size = None, cpus = None, merge = None, debug = None, sheaf_capacity = None, config = None,
    calibrate = vec![], against = None
))]
#[allow(clippy::too_many_arguments, reason = "Python's keywords")]
pub(crate) fn whatif(
    py: Python<'_>,
    dump: Option<Of<'_>>,
    engine: Option<OneOrMore<String>>,
    policy: Option<OneOrMore<String>>,
    max_order: Option<OneOrMore<u8>>,
    min_order: Option<OneOrMore<u8>>,
    min_objects: Option<OneOrMore<u32>>,
    page_size: Option<OneOrMore<u64>>,
    cpus: Option<OneOrMore<u32>>,
    merge: Option<OneOrMore<bool>>,
    debug: Option<OneOrMore<String>>,
    sheaf_capacity: Option<OneOrMore<String>>,
    config: Option<OneOrMore<String>>,
    calibrate: Vec<Of<'_>>,
    against: Option<Of<'_>>,
) -> PyResult<Py<Whatif>> {
    let engine = all(engine)
        .into_iter()
        .map(|text| Preset::parse(&text).map_err(|bad| usage(format!("engine {text}: {bad}"))));
    let policy = all(policy)
        .into_iter()
        .map(|text| Policy::parse(&text).map_err(|bad| usage(format!("policy {text}: {bad}"))));
    let debug = all(debug)
        .into_iter()
        .map(|text| Debug::parse(&text).map_err(|bad| usage(format!("debug {text}: {}", bad.what))));
    let capacity = all(sheaf_capacity)
        .into_iter()
        .map(|text| SheafCapacity::parse(&text).map_err(|bad| usage(format!("sheaf_capacity {bad}"))));
    let config = all(config)
        .into_iter()
        .map(|text| Config::parse(&text).map_err(|bad| usage(format!("config {bad}"))));
    let page_sizes = all(page_size);
    if let Some(bytes) = page_sizes.iter().find(|bytes| !is_page_size(**bytes)) {
        return Err(usage(format!("page_size {bytes}: expected 4096, 8192, 16384, .. or 262144")));
    }
    let grid = Grid {
        engines: engine.collect::<PyResult<_>>()?,
        policies: policy.collect::<PyResult<_>>()?,
        max_orders: all(max_order),
        min_orders: all(min_order),
        min_objects: all(min_objects),
        page_sizes,
        cpus: all(cpus),
        merge: all(merge),
        debug: debug.collect::<PyResult<_>>()?,
        sheaf_capacities: capacity.collect::<PyResult<_>>()?,
        configs: config.collect::<PyResult<_>>()?,
    };
    let changes = grid.changes().map_err(|error| usage(error.what))?;
    if against.is_some() && changes.len() != 1 {
        return Err(usage("against: takes one change, not a list"));
    }
    let (dump, against) = (Source::of(dump), against.map(Of::source));
    let calibrate: Vec<Source> = calibrate.into_iter().map(Of::source).collect();
    let reading = |_: &Work| {
        let state = dump.state()?;
        let (page_size, cpus) = (changes[0].page_size, changes[0].cpus);
        let against = against.map(|real| real.state_of(page_size, cpus)).transpose()?;
        let more = calibrate.into_iter().map(Source::state).collect::<slablab_report::Result<Vec<_>>>()?;
        Ok((state, against, more))
    };
    let (state, against, more) = work(py, None, Some(1), reading)?;
    let job = |_: &Work| {
        let tables = match more.as_slice() {
            [] => PerCpu::builtin(),
            more => vec![PerCpu::of(
                &std::iter::once(&*state).chain(more.iter().map(|state| &**state)).collect::<Vec<_>>(),
            )?],
        };
        changes.iter().map(|change| predict_with(&state, change, &tables)).collect()
    };
    let predictions: Vec<Prediction> = work(py, None, Some(1), job)?;
    let against = against.map(|real| Against::new(&predictions[0], &real));
    let answer = whatif_answer(&state, &predictions, against.as_ref(), None, TOP);
    let whatif = Whatif { changes: Table::of(&changes_frame(&predictions)) };
    Answer::with(py, (answer, "slablab.whatif()"), missing(&state).next().is_some(), whatif)
}

/// Whether Linux runs with pages of this size.
fn is_page_size(bytes: u64) -> bool {
    bytes.is_power_of_two() && (12..=18).contains(&bytes.ilog2())
}
