//! Random programs, compared with a simple reference: a vector of the inserted numbers.

use crate::{Census, under_every_engine};
use slablab_objects::{Builder, Mode, Object, ObjectCache};

/// A pseudo-random number below a bound (Marsaglia's xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }
}

const SEEDS: u64 = 3;
const STEPS: u64 = 20_000;

/// Runs a program over a cache. `alloc` returns objects that hold a number, from the cache or from a reserve.
fn run<'c, M: Mode<crate::Counted>>(
    cache: &'c ObjectCache<crate::Counted, M>,
    seed: u64,
    mut alloc: impl FnMut(u64, usize) -> Vec<Object<'c, crate::Counted, M>>,
) {
    let mut random = Random(seed * 2 + 1);
    let (mut real, mut reference) = (Vec::new(), Vec::new());
    for step in 0..STEPS {
        match random.below(100) {
            0 => {
                let keep = random.below(real.len() + 1);
                real.truncate(keep);
                reference.truncate(keep);
            }
            1 => {
                cache.shrink();
            }
            2 => {
                let count = random.below(100);
                for mut object in alloc(step, count) {
                    object.set(step);
                    real.push(object);
                    reference.push(step);
                }
            }
            3..=52 => {
                for mut object in alloc(step, 1) {
                    object.set(step);
                    real.push(object);
                    reference.push(step);
                }
            }
            53..=60 if !real.is_empty() => {
                let at = random.below(real.len());
                real[at].set(step);
                reference[at] = step;
            }
            _ if !real.is_empty() => {
                let at = random.below(real.len());
                assert!(real[at].is_whole());
                drop(real.swap_remove(at));
                reference.swap_remove(at);
            }
            _ => {}
        }
    }
    assert_eq!(real.len(), reference.len(), "seed {seed}");
    for (object, number) in real.iter().zip(&reference) {
        assert!(
            object.is_whole() && object.number == *number,
            "seed {seed}: {:#x} for {number:#x}",
            object.number
        );
    }
    let mut places: Vec<usize> = real.iter().map(|object| object.as_ptr().addr()).collect();
    places.sort_unstable();
    let near = places.windows(2).any(|pair| pair[1] - pair[0] < size_of::<crate::Counted>());
    assert!(!near, "seed {seed}: objects overlap");
}

#[test]
fn plain_values() {
    under_every_engine(|engine| {
        for seed in 0..SEEDS {
            let census = Census::default();
            let cache = Builder::new("program").engine(engine).create().expect("a cache");
            run(&cache, seed, |step, count| match count {
                1 => vec![cache.insert(census.born(step)).expect("memory")],
                _ => {
                    let mut reserve = cache.prefill(count + 5).expect("memory");
                    (0..count)
                        .map(|_| reserve.insert(census.born(step)).ok().expect("taken before"))
                        .collect()
                }
            });
            assert_eq!(cache.stats().found, 0, "{engine}, seed {seed}");
            assert_eq!((census.living(), cache.destroy()), (0, Ok(())), "{engine}, seed {seed}");
        }
    });
}

#[test]
fn constructed_values() {
    under_every_engine(|engine| {
        for seed in 0..SEEDS {
            let census = Census::default();
            let born = census.clone();
            let cache =
                Builder::new("program").engine(engine).create_with(move || born.born(0)).expect("a cache");
            run(&cache, seed, |_, count| match count {
                1 => vec![cache.alloc().expect("memory")],
                _ => {
                    let mut reserve = cache.prefill(count + 5).expect("memory");
                    (0..count).map(|_| reserve.alloc().expect("taken before")).collect()
                }
            });
            assert_eq!(cache.stats().found, 0, "{engine}, seed {seed}");
            assert_eq!(cache.destroy(), Ok(()), "{engine}, seed {seed}");
            assert_eq!(census.living(), 0, "{engine}, seed {seed}");
        }
    });
}
