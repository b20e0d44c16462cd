//! Fuzzes `slablab::fuzz::what_data`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(slablab::fuzz::what_data(data)));
