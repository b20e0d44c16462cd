//! What debugging found, on standard error, as soon as it is found and without allocating.

use crate::process::Named;
use crate::report::Line;
use slablab_native::Native;
use slablab_platform::{Pfn, Platform};
use slablab_slabs::wrap::{Report, Text};

/// Prints a report. The object is told by its address, not by its place in the heap.
pub fn print(report: &Report) {
    let shift = Native::page_shift();
    let frame = Pfn((report.object >> shift) as u32);
    let at = Native::address(frame, report.object & ((1 << shift) - 1));
    let told = Report { object: at.addr() as u64, ..*report };
    Line::print(format_args!("{}", Text::new(&told, Named(report.cache.0))));
}
