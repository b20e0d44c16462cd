//! Fuzzes `slablab::fuzz::what`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(slablab::fuzz::what(data)));
