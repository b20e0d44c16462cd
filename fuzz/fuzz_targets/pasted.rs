//! Fuzzes `slablab_readers::fuzz::pasted`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| slablab_readers::fuzz::pasted(data));
