//! Mixes: a policy of one kernel beside those of another one that it was not made for.

use super::room::{Room, USER};
use slablab_vm::{Ask, Flags, Frame, Replacement};

const ASK: Ask = Ask { node: 0, class: 0, order: 0, io: true, fs: true, space: None, group: false };

fn count(room: &Room, pages: &[Frame], place: &str) -> usize {
    pages.iter().filter(|page| room.place(**page) == place).count()
}

/// Clean pages wait in their zone for a page allocator that takes them; for one that does not, as 2.4.10's,
/// they are freed; of either kind until the zone has plenty, twice its high mark.
#[test]
fn clean_pages_go_where_they_are_taken() {
    for (takes, clean, free) in [(true, 61, 0), (false, 0, 61)] {
        let room = Room::new("2.4.8", &[]);
        room.host.frees_clean.set(!takes);
        room.set_free(0);
        let pages = room.pages(100);
        let freed = room.v24.direct(&room.vm, &room.host, &ASK);
        assert_eq!((count(&room, &pages, "clean"), count(&room, &pages, "free")), (clean, free), "{takes}");
        assert!(freed.progress && freed.page.is_none(), "{takes}");
        room.check();
    }
}

/// 2.4.10's run with three lists: a clean page in its zone is one of the wanted 32, with and without buffers.
#[test]
fn a_clean_page_is_found() {
    for buffers in [Flags(0), Flags::BUFFERS] {
        let room = Room::new("2.4.10", &[("lists", "three")]);
        let pages = room.pages(400);
        pages.iter().for_each(|page| room.set(*page, buffers));
        let left = room.v24.shrink_cache(&room.vm, &room.host, &USER, 32, 6, &mut None);
        assert_eq!((left, count(&room, &pages, "clean")), (0, 32), "{buffers:?}");
    }
}

/// kswapd of 2.4.10 with three lists ends when free and clean pages are above the high mark.
#[test]
fn clean_pages_balance_a_zone() {
    let room = Room::new("2.4.10", &[("lists", "three")]);
    room.set_free(0);
    let pages = room.pages(400);
    room.v24.kswapd(&room.vm, &room.host, 0, 0, 0);
    assert_eq!(count(&room, &pages, "clean"), 32, "above 30, by one run");
    assert!(room.host.naps.borrow().is_empty());
}

/// With two lists inactive pages may be mapped, so that enough of them say nothing: the runs of three lists
/// walk while free pages are short.
#[test]
fn two_lists_walk_while_free_pages_are_short() {
    for balance in ["gated", "launder-first"] {
        for (free, walks) in [(0, true), (100, false)] {
            let room = Room::new("2.4.10", &[("balance", balance)]);
            room.set_free(free);
            room.pages(400).iter().for_each(|page| room.set(*page, Flags::LOCKED));
            let (region, _) = room.anon(room.space(), 64);
            room.v24.try_to_free(&room.vm, &room.host, &USER);
            assert_eq!(!room.unmapped(region).is_empty(), walks, "{balance}, {free} free");
        }
    }
}
