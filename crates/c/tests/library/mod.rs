//! The library as cargo builds it. Cargo does not build a `cdylib` for tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The engines that tests run with, bare and wrapped.
pub(crate) const ENGINES: &[&str] = &[
    "slub@7.1",
    "slub@6.1",
    "slub@2.6.29",
    "slqb@2009-09",
    "slab@6.1",
    "slub@7.1,debug=FZPU",
    "slub@7.1,quarantine=8K,harden=random,init=alloc+free",
    "slub@7.1,harden=on",
    "slqb@2009-09,debug=FZ,quarantine=8K",
    "slab@6.1,debug=P",
    "slub@6.1,harden=random+encode",
];

/// The library's folder. Builds the library once per process.
pub(crate) fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let test = std::env::current_exe().expect("this test is a program");
        let folder = test.ancestors().nth(2).expect("target/<profile>/deps");
        let profile = match folder.file_name().and_then(|name| name.to_str()).expect("a profile's name") {
            "debug" => "dev",
            other => other,
        };
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--locked", "-p", "slablab-c", "--profile", profile, "--target-dir"])
            .arg(folder.parent().expect("target"))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .expect("cargo runs");
        assert!(built.success(), "the library did not build");
        folder.to_path_buf()
    })
}
