//! `cargo xtask page`: slablab in a page, in one file that opens from anywhere.

use crate::lessons;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const MODULE: &str = "target/wasm32-unknown-unknown/web/slablab_page.wasm";
/// The page.
pub(crate) const PAGE: &str = "target/page/slablab.html";
/// Its parts.
const PARTS: &str = "crates/page/page";
/// The experiments that come with the program.
const EXPERIMENTS: &str = "crates/experiment/experiments";

/// An example: title, and question. Its files are those of the repository that it names.
type Example = (&'static str, &'static str);

const EXAMPLES: &[Example] = &[
    (
        "a machine that was loaded",
        r#"{"verb": "doctor", "input": "examples/releases/amd64_6.18.15_smp4.after.tar.xz", "since": ["examples/releases/amd64_6.18.15_smp4.before.tar.xz"]}"#,
    ),
    (
        "slub_max_order of 0, 1, 2",
        r#"{"verb": "whatif", "input": "examples/releases/amd64_6.18.15_smp4.after.tar.xz", "change": {"max-order": "0,1,2"}}"#,
    ),
    (
        "the same under 7.0 and 7.3",
        r#"{"verb": "whatif", "input": "examples/releases/amd64_6.18.15_smp4.after.tar.xz", "change": {"release": "7.0,7.3"}}"#,
    ),
    (
        "hackbench on 6.18 and 7.3",
        r#"{"verb": "replay", "input": "examples/data/hackbench-6.18.perf.data.xz", "engines": ["slub@6.18", "slub@7.3"]}"#,
    ),
    (
        "what sheaves for all caches did to it",
        r#"{"verb": "explain", "input": "examples/data/hackbench-6.18.perf.data.xz", "from": "slub@6.18", "to": "slub@7.0"}"#,
    ),
    (
        "where its mappings lie, event by event",
        r#"{"verb": "replay", "input": "examples/data/hackbench-6.18.perf.data.xz", "engines": ["slub@6.18", "slub@7.3"], "map": true, "cache": "vm_area_struct"}"#,
    ),
    ("which code allocated", r#"{"verb": "sites", "input": "examples/data/hackbench-6.18.perf.data.xz"}"#),
    (
        "orders that a patch changes on 64 KiB pages",
        r#"{"verb": "orders", "policy": "patel-v3", "against": "clamped", "page-size": ["64K"]}"#,
    ),
    ("Linux 7.0 with memory on 2 of 8 nodes", r#"{"verb": "reproduce", "experiment": "2026"}"#),
    (
        "a file that is read beside hot memory",
        r#"{"verb": "pressure", "script": "examples/data/vm/hotanon_stream.t"}"#,
    ),
    ("kmalloc and kfree on five releases", r#"{"verb": "run", "experiment": "micro"}"#),
    ("what dentry and kmalloc-1k are", r#"{"verb": "what", "names": ["dentry", "kmalloc-1k"]}"#),
];

/// The number of an example in the page.
pub(crate) fn example(title: &str) -> Option<usize> {
    EXAMPLES.iter().position(|(other, _)| *other == title)
}

/// Compiles the module and puts the page together; needs rustup's target wasm32-unknown-unknown. Returns the
/// page's path and bytes.
pub(crate) fn build(root: &Path) -> Result<(&'static str, usize), String> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Of that kind alone: beside a library for Rust nothing is optimized as a whole. The page's worker gives
    // each coroutine of the simulated kernel a stack.
    let module = "rustc --locked --quiet --profile web --target wasm32-unknown-unknown -p slablab-page --lib \
                  --crate-type cdylib -- -C link-arg=--export=__stack_pointer";
    run(Command::new(program).current_dir(root).args(module.split(' ')), "cargo")?;
    let packed = run(Command::new("gzip").current_dir(root).args(["-9", "-n", "-c", MODULE]), "gzip")?;
    let part = |name: &str| text(&root.join(PARTS).join(name));
    let mut page = part("page.html")?;
    let parts = [
        ("@EXAMPLES@", bundled(root)?),
        ("@WORKER@", part("worker.js")?),
        ("@MODULE@", base64(&packed)),
        ("@PAGE@", part("page.js")?),
    ];
    for (mark, part) in parts {
        page = page.replacen(mark, &part, 1);
    }
    let at = root.join(PAGE);
    let folder = at.parent().expect("a page is in a folder");
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&at, &page));
    written.map_err(|error| format!("{PAGE}: {error}"))?;
    Ok((PAGE, page.len()))
}

/// Runs a command. Returns what it prints.
fn run(command: &mut Command, name: &str) -> Result<Vec<u8>, String> {
    let output = command.stderr(std::process::Stdio::inherit()).output();
    match output {
        Ok(output) if output.status.success() => Ok(output.stdout),
        Ok(output) => Err(format!("{name}: {}", output.status)),
        Err(error) => Err(format!("{name}: {error}")),
    }
}

fn text(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Examples and lessons as JSON, and each of their files once.
fn bundled(root: &Path) -> Result<String, String> {
    let example = |(title, question): &Example| format!("{{\"title\":{title:?},\"question\":{question}}}");
    let (examples, lessons) = (EXAMPLES.iter().map(example).collect::<Vec<_>>(), lessons::bundled(root)?);
    let words = examples.iter().chain(&lessons).flat_map(|text| text.split('"'));
    let paths: BTreeSet<&str> = words.filter(|word| word.starts_with("examples/")).collect();
    let file = |path: &str| {
        let bytes = std::fs::read(root.join(path)).map_err(|error| format!("{path}: {error}"))?;
        Ok(format!("{path:?}:{:?}", base64(&bytes)))
    };
    let files: Vec<String> = paths.into_iter().map(file).collect::<Result<_, String>>()?;
    let all = [files, examples, lessons, experiments(root)?].map(|all| all.join(","));
    let [files, examples, lessons, experiments] = all;
    let lists = format!("\"list\":[{examples}],\"lessons\":[{lessons}],\"experiments\":[{experiments}]");
    Ok(format!("{{\"files\":{{{files}}},{lists}}}"))
}

/// The name and the title of each experiment that comes with the program.
fn experiments(root: &Path) -> Result<Vec<String>, String> {
    let folder = root.join(EXPERIMENTS);
    let wrong = |what: &str| format!("{}: {what}", folder.display());
    let entries = std::fs::read_dir(&folder).map_err(|error| wrong(&error.to_string()))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let one = |path: &std::path::PathBuf| {
        let (text, name) = (text(path)?, path.file_stem().unwrap_or_default().to_string_lossy());
        let title = text.lines().find_map(|line| line.strip_prefix("title = "));
        let title = title.ok_or_else(|| wrong(&format!("{name} has no title")))?;
        Ok(format!("{{\"name\":{name:?},\"title\":{title}}}"))
    };
    paths.iter().map(one).collect()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let four = |three: &[u8]| {
        let bits = three.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        let digit = |at: usize| match at <= three.len() {
            true => char::from(DIGITS[(bits >> (18 - 6 * at) & 63) as usize]),
            false => '=',
        };
        (0..4).map(digit).collect::<String>()
    };
    bytes.chunks(3).map(four).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_are_written_as_base64() {
        let check = |bytes: &[u8], expected| assert_eq!(super::base64(bytes), expected);
        check(b"", "");
        check(b"f", "Zg==");
        check(b"fo", "Zm8=");
        check(b"foo", "Zm9v");
        check(&[0xff, 0xfe, 0xfd, 0], "//79AA==");
    }
}
