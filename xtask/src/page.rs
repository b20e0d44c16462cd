//! `cargo xtask page`: slablab in a page, in one file.

use std::path::Path;
use std::process::Command;

const MODULE: &str = "target/wasm32-unknown-unknown/page/slablab_page.wasm";
/// The page.
pub(crate) const PAGE: &str = "target/page/slablab.html";

/// Compiles the module and puts the page together; needs rustup's target wasm32-unknown-unknown.
pub(crate) fn build(root: &Path) -> Result<(), String> {
    let folder = root.join("target/page");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let module = "build --locked --quiet --profile page --target wasm32-unknown-unknown -p slablab-page";
    cargo(root, module)?;
    cargo(root, &format!("run --locked --quiet -p slablab-page --example assemble -- {MODULE} examples {PAGE}"))
}

fn cargo(root: &Path, words: &str) -> Result<(), String> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(program).current_dir(root).args(words.split(' ')).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("cargo {words}: {status}")),
        Err(error) => Err(format!("cargo {words}: {error}")),
    }
}
