//! The cache of 2.4.10: budget, references, zones, the page for the asking task; and pre11.

use super::room::{AHEAD, Room, USER};
use slablab_vm::mappings::Kind;
use slablab_vm::v24::Caller;
use slablab_vm::v24::lru::{ACTIVE, INACTIVE};
use slablab_vm::{Ask, Flags, Frame, Replacement};

const ASK: Ask = Ask { node: 0, class: 0, order: 0, io: true, fs: true, space: None, group: false };

/// The asking task gets the page that it freed last; the others come back newest first.
#[test]
fn the_task_gets_its_page() {
    for (knobs, order, handed) in
        [([].as_slice(), 0, Some(31)), (&[], 1, None), (&[("hands_over", "no")], 0, None)]
    {
        let room = Room::new("2.4.10", knobs);
        let pages = room.pages(400);
        let freed = room.v24.direct(&room.vm, &room.host, &Ask { order, ..ASK });
        assert_eq!((freed.pages, freed.progress), (32, true));
        assert_eq!(freed.page, handed.map(|page: usize| pages[page]));
        let back: Vec<Frame> = pages[..if handed.is_some() { 31 } else { 32 }].to_vec();
        assert_eq!(*room.host.freed.borrow(), back, "oldest first: the newest is on top of the free list");
        room.check();
    }
}

/// Of 60 inactive pages a pass at priority 6 frees 10. Referenced ones cost nothing: they go round, and are
/// met again without their reference if no other page is left.
#[test]
fn references_cost_no_budget() {
    for (referenced, expected) in
        [(0, (0..10).collect::<Vec<usize>>()), (30, (30..40).collect()), (55, (0..5).chain(55..60).collect())]
    {
        let room = Room::new("2.4.10", &[]);
        let pages = room.pages(60);
        pages[..referenced].iter().for_each(|page| room.set(*page, Flags::REFERENCED));
        let left = room.v24.shrink_cache(&room.vm, &room.host, &USER, 32, 6, &mut None);
        let freed: Vec<usize> = (0..60).filter(|page| room.place(pages[*page]) == "free").collect();
        assert_eq!((left, freed), (22, expected), "{referenced}");
    }
}

/// What becomes of one inactive page of each kind, before a clean one that is the only wanted page.
#[test]
fn one_page() {
    for (preset, what, expected) in [
        ("2.4.10", "clean", "free"),
        ("2.4.10", "referenced", "inactive 0"),
        ("2.4.10", "mapped", "inactive 0"),
        ("2.4.10", "locked", "inactive 0"),
        ("2.4.10", "dirty", "inactive 0 written"),
        ("2.4.10", "buffers", "free"),
        ("2.4.10", "dirty buffers", "inactive 0"),
        ("2.4.10", "other zone", "inactive 0"),
        ("2.4.10+tweaks", "mapped", "active 2"),
        ("2.4.10-pre11", "clean", "free"),
        ("2.4.10-pre11", "referenced", "active 2"),
        ("2.4.10-pre11", "mapped", "active 2"),
    ] {
        let room = Room::of_zones(preset, &[], 2);
        let zone = usize::from(what == "other zone");
        let (mapping, pages) = room.file(Kind::File, 2, zone, AHEAD);
        match what {
            "referenced" => room.set(pages[0], Flags::REFERENCED),
            "locked" => room.set(pages[0], Flags::LOCKED),
            "dirty" => room.set(pages[0], Flags::DIRTY),
            "buffers" => room.set(pages[0], Flags::BUFFERS),
            "dirty buffers" => room.set(pages[0], Flags::BUFFERS | Flags::DIRTY),
            "mapped" => {
                room.map(room.space(), mapping, 1);
            }
            _ => {}
        }
        let caller = Caller { class: (0, 0), ..USER };
        room.v24.shrink_cache(&room.vm, &room.host, &caller, 1, 1, &mut None);
        let mut found = if room.place(pages[0]) == "free" { "free".into() } else { room.look(pages[0]) };
        found += if room.host.written.get() > 0 { " written" } else { "" };
        found += if room.host.waits.get() > 0 { " waited" } else { "" };
        assert_eq!(found, expected, "{preset} {what}");
        room.host.settle(&room.vm);
        room.check();
    }
}

/// A page with dirty buffers is written, waited for and freed when it is met the second time.
#[test]
fn dirty_buffers_have_a_free_pass() {
    for (knob, first) in [("yes", "inactive 0"), ("no", "free")] {
        let room = Room::new("2.4.10", &[("free_pass", knob)]);
        let pages = room.pages(1);
        room.set(pages[0], Flags::BUFFERS | Flags::DIRTY);
        let meet = || {
            room.v24.shrink_cache(&room.vm, &room.host, &USER, 1, 1, &mut None);
            if room.place(pages[0]) == "free" { "free".into() } else { room.look(pages[0]) }
        };
        assert_eq!((meet(), room.host.written.get()), (first.into(), u32::from(first == "free")), "{knob}");
        assert_eq!((meet(), room.host.written.get(), room.host.waits.get()), ("free".into(), 1, 1), "{knob}");
        room.check();
    }
}

/// The active list is refilled from while the inactive one is shorter than twice the active one.
#[test]
fn refill_keeps_the_inactive_list_long() {
    for (preset, active, inactive, moved) in [
        ("2.4.10", 90, 60, 32),
        ("2.4.10", 30, 60, 0),
        ("2.4.10", 31, 60, 31),
        // Tweaks: wanted * active / (2 (inactive + 1)).
        ("2.4.10+tweaks", 90, 59, 24),
        ("2.4.10-pre11", 90, 60, 0),
    ] {
        let room = Room::new(preset, &[]);
        room.pages(active).iter().for_each(|page| room.make_active(*page, 0));
        room.pages(inactive);
        let lengths = || room.vm.with(|state| (state.lists.len(ACTIVE), state.lists.len(INACTIVE)));
        // One priority's pass: refill first; then 32 pages go, or a sixth of the inactive ones.
        room.v24.shrink_caches(&room.vm, &room.host, &USER, 32, 6, &mut None);
        assert_eq!(active - lengths().0, if preset == "2.4.10-pre11" { 12 } else { moved }, "{preset}");
    }
}

/// pre11's scan of the active list deactivates pages, and frees what it can at once.
#[test]
fn pre11_takes_active_pages() {
    let room = Room::new("2.4.10-pre11", &[]);
    let pages = room.pages(12);
    pages.iter().for_each(|page| room.make_active(*page, 0));
    room.set(pages[0], Flags::REFERENCED);
    // (0 + 12 / 2) / 2 = 3 looks that cost budget.
    let left = room.v24.shrink_cache(&room.vm, &room.host, &USER, 32, 2, &mut None);
    assert_eq!(left, 29);
    assert_eq!(
        [0, 1, 2, 3, 4].map(|page: usize| room.place(pages[page])),
        ["active", "free", "free", "free", "active"]
    );
}
