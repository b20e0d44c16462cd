//! What debugging found, on standard error, as soon as it is found and without allocating.

use crate::process::Named;
use crate::report::Line;
use slablab_native::{Native, Sleep, stack};
use slablab_platform::{Pfn, Platform};
use slablab_slabs::wrap::{Report, Text};

/// Reports come one after another.
static PRINTING: Sleep<()> = Sleep::new(());

/// Prints a report. The object is told by its address, not by its place in the heap, and call sites by their names.
pub fn print(report: &Report) {
    let shift = Native::page_shift();
    let frame = Pfn((report.object >> shift) as u32);
    let at = Native::address(frame, report.object & ((1 << shift) - 1));
    let told = Report { object: at.addr() as u64, ..*report };
    let _one = PRINTING.lock();
    Line::print(format_args!("{}", Text { site: stack::write, ..Text::new(&told, Named(report.cache.0)) }));
    for (what, user) in [("allocated", report.allocated), ("freed", report.freed)] {
        let Some(user) = user else { continue };
        for (count, call) in stack::others(user.site).enumerate() {
            let what = if count == 0 { what } else { "" };
            Line::print(format_args!("INFO: {what:>9} from {call}"));
        }
    }
}
