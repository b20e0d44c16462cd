//! A Rust program with this global allocator: collections, threads, sizes of all kinds. `unsafe`: frees by
//! hand.
#![allow(unsafe_code, reason = "frees by hand")]

use slablab_malloc::Slablab;
use std::collections::{BTreeMap, HashMap};

#[global_allocator]
static HEAP: Slablab = Slablab;

fn churn(seed: u64) -> u64 {
    let mut random = seed * 2 + 1;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) % below
    };
    let mut texts: HashMap<u64, String> = HashMap::new();
    let mut blocks: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut sum = 0;
    for step in 0..20_000 {
        let key = next(500);
        match next(4) {
            0 => drop(texts.insert(key, format!("{key}-{step}").repeat(next(60) as usize + 1))),
            1 => {
                let length = if next(100) == 0 { next(40_000) } else { next(300) };
                blocks.insert(key, (0..length).map(|at| at ^ key).collect());
            }
            2 => {
                sum += texts.remove(&key).map_or(0, |text| {
                    assert!(text.starts_with(&format!("{key}-")), "the text of {key} was overwritten");
                    text.len() as u64
                })
            }
            _ => {
                if let Some(mut block) = blocks.remove(&key) {
                    assert!(block.iter().enumerate().all(|(at, word)| *word == at as u64 ^ key));
                    block.resize(block.len() * 2, 7);
                    sum += block.len() as u64;
                    blocks.insert(next(500) + 1000, (0..block.len() as u64).collect());
                }
                blocks.retain(|key, _| *key < 1000);
            }
        }
    }
    sum
}

#[test]
fn threads_with_collections() {
    let alone: Vec<u64> = (0..4).map(churn).collect();
    let threads: Vec<_> = (0..4).map(|seed| std::thread::spawn(move || churn(seed))).collect();
    let together: Vec<u64> = threads.into_iter().map(|thread| thread.join().expect("it ends")).collect();
    assert_eq!(alone, together);
}

#[test]
fn zeroed_memory_is_zero_also_when_it_was_used() {
    for bytes in [1, 16, 100, 4096, 40_000, 5 << 20] {
        for _ in 0..3 {
            let used = vec![0xa5u8; bytes];
            assert_eq!(used.last(), Some(&0xa5));
            drop(used);
            let zeroed = vec![0u8; bytes];
            assert!(zeroed.iter().all(|byte| *byte == 0), "{bytes} bytes");
        }
    }
}

#[test]
fn alignments() {
    for align in (0..=22).map(|shift| 1usize << shift) {
        for bytes in [1, 24, 100, 5000, 40_000] {
            let at = slablab_malloc::api::alloc_aligned(bytes, align);
            assert!(
                !at.is_null() && at.addr().is_multiple_of(align),
                "{bytes} bytes aligned to {align}: {at:p}"
            );
            let usable = slablab_malloc::api::usable(at);
            assert!(usable >= bytes, "{bytes} bytes aligned to {align}: {usable} usable");
        }
    }
}

#[test]
fn requests_beyond_memory_return_null() {
    for bytes in [1 << 47, usize::MAX / 2, usize::MAX - 5000, usize::MAX] {
        assert!(slablab_malloc::api::alloc(bytes).is_null(), "{bytes} bytes");
        assert!(slablab_malloc::api::alloc_zeroed(bytes, 4096).is_null(), "{bytes} bytes of zeros");
    }
}

#[test]
fn blocks_above_the_largest_order() {
    let _alone = alone();
    for (bytes, align) in [(600 << 20, 16), (1 << 30, 4096), (700 << 20, 1 << 22)] {
        let at = slablab_malloc::api::alloc_aligned(bytes, align);
        assert!(!at.is_null() && at.addr().is_multiple_of(align), "{bytes} bytes aligned to {align}");
        assert!(slablab_malloc::api::usable(at) >= bytes);
        // SAFETY: allocated above, and not used any more.
        slablab_malloc::api::free(unsafe { slablab_malloc::Given::new(at) });
    }
    let mut grown: Vec<u8> = Vec::with_capacity(400 << 20);
    grown.push(7);
    grown.reserve_exact(900 << 20);
    assert_eq!(grown[0], 7);
}

/// One test at a time that has hundreds of megabytes resident, or looks at how many are.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Resident bytes of this process.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("the kernel has it");
    statm.split(' ').nth(1).expect("a second number").parse::<usize>().expect("pages") << 12
}

#[test]
fn realloc_above_the_largest_order_does_not_copy() {
    let _alone = alone();
    use slablab_malloc::{Given, api};
    let (least, most) = (600usize << 20, 1400usize << 20);
    let mut at = api::alloc(least);
    assert!(!at.is_null());
    let marks: Vec<usize> = (0..least).step_by(32 << 20).collect();
    // SAFETY: every mark is below `least`, the allocated bytes.
    marks.iter().for_each(|mark| unsafe { at.add(*mark).write(*mark as u8 | 1) });
    let before = resident();
    for bytes in [900 << 20, most, least, 256 << 20, 80 << 20, 200 << 20, 513 << 20] {
        // SAFETY: allocated above, and not used any more.
        at = api::realloc(unsafe { Given::new(at) }, bytes, 16);
        assert!(!at.is_null(), "{bytes} bytes");
        let (usable, grown) = (api::usable(at), resident().saturating_sub(before));
        assert!((bytes..bytes + 65_536).contains(&usable), "{bytes} bytes: {usable} usable");
        // Other tests allocate meanwhile, less than this.
        assert!(grown < 300 << 20, "{bytes} bytes: {grown} were copied");
        for mark in marks.iter().filter(|mark| **mark < 80 << 20) {
            // SAFETY: below the smallest size.
            assert_eq!(unsafe { at.add(*mark).read() }, *mark as u8 | 1, "{bytes} bytes, at {mark}");
        }
    }
    // SAFETY: inside of the block. It was shorter before, so these pages are new and read as zeros.
    assert_eq!(unsafe { at.add(512 << 20).read() }, 0);
    // SAFETY: as above; it is not used any more.
    api::free(unsafe { Given::new(at) });
}

#[test]
fn realloc_of_page_frames_keeps_the_contents() {
    use slablab_malloc::{Given, api};
    let mut seed = 7u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize % below
    };
    // A block shrinks in place; it grows in place if the frames behind it are free (crates/c/tests/blocks.c).
    let mut blocks: Vec<(*mut u8, usize, u8)> = Vec::new();
    for step in 0..4000 {
        if blocks.len() < 20 {
            let bytes = 33_000 + random(200_000);
            let at = api::alloc(bytes);
            assert!(!at.is_null());
            // SAFETY: `bytes` bytes were allocated.
            unsafe { at.write_bytes(step as u8, bytes) };
            blocks.push((at, bytes, step as u8));
        }
        let (at, bytes, fill) = blocks.swap_remove(random(blocks.len()));
        let wanted = [bytes / 3, bytes * 9 / 8, bytes * 2, 40_000][random(4)].clamp(1000, 8 << 20);
        // SAFETY: allocated above, and used by this thread alone.
        let moved = api::realloc(unsafe { Given::new(at) }, wanted, 16);
        assert!(!moved.is_null() && api::usable(moved) >= wanted, "{bytes} to {wanted} bytes");
        if wanted < bytes && wanted > 32 << 10 {
            assert_eq!(moved, at, "{bytes} to {wanted} bytes: a block shrinks in place");
            let wasted = api::usable(moved) - wanted;
            assert!(wasted <= api::usable(moved) / 8 + 4096, "{bytes} to {wanted} bytes: {wasted} wasted");
        }
        // SAFETY: the block has at least `wanted` bytes.
        let held = unsafe { std::slice::from_raw_parts(moved, wanted.min(bytes)) };
        assert!(held.iter().all(|byte| *byte == fill), "{bytes} to {wanted} bytes");
        match random(3) {
            // SAFETY: not used any more.
            0 => api::free(unsafe { Given::new(moved) }),
            _ => {
                // SAFETY: the block has at least `wanted` bytes.
                unsafe { moved.write_bytes(fill, wanted) };
                blocks.push((moved, wanted, fill));
            }
        }
    }
    // SAFETY: not used any more.
    blocks.iter().for_each(|(at, ..)| api::free(unsafe { Given::new(*at) }));
}

/// A further heap of every engine, on the page allocator of the process's own heap, each with its own
/// objects.
#[test]
fn extra_heaps_of_every_engine() {
    use slablab_malloc::world::Native;
    use slablab_slabs::Preset;
    use slablab_slabs::engines::{slab::SlabEngine, slqb::Slqb, slub::Slub};
    fn check<E: slablab_slabs::Front<Native, Common: Sync> + Sync + 'static>(policy: &E::Policy) {
        let extra = slablab_malloc::ExtraHeap::<E>::open(policy).expect("memory");
        let mut seed = 1u64;
        let mut all: Vec<(*mut u8, usize)> = (0..20_000u64)
            .map(|n| {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(n);
                let bytes = 8 + (seed >> 33) as usize % 3000;
                let at = extra.heap().alloc(bytes);
                // SAFETY: `bytes` bytes were allocated.
                unsafe { at.write_bytes(n as u8, bytes) };
                (at, bytes)
            })
            .collect();
        for (n, (at, bytes)) in all.iter().enumerate() {
            // SAFETY: allocated above.
            let held = unsafe { std::slice::from_raw_parts(*at, *bytes) };
            assert!(held.iter().all(|byte| *byte == n as u8), "object {n} was overwritten");
        }
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0].0.addr() + pair[0].1 <= pair[1].0.addr()));
        // SAFETY: allocated above, and used no more.
        all.iter().for_each(|(at, _)| extra.heap().free(unsafe { slablab_malloc::Given::new(*at) }));
    }
    for name in ["slub@7.1", "slub@6.1", "slqb", "slab"] {
        match slablab_slabs::Preset::parse(name).expect("a preset") {
            Preset::Slub(policy) => check::<Slub<Native>>(&slablab_malloc::slub_here(policy, false)),
            Preset::Slqb(policy) => check::<Slqb<Native>>(&policy),
            Preset::Slab(policy) => check::<SlabEngine<Native>>(&policy),
            other => panic!("{name} is {other}"),
        }
    }
}

/// Further heaps that are chosen at run time, with wrappers and without.
#[test]
fn chosen_heaps() {
    use slablab_malloc::{ChosenHeap, NoHeap};
    for engine in [
        "slub@7.1",
        "slub@6.1,debug=FZPU",
        "slub@6.1,harden=random+encode",
        "slqb",
        "slqb,debug=FZ,quarantine=8K",
        "slab",
        "slab,debug=P,init=alloc+free",
    ] {
        let heap = ChosenHeap::open(engine).unwrap_or_else(|why| panic!("{engine}: {why}"));
        std::thread::scope(|scope| {
            for thread in 0..3 {
                scope.spawn(move || use_heap(heap, engine, thread));
            }
        });
    }
    for (engine, words) in [
        ("slbu", "slub"),
        ("slob@6.1", "SLOB does not store the size"),
        ("slub,harden=on", "harden=on is for the process's own heap"),
    ] {
        let refused = ChosenHeap::open(engine).expect_err(engine);
        assert!(matches!(&refused, NoHeap::Engine(why) if why.contains(words)), "{engine}: {refused}");
    }
}

/// Each heap takes room in every slot. In a process of its own, which has no room for further heaps then.
#[test]
fn further_heaps_are_refused_when_slots_are_full() {
    use slablab_malloc::{ChosenHeap, NoHeap};
    const ALONE: &str = "FULL_SLOTS_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let this = std::env::current_exe().expect("this test is a program");
        let mut alone = std::process::Command::new(this);
        alone.args(["--exact", "further_heaps_are_refused_when_slots_are_full"]).env(ALONE, "1");
        let done = alone.output().expect("it runs");
        return assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    }
    let mut engines =
        ["slqb,debug=FZPU", "slub@2.6.29,debug=FZ", "slab,quarantine=8K", "slqb"].iter().cycle();
    let mut heaps = Vec::new();
    let refused = loop {
        let engine = engines.next().expect("they begin anew");
        match ChosenHeap::open(engine) {
            Ok(heap) => heaps.push((heap, *engine)),
            Err(why) => break why,
        }
    };
    assert_eq!(refused, NoHeap::Memory);
    assert!(heaps.len() >= 8, "{} heaps", heaps.len());
    heaps.iter().for_each(|(heap, engine)| use_heap(*heap, engine, 1));
}

/// Allocates, fills, resizes and frees blocks of all sizes.
fn use_heap(heap: slablab_malloc::ChosenHeap, engine: &str, seed: u64) {
    use slablab_malloc::Given;
    let mut seed = seed;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize % below
    };
    let holds = |(at, bytes, fill): &(*mut u8, usize, u8)| {
        // SAFETY: a block of `bytes` bytes, which were filled.
        unsafe { std::slice::from_raw_parts(*at, *bytes) }.iter().all(|byte| byte == fill)
    };
    let mut blocks: Vec<(*mut u8, usize, u8)> = Vec::new();
    for turn in 0..6_000usize {
        let bytes = match random(50) {
            0 => 1 + random(300_000),
            _ => 1 + random(3_000),
        };
        let fill = turn as u8;
        let at = match random(3) {
            0 if !blocks.is_empty() => {
                let (at, old, old_fill) = blocks.swap_remove(random(blocks.len()));
                // SAFETY: allocated below, and used as the new block only.
                let new = heap.realloc(unsafe { Given::new(at) }, bytes, 1);
                assert!(holds(&(new, old.min(bytes), old_fill)), "{engine}: realloc of {old} to {bytes}");
                new
            }
            1 => {
                let at = heap.alloc_zeroed(bytes, 1);
                assert!(holds(&(at, bytes, 0)), "{engine}: {bytes} zeros");
                at
            }
            _ => heap.alloc_aligned(bytes, 64),
        };
        assert!(!at.is_null() && heap.usable(at) >= bytes, "{engine}: {bytes} bytes");
        // SAFETY: `bytes` bytes were allocated.
        unsafe { at.write_bytes(fill, bytes) };
        blocks.push((at, bytes, fill));
        if blocks.len() > 400 {
            let last = blocks.swap_remove(random(blocks.len()));
            assert!(holds(&last), "{engine}: a block of {} bytes was overwritten", last.1);
            // SAFETY: allocated above, and not used any more.
            heap.free(unsafe { Given::new(last.0) });
        }
    }
    for block in blocks {
        assert!(holds(&block), "{engine}: a block of {} bytes was overwritten", block.1);
        // SAFETY: allocated above, and not used any more.
        heap.free(unsafe { Given::new(block.0) });
    }
}

/// Runs all tests again with slots per CPU: what slots belong to is decided once per process.
#[test]
fn all_per_cpu() {
    if std::env::var_os("SLABLAB_SLOTS").is_some() {
        return;
    }
    let mut again = std::process::Command::new(std::env::current_exe().expect("this test is a program"));
    let done = again.env("SLABLAB_SLOTS", "cpu").output().expect("it runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}

/// Runs all tests again with debugging and hardening around the engine, which must report nothing.
#[test]
fn all_wrapped() {
    if std::env::var_os("SLABLAB_ENGINE").is_some() {
        return;
    }
    for engine in [
        "slub@7.1,debug=FZP,quarantine=8K",
        "slqb,debug=FZPU",
        "slab,init=alloc+free,harden=random",
        "slub@7.1,harden=on",
    ] {
        let mut again = std::process::Command::new(std::env::current_exe().expect("this test is a program"));
        again.args(["--skip", "all_per_cpu", "--skip", "threads_allocate_while_trim_runs"]);
        let done = again.env("SLABLAB_ENGINE", engine).output().expect("it runs");
        let (said, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success() && errors.is_empty(), "{engine}: {said}{errors}");
    }
}

/// The heap's mapping has the flag for huge pages if and only if `SLABLAB_HUGE` is set. In processes of their
/// own: blocks of other tests have the flag if they replace others.
#[test]
fn huge_pages_follow_the_setting() {
    const ALONE: &str = "HUGE_PAGES_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return check_huge_pages();
    }
    for huge in [false, true] {
        let this = std::env::current_exe().expect("this test is a program");
        let mut alone = std::process::Command::new(this);
        alone.args(["--exact", "huge_pages_follow_the_setting"]).env(ALONE, "1");
        let alone = if huge { alone.env("SLABLAB_HUGE", "1") } else { alone.env_remove("SLABLAB_HUGE") };
        let done = alone.output().expect("it runs");
        assert!(done.status.success(), "{huge}: {}", String::from_utf8_lossy(&done.stdout));
    }
}

fn check_huge_pages() {
    let asked = std::env::var_os("SLABLAB_HUGE").is_some();
    let at = Box::new(1u8);
    let address = std::ptr::from_ref(&*at).addr();
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("this process's mappings");
    let ranges = maps.lines().filter_map(|line| {
        let (range, _) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        Some((line, usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?))
    });
    let (line, ..) =
        ranges.into_iter().find(|(_, from, to)| (*from..*to).contains(&address)).expect("a mapping");
    let flags = maps[maps.find(line).expect("the line")..].lines().find(|line| line.starts_with("VmFlags:"));
    let allowed = flags.expect("flags").split_whitespace().any(|flag| flag == "hg");
    let known = std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
    assert_eq!(allowed, asked && known);
}

/// Threads allocate, free and end while another thread empties all slots.
#[test]
fn threads_allocate_while_trim_runs() {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                slablab_malloc::api::purge();
            }
        });
        for round in 0..60u64 {
            let threads: Vec<_> = (0..4u64)
                .map(|thread| {
                    scope.spawn(move || {
                        let mut random = (round * 4 + thread) * 2 + 1;
                        let mut next = |below: u64| {
                            random ^= random << 13;
                            random ^= random >> 7;
                            random ^= random << 17;
                            (random >> 11) % below
                        };
                        let mut live: Vec<Vec<u8>> = Vec::new();
                        for step in 0..60_000u64 {
                            // The number of live objects rises and falls by several hundred, so that
                            // sheaves grow and are exchanged.
                            if next(1000) < if step % 4000 < 2000 { 700 } else { 300 } {
                                let bytes = 1 + if next(8) == 0 { next(3000) } else { next(300) };
                                live.push(vec![bytes as u8; bytes as usize]);
                            } else if !live.is_empty() {
                                let at = next(live.len() as u64) as usize;
                                let freed = live.swap_remove(at);
                                assert!(freed.iter().all(|byte| *byte == freed.len() as u8), "overwritten");
                            }
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
        }
        done.store(true, Relaxed);
    });
}
