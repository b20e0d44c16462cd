//! Measures how far predictions of `slablab whatif` are off, between all dumps of a folder.
//!
//! ```text
//! whatif_errors table FOLDER      median, worst, bias and coverage by question, size and state
//! whatif_errors pairs FOLDER      a line for each prediction
//! whatif_errors caches FOLDER     the caches that carry the errors of other CPUs
//! whatif_errors tables FOLDER     what the table of another kernel, and none, cost
//! whatif_errors csv FOLDER        data/whatif-errors.csv
//! whatif_errors per-cpu FOLDER    data/per-cpu.csv
//! whatif_errors normal FOLDER      data/normal.csv
//! whatif_errors normals FOLDER     boots, predicted from boots with other numbers of CPUs
//! whatif_errors touches FOLDER    the distribution of touches
//! whatif_errors releases FOLDER   predictions of other releases, a line for each
//! ```
//!
//! FOLDER has the dumps as files `*.tar.xz`, or as folders with such files; of several folders all are taken.

use slablab_doctor::state::{self, Input, State};
use slablab_doctor::whatif::boots::{
    Boot, Comparison, Summary, machine, measure, measure_with, summary, touched_twice, without,
};
use slablab_doctor::whatif::errors::{COLUMNS, Question};
use slablab_doctor::whatif::normal::{self, HeldOut};
use slablab_doctor::whatif::reach::{Touches, slope};
use slablab_doctor::whatif::released::{Released, released};
use slablab_doctor::whatif::touch::touched;
use slablab_doctor::whatif::{Kernel, PER_CPU_COLUMNS, PerCpu};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The tables that predict a dump.
type TablesOf<'a> = &'a dyn Fn(&State) -> Vec<PerCpu>;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Caches to list for each machine and direction.
const MOST: usize = 22;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [what, folders @ ..] = args.as_slice() else {
        return Err(
            "usage: whatif_errors table|pairs|caches|tables|csv|per-cpu|normal|normals|touches|releases FOLDER..."
                .into(),
        );
    };
    let mut boots = Vec::new();
    for folder in folders {
        boots.extend(self::boots(Path::new(folder))?);
    }
    match what.as_str() {
        "table" => table(&measure(&boots)?),
        "pairs" => measure(&boots)?.iter().for_each(pair),
        "touches" => touches(&boots),
        "caches" => caches(&measure(&boots)?),
        "releases" => releases(&released(&boots)?),
        "tables" => tables(&boots)?,
        "csv" => {
            println!("{}", COLUMNS.join(","));
            measure(&boots)?.iter().for_each(|one| println!("{}", one.row().join(",")));
        }
        "per-cpu" => {
            println!("{}", PER_CPU_COLUMNS.join(","));
            let rows = without("", &boots).iter().flat_map(PerCpu::rows).collect::<Vec<_>>();
            rows.iter().for_each(|row| println!("{}", row.join(",")));
        }
        "normal" => {
            println!("{}", normal::COLUMNS.join(","));
            normal::table(&boots)?.iter().for_each(|row| println!("{}", row.join(",")));
        }
        "normals" => normals(&normal::held_out(&boots)?),
        _ => {
            return Err(format!(
                "{what}: expected table, pairs, caches, tables, csv, per-cpu, normal, normals, touches or releases"
            )
            .into());
        }
    }
    Ok(())
}

/// The dumps of a folder and of its folders, by name.
fn boots(folder: &Path) -> Result<Vec<Boot>> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => paths.extend(std::fs::read_dir(&path)?.flatten().map(|entry| entry.path())),
            false => paths.push(path),
        }
    }
    paths.retain(|path| path.to_string_lossy().ends_with(".tar.xz"));
    paths.sort();
    let boot = |path: PathBuf| {
        let name = path.strip_prefix(folder)?.display().to_string().replace(".tar.xz", "");
        Ok(Boot { name, state: state::read(&Input { path: Some(path), ..Input::default() })? })
    };
    paths.into_iter().map(boot).collect()
}

/// Boots beside what boots with other numbers of CPUs predict of them, in KiB.
fn normals(all: &[HeldOut]) {
    println!("| boot | from CPUs | predicted | range | real | off | inside |\n|---|---|---|---|---|---|---|");
    for one in all {
        let from: Vec<String> = one.from.iter().map(u32::to_string).collect();
        let [predicted, low, high, real] =
            [one.slabs.predicted, one.slabs.low, one.slabs.high, one.real].map(|bytes| bytes >> 10);
        let off = 100.0 * (predicted as f64 / real.max(1) as f64 - 1.0);
        let inside = if (low..=high).contains(&real) { "yes" } else { "no" };
        let (name, from) = (&one.name, from.join(", "));
        println!("| {name} | {from} | {predicted} | {low} to {high} | {real} | {off:+.1} % | {inside} |");
    }
}

/// How often programs touched the caches of each dump, and the distribution over dumps.
fn touches(boots: &[Boot]) {
    let mut all = Vec::new();
    for boot in boots {
        let cpus = boot.state.cpus.map_or(0, |cpus| cpus.online);
        let held: Vec<u64> = touched(&boot.state).into_iter().map(|(_, held)| held).collect();
        if cpus > 1 && !held.is_empty() {
            let (alone, with) = (Touches::alone(cpus, &held).ln_most, Touches::of(cpus, &held).ln_most);
            println!("{}: {} caches, ln T {alone:.2}, with what is assumed {with:.2}", boot.name, held.len());
            all.push(alone);
        }
    }
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let variance = all.iter().map(|ln| (ln - mean).powi(2)).sum::<f64>() / all.len() as f64;
    let repeated = slope(&touched_twice(boots));
    println!(
        "all: {} dumps, mean {mean:.2}, deviation {:.2}, a cache's distance repeated {repeated:.2}",
        all.len(),
        variance.sqrt()
    );
}

fn pair(one: &Comparison) {
    let percent = 100.0 * one.error();
    let (from, to, class, change) = (&one.from, &one.to, one.class, &one.change);
    println!("{from} {to} [{class}] {change}: {} {} {percent:+.1} %", one.predicted >> 10, one.real >> 10);
}

/// The caches that carry the errors of predictions for other CPUs, by machine and direction: KiB too many,
/// and their size, on average over predictions.
fn caches(measured: &[Comparison]) {
    let asked = |one: &&Comparison| {
        one.change.cpus.is_some() && one.change.merge.is_none() && one.class.question == Question::Cpus
    };
    let mut groups: BTreeMap<(&str, bool, bool), Vec<&Comparison>> = BTreeMap::new();
    for one in measured.iter().filter(asked) {
        groups.entry((&one.machine, one.fewer, one.class.loaded)).or_default().push(one);
    }
    println!("| to | from | state | cache | too many, KiB | off by, KiB |\n|---|---|---|---|---|---|");
    for ((machine, fewer, loaded), group) in groups {
        let mut of: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
        for (cache, bytes) in group.iter().flat_map(|one| &one.caches) {
            let sums = of.entry(cache).or_default();
            *sums = (sums.0 + bytes, sums.1 + bytes.abs());
        }
        let mut of: Vec<(&str, (i64, i64))> = of.into_iter().collect();
        of.sort_by_key(|(_, (_, size))| std::cmp::Reverse(*size));
        let (from, state) =
            (if fewer { "more CPUs" } else { "fewer CPUs" }, if loaded { "load" } else { "boot" });
        let sums = of.iter().fold((0, 0), |sums, (_, one)| (sums.0 + one.0, sums.1 + one.1));
        for (cache, (sum, size)) in std::iter::once(("all", sums)).chain(of.into_iter().take(MOST)) {
            let each = |bytes: i64| bytes / group.len() as i64 / 1024;
            println!("| {machine} | {from} | {state} | {cache} | {:+} | {} |", each(sum), each(size));
        }
    }
}

/// Predictions for other CPUs with the kernel's own table, with that of another architecture and with none.
fn tables(boots: &[Boot]) -> Result<()> {
    println!("| table | machine | n | median | worst | bias |\n|---|---|---|---|---|---|");
    let all = without("", boots);
    let own = |state: &State| all.iter().filter(|table| table.kernel == Kernel::of(state)).cloned().collect();
    let other =
        |state: &State| all.iter().filter(|table| table.kernel != Kernel::of(state)).cloned().collect();
    let of_size = |state: &State| without(&machine(state), boots);
    let kinds: [(&str, TablesOf<'_>); 4] = [
        ("its own, the predicted machine's dumps included", &own),
        ("of all other machines", &of_size),
        ("of the other architecture", &other),
        ("none", &|_| Vec::new()),
    ];
    for (name, tables) in kinds {
        let measured = measure_with(boots, tables)?;
        for (large, machine) in [(false, "to 8 CPUs"), (true, "more CPUs")] {
            let found = summary(&measured, |one| one.change.cpus.is_some() && one.class.large == large);
            let [median, worst, bias] = [found.median, found.worst, found.bias].map(|part| 100.0 * part);
            let count = found.count;
            println!("| {name} | {machine} | {count} | {median:.1} % | {worst:+.1} % | {bias:+.1} % |");
        }
    }
    Ok(())
}

fn table(measured: &[Comparison]) {
    println!("| question | machine | state | n | median | worst | bias | inside | width |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let line = |words: [&str; 3], wanted: &dyn Fn(&Comparison) -> bool| {
        let Summary { count, median, worst, bias, coverage, width } = summary(measured, wanted);
        if count > 0 {
            let [question, machine, state] = words;
            let [median, worst, bias, coverage, width] =
                [median, worst, bias, coverage, width].map(|part| 100.0 * part);
            println!(
                "| {question} | {machine} | {state} | {count} | {median:.1} % | {worst:+.1} % | {bias:+.1} % \
                 | {coverage:.0} % | {width:.0} % |"
            );
        }
    };
    for question in Question::ALL {
        for (large, machine) in [(false, "to 8 CPUs"), (true, "more CPUs")] {
            for (loaded, state) in [(false, "boot"), (true, "load")] {
                line([question.name(), machine, state], &|one| {
                    let class = one.class;
                    (class.question, class.large, class.loaded) == (question, large, loaded)
                });
            }
        }
        line([question.name(), "all", "all"], &|one| one.class.question == question);
    }
    let has_cpus = |one: &Comparison| one.change.cpus.is_some();
    line(["any with cpus", "all", "all"], &has_cpus);
    for (large, machine) in [(false, "to 8 CPUs"), (true, "more CPUs")] {
        for fewer in [true, false] {
            let word = if fewer { "fewer CPUs" } else { "more CPUs" };
            line([word, machine, "all"], &|one| {
                has_cpus(one) && one.class.large == large && one.fewer == fewer
            });
        }
    }
    for (far, words) in [(false, "cpus, up to four times"), (true, "cpus, more than four times")] {
        line([words, "all", "all"], &|one| has_cpus(one) && one.class.far == far);
    }
    line(["any", "all", "all"], &|one| one.class.question != Question::Nothing);
}

/// Predictions of other releases as rows of Markdown, in KiB, and what they amount to.
fn releases(all: &[Released]) {
    println!("| from | to | today | predicted | range | real | off | unchanged | inside |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for one in all {
        let [today, predicted, low, high, real] =
            [one.today, one.predicted, one.range.0, one.range.1, one.real].map(|bytes| bytes >> 10);
        let [off, unchanged] = [one.error(), one.error_unchanged()].map(|error| 100.0 * error);
        let inside = if one.is_inside() { "yes" } else { "no" };
        let Released { from, to, .. } = one;
        println!(
            "| {from} | {to} | {today} | {predicted} | {low} to {high} | {real} | {off:+.1} % | \
             {unchanged:+.1} % | {inside} |"
        );
    }
    for (name, loaded) in [("after boot", false), ("after a load", true)] {
        let of: Vec<&Released> = all.iter().filter(|one| one.loaded == loaded).collect();
        let median = |error: fn(&Released) -> f64| {
            let mut errors: Vec<f64> = of.iter().map(|one| 100.0 * error(one).abs()).collect();
            errors.sort_by(f64::total_cmp);
            errors.get(errors.len() / 2).copied().unwrap_or_default()
        };
        let worst = of.iter().map(|one| 100.0 * one.error()).max_by(|a, b| a.abs().total_cmp(&b.abs()));
        println!(
            "\n{name}: {} predictions, median error {:.1} % (unchanged {:.1} %), worst {:+.1} %, {} inside",
            of.len(),
            median(Released::error),
            median(Released::error_unchanged),
            worst.unwrap_or_default(),
            of.iter().filter(|one| one.is_inside()).count()
        );
    }
}
