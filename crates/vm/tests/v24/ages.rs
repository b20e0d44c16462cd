//! Ages after scans of the active list.

use super::room::Room;
use slablab_vm::Flags;
use slablab_vm::mappings::Kind;

/// The ages of an active page after each of `scans` looks without access.
fn ages(preset: &str, knobs: &[(&str, &str)], start: u32, scans: usize) -> Vec<u32> {
    let room = Room::new(preset, knobs);
    let page = room.pages(1)[0];
    room.make_active(page, start);
    let ages = (0..scans).map(|_| {
        room.v24.refill(&room.vm, &room.host, 1, 1);
        room.vm.with(|state| state.frames.policy(page))
    });
    let ages = ages.collect();
    assert_eq!(room.place(page), "inactive", "{preset} {knobs:?}");
    ages
}

#[test]
fn a_page_grows_old() {
    let linear: Vec<u32> = (0..64).rev().collect();
    for (preset, knobs, start, expected) in [
        ("2.4.9", [].as_slice(), 64, [32, 16, 8, 4, 2, 1, 0].as_slice()),
        ("2.4.9", &[], 3, &[1, 0]),
        ("2.4.9", &[], 2, &[1, 0]),
        ("2.4.9-ac14", &[("age", "bit")], 64, &[0]),
        ("2.4.9-ac14", &[("age", "none")], 64, &[0]),
        ("2.4.9-ac14", &[("age", "doubling")], 3, &[2, 1, 0]),
        ("2.4.9-ac14+aging", &[], 5, &[4, 3, 2, 1, 0]),
        ("2.4.9-ac14+aging", &[], 64, &linear),
        ("2.4.9-ac14+aging", &[("age_decline", "2")], 5, &[3, 1, 0]),
        ("2.4.9-ac14", &[("age", "doubling"), ("age_decline", "3")], 8, &[5, 2, 0]),
    ] {
        assert_eq!(ages(preset, knobs, start, expected.len()), expected, "{preset} {knobs:?} from {start}");
    }
}

/// The age of a page after each of three looks that find it referenced.
#[test]
fn a_page_grows_young() {
    for (preset, knobs, start, expected) in [
        ("2.4.9", [].as_slice(), 0, [3, 6, 9]),
        ("2.4.9", &[], 60, [63, 64, 64]),
        ("2.4.9-ac14", &[("age", "doubling")], 0, [1, 2, 4]),
        ("2.4.9-ac14", &[("age", "bit")], 0, [3, 6, 9]),
        ("2.4.9-ac14+aging", &[], 5, [8, 11, 14]),
        ("2.4.10", &[], 0, [0, 0, 0]),
    ] {
        let room = Room::new(preset, knobs);
        let page = room.pages(1)[0];
        room.make_active(page, start);
        let ages = [0; 3].map(|_| {
            room.set(page, Flags::REFERENCED);
            assert_eq!(room.v24.refill(&room.vm, &room.host, 1, 1), 0);
            room.vm.with(|state| state.frames.policy(page))
        });
        assert_eq!(ages, expected, "{preset} {knobs:?} from {start}");
    }
}

/// What keeps an old page active: entries that map it, plenty of inactive pages in its zone, the limits.
#[test]
fn old_pages_that_stay_active() {
    for (preset, mapped, plenty, active, expected) in [
        ("2.4.9", false, false, 1, "inactive 0"),
        ("2.4.9", true, false, 1, "active 0"),
        ("2.4.9", false, true, 1, "active 1"),
        ("2.4.9-ac14+aging", true, false, 1, "inactive 0"),
        ("2.4.9-ac14+aging", false, true, 1, "active 0"),
        // More than half of memory is page cache.
        ("2.4.9-ac14+aging", false, false, 2049, "inactive 0"),
        ("2.4.10", true, true, 1, "inactive 0"),
    ] {
        let room = Room::new(preset, &[]);
        let (mapping, pages) = room.file(Kind::File, active, 0, super::room::AHEAD);
        let above = active > 1;
        pages.iter().for_each(|page| room.make_active(*page, if above { 64 } else { 1 }));
        if mapped {
            room.map(room.space(), mapping, 1);
        }
        if plenty {
            room.set_free(4096 / 3 + 1);
        }
        room.v24.refill(&room.vm, &room.host, 1, u32::MAX);
        assert_eq!(room.look(pages[0]), expected, "{preset} {mapped} {plenty} {active}");
    }
}

/// 2.4.10: a reference buys another round on the active list. Tweaks give one on the inactive list too.
#[test]
fn refill_of_two_lists() {
    for (preset, expected) in [("2.4.10", "inactive 0"), ("2.4.10+tweaks", "inactive 0 referenced")] {
        let room = Room::new(preset, &[]);
        let pages = room.pages(3);
        pages.iter().for_each(|page| room.make_active(*page, 0));
        room.set(pages[0], Flags::REFERENCED);
        // Two pages are wanted: the tail goes round, the next two are inactive.
        assert_eq!(room.v24.refill(&room.vm, &room.host, 3, 2), 2);
        let found = [0, 1, 2].map(|page: usize| room.look(pages[page]));
        assert_eq!(found, ["active 0", expected, expected].map(str::to_owned), "{preset}");
    }
}

/// Pages of block devices above a tenth of memory are deactivated, whatever their age.
#[test]
fn many_buffers() {
    for (preset, kind, pages, expected) in [
        ("2.4.9-ac14", Kind::Device, 410, "inactive 0"),
        ("2.4.9-ac14", Kind::Device, 409, "active 32"),
        ("2.4.9-ac14", Kind::File, 410, "active 32"),
        ("2.4.9", Kind::Device, 410, "active 32"),
    ] {
        let room = Room::new(preset, &[]);
        let (_, pages) = room.file(kind, pages, 0, super::room::AHEAD);
        pages.iter().for_each(|page| room.make_active(*page, 64));
        room.v24.refill(&room.vm, &room.host, 1, 1);
        assert_eq!(room.look(pages[0]), expected, "{preset} {kind:?} {}", pages.len());
        room.check();
    }
}

/// A mapped page is deactivated or not by `deactivate_mapped`, whichever kernel it is added to.
#[test]
fn mapped_pages_that_are_old() {
    for (preset, knob, expected) in [
        ("2.4.9", "no", "active 0"),
        ("2.4.9", "yes", "inactive 0"),
        ("2.4.10", "no", "active 0"),
        ("2.4.10", "yes", "inactive 0"),
    ] {
        let room = Room::new(preset, &[("deactivate_mapped", knob)]);
        let (mapping, pages) = room.file(Kind::File, 1, 0, super::room::AHEAD);
        room.make_active(pages[0], 0);
        room.map(room.space(), mapping, 1);
        room.v24.refill(&room.vm, &room.host, 1, 1);
        assert_eq!(room.look(pages[0]), expected, "{preset} {knob}");
        room.check();
    }
}

/// A page that becomes active has the age of a new page at least.
#[test]
fn an_activated_page_keeps_a_higher_age() {
    for (preset, age, expected) in
        [("2.4.9", 0, "active 2"), ("2.4.9", 9, "active 9"), ("2.4.9-ac14+aging", 4, "active 5")]
    {
        let room = Room::new(preset, &[]);
        let page = room.pages(1)[0];
        room.vm.with(|state| {
            state.frames.set_policy(page, age);
            room.v24.activate(state, page);
        });
        assert_eq!(room.look(page), expected, "{preset} {age}");
    }
}
