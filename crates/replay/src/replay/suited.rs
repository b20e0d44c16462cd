//! Whether a dump and a machine suit a recording.

use super::Options;
use slablab_readers::bundle::Dump;
use slablab_report::error::{Error, Result};
use slablab_slabs::Release;
use slablab_trace::Metadata;
use std::path::Path;

/// Refuses a dump of another kernel than the recording's (another release, architecture or page size), or one
/// that was taken after the recording began. What one of the two does not tell is not compared.
///
/// # Errors
/// The first difference. [`Options::force`] makes all of them warnings, which are returned.
pub(super) fn check(metadata: &Metadata, options: &Options, recording: &Path) -> Result<Vec<String>> {
    let Some(before) = &options.before else { return Ok(Vec::new()) };
    let Some(dump) = &before.dump else { return Ok(Vec::new()) };
    let mut found = differences(metadata, dump, options.release, recording);
    // What `slablab record` put into one file belongs together.
    if before.path != recording {
        found.extend(late(metadata, dump, recording));
    }
    refuse(&before.path, found, options)
}

/// As [`check`], for a dump at `path` after the recording: of another kernel or boot, or taken before the
/// recording's end.
///
/// # Errors
/// The first difference, as [`check`].
pub(crate) fn check_after(
    metadata: &Metadata,
    options: &Options,
    recording: &Path,
    (path, after): (&Path, &Dump),
) -> Result<Vec<String>> {
    let mut found = differences(metadata, after, options.release, recording);
    let before = options.before.as_ref();
    // What `slablab record` put into one file belongs together.
    if path != recording {
        found.extend(early(metadata, after, recording));
    }
    if let Some((before, dump)) = before.and_then(|before| Some((before, before.dump.as_ref()?)))
        && path != before.path
    {
        found.extend(another_boot(dump, after, &before.path));
    }
    refuse(path, found, options)
}

fn refuse(path: &Path, found: Vec<String>, options: &Options) -> Result<Vec<String>> {
    match found.first() {
        Some(first) if !options.force => {
            Err(Error::new(path, format!("{first}; --force takes it all the same")))
        }
        _ => Ok(found.iter().map(|what| format!("{}: {what}", path.display())).collect()),
    }
}

/// Seconds since boot of the recording's first and last row; `None` if its clock does not count from there.
fn moments(metadata: &Metadata) -> Option<(f64, f64)> {
    const SINCE_BOOT: [&str; 9] = [
        "perf",
        "local",
        "global",
        "mono",
        "mono_raw",
        "boot",
        "monotonic",
        "boottime",
        "seconds since boot",
    ];
    let clock = metadata.clock.as_deref()?;
    let statistics = &metadata.statistics;
    let seconds = |ns: u64| ns as f64 / 1e9;
    SINCE_BOOT.contains(&clock).then(|| (seconds(statistics.first_time_ns), seconds(statistics.last_time_ns)))
}

/// By how much two clocks of a machine may differ: they begin some seconds apart, and tick by 0.1 % apart.
fn slack(seconds: f64) -> f64 {
    5.0 + seconds / 1000.0
}

fn late(metadata: &Metadata, before: &Dump, recording: &Path) -> Option<String> {
    let ((first, _), up) = (moments(metadata)?, before.up_s?);
    let by = up - first;
    (by > slack(first)).then(|| {
        format!(
            "taken {} after {} began (if the machine did not sleep: then recordings' clocks stand still), or in \
             another boot: expected a dump from before it",
            spoken(by),
            recording.display()
        )
    })
}

fn early(metadata: &Metadata, after: &Dump, recording: &Path) -> Option<String> {
    let ((_, last), up) = (moments(metadata)?, after.up_s?);
    let by = last - up;
    (by > slack(last)).then(|| {
        format!(
            "taken {} before {} ended, or in another boot: expected a dump from after it",
            spoken(by),
            recording.display()
        )
    })
}

/// What tells that two dumps are not of one boot, in this order.
fn another_boot(before: &Dump, after: &Dump, before_path: &Path) -> Option<String> {
    /// Dates and uptimes are read one after the other, and clocks are set.
    const APART_S: f64 = 120.0;
    let (earlier, later) = (before.up_s?, after.up_s?);
    if later < earlier {
        let by = spoken(earlier - later);
        let path = before_path.display();
        return Some(format!("taken {by} of uptime before {path}: the dumps are of two boots, or exchanged"));
    }
    let booted = |dump: &Dump, up: f64| Some(dump.date_s? as f64 - up);
    let apart = booted(after, later)? - booted(before, earlier)?;
    (apart.abs() > APART_S).then(|| {
        format!("of a boot {} {} that of {}", spoken(apart.abs()), ordered(apart), before_path.display())
    })
}

fn ordered(apart: f64) -> &'static str {
    if apart > 0.0 { "after" } else { "before" }
}

/// A time in words.
fn spoken(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.0} s"),
        ..7200.0 => format!("{:.0} min", seconds / 60.0),
        ..172_800.0 => format!("{:.0} h", seconds / 3600.0),
        _ => format!("{:.0} days", seconds / 86_400.0),
    }
}

/// What the dump is and the recording is not.
fn differences(metadata: &Metadata, dump: &Dump, said: Option<Release>, recording: &Path) -> Vec<String> {
    let release = |text: &Option<String>| text.as_deref().and_then(Release::parse);
    let mut found = Vec::new();
    if let (Some(recorded), Some(dumped)) = (said.or(release(&metadata.release)), release(&dump.release))
        && recorded != dumped
    {
        found.push(format!("a dump of release {dumped}, not of {recorded}"));
    }
    if let (Some(recorded), Some(dumped)) = (&metadata.architecture, &dump.arch)
        && family(recorded) != family(dumped)
    {
        found.push(format!("a dump of a machine of {dumped}, not of {recorded}"));
    }
    if let (Some(recorded), Some((dumped, _))) = (metadata.page_size_bytes, dump.page_size)
        && recorded != dumped
    {
        found.push(format!(
            "a dump of a machine with pages of {}K, not of {}K",
            dumped >> 10,
            recorded >> 10
        ));
    }
    found.iter().map(|what| format!("{what} as {}", recording.display())).collect()
}

/// The names of one architecture: `uname -m` and those of distributions.
fn family(arch: &str) -> &str {
    match arch {
        "amd64" => "x86_64",
        "arm64" => "aarch64",
        "i386" | "i486" | "i586" => "i686",
        other => other,
    }
}

/// Says that CPUs are idle if the machine has more than the recording.
pub(super) fn idle(metadata: &Metadata, cpus: usize) -> Option<String> {
    let online = metadata.topology.cpus_online.unwrap_or(0);
    let recorded = online.max(metadata.statistics.cpu_ids) as usize;
    (recorded > 0 && cpus > recorded).then(|| {
        format!(
            "the recording is of {recorded} CPUs, the machine has {cpus}: every row stays on its CPU, and the \
             other {} are idle; a recording does not tell what more CPUs would do",
            cpus - recorded
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use slablab_trace::Statistics;

    /// Of a recording from second 1,000 to 1,010, and dumps with uptime and date.
    #[track_caller]
    fn check_times(
        clock: &str,
        (before_up, before_date): (f64, Option<u64>),
        (after_up, after_date): (f64, Option<u64>),
        expected: [Option<&str>; 3],
    ) {
        let statistics = Statistics {
            first_time_ns: 1_000_000_000_000,
            last_time_ns: 1_010_000_000_000,
            ..Statistics::default()
        };
        let metadata = Metadata { clock: Some(clock.into()), statistics, ..Metadata::default() };
        let dump = |up: f64, date_s| Dump { up_s: Some(up), date_s, ..Dump::default() };
        let (before, after) = (dump(before_up, before_date), dump(after_up, after_date));
        let path = Path::new("load.data");
        let found = [
            late(&metadata, &before, path),
            early(&metadata, &after, path),
            another_boot(&before, &after, Path::new("before")),
        ];
        for (found, expected) in found.iter().zip(expected) {
            match (found, expected) {
                (Some(found), Some(expected)) => assert!(found.starts_with(expected), "{found}"),
                (found, expected) => assert_eq!((found.is_none(), expected), (true, None), "{found:?}"),
            }
        }
    }

    #[test]
    fn dumps_stand_around_their_recording() {
        let none = [None; 3];
        check_times("perf", (990.0, None), (1012.0, None), none);
        // The clocks of kernel and recorder differ by some seconds.
        check_times("perf", (1004.0, None), (1006.0, None), none);
        let late = Some("taken 14 min after load.data began");
        check_times("perf", (1840.0, None), (1900.0, None), [late, None, None]);
        let early = Some("taken 8 min before load.data ended");
        check_times("global", (400.0, None), (500.0, None), [None, early, None]);
        check_times("since the first event", (1840.0, None), (1900.0, None), none);
    }

    #[test]
    fn dumps_are_of_one_boot() {
        let date = 1_795_000_000;
        check_times("perf", (990.0, Some(date)), (1020.0, Some(date + 30)), [None; 3]);
        let exchanged = Some("taken 20 s of uptime before before");
        check_times("perf", (1000.0, None), (1020.0, None), [None; 3]);
        check_times("since the first event", (1020.0, None), (1000.0, None), [None, None, exchanged]);
        let later = Some("of a boot 24 h after that of before");
        check_times("perf", (990.0, Some(date)), (1020.0, Some(date + 30 + 86_400)), [None, None, later]);
    }
}
