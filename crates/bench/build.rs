//! Passes the cargo profile to the library. Cargo does not pass the profile's name; only the build folder
//! contains it.

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // OUT_DIR is TARGET/PROFILE/build/PACKAGE-HASH/out.
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let profile = Path::new(&out).ancestors().nth(3).and_then(Path::file_name).and_then(|name| name.to_str());
    println!("cargo:rustc-env=SLABLAB_BENCH_PROFILE={}", profile.unwrap_or("unknown"));
}
