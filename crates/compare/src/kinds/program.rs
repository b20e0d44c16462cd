//! `slablab bench -- PROGRAM`: a program under several allocators, on a real machine.

use super::{Kind, list, text};
use crate::answer::{Answer, Fact, Quantity, Role, program, words};
use serde_json::Value;
use slablab_stats::Sample;
use slablab_stats::table::{Better, Cell};

pub(super) const KIND: Kind = Kind {
    verb: "bench",
    words: "slablab bench -- PROGRAM",
    schema: "slablab.bench-program.1",
    medians: true,
    exact: "one value is not enough on a real machine",
    read,
};

/// A number of a run: its key, how tables call it, and its unit in that of the document.
const FIGURES: [(&str, &str, f64); 3] =
    [("cpu_s", "CPU ms", 1e-3), ("wall_s", "wall ms", 1e-3), ("peak_bytes", "peak MB", 1e6)];

fn read(document: &Value) -> Result<Answer, String> {
    let host = &document["host"];
    let mut answer = Answer {
        inputs: vec![Fact::of("program", &document["command"])],
        settings: vec![
            program(document),
            Fact::of("host", &host["name"]),
            Fact::of("kernel", &host["kernel"]),
            Fact::of("CPU", &host["cpu"]),
            Fact::of("blocks", &document["blocks"]),
            Fact::of("seed", &document["seed"]),
        ],
        ..Answer::default()
    };
    let reasons = document["no_verdict"].as_array().into_iter().flatten();
    answer.cautions.extend(reasons.filter_map(words).map(|why| format!("no verdict from this run: {why}")));
    for row in list(document, "rows")?.iter().filter(|row| row["is_twin"] != true) {
        let allocator = text(row, "allocator")?;
        let samples = list(row, "samples")?;
        for (key, name, unit) in FIGURES {
            let values: Option<Vec<f64>> =
                samples.iter().map(|one| Some(one[key].as_f64()? / unit)).collect();
            let what = format!("`{key}` of the samples of {allocator}");
            let values = values.ok_or_else(|| format!("no number {what}"))?;
            answer.quantities.push(Quantity {
                engine: None,
                group: String::new(),
                name: format!("{allocator}, {name}"),
                better: Better::Lower,
                decimals: 2,
                role: Role::Answer,
                cell: Sample::new(values).map(Cell::Runs).map_err(|error| format!("{what}: {error}"))?,
            });
        }
    }
    Ok(answer)
}
