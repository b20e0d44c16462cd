//! A run as a machine file.

use crate::costs::{self, Basis, Cost, Value};
use crate::host::{Host, as_list};
use crate::rig::Calibration;
use std::fmt::Write;

/// The machine file (TOML) of a run.
pub fn toml(run: &Calibration) -> String {
    let mut text = String::new();
    head(&mut text, run);
    topology(&mut text, &run.host);
    text.push_str("\n# Times are medians in ns; the comments have the quartiles of the blocks.\n[costs]\n");
    for cost in costs::costs(&run.host, &run.samples) {
        line(&mut text, &cost, &run.host.model);
    }
    text
}

fn head(text: &mut String, run: &Calibration) {
    let Calibration { host, rounds, seconds, noise, .. } = run;
    let guest = if host.virtual_machine { ", a virtual machine" } else { "" };
    let lines = [
        format!("{} with Linux {}{guest}.", host.model, host.kernel),
        format!("Written by `slablab calibrate`: {rounds} rounds in {seconds:.0} s. {noise}"),
    ];
    let doubts = costs::doubts(host, &run.samples);
    lines
        .iter()
        .chain(&run.notes)
        .chain(&doubts)
        .for_each(|line| writeln!(text, "# {}", one_line(line)).expect("a string"));
    let cpus = host.cpus.len();
    writeln!(text, "name = {}", quoted(&name(host))).expect("a string");
    let about = format!("{}, {cpus} CPUs: this host when it was calibrated", host.model);
    writeln!(text, "about = {}\n", quoted(&about)).expect("a string");
}

/// The processor's name in lower case, without what a file name cannot hold.
fn name(host: &Host) -> String {
    let words = host.model.split(|char: char| !char.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<String> = words.map(str::to_ascii_lowercase).collect();
    format!("{}-{}cpus", words.join("-"), host.cpus.len())
}

fn topology(text: &mut String, host: &Host) {
    let mut line = |line: String| writeln!(text, "{line}").expect("a string");
    line(format!("page_size = {}", host.page_size));
    line(format!("cpus = {}", host.cpus.iter().map(|cpu| cpu.id + 1).max().unwrap_or(1)));
    let memoryless = cfg!(target_arch = "powerpc64");
    line(format!("memoryless_nodes = \"{}\"  # by the architecture", if memoryless { "yes" } else { "no" }));
    match (host.threads_per_core(), smt(host)) {
        (Some(1), _) => line("threads_per_core = 1".into()),
        (Some(threads), Some(smt)) => line(format!("threads_per_core = {threads}\nsmt = \"{smt}\"")),
        _ => line("# The CPUs of cores are numbered in no order that this file can say: no SMT.".into()),
    }
    match host.cpus_per_llc() {
        Some(cpus) => line(format!("cpus_per_llc = {cpus}")),
        None => line("# Last-level caches have different numbers of CPUs: those of a node share one.".into()),
    }
    for node in &host.nodes {
        line(format!("\n[[nodes]]\nmemory = \"{}K\"", node.bytes >> 10));
        line(format!("cpus = \"{}\"", as_list(&node.cpus)));
        let socket = host.cpus.iter().find(|cpu| cpu.node == node.id).map_or(node.id, |cpu| cpu.socket);
        line(format!("socket = {socket}"));
        line(format!("distances = {:?}", node.distances));
    }
}

/// The word for how the CPUs of cores are numbered, if there is one.
fn smt(host: &Host) -> Option<&'static str> {
    let threads = host.threads_per_core()?;
    let cores = host.cpus.len() as u16 / threads;
    let all = |is: &dyn Fn(u16, u16) -> bool| {
        host.cpus.iter().all(|cpu| cpu.siblings.iter().all(|other| is(cpu.id, *other)))
    };
    if all(&|one, other| one / threads == other / threads) {
        Some("adjacent")
    } else if all(&|one, other| one % cores == other % cores) {
        Some("split")
    } else {
        None
    }
}

fn line(text: &mut String, cost: &Cost, model: &str) {
    let value = match cost.value {
        Value::Ns(ns) => format!("ns = {}", number(ns)),
        Value::Bytes(bytes) if bytes % 1024 == 0 => format!("bytes = \"{}K\"", bytes >> 10),
        Value::Bytes(bytes) => format!("bytes = {bytes}"),
        Value::Number(number) => format!("number = {number}"),
        Value::Kind(kind) => format!("kind = \"{kind}\""),
        Value::Release(major, minor) => format!("release = \"{major}.{minor}\""),
    };
    let distance = cost.distance.map_or(String::new(), |distance| format!(".{distance}"));
    let source = quoted(&cost.basis.source(model));
    write!(text, "{}{distance} = {{ {value}, source = {source} }}", cost.name).expect("a string");
    if cost.basis == Basis::Measured {
        write!(text, "  # {}", one_line(&cost.comment)).expect("a string");
    }
    text.push('\n');
}

/// A time in whole picoseconds.
fn number(ns: f64) -> String {
    let text = format!("{ns:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// A text of TOML. Names come from the kernel's files.
fn quoted(text: &str) -> String {
    serde_json::Value::from(one_line(text)).to_string()
}

/// A text without line ends and other control characters.
fn one_line(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect()
}
