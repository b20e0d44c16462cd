//! The workloads, each in a file of its name, and what those on the simulated kernel share.

mod brk1;
mod hackbench;
mod kernel;
mod micro;
mod mmap1;
mod netperf;
mod page_fault1;
mod repeat;
mod ublk;

use super::workload::Workload;

/// All workloads.
pub const WORKLOADS: &[&Workload] = &[
    &brk1::BRK1,
    &hackbench::HACKBENCH,
    &micro::MICRO,
    &mmap1::MMAP1,
    &netperf::NETPERF,
    &page_fault1::PAGE_FAULT1,
    &ublk::UBLK,
];

/// The workload of this name.
pub fn find(name: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().copied().find(|workload| workload.name == name)
}
