//! Cycles and compare-exchanges on a line of the first level.

use super::{Place, Probe, timed};
use crate::series::{Samples, Series};
use std::hint::black_box;
use std::io;

const ROUNDS: u64 = 20_000;
/// Cycles of a multiplication and an exclusive or, each of which needs the result of the one before: 3 and 1
/// on x86-64 since 2008 and on most arm64 cores.
const STEP_CYCLES: f64 = 4.0;

struct Exchange {
    clock_ns: f64,
    word: u64,
}

pub(super) fn make(place: &Place) -> io::Result<Box<dyn Probe>> {
    Ok(Box::new(Exchange { clock_ns: place.clock_ns, word: 1 }))
}

impl Probe for Exchange {
    fn block(&mut self, into: &mut Samples) -> io::Result<()> {
        let mut time = |series, work: &mut dyn FnMut()| {
            let (ns, ()) = timed(self.clock_ns, work);
            let cycles = if series == Series::Cycle { STEP_CYCLES } else { 1.0 };
            into.push(series, ns / ROUNDS as f64 / cycles);
        };
        let mut value = black_box(self.word);
        time(Series::Cycle, &mut || {
            for _ in 0..ROUNDS {
                value = (value ^ 0x5555).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            }
            value = black_box(value);
        });
        let shared = std::sync::atomic::AtomicU64::new(value);
        time(Series::LockedExchange, &mut || {
            use std::sync::atomic::Ordering::*;
            let mut seen = shared.load(Relaxed);
            for _ in 0..ROUNDS {
                seen = match shared.compare_exchange(seen, seen.wrapping_add(1), AcqRel, Relaxed) {
                    Ok(old) => old.wrapping_add(1),
                    Err(other) => other,
                };
            }
        });
        #[cfg(target_arch = "x86_64")]
        {
            use crate::raw::{Pair, exchange16, local_exchange};
            let word = &mut self.word;
            time(Series::LocalExchange, &mut || {
                for _ in 0..ROUNDS {
                    let old = *word;
                    black_box(local_exchange(word, old, old.wrapping_add(1)));
                }
            });
            let mut pair = Pair([value, 0]);
            if exchange16(&mut pair, 1, false) {
                time(Series::LocalExchange16, &mut || assert!(exchange16(&mut pair, ROUNDS, false)));
                time(Series::LockedExchange16, &mut || assert!(exchange16(&mut pair, ROUNDS, true)));
            }
        }
        Ok(())
    }
}
