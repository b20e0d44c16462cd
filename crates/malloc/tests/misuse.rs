//! What a program does wrong ends it, with a report that names the address and the class. `unsafe`: does it wrong.
//!
//! Each fault is committed in a process of its own: this test started again, with the fault's name in the environment.
#![allow(unsafe_code, reason = "misuses the allocator on purpose")]

use slablab_malloc::api;
use std::process::Command;

const FAULT: &str = "FAULT_TO_COMMIT";
/// Is in no heap.
static ELSEWHERE: [u64; 4] = [0; 4];

fn free(at: *mut u8) {
    // SAFETY: whatever `at` is, nobody reads through it afterwards; that it may be anything is what is tested.
    unsafe { api::free(at) }
}

/// A fault: its name, what commits it, and what the report must say of it.
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
        says: &["double free of 0x", "(malloc-16)"],
    },
    Fault {
        name: "foreign pointer",
        commit: || free((&raw const ELSEWHERE).cast_mut().cast()),
        says: &["free of 0x", "not in the heap"],
    },
    Fault {
        name: "inside an object",
        commit: || free(api::alloc(100).wrapping_add(16)),
        says: &["free of 0x", "inside an object", "malloc-112"],
    },
    Fault {
        name: "not aligned",
        commit: || free(api::alloc(100).wrapping_add(1)),
        says: &["free of 0x", "inside an object", "malloc-112"],
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
        says: &["free of 0x", "not in the heap, or in an empty slab"],
    },
    Fault {
        name: "size of a foreign pointer",
        commit: || assert_eq!(api::usable((&raw const ELSEWHERE).cast()), 0),
        says: &["malloc_usable_size of 0x", "not in the heap"],
    },
];

const ENGINES: [&str; 7] =
    ["slub@7.1", "slqb", "slub@6.1", "slab", "slub@7.1,debug=FZPU", "slqb,quarantine=8K", "slab,init=free"];

fn check(fault: &Fault, engine: &str, slots: &str) {
    let test = std::env::current_exe().expect("this test is a program");
    let done = Command::new(test)
        .args(["--exact", "commit", "--nocapture", "--include-ignored"])
        .env(FAULT, fault.name)
        .env("SLABLAB_ENGINE", engine)
        .env("SLABLAB_SLOTS", slots)
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success(), "{} under {engine}, a slot per {slots}, went unnoticed", fault.name);
    for part in fault.says {
        assert!(
            said.contains(part),
            "{} under {engine}, a slot per {slots}: no {part:?} in\n{said}",
            fault.name
        );
    }
}

#[test]
#[ignore = "commits the fault that the environment names: `every_misuse_is_reported` starts it"]
fn commit() {
    let Ok(name) = std::env::var(FAULT) else {
        return eprintln!("{FAULT} is not set: left out");
    };
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
