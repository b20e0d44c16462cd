//! Compiles the library that is preloaded, `preload/library.rs`, to a file that the crate contains.
//!
//! Cargo cannot make a shared library part of a program. So this script calls the compiler: the library has
//! no dependencies, and is built in some seconds. It aborts on panics and has no unwinder, so it is small
//! (about 20 KB) and needs no other library than the C library.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=preload");
    println!("cargo::rerun-if-changed=src/raw.rs");
    let file = PathBuf::from(variable("OUT_DIR")).join("libslablab-record.so");
    if let Err(why) = build(&file) {
        // A build for another machine may lack a linker. The program then says so when it is asked to record.
        println!("cargo::warning=built without the recorder of allocation calls: {why}");
        std::fs::write(&file, []).expect("cargo's folder can be written to");
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn build(file: &PathBuf) -> Result<(), String> {
    if variable("CARGO_CFG_TARGET_OS") != "linux" || variable("CARGO_CFG_TARGET_POINTER_WIDTH") != "64" {
        return Err("it is for 64-bit Linux".into());
    }
    // A program that is linked with musl records programs of glibc: those that can load a library.
    let (target, static_program) = (variable("TARGET"), variable("CARGO_CFG_TARGET_ENV") == "musl");
    let target = if static_program { target.replace("-musl", "-gnu") } else { target };
    let mut command = Command::new(variable("RUSTC"));
    command.args(["preload/library.rs", "--crate-name", "slablab_record", "--crate-type", "cdylib"]);
    command.args(["--edition", "2024", "--target", &target, "-o"]).arg(file);
    let codegen =
        ["opt-level=3", "panic=abort", "force-unwind-tables=yes", "codegen-units=1", "strip=symbols"];
    // Closed, it must stay: threads that end call into it.
    let linker = ["-Wl,-soname,libslablab-record.so", "-Wl,-z,nodelete", "-Wl,-z,defs", "-ldl", "-lc"];
    let link = linker.map(|option| format!("link-arg={option}"));
    codegen.map(String::from).iter().chain(&link).for_each(|option| {
        command.args(["-C", option]);
    });
    let linker = match static_program {
        true => {
            let name = format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_"));
            println!("cargo::rerun-if-env-changed={name}");
            variable(&name)
        }
        false => variable("RUSTC_LINKER"),
    };
    if !linker.is_empty() {
        command.args(["-C", &format!("linker={linker}")]);
    }
    let done = command.output().map_err(|error| error.to_string())?;
    match done.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&done.stderr).lines().take(20).collect::<Vec<_>>().join(" | ")),
    }
}
