//! Fuzzes `slablab::fuzz::pressure::run`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(slablab::fuzz::pressure::run(data)));
