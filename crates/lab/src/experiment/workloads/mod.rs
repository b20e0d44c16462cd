//! The workloads, each in a file of its name.

mod hackbench;
mod micro;
mod netperf;
mod ublk;

use super::workload::Workload;

/// All workloads.
pub const WORKLOADS: &[&dyn Workload] =
    &[&hackbench::Hackbench, &micro::Micro, &netperf::Netperf, &ublk::Ublk];

/// The workload of this name.
pub fn find(name: &str) -> Option<&'static dyn Workload> {
    WORKLOADS.iter().copied().find(|workload| workload.name() == name)
}
