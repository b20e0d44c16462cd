//! Fuzzes `slablab_readers::fuzz::sysfs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| slablab_readers::fuzz::sysfs(data));
