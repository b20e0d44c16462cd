//! What becomes of one isolated page.

use crate::machine::Machine;
use slablab_vm::pageout::{FileWrites, References, Scan, Writing, evict_batch, put_back};
use slablab_vm::{Counter, Flags, Frame};

/// 6.1's rules for an allocation.
const MODERN: Scan = Scan {
    group: false,
    references: References::Modern,
    io: true,
    fs: true,
    unmap: true,
    write: true,
    writing: Writing::Aside,
    file_writes: FileWrites::Kswapd,
    met_writeback: false,
    met_dirty: false,
    tmpfs_two_visits: false,
    full_frees_slot: true,
};

const OLD: Scan = Scan {
    group: false,
    references: References::Any { lumpy: false },
    writing: Writing::Keep,
    file_writes: FileWrites::Reclaim,
    tmpfs_two_visits: true,
    ..MODERN
};

/// A page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    /// Of a file.
    File,
    /// Of tmpfs.
    Tmpfs,
    /// Anonymous; its accessed bit is set or not.
    Anon(bool),
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Freed,
    /// Written first, by a device that answers at once.
    Written,
    Kept,
    Active,
}

/// A page with these flags, and what becomes of it.
#[track_caller]
fn becomes(page: Page, flags: Flags, how: Scan, expected: Fate) {
    let machine = Machine::new("vm@6.1", 8, 8);
    let frame = match page {
        Page::File => {
            let file = machine.file(1);
            machine.read(file, 0)
        }
        Page::Tmpfs => {
            machine.tmpfs(1);
            Frame(0)
        }
        Page::Anon(accessed) => {
            let region = machine.anon(1);
            let (frame, _) = machine.touch(region, 0);
            if !accessed {
                machine.age(region, 0);
            }
            frame
        }
    };
    let vm = &machine.vm;
    vm.with(|state| {
        state.frames.clear(frame, Flags::REFERENCED);
        if flags.has(Flags::DIRTY) {
            state.set_dirty(frame);
        }
        state.frames.set(frame, flags);
        assert!(vm.policy.isolate(state, frame));
    });
    let evicted = evict_batch(vm, &machine.host, vec![frame], &how);
    let active = vm.with(|state| state.frames.has(frame, Flags::ACTIVE));
    let written = machine.count(Counter::VmscanWrite) > 0;
    let fate = match evicted.freed {
        1 if written => Fate::Written,
        1 => Fate::Freed,
        _ if active => Fate::Active,
        _ => Fate::Kept,
    };
    assert_eq!(fate, expected, "{page:?} {flags:?}");
    assert_eq!(evicted.kept.is_empty(), evicted.freed == 1);
    assert_eq!(evicted.activated[usize::from(page == Page::File)], u32::from(active));
    put_back(vm, &machine.host, &evicted.kept, |state, frame| {
        state.frames.set(frame, Flags::ISOLATED);
        vm.policy.put_back(state, frame);
    });
    machine.check();
}

#[test]
fn clean_pages_of_files_go_unless_they_were_accessed() {
    let clean = Flags::default();
    becomes(Page::File, clean, MODERN, Fate::Freed);
    becomes(Page::File, clean, OLD, Fate::Freed);
    becomes(Page::File, Flags::LOCKED, MODERN, Fate::Kept);
    becomes(Page::File, Flags::UNEVICTABLE, MODERN, Fate::Active);
    // One read by a system call does not save it.
    becomes(Page::File, Flags::REFERENCED, MODERN, Fate::Freed);
}

#[test]
fn dirty_pages_of_files_wait_for_their_writers() {
    let kswapd = Scan { met_dirty: true, ..MODERN };
    becomes(Page::File, Flags::DIRTY, MODERN, Fate::Active);
    // An allocation writes none, even after a pass of dirty pages.
    becomes(Page::File, Flags::DIRTY | Flags::RECLAIM, kswapd, Fate::Active);
    becomes(Page::File, Flags::DIRTY, Scan { file_writes: FileWrites::Reclaim, ..MODERN }, Fate::Written);
    becomes(Page::File, Flags::DIRTY, OLD, Fate::Written);
    becomes(Page::File, Flags::DIRTY, Scan { fs: false, ..OLD }, Fate::Kept);
    becomes(Page::File, Flags::DIRTY, Scan { write: false, ..OLD }, Fate::Kept);
    // Read once, it is reclaimed if that needs no write.
    let writes = Scan { file_writes: FileWrites::Reclaim, ..MODERN };
    becomes(Page::File, Flags::DIRTY | Flags::REFERENCED, writes, Fate::Kept);
}

#[test]
fn anonymous_pages_go_to_swap_unless_they_were_accessed() {
    let clean = Flags::default();
    becomes(Page::Anon(false), clean, MODERN, Fate::Written);
    becomes(Page::Anon(false), clean, OLD, Fate::Written);
    becomes(Page::Anon(false), clean, Scan { io: false, fs: false, ..MODERN }, Fate::Kept);
    becomes(Page::Anon(false), clean, Scan { unmap: false, ..MODERN }, Fate::Kept);
    // The first access gives another round, and the second activates; in 2.6.29 the first does.
    becomes(Page::Anon(true), clean, MODERN, Fate::Kept);
    becomes(Page::Anon(true), Flags::REFERENCED, MODERN, Fate::Active);
    becomes(Page::Anon(true), clean, OLD, Fate::Active);
    becomes(
        Page::Anon(true),
        clean,
        Scan { references: References::Any { lumpy: true }, ..OLD },
        Fate::Written,
    );
}

#[test]
fn pages_of_tmpfs_get_a_slot_first() {
    becomes(Page::Tmpfs, Flags::DIRTY, MODERN, Fate::Written);
    becomes(Page::Tmpfs, Flags::DIRTY, OLD, Fate::Kept);
    becomes(Page::Tmpfs, Flags::DIRTY, Scan { fs: false, ..MODERN }, Fate::Kept);
}
