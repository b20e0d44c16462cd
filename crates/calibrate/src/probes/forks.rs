//! Fork and exit, by a server process: the measuring process has memory that would make its own forks slow.

use super::{Place, Probe};
use crate::raw::{Child, SharedPages};
use crate::series::{Samples, Series};
use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::time::Instant;

const FORKS: usize = 8;

struct Forks {
    to: PipeWriter,
    from: PipeReader,
    _server: Child,
}

pub(super) fn make(_place: &Place) -> io::Result<Box<dyn Probe>> {
    let (mut theirs, to) = pipe()?;
    let (from, mut back) = pipe()?;
    let server = Child::fork(move || i32::from(serve(&mut theirs, &mut back).is_err()))?;
    Ok(Box::new(Forks { to, from, _server: server }))
}

/// For each byte forks a child and answers with the ns of the fork and of the exit; 0 for a fork that the
/// child interrupted, because both run on one CPU.
fn serve(from: &mut PipeReader, to: &mut PipeWriter) -> io::Result<()> {
    let shared = SharedPages::new(4096)?;
    let start = Instant::now();
    let now = || start.elapsed().as_nanos() as u64;
    let word = |at: usize| -> &AtomicU64 { &shared.words()[at] };
    loop {
        from.read_exact(&mut [0])?;
        let before = now();
        let child = Child::fork(|| {
            word(0).store(now(), Release);
            word(8).store(now(), Release);
            0
        })?;
        let forked = now();
        child.wait()?;
        let ended = now();
        let fork = if word(0).load(Acquire) >= forked { forked - before } else { 0 };
        let exit = ended - word(8).load(Acquire);
        to.write_all(&[fork.to_ne_bytes(), exit.to_ne_bytes()].concat())?;
    }
}

impl Probe for Forks {
    fn block(&mut self, into: &mut Samples) -> io::Result<()> {
        for _ in 0..FORKS {
            self.to.write_all(&[1])?;
            for series in [Series::Fork, Series::Exit] {
                let mut bytes = [0; 8];
                self.from.read_exact(&mut bytes)?;
                into.push(series, u64::from_ne_bytes(bytes) as f64);
            }
        }
        Ok(())
    }
}
