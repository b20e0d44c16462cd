//! Prints a violation that debugging found to standard error, at once and without allocating.

use crate::shared::Named;
use crate::world::Native;
use slablab_native::report::Line;
use slablab_native::stack;
use slablab_platform::{Frames, Pfn, Topology};
use slablab_slabs::report::{Report, Text};
use std::fmt::Write;

/// Most bytes of a report.
const MOST: usize = 4096;

/// Prints a report, with the object's address and the names of call sites. Names come from the dynamic
/// linker, which may wait for a library that is being opened, so no lock is held meanwhile.
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
