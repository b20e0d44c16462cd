//! Fuzzes `slablab::fuzz::replay`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(slablab::fuzz::replay(data)));
