//! Fuzzes `slablab::fuzz::run`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(slablab::fuzz::run(data)));
