//! Experiments: import, replay, verify, and their tables
