//! The memory of a run as a page: frames by use, faults, swap, kswapd, disks' queues, processes.

use super::mmtests::{mmtests_rows, samples_of};
use super::{Column, PAGE_KIB, SECOND, rate, seconds};
use crate::pressure::run::Run;
use slablab_report::Answer;
use slablab_report::html::chart::{Axis, LIVE_ABOVE, Lines, Scale, Series, Shape, Stacked};
use slablab_report::html::{Cell, Head, Table};
use slablab_sim::memory::sampler::{Frames, Sample};

/// Adds the page of runs: charts of the first one, vmstat's counters of all.
pub(in crate::output) fn page_blocks(answer: Answer, columns: &[Column<'_>]) -> Answer {
    let first = columns.first().and_then(|(name, runs)| Some((name, *runs.first()?)));
    let Some((name, run)) = first else { return answer };
    let samples = &run.looked.samples;
    let answer = answer.facts([
        ("Page accesses", Cell::Count(run.accesses)),
        ("Samples", Cell::Count(samples.len() as u64)),
        ("Time", Cell::Text(format!("{} s", seconds(samples.last().map_or(0, |last| last.at))))),
        ("Processes killed", Cell::Count(run.killed.len() as u64)),
    ]);
    let answer = answer.paragraph(&format!(
        "Page accesses under memory pressure on a modelled machine: the charts are of {name}, seed {}. All times \
         are predicted by the model. Samples are taken at fixed times of the model and change nothing in it. A \
         rate is the mean between two samples.",
        run.seed
    ));
    let shown = thinned(samples);
    let answer = match shown.len() {
        ..=2 => answer.paragraph("The run is shorter than the time between two samples: there is no chart."),
        _ => tasks(queues(daemons(paging(memory(answer, &shown), &shown), &shown), &shown), &shown),
    };
    answer
        .section("Processes at the end of each phase")
        .page_table(
            "Who is paged out: the address space, what is in frames, what is in swap.",
            processes(run),
        )
        .section("Counters of /proc/vmstat")
        .page_table("Whole runs, in mmtests' words: means over the seeds.", counters(columns))
}

/// As many samples as a chart can show, the last one among them.
fn thinned(samples: &[Sample]) -> Vec<&Sample> {
    let every = samples.len().div_ceil(LIVE_ABOVE).max(1);
    let last = samples.len().saturating_sub(1);
    let shown = samples.iter().enumerate().filter(|(at, _)| at % every == 0 || *at == last);
    shown.map(|(_, sample)| sample).collect()
}

fn time(sample: &Sample) -> f64 {
    sample.at as f64 / SECOND as f64
}

fn time_axis() -> Axis {
    Axis::new("time", Scale::Seconds)
}

/// A row for each series: at the begin, the highest, at the end.
fn table(series: &[(String, Vec<f64>)], cell: impl Fn(f64) -> Cell) -> Table {
    let heads = ["at the begin", "mean", "highest", "at the end"].map(Head::number);
    let mut table = Table::new([Head::text("what")].into_iter().chain(heads));
    for (name, values) in series {
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let numbers = [
            values.first().copied().unwrap_or(0.0),
            mean,
            values.iter().copied().fold(0.0, f64::max),
            values.last().copied().unwrap_or(0.0),
        ];
        table.row([Cell::Name(name.clone())].into_iter().chain(numbers.map(&cell)));
    }
    table
}

/// Frames by use on top of each other. Uses that a colour would be too many for are drawn together.
fn memory(answer: Answer, samples: &[&Sample]) -> Answer {
    let bytes = |pages: u64| (pages * PAGE_KIB * 1_024) as f64;
    let uses: Vec<[u64; 8]> = samples.iter().map(|sample| sample.frames.uses()).collect();
    let named = |name: &str| Frames::USES.iter().position(|of| *of == name).expect("a use of this name");
    let drawn: [(&str, &[&str]); 5] = [
        ("anonymous", &["anonymous"]),
        ("files and buffers", &["files", "buffers"]),
        ("tmpfs", &["tmpfs"]),
        ("slabs", &["slabs"]),
        ("page tables, other", &["page tables", "other"]),
    ];
    let parts = drawn.map(|(name, of)| {
        let value = |uses: &[u64; 8]| of.iter().map(|of| bytes(uses[named(of)])).sum();
        (name.to_string(), uses.iter().map(value).collect())
    });
    let at = samples.iter().map(|sample| time(sample)).collect();
    let chart =
        Stacked { x: time_axis(), y: Axis::new("memory in use", Scale::Bytes), at, parts: parts.into() };
    let mut rows: Vec<(String, Vec<f64>)> = (0..Frames::USES.len())
        .map(|at| (Frames::USES[at].to_string(), uses.iter().map(|uses| bytes(uses[at])).collect()))
        .collect();
    let swap = |sample: &&Sample| ((sample.kib("SwapTotal") - sample.kib("SwapFree")) * 1_024) as f64;
    rows.push(("in swap".into(), samples.iter().map(swap).collect()));
    let caption = "Page frames by use, on top of each other; what is above is free. Anonymous memory has the swap \
                   cache, other the kernel's own frames and those in the page lists of CPUs.";
    let table = table(&rows, |bytes| Cell::Bytes(bytes as u64));
    answer.section("Memory by use").figure(caption, chart, table)
}

/// Lines of values that hold between two samples.
fn lines(samples: &[&Sample], y: Axis, series: &[(String, Vec<f64>)]) -> Lines {
    let times: Vec<f64> = samples.iter().map(|sample| time(sample)).collect();
    let series = series.iter().map(|(name, values)| Series {
        name: name.clone(),
        // A rate is that of the time before its sample.
        points: times[times.len() - values.len()..].iter().copied().zip(values.iter().copied()).collect(),
        band: Vec::new(),
    });
    Lines { x: time_axis(), y, shape: Shape::Straight, series: series.collect() }
}

/// What `of` says of each two samples that follow each other.
fn between(samples: &[&Sample], of: impl Fn(&Sample, &Sample) -> f64) -> Vec<f64> {
    samples.windows(2).map(|pair| of(pair[0], pair[1])).collect()
}

fn paging(answer: Answer, samples: &[&Sample]) -> Answer {
    let rates = |names: [(&str, &'static str); 2]| {
        names.map(|(shown, name)| {
            let of = |a: &Sample, b: &Sample| rate(a, b, |sample| sample.count(name)) as f64;
            (shown.to_string(), between(samples, of))
        })
    };
    let whole = |value: f64| Cell::Count(value.round() as u64);
    let faults = rates([("faults", "pgfault"), ("major faults", "pgmajfault")]);
    let axis = Axis::new("faults a second", Scale::Number);
    let faults_chart = lines(samples, axis, &faults);
    let swaps = rates([("in", "pswpin"), ("out", "pswpout")]);
    let axis = Axis::new("pages a second", Scale::Number);
    let swaps_chart = lines(samples, axis, &swaps);
    answer
        .section("Faults and swap")
        .figure("Faults, major ones included, and major faults.", faults_chart, table(&faults, whole))
        .figure("Pages read from swap and written to it.", swaps_chart, table(&swaps, whole))
}

fn daemons(answer: Answer, samples: &[&Sample]) -> Answer {
    let daemons = samples.first().map_or(&[][..], |sample| &sample.daemons);
    let series: Vec<(String, Vec<f64>)> = (0..daemons.len())
        .map(|at| {
            let of = |a: &Sample, b: &Sample| {
                let ran = b.daemons[at].ran.saturating_sub(a.daemons[at].ran);
                ran as f64 * 100.0 / (b.at - a.at).max(1) as f64
            };
            (daemons[at].name.clone(), between(samples, of))
        })
        .collect();
    let chart = lines(samples, Axis::new("of a CPU", Scale::Percent), &series);
    let table = table(&series, |value| Cell::Percent(Some(value)));
    answer.section("kswapd and the flusher").figure("CPU time between two samples.", chart, table)
}

/// The mean number of requests: the time of all requests by the time.
fn queues(answer: Answer, samples: &[&Sample]) -> Answer {
    let disks = samples.first().map_or(&[][..], |sample| &sample.disks);
    let series: Vec<(String, Vec<f64>)> = (0..disks.len())
        .map(|at| {
            let ms = |sample: &Sample| sample.disks[at].1[10] as f64;
            let of = |a: &Sample, b: &Sample| (ms(b) - ms(a)) / ((b.at - a.at) as f64 / 1e9).max(1e-9);
            (disks[at].0.to_string(), between(samples, of))
        })
        .collect();
    let chart = lines(samples, Axis::new("requests", Scale::Number), &series);
    let caption = "Mean number of requests that wait or are in the disk (aqu-sz of iostat). swap is the disk of the \
                   swap area, vda that of the files.";
    let table = table(&series, |value| Cell::Number(value, 2));
    answer.section("Queues of the disks").figure(caption, chart, table)
}

fn tasks(answer: Answer, samples: &[&Sample]) -> Answer {
    let of = |count: fn(&Sample) -> u32| samples.iter().map(|sample| f64::from(count(sample))).collect();
    let series = [
        ("run or wait for a CPU".to_string(), of(|sample| sample.running)),
        ("wait for I/O".to_string(), of(|sample| sample.blocked)),
    ];
    let chart = lines(samples, Axis::new("tasks", Scale::Number), &series);
    let table = table(&series, |value| Cell::Number(value, 1));
    answer.section("Tasks").figure("The columns r and b of vmstat.", chart, table)
}

fn processes(run: &Run) -> Table {
    let bytes = ["VSZ", "RSS", "VSZ-RSS", "in swap"].map(Head::number);
    let heads = [Head::text("phase"), Head::text("process"), Head::number("end").unit("s")];
    let mut table = Table::new(heads.into_iter().chain(bytes));
    for end in &run.looked.ends {
        for process in &end.processes {
            let name = if process.name.is_empty() { "(script)" } else { &process.name };
            let paged_out = process.virtual_pages - process.resident;
            let pages = [process.virtual_pages, process.resident, paged_out, process.swapped];
            let names = [Cell::Name(end.phase.clone()), Cell::Name(name.into()), Cell::Text(seconds(end.at))];
            table.row(names.into_iter().chain(pages.map(|pages| Cell::Bytes(pages * PAGE_KIB * 1_024))));
        }
    }
    table
}

fn counters(columns: &[Column<'_>]) -> Table {
    let heads = columns.iter().map(|(name, _)| Head::number(name));
    let mut table = Table::new([Head::text("row")].into_iter().chain(heads));
    for (name, numbers) in mmtests_rows(&samples_of(columns)) {
        table.row([Cell::Name(name.into())].into_iter().chain(numbers.into_iter().map(Cell::Text)));
    }
    table
}
