//! The crates below malloc may panic only in code that creates a heap or a cache, and in the evaluation of a
//! constant.

use super::{code, read, root, shipped, sources};

/// Crates whose code runs inside a call of malloc or free.
const ROOMS: [&str; 3] = ["choices", "pages", "slabs"];

const PANICS: [&str; 9] = [
    ".expect(",
    ".unwrap()",
    "panic!(",
    "assert!(",
    "assert_eq!(",
    "assert_ne!(",
    "unreachable!(",
    "todo!(",
    "unimplemented!(",
];

/// The files that may panic, by their paths in `crates/`: the number of places, and why no allocation or free
/// reaches them.
const ALLOWED: &[(&str, usize, &str)] = &[
    ("choices/src/knobs.rs", 1, "sets a knob of an engine that has none: nothing offers it"),
    ("pages/src/machine.rs", 2, "creates a machine's page allocator: orders beyond the tables"),
    ("slabs/src/cache.rs", 1, "`create`: an object that fits no slab"),
    ("slabs/src/kmalloc.rs", 3, "creates a table of classes; the class that a caller names has to be in it"),
    ("slabs/src/knob.rs", 1, "reads the text of a preset; the tables of presets are constants"),
    ("slabs/src/preset.rs", 1, "prints a preset; the tables of presets are constants"),
    (
        "slabs/src/registered.rs",
        6,
        "reads, prints and runs engines that a program registered, which no malloc has",
    ),
    ("slabs/src/slab/new.rs", 1, "`set_new_objects`: called before the first allocation"),
];

/// Lines of a file's shipped code that may panic. A release has no debug assertions.
fn panics(source: &str) -> Vec<String> {
    let shipped = shipped(&code(source));
    let may_panic = |line: &&str| {
        let line = line.replace("debug_assert", "");
        PANICS.iter().any(|name| {
            let stands_alone = |at: usize| {
                name.starts_with('.') || !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
            };
            line.match_indices(name).any(|(at, _)| stands_alone(at))
        })
    };
    shipped.lines().filter(may_panic).map(|line| line.trim().to_owned()).collect()
}

/// If a caller's write damaged a list or an array, the engine calls `Platform::broken`, which prints one line
/// that names the cache. It must not panic: a panic allocates, and unwinds out of `GlobalAlloc`.
#[test]
fn no_allocation_panics() {
    for room in ROOMS {
        for path in sources(&root().join("crates").join(room).join("src")) {
            let found = panics(&read(&path));
            let path = path.display().to_string();
            let allowed = ALLOWED.iter().find(|(file, ..)| path.ends_with(&format!("crates/{file}")));
            let most = allowed.map_or(0, |(_, most, _)| *most);
            assert_eq!(found.len(), most, "{path} may panic {most} times:\n{}", found.join("\n"));
        }
    }
}

#[test]
fn lines_that_may_panic_are_found() {
    let source = "debug_assert!(a); x.expect(\"\");\ny .unwrap_or(0);\nfn expect() {}\nz.unwrap();\n\
                  debug_assert_eq!(a, b);\n#[cfg(test)]\nmod tests { panic!() }\nassert!(a);\n";
    assert_eq!(
        panics(source),
        ["(a); x.expect( );", "z.unwrap();", "assert!(a);"].map(|line| {
            if line.starts_with('(') { format!("debug_assert!{line}") } else { line.to_owned() }
        })
    );
}
