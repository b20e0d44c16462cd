//! The tree's own build: make, what it says, and its errors.

use super::child::{Ending, run};
use super::step::{Listener, Part};
use super::tree::Tree;
use slablab_report::Error;
use std::path::Path;
use std::process::Command;

/// Variables of the environment that would change what kbuild makes.
const FOREIGN: [&str; 18] = [
    "ARCH",
    "C",
    "CFLAGS",
    "CROSS_COMPILE",
    "GNUMAKEFLAGS",
    "KBUILD_EXTMOD",
    "KBUILD_OUTPUT",
    "KCFLAGS",
    "KCONFIG_ALLCONFIG",
    "KCONFIG_CONFIG",
    "KCPPFLAGS",
    "KAFLAGS",
    "LLVM",
    "M",
    "MAKEFLAGS",
    "MFLAGS",
    "V",
    "W",
];

/// What an error says of a full disk, in every compiler and linker.
pub(super) const FULL: &str = "No space left on device";

/// The most lines of a program that is no compiler.
const MOST: usize = 5;

/// A folder in which kbuild builds a tree.
pub(super) struct Kbuild<'a> {
    pub(super) tree: &'a Tree,
    /// The folder, which kbuild calls `O=`.
    pub(super) folder: &'a Path,
    pub(super) cc: &'a str,
    pub(super) jobs: usize,
}

impl Kbuild<'_> {
    /// Makes `targets`, with variables as `KCSAN_SANITIZE=n`. `whole` is how many lines make will say:
    /// what is done of `part`.
    ///
    /// # Errors
    /// What the compiler or make says; [`Ending::Stopped`].
    pub(super) fn make(
        &self,
        part: Part,
        targets: &[&str],
        variables: &[String],
        whole: u64,
        said: &mut Listener,
    ) -> Result<(), Ending> {
        let mut command = self.command();
        command.arg("-C").arg(&self.tree.path).arg(format!("O={}", self.folder.display()));
        command.args(["ARCH=x86", &format!("CC={}", self.cc)]).args(variables).args(targets);
        self.call(&mut command, part, whole, said)
    }

    /// Makes all that a file of rules has, in this folder.
    ///
    /// # Errors
    /// What the compiler or make says; [`Ending::Stopped`].
    pub(super) fn make_by(
        &self,
        part: Part,
        rules: &Path,
        whole: u64,
        said: &mut Listener,
    ) -> Result<(), Ending> {
        let mut command = self.command();
        command.arg("-C").arg(self.folder).arg("-f").arg(rules);
        self.call(&mut command, part, whole, said)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("make");
        for name in FOREIGN {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C").args(["--no-print-directory", "-Otarget", &format!("-j{}", self.jobs)]);
        command
    }

    fn call(&self, command: &mut Command, part: Part, whole: u64, said: &mut Listener) -> Result<(), Ending> {
        let mut done = 0;
        let ran = run(command, &mut |line| {
            done += u64::from(line.is_some_and(is_made));
            said.at(part, done.min(whole), whole)
        })?;
        if ran.status.success() {
            return Ok(());
        }
        let what = complaint(&ran.lines).unwrap_or_else(|| format!("make ended with {}", ran.status));
        let what = if is_full(self.folder) { FULL.into() } else { what };
        let path = if what == FULL { self.folder } else { self.tree.path.as_path() };
        Err(Error::new(path, what).into())
    }
}

/// Whether there is no room for an object in the file system of a folder. Not every program says so when it
/// fails for it, and make removes what was not written whole.
pub(super) fn is_full(folder: &Path) -> bool {
    rustix::fs::statvfs(folder).is_ok_and(|found| found.f_bavail.saturating_mul(found.f_frsize) < 1 << 20)
}

/// Whether a line of kbuild says that it made a file: `  CC      mm/slub.o`.
fn is_made(line: &str) -> bool {
    line.strip_prefix("  ").is_some_and(|rest| rest.starts_with(|char: char| char.is_ascii_uppercase()))
}

/// The first error among what compilers and make said: the lines of the compiler as they are, without make's.
pub(super) fn complaint(lines: &[String]) -> Option<String> {
    if lines.iter().any(|line| line.contains(FULL)) {
        return Some(FULL.into());
    }
    let is_error = |line: &String| {
        [": error: ", ": fatal error: ", ": Error: ", ": undefined reference"]
            .iter()
            .any(|mark| line.contains(mark))
    };
    if let Some(at) = lines.iter().position(is_error) {
        let is_other = |line: &String| is_made(line) || line.starts_with("make");
        let begin = lines[..at].iter().rposition(|line| is_other(line) || line.contains(": warning: "));
        // The function that the error is in, and the files that include the wrong one.
        let context = lines[begin.map_or(0, |begin| begin + 1)..at].iter().filter(|line| is_context(line));
        let rest = lines[at + 1..].iter().take_while(|line| {
            !is_other(line) && !is_error(line) && !is_context(line) && !line.contains(": warning: ")
        });
        let whole: Vec<&str> = context.chain([&lines[at]]).chain(rest).map(|line| line.trim_end()).collect();
        return Some(whole.join("\n"));
    }
    let is_word = |line: &&String| !is_made(line) && !line.starts_with("make") && !line.trim().is_empty();
    let is_end =
        |line: &String| line.starts_with("make") && line.contains("*** ") && !line.contains("*** Deleting");
    let end = lines.iter().position(is_end);
    // What a program said just before make gave up.
    let words = lines[..end.unwrap_or(lines.len())].iter().rev().take_while(is_word).take(MOST);
    let mut words: Vec<&str> = words.map(|line| line.trim_end()).collect();
    words.reverse();
    let make = lines.iter().find(|line| is_end(line)).or(lines.last());
    match words.is_empty() {
        true => make.map(|line| line.trim().to_string()),
        false => Some(words.join("\n")),
    }
}

/// Whether a line says where an error is.
fn is_context(line: &str) -> bool {
    line.contains(": In function ")
        || line.starts_with("In file included from")
        || line.starts_with("         ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_is_returned_as_it_is() {
        let check = |text: &str, expected: &str| {
            let lines: Vec<String> = text.lines().map(str::to_string).collect();
            assert_eq!(complaint(&lines).as_deref(), Some(expected), "{text}");
        };
        check(
            "  CC      mm/a.o\nmm/a.c: In function 'f':\nmm/a.c:3:5: error: unknown name\n    3 | x;\n      | ^\n\
             mm/a.c:4:5: error: another\nmake[3]: *** [Makefile:250: mm/a.o] Error 1\n",
            "mm/a.c: In function 'f':\nmm/a.c:3:5: error: unknown name\n    3 | x;\n      | ^",
        );
        check(
            "  CC      mm/b.o\nmm/b.c:1:1: warning: odd\n    1 | y\nIn file included from mm/a.c:1:\n\
             b.h:9:1: fatal error: c.h: No such file\nmake: *** [x] Error 1\n",
            "In file included from mm/a.c:1:\nb.h:9:1: fatal error: c.h: No such file",
        );
        check(
            "make: *** No rule to make target 'mm/x.o'.  Stop.\n",
            "make: *** No rule to make target 'mm/x.o'.  Stop.",
        );
        check("mm/a.c:1: fatal error: x.o: No space left on device\nmake: *** x\n", FULL);
        check("sh: 1: odd\n", "sh: 1: odd");
        check(
            "  HOSTLD  conf\nKconfig:62: can't open file\nmake[1]: *** [x] Error 1\n",
            "Kconfig:62: can't open file",
        );
        check(
            "***\n*** The tree is not clean\n***\nmake: *** [x] Error 1\n",
            "***\n*** The tree is not clean\n***",
        );
        assert_eq!(complaint(&[]), None);
    }

    #[test]
    fn made_files_are_counted() {
        let check = |line: &str, expected: bool| assert_eq!(is_made(line), expected, "{line}");
        check("  CC      mm/slub.o", true);
        check("  HOSTLD  scripts/mod/modpost", true);
        check("    3 | x;", false);
        check("make[1]: Entering directory", false);
    }
}
