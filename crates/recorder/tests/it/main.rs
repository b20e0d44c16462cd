//! The library preloaded into programs in C and C++, and the traces of their calls.

mod calls;
