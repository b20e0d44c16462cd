//! Fuzzes `slablab::fuzz::explain`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(slablab::fuzz::explain(data)));
