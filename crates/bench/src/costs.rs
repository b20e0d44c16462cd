//! What a workload costs the process that it has for itself.

/// The costs of a workload that had the process for itself.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct Costs {
    /// CPU time of all threads outside the kernel, in ns.
    pub user_ns: u64,
    /// CPU time of all threads in the kernel, in ns.
    pub system_ns: u64,
    /// Page faults, of memory and of files.
    pub faults: u64,
    /// The largest resident memory during the workload, less that before it, in bytes.
    pub peak_bytes: u64,
    /// CPU time of one page fault in ns: the first write to a page of new memory, by one thread.
    pub fault_ns: f64,
}

impl Costs {
    /// CPU time of all page faults in ns, if each costs what a fault of one thread costs.
    pub fn all_faults_ns(&self) -> f64 {
        self.faults as f64 * self.fault_ns
    }
}
