//! `slablab what`: the purpose of a cache, the code that creates it, and how to shrink it.

use crate::input::expect_file;
use crate::outcome::{Done, Failure, tell};
use crate::output::write_out;
use slablab_doctor::Asked;
use slablab_doctor::output::what_list_answer;
use slablab_doctor::what::{Entry, Known};
use slablab_report::{Answer, json};
use std::path::{Path, PathBuf};

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

/// Explains the arguments: a name, a message, or a file with either.
fn explain(known: &Known, arguments: &[String]) -> Result<(Answer, Vec<String>), Failure> {
    let mut asked = Asked::of(known);
    for argument in arguments {
        let is_file = argument == "-" || Path::new(argument).is_file();
        if is_file && !asked.is_name(argument) {
            asked.file(Path::new(argument))?;
        } else {
            asked.text(argument);
        }
    }
    Ok(asked.answer()?)
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
