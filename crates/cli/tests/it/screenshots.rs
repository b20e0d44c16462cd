//! The pages as a browser shows them: light, dark, narrow, on paper, without scripts.
//!
//! Without a browser these tests print a line and check nothing. With `SLABLAB_BROWSER_REQUIRED`, which CI
//! sets, they fail instead. Checks of the markup alone are in `pages.rs` of the tests of report, doctor and
//! lab.

use crate::browser::{Browser, Picture, Scheme};
use crate::common::argument;
use serde_json::Value;
use std::collections::HashSet;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// A desktop and a telephone.
const WIDTHS: [usize; 2] = [1280, 400];
/// The largest height of a page in pixels that the tests examine as a picture.
const TALLEST: usize = 6000;
/// A page with text and charts has more colours than this, by far.
const COLOURS_MIN: usize = 60;

/// Makes a page with the program and checks what a browser makes of it: `figures` drawings, of which `zoomed`
/// can be zoomed.
fn check(name: &str, args: &[&str], figures: usize, zoomed: u64) {
    let Some(browser) = Browser::find() else {
        // Written directly, because the test harness captures output: a reader must not take this for a pass.
        let said = format!("SKIPPED {name}: no chromium on this machine (SLABLAB_BROWSER names one)\n");
        std::io::stderr().write_all(said.as_bytes()).expect("standard error");
        return;
    };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("screenshots-{name}"));
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("an older run is removed");
    }
    std::fs::create_dir_all(&folder).expect("a folder");
    let page = folder.join("page.html");
    let output = Command::new(env!("CARGO_BIN_EXE_slablab"))
        .args(args)
        .arg("--html")
        .arg(&page)
        .output()
        .expect("the program runs");
    assert!(
        matches!(output.status.code(), Some(0 | 3)),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    for scheme in [Scheme::Light, Scheme::Dark] {
        let measured = browser.measure(&folder, "page.html", scheme, &WIDTHS);
        assert_eq!(measured.len(), 2 * WIDTHS.len(), "a frame for each width, with and without scripts");
        for frame in &measured {
            check_frame(frame, scheme, figures, zoomed);
        }
        let desktop = &measured[0];
        let height = (number(desktop, "height") as usize).min(TALLEST);
        let picture = browser.picture(&folder, "page.html", scheme, (WIDTHS[0], height));
        check_picture(&picture, desktop, scheme);
    }
    check_paper(&browser.print(&folder, "page.html"));
}

fn number(of: &Value, key: &str) -> f64 {
    of[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {of}"))
}

/// What the browser measured in one frame.
fn check_frame(frame: &Value, scheme: Scheme, figures: usize, zoomed: u64) {
    let what = format!("{} px, scripts {}, {scheme:?}", frame["width"], frame["name"]);
    let scroll = number(frame, "scroll_width");
    assert!(scroll <= number(frame, "width"), "{what}: the page is {scroll} wide");
    let dark = number(frame, "paper") < 0.05;
    assert_eq!(dark, scheme == Scheme::Dark, "{what}: the paper has light {}", frame["paper"]);
    let drawings = frame["drawings"].as_array().expect("a list");
    assert_eq!(drawings.len(), figures, "{what}: figures");
    assert!(drawings.iter().all(Value::is_object), "{what}: a figure has no drawing, or two: {drawings:?}");
    let scripts = frame["name"] == "scripts";
    assert_eq!(frame["zoomed"].as_u64(), Some(if scripts { zoomed } else { 0 }), "{what}: charts to zoom");
    for wrong in ["overlaps", "outside", "pale"] {
        let found = frame[wrong].as_array().expect("a list");
        assert!(found.is_empty(), "{what}: {wrong}: {found:?}");
    }
}

/// What the picture shows: paper of the right colour, many colours, and something coloured in each drawing.
fn check_picture(picture: &Picture, frame: &Value, scheme: Scheme) {
    assert_eq!(picture.width, WIDTHS[0], "{scheme:?}");
    let corner = picture.pixels[0];
    let right = corner.iter().all(|part| if scheme == Scheme::Dark { *part < 48 } else { *part > 240 });
    assert!(right, "{scheme:?}: the corner is {corner:?}");
    let colours: HashSet<[u8; 3]> = picture.pixels.iter().copied().collect();
    assert!(colours.len() > COLOURS_MIN, "{scheme:?}: {} colours", colours.len());
    for (index, drawing) in frame["drawings"].as_array().expect("a list").iter().enumerate() {
        let at = |key: &str| number(drawing, key).max(0.0) as usize;
        if at("bottom") > picture.height {
            continue;
        }
        let part = picture.part((at("left"), at("top")), (at("right"), at("bottom")));
        let coloured = |pixel: &&[u8; 3]| {
            let (least, most) = (pixel.iter().min(), pixel.iter().max());
            most.zip(least).is_some_and(|(most, least)| most - least > 60)
        };
        let coloured = part.iter().filter(coloured).count();
        assert!(
            coloured > 100,
            "{scheme:?}: drawing {index} has {coloured} coloured of {} pixels",
            part.len()
        );
    }
}

/// Printed it has some pages, text and no bitmaps in place of drawings.
fn check_paper(pdf: &[u8]) {
    let count = |what: &[u8]| pdf.windows(what.len()).filter(|window| *window == what).count();
    assert!(pdf.starts_with(b"%PDF"), "no PDF");
    let pages = count(b"/Type /Page\n");
    assert!((2..=60).contains(&pages), "{pages} pages");
    assert!(count(b"/Type /Font\n") > 0, "no text");
    assert!(pdf.len() < 2 << 20, "{} bytes", pdf.len());
}

#[test]
fn a_replay_looks_right() {
    let recording = argument("examples/data/hackbench-6.18.perf.data.xz");
    check("replay", &["replay", &recording, "--engine", "slub@6.18", "--engine", "slqb@2009-09"], 4, 1);
}

#[test]
fn a_verification_looks_right() {
    let [recording, before, after] = [
        argument("examples/data/hackbench-6.18.perf.data.xz"),
        argument("examples/data/hackbench-6.18.slabinfo-start.txt"),
        argument("examples/data/hackbench-6.18.slabinfo-end.txt"),
    ];
    check("verify", &["verify", &recording, "--before", &before, "--after", &after], 2, 0);
}

#[test]
fn what_the_doctor_found_looks_right() {
    let [dump, recording] = [
        argument("examples/data/hackbench-6.18.before.tar.xz"),
        argument("examples/data/hackbench-6.18.perf.data.xz"),
    ];
    check("doctor", &["doctor", &dump, "--recording", &recording], 5, 0);
}

#[test]
fn growth_looks_right() {
    let [before, after] = [
        argument("examples/data/hackbench-6.18.slabinfo-start.txt"),
        argument("examples/data/hackbench-6.18.slabinfo-end.txt"),
    ];
    check(
        "growth",
        &["doctor", &after, "--since", &before, "--hours", "2", "--page-size", "4096", "--cpus", "2"],
        4,
        0,
    );
}

#[test]
fn what_would_be_looks_right() {
    let dump = argument("examples/data/hackbench-6.18.before.tar.xz");
    check("whatif", &["whatif", &dump, "--max-order", "0,1,2,3", "--page-size", "4K,64K"], 3, 0);
}

#[test]
fn who_carries_what_looks_right() {
    let recording = argument("examples/data/hackbench-6.18.perf.data.xz");
    let presets = ["slub@6.1", "slub@6.1,max_order=1,cpu_partial=6,empty=at-once"];
    let exact = ["explain", &recording, presets[0], presets[1]];
    check("explain", &exact, 7, 0);
    let sampled = [&exact[..], &["--exact", "0", "--samples", "8"]].concat();
    check("explain-sampled", &sampled, 7, 0);
}

#[test]
fn a_comparison_of_allocators_looks_right() {
    let small = ["--repeats", "2", "--scale", "0.001", "--memory-mb", "1"];
    let args =
        ["bench", "--workloads", "pair64,cache64,memory,floors", "--allocators", "slablab,glibc,malloc"];
    check("bench", &[&args[..], &small[..]].concat(), 2, 0);
}
