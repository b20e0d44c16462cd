//! Fuzzes `slablab_workloads::script::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| slablab_workloads::script::fuzz(data));
