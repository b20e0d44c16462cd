//! Rules of the house: dependencies of crates and modules, names that engines may use, files with `unsafe`,
//! the form of the engines' pages.
//!
//! The tests read manifests and sources as text, so the rules also hold for code that no test builds. Text
//! cannot show a name that is imported under another name (`use core as c`). That does not happen by
//! accident.

#[path = "house/modules.rs"]
mod modules;
#[path = "house/packages.rs"]
mod packages;
#[path = "house/panics.rs"]
mod panics;

use std::fs;
use std::path::{Path, PathBuf};

/// The crates bottom-up, each with the crates that it may depend on.
const ROOMS: &[(&str, &[&str])] = &[
    ("choices", &[]),
    ("platform", &[]),
    ("pages", &["platform"]),
    ("slabs", &["choices", "platform", "pages"]),
    ("engines", &["slabs"]),
    ("model", &["platform"]),
    ("native", &["platform"]),
    ("malloc", &["platform", "pages", "slabs", "native"]),
    ("objects", &["platform", "pages", "slabs", "native", "malloc"]),
    ("c", &["malloc", "objects"]),
    ("check", &["platform", "pages", "slabs", "model"]),
    ("readers", &[]),
    ("trace", &["choices"]),
    ("recorder", &["malloc", "readers", "trace"]),
    ("report", &["choices"]),
    ("linux", &["platform", "pages", "slabs", "engines", "report"]),
    ("stats", &[]),
    ("compare", &["report", "stats"]),
    ("doctor", &["slabs", "readers", "trace", "report"]),
    ("machines", &["model", "report"]),
    ("calibrate", &["report", "stats"]),
    ("vm", &["choices"]),
    ("sim", &["platform", "pages", "slabs", "engines", "model", "vm", "trace", "stats"]),
    (
        "replay",
        &[
            "platform", "pages", "slabs", "engines", "model", "readers", "trace", "report", "stats",
            "machines", "doctor",
        ],
    ),
    (
        "experiment",
        &[
            "platform", "pages", "slabs", "engines", "model", "readers", "trace", "report", "stats",
            "machines", "vm", "sim", "doctor", "replay",
        ],
    ),
    ("page", &["slabs", "engines", "trace", "report", "compare", "doctor", "replay", "experiment"]),
    (
        "bench",
        &[
            "slabs", "native", "malloc", "objects", "trace", "report", "stats", "platform", "model",
            "machines", "sim",
        ],
    ),
    // The program is a user interface of the crates above. It names presets and traces in its arguments.
    // `slablab top` reads the directory that `malloc` writes.
    (
        "cli",
        &[
            "report",
            "machines",
            "calibrate",
            "compare",
            "doctor",
            "engines",
            "linux",
            "check",
            "replay",
            "experiment",
            "bench",
            "slabs",
            "trace",
            "malloc",
            "recorder",
        ],
    ),
    // The Python package is another user interface.
    ("python", &["slabs", "engines", "trace", "report", "machines", "doctor", "replay", "experiment"]),
];

/// Crates that can be part of a kernel: no dependencies but each other, no `std`, no `alloc`.
const EMBEDDABLE: [&str; 4] = ["choices", "platform", "pages", "slabs"];

/// Those of them that a kernel names. `choices` comes with `slabs`.
const NAMED: [&str; 3] = ["platform", "pages", "slabs"];

/// Names that an embeddable crate does not use, because each world supplies these primitives.
const FOREIGN: &[&str] = &["std::", "alloc::", "core::sync", "core::arch", "extern crate"];

/// Files of an embeddable crate that are parts of worlds: they use the primitives, and no allocator names
/// them.
const PARTS_OF_WORLDS: [&str; 2] = ["crates/platform/src/real.rs", "crates/platform/src/plain_slots.rs"];

/// Files that may contain `unsafe`, by their paths in the repository. The first lines of each file say why.
const UNSAFE: &[&str] = &[
    "crates/platform/src/memory.rs",
    "crates/page/src/abi.rs",
    "crates/page/src/progress.rs",
    "crates/model/src/coroutine/native.rs",
    "crates/model/src/coroutine/page.rs",
    "crates/linux/src/image/call.rs",
    "crates/linux/src/image/fault.rs",
    "crates/linux/src/image/space.rs",
    "crates/native/src/local.rs",
    "crates/native/src/boot_memory.rs",
    "crates/native/src/sequence.rs",
    "crates/native/src/region.rs",
    "crates/native/src/arrays.rs",
    "crates/native/src/slots.rs",
    "crates/native/src/system.rs",
    "crates/native/src/world.rs",
    "crates/malloc/src/caches.rs",
    "crates/malloc/src/engine.rs",
    "crates/malloc/examples/fastpath.rs",
    "crates/malloc/src/fast.rs",
    "crates/native/tests/interrupted.rs",
    "crates/native/tests/program/mod.rs",
    "crates/native/tests/storm.rs",
    "crates/malloc/src/global.rs",
    "crates/malloc/src/hardened/bytes.rs",
    "crates/malloc/src/mappings.rs",
    "crates/malloc/src/probes.rs",
    "crates/malloc/src/slow.rs",
    "crates/malloc/src/shared/tenants.rs",
    "crates/malloc/src/world.rs",
    "crates/malloc/tests/alignment.rs",
    "crates/malloc/tests/global.rs",
    "crates/malloc/tests/misuse.rs",
    "crates/objects/src/checked.rs",
    "crates/objects/src/constructor.rs",
    "crates/objects/src/object.rs",
    "crates/bench/src/block.rs",
    "crates/bench/src/freelist.rs",
    "crates/bench/src/harness.rs",
    "crates/bench/src/peers.rs",
    "crates/bench/src/proof.rs",
    "crates/c/src/edge.rs",
    "crates/calibrate/src/raw.rs",
    "crates/cli/src/closed.rs",
    "crates/recorder/preload/events.rs",
    "crates/recorder/preload/file.rs",
    "crates/recorder/preload/folder.rs",
    "crates/recorder/preload/library.rs",
    "crates/recorder/preload/next.rs",
    "crates/recorder/preload/operators.rs",
    "crates/recorder/preload/process.rs",
    "crates/recorder/preload/system.rs",
    "crates/recorder/src/kernel/bpf.rs",
    "examples/embedded/src/global.rs",
    "examples/embedded/src/memory.rs",
    "examples/kernel/beside/src/main.rs",
    "examples/kernel/src/cpu.rs",
    "examples/kernel/src/heap.rs",
    "examples/kernel/src/memory.rs",
    "examples/kernel/src/slots.rs",
];

/// The sections of each engine's page, in this order. Sections about releases may follow.
const HEADINGS: [&str; 6] = ["Theory", "States", "Ways", "Locks", "Cost", "Unusual"];

/// The largest number of knots of each crate: sets of source files that use each other in a circle. A crate
/// that is not listed has none. A commit that unties one lowers the number. `lib.rs` counts as a module if
/// another module uses an item that `lib.rs` defines.
const KNOTTED: &[(&str, usize)] = &[("malloc", 1)];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Names in the `[dependencies]` and `[build-dependencies]` tables of a manifest, for all targets.
/// Dependencies of tests only do not count.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut counts = false;
    for line in manifest.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if let Some(table) = line.strip_prefix('[') {
            let table = table.trim_end_matches(']');
            let (before, name) = match table.rsplit_once("dependencies.") {
                Some((before, name)) => (format!("{before}dependencies"), Some(name)),
                None => (table.to_owned(), None),
            };
            let shipped = before.ends_with("dependencies") && !before.ends_with("dev-dependencies");
            counts = shipped && name.is_none();
            names.extend(name.filter(|_| shipped).map(str::to_owned));
        } else if let Some(end) = line.find(['.', '=', ' ']).filter(|_| counts) {
            names.push(line[..end].to_owned());
        }
    }
    names
}

/// Every Rust file below a folder, in the order of its path. A folder without one fails: after a move a test
/// would pass on nothing.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let found = sources_if_any(folder);
    assert!(!found.is_empty(), "{}: no Rust file; was it moved?", folder.display());
    found
}

/// [`sources`] of a folder that a crate may lack.
fn sources_if_any(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("a folder of the repository can be read").path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The code of a file without comments and strings. A single quote begins a character only if the closing
/// quote is one or two characters (an escape) away. So lifetimes are not mistaken for characters.
fn code(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(raw) = raw_text(rest) {
            raw
        } else if first == '"' {
            text_end(rest)
        } else if first == '\'' && rest[1..].starts_with('\\') {
            rest[2..].find('\'').map_or(1, |end| end + 3)
        } else if first == '\'' && rest[1..].chars().nth(1) == Some('\'') {
            rest[1..].find('\'').map_or(1, |end| end + 2)
        } else {
            0
        };
        if skipped == 0 {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            code.push(' ');
            rest = &rest[skipped..];
        }
    }
    code
}

/// The length in bytes of the string literal that `rest` starts with.
fn text_end(rest: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !escaped => return at + 1,
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    rest.len()
}

/// The length in bytes of the raw string literal that `rest` starts with.
fn raw_text(rest: &str) -> Option<usize> {
    let hashes = rest.strip_prefix('r')?.bytes().take_while(|byte| *byte == b'#').count();
    rest[1 + hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let start = hashes + 2;
    Some(rest[start..].find(&close).map_or(rest.len(), |end| start + end + close.len()))
}

/// A file's code without the items that only tests have: each from `#[cfg(test)]` to the end of its block or
/// declaration.
fn shipped(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut shipped = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find(MARK) {
        shipped.push_str(&rest[..at]);
        rest = &rest[at + MARK.len()..];
        let mut depth = 0;
        let end = rest.char_indices().find(|(_, c)| {
            depth += match c {
                '{' | '[' | '(' => 1,
                '}' | ']' | ')' => -1,
                _ => 0,
            };
            depth == 0 && (*c == ';' || *c == '}')
        });
        rest = &rest[end.map_or(rest.len(), |(at, c)| at + c.len_utf8())..];
    }
    shipped + rest
}

/// Lines of a file's code that contain a name.
fn lines_with(path: &Path, names: &[&str], tests_too: bool) -> Vec<String> {
    let stripped = code(&read(path));
    let code = if tests_too { stripped } else { shipped(&stripped) };
    let holds = |line: &str| {
        names.iter().any(|name| {
            let word =
                |at: usize| line[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_');
            let ends = |at: usize| {
                let after = line[at + name.len()..].chars().next();
                name.ends_with(':') || after.is_none_or(|c| !c.is_alphanumeric() && c != '_')
            };
            line.match_indices(name).any(|(at, _)| word(at) && ends(at))
        })
    };
    let found = code.lines().filter(|line| holds(line));
    found.map(|line| format!("{}: {}", path.display(), line.trim())).collect()
}

#[test]
fn every_crate_is_listed() {
    let mut folders: Vec<String> = fs::read_dir(root().join("crates"))
        .expect("the crates are in crates/")
        .filter_map(|entry| entry.expect("a room").file_name().into_string().ok())
        .collect();
    folders.sort();
    let mut listed: Vec<&str> = ROOMS.iter().map(|(room, _)| *room).collect();
    listed.sort_unstable();
    assert_eq!(folders, listed);
}

#[test]
fn no_crate_depends_on_a_higher_one() {
    for (place, (room, below)) in ROOMS.iter().enumerate() {
        let earlier = |name: &&str| ROOMS[..place].iter().any(|(room, _)| room == name);
        assert!(below.iter().all(earlier), "{room} builds on a room that is not below it");
        let manifest = read(&root().join("crates").join(room).join("Cargo.toml"));
        for name in dependencies(&manifest) {
            match name.strip_prefix("slablab-") {
                Some(ours) => assert!(below.contains(&ours), "{room} depends on {ours}: it may on {below:?}"),
                None => {
                    assert!(!EMBEDDABLE.contains(room), "{room} depends on {name}: it has no dependencies")
                }
            }
        }
    }
}

#[test]
fn modules_are_in_layers() {
    let mut wrong = String::new();
    for (room, _) in ROOMS {
        let knots = modules::knots(&root().join("crates").join(room).join("src"));
        let most = KNOTTED.iter().find(|(listed, _)| listed == room).map_or(0, |(_, most)| *most);
        if knots.len() != most {
            wrong += &format!("{room}: {} knots, KNOTTED says {most}:\n", knots.len());
            knots.iter().for_each(|knot| wrong += &format!("    {knot:?}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn no_engine_names_another() {
    const ENGINES: [&str; 4] = ["slab", "slob", "slqb", "slub"];
    for engine in ENGINES {
        for other in ENGINES.into_iter().filter(|other| *other != engine) {
            let folder = root().join("crates/slabs/src/engines").join(engine);
            let names = [format!("engines::{other}"), format!("super::{other}::")];
            let names = names.each_ref().map(String::as_str);
            let found: Vec<String> =
                sources(&folder).iter().flat_map(|path| lines_with(path, &names, false)).collect();
            assert!(found.is_empty(), "{engine} names {other}:\n{}", found.join("\n"));
        }
    }
}

#[test]
fn embeddable_crates_stand_alone() {
    for room in EMBEDDABLE {
        let folder = root().join("crates").join(room).join("src");
        let top = read(&folder.join("lib.rs"));
        // `platform` declares an unsafe trait, in one listed file. The crates above it have no `unsafe` at
        // all.
        let unsafe_code =
            if room == "platform" { "#![deny(unsafe_code)]" } else { "#![forbid(unsafe_code)]" };
        for attribute in ["#![no_std]", unsafe_code] {
            assert!(top.lines().any(|line| line == attribute), "{room}/src/lib.rs lacks {attribute}");
        }
        let parts = PARTS_OF_WORLDS.map(|part| root().join(part));
        let others = sources(&folder).into_iter().filter(|path| !parts.contains(path));
        let found: Vec<String> = others.flat_map(|path| lines_with(&path, FOREIGN, false)).collect();
        assert!(found.is_empty(), "{room} uses names that only a world may use:\n{}", found.join("\n"));
    }
}

#[test]
fn the_embedding_example_stands_alone() {
    let folder = root().join("examples/embedded");
    assert!(read(&folder.join("src/lib.rs")).lines().any(|line| line == "#![no_std]"));
    let ours = NAMED.map(|room| format!("slablab-{room}"));
    assert_eq!(dependencies(&read(&folder.join("Cargo.toml"))), ours);
    let shipped =
        sources(&folder.join("src")).into_iter().filter(|path| !path.iter().any(|part| part == "tests"));
    let found: Vec<String> =
        shipped.flat_map(|path| lines_with(&path, &["std::", "extern crate"], false)).collect();
    assert!(
        found.is_empty(),
        "the embedding example uses names that a kernel does not have:\n{}",
        found.join("\n")
    );
}

#[test]
fn the_example_kernel_stands_alone() {
    let folder = root().join("examples/kernel");
    let manifest = read(&folder.join("Cargo.toml"));
    let inherits = manifest.lines().find(|line| line.contains("workspace = true"));
    assert_eq!(inherits, None, "a copy has no workspace to inherit from");
    assert!(manifest.lines().any(|line| line == "[workspace]"), "a copy may lie in another workspace");
    // Other heaps, to be measured beside this one.
    let needed: Vec<&str> = manifest.lines().filter(|line| !line.contains("optional = true")).collect();
    assert_eq!(dependencies(&needed.join("\n")), NAMED.map(|room| format!("slablab-{room}")));
    assert!(read(&folder.join("src/main.rs")).lines().any(|line| line == "#![no_std]"));
    let found: Vec<String> =
        sources(&folder.join("src")).iter().flat_map(|path| lines_with(path, &["std::"], true)).collect();
    assert!(found.is_empty(), "the kernel uses names that it does not have:\n{}", found.join("\n"));
}

#[test]
fn unsafe_is_in_listed_files_only() {
    let listed: Vec<PathBuf> = UNSAFE.iter().map(|file| root().join(file)).collect();
    for path in &listed {
        let opening: String = read(path).lines().take_while(|line| line.starts_with("//!")).collect();
        assert!(
            opening.contains("unsafe"),
            "the first lines of {} do not say why it needs unsafe",
            path.display()
        );
    }
    let others = sources(&root()).into_iter().filter(|path| !listed.contains(path));
    let found: Vec<String> = others.flat_map(|path| lines_with(&path, &["unsafe"], true)).collect();
    assert!(found.is_empty(), "unsafe outside the listed files:\n{}", found.join("\n"));
}

/// The largest number of files with `unsafe`, and of occurrences of the word, in the sources of each crate. A
/// commit that needs fewer lowers the numbers.
const UNSAFE_MOST: &[(&str, usize, usize)] = &[
    ("platform", 1, 2),
    // Switches of stacks, natively and in a page.
    ("model", 2, 4),
    ("native", 8, 69),
    ("malloc", 10, 54),
    ("objects", 3, 18),
    ("c", 1, 18),
    ("calibrate", 1, 9),
    // Maps images of kernel trees, calls their code, ends calls that fault.
    ("linux", 3, 22),
    // The attribute that has a function run before `main`.
    ("cli", 1, 1),
    // With the blocks of recorded programs, which have sizes, alignments and changes of size, and programs
    // that are started and waited for.
    ("bench", 5, 36),
    // Names that JavaScript calls, and one of its own.
    ("page", 2, 7),
    // With bpf(2), whose programs read the kernel's memory.
    ("recorder", 9, 123),
];

#[test]
fn unsafe_does_not_grow() {
    let mut found = Vec::new();
    for (room, _) in ROOMS {
        // The recorder's preloaded library is not a part of its crate.
        let folders = ["src", "preload"].map(|folder| root().join("crates").join(room).join(folder));
        let counts = folders.iter().flat_map(|folder| sources_if_any(folder)).map(|path| {
            let code = code(&read(&path));
            code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| *word == "unsafe").count()
        });
        let counts: Vec<usize> = counts.filter(|count| *count > 0).collect();
        if !counts.is_empty() {
            found.push((*room, counts.len(), counts.iter().sum::<usize>()));
        }
    }
    for (room, files, sites) in found {
        let most = UNSAFE_MOST.iter().find(|most| most.0 == room).map_or((0, 0), |most| (most.1, most.2));
        assert!(
            files <= most.0 && sites <= most.1,
            "{room}: {files} files with `unsafe` in {sites} places, expected {} in {} at most",
            most.0,
            most.1
        );
    }
}

/// The largest width of a comment in columns, so that two files fit side by side. Tables and call trees may
/// be wider, because they cannot be wrapped.
const COMMENT_COLUMNS: usize = 110;

#[test]
fn comments_fit_their_columns() {
    let wide = |line: &str| {
        let comment = line.trim_start().strip_prefix("//").map(|text| text.trim_start_matches(['/', '!']));
        let prose = comment.is_some_and(|text| !text.starts_with(" |") && !text.contains("  "));
        prose && line.chars().count() > COMMENT_COLUMNS
    };
    let found: Vec<String> = sources(&root())
        .iter()
        .flat_map(|path| {
            let text = read(path);
            let lines: Vec<usize> =
                (1..).zip(text.lines()).filter(|(_, line)| wide(line)).map(|(n, _)| n).collect();
            lines.into_iter().map(|line| format!("{}:{line}", path.display())).collect::<Vec<_>>()
        })
        .collect();
    assert!(found.is_empty(), "comments over {COMMENT_COLUMNS} columns:\n{}", found.join("\n"));
}

#[test]
fn every_engine_page_has_the_same_sections() {
    for engine in ["slab", "slub", "sheaves", "slqb", "slob"] {
        let page = read(&root().join(format!("docs/engines/{engine}.md")));
        let found: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("# ")).collect();
        assert!(found.starts_with(&HEADINGS), "docs/engines/{engine}.md: {found:?}");
    }
}

#[test]
fn the_parsers_of_this_test_work() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\na.workspace = true\nb = \"1\"\n[dependencies.c]\nd = 1\n\
                    [dev-dependencies]\ne = \"1\"\n[target.'cfg(unix)'.dependencies]\nf = { version = \"1\" }\n";
    assert_eq!(dependencies(manifest), ["a", "b", "c", "f"]);
    let source = "let a = \"unsafe \\\" \"; // unsafe\nlet b = '\"'; unsafe { 'x: loop {} } /* unsafe */ r#\"un\"safe\"#;";
    assert_eq!(code(source), "let a =  ;  \nlet b =  ; unsafe { 'x: loop {} }    ;");
    let source = "a; #[cfg(test)] mod tests; b; #[cfg(test)] #[path(x)] mod t { fn f([u8; 3]) {} } c";
    assert_eq!(shipped(source), "a;  b;  c");
}
