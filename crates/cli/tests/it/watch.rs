//! `--watch` as scripts meet it: one frame as text, recorded ticks, and what happens when something is wrong.

use crate::common::{bundled, check_error, folder, slablab, text};
use std::path::{Path, PathBuf};
use std::process::Output;

fn watch(args: &[&str]) -> Output {
    slablab(&["doctor", "--watch"], args)
}

/// A folder of this test's own with copies of the example's slabinfo before and after hackbench.
fn ticks(name: &str) -> PathBuf {
    let folder = folder(name);
    for (from, to) in [("start", "1.txt"), ("end", "2.txt")] {
        let from = bundled(&format!("examples/data/hackbench-6.18.slabinfo-{from}.txt"));
        std::fs::copy(from, folder.join(to)).expect("the example is there");
    }
    folder
}

#[test]
fn one_frame_as_text() {
    let folder = ticks("watch-one-frame");
    let folder = folder.to_str().expect("UTF-8");
    let output = watch(&["--once", "--from", folder, "--page-size", "4096", "-d", "60", "-s", "r"]);
    let frame = text(&output.stdout);
    // A slabinfo alone does not say what slab memory is in no cache.
    let lacks = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{lacks}");
    assert_eq!((lacks.lines().count(), lacks.contains("/proc/meminfo: ")), (1, true), "{lacks}");
    assert!(!lacks.contains("; try "), "{lacks}");
    assert!(frame.lines().all(|line| line == line.trim_end()), "blanks at line ends: {frame}");
    let lines: Vec<&str> = frame.lines().collect();
    let head = lines.iter().position(|line| line.ends_with("START/MIN NAME")).expect("a line of heads");
    assert_eq!(lines[head].split_whitespace().next(), Some("OBJS"), "{frame}");
    // The two files say what each cache grew in this minute.
    let read = |name: &str| {
        let text = std::fs::read_to_string(Path::new(folder).join(name)).expect("the example is there");
        let rows = text.lines().skip(2).map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |at: usize| words[at].parse::<i64>().unwrap_or(0);
            let slabs = number(words.iter().position(|word| *word == "slabdata").expect("slabdata") + 2);
            (words[0].to_string(), slabs * number(5) * 4096)
        });
        rows.collect::<Vec<_>>()
    };
    let (before, after) = (read("1.txt"), read("2.txt"));
    assert_eq!(lines.len() - head - 1, after.len(), "every cache has a line");
    let mut grown: Vec<(i64, &str)> = after
        .iter()
        .map(|(name, bytes)| {
            let start = before.iter().find(|(other, _)| other == name).map_or(0, |(_, bytes)| *bytes);
            (bytes - start, name.as_str())
        })
        .collect();
    grown.sort_by_key(|(bytes, _)| -bytes);
    assert!(grown[0].0 > 0, "the example grows");
    let first: Vec<&str> = lines[head + 1].split_whitespace().collect();
    assert_eq!(first.last(), Some(&grown[0].1), "{frame}");
    let whole: i64 = after.iter().map(|(_, bytes)| bytes).sum::<i64>();
    let said = format!(" Caches {:.1}M", whole as f64 / 1_048_576.0);
    assert!(lines.iter().any(|line| line.starts_with(&said)), "no {said} in {frame}");
}

/// The machine of the test, as far as it lets itself be read.
#[test]
fn this_machine() {
    let output = watch(&["--once", "-s", "n"]);
    let (frame, said) = (text(&output.stdout), text(&output.stderr));
    // One sample has not moved.
    assert!(frame.contains(" Slab ") && !frame.contains("/MIN") && !frame.contains("/min"), "{frame}{said}");
    if std::fs::read("/proc/slabinfo").is_ok() {
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(frame.lines().any(|line| line.ends_with(" dentry")), "{frame}");
    } else {
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert_eq!(frame.lines().count(), 2, "{frame}");
        assert!(said.contains("/proc/slabinfo") && said.contains("sudo slablab"), "{said}");
    }
}

#[test]
fn errors() {
    let check = |args: &[&str], words: &[&str]| check_error(&["doctor", "--watch"], args, words);
    let folder = ticks("watch-errors");
    let path = folder.to_str().expect("UTF-8");
    check(&["--from", path], &["no terminal", "--once"]);
    check(&["--once", "--from", "/nowhere/at/all"], &["/nowhere/at/all", "No such file"]);
    let file = folder.join("1.txt").display().to_string();
    check(&["--once", "--from", &file], &["1.txt", "expected a directory"]);
    check(&["--once", "-s", "z"], &["-s z", "a active objects", "t growth since start"]);
    check(&["--once", "-s", "zz"], &["zz"]);
    // What the screen has no use for is refused, not ignored.
    let others = [
        ["--cpus", "2"],
        ["--save", "x.tar"],
        ["--since", "x"],
        ["--recording", "x"],
        ["--lines", "3"],
        ["--format", "json"],
        ["--output", "x"],
        ["--html", "x"],
        ["--fail-over", "1"],
    ];
    for [option, value] in others {
        check(&["--once", option, value], &["--watch", option]);
    }
    check(&["--once", "-d", "0"], &["'0'", "from 0.1 to 3600"]);
    std::fs::write(folder.join("3.txt"), "slabinfo - version: 2.1\ndentry five\n").expect("written");
    check(&["--once", "--from", path, "--page-size", "4096"], &["3.txt", "line 2"]);
    let empty = folder.join("empty");
    std::fs::create_dir(&empty).expect("made");
    check(&["--once", "--from", empty.to_str().expect("UTF-8")], &["empty", "found nothing"]);
}

/// A name with a terminal's control characters is shown with escapes in their place.
#[test]
fn no_control_character_of_a_name_is_printed() {
    let folder = folder("watch-evil");
    let row = "1000 8000 256 16 1 : tunables 0 0 0 : slabdata 500 500 0";
    let evil = format!("slabinfo - version: 2.1\n# name\n\x1b]0;OWNED\x07red\u{202e} {row}\n");
    std::fs::write(folder.join("1"), evil).expect("a file");
    let folder = folder.to_str().expect("UTF-8");
    let frame = text(&watch(&["--once", "--from", folder, "--page-size", "4096"]).stdout);
    assert!(!frame.contains(['\x1b', '\x07', '\u{202e}']), "{frame:?}");
    assert!(frame.contains("\\x1b]0;OWNED\\x07red\\u202e"), "{frame:?}");
}
