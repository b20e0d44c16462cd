//! Fuzzes `slablab_kernel::fuzz::pasted`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| slablab_kernel::fuzz::pasted(data));
