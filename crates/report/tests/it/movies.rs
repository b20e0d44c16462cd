//! Movies: the page that plays them, and drawings of one moment.

use crate::page_check::check_page;
use slablab_report::html::Page;
use slablab_report::html::movie::{Cast, Change, Event, Movie, frames};

const CAST: Cast = Cast {
    row: ["slab", "slabs"],
    states: &["none", "fresh", "free", "listed", "held", "elsewhere", "live"],
    live: 6,
    kinds: &[(1, "allocation"), (2, "free")],
    jumps: &[(1, "allocation")],
    other: "upkeep",
};

/// Three slabs of four objects: two are taken, one object lives and dies, one slab goes and the third comes.
fn small(name: &str) -> Movie {
    let row = |row: u32, state| Change { cell: row * 4, state, cpu: 0, is_row: true };
    let cell = |cell, state, cpu| Change { cell, state, cpu, is_row: false };
    let steps: [(u64, u8, &[Change]); 5] = [
        (1_000, 0, &[row(0, 1), row(1, 1)]),
        (2_000, 1, &[cell(5, 6, 2), cell(6, 3, 2)]),
        (2_000, 1, &[cell(1, 6, 1)]),
        (300_000, 2, &[cell(5, 2, 0), cell(1, 4, 1)]),
        (5_000_000_000, 0, &[row(0, 0), row(2, 1)]),
    ];
    let mut movie = Movie { name: name.into(), rows: 3, cells: 4, ..Movie::default() };
    for (row, (time_ns, kind, changes)) in (0..).zip(steps) {
        let first = movie.changes.len() as u32;
        movie.events.push(Event { time_ns, row, cpu: 0, kind, first });
        movie.changes.extend_from_slice(changes);
    }
    movie
}

/// States of all cells, a digit each, rows apart.
fn states(movie: &Movie, time_ns: u64) -> String {
    let now = movie.at(time_ns);
    let row = |cells: &[(u8, u16)]| cells.iter().map(|cell| cell.0.to_string()).collect::<String>();
    now.chunks(4).map(row).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_moment_is_the_events_up_to_it() {
    let movie = small("small");
    for (time_ns, expected) in [
        (999, "0000 0000 0000"),
        (1_000, "1111 1111 0000"),
        (2_000, "1611 1631 0000"),
        (299_999, "1611 1631 0000"),
        (300_000, "1411 1231 0000"),
        (u64::MAX, "0000 1231 1111"),
    ] {
        assert_eq!(states(&movie, time_ns), expected, "{time_ns}");
    }
}

#[test]
fn a_drawing_has_a_square_for_each_cell() {
    let svg = frames(&[small("a<b"), small("c")], &CAST, 300_000);
    // Six squares of the key in each of two drawings.
    for (state, squares) in [(1, 5), (2, 1), (3, 1), (4, 1), (5, 0), (6, 0)] {
        let found = svg.matches(&format!("class=\"m{state}\"")).count();
        assert_eq!(found, 2 * (squares + 1), "state {state}");
    }
    assert!(svg.contains("a&lt;b") && !svg.contains("a<b"), "{svg}");
    assert!(svg.contains("live (0)") && svg.contains("fresh (5)"), "{svg}");
}

#[test]
fn a_page_of_movies_is_a_page() {
    for name in ["filp", "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", ""] {
        let mut page = Page::new(name, "slablab replay a --map b.html");
        page.movies(&[small(name), small(name)], &CAST, 0, Some(300_000));
        check_page(&page.finish(), "slablab replay a --map b.html");
    }
}

/// The map of a cache of 10,000 slabs with 32 objects: at most this many bytes, for a mail. The page stays in
/// the test's folder, to measure how fast a browser plays it.
#[test]
fn ten_thousand_slabs_fit_into_a_page() {
    const ROWS: u32 = 10_000;
    let mut movie = Movie { name: "10,000 slabs".into(), rows: ROWS, cells: 32, ..Movie::default() };
    let mut random = 1u64;
    let mut below = |end: u32| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((random >> 33) % u64::from(end)) as u32
    };
    for step in 0..400_000u64 {
        let first = movie.changes.len() as u32;
        movie.events.push(Event {
            time_ns: step * 5_000,
            row: step,
            cpu: (step % 16) as u16,
            kind: 1,
            first,
        });
        let rows = ((step / 20) as u32 + 1).min(ROWS);
        if step % 20 == 0 && step / 20 < u64::from(ROWS) {
            movie.changes.push(Change { cell: (rows - 1) * 32, state: 1, cpu: 0, is_row: true });
        }
        let cell = below(rows * 32);
        let (state, cpu) = (2 + below(5) as u8, 1 + below(16) as u16);
        movie.changes.push(Change { cell, state, cpu, is_row: false });
    }
    let mut page = Page::new("10,000 slabs", "cargo test -p slablab-report --test it ten_thousand");
    page.movies(&[movie], &CAST, 0, None);
    let html = page.finish();
    assert!(html.len() < 4 << 20, "{} bytes", html.len());
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("ten-thousand-slabs.html");
    std::fs::write(path, html).expect("written");
}
