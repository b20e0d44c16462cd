//! `cargo xtask ci`: the project's checks as a list of steps. The program prints the seconds that each step
//! took.
//!
//! A step is one or more commands, which a contributor can also type. `cargo xtask ci --list` prints them.
//! Steps run one after another, from the cheap ones to the tests. The first step that fails ends the run.
//!
//! ```text
//! main           arguments
//!   steps          the list: name, purpose, commands, whether CI runs the step
//!   run            runs steps, prints seconds
//!     counts         adds up the summaries of the test runner
//!   book           `cargo xtask book`: the documents as a book
//!   page           `cargo xtask page`: slablab in a page
//!     lessons        those of docs/lessons.md, for the page
//!   results        `cargo xtask results`: the tables of docs/results, made again
//! ```
//!
//! Deliberately absent: dependencies. Every run of CI builds this program first.

mod book;
mod counts;
mod lessons;
mod page;
mod results;
mod run;
mod steps;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask ci [--only STEP]... [--list]
       cargo xtask book
       cargo xtask page
       cargo xtask results [NAME]... [--check] [--list] [--program PATH]

  --only STEP   run this step only; may be given several times
  --list        print every step with its commands, and run none

  book          write the documents as a book with search to target/book/html (needs mdbook)

  page          write slablab as a page for a browser to target/page/slablab.html (needs rustup's
                target wasm32-unknown-unknown)

  results       make the tables of docs/results again: those that take less than a minute
  NAME          those of a page (reproduce), or one (reproduce/002), however long it takes
  --check       write nothing; name the tables that are stale, and fail if there is one
  --list        print every table with its command and how long it takes
  --program     the slablab to run, instead of target/release/slablab";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match parse(&arguments) {
        Ok(Request::List) => {
            print!("{}", steps::list());
            ExitCode::SUCCESS
        }
        Ok(Request::Help) => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        Ok(Request::Run(only)) => run::run(&only),
        Ok(Request::Book) => match book::build(run::root()) {
            Ok((pages, links)) => {
                println!("target/book/html: {pages} pages, {links} links with a target");
                ExitCode::SUCCESS
            }
            Err(what) => {
                eprintln!("xtask: {what}");
                ExitCode::FAILURE
            }
        },
        Ok(Request::Page) => match page::build(run::root()) {
            Ok((page, bytes)) => {
                println!("{page}: {bytes} bytes");
                ExitCode::SUCCESS
            }
            Err(what) => {
                eprintln!("xtask: {what}");
                ExitCode::FAILURE
            }
        },
        Ok(Request::Results(options)) => match results::make(run::root(), &options) {
            Ok(stale) if stale.is_empty() => ExitCode::SUCCESS,
            Ok(stale) => {
                eprintln!("xtask: stale: {}; cargo xtask results {}", stale.join(", "), stale.join(" "));
                ExitCode::FAILURE
            }
            Err(what) => {
                eprintln!("xtask: {what}");
                ExitCode::FAILURE
            }
        },
        Err(what) => {
            eprintln!("xtask: {what}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// The request that the arguments contain.
enum Request {
    /// Print the steps.
    List,
    /// Print the usage.
    Help,
    /// Build the book.
    Book,
    /// Build the page.
    Page,
    /// Make the tables of docs/results.
    Results(results::Options),
    /// Run these steps.
    Run(Vec<&'static steps::Step>),
}

fn parse(arguments: &[String]) -> Result<Request, String> {
    let mut arguments = arguments.iter().map(String::as_str);
    match arguments.next() {
        Some("ci") => {}
        Some(command @ ("book" | "page")) => {
            return match arguments.next() {
                None => Ok(if command == "book" { Request::Book } else { Request::Page }),
                Some(other) => Err(format!("unknown argument {other:?} of {command}; expected none")),
            };
        }
        Some("results") => return results::parse(arguments).map(Request::Results),
        Some("-h" | "--help" | "help") => return Ok(Request::Help),
        Some(other) => return Err(format!("unknown command {other:?}; expected ci, book, page or results")),
        None => return Err("expected a command: ci, book, page or results".into()),
    }
    let mut only = Vec::new();
    while let Some(argument) = arguments.next() {
        match argument {
            "--only" => {
                let name = arguments.next().ok_or("--only expects the name of a step")?;
                let step = steps::STEPS.iter().find(|step| step.name == name);
                let names: Vec<&str> = steps::STEPS.iter().map(|step| step.name).collect();
                only.push(
                    step.ok_or_else(|| {
                        format!("unknown step {name:?}; expected one of {}", names.join(", "))
                    })?,
                );
            }
            "--list" => return Ok(Request::List),
            "-h" | "--help" => return Ok(Request::Help),
            other => return Err(format!("unknown argument {other:?}")),
        }
    }
    if only.is_empty() {
        only = steps::STEPS.iter().filter(|step| step.in_ci).collect();
    }
    Ok(Request::Run(only))
}
