//! Fuzzes `slablab_readers::fuzz::slabs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| slablab_readers::fuzz::slabs(data));
