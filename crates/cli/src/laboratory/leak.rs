//! `slablab leak`: what grows, who holds it, which code allocates it, what ends it.
//!
//! ```text
//! run
//!   live                 this machine: snapshot, recording, snapshot, in one file
//!     record::window       perf or tracefs, with call chains
//!     snapshots            where neither can record: the states alone
//!   Evidence::read       that file, one of another machine, or a dump
//!   examine, leak_answer the answer
//! ```

use crate::input::{InputArgs, Progress, command_line, duration};
use crate::interrupts::Interrupts;
use crate::laboratory::record;
use crate::laboratory::temporary::Temporary;
use crate::outcome::{Done, Failure};
use crate::output::{Format, OutputArgs, named};
use slablab_doctor::state::{Input, State, read};
use slablab_replay::leak::{Evidence, examine};
use slablab_replay::output::leak_answer;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long this machine is looked at without `--for`.
const TIME: Duration = Duration::from_secs(60);
/// Parts of the time between snapshots, where there is no recording to tell how something grew.
const PARTS: u32 = 4;

/// Finds what grows.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  sudo slablab leak                                 this machine, for a minute
  sudo slablab leak --for 10m --save leak.tar       a slow leak; the file is for somebody else
  slablab leak leak.tar                             the same answer from that file, or one of `slablab record -g`
  slablab leak friday.tar --since monday.tar        two dumps: what grew, and who holds it
  slablab leak sosreport.tar.xz                     one snapshot: who holds what

docs/leak.md shows a session. Without root, or without perf and tracefs, it tells what it can, and what is missing.")]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,
    /// How long to look at this machine, for example 30s, 2m or 1h [default: 60s]; Ctrl-C ends it early
    #[arg(long = "for", value_name = "TIME", value_parser = duration, conflicts_with = "input")]
    time: Option<Duration>,
    /// Also keep snapshots and recording in FILE, for use as INPUT elsewhere. It has addresses of the kernel
    #[arg(long, value_name = "FILE", conflicts_with = "input")]
    save: Option<PathBuf>,
    /// Earlier snapshot of the same machine; may be repeated
    #[arg(long, value_name = "DUMP", requires = "input")]
    since: Vec<PathBuf>,
    /// Size of the kernel's buffer for each CPU in MB: a larger one loses fewer events
    #[arg(long, value_name = "MB", conflicts_with = "input",
        value_parser = clap::value_parser!(u64).range(1..=4096))]
    buffer: Option<u64>,
    /// Number of call sites to list for each suspect
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    top: u32,
    /// All columns, also those that do not fit the terminal
    #[arg(long)]
    wide: bool,
    #[command(flatten)]
    out: OutputArgs<Format>,
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    let inputs = named("the input", &args.input.input).chain(named("--since", &args.since));
    args.out.check(inputs.chain(named("--save", &args.save)))?;
    let evidence = match args.input.input {
        Some(_) => file(&args.input.asked(args.input.input.clone()), &args.since)?,
        None => live(&args)?,
    };
    let leak = examine(&evidence)?;
    args.out.answer(&leak_answer(&leak, args.top as usize), &command_line(), args.wide)?;
    let incomplete = leak.report.measured.is_incomplete();
    Ok(if incomplete { Done::Incomplete } else { Done::Complete })
}

fn file(input: &Input, since: &[PathBuf]) -> Result<Evidence, Failure> {
    let progress = Progress::new("leak");
    let _interrupts = Interrupts::new(&progress)?;
    let at = |done, whole| progress.at(done, whole);
    Ok(Evidence::read(input, since, (&mut |events| at(events, events), &at))?)
}

/// Looks at this machine.
fn live(args: &Args) -> Result<Evidence, Failure> {
    let time = args.time.unwrap_or(TIME);
    let name = format!("slablab-leak-{}.recording.tar", std::process::id());
    let temporary = Temporary::new(std::env::temp_dir().join(name));
    let path = args.save.as_deref().unwrap_or(&temporary.0);
    match record::window(path, time, args.buffer) {
        Ok(()) => {
            let input = args.input.asked(Some(path.to_path_buf()));
            let mut evidence = file(&input, &[])?;
            evidence.after.path = if args.save.is_none() { "/".into() } else { evidence.after.path };
            Ok(evidence)
        }
        // A file that was asked for is not done without.
        Err(error) if args.save.is_some() => Err(error),
        Err(error) => snapshots(&args.input, time, &error),
    }
}

/// The states of this machine alone, because of `why`.
fn snapshots(input: &InputArgs, time: Duration, why: &Failure) -> Result<Evidence, Failure> {
    let progress = Progress::new("leak");
    let _interrupts = Interrupts::new(&progress)?;
    let (began, mut states) = (Instant::now(), Vec::<State>::new());
    for part in 0..=PARTS {
        let due = time * part / PARTS;
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        states.push(read(&input.asked(None))?);
        progress.at(part.into(), PARTS.into());
    }
    let after = states.pop().expect("the last one was just read");
    let lacks = vec![format!("nothing was recorded, so the code that allocates is not known: {why}")];
    Ok(Evidence { after, earlier: states, sites: None, lacks })
}
