//! Laundering: what becomes of inactive pages; hysteresis; who waits for writes.

use super::room::{AHEAD, Room, USER};
use slablab_vm::mappings::Kind;
use slablab_vm::v24::Caller;
use slablab_vm::{Entry, Flags, Frame, Replacement};

const KSWAPD: Caller = Caller { kswapd: true, ..USER };

/// One inactive page of each kind after a run of laundering; free pages are short.
#[test]
fn one_page() {
    for (preset, what, expected) in [
        ("2.4.9", "clean", "clean 0"),
        ("2.4.9", "referenced", "active 2 referenced"),
        ("2.4.9", "aged", "clean 9"),
        ("2.4.9", "mapped", "active 2"),
        ("2.4.9", "mapped dirty", "active 2"),
        ("2.4.9", "locked", "inactive 0"),
        ("2.4.9", "dirty", "inactive 0 written"),
        ("2.4.9", "buffers", "clean 0"),
        ("2.4.9", "dirty buffers", "clean 0 written waited"),
        ("2.4.9", "device", "free"),
        ("2.4.9", "ramfs", "active 2"),
        ("2.4.8", "aged", "clean 9"),
        ("2.4.8", "dirty", "inactive 0 written"),
        ("2.4.8", "buffers", "clean 0"),
        ("2.4.8", "dirty buffers", "inactive 0 written"),
        ("2.4.9-ac14", "aged", "active 9"),
        ("2.4.9-ac14", "mapped", "active 2"),
        ("2.4.9-ac14", "mapped buffers", "active 2"),
        ("2.4.9", "mapped buffers", "active 2"),
        ("2.4.9-ac14+aging", "aged", "active 9"),
        ("2.4.9-ac14+aging", "clean", "clean 0"),
        ("2.4.9-ac14+launder", "clean", "clean 0"),
        ("2.4.9-ac14+launder", "dirty buffers", "inactive 0"),
    ] {
        let room = Room::new(preset, &[]);
        let kind = match what {
            "device" => Kind::Device,
            "ramfs" => Kind::Pinned,
            _ => Kind::File,
        };
        let (mapping, pages) = room.file(kind, 64, 0, AHEAD);
        // A pass of 2.4.9 looks at a 64th: at the oldest page.
        let page = pages[0];
        let flags = [
            ("referenced", Flags::REFERENCED),
            ("locked", Flags::LOCKED),
            ("dirty", Flags::DIRTY),
            ("buffers", Flags::BUFFERS),
            ("device", Flags::BUFFERS),
        ];
        flags.iter().filter(|(word, _)| what.contains(word)).for_each(|(_, flags)| room.set(page, *flags));
        if what.starts_with("mapped") {
            room.map(room.space(), mapping, 1);
        }
        if what == "aged" {
            room.vm.with(|state| state.frames.set_policy(page, 9));
        }
        // 63 clean pages do not end the shortage.
        room.host.marks.set([10, 20, 100]);
        room.set_free(0);
        room.v24.launder(&room.vm, &room.host, &USER, 1);
        let mut found = if room.place(page) == "free" { "free".into() } else { room.look(page) };
        found += if room.host.written.get() > 0 { " written" } else { "" };
        found += if room.host.waits.get() > 0 { " waited" } else { "" };
        assert_eq!(found, expected, "{preset} {what}");
        room.host.settle(&room.vm);
        room.check();
    }
}

/// A zone with plenty of free pages: all pages go round, or only dirty ones.
#[test]
fn zones_with_plenty() {
    for (preset, clean, dirty) in [("2.4.8", "inactive", "inactive"), ("2.4.9-ac14", "clean", "inactive")] {
        for (kind, expected) in [(Flags(0), clean), (Flags::DIRTY, dirty)] {
            let room = Room::new(preset, &[]);
            let pages = room.pages(2);
            room.set(pages[0], kind);
            room.set_free(61);
            room.v24.launder(&room.vm, &room.host, &USER, 1);
            assert_eq!(room.place(pages[0]), expected, "{preset} {kind:?}");
            assert_eq!(room.host.written.get(), 0);
        }
    }
}

/// Pages with dirty buffers, of which the first are `dirty`.
fn dirtied(room: &Room, pages: u32, dirty: usize) -> Vec<Frame> {
    let pages = room.pages(pages);
    pages[..dirty].iter().for_each(|page| room.set(*page, Flags::BUFFERS | Flags::DIRTY));
    pages
}

/// Writes start above 25 % of pages that need one, and end below 10 %; while they are off nothing is written.
#[test]
fn hysteresis() {
    let room = Room::new("2.4.9-ac14+launder", &[]);
    room.set_free(0);
    // Pages in need of a write of 100 in one pass, whether it wrote, and whether the next one writes.
    for (dirty, wrote, writes) in [
        (25, false, false),
        (26, false, true),
        (11, true, true),
        (10, true, true),
        (9, true, false),
        (20, false, false),
        (60, false, true),
    ] {
        let pages = dirtied(&room, 100, dirty);
        let before = room.host.written.get();
        room.v24.launder(&room.vm, &room.host, &KSWAPD, 1);
        assert_eq!(room.host.written.get() > before, wrote, "{dirty}");
        assert_eq!(room.v24.is_writing(), writes, "{dirty}");
        room.host.settle(&room.vm);
        for page in pages {
            room.vm.with(|state| {
                room.v24.leave(state, page);
                state.leave_mapping(page, Entry::Absent);
                assert!(state.end(page));
            });
        }
    }
}

/// How many of 200 pages with dirty buffers a run writes, and how often it waits. The second loop starts 64
/// writes; later ones only an allocation starts that has cleaned nothing, and waits for each, until the zone
/// has plenty of clean pages: 61. 2.4.9 waits for each, of a 64th.
#[test]
fn who_waits() {
    for (preset, caller, clean, expected) in [
        ("2.4.8", KSWAPD, 0, (64, 0)),
        ("2.4.8", USER, 1, (64, 0)),
        ("2.4.8", USER, 0, (125, 61)),
        ("2.4.9-ac14", USER, 0, (125, 61)),
        ("2.4.9", KSWAPD, 0, (3, 3)),
        ("2.4.9", USER, 0, (3, 3)),
    ] {
        let room = Room::new(preset, &[]);
        dirtied(&room, 200 + clean, 200);
        room.set_free(0);
        room.v24.launder(&room.vm, &room.host, &caller, 1);
        let found = (room.host.written.get(), room.host.waits.get());
        assert_eq!(found, expected, "{preset} {} {clean}", caller.kswapd);
        room.host.settle(&room.vm);
        room.check();
    }
}

/// Without the right to enter file systems nothing is written.
#[test]
fn callers_that_may_not_write() {
    for preset in ["2.4.8", "2.4.9", "2.4.10"] {
        let room = Room::new(preset, &[]);
        let pages = room.pages(64);
        pages.iter().for_each(|page| room.set(*page, Flags::DIRTY));
        room.set_free(0);
        let caller = Caller { io: false, fs: false, ..USER };
        room.v24.launder(&room.vm, &room.host, &caller, 1);
        assert_eq!(room.host.written.get(), 0, "{preset}");
    }
}

/// Above 128 writes to swap in flight a writer waits for its own; not with ageing.
#[test]
fn writes_in_flight() {
    for (preset, waits) in [("2.4.8", true), ("2.4.9-ac14+aging", false)] {
        let room = Room::new(preset, &[("victims", "idle")]);
        room.anon(room.space(), 200);
        for _ in 0..100 {
            room.v24.walk(&room.vm, &room.host, &USER);
        }
        room.set_free(0);
        room.v24.launder(&room.vm, &room.host, &USER, 1);
        assert_eq!(room.host.written.get(), 200, "{preset}");
        assert_eq!(room.host.waits.get() > 0, waits, "{preset}");
        assert_eq!(room.v24.writes_in_flight(), if waits { 71 } else { 200 });
        room.host.settle(&room.vm);
        assert_eq!(room.v24.writes_in_flight(), 0);
        room.check();
    }
}

/// A page of tmpfs gets a slot at the first meeting, is written at the second, and free at the third.
#[test]
fn tmpfs_meets_twice() {
    let room = Room::new("2.4.10", &[]);
    let (mapping, pages) = room.file(Kind::Tmpfs, 1, 0, AHEAD);
    room.set(pages[0], Flags::DIRTY);
    let mut seen = Vec::new();
    for _ in 0..3 {
        room.v24.shrink_cache(&room.vm, &room.host, &USER, 1, 1, &mut None);
        room.host.settle(&room.vm);
        let slot = room.vm.with(|state| matches!(state.mappings.get(mapping).entry(0), Entry::Slot(_)));
        seen.push((slot, room.host.written.get(), room.place(pages[0])));
    }
    assert_eq!(seen, [(true, 0, "inactive"), (true, 1, "inactive"), (true, 1, "free")]);
    room.check();
}

/// A page of a slot that nobody uses any more is dropped without a write: 2.4.8 skips the write and meets the
/// page again, 2.4.10 frees it at once.
#[test]
fn slots_without_users() {
    for (preset, meetings) in [("2.4.8", 2), ("2.4.10", 1)] {
        let room = Room::new(preset, &[]);
        let (region, pages) = room.anon(room.space(), 1);
        room.vm.with(|state| {
            for page in &pages {
                state.frames.set_policy(*page, 0);
            }
        });
        room.v24.walk_once(&room.vm, &room.host, &USER, 1);
        room.vm.with(|state| state.forget(region, 0));
        room.set_free(0);
        for _ in 0..meetings {
            match preset {
                "2.4.8" => room.v24.launder(&room.vm, &room.host, &USER, 1),
                _ => room.v24.shrink_cache(&room.vm, &room.host, &USER, 1, 1, &mut None),
            };
        }
        assert_eq!(room.host.written.get(), 0, "{preset}");
        if preset == "2.4.8" {
            assert!(room.v24.steal_clean(&room.vm, &room.host, 0).is_some());
        }
        assert_eq!(room.vm.with(|state| state.swap.used()), 0, "{preset}");
        room.check();
    }
}

/// A freed page of buffers that ends the shortage ends the pass.
#[test]
fn a_freed_page_ends_the_shortage() {
    let room = Room::new("2.4.8", &[]);
    let (_, pages) = room.file(Kind::Device, 10, 0, AHEAD);
    pages.iter().for_each(|page| room.set(*page, Flags::BUFFERS));
    room.set_free(28);
    assert_eq!(room.v24.launder(&room.vm, &room.host, &USER, 1), 2);
    assert_eq!(*room.host.freed.borrow(), pages[..2]);
}

/// An inactive page with an age is activated or cleaned by `launder_ages`.
#[test]
fn pages_with_an_age() {
    for (preset, launder_ages, age, expected) in [
        ("2.4.9", "no", 9, "clean 9"),
        ("2.4.9", "yes", 9, "active 9"),
        ("2.4.9", "yes", 0, "clean 0"),
        ("2.4.9-ac14", "no", 9, "clean 9"),
        ("2.4.9-ac14", "yes", 9, "active 9"),
    ] {
        let room = Room::new(preset, &[("launder_ages", launder_ages)]);
        let page = room.pages(64)[0];
        room.vm.with(|state| state.frames.set_policy(page, age));
        room.host.marks.set([10, 20, 100]);
        room.set_free(0);
        room.v24.launder(&room.vm, &room.host, &USER, 1);
        assert_eq!(room.look(page), expected, "{preset} {launder_ages} {age}");
    }
}

/// The write to swap after the 128th that is in flight is waited for, where writes are limited.
#[test]
fn the_first_write_that_waits() {
    for (limit_writes, pages, waits) in [("yes", 128, 0), ("yes", 129, 1), ("no", 129, 0)] {
        let room = Room::new("2.4.8", &[("limit_writes", limit_writes)]);
        room.anon(room.space(), pages);
        for _ in 0..100 {
            room.v24.walk(&room.vm, &room.host, &USER);
        }
        room.set_free(0);
        room.v24.launder(&room.vm, &room.host, &USER, 1);
        let found = (room.host.written.get(), room.host.waits.get());
        assert_eq!(found, (pages, waits), "{limit_writes}");
    }
}

/// Where writes begin and end is set by `write_above` and `write_below`.
#[test]
fn hysteresis_of_other_limits() {
    for (knobs, dirty, writes) in [
        ([("write_above", "25"), ("write_below", "10")], 26, true),
        ([("write_above", "50"), ("write_below", "10")], 50, false),
        ([("write_above", "50"), ("write_below", "10")], 51, true),
    ] {
        let room = Room::new("2.4.9-ac14+launder", &knobs);
        room.set_free(0);
        dirtied(&room, 100, dirty);
        room.v24.launder(&room.vm, &room.host, &KSWAPD, 1);
        assert_eq!(room.v24.is_writing(), writes, "{knobs:?} {dirty}");
    }
}
