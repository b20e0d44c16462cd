//! What all heaps and object caches hold, in slabinfo's columns.

use super::tenants;
use crate::world::Native;
use slablab_native::report::Line;
use slablab_native::system;
use slablab_slabs::{Geometry, Usage};
use std::fmt;

/// Prints every cache on standard error, in slabinfo's columns.
pub(crate) fn print(engine: &dyn fmt::Display) {
    Line::say(format_args!(
        "{engine}, {}, {} slots used, pages of {} bytes{}",
        Native::slots(),
        Native::slots_used(),
        system::page_size(),
        if Native::has_huge_pages() { ", huge pages" } else { "" },
    ));
    Line::print(format_args!(
        "# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : slabdata <active_slabs> <num_slabs>"
    ));
    tenants::each(|tenant| tenant.each_cache(&mut print_cache));
}

/// Prints a cache in slabinfo's columns, unless it is empty.
fn print_cache(name: fmt::Arguments<'_>, usage: &Usage, geometry: &Geometry) {
    if usage.slabs > 0 {
        Line::columns(
            name,
            17,
            format_args!(
                "{:>8} {:>8} {:>8} {:>4} {:>4} : slabdata {:>8} {:>8}",
                usage.live_objects(),
                usage.total_objects,
                geometry.size,
                geometry.objects,
                1u32 << geometry.order,
                usage.slabs,
                usage.slabs,
            ),
        );
    }
}
