//! The experiments of one mail together: the score of each, and every pair of engines of the mail.

use super::reproduce::{reproduce_json, sum};
use crate::file::rows::Sign;
use crate::judge::pairs::{Pair, Pairs};
use crate::judge::verdict::{Compared, Verdict, judge, score};
use crate::run::results::Results;
use serde_json::{Value, json};
use slablab_report::text;

/// The widest line of a table that no `--wrap` narrows.
const WIDE: usize = 110;

/// The answer for people, after the answers of the experiments.
pub fn joined_table(name: &str, experiments: &[Results], wrap: Option<usize>) -> String {
    let width = wrap.unwrap_or(WIDE);
    let wrapped = |line: &str| text::wrapped_within(width, line, "", "  ");
    let mut out = wrapped(&format!("{name}: {} experiments together", experiments.len()));
    out += &scores(experiments).print_within(width);
    let Some(pairs) = Pairs::of(experiments) else { return out };
    out.push('\n');
    out += &wrapped(&rule(&pairs));
    for (head, table) in tables(&pairs) {
        out += &format!("\n{}{}", wrapped(&head), table.print_within(width));
    }
    out.push('\n');
    summary(&pairs).iter().for_each(|line| out += &wrapped(line));
    out
}

/// The answer in Markdown, after the answers of the experiments.
pub fn joined_markdown(name: &str, experiments: &[Results]) -> String {
    let mut out =
        format!("{name}: {} experiments together\n\n{}", experiments.len(), scores(experiments).markdown());
    let Some(pairs) = Pairs::of(experiments) else { return out };
    for (head, table) in tables(&pairs) {
        out += &format!("\n{head}\n\n{}", table.markdown());
    }
    for line in summary(&pairs) {
        out += &format!("\n{line}\n");
    }
    out
}

/// The answer for programs, with those of the experiments.
pub fn joined_json(name: &str, experiments: &[Results]) -> Value {
    let pairs = Pairs::of(experiments);
    let of = |pair: &Pair| {
        let modelled: Vec<Option<f64>> = pair.compared.iter().map(|one| one.ratio).collect();
        json!({
            "experiment": pair.experiment,
            "block": pair.block,
            "base": pair.base,
            "other": pair.other,
            "published_ratio": pair.ratio,
            "published_p_holm": pair.p,
            "published_sign": pair.sign.word(),
            "published_worse": pair.worse,
            "modelled_ratios": modelled,
            "assumed_range": range(pair),
            "verdict": pair.verdict.to_string(),
        })
    };
    json!({
        "schema": "slablab.reproduce.joined.1",
        "name": name,
        "experiments": experiments.iter().map(reproduce_json).collect::<Vec<_>>(),
        "pairs": pairs.iter().flat_map(|pairs| &pairs.all).map(of).collect::<Vec<_>>(),
        "constant": pairs.as_ref().and_then(|pairs| pairs.constant.as_ref()).map(|(engine, explained)| {
            json!({ "worse": engine, "explains": explained })
        }),
        "summary": pairs.as_ref().map(summary),
    })
}

/// The relations of each experiment that agree.
fn scores(experiments: &[Results]) -> text::Table {
    let mut table = text::Table::headless().numbers(0..0);
    for results in experiments {
        let file = &results.experiment.file;
        table.row([file.name.clone(), sum(results, score(&judge(results)))]);
    }
    table
}

/// How the pairs are judged.
fn rule(pairs: &Pairs) -> String {
    format!(
        "{} pairs of engines with a published scatter, of which {} differ (Welch, Holm's correction over all \
         pairs, 5 %). modelled: the lowest and the highest ratio over swept values; x0.5 to x2: with assumed \
         costs halved and doubled. A modelled ratio is a difference if the mail's scatter and number of runs \
         would tell it; a pair agrees if that is so, or not so, everywhere as in the mail",
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
    let heads = ["", "published", "Holm's p", "modelled", "x0.5 to x2", "verdict"];
    let mut table = text::Table::new(heads).numbers(1..5);
    let mut pairs = pairs.peekable();
    pairs.peek()?;
    for pair in pairs {
        table.row([
            format!("{}, {}: {} over {}", pair.experiment, pair.block, pair.other, pair.base),
            format!("{:.3}", pair.ratio),
            format!("{:.4}", pair.p),
            ends(pair.compared.iter().filter_map(|one| one.ratio)),
            range(pair).map_or("not varied".into(), |[low, high]| ends([low, high].into_iter())),
            pair.verdict.to_string(),
        ]);
    }
    Some(table)
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

/// The lowest and the highest ratio at other costs, over all swept values.
fn range(pair: &Pair) -> Option<[f64; 2]> {
    let ratios = || pair.compared.iter().filter_map(Compared::range).flatten().map(|end| end.ratio);
    Some([ratios().reduce(f64::min)?, ratios().reduce(f64::max)?])
}

/// The scores beside that of the best constant answer.
fn summary(pairs: &Pairs) -> Vec<String> {
    let agree = |pairs: &mut dyn Iterator<Item = &Pair>| {
        let (mut all, mut agree) = (0, 0);
        for pair in pairs {
            all += 1;
            agree += usize::from(pair.verdict == Verdict::Agrees);
        }
        format!("{agree} of {all}")
    };
    let mut lines = vec![format!("Pairs that differ in the mail: {} agree.", agree(&mut pairs.differ()))];
    if let Some((engine, explained)) = &pairs.constant {
        lines[0] += &format!(
            " The best constant answer, \"{engine} is the worse one\", agrees in {explained} of {}.",
            pairs.differ().count()
        );
        lines.push(format!(
            "Pairs beyond that answer, which alone show something: {} agree.",
            agree(&mut pairs.exceptions())
        ));
    }
    lines.push(format!("Pairs without a difference in the mail: {} agree.", agree(&mut pairs.alike())));
    let told: usize = pairs.alike().filter(|pair| pair.verdict == Verdict::SignDiffers).count();
    if told > 0 {
        lines.push(format!("In {told} of them the model has a difference where the mail tells none."));
    }
    debug_assert!(pairs.alike().all(|pair| pair.sign == Sign::Nothing));
    lines
}
