//! A dump or a machine that does not suit a recording.

use crate::common::{argument, check_error, check_order, slablab, text};

const RECORDING: &str = "crates/readers/testdata/hackbench_head.perf.data.xz";
/// The same events as tidy CSV, which does not tell the kernel.
const NAMELESS: &str = "crates/readers/testdata/hackbench.events.csv.gz";

/// What `replay` with one engine prints.
#[track_caller]
fn replay(recording: &str, args: &[&str]) -> String {
    let recording = argument(recording);
    let output = slablab(&["replay", &recording, "--engine", "slub@6.1", "--top", "1"], args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// A text without its line ends.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// 6.18.44 on x86_64 was recorded. A dump of another release or architecture is refused, and taken with
/// `--force`, which the lines below the sentence say.
#[test]
fn a_dump_of_another_kernel_is_refused() {
    let recording = argument(RECORDING);
    let [older, other] =
        ["amd64_smp4", "ppc64_smp16"].map(|run| argument(&format!("examples/dumps/{run}.before.tar.xz")));
    let of = |dump: &str, words: &[&str]| {
        check_error(&["replay", &recording], &["--before", dump], words);
        check_error(&["verify", &recording], &["--before", dump, "--after", dump], words);
        check_error(&["explain", &recording, "slub@6.1", "slab"], &["--before", dump], words);
    };
    of(&older, &["amd64_smp4.before.tar.xz", "a dump of release 6.1, not of 6.18.44", "--force"]);
    of(&other, &["a dump of release 6.1, not of 6.18.44"]);
    let release = ["--before", other.as_str(), "--release", "6.1"];
    check_error(&["replay", &recording], &release, &["a dump of a machine of ppc64le, not of x86_64"]);
    let forced = replay(RECORDING, &["--before", &other, "--force"]);
    assert!(forced.starts_with("Under slub@6.1 the recording peaks at "), "{forced}");
    let led = ["a dump of release 6.1", "warning: ", "a dump of a machine of ppc64le", "recorded on 6.18"];
    check_order(&["--force"], &words(&forced), &[&["warning: "][..], &led].concat());
    let own = argument("examples/data/hackbench-6.18.before.tar.xz");
    assert!(!replay(RECORDING, &["--before", &own]).contains("a dump of"));
}

#[test]
fn cpus_that_the_recording_does_not_have_are_idle() {
    let said = words(&replay(RECORDING, &["--machine", "power160"]));
    assert!(said.contains("the recording is of 2 CPUs, the machine has 160"), "{said}");
    assert!(said.contains("the other 158 are idle"), "{said}");
    assert!(!replay(RECORDING, &[]).contains("idle"));
}

/// A recording that does not tell its kernel: the newest is taken, unless the user knows.
#[test]
fn the_user_may_know_the_release() {
    let taken = "slub@7.3, the newest of its engine, is taken (--release says another)";
    assert!(words(&replay(NAMELESS, &[])).contains(taken));
    assert!(!replay(NAMELESS, &["--release", "6.1.0-50-amd64"]).contains("is taken"));
    assert!(!replay(RECORDING, &[]).contains("is taken"), "the recording tells it");
    let nameless = argument(NAMELESS);
    check_error(&["replay", &nameless], &["--release", "stretch"], &["--release", "for example 6.1"]);
    // It stands below the sentence, and no prediction is judged by the deeds of an unknown kernel.
    let said = words(&replay(NAMELESS, &[]));
    check_order(&[NAMELESS], &said, &["Under slub@6.1 ", "warning: neither recording", "an unknown kernel"]);
    let dumps =
        ["start", "end"].map(|when| argument(&format!("examples/data/hackbench-6.18.slabinfo-{when}.txt")));
    let dumps = ["--before", &dumps[0], "--after", &dumps[1]];
    check_error(&["verify", &nameless], &dumps, &["says which kernel ran", "--release 6.18", "--force"]);
    let known = slablab(&["verify", &nameless, "--release", "6.18"], &dumps);
    assert_eq!(known.status.code(), Some(0), "{}", text(&known.stderr));
}
