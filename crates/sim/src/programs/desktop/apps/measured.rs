//! What the application test measures: who is paged out, and which names stay, after each of its parts.

use crate::programs::desktop::Answer;
use crate::programs::desktop::machine::{
    GAP_LONGEST, GAPS, IN, KSWAPD, NEEDED, OUT, SKIPS, kib, music, seconds, swap,
};
use crate::programs::measures::{KERNEL, with_kernel};
use crate::programs::program::{Metric, ppm};

/// The parts of the test after which inodes, dentries and the daemons' resident pages are counted.
const STEPS: [(&str, [&str; 3]); 7] = [
    ("boot", ["inodes_boot", "dentries_boot", "daemons_boot_ppm"]),
    ("slocate", ["inodes_slocate", "dentries_slocate", "daemons_slocate_ppm"]),
    ("image", ["inodes_image", "dentries_image", "daemons_image_ppm"]),
    ("office", ["inodes_office", "dentries_office", "daemons_office_ppm"]),
    ("suite", ["inodes_suite", "dentries_suite", "daemons_suite_ppm"]),
    ("rotate", ["inodes_rotate", "dentries_rotate", "daemons_rotate_ppm"]),
    ("close", ["inodes_close", "dentries_close", "daemons_close_ppm"]),
];
/// The program of the idle daemons.
const DAEMON: &str = "daemon";
/// The part after which the mail looks who is paged out.
const PS: &str = "rotate";
/// Programs whose absent pages are told, with the metric's name.
const ABSENT: [(&str, &str); 11] = [
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
    ("mozilla", "absent_mozilla_kib"),
];
/// Those of them that the user started; then those of the suite.
const APPLICATIONS: usize = 3;
const SUITE: usize = 5;
/// VSZ - RSS of one idle daemon, and of groups of programs.
const EACH_DAEMON: &str = "absent_each_daemon_kib";
const GROUPS: [(&str, usize); 2] = [("absent_apps_kib", APPLICATIONS), ("absent_suite_kib", SUITE)];

const fn names(name: &'static str, about: &'static str) -> Metric {
    Metric { name, about, better: None, unit: "1", per_unit: 1.0, decimals: 0 }
}

const fn memory(name: &'static str, about: &'static str) -> Metric {
    Metric { name, about, better: None, ..kib() }
}

const fn absent(at: usize) -> Metric {
    memory(ABSENT[at].1, "VSZ - RSS of the program after the rotation")
}

const fn inodes(at: usize) -> Metric {
    names(STEPS[at].1[0], "inodes in memory after this part of the test")
}

const fn dentries(at: usize) -> Metric {
    names(STEPS[at].1[1], "dentries in memory after this part of the test")
}

const fn daemons(at: usize) -> Metric {
    Metric::percent(
        STEPS[at].1[2],
        "pages of idle daemons that are resident after this part of the test",
        None,
    )
}

pub(super) const METRICS: [Metric; 49 + KERNEL.len()] = with_kernel([
    IN,
    OUT,
    Metric { name: "office_ps", about: "time to load StarOffice", ..seconds() },
    Metric { name: "rotate_ps", about: "time to rotate the image", ..seconds() },
    Metric { name: "close_in_kib", about: "read from swap while everything is closed", ..kib() },
    Metric { name: "office_out_kib", about: "written to swap while StarOffice is loaded", ..kib() },
    Metric { name: "suite_out_kib", about: "written to swap while the suite is started", ..kib() },
    memory("second_out_kib", "the most that is written to swap in one second"),
    KSWAPD,
    SKIPS,
    GAP_LONGEST,
    GAPS,
    NEEDED,
    Metric { name: "elapsed_ps", about: "the whole test", ..seconds() },
    inodes(0),
    inodes(1),
    inodes(2),
    inodes(3),
    inodes(4),
    inodes(5),
    inodes(6),
    dentries(0),
    dentries(1),
    dentries(2),
    dentries(3),
    dentries(4),
    dentries(5),
    dentries(6),
    daemons(0),
    daemons(1),
    daemons(2),
    daemons(3),
    daemons(4),
    daemons(5),
    daemons(6),
    memory(EACH_DAEMON, "VSZ - RSS of an idle daemon after the rotation"),
    memory(GROUPS[0].0, "VSZ - RSS of all programs that the user started, after the rotation"),
    memory(GROUPS[1].0, "VSZ - RSS of the programs of the suite, after the rotation"),
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
    absent(10),
]);

pub(super) fn own(answer: &Answer) -> Vec<(&'static str, u64)> {
    let elapsed = |name: &str| answer.step(name).map_or(0, |step| step.elapsed);
    let out = |name: &str| answer.step(name).map_or(0, |step| step.swapped.0 * 4);
    let mut own = vec![
        ("office_ps", elapsed("office")),
        ("rotate_ps", elapsed("rotate")),
        ("close_in_kib", answer.step("close").map_or(0, |step| step.swapped.1 * 4)),
        ("office_out_kib", out("office")),
        ("suite_out_kib", out("suite")),
        ("second_out_kib", answer.out_by_second.iter().max().map_or(0, |pages| pages * 4)),
        ("elapsed_ps", answer.elapsed),
    ];
    own.extend(swap(answer));
    own.extend(music(answer.played()));
    for (step, [inodes, dentries, daemons]) in STEPS {
        let names = answer.step(step).map_or((0, 0), |step| step.names);
        let (resident, pages) = answer.resident(step, DAEMON);
        own.extend([(inodes, names.0), (dentries, names.1), (daemons, ppm(resident, pages))]);
    }
    own.extend(who_is_out(answer));
    own
}

/// VSZ - RSS when the mail looks who is paged out.
fn who_is_out(answer: &Answer) -> Vec<(&'static str, u64)> {
    let absent = |(program, metric): (&str, &'static str)| {
        let (resident, pages) = answer.resident(PS, program);
        (metric, (pages - resident) * 4)
    };
    let programs: Vec<(&'static str, u64)> = ABSENT.into_iter().map(absent).collect();
    let sum = |(metric, from): (&'static str, usize)| (metric, programs[from..].iter().map(|of| of.1).sum());
    let processes = answer.step(PS).map_or(&[][..], |step| &step.processes);
    let daemons = processes.iter().filter(|process| process.name == DAEMON).count() as u64;
    let all = absent((DAEMON, EACH_DAEMON));
    let each = (all.0, all.1 / daemons.max(1));
    programs.iter().copied().chain(GROUPS.map(sum)).chain([each]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::desktop::{Resident, Step};

    #[test]
    fn pages_are_4_kib_and_daemons_a_share() {
        let step = |name, swapped, names| Step { name, swapped, names, elapsed: 7, ..Step::default() };
        let process = |name: &str, resident| Resident { name: name.into(), resident, pages: 100 };
        let all = [("daemon", 0), ("daemon", 50), ("X", 90), ("gimp", 10), ("soffice", 20), ("mail", 60)];
        let processes = all.map(|(name, resident)| process(name, resident)).to_vec();
        let rotate = Step { processes, ..step("rotate", (0, 0), (9, 9)) };
        let answer = Answer {
            steps: vec![step("slocate", (3, 0), (20, 10)), rotate, step("close", (1, 5), (4, 2))],
            out_by_second: vec![0, 3, 1],
            ..Answer::default()
        };
        let own = own(&answer);
        for (name, _) in &own {
            assert!(METRICS.iter().any(|metric| metric.name == *name), "{name}");
        }
        let of = |name: &str| own.iter().find(|(one, _)| *one == name).map(|(_, number)| *number);
        assert_eq!((of(OUT.name), of(IN.name), of("close_in_kib")), (Some(16), Some(20), Some(20)));
        assert_eq!((of("daemons_rotate_ppm"), of("absent_x_kib")), (Some(250_000), Some(40)));
        assert_eq!((of("daemons_close_ppm"), of("second_out_kib")), (Some(0), Some(12)));
        let [daemon, apps, suite] = [EACH_DAEMON, GROUPS[0].0, GROUPS[1].0].map(of);
        assert_eq!((daemon, apps, suite), (Some(300), Some(840), Some(160)));
        assert_eq!((of("inodes_slocate"), of("dentries_close")), (Some(20), Some(2)));
    }
}
