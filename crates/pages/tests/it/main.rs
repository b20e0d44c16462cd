//! The page allocator's tests: one world, one file per part of the theory.

mod buddy;
mod era24;
mod pcp;
mod programs;
mod report_free;
mod slow;
mod watermarks;
mod world;
mod zonelists;
