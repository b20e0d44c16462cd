//! `slablab suite`: two engines over every workload.

use super::run::{better, position};
use super::{Kind, list, text};
use crate::answer::{Answer, Fact, Quantity, Role, program};
use serde_json::Value;
use slablab_stats::Moments;
use slablab_stats::table::Cell;

pub(super) const KIND: Kind = Kind {
    verb: "suite",
    words: "slablab suite",
    schema: "slablab.suite.1",
    medians: false,
    exact: "these are single runs of the model, which scatter with the seed",
    read,
};

fn read(document: &Value) -> Result<Answer, String> {
    let mut answer = Answer {
        inputs: vec![Fact::of("size", &document["size"])],
        settings: vec![
            program(document),
            Fact::of("repeats", &document["repeats"]),
            Fact::of("seed", &document["seed"]),
        ],
        ..Answer::default()
    };
    let sides = [text(document, "base")?, text(document, "other")?];
    let engines = sides.map(|engine| position(&mut answer.engines, engine));
    // `suite A A` has one engine in two columns of the same numbers.
    let sides = if engines[0] == engines[1] { 1 } else { 2 };
    for row in list(document, "rows")? {
        let better = better(text(row, "better")?).ok_or("`better` is neither lower nor higher")?;
        let place = [text(row, "workload")?, text(row, "machine")?, text(row, "parameters")?];
        for (engine, side) in engines.iter().zip(["base", "other"]).take(sides) {
            let number = |key: &str| row[format!("{side}_{key}")].as_f64();
            let (Some(n), Some(mean)) = (number("n"), number("mean")) else { continue };
            let moments = Moments::new(n as usize, mean, number("sd").unwrap_or(0.0));
            answer.quantities.push(Quantity {
                engine: Some(*engine),
                group: String::new(),
                name: format!("{}, {}", place.join(" ").trim(), text(row, "unit")?),
                better,
                decimals: decimals(mean),
                role: Role::Answer,
                cell: Cell::Moments(moments.map_err(|error| error.to_string())?),
            });
        }
    }
    let failed = document["failed"].as_array().into_iter().flatten();
    answer.cautions.extend(failed.filter_map(Value::as_str).map(|one| one.trim().to_string()));
    Ok(answer)
}

/// Decimals for four digits of a number.
fn decimals(number: f64) -> usize {
    let whole = if number == 0.0 { 0.0 } else { number.abs().log10().floor() };
    (3.0 - whole).clamp(0.0, 8.0) as usize
}
