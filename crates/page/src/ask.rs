//! Questions and replies.

use crate::answered::{Answered, Result};
use crate::experiments::{Short, compared};
use crate::pressure::Pressed;
use crate::recordings::{Recorded, Words, engine_options, explained, replayed, sited};
use crate::states::{Change, Machine, doctor, orders, what, whatif};
use serde::{Deserialize, Serialize};
use slablab_report::{html, json};

/// A question: a verb with its options, by the names that the program has. Files are those that were given.
#[derive(Deserialize)]
#[serde(tag = "verb", rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
enum Question {
    /// What holds slab memory, and what grew since earlier snapshots.
    Doctor {
        input: String,
        #[serde(default)]
        since: Vec<String>,
        #[serde(default)]
        hours: Option<f64>,
        #[serde(flatten)]
        machine: Machine,
    },
    /// Slab memory with something changed.
    Whatif {
        input: String,
        #[serde(default)]
        change: Box<Change>,
        #[serde(flatten)]
        machine: Machine,
    },
    /// What caches and messages mean: names, texts, and perhaps a file.
    What {
        #[serde(default)]
        names: Vec<String>,
        #[serde(default)]
        input: Option<String>,
    },
    /// Sizes that an order rule treats otherwise than another one.
    Orders {
        policy: String,
        #[serde(default)]
        against: Option<String>,
        #[serde(default)]
        page_size: Vec<String>,
        #[serde(default)]
        cpus: Vec<u32>,
    },
    /// A recording under several allocators; with `map` as the map of a cache's slabs.
    Replay {
        #[serde(default)]
        engines: Vec<String>,
        #[serde(default)]
        map: bool,
        #[serde(flatten)]
        of: Recorded,
    },
    /// Which policy makes what differs between two of them.
    Explain {
        from: String,
        to: String,
        #[serde(flatten)]
        of: Recorded,
    },
    /// Which code allocates.
    Sites {
        #[serde(flatten)]
        of: Recorded,
    },
    /// Results of verbs side by side; the first is the base.
    Compare {
        results: Vec<String>,
        #[serde(default)]
        force: bool,
    },
    /// A script of page accesses on a modelled machine.
    Pressure {
        #[serde(flatten)]
        of: Pressed,
    },
    /// Short runs of an experiment on modelled machines.
    Run {
        #[serde(flatten)]
        of: Short,
    },
    /// Those, beside what was published.
    Reproduce {
        #[serde(flatten)]
        of: Short,
    },
}

/// The reply: the answer in each form, or what is wrong with the question.
#[derive(Default, Debug, Serialize)]
pub struct Reply {
    /// The sentence that answers.
    pub sentence: String,
    /// The answer as the program prints it, with every column.
    pub text: String,
    /// The answer as a page of its own.
    pub page: String,
    /// The answer as the program's `--format json`, byte for byte.
    pub json: String,
    /// The command that gives this answer.
    pub command: String,
    /// What went wrong.
    pub error: Option<String>,
}

/// Answers a question.
pub fn answer(question: &[u8]) -> Reply {
    let failed = |error: String| Reply { error: Some(error), ..Reply::default() };
    let question: Question = match serde_json::from_slice(question) {
        Ok(question) => question,
        Err(error) => return failed(format!("the question: {error}")),
    };
    let command = question.command();
    match question.answer(&command) {
        Ok(Answered { answer, page }) => Reply {
            sentence: answer.sentence().to_string(),
            text: answer.text(true),
            page: page.unwrap_or_else(|| answer.page(&command)),
            json: json::document(&answer.json()),
            command,
            error: None,
        },
        Err(error) => Reply { command, ..failed(error) },
    }
}

impl Question {
    fn answer(self, command: &str) -> Result<Answered> {
        match self {
            Question::Doctor { input, since, hours, machine } => {
                doctor(input, since, hours, &machine).map(Answered::from)
            }
            Question::Whatif { input, change, machine } => {
                whatif(input, &change, &machine).map(Answered::from)
            }
            Question::What { names, input } => what(&names, input).map(Answered::from),
            Question::Orders { policy, against, page_size, cpus } => {
                orders(&policy, against.as_deref(), &page_size, cpus).map(Answered::from)
            }
            Question::Replay { engines, map, of } => replayed(&of, &engines, map, command),
            Question::Explain { from, to, of } => explained(&of, &from, &to),
            Question::Sites { of } => sited(&of),
            Question::Compare { results, force } => compared(&results, force).map(Answered::from),
            Question::Pressure { of } => of.answer().map(Answered::from),
            Question::Run { of } => of.ran().map(Answered::from),
            Question::Reproduce { of } => of.reproduced().map(Answered::from),
        }
    }

    /// The words of the command line that ask the same.
    fn command(&self) -> String {
        let text = |number: &Option<u32>| number.map(|number| number.to_string()).unwrap_or_default();
        let said = |value: &Option<String>| value.clone().unwrap_or_default();
        let (verb, inputs, options): (&str, Vec<String>, Vec<(&str, String)>) = match self {
            Question::Doctor { input, since, hours, machine } => {
                let hours = ("--hours", hours.map(|hours| hours.to_string()).unwrap_or_default());
                let since = since.iter().map(|path| ("--since", path.clone()));
                let machine = [("--page-size", said(&machine.page_size)), ("--cpus", text(&machine.cpus))];
                ("doctor", vec![input.clone()], since.chain([hours]).chain(machine).collect())
            }
            Question::Whatif { input, change, machine } => {
                let change = change.named().map(|(name, value)| (name, value.to_string()));
                let page_size = ("--input-page-size", said(&machine.page_size));
                let machine = [page_size, ("--input-cpus", text(&machine.cpus))];
                ("whatif", vec![input.clone()], change.into_iter().chain(machine).collect())
            }
            Question::What { names, input } => {
                ("what", names.iter().chain(input).cloned().collect(), Vec::new())
            }
            Question::Orders { policy, against, page_size, cpus } => {
                let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
                let rules = [("--policy", policy.clone()), ("--against", said(against))];
                let machines = [("--page-size", page_size.join(",")), ("--cpus", cpus.join(","))];
                ("orders", Vec::new(), rules.into_iter().chain(machines).collect())
            }
            Question::Replay { engines, map, of } => {
                named("replay", of.command(&[], &engine_options(engines, *map)))
            }
            Question::Explain { from, to, of } => named("explain", of.command(&[from, to], &[])),
            Question::Sites { of } => named("sites", of.command(&[], &[])),
            Question::Compare { results, .. } => ("compare", results.clone(), Vec::new()),
            Question::Pressure { of } => named("pressure", of.command()),
            Question::Run { of } => named("run", of.command()),
            Question::Reproduce { of } => named("reproduce", of.command()),
        };
        let flag = match self {
            Question::Compare { force: true, .. } => Some("--force"),
            Question::Run { .. } | Question::Reproduce { .. } => Some("--quick"),
            _ => None,
        };
        let given = options.iter().filter(|(_, value)| !value.is_empty());
        let options = given.flat_map(|(name, value)| [*name, value.as_str()]);
        let inputs = inputs.iter().map(String::as_str);
        html::command_line(["slablab", verb].into_iter().chain(inputs).chain(flag).chain(options))
    }
}

/// The words of a verb about a recording.
fn named(verb: &str, (inputs, options): Words) -> (&str, Vec<String>, Vec<(&'static str, String)>) {
    (verb, inputs, options)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A question is answered by the words that the page shows as its command, or refused in a sentence.
    #[track_caller]
    fn check(question: &str, expected: std::result::Result<&str, &str>) {
        let reply = answer(question.as_bytes());
        match expected {
            Ok(command) => assert_eq!((reply.error.as_deref(), reply.command.as_str()), (None, command)),
            Err(words) => {
                let error = reply.error.unwrap_or_else(|| panic!("{question} has an answer"));
                assert!(error.contains(words), "{question}: {error}");
            }
        }
    }

    #[test]
    fn questions_are_answered_or_refused() {
        let dump =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/releases/amd64_7.3.4_smp4.after.tar.xz");
        let of = |options: &str| format!(r#"{{"verb":"whatif","input":{dump:?},"change":{{{options}}}}}"#);
        let said = format!("slablab whatif {dump} --max-order 0,1 --cpus 8");
        check(&of(r#""max-order":"0,1","cpus":"8""#), Ok(&said));
        check(&of(r#""max-order":"x""#), Err("--max-order x: expected a number"));
        check(&of(r#""max-ordr":"0""#), Err("max-ordr"));
        check(&of(r#""page-size":"3K""#), Err("--page-size 3K: expected 4K"));
        check(&format!(r#"{{"verb":"doctor","input":{dump:?}}}"#), Ok(&format!("slablab doctor {dump}")));
        let one = format!(r#"{{"verb":"doctor","input":{dump:?},"hours":2}}"#);
        check(&one, Err("--hours: expected an earlier snapshot"));
        check(r#"{"verb":"doctor","input":"not-there"}"#, Err("not-there: "));
        check(r#"{"verb":"doctor","input":"x","page-size":"3K"}"#, Err("--page-size: expected 4K"));
        check(r#"{"verb":"doctor","input":"x","cpu":4}"#, Err("unknown field `cpu`"));
        check(r#"{"verb":"doctr","input":"x"}"#, Err("unknown variant `doctr`"));
        check(r#"{"verb":"what","names":["dentry"]}"#, Ok("slablab what dentry"));
        check(r#"{"verb":"what","names":["dentri"]}"#, Err("did you mean dentry"));
        check(r#"{"verb":"orders","policy":"none"}"#, Err("--policy none: expected one of"));
        check("{", Err("the question: "));
        let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/hackbench-6.18.perf.data.xz");
        check(
            &format!(
                r#"{{"verb":"replay","input":{trace:?},"engines":["slub@6.18","slub@7.3"],"map":true}}"#
            ),
            Ok(&format!("slablab replay {trace} --engine slub@6.18 --engine slub@7.3 --map map.html")),
        );
        check(
            &format!(
                r#"{{"verb":"explain","input":{trace:?},"from":"slub@6.18","to":"slub@6.18,max_order=0","cache":"dentry"}}"#
            ),
            Ok(&format!("slablab explain {trace} slub@6.18 slub@6.18,max_order=0 --cache dentry")),
        );
        check(&format!(r#"{{"verb":"sites","input":{trace:?}}}"#), Ok(&format!("slablab sites {trace}")));
        check(&format!(r#"{{"verb":"sites","input":{trace:?},"cache":"no"}}"#), Err("nothing is allocated"));
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/vm/hotanon_stream.t");
        let pressed = |options: &str| format!(r#"{{"verb":"pressure","script":{script:?}{options}}}"#);
        let said = format!("slablab pressure run {script} --vm vm@6.1,lru_gen --seed 2");
        check(&pressed(r#","vm":"vm@6.1,lru_gen","seed":2"#), Ok(&said));
        check(&pressed(r#","vm":"vm@9""#), Err("--vm: "));
        check(r#"{"verb":"pressure","script":"no.t"}"#, Err("no.t: "));
        check(
            r#"{"verb":"run","experiment":"micro","repeats":1}"#,
            Ok("slablab run micro --quick --repeats 1"),
        );
        check(r#"{"verb":"run","experiment":"micro","repeats":0}"#, Err("the question: "));
        check(r#"{"verb":"run","experiment":"micr"}"#, Err("near it: micro"));
        check(
            r#"{"verb":"reproduce","experiment":"micro"}"#,
            Err("micro: the experiment has no [[published]]"),
        );
        check(r#"{"verb":"reproduce","experiment":"002"}"#, Err("002, 002-aim, 002-mkfs"));
        check(r#"{"verb":"compare","results":["a.json"]}"#, Err("expected two results or more"));
        check(r#"{"verb":"compare","results":["a.json","b.json"],"force":true}"#, Err("a.json: "));
        check(
            &format!(r#"{{"verb":"replay","input":{trace:?},"engines":["slub@1"]}}"#),
            Err("--engine slub@1: "),
        );
        check(
            &format!(r#"{{"verb":"explain","input":{trace:?},"from":"slub","to":"slib"}}"#),
            Err("B slib: "),
        );
    }
}
