//! How the shared library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Threads that end and processes that fork call into it, and memory it gave is in use: closed, it must stay.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
