//! The parser of scripts over its corpus: whole, cut off at every byte, and changed. Nothing may panic.

use slablab_trace::script::{Generator, fuzz};
use std::panic::catch_unwind;

/// Changes of each file.
const CHANGES: usize = 2_000;
/// Words that are put in the place of others.
const WORDS: [&str; 14] = [
    "0",
    "1",
    "18446744073709551615",
    "4294967296",
    "x9",
    "stride:0",
    "part:0:0",
    "part:9",
    "zipf:1",
    ":",
    "a",
    "\n",
    "spawn again one.t",
    "\u{e4}",
];

#[track_caller]
fn check(data: &[u8], what: &str) {
    assert!(catch_unwind(|| fuzz(data)).is_ok(), "{what}: {:?}", String::from_utf8_lossy(data));
}

#[test]
fn no_text_makes_the_parser_panic() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/script");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 3);
    for path in files {
        let (data, name) = (std::fs::read(&path).unwrap(), path.display().to_string());
        (0..=data.len()).for_each(|end| check(&data[..end], &name));
        let mut random = Generator::new(data.len() as u64);
        for _ in 0..CHANGES {
            let mut changed = data.clone();
            for _ in 0..=random.draw() % 3 {
                let at = (random.draw() % changed.len() as u64) as usize;
                let end = (at + (random.draw() % 9) as usize).min(changed.len());
                let word = WORDS[(random.draw() % WORDS.len() as u64) as usize];
                match random.draw() % 3 {
                    0 => changed[at] ^= 1 << (random.draw() % 8),
                    1 => _ = changed.splice(at..end, word.bytes()),
                    _ => _ = changed.splice(at..end, data[at.min(data.len())..end.min(data.len())].to_vec()),
                }
            }
            check(&changed, &name);
        }
    }
}
