//! Modelled runs of memory pressure beside real ones.

use crate::pressure::judge::{
    Cell as Judged, Judgement, NULL_MACHINE, PagesCell, Place, Sign, Spread, Verdict,
};
use crate::pressure::measure::{MEASURES, SMALL};
use crate::pressure::outcome::Outcome;
use crate::pressure::tally::{Tally, tallies};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};
use slablab_report::column::{Columns, Style};
use slablab_report::document::{Named, named};
use slablab_report::html::{self, Cell, Head};
use slablab_report::text::{Table, grouped};
use slablab_report::{Answer, Document};

/// Columns of counts that differ which are left out on a narrow terminal, in this order.
const LEFT_OUT: [&str; 6] = ["it", "max", "min", "noise", "null", "phase"];

/// Every count, map, difference between LRUs and outcome.
#[derive(Serialize, JsonSchema)]
struct JudgementDocument<'a> {
    #[schemars(schema_with = "cells_schema")]
    cells: Vec<Map<String, Value>>,
    #[schemars(schema_with = "maps_schema")]
    maps: Vec<Map<String, Value>>,
    outcomes: &'a [Outcome],
    ends: &'a [Outcome],
    signs: Vec<SignDocument<'a>>,
}

impl Document for JudgementDocument<'_> {
    const NAME: &'static str = "slablab.pressure-judgement.1";
    const TITLE: &'static str = "slablab pressure judge: modelled runs beside real ones";
}

/// A measure in which a kernel's two LRUs differ: mean with MGLRU minus mean of the classic LRU.
#[derive(Serialize, JsonSchema)]
struct SignDocument<'a> {
    #[serde(flatten)]
    place: &'a Place,
    measure: &'static str,
    real: f64,
    modelled: f64,
    same_sign: bool,
}

impl SignDocument<'_> {
    fn new(sign: &Sign) -> SignDocument<'_> {
        let Sign { place, measure, real, modelled } = sign;
        let same_sign = sign.is_same();
        SignDocument { place, measure: measure.name, real: *real, modelled: *modelled, same_sign }
    }
}

pub(super) fn schema() -> Named {
    named::<JudgementDocument>()
}

/// The answer of `pressure judge`, beside the tallies of the null answer and of the machine's repeats. The
/// form `pages` has every residency map as CSV.
pub fn judgement_answer(judgement: &Judgement, null: &[Tally], repeats: &[Tally]) -> Answer {
    let (counts, pages) = (judged(), maps());
    let tallies = tallies(judgement);
    let rows: Vec<Beside> = tallies.into_iter().map(|tally| Beside::new(tally, null, repeats)).collect();
    let document = JudgementDocument {
        cells: judgement.cells.iter().map(|cell| counts.json(cell)).collect(),
        maps: judgement.pages.iter().map(|map| pages.json(map)).collect(),
        outcomes: &judgement.outcomes,
        ends: &judgement.ends,
        signs: judgement.signs.iter().map(SignDocument::new).collect(),
    };
    let answer = Answer::new("Modelled memory pressure beside real kernels", sentence(&rows))
        .document(&document)
        .rows(counts.frame(&judgement.cells))
        .form("pages", pages.csv(&judgement.pages));
    let answer = tallies_blocks(answer.section("How much agrees"), &rows);
    // Those that all ended say nothing; those of two behaviours are listed already.
    let ends = judgement.ends.iter().filter(|end| !end.is_plain() && !judgement.outcomes.contains(end));
    let outcomes: Vec<&Outcome> = judgement.outcomes.iter().chain(ends).collect();
    let answer = two_behaviours(answer, &outcomes, &rows);
    differences_blocks(answer, &judgement.cells)
        .section("Counts")
        .page_table(
            "Every count: mean and range of real repeats and of modelled seeds.",
            whole(&counts, &judgement.cells),
        )
        .section("Pages")
        .page_table("Percent of pages in the same state.", whole(&pages, &judgement.pages))
        .remarks([
            format!(
                "Counts: small: both means are below {SMALL}; null, repeats: counts that differ in the null answer \
                 (the real {NULL_MACHINE} for every machine), and in a real repeat."
            ),
            "Pages: percent that are in the same state, in modelled runs, real repeats, pages at random, the null \
             answer. Signs: differences between LRUs, and those with the same sign."
                .into(),
        ])
}

/// The counts of a machine, and how many differ in the null answer and among the real repeats.
struct Beside {
    tally: Tally,
    null: Option<usize>,
    repeats: Option<usize>,
}

impl Beside {
    fn new(tally: Tally, null: &[Tally], repeats: &[Tally]) -> Beside {
        let [null, repeats] = [null, repeats].map(|tallies| {
            let beside = tallies.iter().find(|beside| beside.machine == tally.machine);
            beside.map(Tally::differs)
        });
        Beside { tally, null, repeats }
    }
}

/// How many judged counts differ, beside the real repeats; how many pages are in the same state.
fn sentence(rows: &[Beside]) -> String {
    let sum = |of: &dyn Fn(&Beside) -> usize| rows.iter().map(of).sum::<usize>() as u64;
    let (cells, differ) = (sum(&|row| row.tally.cells), sum(&|row| row.tally.differs()));
    let machines = match rows {
        [row] => row.tally.machine.clone(),
        rows => format!("{} machines", rows.len()),
    };
    if cells == 0 {
        return match sum(&|row| row.tally.bimodal[0]) {
            0 => "The records have no count that is judged.".into(),
            two => format!(
                "None of the {} judged counts of {machines} is of a scenario with one behaviour.",
                grouped(two)
            ),
        };
    }
    let differs = match differ {
        0 => "none differs".into(),
        1 => "1 differs".into(),
        differ => format!("{} differ", grouped(differ)),
    };
    let mut sentence =
        format!("Of {} judged counts of {machines} {differs} from the real kernel's", grouped(cells));
    let repeats: Option<usize> = rows.iter().map(|row| row.repeats).sum();
    if let Some(repeats) = repeats {
        sentence += &match repeats {
            1 => ", where 1 differs between two real runs".into(),
            repeats => format!(", where {} differ between two real runs", grouped(repeats as u64)),
        };
    }
    let pages = sum(&|row| row.tally.maps);
    if pages > 0 {
        let same: f64 = rows.iter().map(|row| row.tally.agreement * row.tally.maps as f64).sum();
        sentence += &format!("; {:.1} % of pages are in the same state", same * 100.0 / pages as f64);
    }
    sentence + "."
}

fn tallies_blocks(answer: Answer, rows: &[Beside]) -> Answer {
    if rows.is_empty() {
        return answer;
    }
    let columns = tally_columns();
    let label = |row: &Beside| Cell::Name(row.tally.machine.clone());
    let counts = ["cells", "small", "agree", "differ", "null", "repeats"];
    let pages = ["maps", "pages", "of_repeats", "random", "of_null", "signs", "same"];
    let text = |keys: &[&str]| columns.text(("machine", &label), keys, rows, Style::Bytes);
    let html = |keys: &[&str]| columns.html(("machine", &label), keys, rows);
    answer
        .heading("Judged counts:")
        .table(text(&counts), &[])
        .page_table("Judged counts: how many there are, and how many differ.", html(&counts))
        .heading("Pages:")
        .table(text(&pages), &[])
        .page_table("Pages in the same state, and differences between LRUs.", html(&pages))
}

/// Columns of a machine.
fn tally_columns() -> Columns<Beside> {
    let count = |count: usize| Cell::Count(count as u64);
    let some = |of: Option<usize>| of.map_or(Cell::Empty, |count| Cell::Count(count as u64));
    let percent = |share: Option<f64>| share.map_or(Cell::Empty, |share| Cell::Number(share * 100.0, 1));
    Columns::<Beside>::default()
        .people("cells", "cells", "counts", move |row| count(row.tally.cells))
        .people("small", "small", "small", move |row| count(row.tally.small))
        .people("agree", "agree", "agree", move |row| count(row.tally.agree))
        .people("differ", "differ", "differ", move |row| count(row.tally.differs()))
        .people("null", "null", "differ, null answer", move |row| some(row.null))
        .people("repeats", "repeats", "differ, real repeats", move |row| some(row.repeats))
        .people("maps", "maps", "maps", move |row| count(row.tally.maps))
        .people("pages", "pages", "same", move |row| percent(Some(row.tally.agreement)))
        .unit("%")
        .people("of_repeats", "repeats", "real repeats", move |row| percent(row.tally.repeats))
        .unit("%")
        .people("random", "random", "at random", move |row| percent(Some(row.tally.random)))
        .unit("%")
        .people("of_null", "null", "null answer", move |row| percent(row.tally.null_machine))
        .unit("%")
        .people("signs", "signs", "differences of LRUs", move |row| count(row.tally.signs))
        .people("same", "same", "with the same sign", move |row| count(row.tally.same_signs))
}

/// How many runs had which of two behaviours and which end, and how many counts of two behaviours differ.
fn two_behaviours(answer: Answer, outcomes: &[&Outcome], rows: &[Beside]) -> Answer {
    let outcome = |outcome: &&Outcome| {
        let [real, modelled] =
            [outcome.real, outcome.modelled].map(|share| format!("{} of {}", share.had, share.runs));
        let (scenario, machine, what, p) = (&outcome.scenario, &outcome.machine, outcome.what, outcome.p);
        format!("{scenario} {machine}: {what}: real {real}, modelled {modelled}, p {p:.2}")
    };
    let counts = rows.iter().filter(|row| row.tally.bimodal[0] > 0).map(|row| {
        let (machine, [cells, differ, undecided]) = (&row.tally.machine, row.tally.bimodal);
        format!(
            "{machine}: {cells} judged counts with two behaviours: {differ} differ by a rank test at 5 %, \
             {undecided} have too few runs for it"
        )
    });
    let ends = rows.iter().filter(|row| row.tally.ends[0] > 0).map(|row| {
        let [judged, differ] = row.tally.ends;
        format!("{}: killed or not: {differ} of {judged} scenarios differ", row.tally.machine)
    });
    let times = rows.iter().filter_map(|row| {
        let (machine, [phases, meet], ratio) = (&row.tally.machine, row.tally.times, row.tally.time_ratio?);
        Some(format!(
            "{machine}: the ranges of real and modelled times meet in {meet} of {phases} phases; modelled over \
             real {ratio:.2} (median)"
        ))
    });
    let lines: Vec<String> = outcomes.iter().map(outcome).chain(counts).chain(ends).chain(times).collect();
    match lines.is_empty() {
        true => answer,
        false => {
            let shown = answer
                .heading("Two behaviours, how runs end, how long they take:")
                .list(lines.iter().cloned());
            lines.iter().fold(shown, |answer, line| answer.paragraph(line))
        }
    }
}

/// The judged counts that differ, a row each: first those that the tallies count, then those of two
/// behaviours.
fn differences_blocks(answer: Answer, cells: &[Judged]) -> Answer {
    let differs = |cell: &&Judged| cell.verdict == Verdict::Differs && cell.measure.is_judged;
    let (counted, bimodal): (Vec<&Judged>, Vec<&Judged>) =
        cells.iter().filter(differs).partition(|cell| cell.is_counted());
    let shown = |answer: Answer, head: &str, cells: &[&Judged]| match cells {
        [] => answer,
        cells => answer.heading(head).table(differences(cells), &LEFT_OUT),
    };
    let answer = shown(answer, "Judged counts that differ:", &counted);
    let head = "Counts with two behaviours whose distributions differ:";
    let answer = shown(answer, head, &bimodal);
    match counted.is_empty() && bimodal.is_empty() {
        true => answer,
        false => answer.remarks([format!(
            "Counts that differ: noise: largest minus smallest real value in percent of their mean; null: mean of \
             the real {NULL_MACHINE}, and whether it agrees."
        )]),
    }
}

fn differences(cells: &[&Judged]) -> Table {
    let real = ["scenario", "machine", "phase", "count", "real", "min", "max"];
    let heads = real.into_iter().chain(["noise", "modelled", "min", "max", "null", "it"]);
    let mut table = Table::new(heads).numbers(4..12);
    for cell in cells {
        let of = |of: &Spread| [format!("{:.0}", of.mean), of.min.to_string(), of.max.to_string()];
        let place = &cell.place;
        let phase = match place.process.as_str() {
            "" => place.phase.clone(),
            process => format!("{process}: {}", place.phase),
        };
        let words = [place.scenario.clone(), place.machine.clone(), phase, cell.measure.name.to_string()];
        let noise = cell.noise().map_or("-".into(), |noise| format!("{noise:.0}"));
        let null = cell.null_machine.map_or(["-".into(), String::new()], |(null, verdict)| {
            [format!("{:.0}", null.mean), verdict.word().to_string()]
        });
        table.row(
            words.into_iter().chain(of(&cell.real)).chain([noise]).chain(of(&cell.modelled)).chain(null),
        );
    }
    table
}

/// Columns of a judged count.
fn judged() -> Columns<Judged> {
    Columns::<Judged>::default()
        .key("scenario", |cell| Cell::Name(cell.place.scenario.clone()))
        .key("machine", |cell| Cell::Name(cell.place.machine.clone()))
        .key("process", |cell| Cell::Name(cell.place.process.clone()))
        .key("phase", |cell| Cell::Name(cell.place.phase.clone()))
        .key("measure", |cell| Cell::Text(cell.measure.name.into()))
        .key("real_mean", |cell| Cell::Number(cell.real.mean, 1))
        .key("real_min", |cell| Cell::Number(cell.real.min as f64, 0))
        .key("real_max", |cell| Cell::Number(cell.real.max as f64, 0))
        .key("modelled_mean", |cell| Cell::Number(cell.modelled.mean, 1))
        .key("modelled_min", |cell| Cell::Number(cell.modelled.min as f64, 0))
        .key("modelled_max", |cell| Cell::Number(cell.modelled.max as f64, 0))
        .key("judged", |cell| Cell::Count((cell.measure.is_judged && cell.is_counted()).into()))
        .key("verdict", |cell| Cell::Text(cell.verdict.word().into()))
        .key("p", |cell| cell.p.map_or(Cell::Text(String::new()), |p| Cell::Number(p, 3)))
        .key("noise_percent", |cell| Cell::Percent(cell.noise()))
        .key("null_mean", |cell| null(cell, |null, _| Cell::Number(null.mean, 1)))
        .key("null_verdict", |cell| null(cell, |_, verdict| Cell::Text(verdict.word().into())))
}

/// What the null answer says of a count; empty without its runs.
fn null(cell: &Judged, of: impl Fn(&Spread, Verdict) -> Cell) -> Cell {
    cell.null_machine.map_or(Cell::Text(String::new()), |(null, verdict)| of(&null, verdict))
}

/// The schema of the rows of counts: what a run lacks is an empty word.
fn cells_schema(_: &mut SchemaGenerator) -> Schema {
    let spread = Spread { mean: 0.0, min: 0, max: 0 };
    let mut row = judged().schema(&Judged {
        place: Place::default(),
        measure: MEASURES[0],
        real: spread,
        modelled: spread,
        verdict: Verdict::Small,
        p: None,
        null_machine: None,
    });
    for key in ["p", "null_mean"] {
        row["properties"][key]["type"] = json!(["number", "string"]);
    }
    row["properties"]["p"]["description"] = "The p-value; empty where there is none.".into();
    rows_of(&row)
}

/// Columns of a residency map. Shares of pages in percent.
fn maps() -> Columns<PagesCell> {
    let percent = |share: Option<f64>| Cell::Percent(share.map(|share| share * 100.0));
    Columns::<PagesCell>::default()
        .key("scenario", |cell| Cell::Name(cell.place.scenario.clone()))
        .key("machine", |cell| Cell::Name(cell.place.machine.clone()))
        .key("process", |cell| Cell::Name(cell.place.process.clone()))
        .key("phase", |cell| Cell::Name(cell.place.phase.clone()))
        .key("object", |cell| Cell::Name(cell.object.clone()))
        .key("agreement_percent", move |cell| percent(Some(cell.agreement)))
        .key("repeats_percent", move |cell| percent(cell.repeats))
        .key("random_percent", move |cell| percent(Some(cell.random)))
        .key("null_machine_percent", move |cell| percent(cell.null_machine))
        .key("judged", |cell| Cell::Count(cell.is_counted().into()))
}

fn maps_schema(_: &mut SchemaGenerator) -> Schema {
    rows_of(&maps().schema(&PagesCell::default()))
}

fn rows_of(row: &Value) -> Schema {
    Schema::try_from(json!({ "type": "array", "items": row })).expect("an object is a schema")
}

/// A table of all columns.
fn whole<R>(columns: &Columns<R>, rows: &[R]) -> html::Table {
    let mut table = html::Table::new(columns.keys().map(Head::text));
    for row in rows {
        table.row(columns.cells(row));
    }
    table
}
