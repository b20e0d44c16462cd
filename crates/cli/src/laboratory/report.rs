//! `slablab run --join FOLDER...`: joins the parts of an experiment, or of a suite.

use crate::laboratory::run::{Joined, check_page, done};
use crate::outcome::{Done, Failure};
use slablab_experiment::{Folder, join, suite};

pub(crate) fn run(args: &Joined) -> Result<Done, Failure> {
    check_page(&args.html, &args.folders)?;
    if args.folders.iter().all(|folder| suite::is_suite(folder)) {
        if args.html.is_some() {
            return Err(
                "--html is the page of one experiment: `slablab suite --html` writes a suite's".into()
            );
        }
        if let Some(option) = args.look.of_cells() {
            return Err(format!(
                "{option}: it is of an experiment's cells, and these folders are of a suite"
            )
            .into());
        }
        let answer = suite::join(&args.folders, args.folder.as_deref())?;
        return crate::laboratory::suite::print((&answer, None), &args.look, None);
    }
    let results = join(&args.folders)?;
    if let Some(folder) = &args.folder {
        results.write_whole(&Folder::open(folder)?)?;
    }
    args.look.answer(&results, results.plan.draws > 0, (args.html.as_deref(), None))?;
    Ok(done(&results))
}
