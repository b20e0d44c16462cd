//! Packages for crates.io: what each manifest states. No source reads a file that its package lacks.

use super::{dependencies, read, root, shipped, sources};
use std::path::{Component, Path};

/// The crates that are published: folder and manifest.
fn published() -> Vec<(String, String)> {
    let folders = std::fs::read_dir(root().join("crates")).expect("the crates are in crates/");
    let names = folders.filter_map(|entry| entry.expect("a room").file_name().into_string().ok());
    let manifests = names.map(|name| {
        let manifest = read(&root().join("crates").join(&name).join("Cargo.toml"));
        (name, manifest)
    });
    manifests.filter(|(_, manifest)| !manifest.lines().any(|line| line == "publish = false")).collect()
}

#[test]
fn a_package_says_what_it_is() {
    let published = published();
    assert!(published.len() > 15, "{published:?}");
    for (name, manifest) in &published {
        for key in ["description", "documentation", "readme", "keywords", "categories", "include"] {
            assert!(manifest.contains(&format!("\n{key} = ")), "crates/{name}/Cargo.toml has no {key}");
        }
        for used in dependencies(manifest) {
            let ours = used.strip_prefix("slablab-");
            let is_published = |ours: &str| published.iter().any(|(name, _)| name == ours);
            assert!(ours.is_none_or(is_published), "{name} is published and needs {used}, which is not");
        }
        let folder = root().join("crates").join(name);
        let page = read(&folder.join("README.md"));
        assert!(!page.contains("](../"), "crates/{name}/README.md has a link that ends on crates.io");
        if folder.join("src/lib.rs").exists() {
            assert!(page.contains("```rust\n"), "crates/{name}/README.md has no example");
            let tested = "#[cfg(doctest)]\n#[doc = include_str!(\"../README.md\")]";
            assert!(read(&folder.join("src/lib.rs")).contains(tested), "{name}: README.md is no test");
        }
    }
}

#[test]
fn a_package_has_the_files_that_it_includes() {
    let mut seen = 0;
    for (name, manifest) in published() {
        let folder = root().join("crates").join(&name);
        let packed = manifest.lines().find(|line| line.starts_with("include = ")).expect("a list");
        for source in sources(&folder.join("src")) {
            let text = read(&source);
            // Unit tests are compiled in the repository alone.
            let shipped = shipped(&text);
            for macro_name in ["include_str!(", "include_bytes!("] {
                for rest in shipped.split(macro_name).skip(1) {
                    let from = rest.trim_start_matches("concat!(");
                    let Some(path) = from.strip_prefix('"').and_then(|rest| rest.split('"').next()) else {
                        continue;
                    };
                    let place = source.parent().expect("a folder").join(path);
                    let inside = normal(place.strip_prefix(&folder).expect("in the crate"));
                    let first = inside.split('/').next().unwrap_or_default();
                    let is_packed = first == "src" || packed.contains(&format!("\"/{first}\""));
                    assert!(is_packed, "{} reads {path}, which its package lacks", source.display());
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 20, "{seen}");
}

/// The Debian package with the header needs the library of the same version.
#[test]
fn debian_packages_have_one_version() {
    let workspace = read(&root().join("Cargo.toml"));
    let version = workspace.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    let expected = format!("libslablab (= {}-1)", version.expect("the workspace has a version"));
    assert!(read(&root().join("crates/c/Cargo.toml")).contains(&expected), "expected {expected}");
}

/// A path without `..`; one that leads out of the folder begins with `..`.
fn normal(path: &Path) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.components() {
        match part {
            Component::ParentDir if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            Component::ParentDir => parts.push(".."),
            part => parts.push(part.as_os_str().to_str().expect("plain names")),
        }
    }
    parts.join("/")
}
