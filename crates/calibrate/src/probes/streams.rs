//! Zeroing, copying and reading memory.

use super::{Place, Probe, timed};
use crate::raw;
use crate::series::{Samples, Series};
use memmap2::{Advice, MmapMut};
use std::hint::black_box;
use std::io;

const PAGE: usize = 4096;
/// Pages of a block.
const PAGES: usize = 64;

struct Streams {
    clock_ns: f64,
    /// Memory that the second level holds.
    small: MmapMut,
    /// Memory that no cache holds.
    large: MmapMut,
    /// Where the next block begins in `large`.
    at: usize,
}

pub(super) fn make(place: &Place) -> io::Result<Box<dyn Probe>> {
    let [_, l2, llc] = place.host.caches;
    let small = (l2.unwrap_or(1 << 20) as usize / 2).max(2 * PAGE);
    let large = (4 * llc.unwrap_or(32 << 20) as usize).clamp(64 << 20, 512 << 20).next_multiple_of(1 << 21);
    let map = |bytes: usize| -> io::Result<MmapMut> {
        let mut map = MmapMut::map_anon(bytes)?;
        let _ = map.advise(Advice::HugePage);
        map.fill(1);
        Ok(map)
    };
    Ok(Box::new(Streams { clock_ns: place.clock_ns, small: map(small)?, large: map(large)?, at: 0 }))
}

impl Streams {
    /// The next pages of `large`, which were not touched for as long as possible.
    fn next(&mut self, pages: usize) -> std::ops::Range<usize> {
        if self.at + pages * PAGE > self.large.len() {
            self.at = 0;
        }
        let start = self.at;
        self.at += pages * PAGE;
        start..self.at
    }
}

impl Probe for Streams {
    fn block(&mut self, into: &mut Samples) -> io::Result<()> {
        let clock_ns = self.clock_ns;
        let per_kib = |bytes: usize, ns: f64| ns / (bytes as f64 / 1024.0);
        // The first time brings the pages into the cache.
        for is_measured in [false, true] {
            let (ns, ()) = timed(clock_ns, || {
                self.small.chunks_exact_mut(PAGE).for_each(|page| black_box(page).fill(0));
            });
            if is_measured {
                into.push(Series::ZeroCached, per_kib(self.small.len(), ns));
            }
        }
        let range = self.next(PAGES);
        let part = &mut self.large[range];
        let (ns, ()) = timed(clock_ns, || {
            part.chunks_exact_mut(PAGE).for_each(|page| black_box(page).fill(0));
        });
        into.push(Series::ZeroMemory, per_kib(PAGES * PAGE, ns));
        let half = self.small.len() / 2;
        for is_measured in [false, true] {
            let (to, from) = self.small.split_at_mut(half);
            let (ns, ()) = timed(clock_ns, || {
                for (to, from) in to.chunks_exact_mut(1024).zip(from.chunks_exact(1024)) {
                    black_box(to).copy_from_slice(black_box(from));
                }
            });
            if is_measured {
                into.push(Series::CopyCached, per_kib(half / 1024 * 1024, ns));
            }
        }
        let range = self.next(8 * PAGES);
        let (to, from) = self.large[range].split_at_mut(4 * PAGES * PAGE);
        let (ns, ()) = timed(clock_ns, || black_box(&mut *to).copy_from_slice(black_box(from)));
        into.push(Series::CopyMemory, per_kib(to.len(), ns));
        let range = self.next(4 * PAGES);
        let (first, count) = (range.start / 8, range.len() / 8);
        let words = &raw::words(&mut self.large)[first..first + count];
        let (ns, _) = timed(clock_ns, || words.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word)));
        into.push(Series::ReadMemory, per_kib(count * 8, ns));
        Ok(())
    }
}
