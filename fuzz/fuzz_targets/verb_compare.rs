//! Fuzzes `slablab::fuzz::compare`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(slablab::fuzz::compare(data)));
