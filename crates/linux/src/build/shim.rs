//! The shim: our sources, compiled as the tree compiles its own, so that every struct is the tree's.

use super::allocator::Allocator;
use super::child::Ending;
use super::command::{Made, Other};
use super::kbuild::Kbuild;
use super::step::{Listener, Part};
use slablab_report::error::At;
use std::fs;
use std::path::{Path, PathBuf};

/// The files of the shim. Those that end in `.c` and `.S` are compiled.
pub(super) const FILES: &[(&str, &str)] = &[
    ("access.c", include_str!("../../shim/access.c")),
    ("caches.c", include_str!("../../shim/caches.c")),
    (EARLY, include_str!("../../shim/early.h")),
    ("host.h", include_str!("../../shim/host.h")),
    ("image.lds", include_str!("../../shim/image.lds")),
    ("locks.c", include_str!("../../shim/locks.c")),
    ("memory.S", include_str!("../../shim/memory.S")),
    ("pages.c", include_str!("../../shim/pages.c")),
    ("reports.S", include_str!("../../shim/reports.S")),
    ("slab.c", include_str!("../../shim/slab.c")),
    ("slob.c", include_str!("../../shim/slob.c")),
    ("start.c", include_str!("../../shim/start.c")),
    ("sysfs.c", include_str!("../../shim/sysfs.c")),
    ("thunks.S", include_str!("../../shim/thunks.S")),
    ("words.c", include_str!("../../shim/words.c")),
];

/// The file that stands in front of each file of the allocator.
pub(super) const EARLY: &str = "early.h";

/// The file with the layout of an image.
pub(super) const LAYOUT: &str = "image.lds";

/// Flags that all sources of the shim get.
const FLAGS: &[&str] = &["-Wno-error", "-Wno-missing-prototypes", "-Wno-missing-declarations"];

/// Whether an image reports its accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    Instrumented,
}

impl Kind {
    pub(super) const ALL: [Kind; 2] = [Kind::Plain, Kind::Instrumented];

    /// The stem of the file's name.
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Plain => "plain",
            Kind::Instrumented => "instrumented",
        }
    }
}

/// Writes the shim's files into a folder.
pub(super) fn write_into(folder: &Path) -> slablab_report::Result<()> {
    for (name, text) in FILES {
        let path = folder.join(name);
        fs::write(&path, text).at(&path)?;
    }
    Ok(())
}

/// The files that the compiler read for the objects in a folder: its lists are rules of make.
pub(super) fn read_files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let lists =
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "d"));
    let texts = lists.filter_map(|path| fs::read_to_string(path).ok());
    let names = texts.flat_map(|text| {
        let words = text.split([' ', '\n', '\t']).filter(|word| !word.is_empty() && *word != "\\");
        words.filter(|word| !word.ends_with(':')).map(str::to_string).collect::<Vec<_>>()
    });
    // Those of the folder are the program's own.
    names.filter(|name| !Path::new(name).starts_with(folder)).collect()
}

fn is_source(name: &str) -> bool {
    name.ends_with(".c") || name.ends_with(".S")
}

/// What the shim is compiled for.
pub(super) struct For<'a> {
    pub(super) kbuild: &'a Kbuild<'a>,
    /// How kbuild made the allocator's object.
    pub(super) made: &'a Made,
    pub(super) allocator: Allocator,
}

impl For<'_> {
    /// Compiles the sources in `folder` for both kinds of image. Returns the objects of each.
    ///
    /// # Errors
    /// The first of the compiler's; [`Ending::Stopped`].
    pub(super) fn compile(&self, folder: &Path, said: &mut Listener) -> Result<[Vec<PathBuf>; 2], Ending> {
        let sources: Vec<&str> = FILES.iter().map(|(name, _)| *name).filter(|name| is_source(name)).collect();
        let object = |name: &str, kind: Kind| folder.join(format!("{name}.{}.o", kind.word()));
        let objects = Kind::ALL.map(|kind| sources.iter().map(|name| object(name, kind)).collect::<Vec<_>>());
        // As many at once as the tree's own: a rule for each.
        let all = objects.iter().flatten().map(|path| path.to_string_lossy()).collect::<Vec<_>>().join(" ");
        let mut rules = format!("all: {all}\n");
        for kind in Kind::ALL {
            let flags = self.flags(folder, kind);
            for name in &sources {
                let (source, object) = (folder.join(name), object(name, kind));
                let words = self.made.of(&Other { source: &source, object: &object, flags: &flags });
                let line = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
                rules += &format!("{}:\n\t@{line}\n\t@echo '  CC      {name}'\n", object.display());
            }
        }
        let path = folder.join("rules.mk");
        fs::write(&path, rules).at(&path)?;
        self.kbuild.make_by(Part::Shim, &path, 2 * sources.len() as u64, said)?;
        Ok(objects)
    }

    fn flags(&self, folder: &Path, kind: Kind) -> Vec<String> {
        let tree = self.kbuild.tree;
        let [major, minor, patch] = tree.version;
        let mut flags: Vec<String> = FLAGS.iter().map(|flag| (*flag).to_string()).collect();
        flags.push(format!("-DSLABLAB_RELEASE={}", major << 16 | minor << 8 | patch.min(255)));
        flags.push(format!("-DSLABLAB_{}", self.allocator.title()));
        flags.extend((kind == Kind::Instrumented).then(|| "-DSLABLAB_INSTRUMENTED".to_string()));
        flags.push(format!("-I{}", folder.display()));
        // For `mm/slab.h` and others that are in no folder of headers.
        flags.extend(["-idirafter".into(), tree.path.display().to_string()]);
        flags
    }
}

/// A word of a shell's line in a rule of make.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''").replace('$', "$$"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_rule_are_quoted() {
        let check = |word: &str, expected: &str| assert_eq!(quoted(word), expected);
        check("-O2", "'-O2'");
        check("-DA=\"b\"", "'-DA=\"b\"'");
        check("it's $x", "'it'\\''s $$x'");
    }

    #[test]
    fn every_file_of_the_folder_is_listed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("shim");
        let entries = fs::read_dir(folder).expect("the shim's folder");
        let mut there: Vec<String> =
            entries.map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned()).collect();
        there.sort();
        assert_eq!(there, FILES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }
}
