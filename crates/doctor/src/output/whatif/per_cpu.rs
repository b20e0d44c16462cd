//! What a kernel allocates for each CPU.

use crate::whatif::{Kernel, PER_CPU_COLUMNS, PerCpu, Rate};
use schemars::JsonSchema;
use serde::Serialize;
use slablab_report::document::{Named, named};
use slablab_report::frame::Frame;
use slablab_report::html::{self, Cell, Head};
use slablab_report::text::{Table, cut};
use slablab_report::{Answer, Document};
use std::collections::BTreeSet;

#[derive(Serialize, JsonSchema)]
struct PerCpuDocument<'a> {
    /// The caches that the dumps show to grow with the CPUs.
    caches: Vec<CacheDocument<'a>>,
    /// The numbers of CPUs of the dumps.
    cpus: &'a [u32],
    #[serde(flatten)]
    kernel: &'a Kernel,
    /// The power of the CPUs that hold slabs with which slabs on those CPUs' partial lists grow.
    power_of_lists: Option<f64>,
    /// Caches of which a dump shows that some CPUs hold no slab, though other kernels' CPUs do.
    some_cpus: &'a BTreeSet<String>,
    /// Threads that no CPU brings.
    threads_of_no_cpu: Option<f64>,
    threads_per_cpu: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct CacheDocument<'a> {
    cache: &'a str,
    #[serde(flatten)]
    rate: &'a Rate,
}

impl Document for PerCpuDocument<'_> {
    const NAME: &'static str = "slablab.per-cpu.1";
    const TITLE: &'static str = "slablab whatif --input: what a kernel allocates for each CPU";
}

/// The schema of this answer.
pub(super) fn schema() -> Named {
    named::<PerCpuDocument>()
}

/// The answer of `whatif` with several inputs and no change. Its CSV has the format of data/per-cpu.csv.
pub fn per_cpu_answer(table: &PerCpu) -> Answer {
    let caches = table.caches.iter().map(|(cache, rate)| CacheDocument { cache, rate });
    let document = PerCpuDocument {
        caches: caches.collect(),
        cpus: &table.cpus,
        kernel: &table.kernel,
        power_of_lists: table.lists,
        some_cpus: &table.some_cpus,
        threads_of_no_cpu: table.threads_once,
        threads_per_cpu: table.threads,
    };
    Answer::new(format!("For each CPU: {}", table.kernel), sentence(table))
        .document(&document)
        .rows(frame(table))
        .table(text(table), &["at most", "at least", "a slab on every CPU"])
        .page_table("Objects of each cache for each CPU.", page(table))
        .remarks([
            "Of other caches the dumps do not show that they grow with the CPUs.".into(),
            "\"At least\" and \"at most\": the medians over pairs of dumps of what is possible, whatever CPU slabs \
             hold."
                .into(),
        ])
}

fn sentence(table: &PerCpu) -> String {
    let cpus: Vec<String> = table.cpus.iter().map(u32::to_string).collect();
    let by = format!("by dumps with {} CPUs", cpus.join(", "));
    let threads = table.threads.map_or(String::new(), |threads| format!("{threads:.1} threads and "));
    let most = table.caches.iter().max_by(|a, b| a.1.objects.total_cmp(&b.1.objects));
    match most {
        None => format!("No cache of {} is shown to grow with the CPUs, {by}.", table.kernel),
        Some((cache, rate)) => format!(
            "For each CPU {} allocates {threads}objects of {} caches, most of {cache} ({:.1}), {by}.",
            table.kernel,
            table.caches.len(),
            rate.objects
        ),
    }
}

fn every_cpu(rate: &Rate) -> &'static str {
    rate.every_cpu.map_or("unknown", |every| if every { "yes" } else { "no" })
}

fn text(table: &PerCpu) -> Table {
    let mut text = Table::new(["Cache", "objects per CPU", "at least", "at most", "a slab on every CPU"]);
    if let Some(threads) = table.threads {
        text.row(["(threads)".into(), format!("{threads:.1}"), String::new(), String::new(), String::new()]);
    }
    for (cache, rate) in &table.caches {
        let [objects, low, high] = [rate.objects, rate.low, rate.high].map(|objects| format!("{objects:.1}"));
        text.row([cut(cache, 22), objects, low, high, every_cpu(rate).into()]);
    }
    text
}

fn page(table: &PerCpu) -> html::Table {
    let heads = ["objects for each CPU", "at least", "at most"].map(Head::number);
    let ends = [Head::text("a slab on every CPU")];
    let mut page = html::Table::new([Head::text("cache")].into_iter().chain(heads).chain(ends));
    for (cache, rate) in &table.caches {
        let [objects, low, high] =
            [rate.objects, rate.low, rate.high].map(|objects| Cell::Number(objects, 1));
        page.row([Cell::Name(cache.clone()), objects, low, high, Cell::Text(every_cpu(rate).into())]);
    }
    page
}

fn frame(table: &PerCpu) -> Frame {
    let mut frame = Frame::new(PER_CPU_COLUMNS);
    for [release, arch, page_size, cpus, cache, numbers @ ..] in table.rows() {
        let kernel = [Cell::Name(release), Cell::Name(arch), Cell::Text(page_size), Cell::Text(cpus)];
        let cells = kernel.into_iter().chain([Cell::Name(cache)]);
        frame.row(cells.chain(numbers.map(Cell::Text)));
    }
    frame
}
