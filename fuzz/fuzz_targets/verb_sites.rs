//! Fuzzes `slablab::fuzz::sites`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(slablab::fuzz::sites(data)));
