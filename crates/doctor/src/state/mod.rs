//! What slab memory looks like on a machine: a dump, or less than one, as one list of caches.
//!
//! ```text
//! read                  any input: live machine, directory, tar, support bundle, text, bare slabinfo
//!   folder              a directory, or `/`: only the wanted files, sysfs in parallel
//!   Dump                the kernel's files as values (slablab_readers)
//!   join                rows of /proc/slabinfo with directories of /sys/kernel/slab
//!   sane                refuses numbers that no machine has
//!   pasted              a text with tables of caches in it: what it lacks, what was inferred
//!   holders             what processes, files and users hold, on the running machine
//!   owners              memory cgroups and containers there
//!   missing             what could not be read, and the command that would make it readable
//!   State               caches, and the machine they are on
//! save                  the live machine's files as a tar, for another day or another machine
//! package               the file of a recording: such tars of before and after it, and the events
//! ```
//!
//! Totals come from /proc/slabinfo where there is one: a walk through sysfs allocates slabs itself, and is
//! read later. Sizes without padding, node lists and CPU slabs come from sysfs, and are `None` without it.
//!
//! The reading of the running machine is the only one that looks at a clock.

#[cfg(unix)]
mod archive;
mod folder;
mod holders;
mod input;
mod join;
mod machine;
mod missing;
mod one;
mod owners;
#[cfg(unix)]
mod package;
mod pasted;
mod read;
mod sane;
#[cfg(unix)]
mod save;

pub use folder::{read as read_folder, reads};
pub use input::{Input, page_size};
pub use join::{Joined, join};
pub use machine::{Cache, Missing, State};
pub use missing::COLLECT;
pub use one::one_cache;
pub use owners::live_cgroups;
#[cfg(unix)]
pub use package::{
    ABOUT, AFTER, BEFORE, END, END_SLABS, KALLSYMS, PERF_DATA, Package, START, START_SLABS, TRACE_DAT,
};
pub use read::{read, read_at};
#[cfg(unix)]
pub use save::{dump, save};
pub use slablab_readers::recording::Moment;
