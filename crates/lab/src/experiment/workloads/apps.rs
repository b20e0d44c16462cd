//! `apps`: the application test of September 2001.

use super::desktop::{
    BUFFER, DISK, GAP_LONGEST, GAPS, IN, KSWAPD, MEMORY, OUT, SECOND, SKIPS, VM, estimate, kib, music,
    objects, run, seconds,
};
use super::kernel::{KERNEL, sample, with_kernel};
use crate::experiment::workload::{Kind, Metric, Observed, Pair, Parameter, Values, Workload, ppm};
use slablab_sim::micro::Setup;
use slablab_sim::record::Recorder;
use slablab_sim::tally::Failed;
use slablab_sim::workloads::desktop::apps::{Apps, Variant};
use slablab_sim::workloads::desktop::{Answer, Habits, Test};

/// The workload.
pub(super) const APPS: Workload = Workload {
    name: "apps",
    about: "slocate, GIMP, StarOffice and other applications fill memory, an image is rotated, all are closed",
    parameters: PARAMETERS,
    metrics: &METRICS,
    objects,
    ignores: |_| false,
    check: |_, _| Ok(()),
    estimate,
    observe,
    suite: &[Pair {
        machine: "kulesa-2001",
        parameters: "memory_mib = 128\nfiles = 20000",
        why: "a PC that swaps: dentries, inodes and pages compete",
    }],
};

/// The least number of applications with which 2.4.9-ac14 swaps while they are started, with 3 bytes a pixel:
/// they are to "drive the system into mild swap activity".
const SUITE_APPS: u64 = 6;

const PARAMETERS: &[Parameter] = &[
    VM,
    MEMORY,
    DISK,
    Parameter {
        name: "variant",
        about: "standard: slocate, GIMP, StarOffice, others; or without slocate; or StarOffice first, without it",
        source: "the mail, and its follow-up of 26 September 2001",
        kind: Kind::Word(&["standard", "no-slocate", "office-first"]),
    },
    Parameter {
        name: "mozilla",
        about: "whether Mozilla is one of the other applications",
        source: "the follow-up of 26 September 2001",
        kind: Kind::Word(&["no", "yes"]),
    },
    Parameter {
        name: "music",
        about: "whether mp3 files are played all the time",
        source: "the follow-up of 26 September 2001",
        kind: Kind::Word(&["no", "yes"]),
    },
    BUFFER,
    Parameter {
        name: "files",
        about: "files that slocate looks at",
        source: "assumed: a usual installation has 100,000",
        kind: Kind::Number { least: 0, most: 10_000_000, defaults: [20_000, 100_000, 100_000] },
    },
    Parameter {
        name: "pixel_bytes",
        about: "bytes of a pixel of the image: 4 with a channel of opacity",
        source: "the mail does not tell: 3 (19.7 MB) or 4 (26 MB)",
        kind: Kind::Number { least: 3, most: 4, defaults: [3; 3] },
    },
    Parameter {
        name: "suite_apps",
        about: "applications of the suite; more than five are the five again",
        source: "the mail names none, but \"mild swap activity\"",
        kind: Kind::Number { least: 0, most: 100, defaults: [SUITE_APPS; 3] },
    },
    Parameter {
        name: "pause_s",
        about: "what the user waits before each step after slocate",
        source: "the mail: \"now that some pages have aged a bit\"; 10 s is assumed",
        kind: Kind::Number { least: 0, most: 3_600, defaults: [10; 3] },
    },
    Parameter {
        name: "close_percent",
        about: "percent of the pages which a program needs that it touches when it is closed",
        source: "the middle of 10 to 50 (assumed)",
        kind: Kind::Number { least: 0, most: 100, defaults: [30; 3] },
    },
    Parameter {
        name: "text_percent",
        about: "percent of each cluster of a text that a program touches; 100: all that a fault reads",
        source: "StarOffice reads 60 MB and keeps 12 of them beside its heap (from memory)",
        kind: Kind::Number { least: 1, most: 100, defaults: [20; 3] },
    },
    Parameter {
        name: "running_daemons",
        about: "daemons, of 12, that run from time to time",
        source: "assumed: cron, syslogd and one more",
        kind: Kind::Number { least: 0, most: 12, defaults: [3; 3] },
    },
    Parameter {
        name: "daemon_wake_s",
        about: "how often such a daemon runs",
        source: "cron looks for work each minute; the same for others is assumed",
        kind: Kind::Number { least: 1, most: 3_600, defaults: [60; 3] },
    },
];

/// The parts of the test after which inodes and dentries are counted.
const STEPS: [(&str, &str, &str); 6] = [
    ("slocate", "inodes_slocate", "dentries_slocate"),
    ("image", "inodes_image", "dentries_image"),
    ("office", "inodes_office", "dentries_office"),
    ("suite", "inodes_suite", "dentries_suite"),
    ("rotate", "inodes_rotate", "dentries_rotate"),
    ("close", "inodes_close", "dentries_close"),
];
/// Programs whose absent pages are told, with the metric's name.
const ABSENT: [(&str, &str); 10] = [
    ("daemon", "absent_daemon_kib"),
    ("cron", "absent_cron_kib"),
    ("X", "absent_x_kib"),
    ("gimp", "absent_gimp_kib"),
    ("soffice", "absent_soffice_kib"),
    ("netscape", "absent_netscape_kib"),
    ("mail", "absent_mail_kib"),
    ("editor", "absent_editor_kib"),
    ("gnumeric", "absent_gnumeric_kib"),
    ("terminals", "absent_terminals_kib"),
];

const fn names(name: &'static str, about: &'static str) -> Metric {
    Metric { name, about, better: None, unit: "1", per_unit: 1.0, decimals: 0 }
}

const fn absent(at: usize) -> Metric {
    Metric { name: ABSENT[at].1, about: "VSZ - RSS of the program after the rotation", better: None, ..kib() }
}

const fn inodes(at: usize) -> Metric {
    names(STEPS[at].1, "inodes in memory after this part of the test")
}

const fn dentries(at: usize) -> Metric {
    names(STEPS[at].2, "dentries in memory after this part of the test")
}

const METRICS: [Metric; 34 + KERNEL.len()] = with_kernel([
    IN,
    OUT,
    Metric { name: "office_ps", about: "time to load StarOffice", ..seconds() },
    Metric { name: "rotate_ps", about: "time to rotate the image", ..seconds() },
    Metric { name: "close_in_kib", about: "read from swap while everything is closed", ..kib() },
    Metric { name: "suite_out_kib", about: "written to swap while the suite is started", ..kib() },
    KSWAPD,
    Metric::percent("daemons_ppm", "pages of idle daemons that are resident after the rotation", None),
    SKIPS,
    GAP_LONGEST,
    GAPS,
    Metric { name: "elapsed_ps", about: "the whole test", ..seconds() },
    inodes(0),
    inodes(1),
    inodes(2),
    inodes(3),
    inodes(4),
    inodes(5),
    dentries(0),
    dentries(1),
    dentries(2),
    dentries(3),
    dentries(4),
    dentries(5),
    absent(0),
    absent(1),
    absent(2),
    absent(3),
    absent(4),
    absent(5),
    absent(6),
    absent(7),
    absent(8),
    absent(9),
]);

fn observe(setup: &Setup, values: &Values, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
    let variant = match values.word("variant") {
        "no-slocate" => Variant::NoSlocate,
        "office-first" => Variant::OfficeFirst,
        _ => Variant::Standard,
    };
    let mozilla = values.word("mozilla") == "yes";
    let test = Test::Apps(Apps {
        variant,
        mozilla,
        files: values.number("files") as u32,
        pixel: values.number("pixel_bytes") as u32,
        suite: values.number("suite_apps") as u32,
        pause: values.number("pause_s") * SECOND,
    });
    let habits = Habits {
        text: values.number("text_percent") as u32,
        close: values.number("close_percent") as u32,
        running: values.number("running_daemons") as u32,
        wakes: values.number("daemon_wake_s") * SECOND,
    };
    let answer = run((setup, seed, recorder), values, (&test, values.word("music") == "yes", habits))?;
    let own = own(&answer);
    let outcome = answer.outcome.expect("a test that ended has an outcome");
    Ok(Observed { sample: sample(&METRICS, &outcome, &own), profile: Some(outcome.profile) })
}

fn own(answer: &Answer) -> Vec<(&'static str, u64)> {
    let elapsed = |name: &str| answer.step(name).map_or(0, |step| step.elapsed);
    let (swapped_out, swapped_in) = answer.swapped();
    let (resident, pages) = answer.resident("daemon");
    let mut own = vec![
        (IN.name, swapped_in * 4),
        (OUT.name, swapped_out * 4),
        ("office_ps", elapsed("office")),
        ("rotate_ps", elapsed("rotate")),
        ("close_in_kib", answer.step("close").map_or(0, |step| step.swapped.1 * 4)),
        ("suite_out_kib", answer.step("suite").map_or(0, |step| step.swapped.0 * 4)),
        (KSWAPD.name, answer.kswapd),
        ("daemons_ppm", ppm(resident, pages)),
        ("elapsed_ps", answer.elapsed),
    ];
    own.extend(music(answer.played()));
    for (step, inodes, dentries) in STEPS {
        let names = answer.step(step).map_or((0, 0), |step| step.names);
        own.extend([(inodes, names.0), (dentries, names.1)]);
    }
    for (program, metric) in ABSENT {
        let (resident, pages) = answer.resident(program);
        own.push((metric, (pages - resident) * 4));
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use slablab_sim::workloads::desktop::{Resident, Step};

    #[test]
    fn pages_are_4_kib_and_daemons_a_share() {
        let step = |name, swapped, names| Step { name, swapped, names, elapsed: 7, ..Step::default() };
        let process = |name, resident| Resident { name, resident, pages: 100 };
        let answer = Answer {
            steps: vec![step("slocate", (3, 0), (20, 10)), step("close", (1, 5), (4, 2))],
            processes: vec![process("daemon", 0), process("daemon", 50), process("X", 90)],
            ..Answer::default()
        };
        let own = own(&answer);
        for (name, _) in &own {
            assert!(METRICS.iter().any(|metric| metric.name == *name), "{name}");
        }
        let of = |name: &str| own.iter().find(|(one, _)| *one == name).map(|(_, number)| *number);
        assert_eq!((of(OUT.name), of(IN.name), of("close_in_kib")), (Some(16), Some(20), Some(20)));
        assert_eq!((of("daemons_ppm"), of("absent_x_kib")), (Some(250_000), Some(40)));
        assert_eq!((of("inodes_slocate"), of("dentries_close")), (Some(20), Some(2)));
    }
}
