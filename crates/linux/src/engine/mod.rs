//! A tree's allocator as an engine: caches of an image, in any world.
//!
//! | module | what |
//! |---|---|
//! | `policy` | the tree, and its boot parameters as knobs |
//! | `attributes` | what is set of single caches, by their names |
//! | `books` | what is kept of SLAB and SLOB |
//! | `shared` | the image of a machine: made once for all its caches, and whose blocks are whose |
//! | `cache` | [`Linux`]: a cache; what the image asks of the world while a call of it runs |
//! | `layout` | caches are made in an image |
//! | `files` | what the tree's files in sysfs say of a cache |
//! | `classic` | SLAB and SLOB: what they have and SLUB has not |
//! | `contract` | what an engine does |
//! | `locks` | its locks as locks of the world |
//! | `costs` | what its code reports, charged; what each function cost |
//! | `memory` | what a check needs: the bytes of objects, the frames that the tree keeps |
//! | `seed` | slabs as an earlier life would have left them |

mod attributes;
mod books;
mod cache;
mod classic;
mod contract;
mod costs;
mod files;
mod layout;
mod locks;
mod memory;
mod policy;
mod seed;
mod shared;

pub use attributes::Attributes;
pub use cache::Linux;
pub use contract::LinuxFamily;
pub use policy::{LinuxPolicy, Tree};
