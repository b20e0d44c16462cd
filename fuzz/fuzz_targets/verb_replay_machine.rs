//! Fuzzes `slablab::fuzz::replay_machine`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(slablab::fuzz::replay_machine(data)));
