//! The library preloaded into programs in C and C++, the traces of their calls, and how recordings end.

mod calls;
mod chains;
mod common;
mod endings;
