//! `slablab sites`: which code allocates, by a recording or by the kernel's own lists.

use crate::input::{Progress, command_line, expect_file};
use crate::interrupts::Interrupts;
use crate::outcome::{Done, Failure, tell};
use crate::output::{Form, OutputArgs, named};
use slablab_replay::output::{Weight, sites_answer, sites_profile};
use slablab_replay::sites::{self, Options, Sites, Sort};
use slablab_report::AtomicFile;
use slablab_report::error::At;
use std::path::PathBuf;

/// Shows call sites.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  perf record -g -e 'kmem:*' -a -o load.perf.data sleep 10
  slablab sites load.perf.data                              call sites by live bytes
  slablab sites load.perf.data --cache kmalloc-2k --sort allocs
  slablab sites load.perf.data --html who.html              flame graphs, and what lives over time
  slablab sites load.perf.data --format folded --weight allocs | flamegraph.pl > who.svg
  slablab sites server.trace.parquet --pprof server.pb.gz   a program's, of slablab record --malloc -g
  slablab sites trace.dat.xz --kallsyms kallsyms.txt        names for addresses
  slablab sites                                             /proc/allocinfo of this machine
  slablab sites /proc/allocinfo --since allocinfo.yesterday
  slablab sites /sys/kernel/debug/slab --cache dentry       alloc_traces and free_traces

docs/sites.md explains the columns.")]
pub(crate) struct Args {
    /// Recording: a trace, or perf.data, trace.dat, text or tidy CSV (plain, gz, zst, xz); a /proc/allocinfo;
    /// alloc_traces or free_traces, or a folder of caches that have them; a dump with one of these; - for
    /// standard input. Without it, /proc/allocinfo of this machine
    input: Option<PathBuf>,
    /// Earlier /proc/allocinfo: show what grew since
    #[arg(long, value_name = "FILE")]
    since: Option<PathBuf>,
    /// Show the call sites of one cache
    #[arg(long, value_name = "NAME")]
    cache: Option<String>,
    /// Order of a recording's call sites
    #[arg(long, value_enum, default_value_t = By::Live)]
    sort: By,
    /// Number of call sites to list
    #[arg(short = 'N', long, visible_alias = "lines", value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    top: u32,
    /// Names for the addresses of a recording: a copy of /proc/kallsyms of the recorded boot, or its
    /// System.map. Without it, those of this machine if the recording is of its boot
    #[arg(long, value_name = "FILE")]
    kallsyms: Option<PathBuf>,
    /// Take names of another kernel than the recorded one
    #[arg(long)]
    force: bool,
    /// Jiffies in a second (CONFIG_HZ), for the ages in alloc_traces and free_traces
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    hz: Option<u64>,
    /// Width of frames in folded stacks
    #[arg(long, value_enum, default_value_t = Width::Live)]
    weight: Width,
    /// Write the call chains of a program's recording to FILE, for pprof
    #[arg(long, value_name = "FILE")]
    pprof: Option<PathBuf>,
    /// All columns, also those that do not fit the terminal
    #[arg(long)]
    wide: bool,
    #[command(flatten)]
    out: OutputArgs<Format>,
}

/// Forms of the answer.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Text
    Table,
    /// JSON
    Json,
    /// CSV, a row for each call site
    Csv,
    /// Folded stacks: a line for each path of frames, for programs that draw flame graphs
    Folded,
}

impl Form for Format {}

/// Orders of call sites.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// Bytes that live at the end
    Live,
    /// Live bytes that nobody requested; of a program, free bytes in the pages of live blocks
    Waste,
    /// The most bytes at once; of a program, bytes that lived when most did
    Peak,
    /// Allocations
    Allocs,
    /// Bytes allocated in all
    Bytes,
    /// Median lifetime
    Lifetime,
    /// Frees by other CPUs than the one that allocated; of a program, frees before the next allocation
    Remote,
    /// Name of the site
    Site,
    /// Name of the cache
    Cache,
}

/// What frames are as wide as.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Width {
    /// Bytes that live at the end
    Live,
    /// Live bytes that nobody requested; of a program, free bytes in the pages of live blocks
    Waste,
    /// Of a program, bytes that lived when most did
    Peak,
    /// Allocations
    Allocs,
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    let inputs = named("the input", &args.input).chain(named("--since", &args.since));
    args.out.check_with(inputs.chain(named("--kallsyms", &args.kallsyms)), named("--pprof", &args.pprof))?;
    args.since.as_deref().map(|path| expect_file("--since", path, "a /proc/allocinfo")).transpose()?;
    args.kallsyms.as_deref().map(|path| expect_file("--kallsyms", path, "a list of symbols")).transpose()?;
    let options = Options {
        cache: args.cache.clone(),
        sort: sort(args.sort),
        kallsyms: args.kallsyms.clone(),
        force: args.force,
        since: args.since.clone(),
        hz: args.hz,
    };
    let progress = Progress::new("sites");
    let interrupts = Interrupts::new(&progress)?;
    let at = |done, whole| progress.at(done, whole);
    let sites = sites::read(args.input.as_deref(), &options, &mut |events| at(events, events), &at)?;
    drop(progress);
    if args.out.format == Format::Folded && !matches!(sites, Sites::Recorded(_) | Sites::Program(_)) {
        return Err("--format folded is for a recording, and this is none".into());
    }
    if args.weight == Width::Peak && !matches!(sites, Sites::Program(_)) {
        return Err("--weight peak is for a recording of a program's malloc, and this is none".into());
    }
    if let Some(path) = &args.pprof {
        let Sites::Program(program) = &sites else {
            return Err("--pprof is for a recording of a program's malloc, and this is none".into());
        };
        let mut file = AtomicFile::create(path)?;
        sites_profile(program).write(&mut file).at(path)?;
        file.commit()?;
    }
    let weight = match args.weight {
        Width::Live => Weight::Live,
        Width::Waste => Weight::Waste,
        Width::Peak => Weight::Peak,
        Width::Allocs => Weight::Allocs,
    };
    let answer = sites_answer(&sites, args.top as usize, weight);
    let _whole = interrupts.hold();
    args.out.answer(&answer, &command_line(), args.wide)?;
    if args.out.format != Format::Table {
        answer.said().for_each(tell);
    }
    let incomplete = match &sites {
        Sites::Program(program) => program.metadata.is_incomplete(),
        Sites::Recorded(recorded) => recorded.metadata.is_incomplete(),
        Sites::Counted(_) | Sites::Tracked(_) => false,
    };
    Ok(if incomplete { Done::Incomplete } else { Done::Complete })
}

fn sort(by: By) -> Sort {
    match by {
        By::Live => Sort::Live,
        By::Waste => Sort::Waste,
        By::Peak => Sort::Peak,
        By::Allocs => Sort::Allocs,
        By::Bytes => Sort::Bytes,
        By::Lifetime => Sort::Lifetime,
        By::Remote => Sort::Remote,
        By::Site => Sort::Site,
        By::Cache => Sort::Cache,
    }
}
