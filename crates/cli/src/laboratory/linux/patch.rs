//! `slablab linux patch FILE.patch`: a tree beside the same tree with a patch.

use super::Watch;
use super::commits::WayArgs;
use super::job::{Job, What};
use crate::input::Progress;
use crate::laboratory::choice::{costed, engine};
use crate::laboratory::run::{How, Look, answer, check_page, done};
use crate::laboratory::suite;
use crate::outcome::{Done, Failure};
use slablab_linux::build::{Built, untouched_answer};
use slablab_linux::history::{Checkout, Commit, Made, Repository};
use slablab_replay::output::patch_answer;
use slablab_replay::replay::{Options, replay};
use slablab_report::{Error, visible};
use std::path::PathBuf;

/// Caches that the answer of a replay lists.
const CACHES: usize = 15;

/// Compares a kernel tree with itself and a patch.
#[derive(clap::Args)]
#[command(
    after_help = "Without --run and --replay all workloads of `slablab suite` are run. The tree is only read: a git repository is taken at HEAD, another tree as it is.\n\nExamples:\n  slablab linux patch my.patch -C ~/linux --replay load.perf.data\n  slablab linux patch 0001-*.patch 0002-*.patch -C ~/linux --quick --format mmtests --wrap 72\n  slablab linux patch my.patch -C ~/linux --run 2026 --html page.html"
)]
pub(super) struct Args {
    /// Patches, which are applied in this order
    #[arg(value_name = "FILE.patch", required = true)]
    patches: Vec<PathBuf>,
    /// The top folder of the kernel tree
    #[arg(short = 'C', long, value_name = "TREE", default_value = ".")]
    tree: PathBuf,
    #[command(flatten)]
    what: What,
    /// Without --run and --replay: only these workloads
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', conflicts_with_all = ["run", "replay"])]
    workload: Vec<String>,
    #[command(flatten)]
    way: WayArgs,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    look: Look,
    /// Also write a page to FILE: self-contained HTML for any browser
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<Done, Failure> {
    check_page(&args.html, args.patches.iter().chain(args.what.files()).chain(args.way.files()))?;
    let job = Job::of(&args.what, &args.how)?;
    let repository = Repository::open(&args.tree)?;
    let mut watch = Watch::new()?;
    let Some(base) = repository.head(&mut || watch.goes_on())? else { return Ok(watch.ended()) };
    let patched = repository.patched(&base, &args.patches)?;
    let Some(mut checkout) = Checkout::of(&repository, &args.way.way(), &mut |step| watch.at(step))? else {
        return Ok(watch.ended());
    };
    let mut build = |commit: &Commit, what: &str| -> Result<Option<Built>, Failure> {
        watch.shows(what);
        match checkout.build(commit, &mut |step| watch.at(step))? {
            None => Ok(None),
            Some(Made::Built(built)) => Ok(Some(*built)),
            Some(Made::DoesNotBuild(words)) => {
                Err(Error::new(&commit.title, format!("{what} does not build: {words}")).into())
            }
        }
    };
    let Some(first) = build(&base, "the base")? else { return Ok(watch.ended()) };
    let read = repository.store().sources(&first);
    if !patched.paths.iter().any(|path| read.contains(path)) {
        let answer = untouched_answer(&patched.title, &base.id, &patched.paths, read.len());
        args.look.print(&answer, args.html.as_deref())?;
        return Ok(Done::Complete);
    }
    let Some(second) = build(&patched, "the base with the patch")? else { return Ok(watch.ended()) };
    drop((watch, checkout));
    let names = [first, second].map(|built| format!("linux:{}", built.name));
    let tree = visible::path(repository.tree());
    // A tree without commits has its path for a title.
    let tree = if tree == base.title { tree } else { format!("{tree} {}", base.title) };
    let about = format!("{} is {tree}; {} has {} on it.", names[0], names[1], patched.title);
    let page = args.html.as_deref();
    match job {
        None => suite::compare((&names, Some(&about)), &args.workload, (&args.how, None), &args.look, page),
        Some(Job::Run { mut experiment, options }) => {
            let file = &mut experiment.file;
            file.title = format!("{} ({})", file.title, about.trim_end_matches('.'));
            file.engines = names
                .iter()
                .map(|name| Ok((name.clone(), costed(name, "--run")?)))
                .collect::<Result<_, Failure>>()?;
            (file.published, file.expect, file.linear, file.merit) =
                (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            let results = answer(&experiment, &options, args.how.folder.as_deref())?;
            args.look.answer(&results, false, (page, options.threads))?;
            Ok(done(&results))
        }
        Some(Job::Replay { reader, path, options }) => {
            if args.how.folder.is_some() {
                let what = "a replay has no results to keep: expected no --folder beside --replay";
                return Err(format!("--folder: {what}").into());
            }
            let engines = names.iter().map(|name| engine(name, "--replay"));
            let options = Options { engines: engines.collect::<Result<_, Failure>>()?, ..*options };
            let progress = Progress::new("replay");
            let replayed = replay(&reader, &path, &options, &|done, whole| progress.at(done, whole))?;
            drop(progress);
            let answer = patch_answer(&replayed, CACHES).remarks([about]).within(args.look.wrap());
            args.look.print(&answer, page)?;
            Ok(if replayed.metadata.is_incomplete() { Done::Incomplete } else { Done::Complete })
        }
    }
}
