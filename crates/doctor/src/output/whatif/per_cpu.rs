//! What a kernel allocates for each CPU, as text, JSON and CSV.

use crate::whatif::{PER_CPU_COLUMNS, PerCpu};
use serde_json::{Value, json};
use slablab_report::csv::Csv;
use slablab_report::html::Cell;
use slablab_report::text::{Table, cut, wrapped};
use slablab_report::visible;

/// The table as text for people, at most 80 columns wide.
pub fn per_cpu_table(table: &PerCpu) -> String {
    let cpus: Vec<String> = table.cpus.iter().map(u32::to_string).collect();
    let title =
        format!("What {} allocates for each CPU, by dumps with {} CPUs", table.kernel, cpus.join(", "));
    let mut text = Table::new(["Cache", "objects per CPU", "at least", "at most", "a slab on every CPU"]);
    if let Some(threads) = table.threads {
        text.row(["(threads)".into(), format!("{threads:.1}"), String::new(), String::new(), String::new()]);
    }
    for (cache, rate) in &table.caches {
        let every = rate.every_cpu.map_or("unknown", |every| if every { "yes" } else { "no" });
        let [objects, low, high] = [rate.objects, rate.low, rate.high].map(|objects| format!("{objects:.1}"));
        text.row([cut(cache, 22), objects, low, high, every.into()]);
    }
    let assumed = "Of other caches the dumps do not show that they grow with the CPUs. \"At least\" and \"at \
                   most\": the medians over pairs of dumps of what is possible, whatever CPU slabs hold.";
    let out = wrapped(&title, "", "  ") + "\n" + &text.print() + "\n" + &wrapped(assumed, "- ", "  ");
    visible::lines(&out).into_owned()
}

/// The table as CSV: the format of data/per-cpu.csv.
pub fn per_cpu_csv(table: &PerCpu) -> String {
    let mut file = Csv::new(PER_CPU_COLUMNS);
    for [release, arch, page_size, cpus, cache, numbers @ ..] in table.rows() {
        let kernel = [Cell::Name(release), Cell::Name(arch), Cell::Text(page_size), Cell::Text(cpus)];
        let cells = kernel.into_iter().chain([Cell::Name(cache)]);
        file.row(cells.chain(numbers.map(Cell::Text)));
    }
    file.finish()
}

/// The table as JSON.
pub fn per_cpu_json(table: &PerCpu) -> Value {
    let caches = table.caches.iter().map(|(cache, rate)| {
        json!({
            "cache": cache,
            "objects_per_cpu": rate.objects,
            "objects_per_cpu_low": rate.low,
            "objects_per_cpu_high": rate.high,
            "every_cpu": rate.every_cpu,
        })
    });
    json!({
        "schema": "slablab.per-cpu.1",
        "release": table.kernel.release,
        "arch": table.kernel.arch,
        "page_size_bytes": table.kernel.page_size,
        "cpus": table.cpus,
        "threads_per_cpu": table.threads,
        "threads_of_no_cpu": table.threads_once,
        "power_of_lists": table.lists,
        "some_cpus": table.some_cpus,
        "caches": caches.collect::<Vec<_>>(),
    })
}
