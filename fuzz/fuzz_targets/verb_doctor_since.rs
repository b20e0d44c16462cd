//! Fuzzes `slablab::fuzz::doctor_since`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(slablab::fuzz::doctor_since(data)));
