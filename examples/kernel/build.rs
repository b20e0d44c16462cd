//! Tells the linker where the parts of the kernel lie in memory: `kernel.ld` beside this file.

use std::path::Path;

fn main() {
    let script = Path::new(file!()).with_file_name("kernel.ld").canonicalize().expect("kernel.ld is there");
    println!("cargo::rerun-if-changed={}", script.display());
    println!("cargo::rustc-link-arg-bins=-T{}", script.display());
    println!("cargo::rustc-link-arg-bins=--no-pie");
}
