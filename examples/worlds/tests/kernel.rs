//! The kernel of examples/kernel boots in QEMU, from a copy outside of the repository, and proves its claims.
//!
//! Without QEMU or the target x86_64-unknown-none this test prints a line and checks nothing. With
//! `SLABLAB_QEMU_REQUIRED`, which CI sets, it fails then.

use std::fs;
use std::path::Path;
use std::process::Command;

/// What is missing to boot the kernel.
fn lacks() -> Option<String> {
    let qemu = std::env::var("QEMU").unwrap_or("qemu-system-x86_64".into());
    if Command::new(&qemu).arg("--version").output().is_err() {
        return Some(format!("{qemu} is not installed (Debian: qemu-system-x86)"));
    }
    let asked = ["--print", "target-libdir", "--target", "x86_64-unknown-none"];
    let said = Command::new("rustc").args(asked).output().expect("rustc runs");
    let is_there = Path::new(String::from_utf8_lossy(&said.stdout).trim()).is_dir();
    (!is_there).then(|| "its target is not installed: rustup target add x86_64-unknown-none".into())
}

/// Copies the files of a folder, and those of its folders, but no build output.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("the example's folder") {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).expect("an entry");
        match path.is_dir() {
            true if name == "target" => {}
            true => copy(&path, &to.join(name)),
            false => drop(fs::copy(&path, to.join(name)).expect("a file")),
        }
    }
}

#[test]
fn the_kernel_boots_from_a_copy() {
    if let Some(missing) = lacks() {
        assert!(
            std::env::var_os("SLABLAB_QEMU_REQUIRED").is_none(),
            "SLABLAB_QEMU_REQUIRED is set: {missing}"
        );
        eprintln!("SKIPPED the_kernel_boots_from_a_copy: {missing}");
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository");
    let built = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = std::env::temp_dir().join(format!("slablab-readers-{}", std::process::id()));
    copy(&root.join("examples/kernel"), &folder);
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
    let crates = format!("path = \"{}/crates/", root.display());
    fs::write(folder.join("Cargo.toml"), manifest.replace("path = \"../../crates/", &crates))
        .expect("written");
    let done = Command::new("cargo")
        .args(["run", "--release", "--locked", "--offline", "--quiet"])
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", built.join("kernel"))
        .env_remove("RUSTFLAGS")
        .output()
        .expect("cargo runs");
    fs::remove_dir_all(&folder).expect("the copy goes");
    let (said, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{}\n{said}{errors}", done.status);
    for line in [
        "4 CPUs, ",
        "the world keeps the contract: 71 checks",
        "slub@7.1: 16384 of 16384 page frames are free",
        "slub@6.1: 16384 of 16384 page frames are free",
        "slqb: 16384 of 16384 page frames are free",
        "slab: 16384 of 16384 page frames are free",
        "Box, Vec and BTreeMap: 16384 of 16384 page frames are free",
        "all checks passed",
    ] {
        assert!(said.contains(line), "{line:?} is not in\n{said}{errors}");
    }
}
