//! How the shared library is linked: the name under which programs look for it when they start, and that it
//! stays.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libslablab.so.0");
    // Threads that end and processes that fork call into it, and memory it gave is in use: closed, it must
    // stay.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
