//! The answers of `slablab linux`.

use super::allocator::Allocator;
use super::built::{Built, Entry};
use super::config::Change;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};
use slablab_report::column::{Columns, Style};
use slablab_report::document::{Named, named};
use slablab_report::html::Cell;
use slablab_report::html::number;
use slablab_report::text::counted;
use slablab_report::{Answer, Document, visible};

/// The most changed options and symbols that an answer lists unless it is asked for all.
const FEW: usize = 12;

#[derive(Serialize, JsonSchema)]
struct BuiltDocument<'a> {
    /// What follows `linux:` in the name of the engine.
    name: &'a str,
    /// The folder of the images.
    folder: String,
    /// The folder of the kernel tree.
    tree: String,
    /// The release of the tree.
    release: &'a str,
    allocator: Allocator,
    /// The user's configuration; null for the program's own.
    config: Option<String>,
    /// Options that the image has with another value than the user's configuration.
    changes: &'a [Change],
    /// The first line of the compiler's --version.
    compiler: &'a str,
    /// The first line of the linker's --version.
    linker: &'a str,
    /// The SHA-256 of everything that the build was made of: builds with the same are the same.
    digest: &'a str,
    /// Whether this command built it; false if it was there.
    is_new: bool,
    /// Files of the tree that were read.
    source_files: usize,
    /// Functions that have no meaning outside of a kernel: a call ends the run and names the function.
    missing_functions: &'a [String],
    /// Data that has no meaning outside of a kernel, and is zeros.
    zeroed_data: &'a [String],
    /// Seconds of the build.
    build_seconds: f64,
    parts: Vec<PartDocument<'a>>,
    /// Bytes of both images.
    images_bytes: u64,
}

/// A part of the build.
#[derive(Serialize, JsonSchema)]
struct PartDocument<'a> {
    part: &'a str,
    seconds: f64,
}

impl Document for BuiltDocument<'_> {
    const NAME: &'static str = "slablab.linux-build.1";
    const TITLE: &'static str = "slablab linux build: the allocator of a kernel tree as an engine";
}

#[derive(Serialize, JsonSchema)]
struct ListDocument {
    #[schemars(schema_with = "builds")]
    builds: Vec<Map<String, Value>>,
}

impl Document for ListDocument {
    const NAME: &str = "slablab.linux-list.1";
    const TITLE: &str = "slablab linux list: the allocators of kernel trees that are built";
}

#[derive(Serialize, JsonSchema)]
struct RemovedDocument<'a> {
    /// The names of the builds.
    removed: &'a [String],
    /// Bytes of their folders, and of what kbuild made for them.
    removed_bytes: u64,
}

impl Document for RemovedDocument<'_> {
    const NAME: &'static str = "slablab.linux-remove.1";
    const TITLE: &'static str = "slablab linux remove: builds that were removed";
}

#[derive(Serialize, JsonSchema)]
struct UntouchedDocument<'a> {
    /// The patches.
    patch: &'a str,
    /// The commit that they are for, or the tree of a folder without commits.
    base: &'a str,
    /// Files that they change.
    files: &'a [String],
    /// Files of the tree that the build reads.
    source_files: usize,
}

impl Document for UntouchedDocument<'_> {
    const NAME: &'static str = "slablab.linux-patch.1";
    const TITLE: &'static str = "slablab linux patch: a patch that touches nothing of the allocator";
}

/// The schemas of these answers.
pub fn schemas() -> Vec<Named> {
    vec![
        named::<BuiltDocument>(),
        named::<ListDocument>(),
        named::<RemovedDocument>(),
        named::<UntouchedDocument>(),
    ]
}

/// The answer of a build. With `wide` it lists every changed option and every symbol without a meaning.
pub fn built_answer(built: &Built, wide: bool) -> Answer {
    let config = built.config.as_ref().map(|path| visible::path(path));
    let document = BuiltDocument {
        name: &built.name,
        folder: built.folder.display().to_string(),
        tree: built.tree.display().to_string(),
        release: &built.release,
        allocator: built.allocator,
        config: built.config.as_ref().map(|path| path.display().to_string()),
        changes: &built.changes,
        compiler: built.compiler(),
        linker: built.linker(),
        digest: &built.digest,
        is_new: built.is_new,
        source_files: built.sources,
        missing_functions: &built.functions,
        zeroed_data: &built.data,
        build_seconds: built.seconds,
        parts: built.parts.iter().map(|(part, seconds)| PartDocument { part, seconds: *seconds }).collect(),
        images_bytes: built.bytes,
    };
    let answer = Answer::new("The allocator of a kernel tree", sentence(built))
        .document(&document)
        .rows(parts().frame(&built.parts))
        .facts([
            ("Release", Cell::Text(built.release.clone())),
            ("Allocator", Cell::Text(built.allocator.title().into())),
            ("Images", Cell::Bytes(built.bytes)),
        ])
        .line(format!("tree: {}, {} read", visible::path(&built.tree), counted(built.sources as u64, "file")))
        .line(format!(
            "configuration: {}",
            config.unwrap_or_else(|| "tinyconfig with what an image needs".into())
        ))
        .line(format!("compiler: {}; linker: {}", built.compiler(), built.linker()))
        .line(format!("kept in {}", visible::path(&built.folder)));
    let answer = changes(answer, built, wide);
    let answer = symbols(answer, built, wide);
    let times = built.parts.iter().map(|(part, seconds)| format!("{part} {seconds:.1} s"));
    answer.remarks([format!("Time: {}.", times.collect::<Vec<_>>().join(", "))])
}

fn sentence(built: &Built) -> String {
    let Built { name, release, .. } = built;
    let what = format!("The {} of Linux {release}", built.allocator.title());
    match built.is_new {
        true => format!(
            "{what} is built: `--engine linux:{name}` runs it; {:.0} s, {}.",
            built.seconds,
            number::bytes(built.bytes)
        ),
        false => {
            format!("{what} was built before, and its tree has not changed: `--engine linux:{name}` runs it.")
        }
    }
}

/// Adds what of the user's configuration is another value: what an image needs, then what follows from it.
fn changes(answer: Answer, built: &Built, wide: bool) -> Answer {
    let (needed, others): (Vec<&Change>, Vec<&Change>) =
        built.changes.iter().partition(|change| change.needed);
    let listed = |changes: &[&Change]| {
        let words = changes
            .iter()
            .map(|change| format!("{} {} to {}", change.option, change.user_value, change.image_value));
        few(words.collect(), wide)
    };
    let parts = [("changed for the image", needed), ("changed with these", others)];
    let parts = parts.into_iter().filter(|(_, changes)| !changes.is_empty());
    parts.fold(answer, |answer, (words, changes)| {
        answer.entry(format!("{words}: {}", counted(changes.len() as u64, "option")), [listed(&changes)])
    })
}

/// Adds the symbols without a meaning.
fn symbols(answer: Answer, built: &Built, wide: bool) -> Answer {
    let count = |names: &[String], one: &str| counted(names.len() as u64, one);
    let functions = format!(
        "without a meaning here: {}, a call of which ends the run, and {} of data, which are zeros",
        count(&built.functions, "function"),
        count(&built.data, "symbol")
    );
    let below = [&built.functions, &built.data].map(|names| few(names.clone(), true));
    answer.entry(functions, below.into_iter().filter(|line| wide && !line.is_empty()))
}

/// Words in a line, the first of them if they are many.
fn few(words: Vec<String>, wide: bool) -> String {
    let most = if wide { words.len() } else { FEW.min(words.len()) };
    let rest = words.len() - most;
    let more = if rest > 0 { format!(", and {rest} more (--wide)") } else { String::new() };
    words[..most].join(", ") + &more
}

fn parts() -> Columns<(String, f64)> {
    Columns::default()
        .key("part", |row: &(String, f64)| Cell::Text(row.0.clone()))
        .key("seconds", |row| Cell::Number(row.1, 3))
}

fn columns() -> Columns<Entry> {
    let state = |row: &Entry| match &row.outdated {
        None => "up to date".to_string(),
        Some(_) => "outdated".into(),
    };
    Columns::default()
        .key("name", |row: &Entry| Cell::Name(row.name.clone()))
        .add("release", "release", "release", |row| Cell::Text(row.release.clone()))
        .words()
        .add("allocator", "allocator", "allocator", |row| Cell::Text(row.allocator.title().into()))
        .words()
        .add("size_bytes", "size", "size", |row| Cell::Bytes(row.bytes))
        .bytes()
        .people("state", "state", "state", move |row| Cell::Text(state(row)))
        .words()
        .add("tree", "tree", "tree", |row| Cell::Name(row.tree.clone()))
        .words()
        .key("outdated", |row| row.outdated.clone().map_or(Cell::Empty, Cell::Text))
        .or_unknown()
        .described("Why it is no longer what the tree has; null if it is up to date.")
        .key("built_at_s", |row| Cell::Count(row.time))
        .described("When it was built, in seconds since 1970.")
        .key("digest", |row| Cell::Text(row.digest.clone()))
}

/// The answer of a list of builds.
pub fn list_answer(entries: &[Entry]) -> Answer {
    let columns = columns();
    let sentence = match entries.len() as u64 {
        0 => "No allocator of a kernel tree is built: `slablab linux build PATH` builds one.".into(),
        number => {
            let old = entries.iter().filter(|entry| entry.outdated.is_some()).count();
            let old = if old > 0 {
                format!(", {old} of them not up to date with their trees")
            } else {
                String::new()
            };
            let bytes = entries.iter().map(|entry| entry.bytes).sum();
            let verb = if number == 1 { "is" } else { "are" };
            format!(
                "{} of kernel trees {verb} built ({}){old}: `--engine linux:NAME` runs one.",
                counted(number, "allocator"),
                number::bytes(bytes)
            )
        }
    };
    let name = |row: &Entry| Cell::Name(row.name.clone());
    let document = ListDocument { builds: entries.iter().map(|row| columns.json(row)).collect() };
    let answer =
        Answer::new("Allocators of kernel trees", sentence).document(&document).rows(columns.frame(entries));
    if entries.is_empty() {
        return answer;
    }
    let keys = ["release", "allocator", "size_bytes", "state", "tree"];
    let table = columns.text(("name", &name), &keys, entries, Style::Kib);
    let why =
        entries.iter().filter_map(|entry| Some(format!("{}: {}", entry.name, entry.outdated.as_ref()?)));
    answer.table(table, &["tree"]).remarks(why.collect::<Vec<_>>())
}

/// The answer of a removal.
pub fn removed_answer(names: &[String], bytes: u64) -> Answer {
    let sentence = match names {
        [] => format!("No build is left; {} are free.", number::bytes(bytes)),
        [name] => format!("The build {name} is removed: {} are free.", number::bytes(bytes)),
        names => format!(
            "{} are removed: {} are free.",
            counted(names.len() as u64, "build"),
            number::bytes(bytes)
        ),
    };
    let columns = Columns::default().key("name", |row: &String| Cell::Name(row.clone()));
    let document = RemovedDocument { removed: names, removed_bytes: bytes };
    Answer::new("Removed builds", sentence).document(&document).rows(columns.frame(names))
}

/// The answer about a patch to files that the build of the allocator does not read: nothing is run.
pub fn untouched_answer(patch: &str, base: &str, files: &[String], read: usize) -> Answer {
    let sentence = format!(
        "{patch} changes {}, of which the build of the allocator reads none: the numbers are those of the base.",
        counted(files.len() as u64, "file")
    );
    let columns = Columns::default().key("file", |file: &String| Cell::Name(file.clone()));
    let document = UntouchedDocument { patch, base, files, source_files: read };
    Answer::new("A patch", sentence)
        .document(&document)
        .rows(columns.frame(files))
        .list(files.iter().take(FEW).cloned())
        .remarks([format!("The build reads {} of the tree.", counted(read as u64, "file"))])
}

/// The schema of the builds: that of their columns.
fn builds(_: &mut SchemaGenerator) -> Schema {
    let example = Entry {
        name: String::new(),
        release: String::new(),
        allocator: Allocator::Slub,
        tree: String::new(),
        bytes: 0,
        outdated: Some(String::new()),
        time: 0,
        digest: String::new(),
    };
    let row = columns().schema(&example);
    Schema::try_from(json!({ "type": "array", "items": row })).expect("an object is a schema")
}
