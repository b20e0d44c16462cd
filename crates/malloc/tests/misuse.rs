//! Misuse ends the program with a report that names the address and the class. `unsafe`: misuses the
//! allocator.
//!
//! Each fault is committed in a process of its own: this test started again, with the fault's name in the
//! environment.
#![allow(unsafe_code, reason = "misuses the allocator on purpose")]

use slablab_malloc::FromHeap;
use slablab_malloc::world::Native;
use slablab_malloc::{Given, api};
use slablab_native::Object;
use slablab_slabs::Metadata;
use std::process::Command;

const FAULT: &str = "FAULT_TO_COMMIT";
/// Memory outside of the heap.
static ELSEWHERE: [u64; 4] = [0; 4];

fn free(at: *mut u8) {
    // SAFETY: no thread reads through `at` afterwards. That `at` may be any address is the subject of the
    // test.
    api::free(unsafe { Given::new(at) })
}

fn realloc(at: *mut u8, bytes: usize) {
    // SAFETY: as in `free`.
    std::hint::black_box(api::realloc(unsafe { Given::new(at) }, bytes, 1));
}

fn usable(at: *mut u8) {
    std::hint::black_box(api::usable(at));
}

/// Frees `at` as an engine frees a sheaf whose address was overwritten.
fn free_metadata(at: *mut u8) {
    Metadata::<Native>::free(&FromHeap, Object::at(at).expect("not null"));
}

/// Calls `misuse` with an address that was allocated and freed. Neighbours stay: the slab stays too.
fn freed(bytes: usize, misuse: fn(*mut u8)) {
    let all: Vec<*mut u8> = (0..64).map(|_| api::alloc(bytes)).collect();
    free(all[32]);
    misuse(all[32]);
}

/// A fault: its name, what commits it, and the parts of the report; `|` separates two of which one is enough.
struct Fault {
    name: &'static str,
    commit: fn(),
    says: &'static [&'static str],
}

const FAULTS: &[Fault] = &[
    Fault {
        name: "double free",
        commit: || {
            let at = api::alloc(100);
            free(at);
            free(at);
        },
        says: &["double free of 0x", "(malloc-112)"],
    },
    Fault {
        name: "double free, others between",
        commit: || {
            let all: Vec<*mut u8> = (0..2000).map(|_| api::alloc(16)).collect();
            // Every other one stays, or the slab may be gone.
            all.iter().step_by(2).for_each(|at| free(*at));
            free(all[1000]);
        },
        says: &["double free of 0x", "(malloc-16)|(malloc-32)"],
    },
    Fault {
        name: "foreign pointer",
        commit: || free((&raw const ELSEWHERE).cast_mut().cast()),
        says: &["free of 0x", "not allocated here"],
    },
    Fault {
        name: "inside an object",
        commit: || free(api::alloc(100).wrapping_add(16)),
        says: &["free of 0x", "not the start of an object", "malloc-112"],
    },
    Fault {
        name: "not aligned",
        commit: || free(api::alloc(100).wrapping_add(1)),
        says: &["free of 0x", "not the start of an object", "malloc-112"],
    },
    Fault {
        name: "inside a large block",
        commit: || free(api::alloc(1 << 20).wrapping_add(16)),
        says: &["free of 0x", "large block"],
    },
    Fault {
        name: "large block twice",
        commit: || {
            let at = api::alloc(1 << 20);
            free(at);
            free(at);
        },
        // With debug=P the heap keeps freed blocks, and knows them.
        says: &["free of 0x", "outside the heap, or in an empty slab|double free"],
    },
    Fault {
        name: "size of a foreign pointer",
        commit: || assert_eq!(api::usable((&raw const ELSEWHERE).cast()), 0),
        says: &["malloc_usable_size of 0x", "not allocated here"],
    },
    Fault {
        name: "realloc of a freed object, to the same size",
        commit: || freed(100, |at| realloc(at, 100)),
        says: &["realloc of 0x", "already freed (malloc-112)"],
    },
    Fault {
        name: "realloc of a freed object, to another size",
        commit: || freed(100, |at| realloc(at, 1000)),
        says: &["realloc of 0x", "already freed (malloc-112)"],
    },
    Fault {
        name: "realloc of a freed object of a class with flags",
        commit: || freed(5000, |at| realloc(at, 5000)),
        says: &["realloc of 0x", "already freed (malloc-5120)"],
    },
    Fault {
        name: "realloc inside an object",
        commit: || realloc(api::alloc(100).wrapping_add(16), 90),
        says: &["realloc of 0x", "not the start of an object", "malloc-112"],
    },
    Fault {
        name: "realloc inside a large block",
        commit: || realloc(api::alloc(1 << 20).wrapping_add(32), 1 << 20),
        says: &["realloc of 0x", "32 bytes into a large block"],
    },
    Fault {
        name: "size of a freed object",
        commit: || freed(100, usable),
        says: &["malloc_usable_size of 0x", "already freed (malloc-112)"],
    },
    Fault {
        name: "size of a freed object of a class with flags",
        commit: || freed(5000, usable),
        says: &["malloc_usable_size of 0x", "already freed (malloc-5120)"],
    },
    Fault {
        name: "size inside an object",
        commit: || usable(api::alloc(100).wrapping_add(8)),
        says: &["malloc_usable_size of 0x", "not the start of an object", "malloc-112"],
    },
    Fault {
        name: "size inside a large block",
        commit: || usable(api::alloc(1 << 20).wrapping_add(16)),
        says: &["malloc_usable_size of 0x", "16 bytes into a large block"],
    },
    Fault {
        name: "size of a freed mapping",
        commit: || {
            let at = api::alloc(600 << 20);
            free(at);
            usable(at);
        },
        says: &["malloc_usable_size of 0x", "not allocated here"],
    },
    Fault {
        name: "metadata that is not in the heap",
        commit: || {
            let _starts_the_heap = api::alloc(1);
            free_metadata(ELSEWHERE.as_ptr().cast_mut().cast());
        },
        says: &["slablab: free of metadata 0x", "outside the heap"],
    },
    Fault {
        name: "metadata inside an object",
        commit: || free_metadata(api::alloc(100).wrapping_add(8)),
        says: &["slablab: malloc-112: free of metadata 0x", "not the start of an object"],
    },
];

const ENGINES: [&str; 9] = [
    "slub@7.1",
    "slqb",
    "slub@6.1",
    "slab",
    "slub@7.1,debug=FZPU",
    "slqb,quarantine=8K",
    "slab,init=free",
    "slub@6.1,harden=encode",
    "slub@7.1,harden=on",
];

/// A program that frees a block, writes to it, and frees it again: the write hides the second free from
/// malloc. Some engine's list then has the block twice, which that engine finds when it empties its lists.
const DAMAGE: &str = "damaged list";

fn damage() {
    let all: Vec<*mut u8> = (0..64).map(|_| api::alloc(100)).collect();
    for at in all {
        free(at);
        // SAFETY: no thread uses the block, and it has 100 bytes. Writing to a free block is the subject of
        // the test.
        unsafe { at.write_bytes(0x5a, 100) };
        // SAFETY: as above. Zeros also end the engine's list, whose link SLUB keeps in the middle of the
        // block.
        unsafe { at.write_bytes(0, 100) };
        free(at);
    }
    api::purge();
}

/// The report of a damaged list is one line that names the cache. It must not be a panic, which would
/// allocate from the damaged heap and unwind out of `GlobalAlloc`.
#[test]
fn a_damaged_list_ends_in_one_line() {
    for engine in ["slub@7.1", "slub@6.1", "slqb", "slab", "slub@7.1,harden=on"] {
        let said = commit_alone(DAMAGE, engine, "thread");
        let reports: Vec<&str> = said.lines().filter(|line| line.starts_with("slablab: ")).collect();
        assert!(!said.contains("panicked"), "{engine}:\n{said}");
        let [report] = reports[..] else { panic!("{engine}: not one report:\n{said}") };
        println!("{engine}: {report}");
        // The engine's report begins with the cache's name. malloc's, where the last free finds the slab
        // empty, ends with it.
        let names_cache = report.starts_with("slablab: malloc-112: ") || report.ends_with("(malloc-112)");
        assert!(names_cache, "{engine}: {report}");
        assert!(!report.contains("AlreadyFree"), "{engine}: a name of the code: {report}");
    }
}

/// Commits a fault in a process of its own, which must not survive it. Returns the process's output.
fn commit_alone(fault: &str, engine: &str, slots: &str) -> String {
    let test = std::env::current_exe().expect("this test is a program");
    let done = Command::new(test)
        .args(["--exact", "commit", "--nocapture", "--include-ignored"])
        .env(FAULT, fault)
        .env("SLABLAB_ENGINE", engine)
        .env("SLABLAB_SLOTS", slots)
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(!done.status.success(), "{fault} under {engine}, a slot per {slots}, was not noticed:\n{said}");
    said
}

fn check(fault: &Fault, engine: &str, slots: &str) {
    let said = commit_alone(fault.name, engine, slots);
    for part in fault.says {
        assert!(
            part.split('|').any(|either| said.contains(either)),
            "{} under {engine}, a slot per {slots}: no {part:?} in\n{said}",
            fault.name
        );
    }
}

#[test]
#[ignore = "commits the fault that the environment names: `every_misuse_is_reported` starts it"]
fn commit() {
    let Ok(name) = std::env::var(FAULT) else {
        return eprintln!("{FAULT} is not set: skipped");
    };
    if name == DAMAGE {
        return damage();
    }
    let fault = FAULTS.iter().find(|fault| fault.name == name).expect("a fault");
    (fault.commit)();
}

#[test]
fn every_misuse_is_reported() {
    for fault in FAULTS {
        for engine in ENGINES {
            check(fault, engine, "thread");
            check(fault, engine, "cpu");
        }
    }
}
