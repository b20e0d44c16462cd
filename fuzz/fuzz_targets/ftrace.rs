//! Fuzzes `slablab_kernel::fuzz::ftrace`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| slablab_kernel::fuzz::ftrace(data));
