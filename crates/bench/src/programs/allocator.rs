//! The allocators that a program can run under: libraries that are preloaded.

use slablab_slabs::Preset;
use std::fs;
use std::path::{Path, PathBuf};

/// A library whose `malloc` a program gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocator {
    /// Its name in tables.
    pub name: String,
    /// The file that is preloaded.
    pub library: PathBuf,
    /// Further environment.
    pub(super) environment: Vec<(&'static str, String)>,
}

/// The name of an allocator, its library without a version, and Debian's package.
type Known = (&'static str, &'static str, &'static str);

/// Those that are looked for, in the order of tables. The first is what ratios are over.
const KNOWN: [Known; 5] = [
    ("glibc", "libc.so", "libc6"),
    (OURS, "libslablab.so", "libslablab"),
    ("jemalloc", "libjemalloc.so", "libjemalloc2"),
    ("mimalloc", "libmimalloc.so", "libmimalloc3"),
    ("tcmalloc", "libtcmalloc_minimal.so", "libtcmalloc-minimal4"),
];
const OURS: &str = "slablab";

/// The allocators of `names`, which may be engines of slablab, then those of `given`, each `NAME=PATH`.
/// Without names all that are installed, in `folders` or where libraries are.
///
/// # Errors
/// A name that nothing is known of, a library that is not there, a file that is no library, a name twice.
pub fn chosen(names: &[String], given: &[String], folders: &[PathBuf]) -> Result<Vec<Allocator>, String> {
    let folders: Vec<PathBuf> = folders.iter().cloned().chain(usual()).collect();
    let mut all = Vec::new();
    for text in given {
        all.push(of_path(text)?);
    }
    let is_given = |name: &str| all.iter().any(|one: &Allocator| one.name == name);
    let mut found = match names {
        [] => KNOWN
            .iter()
            .filter(|(name, ..)| !is_given(name))
            .filter_map(|known| installed(known, &folders))
            .collect(),
        names => names.iter().map(|name| named(name, &folders)).collect::<Result<Vec<_>, _>>()?,
    };
    found.append(&mut all);
    let twice =
        found.iter().enumerate().find(|(at, one)| found[..*at].iter().any(|other| other.name == one.name));
    match twice {
        Some((_, one)) => Err(format!("allocator {}: named twice", one.name)),
        None => Ok(found),
    }
}

/// Where libraries are.
fn usual() -> Vec<PathBuf> {
    let triple = format!("{}-linux-gnu", std::env::consts::ARCH);
    let roots = ["/usr/local/lib", "/usr/lib", "/lib", "/usr/lib64", "/lib64"].map(PathBuf::from);
    roots.into_iter().flat_map(|root| [root.join(&triple), root]).collect()
}

fn installed((name, stem, _): &Known, folders: &[PathBuf]) -> Option<Allocator> {
    let library = folders.iter().find_map(|folder| newest(folder, stem))?;
    Some(Allocator { name: (*name).into(), library, environment: Vec::new() })
}

/// The allocator of a name, or slablab's with the engine that it names.
fn named(name: &str, folders: &[PathBuf]) -> Result<Allocator, String> {
    let is_engine = Preset::parse(name).is_ok();
    let wanted = if is_engine { OURS } else { name };
    let known = KNOWN.iter().find(|(known, ..)| *known == wanted).ok_or_else(|| {
        let names: Vec<&str> = KNOWN.iter().map(|(name, ..)| *name).collect();
        format!(
            "allocator {name}: expected one of {}, an engine of slablab, or --allocator NAME=PATH",
            names.join(", ")
        )
    })?;
    let (_, stem, package) = known;
    let found = installed(known, folders).ok_or_else(|| {
        format!(
            "allocator {name}: no {stem} was found: expected Debian's {package}, or --allocator {wanted}=PATH"
        )
    })?;
    Ok(match is_engine {
        true => Allocator { name: name.into(), environment: vec![("SLABLAB_ENGINE", name.into())], ..found },
        false => found,
    })
}

/// The allocator of `NAME=PATH`.
fn of_path(text: &str) -> Result<Allocator, String> {
    let (name, path) =
        text.split_once('=').filter(|(name, path)| !name.is_empty() && !path.is_empty()).ok_or_else(
            || format!("--allocator {text}: expected NAME=PATH, as in jemalloc=/opt/lib/libjemalloc.so"),
        )?;
    let library = fs::canonicalize(path).map_err(|error| format!("--allocator {name}: {path}: {error}"))?;
    if !is_library(&library).map_err(|error| format!("--allocator {name}: {path}: {error}"))? {
        return Err(format!("--allocator {name}: {path}: expected a shared library for this machine"));
    }
    // The linker splits its list of libraries there.
    if library.to_string_lossy().contains([' ', ':']) {
        return Err(format!("--allocator {name}: {path}: a preloaded path can have no blank and no colon"));
    }
    Ok(Allocator { name: name.into(), library, environment: Vec::new() })
}

/// Whether a file is a shared object of this machine's kind: the header of ELF.
fn is_library(path: &Path) -> std::io::Result<bool> {
    use std::io::Read;
    const DYNAMIC: u8 = 3;
    let mut header = Vec::new();
    fs::File::open(path)?.take(20).read_to_end(&mut header)?;
    let own = fs::File::open("/proc/self/exe").and_then(|file| {
        let mut own = Vec::new();
        file.take(20).read_to_end(&mut own).map(|_| own)
    })?;
    let is_elf = header.len() == 20 && header.starts_with(b"\x7fELF") && header[16] == DYNAMIC;
    // The class, the order of bytes, and the machine.
    Ok(is_elf && header[4..6] == own[4..6] && header[18..20] == own[18..20])
}

/// A folder's file `stem`, or `stem.N` with the highest version.
fn newest(folder: &Path, stem: &str) -> Option<PathBuf> {
    let version = |name: &str| -> Option<Vec<u32>> {
        let rest = name.strip_prefix(stem)?;
        let numbers = rest.split('.').skip(1).map(|part| part.parse().ok());
        (rest.is_empty() || rest.starts_with('.')).then(|| numbers.collect::<Option<Vec<u32>>>())?
    };
    let entries = fs::read_dir(folder).ok()?.flatten();
    let files = entries.filter_map(|entry| Some((version(entry.file_name().to_str()?)?, entry.path())));
    // A linker script has the name of a library, too.
    let libraries = files.filter(|(_, path)| is_library(path).unwrap_or(false));
    libraries.max().and_then(|(_, path)| fs::canonicalize(path).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::scratch::Scratch;

    #[test]
    fn libraries_are_found_by_name_and_version() {
        #[track_caller]
        fn check(files: &[&str], expected: Option<&str>) {
            let scratch = Scratch::new().expect("a folder");
            for file in files {
                // A program of today is a shared object, too.
                fs::copy("/proc/self/exe", scratch.path().join(file)).expect("room");
            }
            fs::write(scratch.path().join("libjemalloc.so.9"), "GROUP ( libjemalloc.so.2 )").expect("room");
            let found = newest(scratch.path(), "libjemalloc.so");
            let name = found.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
            assert_eq!(name, expected, "{files:?}");
        }
        check(&[], None);
        check(&["libjemalloc.so"], Some("libjemalloc.so"));
        check(&["libjemalloc.so.2"], Some("libjemalloc.so.2"));
        check(&["libjemalloc.so.2", "libjemalloc.so.10"], Some("libjemalloc.so.10"));
        check(&["libjemalloc.so.2.1", "libjemalloc.so.2"], Some("libjemalloc.so.2.1"));
        check(&["libjemalloc.so.bak", "libjemalloc_pic.so", "xlibjemalloc.so.2"], None);
    }

    #[test]
    fn allocators_that_are_refused() {
        #[track_caller]
        fn check(names: &[&str], given: &[&str], expected: &str) {
            let owned = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
            let refused = chosen(&owned(names), &owned(given), &[]).expect_err("it is refused");
            assert!(refused.starts_with(expected), "{refused}");
        }
        check(&["jmalloc"], &[], "allocator jmalloc: expected one of glibc, slablab,");
        check(&["glibc", "glibc"], &[], "allocator glibc: named twice");
        check(&[], &["mine"], "--allocator mine: expected NAME=PATH");
        check(&[], &["=x"], "--allocator =x: expected NAME=PATH");
        check(&[], &["mine=/nowhere/lib.so"], "--allocator mine: /nowhere/lib.so: No such file");
        check(&[], &["mine=/etc/passwd"], "--allocator mine: /etc/passwd: expected a shared library");
    }
}
