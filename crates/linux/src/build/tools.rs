//! The programs that kbuild needs, by the names of their Debian packages.

use super::child::{Ending, run};
use serde::{Deserialize, Serialize};
use slablab_report::Error;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program, and the package that has it.
const PROGRAMS: [(&str, &str); 6] = [
    ("make", "make"),
    ("ld", "binutils"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("awk", "mawk"),
];

/// A header that a program of the tree's own needs (objtool), and its package.
const HEADERS: [(&str, &str); 1] = [("gelf.h", "libelf-dev")];

/// Compiler and linker, as a build keeps them: if they are the same files, their output is the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tools {
    /// The value of `CC` for make.
    pub(super) cc: String,
    /// First lines of `--version`.
    pub(crate) compiler: String,
    pub(crate) linker: String,
    /// Their files: path, bytes, time of the last change in nanoseconds.
    files: Vec<(PathBuf, u64, i64)>,
}

/// The compiler: that of the environment's `CC`, or gcc.
pub(super) fn cc() -> String {
    std::env::var("CC").ok().filter(|cc| !cc.trim().is_empty()).unwrap_or_else(|| "gcc".into())
}

impl Tools {
    /// Whether these are the files of now. It starts no process.
    pub(super) fn are_current(&self) -> bool {
        self.cc == cc() && files(&self.cc) == Some(self.files.clone())
    }

    /// Looks for everything that a build of the tree at `tree` needs.
    ///
    /// # Errors
    /// All that is missing, in one sentence.
    pub(crate) fn find(tree: &Path, go: &mut dyn FnMut() -> bool) -> Result<Tools, Ending> {
        let cc = cc();
        let compiler = cc.split_whitespace().last().unwrap_or("gcc");
        let mut missing = Vec::new();
        if which(compiler).is_none() {
            missing.push(if compiler == "gcc" { ("gcc", "gcc") } else { (compiler, compiler) });
        }
        missing.extend(PROGRAMS.into_iter().filter(|(program, _)| which(program).is_none()));
        if missing.is_empty() {
            for (header, package) in HEADERS {
                // The programs of a kernel tree are built by HOSTCC, which is gcc.
                let script = format!("echo '#include <{header}>' | gcc -E -x c -o /dev/null -");
                let ran = run(Command::new("sh").args(["-c", &script]), &mut |_| go())?;
                missing.extend((!ran.status.success()).then_some((header, package)));
            }
        }
        if !missing.is_empty() {
            return Err(Error::new(tree, refusal(&missing)).into());
        }
        let compiler = first_line(&cc, go)?;
        let linker = first_line("ld", go)?;
        let files = files(&cc).unwrap_or_default();
        Ok(Tools { cc, compiler, linker, files })
    }
}

/// The sentence about missing programs and headers.
fn refusal(missing: &[(&str, &str)]) -> String {
    let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
    let mut packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    packages.dedup();
    format!("to build it, kbuild needs {}: run `apt install {}`", names.join(", "), packages.join(" "))
}

/// What `command --version` says first.
fn first_line(command: &str, go: &mut dyn FnMut() -> bool) -> Result<String, Ending> {
    let mut words = command.split_whitespace();
    let mut call = Command::new(words.next().unwrap_or("gcc"));
    let ran = run(call.args(words).arg("--version").env("LC_ALL", "C"), &mut |_| go())?;
    let line = ran.lines.into_iter().next().filter(|_| ran.status.success());
    let refused = || Error::new(command, "expected a compiler or linker that answers to --version");
    line.ok_or_else(|| refused().into())
}

/// The files of compiler and linker.
fn files(cc: &str) -> Option<Vec<(PathBuf, u64, i64)>> {
    let programs = cc.split_whitespace().last().into_iter().chain(["ld"]);
    let file = |program| {
        let path = which(program)?.canonicalize().ok()?;
        let found = path.metadata().ok()?;
        let ns = found.mtime().saturating_mul(1_000_000_000).saturating_add(found.mtime_nsec());
        Some((path, found.len(), ns))
    };
    programs.map(file).collect()
}

/// The file of a program in the folders of PATH.
pub(super) fn which(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH");
    let folders = path.as_deref().unwrap_or(OsStr::new("/usr/bin:/bin"));
    let is_program =
        |path: &PathBuf| path.metadata().is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0);
    std::env::split_paths(folders).map(|folder| folder.join(program)).find(is_program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_packages_are_one_sentence() {
        let check = |missing: &[(&str, &str)], expected: &str| assert_eq!(refusal(missing), expected);
        check(&[("bc", "bc")], "to build it, kbuild needs bc: run `apt install bc`");
        check(
            &[("ld", "binutils"), ("gelf.h", "libelf-dev")],
            "to build it, kbuild needs ld, gelf.h: run `apt install binutils libelf-dev`",
        );
    }

    #[test]
    fn programs_are_found_by_path() {
        assert!(which("sh").is_some() && which("/bin/sh").is_some());
        assert!(which("no-such-program").is_none() && which("/no/such/program").is_none());
    }
}
