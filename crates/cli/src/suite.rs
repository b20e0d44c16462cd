//! `slablab suite A B`: two engines over every workload, with one correction over the whole table.

use crate::input::{Progress, command_line, preset};
use crate::interrupts::Interrupts;
use crate::outcome::{Done, Failure};
use crate::output::{document, write_out};
use crate::run::{Format, How, Look, done};
use slablab_experiment::output::{
    suite_avg_std, suite_csv, suite_json, suite_list, suite_markdown, suite_mmtests, suite_page, suite_table,
};
use slablab_experiment::suite::{Answer, REPEATS, Suite};
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
        write_out(&suite_list(), None)?;
        return Ok(Done::Complete);
    };
    let engines = [(base.clone(), preset(&base, "A")?), (other.clone(), preset(&other, "B")?)];
    let suite = Suite::new(engines, &args.workload)?;
    if let Some(path) = &args.html {
        if path == Path::new("-") {
            return Err("--html writes a file: expected its name, found -".into());
        }
        drop(AtomicFile::create(path)?);
    }
    let options = Options { shard: args.shard, ..args.how.options(REPEATS, false)? };
    let progress = Progress::of_runs("suite", &options.pulse);
    let _interrupts = Interrupts::new(&progress)?;
    let tick = |done, whole| progress.at(done, whole);
    let answer = suite.run(&options, args.how.folder.as_deref(), &tick)?;
    drop(progress);
    if let Some(path) = &args.html {
        write_out(&suite_page(&answer, &command_line()), Some(path))?;
    }
    print(&answer, &args.look)
}

/// Prints the answer of a suite.
pub(crate) fn print(answer: &Answer, look: &Look) -> Result<Done, Failure> {
    let wrap = look.wrap.map(usize::from);
    let text = match look.format {
        Format::Table => suite_table(answer, wrap),
        Format::Json => document(suite_json(answer)),
        Format::Csv => suite_csv(answer),
        Format::Markdown => suite_markdown(answer),
        Format::Mmtests => suite_mmtests(answer, wrap),
        Format::Avgstd => suite_avg_std(answer, wrap),
    };
    write_out(&text, None)?;
    let incomplete = answer.results.iter().flatten().any(|results| matches!(done(results), Done::Incomplete));
    Ok(if incomplete { Done::Incomplete } else { Done::Complete })
}
