//! One function for each verb for fuzzing: from the bytes of its inputs to the printed answer.
//!
//! `slablab_readers::fuzz` stops at the values that a reader gives. These functions run the verb itself,
//! with its arguments, on files with the bytes. Any bytes must give an answer, or an error for the user: no
//! panic, no hang, and no control character in the answer. A verb with several inputs takes them from one
//! run of bytes, with [`SEPARATOR`] between them. What else varies (engine, format, machine) is drawn from
//! the bytes, so that one input is one run.
//!
//! The tests run each target on changed files of the project; `fuzz/` has the targets for cargo-fuzz.
//! Neither shows that an answer is right.

pub mod pressure;
#[cfg(test)]
mod tests;

use crate::program::run_words;
use slablab_replay::import::{self, Input};
use slablab_replay::output::import_answer;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// From bytes to the answer as it is printed, or the error; empty where the verb prints on standard output
/// only.
pub type Target = fn(&[u8]) -> Result<String, String>;

/// Between the inputs of a verb that takes several.
pub const SEPARATOR: &[u8] = b"\n--- next input ---\n";

/// All targets by name.
pub const ALL: &[(&str, Target)] = &[
    ("import", self::import),
    ("replay", replay),
    ("replay-before", replay_before),
    ("replay-machine", replay_machine),
    ("map", map),
    ("explain", explain),
    ("verify", verify),
    ("sites", sites),
    ("doctor", doctor),
    ("doctor-since", doctor_since),
    ("leak", leak),
    ("fleet", fleet),
    ("whatif", whatif),
    ("what", what),
    ("what-data", what_data),
    ("compare", compare),
    ("run", run),
    ("show", show),
    ("pressure-run", pressure::run),
    ("judge", pressure::judge),
    ("top", top),
];

/// Engines of every kind, and what can be around them.
const ENGINES: [&str; 12] = [
    "slub@2.6.29,max_order=10",
    "slub@2.6.29",
    "slub@6.1",
    "slub@7.1",
    "slqb@2009-01",
    "slqb",
    "slab@2.4",
    "slab@2.6.29",
    "slab@6.1",
    "slob",
    "slub@6.1,debug=FZPU",
    "slab@2.6.29,harden=random,debug=Z",
];

/// `slablab import`.
pub fn import(data: &[u8]) -> Result<String, String> {
    let folder = Folder::new(data);
    let (path, output) = (folder.path("0"), folder.path("trace"));
    let input = Input { path: &path, recording: None, formats: None };
    let report = import::import(input, &output, &mut |_| {}).map_err(|error| error.to_string())?;
    let answer = import_answer(&report);
    Ok(answer.text(false) + &answer.json().to_string())
}

/// `slablab replay RECORDING`, with a page.
pub fn replay(data: &[u8]) -> Result<String, String> {
    let machine = pick(data, 1, &["", "--machine @pages"]);
    let words = format!("replay @0 --engine {} {machine} --html @page -o @out", pick(data, 2, &ENGINES));
    answer(data, &words, &["table", "json", "csv"])
}

/// `slablab replay RECORDING --before DUMP`.
pub fn replay_before(data: &[u8]) -> Result<String, String> {
    let words = format!("replay @0 --before @1 --force --engine {} -o @out", pick(data, 2, &ENGINES));
    answer(data, &words, &["table", "json", "csv"])
}

/// `slablab replay RECORDING --machine FILE`.
pub fn replay_machine(data: &[u8]) -> Result<String, String> {
    let words = format!("replay @0 --machine @1 --engine {} -o @out", pick(data, 2, &ENGINES));
    answer(data, &words, &["table", "json", "csv"])
}

/// `slablab replay RECORDING --map FILE`.
pub fn map(data: &[u8]) -> Result<String, String> {
    let engine = pick(data, 2, &["slub@6.1", "slub@7.1", "slqb", "slab@6.1", "slob"]);
    answer(data, &format!("replay @0 --engine {engine} --map @map.html -o @out"), &["csv"])
}

/// `slablab explain RECORDING A B`.
pub fn explain(data: &[u8]) -> Result<String, String> {
    let pairs = ["slub@2.6.29 slub@6.1", "slub@6.1 slub@7.1", "slab@2.6.29 slab@6.1", "slqb slub@6.1"];
    let words = format!("explain @0 {} --exact 0 --samples 4 -o @out", pick(data, 2, &pairs));
    answer(data, &words, &["table", "json"])
}

/// `slablab verify RECORDING --before DUMP --after DUMP`.
pub fn verify(data: &[u8]) -> Result<String, String> {
    answer(data, "verify @0 --before @1 --after @2 --force -o @out", &["table", "json", "csv"])
}

/// `slablab sites INPUT`: a recording, /proc/allocinfo, or SLUB's lists.
pub fn sites(data: &[u8]) -> Result<String, String> {
    answer(data, "sites @0 --html @page -o @out", &["table", "json", "csv", "folded"])
}

/// `slablab doctor DUMP`.
pub fn doctor(data: &[u8]) -> Result<String, String> {
    let words = pick(data, 2, &["", "-a -B", "--page-size 64K --cpus 4096", "-s u -N 1000"]);
    answer(data, &format!("doctor @0 {words} --html @page -o @out"), &["table", "json", "csv", "prometheus"])
}

/// `slablab doctor DUMP --since DUMP`.
pub fn doctor_since(data: &[u8]) -> Result<String, String> {
    let words = pick(data, 2, &["--hours 0.001", "", "--hours 1000000"]);
    answer(
        data,
        &format!("doctor @0 --since @1 --force {words} -o @out"),
        &["table", "json", "csv", "prometheus"],
    )
}

/// `slablab leak DUMP --since DUMP`.
pub fn leak(data: &[u8]) -> Result<String, String> {
    answer(data, "leak @0 --since @1 --html @page -o @out", &["table", "json", "csv"])
}

/// `slablab fleet DUMP DUMP`.
pub fn fleet(data: &[u8]) -> Result<String, String> {
    answer(data, "fleet @0 @1 --html @page -o @out", &["table", "json", "csv"])
}

/// `slablab whatif DUMP CHANGE`.
pub fn whatif(data: &[u8]) -> Result<String, String> {
    let changes = [
        "--max-order 0,10",
        "--page-size 64K",
        "--cpus 1,4096",
        "--policy halving,patel-v3,slqb",
        "--engine slab@6.1 --engine slub@6.1,min_partial=0",
        "--merge off",
        "--debug FZPU",
        "--min-objects 1,4000000000",
        "--min-order 10",
    ];
    let words = format!("whatif @0 {} --html @page -o @out", pick(data, 2, &changes));
    answer(data, &words, &["table", "json", "csv", "mail"])
}

/// `slablab what FILE`: the caches and messages of a file.
pub fn what(data: &[u8]) -> Result<String, String> {
    answer(data, "what @0", &["text", "json"])
}

/// `slablab what --data FILE NAME`.
pub fn what_data(data: &[u8]) -> Result<String, String> {
    answer(data, pick(data, 2, &["what --data @0 dentry", "what --data @0 --list"]), &["text", "json"])
}

/// `slablab compare A.json B.json`.
pub fn compare(data: &[u8]) -> Result<String, String> {
    answer(data, "compare @0 @1 --force --html @page -o @out", &["text", "json", "csv"])
}

/// `slablab run EXPERIMENT --describe`: the file, its plan and its estimate. Nothing is run: an experiment
/// may ask for any number of runs.
pub fn run(data: &[u8]) -> Result<String, String> {
    answer(data, "run @0 --describe", &["table", "json"])
}

/// `slablab pressure show RECORD`.
pub fn show(data: &[u8]) -> Result<String, String> {
    answer(data, "pressure show @0 -o @out", &["table", "json", "csv"])
}

/// `slablab top PID`: the directory page of a process, and memory of noise behind it.
pub fn top(data: &[u8]) -> Result<String, String> {
    crate::laboratory::top::fuzz(data)
}

/// Runs a verb on the inputs of `data`: `@0` is the first, `@out` the answer, `@pages` a machine of 64K
/// pages.
fn answer(data: &[u8], words: &str, formats: &[&str]) -> Result<String, String> {
    let folder = Folder::new(data);
    let word = |word: &str| match word.strip_prefix('@') {
        Some(name) => folder.path(name).display().to_string(),
        None => word.to_string(),
    };
    let mut words: Vec<String> = words.split_whitespace().map(word).collect();
    words.extend(["--format".to_string(), pick(data, 3, formats).to_string()]);
    run_words(&words)?;
    Ok(fs::read_to_string(folder.path("out")).unwrap_or_default())
}

/// One of `all`, drawn from the bytes; `what` is the number of the draw.
fn pick<'a>(data: &[u8], what: u64, all: &[&'a str]) -> &'a str {
    // FNV-1a.
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    let hash = data.iter().fold(0xcbf2_9ce4_8422_2325 ^ what, mix);
    all[(hash >> 32) as usize % all.len()]
}

/// A folder with the inputs of one run, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(data: &[u8]) -> Folder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("slablab-fuzz-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = Folder(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).expect("a temporary folder");
        let mut rest = data;
        for number in 0..3 {
            let end = rest.windows(SEPARATOR.len()).position(|bytes| bytes == SEPARATOR);
            let (one, behind) =
                end.map_or((rest, &[][..]), |end| (&rest[..end], &rest[end + SEPARATOR.len()..]));
            folder.write(&number.to_string(), one);
            rest = behind;
        }
        folder.write(
            "pages",
            b"page_size = 65536\ncpus = 3\n[[nodes]]\nmemory = \"1G\"\n[[nodes]]\nmemory = \"1G\"",
        );
        folder
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).expect("a temporary file");
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new(&self.0).join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
