//! How the library is linked: it stays once it is loaded. A thread's end calls it, and the kernel may look at the sequence a
//! thread was in last, long after `dlclose`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
