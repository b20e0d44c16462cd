//! Paths and open files: the locks of each era, and what a failed open does.

use crate::machine::setup;
use slablab_sim::fs::files::{Entry, FileTable, Files};
use slablab_sim::kernel::with_kernel;
use slablab_sim::process::Kind;
use slablab_sim::programs::open_close::OpenClose;
use slablab_sim::programs::repeat::{Length, Repeat, run};
use slablab_sim::record::Recorder;
use std::rc::Rc;

/// How often an open and a close of a file in a folder of the root take each lock.
#[track_caller]
fn check_locks(preset: &str, expected: [(&str, u64); 3]) {
    let of = |rounds| {
        let repeat = Repeat { tasks: 2, kind: Kind::Thread, length: Length::Rounds(rounds), outside: 0 };
        run(&setup(preset, 2, 1), &repeat, 1, &Recorder::default(), &[], |_| OpenClose::default())
            .expect("runs")
    };
    let (few, many) = (of(20), of(50));
    for (name, taken) in expected {
        let count = |outcome: &slablab_sim::tally::Outcome| {
            let lock = outcome.locks.iter().find(|(lock, _)| *lock == name);
            lock.unwrap_or_else(|| panic!("{name} is not in {:?}", outcome.locks)).1.taken
        };
        let operations = many.messages - few.messages;
        assert_eq!(count(&many) - count(&few), taken * operations, "{preset}: {name}");
    }
}

#[test]
fn locks_of_an_open_and_a_close() {
    check_locks("slab@2.6.29", [("files->file_lock", 3), ("files_lock", 2), ("dentry->d_lock", 6)]);
    check_locks("slub@3.2", [("files->file_lock", 3), ("files_lock", 0), ("dentry->d_lock", 0)]);
    check_locks("slub@6.18", [("files->file_lock", 2), ("files_lock", 0), ("dentry->d_lock", 0)]);
}

/// A failed open allocates a name and a filp, and keeps neither; a closed filp of 6.18 goes at once, one of
/// 2.6.29 only after a grace period.
#[test]
fn failed_opens_and_closed_files_keep_nothing() {
    for (preset, held_at_end) in [("slab@2.6.29", 2), ("slub@6.18", 0)] {
        let run = with_kernel(&setup(preset, 1, 1), 1, |kernel| {
            let mark = kernel.mark();
            let at_end: Rc<std::cell::Cell<(u64, u64)>> = Rc::default();
            let seen = at_end.clone();
            kernel.start(kernel.new_process(), None, move |task| {
                let root = Entry::root(task);
                let (there, absent) = (root.create(task), root.absent(task));
                let table = FileTable::new(&Rc::new(Files::default()));
                assert!(task.syscall(|| table.open(task, &absent)).is_none());
                let file = task.syscall(|| table.open(task, &there)).expect("the file exists");
                task.syscall(|| table.close(task, file));
                let outcome = task.kernel.outcome(&task.kernel.mark());
                let filp = outcome.cache("filp").expect("a filp was allocated");
                seen.set((filp.allocs, filp.allocs - filp.frees));
                [there, absent, root].into_iter().for_each(|entry| entry.forget(task));
            });
            kernel.run()?;
            Ok((kernel.outcome(&mark), at_end.get()))
        });
        let (outcome, at_end) = run.unwrap_or_else(|failed| panic!("{preset}: {failed}"));
        assert_eq!(at_end, (2, held_at_end), "{preset}: filps allocated, and not freed at the end");
        for cache in outcome.caches {
            assert_eq!(cache.allocs, cache.frees, "{preset}: {}", cache.name);
        }
    }
}

/// A file of 10,000 bytes is made, written, read twice and removed: handles of the journal, buffers, dirty
/// pages.
fn contents(preset: &str) -> (u64, u64, Option<u32>, Option<u32>) {
    let run = with_kernel(&setup(preset, 1, 1), 1, |kernel| {
        let mark = kernel.mark();
        let dirty: Rc<std::cell::Cell<(Option<u32>, Option<u32>)>> = Rc::default();
        let seen = dirty.clone();
        kernel.start(kernel.new_process(), None, move |task| {
            let files = Rc::new(Files::default());
            let table = FileTable::new(&files);
            let root = Entry::root(task);
            let write = || {
                let entry = task.syscall(|| root.create_file(task));
                let file = task.syscall(|| table.open(task, &entry)).expect("it was created");
                task.syscall(|| file.write(task, &files, 10_000));
                task.syscall(|| file.read(task, 10_000));
                task.syscall(|| file.read(task, 10_000));
                task.syscall(|| table.close(task, file));
                entry
            };
            let entry = write();
            let found = files.next_dirty();
            task.syscall(|| entry.remove(task));
            let removed = write();
            task.syscall(|| removed.remove(task));
            seen.set((found, files.next_dirty()));
            root.forget(task);
        });
        kernel.run()?;
        Ok((kernel.outcome(&mark), dirty.get()))
    });
    let (outcome, (first, second)) = run.unwrap_or_else(|failed| panic!("{preset}: {failed}"));
    for cache in &outcome.caches {
        assert_eq!(cache.allocs, cache.frees, "{preset}: {}", cache.name);
    }
    let handles = ["journal_handle", "jbd2_journal_handle"].map(|name| outcome.cache(name));
    let allocs = |cache: Option<&slablab_sim::tally::CacheTally>| cache.map_or(0, |cache| cache.allocs);
    let handles = handles.into_iter().map(allocs).sum();
    (handles, allocs(outcome.cache("buffer_head")), first, second)
}

/// ext3 has a handle for each of 3 pages and for the first read in a second; both have one for each file that
/// is made and removed. A removed file is not dirty.
#[test]
fn contents_have_buffers_and_handles() {
    assert_eq!(contents("slab@2.6.29"), (2 * (1 + 3 + 1 + 1), 2 * 3, Some(3), None));
    assert_eq!(contents("slub@6.18"), (2 * 2, 2 * 3, Some(3), None));
}
