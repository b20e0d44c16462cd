//! Fuzzes `slablab::fuzz::show`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(slablab::fuzz::show(data)));
