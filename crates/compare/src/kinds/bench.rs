//! `slablab bench`: times of allocators on a real machine.

use super::{Kind, list, runs, text};
use crate::answer::{Answer, Fact, Quantity, Role, program, words};
use serde_json::Value;
use slablab_stats::Sample;
use slablab_stats::table::{Better, Cell};

pub(super) const KIND: Kind = Kind {
    verb: "bench",
    words: "slablab bench",
    schema: "slablab.bench.1",
    medians: true,
    exact: "one value is not enough on a real machine",
    read,
};

fn read(document: &Value) -> Result<Answer, String> {
    let host = &document["host"];
    let load = |when: &str| document[when].as_f64().map_or("?".to_string(), |load| format!("{load:.1}"));
    let mut answer = Answer {
        inputs: vec![Fact::of("scale", &document["scale"])],
        settings: vec![
            program(document),
            Fact::of("host", &host["name"]),
            Fact::of("kernel", &host["kernel"]),
            Fact::of("CPU", &host["cpu"]),
            Fact::of("slablab's engine", &host["engine"]),
            Fact::of("build", &host["build"]),
            Fact::of("CPUs", &document["cpus"]),
            Fact::of("blocks", &document["blocks"]),
            Fact::of("seed", &document["seed"]),
            Fact::new("load", Some(format!("{} to {}", load("load_before"), load("load_after")))),
        ],
        ..Answer::default()
    };
    let reasons = document["no_verdict"].as_array().into_iter().flatten();
    answer.cautions.extend(reasons.filter_map(words).map(|why| format!("no verdict from this run: {why}")));
    for workload in list(document, "workloads")? {
        let (name, is_floor) = (text(workload, "name")?, workload["group"] == "floors");
        for cell in list(workload, "cells")? {
            let contestant = text(cell, "name")?;
            let role = match cell["role"].as_str() {
                // The twin is slablab's code a second time: it belongs to its run's own test.
                Some("twin") => continue,
                Some("ours") if !is_floor => Role::Answer,
                _ => Role::Control,
            };
            let quantity = |name: String, decimals, cell| Quantity {
                engine: None,
                group: String::new(),
                name,
                better: Better::Lower,
                decimals,
                role,
                cell,
            };
            let place = if is_floor { name.to_string() } else { format!("{name} {contestant}") };
            let times = runs(&cell["samples_ns"], &format!("`samples_ns` of {place}"))?;
            answer.quantities.push(quantity(format!("{place}, ns"), 2, times));
            if let Some(peaks) = peaks(&cell["process"]) {
                answer.quantities.push(quantity(format!("{place}, peak MB"), 2, peaks));
            }
        }
        let operations = Fact::of(&format!("operations of {name}"), &workload["ops"]);
        answer.inputs.push(Fact { is_detail: true, ..operations });
    }
    Ok(answer)
}

/// Peak memory of the processes of a contestant, in MB.
fn peaks(process: &Value) -> Option<Cell> {
    let samples = process["samples"].as_array()?;
    let peaks: Option<Vec<f64>> = samples.iter().map(|one| Some(one["peak_bytes"].as_f64()? / 1e6)).collect();
    Sample::new(peaks?).ok().map(Cell::Runs)
}
