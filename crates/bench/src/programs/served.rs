//! Whose `malloc` a program's processes got, as the dynamic linker tells (`LD_DEBUG=bindings`).

use super::Allocator;
use super::scratch::Scratch;
use slablab_report::visible;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;

/// What has the linker of every process write into a file of the folder.
pub(super) fn environment(scratch: &Scratch) -> [(&'static str, PathBuf); 2] {
    [("LD_DEBUG", "bindings".into()), ("LD_DEBUG_OUTPUT", scratch.path().join("bound"))]
}

/// Checks that an allocator served the program that ran with [`environment`].
///
/// # Errors
/// The linker bound no malloc, or that of another file; files that cannot be read.
pub(super) fn prove(scratch: &Scratch, allocator: &Allocator, program: &str) -> Result<(), String> {
    let unread = |error: io::Error| format!("{}: {error}", visible::path(scratch.path()));
    let mut servers = BTreeSet::new();
    for entry in fs::read_dir(scratch.path()).map_err(unread)? {
        let bytes = fs::read(entry.map_err(unread)?.path()).map_err(unread)?;
        servers.extend(bound(&String::from_utf8_lossy(&bytes)).map(str::to_string));
    }
    let real = |path: &str| fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let others: Vec<&String> = servers.iter().filter(|server| real(server) != allocator.library).collect();
    match others.as_slice() {
        [] if servers.is_empty() => Err(format!(
            "{program} asks the dynamic linker for no malloc (it is static, runs with other rights, or has its \
             own): expected a program that LD_PRELOAD reaches"
        )),
        [] => Ok(()),
        [first, ..] => Err(format!(
            "under {} the malloc of {program} is that of {first}: expected {}",
            allocator.name,
            visible::path(&allocator.library)
        )),
    }
}

/// The files whose `malloc`, `calloc` or `realloc` was bound.
fn bound(text: &str) -> impl Iterator<Item = &str> {
    const SYMBOLS: [&str; 3] = ["`malloc'", "`calloc'", "`realloc'"];
    text.lines().filter_map(|line| {
        let (_, rest) = line.split_once("binding file ")?;
        let (files, symbol) = rest.split_once(": normal symbol ")?;
        let (_, to) = files.split_once(" to ")?;
        let is_asked = SYMBOLS.iter().any(|name| symbol.starts_with(name));
        is_asked.then(|| to.rsplit_once(" [").map_or(to, |(file, _)| file))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines as glibc 2.36 and 2.41 write them.
    #[test]
    fn whose_malloc_is_bound() {
        #[track_caller]
        fn check(line: &str, expected: &[&str]) {
            assert_eq!(bound(line).collect::<Vec<_>>(), expected, "{line}");
        }
        check(
            "     12345:\tbinding file /usr/bin/python3 [0] to /lib/x86_64-linux-gnu/libc.so.6 [0]: normal symbol \
             `malloc' [GLIBC_2.2.5]",
            &["/lib/x86_64-linux-gnu/libc.so.6"],
        );
        check(
            "  7:\tbinding file /lib/a b/libc.so.6 [0] to ./libmine.so [0]: normal symbol `realloc'",
            &["./libmine.so"],
        );
        check("  7:\tbinding file ls [0] to /lib/libc.so.6 [0]: normal symbol `malloc_usable_size'", &[]);
        check("  7:\tbinding file ls [0] to /lib/libc.so.6 [0]: weak symbol `malloc'", &[]);
        check("  7:\tcalling init: /lib/libc.so.6", &[]);
    }
}
