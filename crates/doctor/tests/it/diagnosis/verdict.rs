//! The decisions of the verdict, one table for each: a situation, and the sentence that it gets.

use slablab_doctor::act::verdict::Judgement::{self, Climbing, NoProblem, NotReclaimable, Steady, Unknown};
use slablab_doctor::state::{Cache, State};
use slablab_doctor::{Options, examine};
use slablab_readers::bundle::Dump;
use slablab_readers::pasted::{MemoryReport, Pasted, Totals};
use std::path::PathBuf;

/// Caches by name with their MiB: 1 KiB for each object, 4 in a slab of a page.
type Caches<'a> = &'a [(&'a str, u64)];

/// A machine with these caches, and meminfo's MemTotal, SReclaimable and SUnreclaim in MiB.
fn machine(caches: Caches, meminfo: Option<[u64; 3]>) -> State {
    let cache = |(name, mib): &(&str, u64)| Cache {
        name: name.to_string(),
        object_size: Some(1024),
        size: 1024,
        objects_per_slab: 4,
        slabs: mib * 256,
        total_objects: mib * 1024,
        active_objects: mib * 1024,
        ..Cache::default()
    };
    let mut dump = Dump::default();
    if let Some([total, reclaimable, unreclaimable]) = meminfo {
        let lines = [
            ("MemTotal", total),
            ("Slab", reclaimable + unreclaimable),
            ("SReclaimable", reclaimable),
            ("SUnreclaim", unreclaimable),
        ];
        dump.meminfo.extend(lines.map(|(name, mib)| (name.to_string(), mib * 1024)));
    }
    State {
        path: PathBuf::from("made"),
        caches: caches.iter().map(cache).collect(),
        page_size: 4096,
        cpus: None,
        release: None,
        taken_s: None,
        up_s: None,
        missing: Vec::new(),
        assumed: Vec::new(),
        dump,
    }
}

/// What one moment cannot tell.
const SECOND: &str = "; whether it climbs takes a second snapshot";

/// The verdict on `now`, after the snapshots of `since`, is this sentence, in which `{SECOND}` stands for
/// [`SECOND`].
#[track_caller]
fn says(now: &State, since: &[State], judgement: Judgement, sentence: &str) {
    let report = examine(now, &Options { since, ..Options::default() }).unwrap();
    let sentence = sentence.replace("{SECOND}", SECOND);
    assert_eq!((&report.verdict.text, report.verdict.judgement), (&sentence, judgement));
}

/// One moment: the size of slabs, then who frees them, then which cache has most.
#[test]
fn of_a_state() {
    #[track_caller]
    fn check(caches: Caches, meminfo: Option<[u64; 3]>, judgement: Judgement, sentence: &str) {
        says(&machine(caches, meminfo), &[], judgement, sentence);
    }
    check(
        &[("dentry", 40)],
        None,
        NoProblem,
        "no problem: slabs have 40 MiB, too little to matter; most is dentry (directory entries), \
         40 MiB",
    );
    check(
        &[("filp", 90)],
        Some([10_000, 5, 90]),
        NoProblem,
        "no problem: slabs have 95 MiB of 9.8 GiB of the machine's memory (0.9 %), too little to \
         matter; most is filp (open files (struct file)), 90 MiB",
    );
    check(
        &[("filp", 100)],
        Some([10_000, 5, 100]),
        NotReclaimable,
        "not reclaimable: filp (open files (struct file)) holds 100 of 105 MiB (95 %), and no \
         shrinker frees it: suspect of a leak{SECOND}. Slabs have 1.1 % of the machine's 9.8 GiB",
    );
    check(
        &[("dentry", 300), ("filp", 100)],
        Some([10_000, 300, 100]),
        NoProblem,
        "no problem: 75 % of slab memory, 300 MiB, is counted as reclaimable and has a shrinker: \
         the kernel frees unused entries when it needs memory; most is dentry (directory \
         entries), 300 MiB. Slabs have 4.0 % of the machine's 9.8 GiB",
    );
    check(
        &[("dentry", 300), ("filp", 100)],
        None,
        NoProblem,
        "no problem: 75 % of slab memory, 300 MiB, is counted as reclaimable and has a shrinker: \
         the kernel frees unused entries when it needs memory; most is dentry (directory \
         entries), 300 MiB",
    );
    check(
        &[("sock_inode_cache", 300), ("filp", 100)],
        Some([10_000, 300, 100]),
        NotReclaimable,
        "not reclaimable: sock_inode_cache (inodes of sockets, with the struct socket in it) \
         holds 300 of 400 MiB (75 %), and no shrinker frees it: suspect of a leak{SECOND}. Slabs \
         have 4.0 % of the machine's 9.8 GiB",
    );
    check(
        &[("filp", 100), ("kmalloc-64", 110), ("pid", 95)],
        None,
        NotReclaimable,
        "not reclaimable: 100 % of slab memory, 305 MiB, can only be freed by what holds it, most \
         by kmalloc-64 (objects that the kernel asks for by size alone), 110 MiB{SECOND}",
    );
    check(
        &[("my_cache", 300), ("filp", 100)],
        None,
        Unknown,
        "unknown: the input does not tell which slabs can be reclaimed; most is my_cache, 300 MiB",
    );
    check(&[], None, Unknown, "unknown: the input does not tell which slabs can be reclaimed");
}

/// Two moments: what grew, and who frees that.
#[test]
fn of_growth() {
    #[track_caller]
    fn check(before: Caches, now: Caches, judgement: Judgement, sentence: &str) {
        says(&machine(now, None), &[machine(before, None)], judgement, sentence);
    }
    let before: Caches = &[("dentry", 100), ("filp", 100), ("pid", 100)];
    check(
        before,
        &[("dentry", 100), ("filp", 150), ("pid", 100)],
        Climbing,
        "climbing and not reclaimable: 50 MiB of growth in caches that no shrinker frees, most in \
         filp; slab memory grew by 50 MiB",
    );
    check(
        before,
        &[("dentry", 100), ("filp", 150), ("pid", 150)],
        Climbing,
        "climbing and not reclaimable: 100 MiB of growth in caches that no shrinker frees, most \
         in filp and 1 cache that grew with it; slab memory grew by 100 MiB",
    );
    check(
        before,
        &[("dentry", 150), ("filp", 100), ("pid", 100)],
        NoProblem,
        "no problem: 50 MiB of growth is what the kernel frees when it needs memory; slab memory \
         grew by 50 MiB",
    );
    check(
        before,
        &[("dentry", 150), ("filp", 103), ("pid", 100)],
        NoProblem,
        "no problem: 50 MiB of growth is what the kernel frees when it needs memory; slab memory \
         grew by 53 MiB",
    );
    check(
        before,
        &[("dentry", 101), ("filp", 99), ("pid", 100)],
        Steady,
        "steady: no cache grew by 3 MiB or more; slab memory did not grow",
    );
    check(
        before,
        &[("dentry", 50), ("filp", 100), ("pid", 100)],
        Steady,
        "steady: no cache grew by 2.5 MiB or more; slab memory shrank by 50 MiB",
    );
}

/// Two moments, one of which may have a part of the caches: only what both have is compared.
#[test]
fn of_growth_beside_a_part() {
    #[track_caller]
    fn check(before: Caches, now: Caches, judgement: Judgement, sentence: &str) {
        says(&machine(now, None), &[machine(before, None)], judgement, sentence);
    }
    let boot: Caches = &[("dentry", 100), ("filp", 100), ("kmem_cache", 1), ("kmalloc-8", 9)];
    // Its end is cut off. What it lacks did not grow from nothing.
    check(
        &boot[..1],
        boot,
        Unknown,
        "unknown: no cache grew by 2.1 MiB or more; the one cache that both snapshots have did not grow; made \
         is cut off: it has 1 of 4 caches",
    );
    check(
        &boot[..2],
        boot,
        Steady,
        "steady: no cache grew by 2.1 MiB or more; the 2 caches that both snapshots have did not grow; made is \
         cut off: it has 2 of 4 caches",
    );
    check(
        &[("dentry", 100), ("filp", 60)],
        boot,
        Climbing,
        "climbing and not reclaimable: 40 MiB of growth in caches that no shrinker frees, most in filp; the 2 \
         caches that both snapshots have grew by 40 MiB; made is cut off: it has 2 of 4 caches",
    );
    check(
        &[("dentry", 60), ("filp", 100)],
        boot,
        NoProblem,
        "no problem: 40 MiB of growth is what the kernel frees when it needs memory; the 2 caches that both \
         snapshots have grew by 40 MiB; made is cut off: it has 2 of 4 caches",
    );
    check(
        &[("inode_cache", 1)],
        boot,
        Unknown,
        "unknown: no cache grew by 2.1 MiB or more; made is cut off: it has 1 of 4 caches, none of which can be \
         compared",
    );
    check(
        &[],
        boot,
        Unknown,
        "unknown: no cache grew by 2.1 MiB or more; made is cut off: it has 0 of 4 caches, none of which can be \
         compared",
    );
    // The later one is cut off.
    check(
        boot,
        &boot[..2],
        Steady,
        "steady: no cache grew by 2 MiB or more; the 2 caches that both snapshots have did not grow; made is cut \
         off: it has 2 of 4 caches",
    );
    // All that a kernel makes at its boot is there: a cache that is not is new.
    check(
        &boot[1..],
        boot,
        NoProblem,
        "no problem: 100 MiB of growth is what the kernel frees when it needs memory; slab memory grew by 100 MiB",
    );
    check(
        boot,
        &[("dentry", 100), ("filp", 100), ("kmem_cache", 1), ("kmalloc-8", 9), ("my_cache", 50)],
        Climbing,
        "climbing and not reclaimable: 50 MiB of growth in caches that no shrinker frees, most in my_cache; slab \
         memory grew by 50 MiB",
    );
    // A machine may lose caches: modules are unloaded.
    check(
        boot,
        &boot[1..],
        Steady,
        "steady: no cache grew by 1.1 MiB or more; slab memory shrank by 100 MiB",
    );
}

/// A report of the OOM killer: whether slabs are the cause.
#[test]
fn of_a_report() {
    #[track_caller]
    fn check(unreclaimable: u64, has_table: bool, judgement: Judgement, sentence: &str) {
        let pages = |mib: u64| Some(mib * 256);
        let report = MemoryReport {
            invoked_by: Some("make".into()),
            killed: Some("cc1 (7)".into()),
            slab_unreclaimable: pages(unreclaimable),
            ram: pages(1000),
            has_table,
            ..MemoryReport::default()
        };
        let mut state = machine(&[("filp", 100)], None);
        state.dump.pasted = Some(Box::new(Pasted { reports: vec![report], ..Pasted::default() }));
        says(&state, &[], judgement, sentence);
    }
    check(
        500,
        false,
        NotReclaimable,
        "not reclaimable, and slabs are the cause: make invoked the OOM killer, which killed cc1 \
         (7); 500 of 1000 MiB of memory (50 %) are unreclaimable slabs; the list in the text has only 100 of 500 \
         MiB of them",
    );
    check(
        50,
        true,
        NoProblem,
        "no problem of slabs: make invoked the OOM killer, which killed cc1 (7), but only 50 of \
         1000 MiB of memory (5 %) are unreclaimable slabs",
    );
    check(
        99,
        false,
        NoProblem,
        "no problem of slabs: make invoked the OOM killer, which killed cc1 (7), but only 99 of \
         1000 MiB of memory (10 %) are unreclaimable slabs",
    );
    // Neither most of memory nor little.
    check(
        100,
        false,
        NotReclaimable,
        "not reclaimable: make invoked the OOM killer, which killed cc1 (7); 100 of 1000 MiB of memory \
         (10 %) are unreclaimable slabs, and the text does not count what has the rest",
    );
}

/// A text with a part of the caches: how much of the total in slabtop's head they have.
#[test]
fn of_a_part() {
    #[track_caller]
    fn check(head: u64, judgement: Judgement, sentence: &str) {
        let mut state = machine(&[("dentry", 200), ("filp", 100)], None);
        let totals = Totals { bytes: Some((head << 20, head << 20)), ..Totals::default() };
        state.dump.pasted = Some(Box::new(Pasted { totals: Some(totals), ..Pasted::default() }));
        says(&state, &[], judgement, sentence);
    }
    check(
        400,
        NoProblem,
        "no problem: 67 % of the caches in the text, 200 MiB, is counted as reclaimable and has a \
         shrinker: the kernel frees unused entries when it needs memory; most is dentry \
         (directory entries), 200 MiB",
    );
    check(
        401,
        NoProblem,
        "no problem: 67 % of the caches in the text, 200 MiB, is counted as reclaimable and has a \
         shrinker: the kernel frees unused entries when it needs memory; most is dentry \
         (directory entries), 200 MiB; the rows in the text have 300 of 401 MiB (75 %) by the \
         head of slabtop",
    );
    check(
        601,
        Unknown,
        "unknown: the rows in the text have 300 of 601 MiB (50 %) by the head of slabtop, and so \
         not what holds most; most of that is dentry (directory entries), 200 MiB",
    );
}

/// Memory of the kernel that is no slabs: a part of the machine's memory from which on it is the answer.
#[test]
fn of_memory_beside_slabs() {
    #[track_caller]
    fn check(counter: &str, before: u64, now: u64, judgement: Judgement, begins: &str) {
        let at = |mib: u64| {
            let mut state = machine(&[("dentry", 300), ("filp", 100)], Some([10_000, 300, 100]));
            state.dump.meminfo.insert(counter.into(), mib * 1024);
            state
        };
        let (then, now) = ([at(before)], at(now));
        let report = examine(&now, &Options { since: &then, ..Options::default() }).unwrap();
        let text = &report.verdict.text;
        assert_eq!(report.verdict.judgement, judgement, "{text}");
        assert!(text.starts_with(begins), "{text}");
    }
    const GREW: &str = "climbing, but not in slabs: ";
    let of_page_tables = format!("{GREW}PageTables grew by 1.4 GiB, from 100 MiB to 1.5 GiB (page tables: ");
    check("PageTables", 100, 1564, Climbing, &of_page_tables);
    check("Percpu", 10, 130, Climbing, &format!("{GREW}Percpu grew by 120 MiB"));
    check("VmallocUsed", 10, 130, Climbing, &format!("{GREW}VmallocUsed grew by 120 MiB"));
    check("KernelStack", 10, 109, Steady, "steady: ");
    check("PageTables", 1564, 100, Steady, "steady: ");
    check("AnonPages", 100, 5000, Steady, "steady: ");
}
