//! System calls and page faults.

use super::{Place, Probe, timed};
use crate::raw::SharedPages;
use crate::series::{Samples, Series};
use memmap2::{Advice, MmapMut};
use std::io;
use std::sync::atomic::Ordering::Relaxed;

const CALLS: u32 = 1_000;
const PAGES: usize = 256;

struct Calls(f64);

pub(super) fn make_call(place: &Place) -> io::Result<Box<dyn Probe>> {
    Ok(Box::new(Calls(place.clock_ns)))
}

impl Probe for Calls {
    fn block(&mut self, into: &mut Samples) -> io::Result<()> {
        let (ns, ()) = timed(self.0, || {
            for _ in 0..CALLS {
                std::hint::black_box(rustix::process::getppid());
            }
        });
        into.push(Series::SystemCall, ns / f64::from(CALLS));
        Ok(())
    }
}

struct Faults {
    clock_ns: f64,
    page_size: usize,
    pages: SharedPages,
}

pub(super) fn make(place: &Place) -> io::Result<Box<dyn Probe>> {
    let page_size = place.host.page_size as usize;
    let pages = SharedPages::new(PAGES * page_size)?;
    // The file gets its pages.
    pages.words().iter().step_by(page_size / 8).for_each(|word| word.store(1, Relaxed));
    Ok(Box::new(Faults { clock_ns: place.clock_ns, page_size, pages }))
}

impl Probe for Faults {
    fn block(&mut self, into: &mut Samples) -> io::Result<()> {
        self.pages.forget()?;
        let words = self.pages.words();
        let (ns, ()) = timed(self.clock_ns, || {
            // Writes: a read would map the pages around it, too.
            words.iter().step_by(self.page_size / 8).for_each(|word| word.store(2, Relaxed));
        });
        into.push(Series::FaultMapped, ns / PAGES as f64);
        let mut fresh = MmapMut::map_anon(PAGES * self.page_size)?;
        let _ = fresh.advise(Advice::NoHugePage);
        let (ns, ()) = timed(self.clock_ns, || {
            fresh.iter_mut().step_by(self.page_size).for_each(|byte| *std::hint::black_box(byte) = 1);
        });
        into.push(Series::FaultAnonymous, ns / PAGES as f64);
        Ok(())
    }
}
