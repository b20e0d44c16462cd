//! `slablab what`: the purpose of a cache, the code that creates it, and how to shrink it.

use crate::input::expect_file;
use crate::outcome::{Done, Failure, tell};
use crate::output::write_out;
use serde_json::json;
use slablab_doctor::state;
use slablab_doctor::what::{self, Known, Merged};
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Columns where the output is no terminal, and the most on one: longer lines are hard to read.
const COLUMNS: (usize, usize) = (80, 100);
/// How many names an unknown one is answered with.
const NEAREST: usize = 5;
/// How many caches of a file are explained: the largest.
const LARGEST: usize = 5;
/// Bytes of a page where no machine is known.
const PAGE: u64 = 4096;

/// Explains caches by name, and the kernel's messages about slabs.
#[derive(clap::Args)]
#[group(id = "what")]
#[command(
    after_help = "Examples:\n  slablab what dentry kmalloc-1k\n  slablab what 'SLUB: Unable to allocate memory on node -1 (gfp=0x20)'\n  dmesg | slablab what -      its messages about slabs, and the caches in it"
)]
pub(crate) struct Args {
    /// Cache, as in /proc/slabinfo or /sys/kernel/slab; the kernel's message about a slab; or a file with
    /// such messages or a list of caches, - for standard input. Several are allowed
    names: Vec<String>,
    /// List all known caches, or the caches whose names match PATTERN (`*` matches any letters)
    #[arg(long, value_name = "PATTERN", num_args = 0..=1, default_missing_value = "*", conflicts_with = "names")]
    list: Option<String>,
    /// TOML file with more caches, as docs/caches.md describes it; its entries replace built-in ones
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Format of the answer
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

pub(crate) fn run(args: Args) -> Result<Done, Failure> {
    let own;
    let known = match &args.data {
        Some(path) => {
            own = Known::read(expect_file("--data", path, "a file as docs/caches.md describes it")?)?;
            &own
        }
        None => Known::builtin(),
    };
    let (text, unknown) = match &args.list {
        Some(pattern) => (list(known, pattern, args.format)?, Vec::new()),
        None if args.names.is_empty() => {
            return Err("expected the name of a cache, a message of the kernel or a file; --list prints all known caches".into());
        }
        None => explain(known, &args.names, args.format)?,
    };
    write_out(&text, None)?;
    unknown.iter().for_each(tell);
    Ok(if unknown.is_empty() { Done::Complete } else { Done::Incomplete })
}

/// What the user asked for: names of caches, and messages.
#[derive(Default)]
struct Asked {
    names: Vec<String>,
    messages: Vec<what::Failure>,
}

impl Asked {
    /// Reads the arguments: a name, a message, or a file with either.
    fn of(known: &Known, arguments: &[String]) -> Result<Asked, Failure> {
        let mut asked = Asked::default();
        for argument in arguments {
            let is_name = Merged::parse(argument).is_some() || known.find(argument).is_some();
            let messages = what::Failure::in_text(argument, PAGE);
            if !is_name && (argument == "-" || Path::new(argument).is_file()) {
                asked.file(known, argument)?;
            } else if messages.is_empty() {
                asked.names.push(argument.clone());
            } else {
                asked.messages.extend(messages);
            }
        }
        Ok(asked)
    }

    /// All messages of a file, and the largest of its caches that are known.
    fn file(&mut self, known: &Known, path: &str) -> Result<(), Failure> {
        let state = state::read(&state::Input { path: Some(path.into()), ..state::Input::default() })?;
        let failures = state.dump.pasted.iter().flat_map(|pasted| &pasted.failures).cloned();
        let failures: Vec<_> = failures.collect();
        let messages = what::Failure::all(&failures, state.release, state.page_size);
        let mut caches: Vec<_> =
            state.caches.iter().filter(|cache| known.find(&cache.name).is_some()).collect();
        caches.sort_by_key(|cache| std::cmp::Reverse(cache.bytes(state.page_size)));
        if messages.is_empty() && caches.is_empty() {
            return Err(format!(
                "{path}: no message about slabs and no known cache is in it; see slablab doctor {path}"
            )
            .into());
        }
        self.messages.extend(messages);
        for cache in caches.into_iter().take(LARGEST) {
            if !self.names.contains(&cache.name) {
                self.names.push(cache.name.clone());
            }
        }
        Ok(())
    }
}

/// Explains the messages and the known caches, and complains of each unknown name. It is an error if nothing
/// is known.
fn explain(known: &Known, arguments: &[String], format: Format) -> Result<(String, Vec<String>), Failure> {
    let Asked { names, messages } = Asked::of(known, arguments)?;
    let is_known = |name: &String| Merged::parse(name).is_some() || known.find(name).is_some();
    let (names, unknown): (Vec<String>, Vec<String>) = names.into_iter().partition(is_known);
    let unknown: Vec<String> = unknown.iter().map(|name| complaint(known, name)).collect();
    if names.is_empty() && messages.is_empty() {
        return Err(unknown.join("\n").into());
    }
    let width = width();
    let mut pages: Vec<String> =
        messages.iter().map(|message| what::failure_page(known, message, width)).collect();
    let mut values = Vec::new();
    for name in &names {
        match (Merged::parse(name), known.find(name)) {
            (Some(merged), _) => {
                pages.push(what::slot_page(known, &merged, name, width));
                values.push(what::slot_json(known, &merged, name));
            }
            (None, Some(entry)) => {
                pages.push(what::page(known, entry, name, width));
                values.push(what::json(known, entry, name));
            }
            (None, None) => unreachable!("{name} was looked up before"),
        }
    }
    let text = match format {
        Format::Text => pages.join("\n"),
        Format::Json => {
            let messages: Vec<_> = messages.iter().map(|message| message.json(known)).collect();
            document(values, messages)
        }
    };
    Ok((text, unknown))
}

fn complaint(known: &Known, name: &str) -> String {
    let nearest = known.nearest(name, NEAREST);
    let hint = if nearest.is_empty() {
        "`slablab what --list` has all names".to_string()
    } else {
        format!("did you mean {}?", nearest.join(", "))
    };
    format!("nothing is known about a cache {name:?}; {hint}")
}

fn list(known: &Known, pattern: &str, format: Format) -> Result<String, Failure> {
    let entries: Vec<_> = known.entries().iter().filter(|entry| glob(pattern, &entry.name)).collect();
    if entries.is_empty() {
        return Err(format!(
            "--list {pattern}: no such cache; expected a name, perhaps with *, as in 'ext4*'"
        )
        .into());
    }
    if format == Format::Json {
        let values = entries.iter().map(|entry| what::json(known, entry, &entry.name)).collect();
        return Ok(document(values, Vec::new()));
    }
    let (name, width) = (entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0), width());
    let mut text = String::new();
    for entry in entries {
        writeln!(text, "{}", what::line(entry, name, width))?;
    }
    Ok(text)
}

fn document(caches: Vec<serde_json::Value>, messages: Vec<serde_json::Value>) -> String {
    let document = json!({ "schema": "slablab.what.1", "caches": caches, "messages": messages });
    crate::output::document(document)
}

/// Whether the pattern, where `*` stands for any letters or none, is the whole of the name.
fn glob(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            (0..=name.len()).filter(|at| name.is_char_boundary(*at)).any(|at| glob(rest, &name[at..]))
        }),
    }
}

fn width() -> usize {
    let terminal = || ratatui::crossterm::terminal::size().ok().map(|(columns, _)| usize::from(columns));
    let columns = if std::io::stdout().is_terminal() { terminal() } else { None };
    columns.unwrap_or(COLUMNS.0).clamp(40, COLUMNS.1)
}

#[cfg(test)]
mod tests {
    use super::glob;

    #[test]
    fn globs() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("*", "dentry", true),
            ("dentry", "dentry", true),
            ("dentry", "dentry2", false),
            ("ext4*", "ext4_inode_cache", true),
            ("*inode*", "ext4_inode_cache", true),
            ("*inode", "ext4_inode_cache", false),
            ("k*c-*k", "kmalloc-64k", true),
            ("k*c-*k", "kmalloc-64", false),
        ] {
            assert_eq!(glob(pattern, name), expected, "{pattern} {name}");
        }
    }
}
