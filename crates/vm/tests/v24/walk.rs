//! The walk over page tables: which spaces, how many entries, what it takes.

use super::room::{Room, USER};
use slablab_vm::mappings::Kind;
use slablab_vm::v24::Caller;
use slablab_vm::{Enter, Flags, Frame, Pte, Replacement};

/// A walk looks at 1/32 of a space from its cursor on, over the ends of regions.
#[test]
fn the_cursor_goes_on() {
    let room = Room::new("2.4.9", &[]);
    let space = room.space();
    let regions = [room.anon(space, 25).0, room.anon(space, 295).0];
    regions.iter().for_each(|region| room.accesses(*region));
    let mut looked = Vec::new();
    for _ in 0..4 {
        room.v24.walk(&room.vm, &room.host, &USER);
        looked.push(regions.map(|region| room.idle(region)));
    }
    assert_eq!(looked, [[10, 0], [20, 0], [25, 5], [25, 15]]);
}

/// At the end of a space a walk stops, and the next one begins at the start: it takes what it found young
/// before.
#[test]
fn the_end_of_a_space() {
    let room = Room::new("2.4.9", &[]);
    let (region, _) = room.anon(room.space(), 12);
    room.accesses(region);
    let mut walked = Vec::new();
    for _ in 0..4 {
        let before = room.host.walked.get();
        room.v24.walk(&room.vm, &room.host, &USER);
        walked.push((room.host.walked.get() - before, room.unmapped(region).len()));
    }
    assert_eq!(walked, [(8, 0), (4, 0), (8, 8), (4, 12)]);
}

/// Which spaces of eight a walk visits, in which order over two walks.
#[test]
fn spaces_in_turn() {
    for (preset, own_first, own, first, second) in [
        ("2.4.9", "yes", None, vec![0, 1, 2], vec![3, 4, 5]),
        ("2.4.9", "yes", Some(6), vec![0, 1, 2, 6], vec![3, 4, 5, 6]),
        ("2.4.9", "no", Some(6), vec![0, 1, 2], vec![3, 4, 5]),
        ("2.4.9-ac14+aging", "yes", None, vec![0, 1, 2, 3, 4], vec![0, 1, 5, 6, 7]),
    ] {
        let room = Room::new(preset, &[("own_first", own_first)]);
        let spaces: Vec<_> = (0..8).map(|_| room.space()).collect();
        let regions: Vec<_> = spaces.iter().map(|space| room.anon(*space, 64).0).collect();
        // Ages of anonymous pages would keep them; here only the order counts.
        room.vm.with(|state| (0..512).for_each(|frame| state.frames.set_policy(Frame(frame), 0)));
        let caller = Caller { space: own.map(|own: usize| spaces[own]), ..USER };
        let mut last = vec![0; 8];
        for expected in [first, second] {
            room.v24.walk(&room.vm, &room.host, &caller);
            let taken: Vec<usize> = regions.iter().map(|region| room.unmapped(*region).len()).collect();
            let visited: Vec<usize> = (0..8).filter(|space| taken[*space] > last[*space]).collect();
            assert_eq!(visited, expected, "{preset} {own_first} {own:?}");
            last = taken;
        }
        room.check();
    }
}

/// What a look at one entry does to it: the page is anonymous, of age `age`, its entry accessed or not.
#[test]
fn one_entry() {
    for (preset, accessed, age, flags, plenty, expected) in [
        // The age counts only for the ageing kernels, which age pages that are not active here.
        ("2.4.9", true, 2, Flags(0), false, "kept, none 5"),
        ("2.4.9", false, 2, Flags(0), false, "slot, inactive 0"),
        ("2.4.9-ac14+aging", true, 2, Flags(0), false, "kept, none 5"),
        ("2.4.9-ac14+aging", false, 2, Flags(0), false, "kept, none 1"),
        ("2.4.9-ac14+aging", false, 1, Flags(0), false, "slot, inactive 0"),
        // A zone with plenty of inactive pages: its pages are not aged up in 2.4.9.
        ("2.4.9", true, 2, Flags(0), true, "kept, none 2"),
        ("2.4.9", false, 2, Flags(0), true, "kept, none 2"),
        ("2.4.9-ac14+aging", true, 2, Flags(0), true, "kept, none 5"),
        ("2.4.9-ac14+aging", false, 2, Flags(0), true, "kept, none 1"),
        ("2.4.9-ac14+aging", false, 0, Flags(0), true, "kept, none 0"),
        ("2.4.9", false, 2, Flags::LOCKED, false, "kept, none 2"),
        ("2.4.10", true, 2, Flags(0), true, "kept, none 2"),
        ("2.4.10", false, 2, Flags(0), true, "slot, inactive 0"),
    ] {
        let room = Room::new(preset, &[]);
        let (region, pages) = room.anon(room.space(), 1);
        room.vm.with(|state| {
            state.frames.set_policy(pages[0], age);
            state.frames.set(pages[0], flags);
            let pte = state.spaces.region(region).pte(0);
            state.spaces.region_mut(region).mark(0, pte.accessed(accessed));
        });
        room.set_free(if plenty { 1366 } else { 31 });
        room.v24.walk_once(&room.vm, &room.host, &USER, 6);
        let slot = room.vm.with(|state| state.spaces.region(region).pte(0).slot());
        let found = format!("{}, {}", if slot.is_some() { "slot" } else { "kept" }, room.look(pages[0]));
        assert_eq!(found, expected, "{preset} {accessed} {age} {flags:?} {plenty}");
    }
}

/// With two lists inactive pages may be mapped: they are no reason to spare a zone, and free pages are.
#[test]
fn a_zone_with_mapped_inactive_pages_is_walked() {
    for (lists, free, expected) in [("three", 31, "kept"), ("two", 31, "slot"), ("two", 1366, "kept")] {
        let room = Room::new("2.4.10", &[("lists", lists), ("zone_test", "first")]);
        room.pages(1366);
        let (region, _) = room.anon(room.space(), 1);
        room.vm.with(|state| {
            let pte = state.spaces.region(region).pte(0);
            state.spaces.region_mut(region).mark(0, pte.accessed(false));
        });
        room.set_free(free);
        room.v24.walk_once(&room.vm, &room.host, &USER, 6);
        let slot = room.vm.with(|state| state.spaces.region(region).pte(0).slot());
        assert_eq!(if slot.is_some() { "slot" } else { "kept" }, expected, "{lists} {free}");
    }
}

/// A page of a file is unmapped, and stays in its list; a dirty entry makes it dirty. Tweaks spare pages in
/// use.
#[test]
fn pages_of_files() {
    for (preset, active, referenced, unmaps) in [
        ("2.4.9", true, true, true),
        ("2.4.10", true, true, true),
        ("2.4.10", false, true, true),
        ("2.4.9-ac14+aging", true, false, false),
        ("2.4.10+tweaks", true, false, false),
        ("2.4.10+tweaks", false, true, false),
        ("2.4.10+tweaks", false, false, true),
    ] {
        let room = Room::new(preset, &[]);
        let (mapping, pages) = room.file(Kind::File, 1, 0, Enter::ReadAhead);
        if active {
            room.make_active(pages[0], 9);
        }
        if referenced {
            room.set(pages[0], Flags::REFERENCED);
        }
        let region = room.map(room.space(), mapping, 1);
        room.vm.with(|state| {
            let pte = state.spaces.region(region).pte(0);
            state.spaces.region_mut(region).mark(0, pte.dirty(true));
        });
        let before = room.look(pages[0]);
        room.v24.walk_once(&room.vm, &room.host, &USER, 1);
        assert_eq!(!room.unmapped(region).is_empty(), unmaps, "{preset} {active} {referenced}");
        assert_eq!(room.vm.with(|state| state.frames.has(pages[0], Flags::DIRTY)), unmaps);
        assert_eq!(room.look(pages[0]), before, "the walk ages no active page");
    }
}

/// A full swap keeps pages mapped; a page with a slot needs no new one, and is dirty only if it was written.
#[test]
fn slots() {
    let room = Room::new("2.4.9", &[]);
    let space = room.space();
    let (region, pages) = room.anon(space, 1100);
    for _ in 0..2000 {
        room.v24.walk(&room.vm, &room.host, &USER);
    }
    assert_eq!(room.unmapped(region).len(), 1024, "slots of the room");
    // The first page comes back, unwritten.
    room.vm.with(|state| {
        state.frames.clear(pages[0], Flags::DIRTY);
        let slot = state.spaces.region(region).pte(0).slot().expect("a slot");
        state.map(region, 0, Pte::map(pages[0], false));
        assert_eq!(state.swap.users(slot), 0);
        assert!(!room.v24.keeps_slot(state, false), "more than 80 % is used");
    });
    for _ in 0..2000 {
        room.v24.walk(&room.vm, &room.host, &USER);
    }
    assert_eq!(room.unmapped(region).len(), 1024);
    room.vm.with(|state| assert!(!state.frames.has(pages[0], Flags::DIRTY)));
    room.check();
}

/// A walk of 2.4.10 goes to the end of each space, until 128 pages of the zones asked for can be freed.
#[test]
fn a_walk_over_zones() {
    for (preset, knobs, priority, expected) in [
        // Of six spaces of 50 pages: 1 and one more at priority 6.
        ("2.4.10", [].as_slice(), 6, (false, 100)),
        ("2.4.10", &[], 3, (true, 128)),
        ("2.4.10", &[("walk_want", "32")], 6, (true, 32)),
        ("2.4.10-pre11", &[], 6, (true, 32)),
    ] {
        let room = Room::new(preset, knobs);
        let regions: Vec<_> = (0..6).map(|_| room.anon(room.space(), 50).0).collect();
        let found = room.v24.walk_once(&room.vm, &room.host, &USER, priority);
        let taken: usize = regions.iter().map(|region| room.unmapped(*region).len()).sum();
        assert_eq!((found, taken), expected, "{preset} {knobs:?} {priority}");
        room.check();
    }
}

/// Pages of other zones: 2.4.10 unmaps them and counts them not, pre11 spares them.
#[test]
fn pages_of_other_zones() {
    for (preset, unmapped) in [("2.4.10", 8), ("2.4.10-pre11", 0)] {
        let room = Room::of_zones(preset, &[("walk_want", "8")], 2);
        let (mapping, _) = room.file(Kind::File, 8, 1, Enter::ReadAhead);
        let region = room.map(room.space(), mapping, 8);
        let caller = Caller { class: (0, 0), ..USER };
        assert!(!room.v24.walk_once(&room.vm, &room.host, &caller, 1));
        assert_eq!(room.unmapped(region).len(), unmapped, "{preset}");
    }
}

/// Pages that no walk can take, of `spaces` spaces.
fn locked(room: &Room, spaces: u32, pages: u32) {
    for _ in 0..spaces {
        room.anon(room.space(), pages).1.iter().for_each(|page| room.set(*page, Flags::LOCKED));
    }
}

/// While another task walks too, pre11's walk visits spaces at no cost.
#[test]
fn a_race() {
    for (preset, races, walked) in [
        ("2.4.10", false, 4),
        ("2.4.10", true, 4),
        ("2.4.10-pre11", false, 4),
        ("2.4.10-pre11", true, 64 * 16),
    ] {
        let room = Room::new(preset, &[]);
        locked(&room, 4, 4);
        if races {
            room.race();
        }
        assert!(!room.v24.walk_once(&room.vm, &room.host, &USER, 6));
        assert_eq!(room.host.walked.get(), walked, "{preset} {races}");
    }
}

/// How often one run of reclaim walks in vain, over one space of 8 pages. Every second walk of a kernel with
/// three lists only finds the end of the space.
#[test]
fn walks_of_a_run() {
    for (preset, kswapd, walks) in [
        // For the machine 6 or 64 times, then 64 times for its zones.
        ("2.4.8", false, (6 + 64) / 2),
        ("2.4.8", true, (64 + 64) / 2),
        ("2.4.9", false, 64 / 2),
        ("2.4.9-ac14", false, 64 / 2),
        // Once a priority; at priority 1 the space twice.
        ("2.4.10", false, 7),
    ] {
        let room = Room::new(preset, &[]);
        locked(&room, 1, 8);
        room.set_free(0);
        room.v24.try_to_free(&room.vm, &room.host, &Caller { kswapd, ..USER });
        assert_eq!(room.host.walked.get(), walks * 8, "{preset} {kswapd}");
    }
}

/// A page in swap that one of two tasks wrote to is dirty, although that task gives it away first.
#[test]
fn the_end_of_a_dirty_entry() {
    let room = Room::new("2.4.9", &[]);
    let (region, pages) = room.anon(room.space(), 1);
    room.vm.with(|state| {
        assert!(state.add_to_swap(pages[0]).is_some());
        room.v24.enter(state, pages[0], Enter::SwapIn, None);
        state.frames.clear(pages[0], Flags::DIRTY);
        let other = state.spaces.create();
        let copy = state.spaces.add(other, state.spaces.region(region).backing, 1);
        state.map(copy, 0, Pte::map(pages[0], false));
        state.unmap(region, 0, Pte::NONE);
    });
    room.set_free(0);
    for _ in 0..2 {
        room.v24.walk(&room.vm, &room.host, &USER);
        room.v24.launder(&room.vm, &room.host, &USER, 1);
    }
    assert!(room.vm.with(|state| state.frames.flags(pages[0]).any(Flags::DIRTY | Flags::WRITEBACK)));
}

/// A run of 2.4.10 that frees nothing made progress if a walk found enough pages, where walks count.
#[test]
fn a_walk_that_found_enough_is_progress() {
    for (walk_counts, pages, success) in
        [("yes", 200, true), ("yes", 100, false), ("no", 200, false), ("no", 100, false)]
    {
        let room = Room::new("2.4.10", &[("walk_counts", walk_counts), ("limit_writes", "no")]);
        room.anon(room.space(), pages);
        room.set_free(0);
        let ran = room.v24.try_to_free(&room.vm, &room.host, &USER);
        // A walk wants 128 pages. Their writes to swap have not ended.
        assert_eq!((ran.pages, ran.success), (0, success), "{walk_counts} {pages}");
        room.host.settle(&room.vm);
        room.check();
    }
}
