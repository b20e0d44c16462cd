//! Many dumps: what all machines have together, which ones stand out, what grows everywhere, and what one
//! change would save over all.
//!
//! ```text
//! dumps               files and folders become the paths of dumps
//! read                each dump becomes a Machine and is let go: memory grows by kilobytes for each
//!   part, whole       the same by several processes, and what joins it
//!   Machine           the sums of a dump, and what changes would save on it
//! Fleet               the machines, their earlier dumps, dumps that cannot be read
//!   sums              all machines, and each group of them
//!   outliers          machines whose caches are far from those of their group
//!   climbing          caches that grow on nearly all machines with two dumps or more
//! ```

mod climbing;
mod dumps;
mod machine;
mod outliers;
mod read;
mod sums;

pub use climbing::{Climbing, climbing};
pub use dumps::dumps;
pub use machine::{By, Machine, Names, Saved};
pub use outliers::{Outlier, outliers};
pub use read::{Fleet, Part, Unread, part, read, whole};
pub use sums::{CacheSum, Group, caches, groups, saved};
