//! `slablab generate`: files for man and for shells, from the same definitions as `--help`, the JSON Schemas,
//! and the types of the answers for Python.

use crate::laboratory::schema;
use crate::outcome::{Done, Failure};
use crate::output::write_out;
use clap::Command;
use std::path::PathBuf;

/// Writes man pages, completions, schemas or types.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// The man page of the program or of a verb, or all into a folder
    Man(ManArgs),
    /// Completions of this program's words for a shell
    Completions(CompletionsArgs),
    /// The JSON Schema of a verb's answer, or all into a folder
    Schemas(schema::Args),
    /// The types of all answers for Python: a TypedDict for each object of their JSON
    Types(schema::TypesArgs),
}

pub(crate) fn run(args: &Args, command: Command) -> Result<Done, Failure> {
    match &args.what {
        What::Man(args) => man(args, command),
        What::Completions(args) => completions(args, command),
        What::Schemas(args) => schema::run(args),
        What::Types(args) => schema::types(args),
    }
}

/// Prints completions.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  slablab generate completions bash > /etc/bash_completion.d/slablab\n  slablab generate completions zsh > ~/.zfunc/_slablab\n  slablab generate completions fish > ~/.config/fish/completions/slablab.fish"
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
    after_help = "Examples:\n  slablab generate man | man -l -\n  slablab generate man replay | man -l -\n  slablab generate man --folder /usr/local/share/man/man1"
)]
pub(crate) struct ManArgs {
    /// The verb whose page is printed; without it, that of the program
    #[arg(value_name = "VERB", conflicts_with = "folder")]
    verb: Option<String>,
    /// Write the pages of the program and of every verb into FOLDER
    #[arg(short = 'd', long, alias = "all", value_name = "FOLDER", conflicts_with = "output")]
    folder: Option<PathBuf>,
    /// Write the page to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn completions(args: &CompletionsArgs, command: Command) -> Result<Done, Failure> {
    // A shell would offer verbs that `--help` hides, too.
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned();
    let shown = Command::new("slablab").version(env!("CARGO_PKG_VERSION"));
    let mut shown = shown.args(command.get_arguments().cloned()).subcommands(verbs);
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut shown, "slablab", &mut text);
    write_out(&String::from_utf8(text)?, args.output.as_deref())?;
    Ok(Done::Complete)
}

pub(crate) fn man(args: &ManArgs, command: Command) -> Result<Done, Failure> {
    let pages = pages(command);
    let Some(folder) = &args.folder else {
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
        write_out(page, args.output.as_deref())?;
        return Ok(Done::Complete);
    };
    for (name, page) in &pages {
        write_out(page, Some(&folder.join(format!("{name}.1"))))?;
    }
    Ok(Done::Complete)
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
