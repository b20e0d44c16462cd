//! The parser for fuzzing: any bytes must give a script or an error with its place, never a panic.

use super::{Batches, Command, Process, Script};

/// Accesses of one command that are looked at, and pages of an object whose tables are made.
const ACCESSES: usize = 4096;
const PAGES: u32 = 1 << 16;

/// Reads a script, and those that it spawns, which follow behind a NUL each: the first `spawn` that names
/// a new path gets the next one. Then it asks for accesses. A fuzzer calls it; the tests call it with the
/// files of `corpus/script`, cut off and changed.
pub fn fuzz(data: &[u8]) {
    let mut texts = data.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let main = texts.next().unwrap_or_default();
    let mut load = |path: &str| match texts.next() {
        Some(text) => Ok(text.into_owned()),
        None => Err(format!("no text for {path}")),
    };
    match Script::parse("main.t", &main, &mut load) {
        Ok(script) => walk(&script, &mut Process::new(&script)),
        Err(error) => {
            assert!(error.line > 0 && !error.expected.is_empty(), "an error without a place: {error:?}")
        }
    }
}

fn walk(script: &Script, process: &mut Process) {
    for line in &script.commands {
        match &line.command {
            Command::Seed(seed) => process.seed(*seed),
            Command::Rewind(object) => process.rewind(*object),
            Command::Spawn(child) => {
                let script = &script.child(*child).script;
                walk(script, &mut process.spawn(script));
            }
            Command::Access { rounds, groups } => {
                let is_small = groups.iter().all(|group| script.object(group.object).pages <= PAGES);
                let mut batches = Batches::new(*rounds, groups);
                let mut left = if is_small { ACCESSES } else { 0 };
                while let Some(batch) = (left > 0).then(|| batches.next(process)).flatten() {
                    assert!(!batch.pages.is_empty(), "a batch of nothing");
                    left = left.saturating_sub(batch.pages.len());
                }
            }
            _ => {}
        }
    }
}
