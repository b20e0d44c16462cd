//! Every frame of every zone has one holder: free, on a CPU's list, in a slab, the kernel's since boot, a
//! page's, or a page table's.
//!
//! ```text
//! boot    the kernel's: allocated before the first program
//! end     allocated = the kernel's + pages + page tables, zone by zone: every program has ended
//!         slabs, by the zones = by the caches
//! ```

use super::Memory;
use slablab_model::Timed;
use slablab_pages::Census;
use slablab_platform::Topology;
use slablab_vm::Holdings;
use std::cell::RefCell;

/// Frames of each zone that are the kernel's since boot.
#[derive(Default)]
pub(super) struct Account(RefCell<Vec<u64>>);

impl Memory {
    /// Programs begin: what is allocated is the kernel's.
    pub(super) fn open_account(&self) {
        let all = self.censuses();
        *self.account.0.borrow_mut() = all.iter().map(|census| census.allocated + census.large).collect();
    }

    fn censuses(&self) -> Vec<Census> {
        let pages = self.kernel.heap.pages();
        self.zones.iter().map(|(node, zone)| pages.zone_census(*node, *zone)).collect()
    }

    /// Every frame has one holder. All programs have ended, and hold nothing.
    pub(super) fn check_frames(&self) -> Result<(), String> {
        let censuses = self.censuses();
        let held = self.vm.with(|state| state.holdings());
        let kernel = self.account.0.borrow();
        for (at, census) in censuses.iter().enumerate() {
            let (allocated, known) = (census.allocated + census.large, kernel[at] + held[at].total());
            if allocated != known {
                let (node, name) = self.vm.with(|state| (state.zones[at].node, state.zones[at].name));
                let holders = holders(census, kernel[at], &held[at]);
                let what = match allocated.checked_sub(known) {
                    Some(lost) => format!("{lost} allocated frames have no holder"),
                    None => format!("{} frames have a holder and are free", known - allocated),
                };
                return Err(format!("zone {name} of node {node}: {what}, of {}: {holders}", census.total()));
            }
        }
        let (in_zones, in_caches) = (
            censuses.iter().map(|census| census.slab).sum::<u64>(),
            self.kernel.heap.slab_bytes() >> Timed::page_shift(),
        );
        let agree = in_zones == in_caches;
        agree.then_some(()).ok_or_else(|| format!("{in_zones} frames are slabs, the caches have {in_caches}"))
    }
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
