//! Context switches: a byte to a partner on the same CPU and back.

use super::{Place, Probe, timed};
use crate::raw::Child;
use crate::series::{Samples, Series};
use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};

const TRIPS: u32 = 30;
/// The byte that ends a partner.
const END: [u8; 1] = [0];
const GO: [u8; 1] = [1];

/// The pipes to a partner and back.
struct Line {
    to: PipeWriter,
    from: PipeReader,
}

impl Line {
    fn round_trips(&mut self, clock_ns: f64) -> io::Result<f64> {
        let (ns, result) = timed(clock_ns, || -> io::Result<()> {
            for _ in 0..TRIPS {
                self.to.write_all(&GO)?;
                self.from.read_exact(&mut [0])?;
            }
            Ok(())
        });
        result?;
        Ok(ns / f64::from(TRIPS))
    }
}

/// Sends every byte back until the pipe or `END` ends it.
fn echo(mut from: PipeReader, mut to: PipeWriter) {
    let mut byte = END;
    while from.read_exact(&mut byte).is_ok() && byte != END && to.write_all(&byte).is_ok() {}
}

struct Switches {
    clock_ns: f64,
    process: Line,
    _child: Child,
    thread: Line,
    alone: Line,
}

pub(super) fn make(place: &Place) -> io::Result<Box<dyn Probe>> {
    let (theirs, to) = pipe()?;
    let (from, back) = pipe()?;
    let child = Child::fork(move || {
        echo(theirs, back);
        0
    })?;
    let process = Line { to, from };
    let (theirs, to) = pipe()?;
    let (from, back) = pipe()?;
    std::thread::spawn(move || echo(theirs, back));
    let thread = Line { to, from };
    let (from, to) = pipe()?;
    let clock_ns = place.clock_ns;
    Ok(Box::new(Switches { clock_ns, process, _child: child, thread, alone: Line { to, from } }))
}

impl Probe for Switches {
    fn block(&mut self, into: &mut Samples) -> io::Result<()> {
        for _ in 0..3 {
            into.push(Series::RoundTripThread, self.thread.round_trips(self.clock_ns)?);
            into.push(Series::RoundTripProcess, self.process.round_trips(self.clock_ns)?);
            into.push(Series::PipeByte, self.alone.round_trips(self.clock_ns)?);
        }
        Ok(())
    }
}

impl Drop for Switches {
    fn drop(&mut self) {
        let _ = self.thread.to.write_all(&END);
    }
}
