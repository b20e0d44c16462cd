//! Fuzzes `slablab::fuzz::fleet`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(slablab::fuzz::fleet(data)));
