//! `SLABLAB_STATS` as JSON: a program with counts that are known runs under the library.

use crate::common::{folder, text};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

#[path = "../../../c/tests/library/mod.rs"]
mod library;

/// The program `counts.c`, which says what it holds.
fn counts() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../c/tests/counts.c");
        let program = folder("counts").join("counts");
        let mut compiler = Command::new("cc");
        compiler.args(["-std=gnu11", "-O1", "-Wall", "-pthread"]).arg(source).arg("-o").arg(&program);
        let done = compiler.output().expect("a machine that builds Rust has a compiler for C");
        assert!(done.status.success(), "{}", text(&done.stderr));
        program
    })
}

/// The program, started under the library; it holds its objects until its standard input is closed.
struct Running(Child);

impl Running {
    fn start(variables: &[(&str, &str)]) -> Running {
        let mut command = Command::new(counts());
        command.env("LD_PRELOAD", library::folder().join("libslablab.so")).envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let mut line = String::new();
        let said = BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line);
        assert_eq!((said.expect("it is read"), line.as_str()), (6, "ready\n"));
        Running(child)
    }

    /// Lets the program end, and returns what it said on standard error.
    fn end(mut self) -> String {
        drop(self.0.stdin.take());
        let done = self.0.wait_with_output().expect("it ends");
        assert!(done.status.success(), "{}: {}", done.status, text(&done.stderr));
        text(&done.stderr)
    }
}

fn number(value: &Value, field: &str) -> u64 {
    value[field].as_u64().unwrap_or_else(|| panic!("no number {field} in {value}"))
}

/// The cache that serves requests of `bytes` bytes.
fn cache(document: &Value, bytes: u64) -> &Value {
    let caches = document["caches"].as_array().expect("caches");
    let found = caches.iter().filter(|cache| number(cache, "object_bytes") >= bytes);
    found.min_by_key(|cache| number(cache, "object_bytes")).expect("a class of this size")
}

/// What `counts.c` says that it holds.
fn check_counts(document: &Value, engine: &str) {
    let small = cache(document, 700);
    assert_eq!(number(small, "live_objects"), 3000 - 1000 + 500 - 200, "{engine}: {small}");
    assert_eq!(number(cache(document, 24_000), "live_objects"), 40, "{engine}: {document}");
    let (heap, live) = (number(document, "heap_bytes"), number(document, "live_bytes"));
    assert!(live > 3_000_000 + 40 * 24_000 + 2300 * 700 && live <= heap, "{engine}: {live} of {heap}");
    for cache in document["caches"].as_array().expect("caches") {
        let [slabs, objects] = ["slabs", "objects"].map(|field| number(cache, field));
        assert_eq!(objects, slabs * number(cache, "objects_per_slab"), "{engine}: {cache}");
        let parts = ["live_objects", "parked_objects", "quarantined_objects", "free_objects"];
        assert_eq!(parts.map(|part| number(cache, part)).iter().sum::<u64>(), objects, "{engine}: {cache}");
        let page = number(document, "page_bytes");
        assert_eq!(
            number(cache, "bytes"),
            slabs * number(cache, "pages_per_slab") * page,
            "{engine}: {cache}"
        );
    }
    assert!(number(document, "minor_faults") > 400, "its objects have 2.5 MB: {document}");
}

#[test]
fn statistics_as_json() {
    for engine in library::ENGINES {
        let said = Running::start(&[("SLABLAB_STATS", "json"), ("SLABLAB_ENGINE", engine)]).end();
        assert_eq!(said.lines().count(), 1, "{engine}: {said}");
        let document: Value = serde_json::from_str(&said).unwrap_or_else(|bad| panic!("{bad}: {said}"));
        assert_eq!(document["schema"], "slablab.malloc.1");
        assert_eq!(document["engine"], *engine);
        check_counts(&document, engine);
    }
}

#[test]
fn statistics_go_to_a_file() {
    let folder = folder("malloc-stats");
    let path = folder.join("a-%p.json");
    let running = Running::start(&[("SLABLAB_STATS", path.to_str().expect("UTF-8"))]);
    let process = running.0.id();
    assert_eq!(running.end(), "");
    let written = std::fs::read(folder.join(format!("a-{process}.json"))).expect("it was written");
    let document: Value = serde_json::from_slice(&written).expect("JSON");
    assert_eq!(number(&document, "pid"), u64::from(process));
    check_counts(&document, "slub@7.1");
    let said = Running::start(&[("SLABLAB_STATS", "/nowhere/at/all.json")]).end();
    assert!(said.contains("/nowhere/at/all.json: No such file or directory"), "{said}");
    let said = Running::start(&[("SLABLAB_STATS", "yes")]).end();
    assert!(said.contains("expected 0, 1, json or a path"), "{said}");
}
