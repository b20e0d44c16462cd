//! Measures how far predictions of `slablab whatif` are off, between all dumps of a folder.
//!
//! ```text
//! whatif_errors table FOLDER      median, worst, bias and coverage by question, size and state
//! whatif_errors pairs FOLDER      a line for each prediction
//! whatif_errors csv FOLDER        data/whatif-errors.csv
//! whatif_errors per-cpu FOLDER    data/per-cpu.csv
//! whatif_errors touches FOLDER    the distribution of touches
//! ```
//!
//! FOLDER has the dumps as files `*.tar.xz`, or as folders with such files.

use slablab_doctor::state::{self, Input};
use slablab_doctor::whatif::errors::measure::{
    Boot, Measured, Summary, measure, summary, touched_twice, without,
};
use slablab_doctor::whatif::errors::{COLUMNS, Question, row};
use slablab_doctor::whatif::reach::{fit, repeated};
use slablab_doctor::whatif::touch::touched;
use slablab_doctor::whatif::{PER_CPU_COLUMNS, PerCpu};
use std::path::{Path, PathBuf};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [what, folder] = args.as_slice() else {
        return Err("usage: whatif_errors table|pairs|csv|per-cpu FOLDER".into());
    };
    let boots = boots(Path::new(folder))?;
    match what.as_str() {
        "table" => table(&measure(&boots)?),
        "pairs" => measure(&boots)?.iter().for_each(pair),
        "touches" => touches(&boots),
        "csv" => {
            println!("{}", COLUMNS.join(","));
            measure(&boots)?.iter().for_each(|one| println!("{}", row(one).join(",")));
        }
        "per-cpu" => {
            println!("{}", PER_CPU_COLUMNS.join(","));
            let rows = without("", &boots).iter().flat_map(PerCpu::rows).collect::<Vec<_>>();
            rows.iter().for_each(|row| println!("{}", row.join(",")));
        }
        _ => return Err(format!("{what}: expected table, pairs, csv or per-cpu").into()),
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

/// The distribution of touches, machine by machine and of all.
fn touches(boots: &[Boot]) {
    let mut all = Vec::new();
    for boot in boots {
        let touched: Vec<(u32, u64)> =
            touched(&boot.state).into_iter().map(|(_, cpus, held)| (cpus, held)).collect();
        let (mean, deviation) = fit(&touched);
        println!("{}: {} caches, mean {mean:.1}, deviation {deviation:.1}", boot.name, touched.len());
        all.extend(touched);
    }
    let (mean, deviation) = fit(&all);
    let twice = repeated(touched_twice(boots).into_iter());
    println!("all: {} caches, mean {mean:.1}, deviation {deviation:.1}, repeated {twice:.2}", all.len());
}

fn pair(one: &Measured) {
    let percent = 100.0 * one.error();
    let (from, to, class, change) = (&one.from, &one.to, one.class, &one.change);
    println!("{from} {to} [{class}] {change}: {} {} {percent:+.1} %", one.predicted >> 10, one.real >> 10);
}

fn table(measured: &[Measured]) {
    println!("| question | machine | state | n | median | worst | bias | inside | width |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let line = |words: [&str; 3], wanted: &dyn Fn(&Measured) -> bool| {
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
    let has_cpus = |one: &Measured| one.change.cpus.is_some();
    line(["any with cpus", "all", "all"], &has_cpus);
    for (large, machine) in [(false, "to 8 CPUs"), (true, "more CPUs")] {
        for fewer in [true, false] {
            let word = if fewer { "fewer CPUs" } else { "more CPUs" };
            line([word, machine, "all"], &|one| {
                has_cpus(one) && one.class.large == large && one.fewer == fewer
            });
        }
    }
    line(["any", "all", "all"], &|one| one.class.question != Question::Nothing);
}
