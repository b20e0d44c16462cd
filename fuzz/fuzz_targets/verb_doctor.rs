//! Fuzzes `slablab::fuzz::doctor`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(slablab::fuzz::doctor(data)));
