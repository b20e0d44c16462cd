//! The contract as checks that every world must pass.
