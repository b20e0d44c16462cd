//! Scripts of page accesses, and records of them.

use super::{Folder, answer, pick};
use slablab_experiment::output::judgement_answer;
use slablab_experiment::pressure::judge::judge as compared;
use slablab_experiment::pressure::runs::Runs;
use slablab_experiment::pressure::tally::{null_tallies, repeat_tallies};
use slablab_trace::script::{Batches, Command, Process, Script};

/// Accesses of a script that is run: the modelled machine does some millions in a second.
const ACCESSES_MOST: usize = 1 << 17;

/// `slablab pressure run SCRIPT`: of a script that ends soon.
pub fn run(data: &[u8]) -> Result<String, String> {
    let text = String::from_utf8_lossy(data);
    let mut alone = |_: &str| -> Result<String, String> { Err("a script of its own only".into()) };
    let script = Script::parse("main.t", &text, &mut alone).map_err(|error| format!("{error:?}"))?;
    if !is_short(&script) {
        return Err("too long".into());
    }
    let vms = ["vm@2.6.29", "vm@6.1", "vm@6.12,lru_gen", "vm@2.4.10"];
    answer(
        data,
        &format!("pressure run @0 --vm {}", pick(data, 2, &vms)),
        &["table", "json", "csv", "mmtests"],
    )
}

/// Whether a script makes few accesses, and waits for no other task.
fn is_short(script: &Script) -> bool {
    let mut process = Process::new(script);
    let mut left = ACCESSES_MOST;
    script.commands.iter().all(|line| match &line.command {
        Command::Access { rounds, groups } => {
            let mut batches = Batches::new(*rounds, groups);
            while left > 0 {
                let Some(batch) = batches.next(&mut process) else { break };
                left = left.saturating_sub(batch.pages.len().max(1));
            }
            left > 0
        }
        Command::Spawn(_) => false,
        _ => true,
    })
}

/// `slablab pressure judge --real RECORDS`: the records of an archive beside themselves.
pub fn judge(data: &[u8]) -> Result<String, String> {
    let folder = Folder::new(data);
    let runs = Runs::open(&folder.path("0")).map_err(|error| error.to_string())?;
    let judgement = compared(&runs, &runs);
    let answer = judgement_answer(&judgement, &null_tallies(&runs), &repeat_tallies(&runs));
    assert!(!answer.page("slablab pressure judge").is_empty(), "a page of nothing");
    let forms = ["table", "csv", "pages", "json"];
    Ok(forms.iter().filter_map(|form| answer.text_of(form, true)).collect())
}
