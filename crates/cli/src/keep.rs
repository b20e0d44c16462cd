//! `slablab watch`: snapshots of this machine, every hour and kept for weeks; and what climbs, from those.
//!
//! ```text
//! run
//!   keep        a snapshot, old ones removed, metrics; again after some time
//!   climbing    the newest snapshot of a folder, and its growth since those of the same boot
//! ```

use crate::input::{Progress, duration};
use crate::interrupts::{Interrupts, polled};
use crate::outcome::{Done, Failure, tell};
use crate::output::{Format, named, write_out};
use crate::rows::ListArgs;
use slablab_doctor::measure::SortKey;
use slablab_doctor::output::{Shown, doctor_answer};
use slablab_doctor::state::{Input, State, read, save};
use slablab_doctor::{Options, examine};
use slablab_report::error::At;
use slablab_report::visible;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The name of a kept snapshot: this, the seconds since 1970, and the ending.
const PREFIX: &str = "slablab-";
const ENDING: &str = ".tar.zst";
/// How often a signal is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Snapshots of which growth is told: more are thinned out, evenly.
const POINTS: usize = 200;

/// Keeps snapshots, and tells what climbs.
#[derive(clap::Args)]
#[group(id = "watch_verb")]
#[command(after_help = "Examples:
  sudo slablab watch --keep /var/lib/slablab               a snapshot every hour, kept for 30 days
  sudo slablab watch --keep DIR --prometheus /var/lib/node_exporter/slablab.prom
  slablab watch /var/lib/slablab                           what climbs, from the kept snapshots
  systemctl enable --now slablab-watch                     the same as a service (Debian package)

docs/watch.md says what is kept. `slablab doctor --watch` is the live screen.")]
pub(crate) struct Args {
    /// Folder of kept snapshots: tell what climbs
    #[arg(value_name = "DIR", required_unless_present = "keep")]
    folder: Option<PathBuf>,
    /// Keep snapshots of this machine in DIR, which is made if it is not there
    #[arg(long, value_name = "DIR", conflicts_with = "folder")]
    keep: Option<PathBuf>,
    /// Time between snapshots, for example 10m or 1h
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration, requires = "keep")]
    every: Duration,
    /// Remove snapshots that are older than N days
    #[arg(long, value_name = "N", default_value_t = 30, requires = "keep",
        value_parser = clap::value_parser!(u64).range(1..=36_500))]
    days: u64,
    /// Also write metrics of each snapshot to FILE, for Prometheus' textfile collector
    #[arg(long, value_name = "FILE", requires = "keep")]
    prometheus: Option<PathBuf>,
    /// Take so many snapshots and end; without it, until a signal comes
    #[arg(long, value_name = "N", requires = "keep", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[command(flatten)]
    list: ListArgs<Format>,
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    args.list.out.check(named("DIR", &args.folder))?;
    let folder = args.keep.as_ref().or(args.folder.as_ref());
    if let Some(file) = folder.filter(|folder| folder.exists() && !folder.is_dir()) {
        return Err(
            format!("{}: expected a folder, of snapshots of `watch --keep`", visible::path(file)).into()
        );
    }
    match (&args.keep, &args.folder) {
        (Some(folder), _) => keep(&args, folder),
        (None, Some(folder)) => climbing(&args, folder),
        (None, None) => Err("expected a folder of snapshots, or --keep DIR".into()),
    }
}

/// Takes snapshots until a signal comes.
fn keep(args: &Args, folder: &Path) -> Result<Done, Failure> {
    std::fs::create_dir_all(folder).at(folder)?;
    let signal = polled()?;
    let mut taken = 0;
    loop {
        let began = Instant::now();
        match snapshot(args, folder) {
            Ok(()) => {}
            // The first tells whether it can work at all; a later one may find a full disk.
            Err(error) if taken == 0 => return Err(error),
            Err(error) => tell(error),
        }
        taken += 1;
        if args.count.is_some_and(|count| taken >= count) {
            return Ok(Done::Complete);
        }
        while began.elapsed() < args.every {
            match signal.load(Relaxed) {
                0 => std::thread::sleep(LOOK_EVERY.min(args.every)),
                number => return Ok(Done::Ended { signal: number as i32 }),
            }
        }
    }
}

/// A snapshot, its metrics, and the end of old ones.
fn snapshot(args: &Args, folder: &Path) -> Result<(), Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let state = save(&folder.join(format!("{PREFIX}{now}{ENDING}")))?;
    for (path, taken) in kept(folder)? {
        if taken.saturating_add(args.days.saturating_mul(86_400)) < now {
            std::fs::remove_file(&path).at(&path)?;
        }
    }
    if let Some(path) = &args.prometheus {
        let report = examine(&state, &Options::default())?;
        let metrics = doctor_answer(&report, &shown(args)).text_of("prometheus", false);
        write_out(&metrics.unwrap_or_default(), Some(path))?;
    }
    Ok(())
}

/// The snapshots of a folder and when each was taken, oldest first. Other files are left alone.
fn kept(folder: &Path) -> Result<Vec<(PathBuf, u64)>, Failure> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).at(folder)? {
        let path = entry.at(folder)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let seconds = name.strip_prefix(PREFIX).and_then(|name| name.strip_suffix(ENDING));
        if let Some(seconds) = seconds.and_then(|seconds| seconds.parse().ok()) {
            found.push((path.clone(), seconds));
        }
    }
    found.sort_by_key(|(_, seconds)| *seconds);
    Ok(found)
}

/// What grew since the first snapshot of the newest one's boot.
fn climbing(args: &Args, folder: &Path) -> Result<Done, Failure> {
    let paths = thinned(kept(folder)?);
    let progress = Progress::new("watch");
    let _interrupts = Interrupts::new(&progress)?;
    let mut states: Vec<State> = Vec::new();
    for (done, path) in (1..).zip(&paths) {
        match read(&Input { path: Some(path.clone()), ..Input::default() }) {
            Ok(state) => states.push(state),
            // One that was cut off by a crash does not take the others away.
            Err(error) => tell(error),
        }
        progress.at(done, paths.len() as u64);
    }
    drop(progress);
    let Some(newest) = states.pop() else {
        let what = format!("no snapshot is in it: expected {PREFIX}SECONDS{ENDING}, as --keep writes them");
        return Err(format!("{}: {what}", slablab_report::visible::path(folder)).into());
    };
    let all = states.len();
    states.retain(|state| state.dump.boot_id == newest.dump.boot_id);
    if states.len() < all {
        tell(format_args!("{} snapshots are of earlier boots, and are left out", all - states.len()));
    }
    let report = examine(&newest, &Options { since: &states, ..Options::default() })?;
    args.list.answer(&doctor_answer(&report, &shown(args)))?;
    Ok(if report.measured.is_incomplete() { Done::Incomplete } else { Done::Complete })
}

/// At most [`POINTS`] of the snapshots, evenly, with the first and the last.
fn thinned(kept: Vec<(PathBuf, u64)>) -> Vec<PathBuf> {
    let all = kept.len();
    let paths: Vec<PathBuf> = kept.into_iter().map(|(path, _)| path).collect();
    if all <= POINTS {
        return paths;
    }
    (0..POINTS).map(|at| paths[at * (all - 1) / (POINTS - 1)].clone()).collect()
}

fn shown(args: &Args) -> Shown {
    Shown { sort: SortKey::Growth, lines: args.list.lines, aliases: false, bytes: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_snapshots_are_thinned_out_evenly() {
        let kept = |count: u64| (0..count).map(|at| (PathBuf::from(at.to_string()), at)).collect::<Vec<_>>();
        for (count, expected) in [(0, 0), (3, 3), (200, 200), (201, 200), (5000, 200)] {
            let paths = thinned(kept(count));
            assert_eq!(paths.len(), expected, "{count}");
            if count > 0 {
                let ends = [&paths[0], &paths[paths.len() - 1]].map(|path| path.display().to_string());
                assert_eq!(ends, ["0".to_string(), (count - 1).to_string()]);
            }
        }
    }
}
