//! TLBs: which pages of the kernel's direct map a CPU has used of late.
//!
//! One direct-mapped table for each CPU, made when the CPU first touches memory. The kernel maps memory by
//! large pages (2 MiB on x86), so a small heap fits, and a heap that is spread over many gigabytes does not.
//! Objects and pages alone are looked up: descriptors and per-CPU data have no address here.

use crate::hardware::Costs;
use std::cell::{Cell, OnceCell};

/// Pages of the direct map where the machine does not say.
const PAGE_BYTES: u64 = 2 << 20;

/// The TLBs of a machine's CPUs.
#[derive(Debug)]
pub(crate) struct Tlbs {
    page_shift: u32,
    /// Entries of a table less 1; `None` if a miss costs nothing.
    mask: Option<u32>,
    /// The page number plus 1 of each entry, by the low bits of the page number.
    tables: Vec<OnceCell<Box<[Cell<u32>]>>>,
    /// The page that the CPU used last, plus 1.
    last: Vec<Cell<u32>>,
}

impl Tlbs {
    pub(crate) fn new(cpus: usize, costs: &Costs) -> Tlbs {
        let page = if costs.tlb_page_bytes == 0 { PAGE_BYTES } else { costs.tlb_page_bytes };
        // A direct-mapped table of a power of two; the real ones find an entry in several places.
        let mask = (costs.tlb_miss > 0).then(|| (1u32 << costs.tlb_entries.max(1).ilog2()) - 1);
        Tlbs {
            page_shift: page.ilog2(),
            mask,
            tables: vec![OnceCell::new(); cpus],
            last: vec![Cell::new(0); cpus],
        }
    }

    /// Whether the CPU's TLB lacks the page of an address. It has the page afterwards.
    #[inline]
    pub(crate) fn misses(&self, cpu: u16, address: u64) -> bool {
        let Some(mask) = self.mask else { return false };
        let page = (address >> self.page_shift) as u32 + 1;
        if self.last[cpu as usize].replace(page) == page {
            return false;
        }
        let table =
            self.tables[cpu as usize].get_or_init(|| (0..=mask).map(|_| Cell::new(0)).collect::<Box<[_]>>());
        table[(page & mask) as usize].replace(page) != page
    }

    /// Bytes of the tables.
    pub(crate) fn bytes(&self) -> usize {
        let made = self.tables.iter().filter_map(OnceCell::get);
        made.map(|table| size_of_val(&**table)).sum::<usize>()
            + self.last.len() * (4 + size_of::<OnceCell<Box<[u32]>>>())
    }
}
