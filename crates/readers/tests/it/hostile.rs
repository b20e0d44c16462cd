//! Every reader over its corpus: whole, cut off and mutated. Nothing may panic or take memory without bound.
//!
//! Mutations come from a fixed seed, so a failure is found again; the message names the file and the case.
//! What this cannot show: that inputs far from the corpus are safe. A fuzzer with coverage feedback looks
//! further.

use std::panic::{AssertUnwindSafe, catch_unwind};

use slablab_readers::fuzz;

/// Mutations per file, and the size at which files are cut off more coarsely.
const MUTATIONS: u64 = 300;
const CUTS: usize = 300;

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// One to four changes: a bit, a byte that readers trip over, a word of extreme value, bytes removed or
/// repeated.
fn mutate(data: &[u8], random: &mut Random) -> Vec<u8> {
    const BYTES: &[u8] = b"\0\xff\x7f\x80 ,:;=-()\"\n90aZ";
    const WORDS: [u64; 6] = [0, 1, u64::MAX, 1 << 63, 0xffff_ffff, 1 << 32];
    let mut data = data.to_vec();
    for _ in 0..=random.below(4) {
        // Headers and tables are at the ends: half of the changes go there.
        let span = if random.below(2) == 0 { data.len().min(512) } else { data.len() };
        let at = if random.below(4) == 0 { data.len() - random.below(span) } else { random.below(span) };
        let at = at.min(data.len().saturating_sub(1));
        let len = random.below(16).min(data.len() - at);
        match random.below(5) {
            _ if data.is_empty() => {}
            0 => data[at] ^= 1 << random.below(8),
            1 => data[at] = BYTES[random.below(BYTES.len())],
            2 => {
                let word = WORDS[random.below(WORDS.len())].to_le_bytes();
                let width = [1, 2, 4, 8][random.below(4)].min(data.len() - at);
                data[at..at + width].copy_from_slice(&word[..width]);
            }
            3 => drop(data.drain(at..at + len)),
            _ => {
                let repeated = data[at..at + len].to_vec();
                data.splice(at..at, repeated);
            }
        }
    }
    data
}

/// The most memory this process has used, in bytes; 0 where the system does not say.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse::<u64>().ok()).map_or(0, |kb| kb * 1024)
}

#[track_caller]
fn check(reader: &str) {
    let run = fuzz::ALL.iter().find(|(name, _)| *name == reader).expect("the reader has a fuzz function").1;
    let try_one = |data: &[u8], file: &str, case: &str| {
        let outcome = catch_unwind(AssertUnwindSafe(|| run(data)));
        assert!(outcome.is_ok(), "{reader}: {file}, {case} panicked");
    };
    let folder = crate::common::path("corpus").join(reader);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for path in files {
        let (data, file) = (std::fs::read(&path).unwrap(), path.display().to_string());
        try_one(&data, &file, "whole");
        // Each byte of both ends, and some hundred places between.
        let step = (data.len() / CUTS).max(1);
        let ends = (0..data.len().min(CUTS)).chain(data.len().saturating_sub(CUTS)..data.len());
        for cut in ends.chain((0..data.len()).step_by(step)) {
            try_one(&data[..cut], &file, &format!("cut off at {cut}"));
        }
        let mut random = Random(data.len() as u64);
        for number in 0..MUTATIONS {
            try_one(&mutate(&data, &mut random), &file, &format!("mutation {number}"));
        }
    }
    let peak = peak_memory();
    assert!(peak < 512 << 20, "{reader}: {peak} bytes of memory at the peak");
}

#[test]
fn hostile_perfdata() {
    check("perfdata");
}

#[test]
fn hostile_trace_dats() {
    check("tracedat");
}

#[test]
fn hostile_text_recordings() {
    check("ftrace");
}

#[test]
fn hostile_formats() {
    check("tracepoint");
}

#[test]
fn hostile_compression() {
    check("compressed");
}

#[test]
fn hostile_slabinfo() {
    check("slabinfo");
}

#[test]
fn hostile_sysfs() {
    check("sysfs");
}

#[test]
fn hostile_bundles() {
    check("bundle");
}

#[test]
fn hostile_inputs() {
    check("input");
}

#[test]
fn hostile_pasted_texts() {
    check("pasted");
}

#[test]
fn hostile_tidy_recordings() {
    check("tidy");
}

#[test]
fn hostile_counters() {
    check("counters");
}

#[test]
fn hostile_vm_records() {
    check("vmrecord");
}

#[test]
fn every_corpus_has_a_reader() {
    let mut folders: Vec<String> = std::fs::read_dir(crate::common::path("corpus"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    folders.sort();
    let mut readers: Vec<&str> = fuzz::ALL.iter().map(|(name, _)| *name).collect();
    readers.sort();
    assert_eq!(folders, readers);
}

/// cargo-fuzz runs the same functions: `fuzz/fuzz_targets` has one program for each.
#[test]
fn every_reader_has_a_fuzz_target() {
    let folder = crate::common::path("../../fuzz/fuzz_targets");
    let manifest = std::fs::read_to_string(crate::common::path("../../fuzz/Cargo.toml")).unwrap();
    for (reader, _) in fuzz::ALL {
        let target = std::fs::read_to_string(folder.join(format!("{reader}.rs"))).unwrap();
        assert!(target.contains(&format!("slablab_readers::fuzz::{reader}(data)")), "{reader}.rs: {target}");
        assert!(manifest.contains(&format!("name = \"{reader}\"")), "{reader} is not in fuzz/Cargo.toml");
    }
    let targets = std::fs::read_dir(folder).unwrap().map(|target| target.unwrap().path());
    let ours =
        targets.filter(|target| std::fs::read_to_string(target).unwrap().contains("slablab_readers::"));
    assert_eq!(ours.count(), fuzz::ALL.len());
}
