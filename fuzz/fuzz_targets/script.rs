//! Fuzzes `slablab_trace::script::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| slablab_trace::script::fuzz(data));
