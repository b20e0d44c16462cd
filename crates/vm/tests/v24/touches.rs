//! What touches do to a page.

use super::room::Room;
use slablab_vm::mappings::Kind;
use slablab_vm::{Enter, Entry, Flags, Frame, Replacement};

/// Touches a page: `R` a read, `W` a write of a part, `w` a write to its end, `F` a fault, `U` the end
/// of an accessed entry.
fn touch(room: &Room, frame: Frame, what: char) {
    room.vm.with(|state| {
        room.v24.found(state, frame);
        match what {
            'R' => room.v24.access(state, frame),
            'W' | 'w' => room.v24.wrote(state, frame, what == 'w'),
            'F' => room.v24.fault(state, frame),
            'U' => room.v24.unmapped(state, frame),
            _ => unreachable!("{what}"),
        }
    });
}

/// `A`: read-ahead brings a page; `E`: a task that reads it does. The rest are touches.
fn check(preset: &str, touches: &str, expected: &str) {
    let room = Room::new(preset, &[]);
    let (how, first) = if touches.starts_with('E') { (Enter::File, "R") } else { (Enter::ReadAhead, "") };
    let (_, pages) = room.file(Kind::File, 1, 0, how);
    for what in first.chars().chain(touches[1..].chars()) {
        touch(&room, pages[0], what);
    }
    assert_eq!(room.look(pages[0]), expected, "{preset} {touches}");
}

#[test]
fn use_once() {
    for (preset, touches, expected) in [
        // The first use gives an age and takes the reference of its own lookup back.
        ("2.4.8", "A", "inactive 0"),
        ("2.4.8", "E", "inactive 2"),
        ("2.4.8", "AR", "inactive 2"),
        ("2.4.8", "ARR", "inactive 2 referenced"),
        ("2.4.8", "AF", "inactive 0 referenced"),
        ("2.4.8", "AW", "inactive 2"),
        // The second one activates.
        ("2.4.9", "AR", "inactive 2"),
        ("2.4.9", "ARR", "active 2 referenced"),
        ("2.4.9", "AFR", "inactive 2"),
        ("2.4.9", "AWW", "active 2 referenced"),
        ("2.4.10-pre10", "ARR", "active 2 referenced"),
        // A lookup activates; not that of the task that read the page.
        ("2.4.9-ac14", "E", "inactive 0"),
        ("2.4.9-ac14", "ER", "active 2"),
        ("2.4.9-ac14", "AR", "active 2"),
        ("2.4.9-ac14", "AF", "active 2"),
        ("2.4.9-ac14", "ARR", "active 2 referenced"),
        ("2.4.9-ac14", "AW", "active 2"),
        ("2.4.9-ac14", "Aw", "inactive 0"),
        // Only touches count, and only reference.
        ("2.4.9-ac14+aging", "AR", "inactive 0 referenced"),
        ("2.4.9-ac14+aging", "ARR", "inactive 0 referenced"),
        ("2.4.9-ac14+aging", "Aw", "inactive 0 referenced"),
        ("2.4.9-ac14+aging", "AF", "inactive 0 referenced"),
        // One bit; writes alone never activate.
        ("2.4.10", "AR", "inactive 0 referenced"),
        ("2.4.10", "ARR", "active 2"),
        ("2.4.10", "ARRR", "active 2 referenced"),
        ("2.4.10", "AWW", "inactive 0 referenced"),
        ("2.4.10", "AWR", "active 2"),
        ("2.4.10", "AF", "inactive 0 referenced"),
        ("2.4.10", "AFF", "active 2"),
        ("2.4.10", "AFU", "inactive 0 referenced"),
        ("2.4.10-pre11", "ARR", "active 2"),
        ("2.4.10+tweaks", "AF", "active 2"),
        ("2.4.10+tweaks", "AR", "inactive 0 referenced"),
    ] {
        check(preset, touches, expected);
    }
}

/// Reads of tmpfs are lookups, and no more.
#[test]
fn tmpfs_has_no_use_once() {
    let room = Room::new("2.4.9", &[]);
    let (_, pages) = room.file(Kind::Tmpfs, 1, 0, Enter::ReadAhead);
    for _ in 0..3 {
        touch(&room, pages[0], 'R');
    }
    assert_eq!(room.look(pages[0]), "inactive 0 referenced");
}

/// An `inactive_clean` page is activated by the touch of the ageing kernels.
#[test]
fn clean_pages_are_activated_by_a_touch() {
    let room = Room::new("2.4.9-ac14+aging", &[]);
    let pages = room.pages(1);
    room.set_free(0);
    room.v24.launder(&room.vm, &room.host, &super::room::USER, 1);
    assert_eq!(room.look(pages[0]), "clean 0");
    touch(&room, pages[0], 'R');
    assert_eq!(room.look(pages[0]), "active 5");
}

/// Read-ahead deactivates the window before it: to the first page that is not there, or not active.
#[test]
fn drop_behind() {
    // Pages 0, 2, 3 and 5 are active, 4 is not, 1 is gone, and the next window begins at 6.
    for (preset, active) in [
        ("2.4.9", [0, 2, 3, 5].as_slice()),
        ("2.4.9-ac14", &[0]),
        ("2.4.9-ac14+aging", &[0, 2, 3]),
        ("2.4.10", &[0, 2, 3, 5]),
    ] {
        let room = Room::new(preset, &[]);
        let pages = room.pages(8);
        [0, 1, 2, 3, 5].into_iter().for_each(|page: usize| room.make_active(pages[page], 3));
        room.vm.with(|state| {
            room.v24.leave(state, pages[1]);
            state.leave_mapping(pages[1], Entry::Absent);
            assert!(state.end(pages[1]));
            room.v24.drop_behind(state, pages[6]);
        });
        let kept: Vec<usize> = (0..8).filter(|page| room.place(pages[*page]) == "active").collect();
        assert_eq!(kept, active, "{preset}");
    }
}

/// A page that gives its slot up leaves the lists, and enters them with its next slot.
#[test]
fn pages_without_slot_are_on_no_list() {
    let room = Room::new("2.4.10", &[]);
    let (region, pages) = room.anon(room.space(), 1);
    assert_eq!(room.place(pages[0]), "none");
    for _ in 0..2 {
        room.vm.with(|state| {
            let slot = state.add_to_swap(pages[0]).expect("a slot");
            room.v24.enter(state, pages[0], Enter::SwapIn, None);
            assert!(!room.v24.keeps_slot(state, false));
            assert_eq!(state.swap.users(slot), 0);
        });
        assert_eq!(room.place(pages[0]), "inactive");
        room.vm.with(|state| {
            state.leave_swap_cache(pages[0], Entry::Absent);
            room.v24.unswapped(state, pages[0]);
            assert!(!state.frames.has(pages[0], Flags::LISTED));
        });
    }
    assert!(room.unmapped(region).is_empty());
    room.check();
}
