//! Files of the simulated kernel, without the page cache ([`crate::memory`]).
//!
//! | module | contents |
//! |---|---|
//! | [`files`] | paths, open files |
//! | [`ext2`] | where ext2 puts files: groups, inodes, blocks |

pub mod ext2;
pub mod files;
