//! The library that is preloaded, and the variables of the environment that it reads.

/// The file to preload; empty if this crate was built without a linker for its target.
pub static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libslablab-record.so"));

/// Its name.
pub(crate) const LIBRARY_NAME: &str = "libslablab-record.so";

/// The variable of the environment that names the folder of a recording.
pub const FOLDER: &str = "SLABLAB_RECORD";

/// The variable of the environment with the largest size of a process's file, in bytes.
pub const LIMIT: &str = "SLABLAB_RECORD_LIMIT";

/// The variable of the environment with the bytes in each of which about one allocation has its call chain
/// recorded. 1: every allocation has.
pub const SAMPLE: &str = "SLABLAB_RECORD_SAMPLE";

/// The variable of the environment that names the folder for counts of processes that cannot write.
pub const COUNTS: &str = "SLABLAB_RECORD_COUNTS";

/// The variable of the environment with the number of a descriptor of the folder of a recording, which
/// programs of root inherit.
pub const DESCRIPTOR: &str = "SLABLAB_RECORD_DESCRIPTOR";
