//! `slablab replay RECORDING`: the project's main job.

use crate::input::{Progress, command_line};
use crate::laboratory::choice::Choice;
use crate::laboratory::recording::open;
use crate::outcome::{Done, Failure, tell};
use crate::output::{Format, OutputArgs, named, write_out};
use slablab_replay::map::slab_map;
use slablab_replay::output::{cache_answer, map_page, replay_answer};
use slablab_replay::replay::hotplug::{Command, nanoseconds};
use slablab_replay::replay::{Evidence, Options, Replay, replay};
use slablab_report::visible;
use slablab_trace::Reader;
use std::path::{Path, PathBuf};

/// Replays a recording.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Recording: a trace, or perf.data, trace.dat, text or tidy CSV (plain, gz, zst, xz), which is imported
    /// first
    recording: PathBuf,
    #[command(flatten)]
    choice: Choice,
    /// Take CPUs or a node offline or online at TIME after the recording's start, for example
    /// `--at 1.5s cpu3=off --at 2s node1=on`; may be repeated
    #[arg(long, num_args = 2, value_names = ["TIME", "CPUS"])]
    at: Vec<String>,
    /// Show every counter of one cache
    #[arg(long, value_name = "NAME")]
    cache: Option<String>,
    /// Number of caches to list for each engine
    #[arg(long, value_name = "N", default_value_t = 15)]
    top: usize,
    /// Also write the slab map of one cache (--cache, or the one with most slabs): a page that plays where
    /// each object is, event by event, one engine beside the other (FILE.html), or one moment as a drawing
    /// (FILE.svg, with --map-at)
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// The moment that the slab map shows, after the recording's start, for example 1.5s [default: the end]
    #[arg(long, value_name = "TIME", requires = "map")]
    map_at: Option<String>,
    /// Print each engine's replay speed and the memory of its model on standard error
    #[arg(long)]
    timing: bool,
    /// All columns, also those that do not fit the terminal
    #[arg(long)]
    wide: bool,
    #[command(flatten)]
    out: OutputArgs<Format>,
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    let inputs = || named("the recording", [&args.recording]).chain(args.choice.start.files());
    args.out.check_with(inputs(), named("--map", &args.map))?;
    let map = args.map.as_deref().map(|path| Map::new(path, args.map_at.as_deref())).transpose()?;
    let mut options = args.choice.options(&args.recording)?;
    options.evidence = Evidence::Pages;
    options.hotplug =
        args.at.chunks_exact(2).map(|pair| command(&pair[0], &pair[1])).collect::<Result<_, _>>()?;
    let reader = open(&args.recording, None)?;
    let progress = Progress::new("replay");
    let replayed = replay(&reader, &args.recording, &options, &|done, whole| progress.at(done, whole))?;
    drop(progress);
    let missing = |name| format!("{}: no cache is called {name}", visible::path(&args.recording));
    let answer = match &args.cache {
        None => replay_answer(&replayed, args.top),
        Some(name) => cache_answer(&replayed, name, args.top).ok_or_else(|| missing(name))?,
    };
    if let Some(map) = &map {
        map.write(&reader, &options, &replayed, &args)?;
    }
    args.out.answer(&answer, &command_line(), args.wide)?;
    for outcome in replayed.outcomes.iter().filter(|_| args.timing) {
        let seconds = outcome.elapsed.as_secs_f64();
        tell(format_args!(
            "{}: {} rows in {seconds:.3} s, {:.1} million/s, {:.1} ns each; model tables {} K",
            outcome.engine(),
            outcome.rows,
            outcome.rows as f64 / seconds / 1e6,
            seconds * 1e9 / outcome.rows as f64,
            outcome.model_bytes / 1024
        ));
    }
    if args.out.format != Format::Table {
        answer.said().for_each(tell);
    }
    Ok(if replayed.metadata.is_incomplete() { Done::Incomplete } else { Done::Complete })
}

/// The slab map that was asked for.
struct Map<'a> {
    path: &'a Path,
    /// Whether it is one drawing, not a page.
    is_drawing: bool,
    at_ns: Option<u64>,
}

impl<'a> Map<'a> {
    fn new(path: &'a Path, at: Option<&str>) -> Result<Map<'a>, Failure> {
        let is_drawing = match path.extension().and_then(|end| end.to_str()) {
            Some("html" | "htm") => false,
            Some("svg") => true,
            _ => {
                let what = "expected a file whose name ends in .html (a page) or .svg (one moment)";
                return Err(format!("--map {}: {what}", visible::path(path)).into());
            }
        };
        let at_ns = at.map(|text| {
            nanoseconds(text)
                .ok_or_else(|| format!("--map-at {text}: expected a time as 1.5s, 20ms or 300us"))
        });
        Ok(Map { path, is_drawing, at_ns: at_ns.transpose()? })
    }

    fn write(&self, reader: &Reader, options: &Options, answer: &Replay, args: &Args) -> Result<(), Failure> {
        let progress = Progress::new("map");
        let cache = args.cache.as_deref();
        let map = slab_map((reader, &args.recording), options, answer, cache, &|done, whole| {
            progress.at(done, whole);
        })?;
        drop(progress);
        let at_ns = self.at_ns.map(|at| map.start_ns.saturating_add(at));
        let text = match self.is_drawing {
            true => map.drawing(at_ns),
            false => map_page(&map, answer, &command_line(), at_ns),
        };
        write_out(&text, Some(self.path))
    }
}

fn command(time: &str, what: &str) -> Result<Command, Failure> {
    Command::parse(time, what).map_err(|bad| format!("--at {time} {what}: {bad}").into())
}
