//! Fuzzes `slablab::fuzz::import`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(slablab::fuzz::import(data)));
