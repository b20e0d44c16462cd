//! A Rust program whose global allocator this is: collections, threads, sizes of all kinds. `unsafe`: frees
//! by hand.
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
                    assert!(text.starts_with(&format!("{key}-")), "the text of {key} is another");
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
fn more_than_there_is() {
    for bytes in [1 << 47, usize::MAX / 2, usize::MAX - 5000, usize::MAX] {
        assert!(slablab_malloc::api::alloc(bytes).is_null(), "{bytes} bytes");
        assert!(slablab_malloc::api::alloc_zeroed(bytes, 4096).is_null(), "{bytes} bytes of zeros");
    }
}

#[test]
fn blocks_above_the_largest_order() {
    for (bytes, align) in [(600 << 20, 16), (1 << 30, 4096), (700 << 20, 1 << 22)] {
        let at = slablab_malloc::api::alloc_aligned(bytes, align);
        assert!(!at.is_null() && at.addr().is_multiple_of(align), "{bytes} bytes aligned to {align}");
        assert!(slablab_malloc::api::usable(at) >= bytes);
        // SAFETY: allocated above, and nobody uses it.
        unsafe { slablab_malloc::api::free(at) };
    }
    let mut grown: Vec<u8> = Vec::with_capacity(400 << 20);
    grown.push(7);
    grown.reserve_exact(900 << 20);
    assert_eq!(grown[0], 7);
}

/// Bytes of this process that are in memory.
fn resident() -> usize {
    let said = std::fs::read_to_string("/proc/self/statm").expect("the kernel says");
    said.split(' ').nth(1).expect("a second number").parse::<usize>().expect("pages") << 12
}

#[test]
fn another_size_above_the_largest_order_is_not_copied() {
    use slablab_malloc::api;
    let (least, most) = (600usize << 20, 1400usize << 20);
    let mut at = api::alloc(least);
    assert!(!at.is_null());
    let marks: Vec<usize> = (0..least).step_by(32 << 20).collect();
    // SAFETY: so many bytes were allocated.
    marks.iter().for_each(|mark| unsafe { at.add(*mark).write(*mark as u8 | 1) });
    let before = resident();
    for bytes in [900 << 20, most, least, 256 << 20, 80 << 20, 200 << 20, 513 << 20] {
        // SAFETY: allocated above, and nobody uses it.
        at = unsafe { api::realloc(at, bytes, 16) };
        assert!(!at.is_null(), "{bytes} bytes");
        let (usable, grown) = (api::usable(at), resident().saturating_sub(before));
        assert!((bytes..bytes + 65_536).contains(&usable), "{bytes} bytes: {usable} usable");
        // What other tests take meanwhile is less.
        assert!(grown < 300 << 20, "{bytes} bytes: {grown} were copied");
        for mark in marks.iter().filter(|mark| **mark < 80 << 20) {
            // SAFETY: within what every size had.
            assert_eq!(unsafe { at.add(*mark).read() }, *mark as u8 | 1, "{bytes} bytes, at {mark}");
        }
    }
    // SAFETY: behind what it once had, and what came back reads as zeros.
    assert_eq!(unsafe { at.add(512 << 20).read() }, 0);
    // SAFETY: as above; then it is nobody's.
    unsafe { api::free(at) };
}

#[test]
fn another_size_of_page_frames() {
    use slablab_malloc::api;
    let mut seed = 7u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize % below
    };
    // As long as nobody comes between, growth is where it is.
    let mut blocks: Vec<(*mut u8, usize, u8)> = Vec::new();
    let (mut stayed, mut resized) = (0, 0);
    for step in 0..4000 {
        if blocks.len() < 20 {
            let bytes = 33_000 + random(200_000);
            let at = api::alloc(bytes);
            assert!(!at.is_null());
            // SAFETY: so many bytes were allocated.
            unsafe { at.write_bytes(step as u8, bytes) };
            blocks.push((at, bytes, step as u8));
        }
        let (at, bytes, fill) = blocks.swap_remove(random(blocks.len()));
        let wanted = [bytes / 3, bytes * 9 / 8, bytes * 2, 40_000][random(4)].clamp(1000, 8 << 20);
        // SAFETY: allocated above, and nobody else uses it.
        let moved = unsafe { api::realloc(at, wanted, 16) };
        assert!(!moved.is_null() && api::usable(moved) >= wanted, "{bytes} to {wanted} bytes");
        (stayed, resized) = (stayed + (moved == at) as u32, resized + 1);
        if wanted < bytes && wanted > 32 << 10 {
            assert_eq!(moved, at, "{bytes} to {wanted} bytes: it gets shorter where it is");
            let wasted = api::usable(moved) - wanted;
            assert!(wasted <= api::usable(moved) / 8 + 4096, "{bytes} to {wanted} bytes: {wasted} wasted");
        }
        // SAFETY: so many bytes it has.
        let held = unsafe { std::slice::from_raw_parts(moved, wanted.min(bytes)) };
        assert!(held.iter().all(|byte| *byte == fill), "{bytes} to {wanted} bytes");
        match random(3) {
            // SAFETY: nobody uses it.
            0 => unsafe { api::free(moved) },
            _ => {
                // SAFETY: so many bytes it has.
                unsafe { moved.write_bytes(fill, wanted) };
                blocks.push((moved, wanted, fill));
            }
        }
    }
    assert!(stayed * 2 > resized, "{stayed} of {resized} stayed where they are");
    // SAFETY: nobody uses them.
    blocks.iter().for_each(|(at, ..)| unsafe { api::free(*at) });
}

/// Heaps of every engine beside the process's own: on the same pages, each with its own objects.
#[test]
fn heaps_beside_each_other() {
    fn check<E: slablab_slabs::Front<slablab_malloc::world::Native>>(beside: slablab_malloc::ExtraHeap<E>) {
        let mut seed = 1u64;
        let mut all: Vec<(*mut u8, usize)> = (0..20_000u64)
            .map(|n| {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(n);
                let bytes = 8 + (seed >> 33) as usize % 3000;
                let at = beside.heap().alloc(bytes);
                // SAFETY: so many bytes were allocated.
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
        all.iter().for_each(|(at, _)| unsafe { beside.heap().free(*at) });
    }
    for name in ["slub@7.1", "slub@6.1", "slqb", "slab"] {
        let preset = slablab_slabs::Preset::parse(name).expect("a preset");
        match slablab_malloc::Engines::open(preset).expect("memory") {
            slablab_malloc::Engines::Slub(beside) => check(beside),
            slablab_malloc::Engines::Slqb(beside) => check(beside),
            slablab_malloc::Engines::Slab(beside) => check(beside),
        }
    }
}

/// All of this again with slots per CPU: whose they are is decided once per process.
#[test]
fn all_per_cpu() {
    if std::env::var_os("SLABLAB_SLOTS").is_some() {
        return;
    }
    let mut again = std::process::Command::new(std::env::current_exe().expect("this test is a program"));
    let done = again.env("SLABLAB_SLOTS", "cpu").output().expect("it runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}

/// And with debugging and hardening around the engine, which have nothing to say.
#[test]
fn all_wrapped() {
    if std::env::var_os("SLABLAB_ENGINE").is_some() {
        return;
    }
    for engine in
        ["slub@7.1,debug=FZP,quarantine=8K", "slqb,debug=FZPU", "slab,init=alloc+free,harden=random"]
    {
        let mut again = std::process::Command::new(std::env::current_exe().expect("this test is a program"));
        again.args(["--skip", "all_per_cpu", "--skip", "shrinking_meanwhile"]);
        let done = again.env("SLABLAB_ENGINE", engine).output().expect("it runs");
        let (said, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success() && errors.is_empty(), "{engine}: {said}{errors}");
    }
}

/// Huge pages are asked for when the process starts: the mapping of the heap says so.
#[test]
fn huge_pages_as_asked() {
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
    if !asked {
        let this = std::env::current_exe().expect("this test is a program");
        let mut again = std::process::Command::new(this);
        let done = again
            .args(["--exact", "huge_pages_as_asked"])
            .env("SLABLAB_HUGE", "1")
            .output()
            .expect("it runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    }
}

/// Threads that allocate, free and end while another one asks every slot to give back what it holds.
#[test]
fn shrinking_meanwhile() {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                slablab_malloc::api::trim();
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
                            // Ups and downs of several hundred objects, so that sheaves grow and are
                            // exchanged.
                            if next(1000) < if step % 4000 < 2000 { 700 } else { 300 } {
                                let bytes = 1 + if next(8) == 0 { next(3000) } else { next(300) };
                                live.push(vec![bytes as u8; bytes as usize]);
                            } else if !live.is_empty() {
                                let at = next(live.len() as u64) as usize;
                                let gone = live.swap_remove(at);
                                assert!(gone.iter().all(|byte| *byte == gone.len() as u8), "written over");
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
