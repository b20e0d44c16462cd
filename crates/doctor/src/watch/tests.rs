//! Caches through samples that are written down here.

use super::*;
use crate::state::{self, Input};
use slablab_readers::slabinfo::SlabinfoRow;

/// A sample of one-page slabs: `name slabs` pairs at a second; `#1` behind a name is its ordinal.
fn sample(at_s: f64, caches: &str) -> Sample {
    let words: Vec<&str> = caches.split_whitespace().collect();
    let row = |pair: &[&str]| {
        let (name, ordinal) = pair[0].split_once('#').unwrap_or((pair[0], "0"));
        let num_slabs = pair[1].parse().expect("slabs");
        Row::new(
            SlabinfoRow {
                name: name.into(),
                ordinal: ordinal.parse().expect("an ordinal"),
                active_objs: num_slabs * 10,
                num_objs: num_slabs * 16,
                objsize: 256,
                objperslab: 16,
                pagesperslab: 1,
                active_slabs: num_slabs,
                num_slabs,
                ..SlabinfoRow::default()
            },
            4096,
        )
    };
    Sample { at_s, rows: words.chunks(2).map(row).collect(), memory: None }
}

fn watched(samples: &[(f64, &str)]) -> Watch {
    let mut watch = Watch::default();
    samples.iter().for_each(|(at_s, caches)| watch.push(sample(*at_s, caches)));
    watch
}

/// `name#ordinal:growth:growth since start`, in pages a minute, by name.
fn growths(watch: &Watch) -> String {
    let pages = |bytes: Option<i64>| bytes.map_or("-".into(), |bytes| (bytes as f64 / 4096.0).to_string());
    let list = watch.list(SortKey::Name, false, "");
    let one = |track: &&Track| {
        format!(
            "{}#{}:{}:{}",
            track.row.info.name,
            track.row.info.ordinal,
            pages(watch.growth_per_minute(track)),
            pages(watch.growth_per_minute_since_start(track))
        )
    };
    list.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn growth() {
    #[track_caller]
    fn check(window: Window, samples: &[(f64, &str)], expected: &str) {
        let mut watch = watched(samples);
        watch.set_window(window);
        assert_eq!(growths(&watch), expected);
    }
    // One sample says nothing about growth; two at the same time neither.
    check(Window::Last, &[(0.0, "a 5")], "a#0:-:-");
    check(Window::Last, &[(1.0, "a 5"), (1.0, "a 6")], "a#0:-:-");
    // 3 pages in 30 s are 6 a minute, 2 in 10 s are 12; it may shrink.
    check(Window::Last, &[(0.0, "a 5"), (20.0, "a 6"), (30.0, "a 8")], "a#0:12:6");
    check(Window::Last, &[(0.0, "a 5"), (20.0, "a 6"), (30.0, "a 4")], "a#0:-12:-2");
    // A minute reaches back to the oldest sample in it, or to the first of all.
    let minutes = [(0.0, "a 0"), (30.0, "a 60"), (60.0, "a 75"), (90.0, "a 80"), (120.0, "a 90")];
    check(Window::Minute, &minutes, "a#0:15:45");
    check(Window::TenMinutes, &minutes, "a#0:45:45");
    check(Window::Last, &minutes, "a#0:20:45");
    // Samples further apart than the window: since the one before.
    check(Window::Minute, &[(0.0, "a 1"), (120.0, "a 3"), (240.0, "a 4")], "a#0:0.5:0.75");
    // Made while watched: it had nothing at the start. Gone: not listed. Back again: as if it had stayed.
    check(Window::Last, &[(0.0, "a 5"), (60.0, "b 2 a 5")], "a#0:0:0 b#0:2:2");
    check(Window::Last, &[(0.0, "a 5 b 7"), (60.0, "a 5")], "a#0:0:0");
    check(Window::Last, &[(0.0, "a 5 b 7"), (60.0, "a 5"), (120.0, "b 9 a 5")], "a#0:0:0 b#0:9:1");
    // Names repeat; the order of rows may change.
    let swapped = [(0.0, "x 1 x#1 9 y 3"), (60.0, "y 3 x 2 x#1 9")];
    check(Window::Last, &swapped, "x#0:1:1 x#1:0:0 y#0:0:0");
}

#[test]
fn only_so_much_is_kept() {
    let mut watch = Watch::default();
    for at in 0..HISTORY as u64 + 50 {
        watch.push(sample(at as f64, &format!("a {at} once {}", u64::from(at == 0))));
    }
    let list = watch.list(SortKey::Name, false, "");
    let [a, once] = list[..] else { panic!("{list:?}") };
    assert_eq!((a.history().len(), watch.history().0.len()), (HISTORY, HISTORY));
    assert_eq!(a.history().front(), Some(&(50 * 4096)), "the oldest go first");
    assert_eq!(a.since_start(), (HISTORY as i64 + 49) * 4096, "but the start is remembered");
    assert_eq!(once.since_start(), -4096);
    assert_eq!(watch.ticks(), HISTORY as u64 + 50);
    // Caches that come and go do not pile up.
    let mut watch = Watch::default();
    for at in 0..3 * HISTORY as u64 {
        watch.push(sample(at as f64, &format!("a 1 device-{at} 1")));
    }
    assert!(watch.tracks().len() <= HISTORY + 1, "{} caches are followed", watch.tracks().len());
}

#[test]
fn order() {
    // Two ticks of caches that differ in everything a key looks at.
    let fields: [(&str, [u64; 7]); 4] = [
        // active, objects, size, per slab, pages, active slabs, slabs
        ("dentry", [90, 100, 192, 21, 1, 5, 5]),
        ("filp", [50, 50, 256, 16, 2, 2, 4]),
        ("bio", [1, 400, 32, 128, 1, 3, 3]),
        ("idle", [0, 0, 8, 1, 0, 0, 0]),
    ];
    let row = |(name, [active, objects, size, per_slab, pages, active_slabs, slabs]): (&str, [u64; 7])| {
        let info = SlabinfoRow {
            name: name.into(),
            active_objs: active,
            num_objs: objects,
            objsize: size,
            objperslab: per_slab,
            pagesperslab: pages,
            active_slabs,
            num_slabs: slabs,
            ..SlabinfoRow::default()
        };
        Row::new(info, 4096)
    };
    let mut watch = watched(&[(0.0, "dentry 2 filp 9 bio 0 idle 0"), (60.0, "dentry 7 filp 3 bio 1 idle 0")]);
    watch.push(Sample { at_s: 120.0, rows: fields.map(row).to_vec(), memory: None });
    let check = |letter: char, expected: &str| {
        let key = SortKey::of(letter).expect("a key");
        assert_eq!(SortKey::of(letter.to_ascii_uppercase()), Some(key), "slabtop takes both cases");
        let names = |inverted| {
            let list = watch.list(key, inverted, "");
            list.iter().map(|track| track.row.info.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(false).join(" "), expected, "{letter}");
        let mut reversed = names(true);
        reversed.reverse();
        assert_eq!(reversed.join(" "), expected, "{letter} inverted");
    };
    check('a', "dentry filp bio idle");
    check('b', "bio dentry filp idle");
    check('c', "filp dentry bio idle");
    check('l', "dentry filp bio idle");
    check('v', "dentry bio filp idle");
    check('n', "bio dentry filp idle");
    check('o', "bio dentry filp idle");
    // Equals by bytes.
    check('p', "filp dentry bio idle");
    check('s', "filp dentry bio idle");
    check('u', "filp dentry bio idle");
    // Since the last sample: filp 3 to 8 pages, bio 1 to 3, dentry 7 to 5. Since the start: bio and dentry 3,
    // filp -1.
    check('r', "filp bio idle dentry");
    check('t', "dentry bio idle filp");
    assert_eq!(SortKey::of('x'), None);
    let letters: Vec<char> = SortKey::ALL.iter().map(|key| key.letter()).collect();
    assert_eq!(letters.iter().collect::<std::collections::BTreeSet<_>>().len(), letters.len());
}

#[test]
fn header() {
    let mut sample = sample(0.0, "a 2 b 0 c 3");
    sample.rows[2].info.objsize = 32;
    let totals = sample.totals();
    let expected = Totals {
        active_objects: 50,
        objects: 80,
        active_slabs: 5,
        slabs: 5,
        active_caches: 2,
        caches: 3,
        active_bytes: 20 * 256 + 30 * 32,
        object_bytes: 32 * 256 + 48 * 32,
        bytes: 5 * 4096,
        smallest: 32,
        largest: 256,
    };
    assert_eq!(totals, expected);
    assert_eq!(Sample::default().totals(), Totals::default(), "no caches, no smallest object");
    assert_eq!(sample.slab_bytes(), totals.bytes, "what the caches have, without meminfo");
    sample.memory = Some(Memory { slab: 99, reclaimable: 1 });
    assert_eq!(sample.slab_bytes(), 99);
}

/// The example's states before and after, with the times they say they were taken.
#[test]
fn recorded_times() {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data");
    let read = |name: &str| {
        let path = Some(data.join(format!("hackbench-6.18.slabinfo-{name}.txt")));
        state::read(&Input { path, page_size: Some(4096), ..Input::default() }).expect("a slabinfo")
    };
    let states = ["start", "end", "end"].map(read);
    let check = |taken: [Option<u64>; 3], expected: [f64; 3]| {
        let mut states = states.to_vec();
        states.iter_mut().zip(taken).for_each(|(state, taken_s)| state.taken_s = taken_s);
        let mut source = Source::states(states, 5.0);
        let mut at = || source.sample().expect("a sample").map(|sample| sample.at_s);
        assert_eq!([at(), at(), at(), at()], [Some(expected[0]), Some(expected[1]), Some(expected[2]), None]);
    };
    check([Some(1000), Some(1060), Some(1090)], [0.0, 60.0, 90.0]);
    // Not all say it, or not in that order: the delay it is.
    check([Some(1000), None, Some(1090)], [0.0, 5.0, 10.0]);
    check([Some(1000), Some(1060), Some(1060)], [0.0, 5.0, 10.0]);
    check([None; 3], [0.0, 5.0, 10.0]);
    let mut source = Source::states(states.to_vec(), 5.0);
    let first = source.sample().expect("a sample").expect("there is one");
    let row = first.rows.iter().find(|row| row.info.name == "dentry").expect("every kernel has it");
    let [cache] = &source.cache(row).expect("the state").expect("the cache").caches[..] else { panic!() };
    assert_eq!((cache.name.as_str(), cache.slabs), ("dentry", row.info.num_slabs));
}
