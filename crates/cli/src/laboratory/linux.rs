//! `slablab linux`: allocators of kernel trees, built to run as engines.

mod commits;
mod job;
mod patch;

use crate::input::{Progress, command_line};
use crate::interrupts::polled;
use crate::outcome::{Done, Failure};
use crate::output::{Format, OutputArgs, named};
use slablab_linux::build::{
    Allocator, Part, Request, Step, Store, built_answer, list_answer, name, removed_answer,
};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Builds the slab allocator of a kernel tree.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab linux build ~/linux\n  slablab linux build ~/linux --name mine --config /boot/config-6.1.0-50-amd64\n  slablab replay now.recording.tar --engine slub@6.1 --engine linux:mine\n  slablab linux list\n  slablab linux remove mine\n  slablab linux commits v7.2..HEAD -C ~/linux --replay load.perf.data\n  slablab linux patch my.patch -C ~/linux --replay load.perf.data"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Build the allocator of the kernel tree at PATH, unchanged, with the tree's own kbuild
    Build(Build),
    /// List what is built, and whether it is what the trees have
    List(List),
    /// Remove builds
    Remove(Remove),
    /// Build and run each commit of a series: which one moves which number
    Commits(Box<commits::Args>),
    /// Compare a tree with itself and a patch: a table for the cover letter
    Patch(Box<patch::Args>),
}

#[derive(clap::Args)]
#[command(
    after_help = "Nothing is written into the tree. Builds are kept in $XDG_CACHE_HOME/slablab/linux, or ~/.cache.\n\nExamples:\n  slablab linux build ~/linux\n  slablab linux build ~/linux --name patched\n  slablab linux build ~/linux --name slab --allocator slab\n  slablab linux build ~/linux --config /boot/config-6.1.0-50-amd64 --jobs 4"
)]
struct Build {
    /// The folder of a kernel tree for x86-64, as a git checkout
    path: PathBuf,
    /// Configuration (.config) to build with; what an image needs is changed in it, and the answer lists that
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Name of the build, for `--engine linux:NAME`: letters, digits, ., - and _; without it, the name of the
    /// tree's folder
    #[arg(long, value_name = "NAME", value_parser = checked_name)]
    name: Option<String>,
    /// Allocator, of those that the tree has: slub, slab (until 6.7) or slob (until 6.3); without it, the one
    /// that --config chooses (CONFIG_SLAB=y, CONFIG_SLOB=y), else slub
    #[arg(long, value_name = "ALLOCATOR", value_parser = allocator)]
    allocator: Option<Allocator>,
    /// Number of compilers at once; without it, the number of CPUs
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// All changed options, and the symbols without a meaning outside of a kernel
    #[arg(long)]
    wide: bool,
    #[command(flatten)]
    out: OutputArgs<Format>,
}

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  slablab linux list\n  slablab linux list --format json")]
struct List {
    /// All columns, also those that do not fit the terminal
    #[arg(long)]
    wide: bool,
    #[command(flatten)]
    out: OutputArgs<Format>,
}

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  slablab linux remove mine\n  slablab linux remove --all")]
struct Remove {
    /// Names of builds
    #[arg(value_name = "NAME", required_unless_present = "all")]
    names: Vec<String>,
    /// Remove all builds, and what kbuild made for them
    #[arg(long, conflicts_with = "names")]
    all: bool,
    #[command(flatten)]
    out: OutputArgs<Format>,
}

fn checked_name(text: &str) -> Result<String, String> {
    name::check(text).map(|()| text.to_string())
}

fn allocator(text: &str) -> Result<Allocator, String> {
    Allocator::of(text).ok_or_else(|| format!("expected slub, slab or slob, found {text:?}"))
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    match args.verb {
        Verb::Build(args) => build(args),
        Verb::List(args) => {
            args.out.check([])?;
            let entries = Store::usual()?.list();
            args.out.answer(&list_answer(&entries), &command_line(), args.wide)?;
            Ok(Done::Complete)
        }
        Verb::Remove(args) => remove(&args),
        Verb::Commits(args) => commits::run(&args),
        Verb::Patch(args) => patch::run(&args),
    }
}

fn build(args: Build) -> Result<Done, Failure> {
    args.out.check(named("PATH", [&args.path]).chain(named("--config", &args.config)))?;
    args.out.expect_writable()?;
    let request = Request {
        tree: args.path,
        config: args.config,
        name: args.name,
        allocator: args.allocator,
        jobs: args.jobs.map(usize::from),
        origin: None,
    };
    let mut watch = Watch::new()?;
    let built = slablab_linux::build::build(&request, &mut |step| watch.at(step))?;
    let Some(built) = built else { return Ok(watch.ended()) };
    drop(watch);
    args.out.answer(&built_answer(&built, args.wide), &command_line(), args.wide)?;
    Ok(Done::Complete)
}

fn remove(args: &Remove) -> Result<Done, Failure> {
    args.out.check([])?;
    let store = Store::usual()?;
    let (names, bytes) = match args.all {
        true => store.remove_all()?,
        false => (args.names.clone(), store.remove(&args.names)?),
    };
    args.out.answer(&removed_answer(&names, bytes), &command_line(), false)?;
    Ok(Done::Complete)
}

/// Shows the part of the build that is under way, and stops when a signal says so.
struct Watch {
    shown: Option<(Part, Progress)>,
    /// What is built, if that is one of several.
    what: String,
    signal: Arc<AtomicUsize>,
}

impl Watch {
    fn new() -> Result<Watch, Failure> {
        let signal = polled()?;
        Ok(Watch { shown: None, what: String::new(), signal })
    }

    /// Names what is built from now on.
    fn shows(&mut self, what: &str) {
        self.clear();
        self.what = format!("{what}: ");
    }

    fn clear(&mut self) {
        self.shown = None;
    }

    /// Whether no signal came.
    fn goes_on(&self) -> bool {
        self.signal.load(Relaxed) == 0
    }

    fn at(&mut self, step: Step) -> ControlFlow<()> {
        if self.shown.as_ref().is_none_or(|(part, _)| *part != step.part) {
            self.shown = Some((step.part, Progress::new(&format!("{}{}", self.what, step.part.words()))));
        }
        if let Some((_, progress)) = &self.shown {
            progress.at(step.done, step.whole);
        }
        if self.goes_on() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn ended(&self) -> Done {
        Done::Ended { signal: self.signal.load(Relaxed) as i32 }
    }
}
