//! The native world: the engines as a Rust program's global allocator.
//!
//! Threads read words, count them and hand the counts over; every string and every node of a map is an object
//! of a slab. `SLABLAB_ENGINE=slqb` chooses another engine, `SLABLAB_STATS=1` prints the caches at the end.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;

#[global_allocator]
static HEAP: slablab_malloc::Slablab = slablab_malloc::Slablab;

/// A text of our own.
const TEXT: &str = "a slab holds objects of one size and a cache holds slabs of one kind of objects";
const THREADS: usize = 4;
const ROUNDS: usize = 2_000;

fn count(text: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for word in text.split(' ') {
        *counts.entry(word.to_owned()).or_default() += 1;
    }
    counts
}

fn main() {
    let (send, receive) = mpsc::sync_channel(64);
    for _ in 0..THREADS {
        let send = send.clone();
        thread::spawn(move || {
            for _ in 0..ROUNDS {
                // What this thread allocates the main thread frees.
                send.send(count(TEXT)).expect("somebody listens");
            }
        });
    }
    drop(send);
    let mut total = BTreeMap::<String, usize>::new();
    for counts in receive {
        for (word, count) in counts {
            *total.entry(word).or_default() += count;
        }
    }
    let mut words: Vec<_> = total.into_iter().collect();
    words.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    for (word, count) in words.iter().take(3) {
        println!("{count:6} {word}");
    }
}
