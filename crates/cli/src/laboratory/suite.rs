//! `slablab suite A B`: two engines over every workload, with one correction over the whole table.

use crate::input::Progress;
use crate::interrupts::Interrupts;
use crate::laboratory::choice::costed;
use crate::laboratory::form::write_form;
use crate::laboratory::run::{How, Look, done};
use crate::outcome::{Done, Failure};
use slablab_experiment::output::{SuiteLook, suite_answer, suite_list};
use slablab_experiment::suite::{REPEATS, Suite, SuiteResults};
use slablab_experiment::{Options, Shard};
use slablab_report::AtomicFile;
use std::path::{Path, PathBuf};

/// Compares two engines.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab suite slub@7.0 slub@7.1 --quick\n  slablab suite slub@7.1 slub@7.1,max_order=0 --folder results --html page.html\n  slablab suite slub@6.18 slub@7.1 --workload hackbench,ublk --wrap 72\n  slablab suite --list"
)]
pub(crate) struct Args {
    /// The base, as `engine[@release][,knob=value]...` (see `slablab list engines`)
    #[arg(value_name = "A", required_unless_present = "list")]
    base: Option<String>,
    /// The engine that is compared with it, written in the same way
    #[arg(value_name = "B", required_unless_present = "list")]
    other: Option<String>,
    /// List the pairs of workload and machine, with what each shows
    #[arg(long)]
    list: bool,
    /// Only these workloads
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    workload: Vec<String>,
    #[command(flatten)]
    how: How,
    /// Run a part of the pairs, as 3/8; `slablab run --join` joins the folders of all parts
    #[arg(long, value_name = "PART/PARTS", value_parser = Shard::parse, requires = "folder")]
    shard: Option<Shard>,
    #[command(flatten)]
    look: Look,
    /// Also write a page to FILE: self-contained HTML for any browser
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    let (Some(base), Some(other), false) = (args.base, args.other, args.list) else {
        write_form(&suite_list().within(args.look.wrap()), args.look.format, args.look.wide, None)?;
        return Ok(Done::Complete);
    };
    let how = (&args.how, args.shard);
    compare((&[base, other], None), &args.workload, how, &args.look, args.html.as_deref())
}

/// Runs two engines over these workloads, or over all, and prints the answer; writes its page to a file, if
/// there is one. Beside the engines stands what they are, where their names do not say it.
pub(crate) fn compare(
    ([base, other], about): (&[String; 2], Option<&str>),
    workload: &[String],
    (how, shard): (&How, Option<Shard>),
    look: &Look,
    page: Option<&Path>,
) -> Result<Done, Failure> {
    let engines = [(base.clone(), costed(base, "A")?), (other.clone(), costed(other, "B")?)];
    let suite = Suite::new(engines, workload)?;
    if let Some(path) = page {
        if path == Path::new("-") {
            return Err("--html writes a file: expected its name, found -".into());
        }
        drop(AtomicFile::create(path)?);
    }
    let options = Options { shard, ..how.options(REPEATS, None)? };
    let progress = Progress::of_runs("suite", &options.pulse);
    let _interrupts = Interrupts::new(&progress)?;
    let tick = |done, whole| progress.at(done, whole);
    let results = suite.run(&options, how.folder.as_deref(), &tick)?;
    drop(progress);
    print((&results, about), look, page)
}

/// Prints the answer of a suite; writes its page to a file, if there is one.
pub(crate) fn print(
    (suite, about): (&SuiteResults, Option<&str>),
    look: &Look,
    page: Option<&Path>,
) -> Result<Done, Failure> {
    let blocks = SuiteLook { engines: about, wrap: look.wrap(), all: look.wide, page: page.is_some() };
    look.print(&suite_answer(suite, blocks), page)?;
    let incomplete = suite.results.iter().flatten().any(|results| matches!(done(results), Done::Incomplete));
    Ok(if incomplete { Done::Incomplete } else { Done::Complete })
}
