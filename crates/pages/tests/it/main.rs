//! The page allocator's tests: one world, one file per part of the theory.

mod buddy;
mod watermarks;
mod world;
mod zonelists;
