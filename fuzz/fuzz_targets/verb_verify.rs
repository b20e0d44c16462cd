//! Fuzzes `slablab::fuzz::verify`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(slablab::fuzz::verify(data)));
