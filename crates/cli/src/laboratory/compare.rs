//! `slablab compare A.json B.json`: results of a verb side by side.

use crate::input::command_line;
use crate::outcome::{Done, Failure};
use crate::output::{Format, OutputArgs, named};
use slablab_compare::output::comparison_answer;
use slablab_compare::{Comparison, Document, Options, RESULT, compare};
use slablab_report::text::counted;
use slablab_report::visible;
use std::path::{Path, PathBuf};

/// Compares results.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab replay my.perf.data --engine slub@7.1 --format json -o base.json\n  slablab replay my.perf.data --engine slub@7.1,max_order=0 --format json -o patched.json\n  slablab compare base.json patched.json\n  slablab compare v1.json v2.json v3.json --names vanilla,patched,patched-v2 --html page.html"
)]
pub(crate) struct Args {
    /// Results that one of replay, run, suite, bench, doctor, verify wrote with --format json, or folders of
    /// run; the first is the base; - for standard input
    #[arg(required = true, num_args = 2.., value_name = "RESULT")]
    results: Vec<PathBuf>,
    /// Names of the results' columns, instead of their files' names
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    names: Vec<String>,
    /// Compare results of different inputs, too: other recordings, other experiments
    #[arg(long)]
    force: bool,
    /// Number of details, such as caches: those that differ most
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Exit with 1 if a row of the answer is worse by more than PERCENT
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    fail_over: Option<f64>,
    /// All columns, also those that do not fit the terminal
    #[arg(long)]
    wide: bool,
    #[command(flatten)]
    out: OutputArgs<Format>,
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    args.out.check(named("the result", &args.results))?;
    let names = names(&args)?;
    let documents = args.results.iter().zip(&names).map(|(path, name)| read(path, name));
    let documents = documents.collect::<Result<Vec<_>, Failure>>()?;
    let comparison = compare(&documents, Options { force: args.force, details: args.top })?;
    args.out.answer(&comparison_answer(&comparison), &command_line(), args.wide)?;
    let over =
        |comparison: &Comparison| args.fail_over.is_some_and(|percent| comparison.is_worse_by(percent));
    Ok(if over(&comparison) { Done::OverThreshold } else { Done::Complete })
}

fn read(path: &Path, name: &str) -> Result<Document, Failure> {
    // A folder of `run --folder` has the document beside its cells.
    let file = if path.is_dir() { path.join("summary.json") } else { path.to_path_buf() };
    if path.is_dir() && !file.exists() {
        let what =
            "a folder without summary.json: expected one of `slablab run --folder` whose run has ended";
        return Err(format!("{}: {what}", visible::path(path)).into());
    }
    Ok(match path == Path::new("-") {
        true => Document::parse(name, path, &RESULT.read(std::io::stdin().lock(), path)?)?,
        false => Document::read(name, &file)?,
    })
}

/// The names of the columns: given, or those of the files.
fn names(args: &Args) -> Result<Vec<String>, Failure> {
    let (found, expected) = (args.names.len(), args.results.len());
    if found == 0 {
        return Ok(slablab_compare::names(&args.results));
    }
    if found != expected {
        let (found, expected) = (counted(found as u64, "name"), counted(expected as u64, "result"));
        return Err(format!("--names: {found} for {expected}").into());
    }
    Ok(args.names.clone())
}

fn percent(text: &str) -> Result<f64, String> {
    let error = || format!("expected a number from 0 on, found {text:?}");
    text.parse().ok().filter(|percent: &f64| percent.is_finite() && *percent >= 0.0).ok_or_else(error)
}
