//! `slablab report FOLDER...`: joins the parts of an experiment, or of a suite.

use crate::outcome::{Done, Failure};
use crate::output::write_out;
use crate::run::{Look, check_page, done, write_page};
use slablab_experiment::{Folder, join, suite};
use std::path::PathBuf;

/// Joins the folders of all parts of an experiment.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folders that `slablab run`, `slablab reproduce` or `slablab suite` wrote
    #[arg(required = true)]
    folders: Vec<PathBuf>,
    /// Also write the joined results to FOLDER, as one run of all cells would
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Also write a page with charts to FILE: self-contained HTML for any browser. Runs the first repeat of
    /// each cell again to see where the time went
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    look: Look,
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    check_page(&args.html, &args.folders)?;
    if args.folders.iter().all(|folder| suite::is_suite(folder)) {
        if args.html.is_some() {
            return Err(
                "--html is the page of one experiment: `slablab suite --html` writes a suite's".into()
            );
        }
        let answer = suite::join(&args.folders, args.output.as_deref())?;
        return crate::suite::print(&answer, &args.look);
    }
    let results = join(&args.folders)?;
    if let Some(folder) = &args.output {
        results.write_whole(&Folder::open(folder)?)?;
    }
    if let Some(path) = &args.html {
        write_page(&results, None, path)?;
    }
    write_out(&args.look.text(&results, results.plan.sensitivity), None)?;
    Ok(done(&results))
}
