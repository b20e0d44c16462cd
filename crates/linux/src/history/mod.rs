//! The commits of a kernel tree, each of which can be built.
//!
//! ```text
//! user's repository ── git ── repository: the commits of a range, a patch on a commit
//!   (is only read)                │
//!                              checkout: one tree in the cache, moved from commit to commit ── build
//! ```
//!
//! A commit is written over the one before: git says which files differ, so the others stay as old as they
//! are and kbuild makes little. Of a tree only what its build can read is written ([`is_needed`]): a quarter
//! of it.
//!
//! Nothing of the user's repository changes: index, objects that are new, and files are in the cache.

mod checkout;
mod git;
mod needs;
mod repository;

pub use checkout::{Checkout, Made, Way};
pub use needs::is_needed;
pub use repository::{Commit, Range, Repository, short};
