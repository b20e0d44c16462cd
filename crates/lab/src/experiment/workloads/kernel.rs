//! What programs on the simulated kernel measure alike.

pub(super) use slablab_sim::programs::measures::*;
