//! Fuzzes `slablab::fuzz::leak`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(slablab::fuzz::leak(data)));
