//! What programs over TCP have in common.

pub(super) use slablab_sim::programs::tcp_measures::*;
