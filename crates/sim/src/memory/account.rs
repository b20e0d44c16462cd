//! Every frame of every zone has one holder: free, on a CPU's list, in a slab, the kernel's since boot, a
//! page's, or a page table's.
//!
//! ```text
//! boot    the kernel's: allocated before the first program
//! end     allocated = the kernel's + pages + page tables, zone by zone: every program has ended
//!         slabs, by the zones = by the caches
//! ```

use crate::kernel::Kernel;
use slablab_model::Timed;
use slablab_pages::Census;
use slablab_platform::{NodeId, Topology};
use slablab_vm::{Holdings, Vm};
use std::cell::RefCell;

/// Frames of each zone that are the kernel's since boot.
#[derive(Default)]
pub(super) struct Account(RefCell<Vec<u64>>);

impl Account {
    /// Programs begin: what is allocated is the kernel's.
    pub(super) fn open(&self, kernel: &Kernel, zones: &[(NodeId, u8)]) {
        let all = censuses(kernel, zones);
        *self.0.borrow_mut() = all.iter().map(|census| census.allocated + census.large).collect();
    }

    /// Every frame has one holder. All programs have ended, and hold nothing.
    pub(super) fn check(&self, kernel: &Kernel, zones: &[(NodeId, u8)], vm: &Vm) -> Result<(), String> {
        let censuses = censuses(kernel, zones);
        let held = vm.with(|state| state.holdings());
        let of_kernel = self.0.borrow();
        for (at, census) in censuses.iter().enumerate() {
            let (allocated, known) = (census.allocated + census.large, of_kernel[at] + held[at].total());
            if allocated != known {
                let (node, name) = vm.with(|state| (state.zones[at].node, state.zones[at].name));
                let holders = holders(census, of_kernel[at], &held[at]);
                let what = match allocated.checked_sub(known) {
                    Some(lost) => format!("{lost} allocated frames have no holder"),
                    None => format!("{} frames have a holder and are free", known - allocated),
                };
                return Err(format!("zone {name} of node {node}: {what}, of {}: {holders}", census.total()));
            }
        }
        let (in_zones, in_caches) = (
            censuses.iter().map(|census| census.slab).sum::<u64>(),
            kernel.heap.slab_bytes() >> Timed::page_shift(),
        );
        let agree = in_zones == in_caches;
        agree.then_some(()).ok_or_else(|| format!("{in_zones} frames are slabs, the caches have {in_caches}"))
    }
}

fn censuses(kernel: &Kernel, zones: &[(NodeId, u8)]) -> Vec<Census> {
    let pages = kernel.heap.pages();
    zones.iter().map(|(node, zone)| pages.zone_census(*node, *zone)).collect()
}

/// Who holds the frames of a zone.
fn holders(census: &Census, kernel: u64, held: &Holdings) -> String {
    let Holdings { anon, file, tmpfs, buffers, tables, listed } = held;
    format!(
        "free {}, on lists of CPUs {}, slabs {}, the kernel's since boot {kernel}, anonymous {anon}, files {file}, \
         tmpfs {tmpfs}, block devices {buffers} ({listed} of these on lists of reclaim), page tables {tables}",
        census.untouched + census.buddy,
        census.pcp,
        census.slab,
    )
}
