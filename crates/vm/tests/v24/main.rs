//! The policies of 2.4, rule by rule, on a host that does what the test says.

mod ages;
mod columns;
mod launder;
mod mixes;
mod room;
mod touches;
mod two_lists;
mod walk;
mod wanted;
