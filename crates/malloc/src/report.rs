//! What debugging found, on standard error, as soon as it is found and without allocating.

use crate::shared::Named;
use crate::world::Native;
use slablab_native::report::Line;
use slablab_native::stack;
use slablab_platform::{Frames, Pfn, Topology};
use slablab_slabs::report::{Report, Text};
use std::fmt::Write;

/// Most bytes of a report.
const MOST: usize = 4096;

/// Prints a report. The object is told by its address, not by its place in the heap, and call sites by their
/// names, for which the dynamic linker is asked: it may have to wait for a library that is being opened, and
/// no lock is held meanwhile.
pub fn print(report: &Report) {
    let shift = Native::page_shift();
    let frame = Pfn((report.object >> shift) as u32);
    let at = Native::address(frame, report.object & ((1 << shift) - 1));
    let told = Report { object: at.addr() as u64, ..*report };
    Line::<MOST>::write_all(|lines| {
        write!(lines, "{}", Text { site: stack::write, ..Text::new(&told, Named(report.cache.0)) })?;
        for (what, user) in [("allocated", report.allocated), ("freed", report.freed)] {
            let Some(user) = user else { continue };
            for (count, call) in stack::others(user.site).enumerate() {
                let what = if count == 0 { what } else { "" };
                write!(lines, "\nINFO: {what:>9} from {call}")?;
            }
        }
        Ok(())
    });
}
