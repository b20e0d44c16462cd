//! The experiments of one mail together: the score of each, and every pair of engines of the mail.

use super::reproduce::{DrawsDocument, ReproduceDocument, SizesDocument, of_sign, size, size_words, sum};
use crate::file::rows::Sign;
use crate::judge::merit::{Ordered, merits};
use crate::judge::pairs::{Pair, Pairs};
use crate::judge::score::{Sizes, predicted, sizes};
use crate::judge::verdict::{Compared, Judged, Verdict, judge};
use crate::output::reproduce::counts;
use crate::run::results::Results;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_report::document::{Named, named};
use slablab_report::text::counted;
use slablab_report::{Answer, Document, text};

/// The experiments of a mail.
#[derive(Serialize, JsonSchema)]
struct JoinedDocument {
    name: String,
    experiments: Vec<ReproduceDocument>,
    /// Each two engines of which the mail publishes figures with their scatter.
    pairs: Vec<PairDocument>,
    /// The best constant answer; null without pairs that differ.
    constant: Option<ConstantDocument>,
    /// How near the ratios of pairs are to the published ones.
    sizes: Option<SizesDocument>,
    summary: Option<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
struct PairDocument {
    experiment: String,
    /// Where the figures are in the mail.
    block: String,
    base: String,
    other: String,
    published_ratio: f64,
    published_p_holm: f64,
    published_sign: &'static str,
    published_worse: Option<String>,
    /// Of each swept value.
    modelled_ratios: Vec<Option<f64>>,
    /// What draws of all that is assumed say, of each swept value; empty without.
    drawn: Vec<DrawsDocument>,
    verdict: String,
}

/// An engine that is always the worse one.
#[derive(Serialize, JsonSchema)]
struct ConstantDocument {
    worse: String,
    /// Pairs of which that is so.
    explains: usize,
}

impl Document for JoinedDocument {
    const NAME: &str = "slablab.reproduce.joined.2";
    const TITLE: &str = "slablab reproduce: the experiments of one mail together";
}

/// The schema of the answer.
pub(super) fn schema() -> Named {
    named::<JoinedDocument>()
}

/// The answer of `reproduce` about several experiments of a mail, after the answers about each.
pub fn joined_answer(name: &str, experiments: &[Results], wrap: Option<usize>) -> Answer {
    let of = |results: &Results| (judge(results), merits(results));
    let judged: Vec<Verdicts> = experiments.iter().map(of).collect();
    let pairs = Pairs::of(experiments);
    let document = document(name, (experiments, &judged), pairs.as_ref());
    let title = format!("{name}: {} together", counted(experiments.len() as u64, "experiment"));
    let scores = experiments.iter().zip(&judged).map(|(results, (judged, orders))| {
        format!("{}: {}", results.experiment.file.name, sum(judged, orders))
    });
    let answer = Answer::new(&title, sentence(name, &judged, pairs.as_ref()))
        .within(wrap)
        .document(&document)
        .heading(title)
        .list(scores);
    let Some(pairs) = pairs else { return answer };
    let answer = answer.heading(rule(&pairs));
    let answer = tables(&pairs)
        .into_iter()
        .fold(answer, |answer, (head, table)| answer.heading(head).table(table, &LEFT_OUT));
    answer.remarks(summary(&pairs))
}

/// Columns of the text that are left out on a narrow terminal.
const LEFT_OUT: [&str; 1] = ["Holm's p"];

/// What is said of the rows and of the orders of an experiment.
type Verdicts = (Vec<Judged>, Vec<Ordered>);

/// How many of the pairs agree; of the relations if there are no pairs.
fn sentence(name: &str, judged: &[Verdicts], pairs: Option<&Pairs>) -> String {
    let Some(pairs) = pairs else {
        let rows: Vec<&Judged> = judged.iter().flat_map(|(judged, _)| predicted(judged)).collect();
        let over = counted(judged.len() as u64, "experiment");
        return format!("{}, over {over}.", counts(name, &rows));
    };
    format!(
        "Of the pairs of engines that differ in {name} {} agree, of those that do not {}.",
        agree(pairs.differ()),
        agree(pairs.alike())
    )
}

fn document(
    name: &str,
    (experiments, judged): (&[Results], &[Verdicts]),
    pairs: Option<&Pairs>,
) -> JoinedDocument {
    let of = |pair: &Pair| PairDocument {
        experiment: pair.experiment.clone(),
        block: pair.block.clone(),
        base: pair.base.clone(),
        other: pair.other.clone(),
        published_ratio: pair.ratio,
        published_p_holm: pair.p,
        published_sign: pair.sign.word(),
        published_worse: pair.worse.clone(),
        modelled_ratios: pair.compared.iter().map(|one| one.ratio).collect(),
        drawn: pair.compared.iter().filter_map(|one| DrawsDocument::new(one, Some(pair.ratio))).collect(),
        verdict: pair.verdict.to_string(),
    };
    let all = experiments.iter().zip(judged);
    let constant = pairs.and_then(|pairs| pairs.constant.clone());
    JoinedDocument {
        name: name.to_string(),
        experiments: all
            .map(|(results, (judged, orders))| ReproduceDocument::new(results, judged, orders))
            .collect(),
        pairs: pairs.iter().flat_map(|pairs| &pairs.all).map(of).collect(),
        constant: constant.map(|(worse, explains)| ConstantDocument { worse, explains }),
        sizes: pairs.and_then(sizes_of).map(SizesDocument::from),
        summary: pairs.map(summary),
    }
}

/// How the pairs are judged.
fn rule(pairs: &Pairs) -> String {
    format!(
        "{} pairs of engines with a published scatter, of which {} differ (Welch, Holm's correction over all \
         pairs, 5 %). modelled: the lowest and the highest ratio over swept values; sign: draws that have the \
         sign of the mail. A pair that differs in the mail agrees if 95 % have the sign; a pair \
         that does not, if the mail's scatter and number of runs would not tell 95 % from a ratio of 1",
        pairs.all.len(),
        pairs.differ().count()
    )
}

/// The pairs that the best constant answer does not explain, those that it does, those that do not differ.
fn tables(pairs: &Pairs) -> Vec<(String, text::Table)> {
    let constant = pairs.constant.as_ref().map_or("", |(engine, _)| engine);
    let explained = pairs.differ().filter(|pair| pair.worse.as_deref() == Some(constant));
    let parts = [
        (format!("differ in the mail, beyond \"{constant} is the worse one\""), rows(pairs.exceptions())),
        (format!("differ in the mail, and {constant} is the worse one"), rows(explained)),
        ("no difference can be told in the mail".to_string(), rows(pairs.alike())),
    ];
    parts.into_iter().filter_map(|(head, rows)| Some((head, rows?))).collect()
}

fn rows<'p>(pairs: impl Iterator<Item = &'p Pair>) -> Option<text::Table> {
    let heads = ["", "verdict", "published", "Holm's p", "modelled", "sign", "size"];
    let mut table = text::Table::new(heads).numbers(2..6);
    let mut pairs = pairs.peekable();
    pairs.peek()?;
    for pair in pairs {
        table.row([
            format!("{}, {}: {} over {}", pair.experiment, pair.block, pair.other, pair.base),
            pair.verdict.to_string(),
            format!("{:.3}", pair.ratio),
            format!("{:.4}", pair.p),
            ends(pair.compared.iter().filter_map(|one| one.ratio)),
            several(pair, |one| of_sign(one, pair.sign)),
            several(pair, |one| size(one, pair.ratio)),
        ]);
    }
    Some(table)
}

/// A word of each swept value, once if they are alike.
fn several(pair: &Pair, word: impl Fn(&Compared) -> String) -> String {
    let mut words: Vec<String> = pair.compared.iter().map(word).collect();
    words.dedup();
    words.join(", ")
}

/// The lowest and the highest ratio.
fn ends(ratios: impl Iterator<Item = f64> + Clone) -> String {
    let shown = |ratio: f64| format!("{ratio:.3}");
    let (low, high) = (ratios.clone().reduce(f64::min), ratios.reduce(f64::max));
    match (low.map(shown), high.map(shown)) {
        (Some(low), Some(high)) if low == high => low,
        (Some(low), Some(high)) => format!("{low} to {high}"),
        _ => "-".into(),
    }
}

/// How near the ratios of all pairs are.
fn sizes_of(pairs: &Pairs) -> Option<Sizes> {
    sizes(pairs.all.iter().flat_map(|pair| pair.compared.iter().map(|one| (pair.ratio, one))))
}

/// How many of some pairs agree.
fn agree<'p>(pairs: impl Iterator<Item = &'p Pair>) -> String {
    let (mut all, mut agree) = (0, 0);
    for pair in pairs {
        all += 1;
        agree += usize::from(pair.verdict == Verdict::Agrees);
    }
    format!("{agree} of {all}")
}

/// The scores beside that of the best constant answer.
fn summary(pairs: &Pairs) -> Vec<String> {
    let mut lines = vec![format!("Pairs that differ in the mail: {} agree.", agree(pairs.differ()))];
    if let Some((engine, explained)) = &pairs.constant {
        lines[0] += &format!(
            " The best constant answer, \"{engine} is the worse one\", agrees in {explained} of {}.",
            pairs.differ().count()
        );
        lines.push(format!(
            "Pairs beyond that answer, which alone show something: {} agree.",
            agree(pairs.exceptions())
        ));
    }
    lines.push(format!("Pairs without a difference in the mail: {} agree.", agree(pairs.alike())));
    let told: usize = pairs.alike().filter(|pair| pair.verdict == Verdict::SignDiffers).count();
    if told > 0 {
        lines.push(format!("In {told} of them the model has a difference where the mail tells none."));
    }
    lines.extend(sizes_of(pairs).map(size_words));
    debug_assert!(pairs.alike().all(|pair| pair.sign == Sign::Nothing));
    lines
}
