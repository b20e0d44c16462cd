//! The slab allocator of a user's kernel tree, unchanged, outside the kernel.
//!
//! | module | what |
//! |---|---|
//! | [`engine`] | the allocator as an engine: its caches on a modelled machine |
//! | `image` | an image in the process: loaded, booted, called |
//! | [`history`] | the commits of a tree, and patches on them: each is built |
//! | [`build`](mod@build) | a kernel tree to an image: the tree's own kbuild, the shim, the link; the builds that are kept |

pub mod build;
pub mod history;
// An image is code of this host's architecture, and shim and loader know one.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod engine;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod image;

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
