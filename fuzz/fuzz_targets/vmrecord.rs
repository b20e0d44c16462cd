//! Fuzzes `slablab_kernel::fuzz::vmrecord`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| slablab_kernel::fuzz::vmrecord(data));
