//! `slablab bench -- PROGRAM`: any program under allocators that are preloaded.

use super::{Args, Watch, ended};
use crate::input::{Progress, command_line, expect_file};
use crate::interrupts::polled;
use crate::outcome::{Done, Failure};
use crate::output::named;
use slablab_bench::output::program_answer;
use slablab_bench::programs::judged::Judged;
use slablab_bench::programs::{self, Options, chosen};
use std::path::PathBuf;

pub(super) fn run(args: Args) -> Result<Done, Failure> {
    args.out.check(named("--input", &args.input))?;
    args.input.as_deref().map(|path| expect_file("--input", path, "what the program reads")).transpose()?;
    args.out.expect_writable()?;
    let allocators = chosen(&args.allocators, &args.allocator, &beside())?;
    let signal = polled()?;
    let options = Options {
        words: args.program,
        allocators,
        repeats: args.repeats as usize,
        warmup: args.warmup as usize,
        seed: args.seed,
        input: args.input,
        fails: args.ignore_failure,
    };
    let watch = Watch { progress: Progress::new("bench"), signal: signal.clone() };
    let measured = programs::run(&options, &watch);
    drop(watch);
    let ended = ended(&signal);
    let measured = match measured {
        // The program got the signal too: that is no error of its own.
        Err(_) if !matches!(ended, Done::Complete) => return Ok(ended),
        measured => measured?,
    };
    if let Some(judged) = Judged::new(&measured) {
        args.out.answer(&program_answer(&judged), &command_line(), args.wide)?;
    }
    Ok(ended)
}

/// Where a build or an installation of slablab has its library: beside this program, or in the `lib` beside
/// the program's folder.
fn beside() -> Vec<PathBuf> {
    let folder = std::env::current_exe().ok().and_then(|path| Some(path.parent()?.to_path_buf()));
    folder.into_iter().flat_map(|folder| [folder.join("../lib"), folder].into_iter().rev()).collect()
}
