//! What one row does, and what a recording does not say.

use super::{check, check_with, presets};
use slablab_replay::replay::Options;
use slablab_replay::replay::before::Before;
use std::path::Path;

#[test]
fn allocations() {
    // 16 objects in a page: the first of each slab is slow.
    check(
        "cache filp 256; 0 alloc filp 0-31",
        "filp: allocs=32 alloc_fastpath=30 alloc_slowpath=2 alloc_slab=2 slabs=2 objects=32 slab_bytes=8192;
         total: allocs=32 frees=0 slabs_taken=2 slabs_taken_order_0=2 slab_start_bytes=0 slab_end_bytes=8192
                live_bytes=8192 parked_bytes=0 free_bytes=0 tail_bytes=0",
    );
    // What the CPU slab has left is parked; the kernel counts it as active.
    check(
        "cache filp 256; 0 alloc filp 0-19",
        "filp: objects=32 live_objects=20 parked_objects=12 parked_bytes=3072 free_bytes=0;
         total: live_bytes=5120 parked_bytes=3072",
    );
    // 13 objects of 312 bytes leave 40.
    check(
        "cache dentry 312; 0 alloc dentry 0",
        "dentry: objs_per_slab=13 tail_bytes=40; total: tail_bytes=40",
    );
    // A CPU each.
    check(
        "cache filp 256; 0 alloc filp 0; 1 alloc filp 1",
        "filp: alloc_slowpath=2 slabs=2 parked_objects=30",
    );
}

#[test]
fn frees() {
    // The second slab is the CPU's: 16 fast frees. The first was full: its first free brings it to the CPU's
    // partial list, where the other 15 find it frozen.
    check(
        "cache filp 256; 0 alloc filp 0-31; 0 free filp 0-31",
        "filp: frees=32 free_fastpath=16 free_slowpath=16 free_frozen=15 cpu_partial_free=1 free_slab=0 \
         slabs=2
               live_objects=0 parked_objects=32;
         total: frees_other_cpu=0 slabs_returned=0",
    );
    // Nothing is fast for the other CPU: the second slab is the first CPU's, the first becomes its own
    // partial slab.
    check(
        "cache filp 256; 0 alloc filp 0-31; 1 free filp 0-31",
        "filp: frees=32 free_fastpath=0 free_slowpath=32 free_frozen=31 cpu_partial_free=1 \
         frees_other_cpu=32",
    );
    // When the list of CPU 0 is empty, it takes the objects that were freed to its slab: one refill.
    check(
        "cache filp 256; 0 alloc filp 0-15; 1 free filp 0-7; 0 alloc filp 16-23",
        "filp: alloc_refill=1 alloc_slab=1 alloc_fastpath=22 alloc_slowpath=2 frees_other_cpu=8 \
         live_objects=16",
    );
}

#[test]
fn objects_from_before() {
    // Of a slab of 16, of which nothing else is known: the others stay.
    check(
        "cache filp 256; 0 unseen filp 1003",
        "filp: slabs_start=1 objects_start=16 frees=1 frees_old=1 allocs=0 live_objects=15; total: \
         frees_old=1",
    );
    // First freed, then allocated, freed and allocated again: one old free.
    check(
        "cache filp 256; 0 unseen filp 1003; 0 alloc filp 1003; 0 free filp 1003; 0 alloc filp 1003",
        "filp: objects_start=16 allocs=2 frees=2 frees_old=1 live_objects=16 allocs_assumed=0",
    );
    // First allocated: it was free, in the CPU's slab.
    check(
        "cache filp 256; 0 alloc filp 1003; 0 alloc filp 1004",
        "filp: slabs_start=1 live_objects=16 allocs=2 alloc_fastpath=2 alloc_slab=0",
    );
    // A kfree that knows nothing: the neighbour in the slab tells. Object 1008 was in the same page.
    check("0 alloc 256 1008; 0 unseen 256 1009", "kmalloc-256: frees=1 frees_old=1; total: frees_unknown=0");
    check("0 unseen 256 1009", "total: frees_unknown=1 frees=0");
}

#[test]
fn what_is_not_in_the_recording() {
    // Allocated by a path without events between two frees.
    check(
        "cache filp 256; 0 alloc filp 0; 0 free filp 0; 0 again filp 0",
        "filp: allocs=2 frees=2 allocs_assumed=1 frees_old=0 live_objects=0; total: allocs_assumed=1",
    );
    check(
        "cache filp 256; 0 unseen filp 1000; 0 again filp 1000",
        "filp: allocs=1 frees=2 frees_old=1 allocs_assumed=1 live_objects=15",
    );
    // Freed by a path without events.
    check(
        "cache filp 256; 0 alloc filp 0; 0 implied filp 0; 0 alloc filp 0",
        "filp: allocs=2 frees=1 frees_implied=1 live_objects=1; total: frees_implied=1",
    );
    // The moment is drawn, and each object is freed once.
    check(
        "cache filp 256; 0 alloc filp 0-31; 1 alloc 512 0-99; 0 implied filp 0-31",
        "filp: allocs=32 frees=32 frees_implied=32 live_objects=0; total: frees_implied=32",
    );
    check(
        "cache filp 256; 0 alloc filp 0-31; 0 free filp 0-31; 1 alloc 512 0-99; 0 again filp 0-31;
         0 alloc filp 0-31",
        "filp: allocs=96 frees=64 allocs_assumed=32 live_objects=32; total: allocs_assumed=32",
    );
    check("cache filp 256; 0 alloc filp 0; 0 kfree null; 0 kfree zero", "total: frees=0 frees_unknown=0");
}

#[test]
fn kmalloc() {
    check("0 alloc 256 0-31", "kmalloc-256: allocs=32 alloc_fastpath=30 slabs=2");
    check("0 alloc 8192 0", "kmalloc-8k: allocs=1; total: large_allocs=0");
    check(
        "0 alloc 16384 0-1; 0 free 16384 0",
        "total: allocs=0 large_allocs=2 slab_end_bytes=0; pages: pcp_free=1",
    );
    let types = "0 alloc 256 0; 0 alloc 256 1 reclaimable; 0 alloc 256 2 account; 0 alloc 256 3 dma;
                 0 free 256 0-3";
    check(
        types,
        "kmalloc-256: allocs=1 frees=1; kmalloc-rcl-256: allocs=1 frees=1; kmalloc-cg-256: allocs=1 frees=1;
         dma-kmalloc-256: allocs=1 frees=1",
    );
    // The kernel that recorded decides, not the engine: 2.6.32 had no other types.
    let options = Options { engines: presets(&["slub@6.1"]), ..Options::default() };
    let expected = "kmalloc-256: allocs=3 frees=3; kmalloc_dma-256: allocs=1";
    check_with(types, "2.6.32", &options, expected);
    // A recording that does not say which it was: the dump does.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kmalloc");
    let write = |name: &str, content: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("below a folder")).expect("a folder can be made");
        std::fs::write(path, content).expect("a file can be written");
    };
    write("sos_commands/kernel/uname_-a", "Linux host 2.6.32 #1 SMP x86_64 GNU/Linux\n");
    write("proc/slabinfo", "slabinfo - version: 2.1\nfilp 0 0 256 16 1 : tunables 0 0 0 : slabdata 0 0 0\n");
    let before = Some(Before::read(&folder).expect("a dump"));
    check_with(types, "", &Options { before, ..options }, expected);
}

/// Under an engine with sheaves an object that was given to `kfree_rcu` is live until a sheaf is full and its
/// grace period over; under another one it is free at once.
#[test]
fn objects_that_wait_for_readers() {
    #[track_caller]
    fn check(engine: &str, program: &str, expected: &str) {
        let options = Options { engines: presets(&[engine]), ..Options::default() };
        check_with(&format!("cache filp 256; 0 alloc filp 0-99; {program}"), "7.0.0", &options, expected);
    }
    check("slub@6.1", "0 rcu filp 0-59", "filp: frees=60 live_objects=40 free_rcu_sheaf=0");
    check("slub@7.0", "0 free filp 0-59", "filp: frees=60 live_objects=40 free_rcu_sheaf=0");
    check("slub@7.0", "0 rcu filp 0-1", "filp: frees=2 live_objects=100 free_rcu_sheaf=2");
    let (soon, later) =
        ("0 rcu filp 0-59; wait 1000; 0 alloc filp 200", "0 rcu filp 0-59; wait 20000000; 0 alloc filp 200");
    check("slub@7.0", soon, "filp: allocs=101 frees=60 live_objects=101 free_rcu_sheaf=60");
    // Two sheaves of 28 came back, four objects wait.
    check("slub@7.0", later, "filp: allocs=101 frees=60 live_objects=45 free_rcu_sheaf=60");
}

/// A kernel with SLOB records the allocated bytes: the requested bytes and a header.
#[test]
fn sizes_that_are_no_multiple_of_a_word() {
    for engine in ["slub@6.1", "slub@7.0", "slab@6.1", "slqb@2009-09", "slob@6.1"] {
        let options = Options { engines: presets(&[engine]), ..Options::default() };
        let program = "0 alloc 19 0-300; 1 free 19 0-300; 1 alloc 19 0-300";
        check_with(program, "6.1.0", &options, "kmalloc-19: allocs=602 frees=301 live_objects=301");
    }
}
