//! The workloads, each in a file of its name, and what those on the simulated kernel share.

mod aim7;
mod aim9;
mod apps;
mod brk1;
mod desktop;
mod kbuild;
mod kernel;
mod make_music;
mod micro;
mod mmap1;
mod netatalk;
mod netperf;
mod oltp;
mod open_close;
mod page_fault1;
mod recording;
mod repeat;
mod streaming;
mod tbench;
mod tcp;
mod tmpfs_swap;
mod ublk;

pub(crate) use desktop::with_kernel_of;

use super::workload::Workload;
use slablab_sim::programs::hackbench::Hackbench;
use slablab_sim::programs::mkfs::Mkfs;
use slablab_sim::programs::netio::Netio;

/// All workloads.
pub const WORKLOADS: &[&Workload] = &[
    &aim7::AIM7,
    &aim9::AIM9,
    &apps::APPS,
    &brk1::BRK1,
    &Workload::of::<Hackbench>(),
    &kbuild::KBUILD,
    &make_music::MAKE_MUSIC,
    &micro::MICRO,
    &Workload::of::<Mkfs>(),
    &mmap1::MMAP1,
    &netatalk::NETATALK,
    &Workload::of::<Netio>(),
    &netperf::NETPERF,
    &oltp::OLTP,
    &open_close::OPEN_CLOSE,
    &page_fault1::PAGE_FAULT1,
    &recording::RECORDING,
    &streaming::STREAMING,
    &tbench::TBENCH,
    &tmpfs_swap::TMPFS_SWAP,
    &ublk::UBLK,
];

/// The workload of this name.
pub fn find(name: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().copied().find(|workload| workload.name == name)
}
