//! What `hyperfine --export-json` writes: the times of commands.

use super::{Kind, list, runs, text};
use crate::answer::{Answer, Quantity, Role};
use serde_json::Value;
use slablab_stats::table::Better;

/// The kind. Its documents name no schema: [`is`] knows them.
pub(super) const KIND: Kind = Kind {
    verb: "hyperfine",
    words: "hyperfine --export-json",
    schema: "hyperfine --export-json",
    medians: true,
    exact: "one value is not enough on a real machine",
    read,
};

/// Whether a document is hyperfine's.
pub(super) fn is(document: &Value) -> bool {
    document["results"].as_array().is_some_and(|all| all.iter().all(|one| one["command"].is_string()))
}

/// The allocator of a program that is started as it is.
const PLAIN: &str = "glibc";

fn read(document: &Value) -> Result<Answer, String> {
    let mut answer = Answer::default();
    for one in list(document, "results")? {
        let command = text(one, "command")?;
        let parameters = one["parameters"].as_object().into_iter().flatten();
        let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
        // `bench -- PROGRAM` under the malloc that programs have is the program as hyperfine runs it.
        let others = parameters.filter(|(key, value)| *key != "allocator" || *value != PLAIN);
        let named: Vec<String> = others.map(|(_, value)| word(value)).collect();
        let name = [&[command.to_string()], named.as_slice()].concat().join(", ");
        answer.quantities.push(Quantity {
            engine: None,
            group: String::new(),
            better: Better::Lower,
            decimals: 4,
            role: Role::Answer,
            cell: runs(&one["times"], &format!("`times` of {name}"))?,
            name: format!("{name}, s"),
        });
    }
    Ok(answer)
}
