//! Fuzzes `slablab::fuzz::top`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(slablab::fuzz::top(data)));
