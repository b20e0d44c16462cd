//! `slablab whatif`: the same machine with another policy, other boot parameters, other pages, more or fewer
//! CPUs.

use crate::outcome::{Done, Failure};
use crate::output::{Form, named};
use crate::rows::ListArgs;
use slablab_doctor::output::{per_cpu_answer, whatif_answer};
use slablab_doctor::state::{Input, State, page_size, read};
use slablab_doctor::whatif::{
    Against, Change, Config, Debug, Grid, PerCpu, Policy, SheafCapacity, missing, on_off, predict_with,
};
use slablab_engines::parse;
use slablab_report::visible;
use std::path::PathBuf;

/// Predicts slab memory with something changed.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab whatif --max-order 0                       this machine\n  slablab whatif sosreport.tar.xz --page-size 64K --cpus 160\n  slablab whatif dump.tar --max-order 0,1,2,3 --page-size 4K,64K\n  slablab whatif --input 4cpus.tar --input 16cpus.tar --cpus 64\n\nLists give one line for each combination."
)]
pub(crate) struct Args {
    /// Directory, tar, support bundle or slabinfo; - for standard input; without it, this machine
    input: Option<PathBuf>,
    /// A dump like INPUT; may be repeated. Dumps of one machine with different numbers of CPUs tell what its
    /// kernel allocates for each CPU. The one with the number of CPUs nearest to that of --cpus predicts,
    /// else the first. Without a change the table is printed
    #[arg(long = "input", value_name = "DUMP")]
    more: Vec<PathBuf>,
    /// Order policy: clamped, single, halving, patel-v3, slqb, online-cpus ... (a wrong name lists all)
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = Policy::parse)]
    policy: Vec<Policy>,
    /// Largest order, as the boot parameter slub_max_order sets it
    #[arg(long, value_name = "ORDER", value_delimiter = ',')]
    max_order: Vec<u8>,
    /// Smallest order, as the boot parameter slub_min_order sets it
    #[arg(long, value_name = "ORDER", value_delimiter = ',')]
    min_order: Vec<u8>,
    /// Wanted number of objects per slab (slub_min_objects); 0: the rule derives it from the CPUs
    #[arg(long, value_name = "N", value_delimiter = ',')]
    min_objects: Vec<u32>,
    /// Predict for this page size, for example 4K or 65536
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = page_size)]
    page_size: Vec<u64>,
    /// Predict for this number of CPUs
    #[arg(long, value_name = "N", value_delimiter = ',')]
    cpus: Vec<u32>,
    /// Engine, as `engine[@release][,knob=value]...`; may be repeated (see `slablab list engines`)
    #[arg(long = "engine", value_name = "ENGINE")]
    engines: Vec<String>,
    /// Linux release, as 7.1: what its CPUs and nodes keep instead; short for --engine slub@7.1
    #[arg(long, value_name = "RELEASE", value_delimiter = ',')]
    release: Vec<String>,
    /// Objects in a sheaf, or a factor as x2: what sheaves of another capacity would keep (7.0 and later)
    #[arg(long, value_name = "N|xF", value_delimiter = ',', value_parser = SheafCapacity::parse)]
    sheaf_capacity: Vec<SheafCapacity>,
    /// Option of the kernel's configuration: MEM_ALLOC_PROFILING=y or n,
    /// MEM_ALLOC_PROFILING_ENABLED_BY_DEFAULT=y
    #[arg(long, value_name = "OPTION", value_delimiter = ',', value_parser = Config::parse)]
    config: Vec<Config>,
    /// Predict with cache merging (caches of one size share slabs) on or off
    #[arg(long, value_name = "on|off", value_delimiter = ',', value_parser = on_off)]
    merge: Vec<bool>,
    /// Debugging of all caches, as slub_debug takes it: letters of FZPU, or off
    #[arg(long, value_name = "LETTERS", value_delimiter = ',', value_parser = debug)]
    debug: Vec<Debug>,
    /// Dump of a boot with the change: measures the error of the prediction
    #[arg(long, value_name = "DUMP")]
    against: Option<PathBuf>,
    /// Page size of the input, if its files do not contain it
    #[arg(long, value_name = "SIZE", value_parser = page_size)]
    input_page_size: Option<u64>,
    /// Number of CPUs of the input, if its files do not contain it
    #[arg(long, value_name = "N")]
    input_cpus: Option<u32>,
    /// Dump of this machine after a load: with --format mail, the second column
    #[arg(long, value_name = "DUMP")]
    after: Option<PathBuf>,
    #[command(flatten)]
    list: ListArgs<Format>,
}

/// Forms of the answer.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Text
    Table,
    /// JSON
    Json,
    /// CSV, a row per change and cache
    Csv,
    /// The tables of Jay Patel's mail of 2023
    Mail,
}

impl Form for Format {}

fn debug(letters: &str) -> Result<Debug, String> {
    Debug::parse(letters).map_err(|error| error.what)
}

/// Two dumps that are columns of one table.
fn same_machine(before: &State, after: &State) -> Result<(), Failure> {
    let machine = |state: &State| (state.page_size, state.cpus.map(|cpus| cpus.present));
    let words = |state: &State| {
        let cpus = state.cpus.map_or("an unknown number of".into(), |cpus| cpus.present.to_string());
        format!("{cpus} CPUs and pages of {}K", state.page_size / 1024)
    };
    if machine(before) == machine(after) {
        return Ok(());
    }
    let (path, found, expected) = (visible::path(&after.path), words(after), words(before));
    Err(format!("--after {path}: another machine, with {found}; expected {expected}").into())
}

/// The dump that predicts: the one whose number of CPUs is nearest to the number asked for, by their ratio;
/// the first of equals, and where lists ask for several numbers. A dump that has this number predicts
/// nothing.
fn nearest<'a>(states: &'a [State], changes: &[Change]) -> &'a State {
    let asked: Vec<u32> = changes.iter().filter_map(|change| change.cpus).collect();
    let away = |state: &&State| {
        let (Some(today), [then]) = (state.cpus, asked.as_slice()) else { return 0.0 };
        match today.online == *then {
            true => f64::INFINITY,
            false => (f64::from(today.online.max(1)) / f64::from((*then).max(1))).ln().abs(),
        }
    };
    // An input is always there: without one it is this machine.
    states.iter().min_by(|one, other| away(one).total_cmp(&away(other))).unwrap_or(&states[0])
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    let inputs = named("the input", &args.input).chain(named("--input", &args.more));
    let inputs = inputs.chain(named("--against", &args.against));
    args.list.out.check(inputs.chain(named("--after", &args.after)))?;
    let engine = |text: &String| parse(text).map_err(|bad| format!("--engine {text}: {bad}"));
    let release = |release: &String| {
        parse(&format!("slub@{release}")).map_err(|bad| format!("--release {release}: {bad}"))
    };
    let engines = args.engines.iter().map(engine).chain(args.release.iter().map(release));
    let grid = Grid {
        engines: engines.collect::<Result<_, _>>()?,
        sheaf_capacities: args.sheaf_capacity,
        configs: args.config,
        policies: args.policy,
        max_orders: args.max_order,
        min_orders: args.min_order,
        min_objects: args.min_objects,
        page_sizes: args.page_size,
        cpus: args.cpus,
        merge: args.merge,
        debug: args.debug,
    };
    let changes = grid.changes()?;
    if args.list.out.format == Format::Mail && changes.len() > 1 {
        return Err(format!("--format mail has room for one change, found {}", changes.len()).into());
    }
    if args.after.is_some() && args.list.out.format != Format::Mail {
        return Err("--after is a column of --format mail".into());
    }
    let read_at = |path: Option<PathBuf>| {
        // The page size of the input has a name of its own here.
        read(&Input { path, page_size: args.input_page_size, cpus: args.input_cpus })
            .map_err(|error| Failure::from(error.to_string().replace("--page-size", "--input-page-size")))
    };
    let mut paths: Vec<Option<PathBuf>> = args.input.into_iter().chain(args.more).map(Some).collect();
    if paths.is_empty() {
        paths.push(None);
    }
    let states = paths.into_iter().map(read_at).collect::<Result<Vec<State>, _>>()?;
    let state = nearest(&states, &changes);
    let tables = match states.as_slice() {
        [_] => PerCpu::builtin(),
        several => vec![PerCpu::of(&several.iter().collect::<Vec<_>>())?],
    };
    if let ([table], true) = (tables.as_slice(), states.len() > 1 && grid == Grid::default()) {
        if args.list.out.format == Format::Mail {
            return Err("--format mail has no table for CPUs: expected table, json or csv".into());
        }
        args.list.answer(&per_cpu_answer(table))?;
        return Ok(Done::Complete);
    }
    let predict = |state: &State, change| predict_with(state, change, &tables);
    let predictions = changes.iter().map(|change| predict(state, change)).collect::<Result<Vec<_>, _>>()?;
    let unknown = predictions.iter().find_map(|one| Some((one.change, one.range.unknown()?)));
    if let (Format::Mail, Some((change, why))) = (args.list.out.format, unknown) {
        return Err(format!("--format mail: slab memory with {change} is not predicted: {why}").into());
    }
    let against = args.against.map(|path| match predictions.as_slice() {
        [one] => {
            let real =
                read(&Input { path: Some(path), page_size: one.change.page_size, cpus: one.change.cpus })?;
            Ok::<_, Failure>(Against::new(one, &real))
        }
        _ => Err("--against takes one change, not a list".into()),
    });
    let against = against.transpose()?;
    let after = args.after.map(|path| read_at(Some(path))).transpose()?;
    if let Some(after) = &after {
        same_machine(state, after)?;
    }
    let after = after.map(|state| predict(&state, &changes[0])).transpose()?;
    let answer = whatif_answer(state, &predictions, against.as_ref(), after.as_ref(), args.list.lines);
    args.list.answer(&answer)?;
    Ok(if missing(state).next().is_none() { Done::Complete } else { Done::Incomplete })
}
