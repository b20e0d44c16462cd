//! `slablab what`: the purpose of a cache, the code that creates it, and how to shrink it.

use crate::input::expect_file;
use crate::outcome::{Done, Failure, tell};
use crate::output::write_out;
use slablab_doctor::output::{what_answer, what_list_answer};
use slablab_doctor::state;
use slablab_doctor::what::{self, Entry, Known, Merged};
use slablab_report::{Answer, json};
use slablab_slabs::Release;
use std::path::{Path, PathBuf};

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
    /// All columns, also those that do not fit the terminal
    #[arg(long)]
    wide: bool,
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
    let (answer, unknown) = match &args.list {
        Some(pattern) => (list(known, pattern)?, Vec::new()),
        None if args.names.is_empty() => {
            return Err("expected the name of a cache, a message of the kernel or a file; --list prints all known caches".into());
        }
        None => explain(known, &args.names)?,
    };
    let text = match args.format {
        Format::Text => answer.text(args.wide),
        Format::Json => json::document(&answer.json()),
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
    corruptions: Vec<what::Corruption>,
    release: Option<Release>,
}

impl Asked {
    /// Reads the arguments: a name, a message, or a file with either.
    fn of(known: &Known, arguments: &[String]) -> Result<Asked, Failure> {
        let mut asked = Asked::default();
        for argument in arguments {
            let is_name = Merged::parse(argument).is_some() || known.find(argument).is_some();
            let messages = what::Failure::in_text(argument, PAGE);
            let corruptions = what::corruptions_in(argument);
            if !is_name && (argument == "-" || Path::new(argument).is_file()) {
                asked.file(known, argument)?;
            } else if messages.is_empty() && corruptions.is_empty() {
                asked.names.push(argument.clone());
            } else {
                asked.messages.extend(messages);
                asked.corruptions.extend(corruptions);
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
        let memory = state.dump.meminfo.get("MemTotal").map(|kb| kb.saturating_mul(1024));
        let messages: Vec<_> = messages.into_iter().map(|message| message.beside(memory)).collect();
        let corruptions =
            state.dump.pasted.as_ref().map(|pasted| pasted.corruptions.clone()).unwrap_or_default();
        let mut caches: Vec<_> =
            state.caches.iter().filter(|cache| known.find(&cache.name).is_some()).collect();
        caches.sort_by_key(|cache| std::cmp::Reverse(cache.bytes(state.page_size)));
        if messages.is_empty() && caches.is_empty() && corruptions.is_empty() {
            return Err(format!(
                "{path}: no message about slabs and no known cache is in it; see slablab doctor {path}"
            )
            .into());
        }
        self.messages.extend(messages);
        self.release = state.release.or(self.release);
        self.corruptions.extend(corruptions);
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
fn explain(known: &Known, arguments: &[String]) -> Result<(Answer, Vec<String>), Failure> {
    let Asked { names, messages, corruptions, release } = Asked::of(known, arguments)?;
    let is_known = |name: &String| Merged::parse(name).is_some() || known.find(name).is_some();
    let (names, unknown): (Vec<String>, Vec<String>) = names.into_iter().partition(is_known);
    let unknown: Vec<String> = unknown.iter().map(|name| complaint(known, name)).collect();
    if names.is_empty() && messages.is_empty() && corruptions.is_empty() {
        return Err(unknown.join("\n").into());
    }
    let damaged = what::Damaged::all(&corruptions, release);
    Ok((what_answer(known, &names, &messages, &damaged), unknown))
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

fn list(known: &Known, pattern: &str) -> Result<Answer, Failure> {
    let entries: Vec<&Entry> = known.entries().iter().filter(|entry| glob(pattern, &entry.name)).collect();
    if entries.is_empty() {
        return Err(format!(
            "--list {pattern}: no such cache; expected a name, perhaps with *, as in 'ext4*'"
        )
        .into());
    }
    Ok(what_list_answer(known, pattern, &entries))
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
