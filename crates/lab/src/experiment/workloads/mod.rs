//! The workloads, each in a file of its name, and what those on the simulated kernel share.

mod hackbench;
mod kernel;
mod micro;
mod netperf;
mod ublk;

use super::workload::Workload;

/// All workloads.
pub const WORKLOADS: &[&Workload] = &[&hackbench::HACKBENCH, &micro::MICRO, &netperf::NETPERF, &ublk::UBLK];

/// The workload of this name.
pub fn find(name: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().copied().find(|workload| workload.name == name)
}
