//! Fuzzes `slablab::fuzz::map`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(slablab::fuzz::map(data)));
