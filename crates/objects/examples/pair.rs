//! The cost of a pair of alloc and free, next to a bare list of free objects in thread-local storage.
//!
//! `cargo run --profile dist -p slablab-objects --example pair [ENGINE...]`: nanoseconds of thread CPU time
//! per pair, the median of interleaved rounds. `--count NAME ENGINE` does a million pairs of one kind and
//! nothing else, for callgrind.

use slablab_objects::{Builder, Constructed, ObjectCache};
use std::cell::Cell;
use std::hint::black_box;
use std::time::Duration;

const ROUNDS: usize = 31;
const PAIRS: u64 = 2_000_000;

/// Thread CPU time, from the kernel's clock.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A free object of a bare list: the cost of the hardware and of thread-local storage alone.
#[repr(align(64))]
struct Bare {
    next: Cell<Option<&'static Bare>>,
}

thread_local! {
    static FIRST: Cell<Option<&'static Bare>> = const { Cell::new(None) };
}

fn bare_list() {
    for _ in 0..64 {
        FIRST.set(Some(Box::leak(Box::new(Bare { next: Cell::new(FIRST.get()) }))));
    }
}

#[inline(never)]
fn bare_pairs(pairs: u64) {
    for _ in 0..pairs {
        let object = FIRST.get().expect("there are some");
        FIRST.set(object.next.get());
        let object = black_box(object);
        object.next.set(FIRST.get());
        FIRST.set(Some(object));
    }
}

#[inline(never)]
fn plain_pairs<T: Copy>(cache: &ObjectCache<T>, value: T, pairs: u64) {
    for _ in 0..pairs {
        black_box(cache.insert(value).expect("memory").as_ptr());
    }
}

#[inline(never)]
fn kept_pairs<T>(cache: &ObjectCache<T, Constructed<T>>, pairs: u64) {
    for _ in 0..pairs {
        black_box(cache.alloc().expect("memory").as_ptr());
    }
}

#[repr(align(64))]
struct Bytes<const N: usize>(std::mem::MaybeUninit<[u8; N]>);

impl<const N: usize> Clone for Bytes<N> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<const N: usize> Copy for Bytes<N> {}

fn empty<const N: usize>() -> Bytes<N> {
    Bytes(std::mem::MaybeUninit::uninit())
}

/// A kind of pair: its name, and a function that runs a number of them.
type Kind = (String, Box<dyn FnMut(u64)>);

fn kinds(engine: &'static str) -> Vec<Kind> {
    let small = Builder::new("small").engine(engine).create::<Bytes<64>>().expect("a cache");
    let large = Builder::new("large").engine(engine).create::<Bytes<4096>>().expect("a cache");
    let kept = Builder::new("kept").engine(engine).create_with(empty::<64>).expect("a cache");
    vec![
        (format!("{engine} 64"), Box::new(move |pairs| plain_pairs(&small, empty(), pairs))),
        (format!("{engine} 4096"), Box::new(move |pairs| plain_pairs(&large, empty(), pairs))),
        (format!("{engine} 64 kept"), Box::new(move |pairs| kept_pairs(&kept, pairs))),
    ]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name, engine] = &arguments[..]
        && flag == "--count"
    {
        let engine: &'static str = engine.clone().leak();
        bare_list();
        let mut all = kinds(engine);
        let found = all.iter_mut().find(|(kind, _)| *kind == format!("{engine} {name}"));
        return match found {
            Some((_, run)) => run(1_000_000),
            None => bare_pairs(1_000_000),
        };
    }
    let engines =
        if arguments.is_empty() { vec!["slub@7.1".to_owned(), "slub@6.1".to_owned()] } else { arguments };
    bare_list();
    let mut all: Vec<Kind> = vec![("bare list".to_owned(), Box::new(bare_pairs))];
    engines.into_iter().for_each(|engine| all.extend(kinds(engine.leak())));
    let mut figures = vec![Vec::new(); all.len()];
    for _ in 0..ROUNDS {
        for ((_, run), figures) in all.iter_mut().zip(&mut figures) {
            let before = cpu_time();
            run(PAIRS);
            figures.push((cpu_time() - before).as_secs_f64() * 1e9 / PAIRS as f64);
        }
    }
    for ((name, _), figures) in all.iter().zip(&mut figures) {
        figures.sort_by(f64::total_cmp);
        println!("{name:<24} {:.2} ns, at least {:.2}", figures[ROUNDS / 2], figures[0]);
    }
}
