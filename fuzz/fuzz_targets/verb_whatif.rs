//! Fuzzes `slablab::fuzz::whatif`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(slablab::fuzz::whatif(data)));
