//! Records of memory pressure: what a kernel, or a model of it, did in each phase of a script of page
//! accesses. docs/pressure.md has the format.
//!
//! ```text
//! archive ── texts by path ── Record::parse ── Phase ── counters, residency maps, sections of text
//!                             Record::write ──┘
//! ```
//!
//! A record is one process's: its faults and its anonymous memory are its own, while /proc/vmstat, the disks
//! and the sections are the whole machine's. A record that was read and is written again has the same bytes,
//! if the recording program wrote it.

mod archive;
mod read;
mod residency;
mod sections;
mod write;

pub use archive::{TEXTS_MOST, texts};
pub use residency::{Residency, ResidencyError, State};
pub use sections::{Generation, Section};

/// What one process recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Its phases in the order in which they ended.
    pub phases: Vec<Phase>,
    /// Notes after the last phase, each a line that begins with `note`.
    pub notes: Vec<String>,
    /// Whether the process reached the end of its script. A process that the kernel killed did not.
    pub is_complete: bool,
}

/// One phase. Counts are of this phase alone unless they say otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phase {
    /// The label of the script's `phase` line.
    pub name: String,
    /// Lines that begin with `note`, written during the phase.
    pub notes: Vec<String>,
    /// From its begin to its end.
    pub elapsed_ns: u64,
    /// The clock at its end.
    pub uptime_ns: u64,
    /// The process's use of resources.
    pub rusage: Rusage,
    /// Results of commands.
    pub counts: Counts,
    /// The objects that were accessed.
    pub objects: Vec<ObjectCounts>,
    /// The pages of each mapped object at the phase's end.
    pub residency: Vec<ObjectResidency>,
    /// Block devices: `vda` has the files, `swap` the swap.
    pub disks: Vec<Disk>,
    /// /proc/vmstat in the kernel's order. Counters that are and were zero are left out.
    pub vmstat: Vec<Counter>,
    /// Other files of /proc at the phase's end.
    pub sections: Vec<Section>,
}

/// The differences of getrusage(2) over a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // The names of getrusage(2).
pub struct Rusage {
    pub minflt: i64,
    pub majflt: i64,
    /// Blocks of 512 bytes that the process had read: system calls, faults, read-ahead, swap-ins.
    pub inblock: i64,
    /// Blocks of 512 bytes that the process had written.
    pub oublock: i64,
    pub utime_us: i64,
    pub stime_us: i64,
    pub nvcsw: i64,
    pub nivcsw: i64,
}

/// Results of the commands `msg`, `pipes`, `stat` and of system calls on files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages, pipes and lookups that succeeded.
    pub ok: u64,
    /// Those that failed, and reads and writes of files that failed.
    pub fail: u64,
    /// Lookups.
    pub stats: u64,
}

/// What happened while one object was accessed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectCounts {
    /// The object.
    pub name: String,
    /// Accesses.
    pub ops: u64,
    /// Minor faults of the process.
    pub minflt: u64,
    /// Major faults of the process.
    pub majflt: u64,
    /// Blocks of 512 bytes that the process had read.
    pub inblock: u64,
    /// Time.
    pub ns: u64,
}

/// The pages of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectResidency {
    /// The object.
    pub name: String,
    /// Its pages.
    pub pages: Residency,
}

/// The fields of /sys/block/NAME/stat: differences over the phase; field 8, requests in flight, as it was at
/// the phase's end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// `vda` or `swap`.
    pub name: String,
    /// The fields.
    pub stat: [i64; Disk::FIELDS],
}

impl Disk {
    /// Fields of a disk.
    pub const FIELDS: usize = 17;

    /// Read requests.
    pub fn reads(&self) -> i64 {
        self.stat[0]
    }

    /// Sectors of 512 bytes that were read.
    pub fn sectors_read(&self) -> i64 {
        self.stat[2]
    }

    /// Write requests.
    pub fn writes(&self) -> i64 {
        self.stat[4]
    }

    /// Sectors of 512 bytes that were written.
    pub fn sectors_written(&self) -> i64 {
        self.stat[6]
    }
}

/// One line of /proc/vmstat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// Its difference over the phase.
    pub delta: i64,
    /// Its value at the phase's end.
    pub value: i64,
}

impl Record {
    /// The first phase called `name`.
    pub fn phase(&self, name: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.name == name)
    }
}

impl Phase {
    /// The difference of a counter of /proc/vmstat; 0 if it is not there, as the counter is and was zero.
    pub fn delta(&self, counter: &str) -> i64 {
        self.counter(counter).map_or(0, |counter| counter.delta)
    }

    /// The value of a counter of /proc/vmstat at the phase's end; 0 if it is not there.
    pub fn value(&self, counter: &str) -> i64 {
        self.counter(counter).map_or(0, |counter| counter.value)
    }

    fn counter(&self, name: &str) -> Option<&Counter> {
        self.vmstat.iter().find(|counter| counter.name == name)
    }

    /// The device called `name`.
    pub fn disk(&self, name: &str) -> Option<&Disk> {
        self.disks.iter().find(|disk| disk.name == name)
    }

    /// The pages of the object called `name`.
    pub fn residency(&self, name: &str) -> Option<&Residency> {
        self.residency.iter().find(|object| object.name == name).map(|object| &object.pages)
    }

    /// The section called `name`.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }
}
