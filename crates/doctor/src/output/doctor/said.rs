//! What the text and the page both say: findings, the kernel's messages, what can be done.

use super::super::what::{explained, explained_damage};
use super::words::{damaged, remedies, saving};
use crate::act::Report;
use crate::act::actions::Action;
use crate::act::verdict::Judgement;
use crate::what::{Failure, Known};
use crate::words::capital;
use slablab_report::Answer;
use slablab_report::html::chart::{Axis, Pair, Pairs, Scale};
use slablab_report::html::{Cell, Head, Table};

/// Findings, messages and actions.
pub(super) fn said(answer: Answer, report: &Report, messages: &[Failure]) -> Answer {
    let answer = findings(answer, report);
    const MOST: usize = 3;
    let explain = |answer, message| explained(answer, Known::builtin(), message);
    let answer = damaged(report).iter().take(MOST).fold(answer, explained_damage);
    actions(messages.iter().fold(answer, explain), report)
}

fn findings(answer: Answer, report: &Report) -> Answer {
    const NONE: &str = "none of at least 1 % of slab memory and 64 KiB";
    let (answer, findings) = (answer.heading("Findings").section("Findings"), &report.found.findings);
    if findings.is_empty() {
        return answer.list([NONE.into()]).paragraph(&format!("{}.", capital(NONE)));
    }
    let mut table = Table::new([Head::number("about"), Head::text("finding")]);
    for finding in findings {
        let about = if finding.bytes == 0 { Cell::Empty } else { Cell::Bytes(finding.bytes) };
        table.row([about, Cell::Text(finding.text.clone())]);
    }
    let caption = match report.measured.history {
        Some(_) => {
            "What is worth saying: growth, then most bytes first. One byte can be in several findings."
        }
        None => "What is worth saying, most bytes first. One byte can be in several findings.",
    };
    answer.list(findings.iter().map(|finding| finding.text.clone())).page_table(caption, table)
}

fn actions(answer: Answer, report: &Report) -> Answer {
    let answer = answer.section("What this kernel lets you do");
    if report.actions.is_empty() {
        return answer.paragraph(match report.measured.state.release {
            Some(_) => "No setting of this kernel would save enough slab memory to be worth its cost.",
            None => {
                "The input does not name the kernel's release, so its settings are unknown. \
                     Add uname -r, or take the dump with `slablab doctor --save FILE`."
            }
        });
    }
    let columns = ["saves at least", "at most"].map(Head::number);
    let heads = [Head::number("no."), Head::text("action"), Head::text("when")];
    let mut table = Table::new(heads.into_iter().chain(columns));
    for (number, action) in (1u64..).zip(&report.actions) {
        let saves = [action.saves.0, action.saves.1].map(Cell::ByteChange);
        let command = Cell::Name(action.command.clone());
        let cells = [Cell::Count(number), command, Cell::Text(action.way.words().into())];
        table.row(cells.into_iter().chain(saves));
    }
    // A chart has no room for commands, and a shortened one cannot be pasted: their numbers stand for them.
    let row = |(number, action): (u64, &Action)| Pair {
        label: format!("{number}. {}", action.knob),
        values: [action.saves.0 as f64, action.saves.1 as f64],
    };
    let chart = Pairs {
        names: ["at least".into(), "at most".into()],
        rows: (1u64..).zip(&report.actions).map(row).collect(),
        axis: Axis::new("saved", Scale::Bytes),
    };
    let answer = answer.heading("What this kernel lets you do, as root").figure(
        "What each action saves: the range in which it lies. They are not to be added up.",
        chart,
        table,
    );
    let say = |answer: Answer, (number, action): (u64, &Action)| {
        let Action { way, saves, basis, cost, .. } = action;
        let words = format!("{}; {}: {basis}. Costs: {cost}.", capital(way.words()), saving(*saves));
        answer.paragraph(&format!("{number}. {words}")).list([words]).command(&action.command)
    };
    let needed = report.actions.iter().filter(|action| !action.optional).count();
    let (needed, optional): (Vec<_>, Vec<_>) =
        (1u64..).zip(&report.actions).partition(|(number, _)| *number <= needed as u64);
    let answer = needed.into_iter().fold(answer, say);
    if optional.is_empty() {
        return answer;
    }
    const OPTIONAL: &str = "Nothing needs these; if you still want memory back:";
    optional.into_iter().fold(answer.heading(OPTIONAL).paragraph(OPTIONAL), say)
}

/// The commands of a second snapshot, where it would tell more.
pub(super) fn second(answer: Answer, report: &Report) -> Answer {
    const WORDS: &str = "A minute there tells whether it climbs, who holds it and which code allocates it; two \
                         snapshots, now and later, tell whether it climbs slowly:";
    const COMMANDS: &str = "slablab leak --for 60s\nslablab doctor --save now.tar.xz\n\
                            slablab doctor --since now.tar.xz";
    const WHO: &str = "A minute there tells who holds it and which code allocates it:";
    const LEAK: &str = "slablab leak --for 60s";
    let climbs = report.verdict.judgement == Judgement::Climbing;
    let is_said = report.actions.iter().any(|action| action.command.contains("slablab leak"));
    match report.verdict.takes_second {
        true => answer.heading(WORDS).paragraph(WORDS).command(COMMANDS),
        false if climbs && !is_said => answer.heading(WHO).paragraph(WHO).command(LEAK),
        false => answer,
    }
}

/// The commands that make missing files readable.
pub(super) fn remedy(answer: Answer, report: &Report) -> Answer {
    const WORDS: &str = "This makes what is missing readable:";
    match &remedies(report)[..] {
        [] => answer,
        commands => answer.heading(WORDS).paragraph(WORDS).command(commands.join("\n")),
    }
}
