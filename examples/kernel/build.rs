//! Tells the linker where the parts of the kernel lie in memory.

fn main() {
    println!("cargo::rerun-if-changed=kernel.ld");
    println!("cargo::rustc-link-arg-bins=-T{}/kernel.ld", std::env::var("CARGO_MANIFEST_DIR").unwrap());
    println!("cargo::rustc-link-arg-bins=--no-pie");
}
