//! `slablab linux commits BASE..HEAD`: which commit of a series moves which number.

use super::job::{Job, What};
use super::{Watch, allocator};
use crate::laboratory::run::{How, Look, check_page};
use crate::outcome::{Done, Failure};
use slablab_experiment::Shard;
use slablab_experiment::output::series_answer;
use slablab_experiment::series::{Entry, Kept, Ran, Series, State};
use slablab_linux::build::Allocator;
use slablab_linux::history::{Checkout, Commit, Made, Range, Repository, Way, is_needed};
use slablab_report::visible;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

/// Compares the commits of a kernel tree.
#[derive(clap::Args)]
#[command(
    group(clap::ArgGroup::new("what").required(true).args(["run", "replay"])),
    after_help = "Each commit that touches a file of the allocator's build is built and run; the tree and its git repository are only read. What was built and run is kept, so the same command goes on after an interruption.\n\nExamples:\n  slablab linux commits v7.2..HEAD -C ~/linux --replay load.perf.data\n  slablab linux commits origin/master.. -C ~/linux --run 2026 --quick --html page.html\n  slablab linux commits v7.2.. --replay load.perf.data --folder results --shard 1/2\n  slablab linux commits v7.2.. --replay load.perf.data --folder results --cached"
)]
pub(super) struct Args {
    /// Commits, as git writes them; each is compared with the one before it, the first one with BASE
    #[arg(value_name = "BASE..HEAD")]
    range: String,
    /// The top folder of the kernel tree, a git repository
    #[arg(short = 'C', long, value_name = "TREE", default_value = ".")]
    tree: PathBuf,
    #[command(flatten)]
    what: What,
    #[command(flatten)]
    way: WayArgs,
    #[command(flatten)]
    how: How,
    /// Build and run a part of the commits that touch the allocator, as 3/8; with the folders' files in one
    /// folder, --cached shows all
    #[arg(long, value_name = "PART/PARTS", value_parser = Shard::parse, requires = "folder")]
    shard: Option<Shard>,
    /// Build and run nothing: show what earlier calls kept
    #[arg(long, conflicts_with = "shard")]
    cached: bool,
    #[command(flatten)]
    look: Look,
    /// Also write a page to FILE: self-contained HTML for any browser
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// How commits are built.
#[derive(clap::Args)]
pub(super) struct WayArgs {
    /// Configuration (.config) to build with, as for `slablab linux build`
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Allocator, as for `slablab linux build`
    #[arg(long, value_name = "ALLOCATOR", value_parser = allocator)]
    allocator: Option<Allocator>,
    /// Number of compilers at once; without it, the number of CPUs
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
}

impl WayArgs {
    pub(super) fn way(&self) -> Way {
        Way { config: self.config.clone(), allocator: self.allocator, jobs: self.jobs.map(usize::from) }
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.config.iter()
    }
}

pub(super) fn run(args: &Args) -> Result<Done, Failure> {
    check_page(&args.html, args.what.files().chain(args.way.files()))?;
    let repository = Repository::open(&args.tree)?;
    let range = repository.range(&args.range)?;
    let Some(job) = Job::of(&args.what, &args.how)? else { return Err("expected --run or --replay".into()) };
    let mut watch = Watch::new()?;
    let Some(checkout) = Checkout::of(&repository, &args.way.way(), &mut |step| watch.at(step))? else {
        return Ok(watch.ended());
    };
    let folder = args.how.folder.clone().unwrap_or_else(|| repository.store().results());
    let words = vec![checkout.tools(), checkout.suffix().to_string()];
    let kept = job.kept(&folder, &args.what, &args.how, words)?;
    let mut walk = Walk {
        checkout,
        kept,
        job,
        watch,
        cached: args.cached,
        read: Default::default(),
        is_broken: false,
        only: None,
    };
    let Some(commits) = walk.series(&range, args.shard)? else { return Ok(walk.watch.ended()) };
    let part = args.shard.map(|Shard { part, of }| format!("part {} of {of}", part + 1)).unwrap_or_default();
    let tree = visible::path(repository.tree());
    let series = Series { tree, range: args.range.clone(), of: walk.job.shown(), commits, part };
    args.look
        .print(&series_answer(&series, args.look.wide).within(args.look.wrap()), args.html.as_deref())?;
    let lacks = series.commits.iter().any(|entry| entry.state.problem().is_some());
    Ok(if lacks { Done::Incomplete } else { Done::Complete })
}

/// The way through the commits.
struct Walk<'a> {
    checkout: Checkout<'a>,
    kept: Kept,
    job: Job,
    watch: Watch,
    cached: bool,
    /// The files that the builds of the base and of the last commit read.
    read: [BTreeSet<String>; 2],
    /// Whether the last commit that was looked at does not build.
    is_broken: bool,
    /// The commits that are built and run, by their places; `None` for all.
    only: Option<std::ops::Range<usize>>,
}

impl Walk<'_> {
    /// Every commit, the base first; `None` if a signal came.
    fn series(&mut self, range: &Range, shard: Option<Shard>) -> Result<Option<Vec<Entry>>, Failure> {
        let whole = range.commits.len();
        let Some(base) = self.visit(&range.base, &format!("base of {whole}"))? else { return Ok(None) };
        if self.cached && base.state == State::NotRun {
            let what = "nothing is kept of this base, with this program, compiler and job: expected a call without --cached \
                        first, or another --folder";
            return Err(format!("--cached: {what}").into());
        }
        self.read[0] = self.read[1].clone();
        self.only = shard.map(|shard| self.block(range, shard));
        let mut entries = vec![base];
        for (at, commit) in range.commits.iter().enumerate() {
            if !self.touches(commit) {
                entries.push(entry(commit, State::Untouched));
                continue;
            }
            let shown = format!("{} of {whole}", at + 1);
            let is_mine = self.only.as_ref().is_none_or(|only| only.contains(&at));
            let found = if is_mine { self.visit(commit, &shown)? } else { Some(self.known(commit)) };
            let Some(found) = found else { return Ok(None) };
            self.is_broken = matches!(found.state, State::DoesNotBuild(_));
            entries.push(found);
        }
        Ok(Some(entries))
    }

    /// The places of a part: as many commits that touch the allocator as the other parts have.
    fn block(&self, range: &Range, Shard { part, of }: Shard) -> std::ops::Range<usize> {
        let touching: Vec<usize> =
            (0..range.commits.len()).filter(|at| self.touches(&range.commits[*at])).collect();
        let begin = |part: usize| match part {
            0 => 0,
            part => touching.get(part * touching.len() / of).copied().unwrap_or(range.commits.len()),
        };
        begin(part)..begin(part + 1)
    }

    /// Whether a commit changes a file that a build before it read. Without such a build every commit may.
    /// After one that does not build, any commit that changes what a build can read may be the one that
    /// builds.
    fn touches(&self, commit: &Commit) -> bool {
        let is_read = |path: &String| self.read.iter().any(|read| read.contains(path));
        let may_be_read = |path: &String| self.is_broken && is_needed(path);
        let is_read = |path: &String| is_read(path) || may_be_read(path);
        self.read.iter().all(BTreeSet::is_empty) || commit.paths.iter().any(is_read)
    }

    /// What is kept of a commit.
    fn known(&mut self, commit: &Commit) -> Entry {
        match self.kept.read(&commit.id) {
            Some((entry, read)) => {
                if !read.is_empty() {
                    self.read[1] = read.into_iter().collect();
                }
                entry
            }
            None => entry(commit, State::NotRun),
        }
    }

    /// Builds and runs a commit, unless that is kept; `None` if a signal came.
    fn visit(&mut self, commit: &Commit, shown: &str) -> Result<Option<Entry>, Failure> {
        let known = self.known(commit);
        if self.cached || known.state != State::NotRun {
            return Ok(Some(known));
        }
        self.watch.shows(shown);
        let begun = Instant::now();
        let Walk { checkout, watch, .. } = self;
        let Some(made) = checkout.build(commit, &mut |step| watch.at(step))? else { return Ok(None) };
        let mut found = Entry { build_s: Some(begun.elapsed().as_secs_f64()), ..known };
        watch.clear();
        match made {
            Made::DoesNotBuild(words) => found.state = State::DoesNotBuild(words),
            Made::Built(built) => {
                self.read[1] = checkout.sources(&built);
                found.digest = Some(built.digest.clone());
                let begun = Instant::now();
                let engine = format!("linux:{}", built.name);
                found.state = match self.job.run(&engine, &format!("{shown}: run"), &watch.signal)? {
                    Ran::Measured(measured) => State::Measured(measured),
                    Ran::Ended(words) => State::Ended(words),
                };
                found.run_s = Some(begun.elapsed().as_secs_f64());
            }
        }
        let read: Vec<String> = match found.digest {
            Some(_) => self.read[1].iter().cloned().collect(),
            None => Vec::new(),
        };
        self.kept.write(&found, &read)?;
        Ok(Some(found))
    }
}

fn entry(commit: &Commit, state: State) -> Entry {
    let (id, title) = (commit.id.clone(), commit.title.clone());
    Entry { id, title, state, digest: None, build_s: None, run_s: None }
}
