//! `slablab completions` and `slablab man`: files for shells and for man, from the same definitions as
//! `--help`.

use crate::outcome::{Done, Failure};
use crate::output::write_out;
use clap::Command;
use slablab_trace::AtomicFile;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Prints completions.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab completions bash > /etc/bash_completion.d/slablab\n  slablab completions zsh > ~/.zfunc/_slablab\n  slablab completions fish > ~/.config/fish/completions/slablab.fish"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
    /// Write the completions to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Prints man pages.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab man | man -l -\n  slablab man replay | man -l -\n  slablab man --all /usr/local/share/man/man1"
)]
pub(crate) struct ManArgs {
    /// The verb whose page is printed; without it, that of the program
    #[arg(value_name = "VERB", conflicts_with = "all")]
    verb: Option<String>,
    /// Write the pages of the program and of every verb into DIR
    #[arg(long, value_name = "DIR")]
    all: Option<PathBuf>,
}

pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> Result<Done, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "slablab", &mut text);
    write_out(&String::from_utf8(text)?, args.output.as_deref())?;
    Ok(Done::Complete)
}

pub(crate) fn man(args: &ManArgs, command: Command) -> Result<Done, Failure> {
    let pages = pages(command);
    let Some(folder) = &args.all else {
        let wanted = match &args.verb {
            None => "slablab".to_string(),
            Some(verb) => format!("slablab-{verb}"),
        };
        let names = pages.iter().map(|(name, _)| name.trim_start_matches("slablab-"));
        let Some((_, page)) = pages.iter().find(|(name, _)| *name == wanted) else {
            let names: Vec<&str> = names.skip(1).collect();
            let verb = args.verb.as_deref().unwrap_or_default();
            return Err(format!("no verb {verb}: expected one of {}", names.join(", ")).into());
        };
        write_out(page, None)?;
        return Ok(Done::Complete);
    };
    for (name, page) in &pages {
        write_page(&folder.join(format!("{name}.1")), page)?;
    }
    Ok(Done::Complete)
}

fn write_page(path: &Path, page: &str) -> Result<(), Failure> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(page.as_bytes()).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(file.commit()?)
}

/// The page of the program, and of each verb and its own verbs: names as man knows them, and troff.
fn pages(mut command: Command) -> Vec<(String, String)> {
    fn add(command: &Command, name: &str, pages: &mut Vec<(String, String)>) {
        // clap_mangen leaks each name: a few, once.
        let shown: &'static str = Box::leak(name.to_string().into_boxed_str());
        let mut page = Vec::new();
        let of = command.clone().name(shown).display_name(shown).bin_name(name.replace('-', " "));
        clap_mangen::Man::new(of).render(&mut page).expect("writing to memory");
        // What stands below the options in `--help` are examples, a line each; man would join the lines.
        let page = String::from_utf8(page).expect("troff is text");
        let page = page.replace(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n.nf\n");
        pages.push((name.to_string(), page));
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help")
        {
            add(verb, &format!("{name}-{}", verb.get_name()), pages);
        }
    }
    command.build();
    let mut pages = Vec::new();
    add(&command, "slablab", &mut pages);
    pages
}
