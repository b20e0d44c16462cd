//! Fuzzes `slablab::fuzz::pressure::judge`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(slablab::fuzz::pressure::judge(data)));
