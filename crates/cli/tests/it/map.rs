//! `replay --map`: the page and the drawing of a slab map.

use crate::browser::{Browser, Scheme};
use crate::common::{argument, check_error, folder, slablab, text};
use std::io::Write;

const RECORDING: &str = "examples/data/hackbench-6.18.perf.data.xz";

#[test]
fn a_page_and_a_drawing_are_the_same_each_time() {
    let folder = folder("map");
    let write = |name: &str, words: &[&str]| {
        let path = folder.join(name);
        let file = path.to_str().expect("UTF-8");
        let all = [&[&argument(RECORDING), "--cache", "filp", "--engine", "slub@7.1", "--map", file], words];
        let output = slablab(&["replay"], &all.concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        std::fs::read_to_string(&path).expect("the map is there").replace(name, "NAME")
    };
    for (one, other) in [("one.html", "other.html"), ("one.svg", "other.svg")] {
        assert_eq!(write(one, &[]), write(other, &[]), "{one}");
    }
    assert_ne!(write("early.svg", &["--map-at", "1ms"]), write("late.svg", &[]), "two moments");
    let html = write("at.html", &["--map-at", "1ms"]);
    assert!(html.contains("<title>Slab map of filp in hackbench-6.18.perf.data.xz</title>"), "a title");
}

#[test]
fn a_wrong_map_is_refused() {
    let recording = argument(RECORDING);
    let check =
        |words: &[&str], says: &[&str]| check_error(&["replay"], &[&[&*recording], words].concat(), says);
    check(&["--map", "map.png"], &["--map map.png: expected a file whose name ends in .html", ".svg"]);
    check(&["--map", "-"], &["--map -: expected a file"]);
    check(&["--map-at", "1s"], &["--map"]);
    check(&["--map", "/nowhere/a.svg", "--map-at", "soon"], &["--map-at soon: expected a time as 1.5s"]);
    check(&["--map", "/tmp/a.html", "--html", "/tmp/a.html"], &["the same file as --html"]);
    let slob = ["--engine", "slob", "--map", "/tmp/slablab-never.html"];
    check(&slob, &["slob@6.1: its slabs are of no cache of their own"]);
}

/// A browser plays the page: no error, as wide as the window, light and dark, with numbers below each map.
#[test]
fn a_browser_plays_a_map() {
    let Some(browser) = Browser::find() else {
        let said = "SKIPPED a_browser_plays_a_map: no chromium on this machine (SLABLAB_BROWSER names one)\n";
        std::io::stderr().write_all(said.as_bytes()).expect("standard error");
        return;
    };
    let folder = folder("map-browser");
    let path = folder.join("page.html");
    let file = path.to_str().expect("UTF-8");
    let engines = ["--engine", "slub@6.18", "--engine", "slub@7.1"];
    let recording = argument(RECORDING);
    let words = [&[&*recording, "--format", "json", "--map", file], &engines[..]].concat();
    let output = slablab(&["replay"], &words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let dom = browser.dom(&folder, "page.html", Scheme::Light);
    assert!(dom.contains("data-ready=\"yes\""), "the page's script did not come to its end");
    let shown = dom.matches("data-state=\"6\"").count();
    assert_eq!(shown, 2, "a number of live objects for each engine");
    assert!(!dom.contains("data-state=\"6\"></b>"), "a number is missing");
    for scheme in [Scheme::Light, Scheme::Dark] {
        for frame in browser.measure(&folder, "page.html", scheme, &[1280, 400]) {
            let (width, scroll) = (frame["width"].as_f64(), frame["scroll_width"].as_f64());
            assert!(scroll <= width, "{scheme:?}: the page is {scroll:?} wide of {width:?}");
            let pale = frame["pale"].as_array().expect("a list");
            assert!(pale.is_empty(), "{scheme:?}, {width:?}, scripts {}: pale: {pale:?}", frame["name"]);
        }
    }
    assert!(browser.print(&folder, "page.html").starts_with(b"%PDF"));
}
