//! The workloads: programs of the simulated kernel, by their names.

use super::workload::Workload;
use slablab_sim::programs::aim7::Aim7;
use slablab_sim::programs::aim9::Aim9;
use slablab_sim::programs::desktop::apps::Apps;
use slablab_sim::programs::desktop::make::Make;
use slablab_sim::programs::desktop::server::Server;
use slablab_sim::programs::desktop::streams::Streams;
use slablab_sim::programs::hackbench::Hackbench;
use slablab_sim::programs::kbuild::Kbuild;
use slablab_sim::programs::mappings::{Brk1, Mmap1, PageFault1};
use slablab_sim::programs::micro::Micro;
use slablab_sim::programs::mkfs::Mkfs;
use slablab_sim::programs::modules::{KfreeRcu, Vmalloc};
use slablab_sim::programs::netio::Netio;
use slablab_sim::programs::netperf::Netperf;
use slablab_sim::programs::oltp::Oltp;
use slablab_sim::programs::open_close::OpenClose;
use slablab_sim::programs::recording::Recording;
use slablab_sim::programs::tbench::Tbench;
use slablab_sim::programs::tmpfs_swap::TmpfsSwap;
use slablab_sim::programs::ublk::Ublk;
use slablab_sim::programs::ycsb::Ycsb;

/// All workloads.
pub const WORKLOADS: &[&Workload] = &[
    &Workload::of::<Aim7>(),
    &Workload::of::<Aim9>(),
    &Workload::of::<Apps>(),
    &Workload::of::<Brk1>(),
    &Workload::of::<Hackbench>(),
    &Workload::of::<Kbuild>(),
    &Workload::of::<KfreeRcu>(),
    &Workload::of::<Make>(),
    &Workload::of::<Micro>(),
    &Workload::of::<Mkfs>(),
    &Workload::of::<Mmap1>(),
    &Workload::of::<Server>(),
    &Workload::of::<Netio>(),
    &Workload::of::<Netperf>(),
    &Workload::of::<Oltp>(),
    &Workload::of::<OpenClose>(),
    &Workload::of::<PageFault1>(),
    &Workload::of::<Recording>(),
    &Workload::of::<Streams>(),
    &Workload::of::<Tbench>(),
    &Workload::of::<TmpfsSwap>(),
    &Workload::of::<Ublk>(),
    &Workload::of::<Vmalloc>(),
    &Workload::of::<Ycsb>(),
];

/// The workload of this name.
pub fn find(name: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().copied().find(|workload| workload.name == name)
}
