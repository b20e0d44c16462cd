//! The program `slablab`: words in, tables out, exit codes.
fn main() {}
