//! The link: objects to an image, which is relocated when it is loaded.

use super::child::{Ending, run};
use super::kbuild::complaint;
use super::shim::LAYOUT;
use super::stubs::Stubs;
use slablab_report::Error;
use slablab_report::error::At;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Links `objects` to `image`, with stubs for what none of them defines. `folder` has the layout, and gets
/// what is made on the way.
///
/// # Errors
/// The linker's; [`Ending::Stopped`].
pub(super) fn link(
    objects: &[PathBuf],
    folder: &Path,
    image: &Path,
    go: &mut dyn FnMut() -> bool,
) -> Result<Stubs, Ending> {
    let [joined, source, stubbed] = ["joined.o", "stubs.S", "stubs.o"].map(|name| folder.join(name));
    let mut command = Command::new("ld");
    call(command.arg("-r").arg("-o").arg(&joined).args(objects), &joined, go)?;
    let layout = folder.join(LAYOUT);
    let text = fs::read_to_string(&layout).at(&layout)?;
    let stubs = Stubs::of(&fs::read(&joined).at(&joined)?, &text).at(&joined)?;
    fs::write(&source, stubs.source()).at(&source)?;
    let mut command = Command::new("as");
    call(command.arg("--64").arg("-o").arg(&stubbed).arg(&source), &source, go)?;
    let mut command = Command::new("ld");
    command.args(["-q", "-static", "-nostdlib", "-z", "noexecstack", "-z", "max-page-size=4096"]);
    // Unknown before binutils 2.39.
    command.args(knows_segments(go)?.then_some("--no-warn-rwx-segments"));
    command.arg("-T").arg(&layout).arg("-o").arg(image).arg(&joined).arg(&stubbed);
    call(&mut command, image, go)?;
    Ok(stubs)
}

/// Copies an object of the tree's library. What the shim defines, too, is then the shim's.
///
/// # Errors
/// Those of objcopy; [`Ending::Stopped`].
pub(super) fn weaken(from: &Path, to: &Path, go: &mut dyn FnMut() -> bool) -> Result<(), Ending> {
    call(Command::new("objcopy").arg("--weaken").arg(from).arg(to), from, go)
}

/// Runs a command that makes the file at `path`.
fn call(command: &mut Command, path: &Path, go: &mut dyn FnMut() -> bool) -> Result<(), Ending> {
    let ran = run(command.env("LC_ALL", "C"), &mut |_| go())?;
    if ran.status.success() {
        return Ok(());
    }
    let what = ran.lines.iter().find(|line| !line.contains(": warning: ") && !line.trim_end().ends_with(':'));
    let what = what.cloned().or_else(|| complaint(&ran.lines));
    let program = command.get_program().to_string_lossy();
    Err(Error::new(path, what.unwrap_or_else(|| format!("{program} ended with {}", ran.status))).into())
}

fn knows_segments(go: &mut dyn FnMut() -> bool) -> Result<bool, Ending> {
    let ran = run(Command::new("ld").arg("--help"), &mut |_| go())?;
    Ok(ran.lines.iter().any(|line| line.contains("--no-warn-rwx-segments")))
}
