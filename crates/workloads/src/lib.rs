//! The trace format of slablab
