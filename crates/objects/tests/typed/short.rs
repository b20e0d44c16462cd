//! Memory runs out, in a process of its own with limited address space.

use crate::{ENGINES, under_every_engine};
use slablab_objects::{AllocError, Builder, ObjectCache, Shrinker};
use std::mem::MaybeUninit;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

const BOUNDED: &str = "BOUNDED_ENGINE";

#[test]
#[ignore = "fills a bounded address space: `without_memory_there_is_an_error` starts it"]
fn fill() {
    let Ok(engine) = std::env::var(BOUNDED) else {
        return eprintln!("{BOUNDED} is not set: left out");
    };
    let engine = ENGINES.iter().find(|known| **known == engine).expect("an engine");
    static ASKED: AtomicU64 = AtomicU64::new(0);
    let _shrinker = Shrinker::register(|wanted| {
        assert!(wanted > 0);
        ASKED.fetch_add(1, SeqCst);
        0
    });
    type Large = MaybeUninit<[u8; 1 << 20]>;
    let cache: ObjectCache<Large> = Builder::new("large").engine(engine).create().expect("a cache");
    for round in 1..=3 {
        let mut held = Vec::new();
        let why = loop {
            match cache.prefill(64) {
                Ok(reserve) => held.push(reserve),
                Err(why) => break why,
            }
        };
        assert_eq!(why, AllocError::NoMemory);
        assert!(held.len() > 5 && ASKED.load(SeqCst) >= round, "{} batches", held.len());
        assert_eq!(cache.stats().active, held.len() as u64 * 64, "no object is lost");
        held.clear();
        cache.shrink();
        assert_eq!(cache.stats().slabs, 0, "all slabs are freed");
    }
    println!("it went on");
}

#[test]
fn without_memory_there_is_an_error() {
    under_every_engine(|engine| {
        let test = std::env::current_exe().expect("this test is a program");
        let bounded = format!(
            "ulimit -v 2000000 && exec '{}' --exact short::fill --nocapture --include-ignored",
            test.display()
        );
        let done = Command::new("sh").args(["-c", &bounded]).env(BOUNDED, engine).output().expect("it runs");
        let (said, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success() && said.contains("it went on"), "{engine}: {said}{errors}");
    });
}
