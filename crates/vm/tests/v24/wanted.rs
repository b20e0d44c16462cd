//! How many pages are wanted: shortages, targets, pressure; what is asked of dentries and inodes; kswapd.

use super::room::{Room, USER};
use slablab_vm::{Counter, Replacement};

const SECOND: u64 = 1_000_000_000;

/// Shortages of a machine of one zone (marks 10, 20, 30; 4,096 pages) by its free pages and inactive ones.
#[test]
fn shortages() {
    for (preset, free, inactive, expected) in [
        // Below low the zone is short by what is missing to low, else the machine to high.
        ("2.4.9", 15, 0, (5, 15)),
        ("2.4.9", 20, 0, (10, 10)),
        ("2.4.9", 30, 0, (0, 0)),
        ("2.4.9", 15, 15, (5, 0)),
        // A quarter of memory is to be inactive.
        ("2.4.9-ac14+aging", 30, 0, (0, 1024)),
        ("2.4.9-ac14+aging", 30, 1000, (0, 24)),
        ("2.4.10", 30, 0, (0, 0)),
    ] {
        let room = Room::new(preset, &[]);
        room.set_free(free);
        room.pages(inactive);
        let found =
            (room.v24.free_shortage(&room.vm, &room.host), room.v24.inactive_shortage(&room.vm, &room.host));
        assert_eq!(found, expected, "{preset} {free} {inactive}");
    }
}

/// Pressure rises by allocations, falls by frees, and loses a 64th each second.
#[test]
fn pressure() {
    let room = Room::new("2.4.9", &[]);
    let count = |counter, n| room.vm.with(|state| state.counters.add(counter, n));
    let look = || {
        let pressure = room.v24.pressure(&room.vm, &room.host);
        (pressure, room.v24.inactive_target(&room.vm, &room.host))
    };
    count(Counter::PgAlloc, 7000);
    count(Counter::PgFree, 600);
    assert_eq!(look(), (6400, 100));
    room.host.now.set(SECOND);
    assert_eq!(look(), (6300, 98));
    room.host.now.set(3 * SECOND);
    assert_eq!(look(), (6300 - 98 - 96, 95));
    count(Counter::PgAlloc, 1_000_000);
    assert_eq!(look().1, 1024, "a quarter of memory at most");
    count(Counter::PgFree, 2_000_000);
    assert_eq!(look(), (1, 0));
}

/// What is asked of a cache of unused objects in one pass; a count of 0 frees all.
#[test]
fn dentries() {
    for (preset, unused, priority, expected) in [
        ("2.4.8", 6400, 6, 100),
        ("2.4.8", 63, 6, 63),
        ("2.4.9", 64, 6, 1),
        ("2.4.9-ac14", 6400, 6, 6400),
        ("2.4.10", 6400, 6, 1066),
        ("2.4.10", 6400, 1, 6400),
        ("2.4.10", 5, 6, 5),
    ] {
        let room = Room::new(preset, &[]);
        *room.host.unused.borrow_mut() = vec![unused, 0];
        room.v24.shrink_vfs(&room.vm, &room.host, priority);
        assert_eq!(*room.host.asked.borrow(), [expected], "{preset} {unused} {priority}");
    }
}

/// When kswapd of each kernel works at all: free pages are plenty, inactive ones short or not.
#[test]
fn kswapd_works() {
    // Walks seen, and calls of the shrinker.
    for (preset, free, expected) in [
        // Nothing is short: only 2.4.9 ages, once.
        ("2.4.8", 30, (false, 0)),
        ("2.4.9", 30, (true, 0)),
        ("2.4.9-ac14", 30, (false, 0)),
        // Inactive pages are short: with ageing only a shortage of free pages counts.
        ("2.4.9-ac14+aging", 30, (false, 0)),
        ("2.4.9-ac15+aging+launder", 30, (false, 0)),
        // Free pages are short by far: runs until kswapd gives up, one shrink each (2.4.9: 64).
        ("2.4.8", 0, (true, 16)),
        ("2.4.9", 0, (true, 16 * 64)),
        ("2.4.9-ac14", 0, (true, 16)),
        ("2.4.9-ac14+aging", 0, (true, 16)),
    ] {
        let room = Room::new(preset, &[]);
        *room.host.unused.borrow_mut() = vec![1];
        room.set_free(free);
        room.anon(room.space(), 8);
        room.v24.kswapd(&room.vm, &room.host, 0, 0, 0);
        let found = (room.host.walked.get() > 0, room.host.asked.borrow().len());
        assert_eq!(found, expected, "{preset} {free}");
    }
}

/// After a failure 2.4.10's kswapd sleeps five seconds, and pre11's goes on.
#[test]
fn kswapd_fails() {
    for (preset, naps, runs) in [("2.4.10", vec![5 * SECOND], 1), ("2.4.10-pre11", vec![], 16)] {
        let room = Room::new(preset, &[]);
        *room.host.unused.borrow_mut() = vec![1];
        room.set_free(0);
        room.v24.kswapd(&room.vm, &room.host, 0, 0, 0);
        assert_eq!(*room.host.naps.borrow(), naps, "{preset}");
        assert_eq!(room.host.asked.borrow().len(), 6 * runs, "six priorities a run of {preset}");
    }
}

/// Once a second a part of the active pages ages: a 16th, a 64th, or none.
#[test]
fn each_second() {
    for (preset, knobs, aged) in [
        ("2.4.8", [].as_slice(), 4),
        ("2.4.9-ac14", &[], 1),
        ("2.4.9-ac14+aging", &[], 1),
        ("2.4.10", &[], 0),
        ("2.4.8", &[("background", "no")], 0),
        ("2.4.8", &[("background", "sixty-fourth")], 1),
        ("2.4.9-ac14", &[("background", "sixteenth")], 4),
    ] {
        let room = Room::new(preset, knobs);
        let pages = room.pages(64);
        pages.iter().for_each(|page| room.make_active(*page, 10));
        room.v24.tick(&room.vm, &room.host);
        let ages = room.vm.with(|state| pages.iter().filter(|page| state.frames.policy(**page) < 10).count());
        assert_eq!(ages, aged, "{preset} {knobs:?}");
    }
}

/// An allocation of the kernels with three lists ends with clean pages, which are stolen one by one.
#[test]
fn clean_pages_are_stolen() {
    for preset in ["2.4.8", "2.4.9", "2.4.9-ac14", "2.4.9-ac14+aging", "2.4.9-ac15+aging+launder"] {
        let room = Room::new(preset, &[]);
        let pages = room.pages(192);
        room.set_free(0);
        room.v24.try_to_free(&room.vm, &room.host, &USER);
        let clean = room.vm.with(|state| room.v24.clean_pages(state, 0));
        assert!(clean >= 30, "{preset}: {clean}");
        let stolen = room.v24.steal_clean(&room.vm, &room.host, 0);
        assert_eq!(stolen, Some(pages[0]), "the oldest page");
        assert_eq!(room.place(pages[0]), "free");
        assert_eq!(room.vm.with(|state| room.v24.clean_pages(state, 0)), clean - 1);
        room.check();
    }
}
