//! What a thread may use now: its area, which a hot operation hides, and its slot.

use crate::area::{self, Area, CREDITS, IN_USE};
use crate::{local, memory, per_cpu, system, topology};
use slablab_platform::CpuId;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// This thread's area, or a refusing one.
#[inline(always)]
pub(crate) fn area() -> &'static Area {
    local::area()
}

/// A hot operation of this thread. A signal handler that interrupts it finds a refusing area in place of the
/// thread's, so no hot operation tests for that. A handler that runs before the area is hidden has returned
/// when it is.
pub(crate) struct Hidden {
    area: &'static Area,
}

impl Hidden {
    #[inline(always)]
    pub(crate) fn new() -> Hidden {
        Hidden::of(local::area())
    }

    /// Hides the thread's own area, which it has until it ends.
    #[inline(always)]
    pub(crate) fn of(area: &'static Area) -> Hidden {
        local::set_area(&IN_USE);
        Hidden { area }
    }

    /// The area that is hidden.
    #[inline(always)]
    pub(crate) fn area(&self) -> &'static Area {
        self.area
    }
}

impl Drop for Hidden {
    #[inline(always)]
    fn drop(&mut self) {
        local::set_area(self.area);
    }
}

/// Whether this is a signal handler that interrupted its thread's hot operation.
#[inline]
pub(crate) fn is_hidden() -> bool {
    ptr::eq(area(), &IN_USE)
}

/// Whether this thread has an area, and this is not a signal handler that runs while the area is hidden.
pub(crate) fn has_area() -> bool {
    !ptr::eq(area(), &area::REFUSING) && !is_hidden()
}

/// The slot that this code may use: this thread's, or that of the CPU it runs on, from which it may be moved
/// at any time. Number 0 if there is none.
#[inline]
pub(crate) fn slot() -> CpuId {
    match area().header.slot.load(Relaxed) {
        0 => per_cpu::cpu().unwrap_or(CpuId(0)),
        slot => CpuId(slot),
    }
}

/// Whether this thread's own area refused a pop for want of credit.
pub(crate) fn is_credit_spent() -> bool {
    area::credit(self::area()).load(Relaxed) < 0
}

/// Renews the credit of a slot that has none: a CPU's, or this thread's own.
pub(crate) fn give_credit(slot: CpuId) {
    let area = area::of(slot);
    if (per_cpu::on() || ptr::eq(area, self::area())) && area::credit(area).load(Relaxed) <= 0 {
        renew(area);
    }
}

/// The credit that a slot gets from now on.
static RENEWED: AtomicI32 = AtomicI32::new(CREDITS);

fn renew(area: &'static Area) {
    let pops = RENEWED.load(Relaxed);
    area.header.granted.store(pops, Relaxed);
    area::credit(area).store(pops, Relaxed);
}

/// Sets the credit that slots get from now on: `pops`, or the usual one.
pub(crate) fn set_credit(pops: Option<u16>) {
    let pops = pops.map_or(CREDITS, i32::from);
    if RENEWED.load(Relaxed) != pops {
        RENEWED.store(pops, Relaxed);
    }
}

/// If this thread's own area refused a pop for want of credit: renews the credit, and returns how many pops
/// there were since it was renewed last, the refused one with them.
pub(crate) fn take_spent() -> Option<u32> {
    let area = self::area();
    if per_cpu::on() || area::credit(area).load(Relaxed) >= 0 {
        return None;
    }
    let pops = area.header.granted.load(Relaxed) + 1;
    renew(area);
    Some(pops as u32)
}

/// Gives a slot to this thread: writes the header of its area.
pub(crate) fn name(slot: CpuId) {
    let header = &area::of(slot).header;
    header.slot.store(slot.0, Relaxed);
    header.node.store(topology::node_of_cpu(system::cpu_of_machine()), Relaxed);
    memory::set_local_pagemap(topology::memory_node(header.node.load(Relaxed)), &header.pagemap);
    header.secret.set(memory::object_secret());
    area::use_slot(slot);
}
