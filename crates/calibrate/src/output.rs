//! A run for people and for programs.

use crate::costs::{self, Basis, Value, by_relation, digits};
use crate::hackbench::Options;
use crate::host::Relation;
use crate::rig::{Calibration, Noise};
use crate::series::{Series, Spread, Transport};
use serde_json::{Value as Json, json};
use slablab_report::text::Table;
use slablab_stats::{Bootstrap, Interval, Sample, quantile};
use std::fmt;

/// The most CPUs of which a table shows every pair.
const PAIRS_MAX: usize = 16;

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        write!(
            f,
            "Load average {:.1} before and {:.1} after; other programs used {} of the CPUs, the hypervisor {}; \
             {} of the blocks took over 1.5 times their median.",
            self.load[0],
            self.load[1],
            percent(self.others),
            percent(self.stolen),
            percent(self.disturbed)
        )
    }
}

/// The answer as text.
pub fn text(run: &Calibration) -> String {
    let host = &run.host;
    let guest = if host.virtual_machine { " (a virtual machine)" } else { "" };
    let mut parts = vec![format!(
        "{}, {} CPUs, {} nodes, Linux {}{guest}\n{} rounds in {:.0} s. {}\n",
        host.model,
        host.cpus.len(),
        host.nodes.len(),
        host.kernel,
        run.rounds,
        run.seconds,
        run.noise
    )];
    parts.push(costs_table(run));
    parts.push(pairs(run));
    parts.push(messages(run));
    parts.push(measured(run));
    let mut notes = run.notes.clone();
    notes.extend(costs::doubts(host, &run.samples));
    parts.extend((!notes.is_empty()).then(|| notes.join("\n") + "\n"));
    parts.join("\n")
}

fn costs_table(run: &Calibration) -> String {
    let mut table = Table::new(["costs of the machine file", "value", "", "from"]).numbers(1..2);
    for cost in costs::costs(&run.host, &run.samples) {
        let name = cost.distance.map_or(cost.name.into(), |distance| format!("{} {distance}", cost.name));
        let (value, unit) = match cost.value {
            Value::Ns(ns) => (digits(ns), "ns"),
            Value::Bytes(bytes) => ((bytes >> 10).to_string(), "KiB"),
            Value::Number(number) => (number.to_string(), ""),
            Value::Kind(kind) => (kind.into(), ""),
            Value::Release(major, minor) => (format!("{major}.{minor}"), ""),
        };
        let from = match cost.basis {
            Basis::Measured => cost.comment,
            Basis::Read => "the kernel's files".into(),
            Basis::Assumed(why) => format!("assumed: {why}"),
        };
        table.row([name, value, unit.into(), from]);
    }
    table.print()
}

fn pairs(run: &Calibration) -> String {
    let cpus = &run.host.allowed;
    if cpus.len() > PAIRS_MAX {
        let mut table = Table::new(["a line passes, ns", "pairs", "low quartile", "median", "high quartile"]);
        for (relation, (spread, pairs)) in by_relation(&run.host, &run.samples) {
            let name = match relation {
                Relation::Core => "in a core".to_string(),
                Relation::Llc => "in a last-level cache".to_string(),
                Relation::Distance(distance) => format!("between caches, distance {distance}"),
            };
            let numbers = [spread.low, spread.median, spread.high].map(digits);
            table.row([name, pairs.to_string()].into_iter().chain(numbers));
        }
        return table.print();
    }
    let grid = |head: &str, series: fn(u16, u16) -> Series| {
        let heads = cpus.iter().map(|cpu| format!("CPU {cpu}"));
        let mut table = Table::new(std::iter::once(head.to_string()).chain(heads));
        for row in cpus {
            let cell = |column: &u16| {
                let one = run.samples.median(series(*row, *column));
                one.map_or_else(|| "-".to_string(), digits)
            };
            table.row(std::iter::once(format!("CPU {row}")).chain(cpus.iter().map(cell)));
        }
        table.print()
    };
    let transfers = grid("written by, loaded by: ns", Series::Transfer);
    let trips =
        grid("ping-pong, half a trip: ns", |one, other| Series::PingPong(one.min(other), one.max(other)));
    transfers + "\n" + &trips
}

const TRANSPORTS: [Transport; 4] = [Transport::SocketPair, Transport::Pipe, Transport::Udp, Transport::Tcp];

fn messages(run: &Calibration) -> String {
    let mut table = Table::new(["100 bytes, one thread: ns", "send", "receive", "both"]);
    for transport in TRANSPORTS {
        let send = run.samples.median(Series::Send(transport));
        let receive = run.samples.median(Series::Receive(transport));
        let both = send.zip(receive).map(|(send, receive)| send + receive);
        let cells = [send, receive, both].map(|ns| ns.map_or_else(|| "-".to_string(), digits));
        table.row(std::iter::once(transport.to_string()).chain(cells));
    }
    table.print()
}

/// Series that have a table of their own, or are many.
fn is_elsewhere(series: Series) -> bool {
    use Series::*;
    matches!(series, Transfer(..) | PingPong(..) | Send(_) | Receive(_) | Pages(_) | Lines(_))
}

fn measured(run: &Calibration) -> String {
    let mut table = Table::new(["measured, ns", "low quartile", "median", "high quartile", "blocks", "GB/s"]);
    for series in run.samples.series().filter(|series| !is_elsewhere(*series)) {
        let Some(spread) = run.samples.spread(series) else { continue };
        let Spread { low, median, high, blocks } = spread;
        let is_stream = matches!(series, Series::CopyMemory | Series::ReadMemory | Series::ZeroMemory);
        let rate = if is_stream { format!("{:.1}", 1024.0 / median) } else { "".into() };
        let numbers = [digits(low), digits(median), digits(high), blocks.to_string(), rate];
        table.row(std::iter::once(series.to_string()).chain(numbers));
    }
    table.print()
}

/// The answer as JSON, with every series and its quartiles.
pub fn json(run: &Calibration) -> Json {
    let host = &run.host;
    let series = |series: Series| {
        let spread = run.samples.spread(series)?;
        let Spread { low, median, high, blocks } = spread;
        let name = series.to_string();
        Some(json!({ "series": name, "ns": median, "ns_low": low, "ns_high": high, "blocks": blocks }))
    };
    let cost = |cost: costs::Cost| {
        let value = match cost.value {
            Value::Ns(ns) => json!({ "ns": ns }),
            Value::Bytes(bytes) => json!({ "bytes": bytes }),
            Value::Number(number) => json!({ "number": number }),
            Value::Kind(kind) => json!({ "kind": kind }),
            Value::Release(major, minor) => json!({ "release": format!("{major}.{minor}") }),
        };
        let source = cost.basis.source(&host.model);
        json!({ "name": cost.name, "distance": cost.distance, "value": value, "source": source,
            "comment": cost.comment })
    };
    let costs = costs::costs(host, &run.samples);
    json!({
        "schema": "slablab.calibrate.1",
        "cpu_model": host.model,
        "kernel": host.kernel,
        "virtual_machine": host.virtual_machine,
        "cpus": host.cpus.len(),
        "rounds": run.rounds,
        "seconds": run.seconds,
        "noise": { "load": run.noise.load, "other_programs": run.noise.others, "stolen": run.noise.stolen,
            "disturbed": run.noise.disturbed },
        "notes": run.notes,
        "doubts": costs::doubts(host, &run.samples),
        "costs": costs.into_iter().map(cost).collect::<Vec<_>>(),
        "series": run.samples.series().filter_map(series).collect::<Vec<_>>(),
    })
}

/// The 95 % interval of the median over repeated runs; `None` for fewer than five.
fn interval(seconds: &Sample) -> Option<Interval> {
    let enough = seconds.n() >= 5;
    enough.then(|| Bootstrap::default().interval(seconds, |sorted| quantile(sorted, 0.5)).ok()).flatten()
}

/// The answer of repeated runs of hackbench, in the words of `perf bench sched messaging`.
pub fn hackbench_text(options: Options, seconds: &[f64]) -> String {
    let sample = Sample::new(seconds).expect("at least one run");
    let (kind, groups, tasks) = (options.kind(), options.groups, options.tasks());
    let mut text =
        format!("# 20 sender and receiver {kind} per group\n# {groups} groups == {tasks} {kind} run\n");
    let channel = if options.pipes { "pipes" } else { "socket pairs" };
    let (loops, messages) = (options.loops, options.messages());
    text += &format!("# {loops} loops, {messages} messages of 100 bytes through {channel}\n\n");
    text += &format!("     Total time: {:.3} [sec]\n\n", sample.median());
    let runs = sample.n();
    text += &format!("median of {runs} runs; shortest {:.3}, longest {:.3}", sample.min(), sample.max());
    if let Some(interval) = interval(&sample) {
        text += &format!("; 95 % interval of the median {:.3} to {:.3}", interval.low, interval.high);
    }
    let each = sample.median() * 1e9 / messages as f64;
    text + &format!("\n{} ns per message\n", digits(each))
}

/// The answer of repeated runs of hackbench, with every run.
pub fn hackbench_json(options: Options, seconds: &[f64]) -> Json {
    let sample = Sample::new(seconds).expect("at least one run");
    let ends = interval(&sample).map(|interval| [interval.low, interval.high]);
    json!({
        "schema": "slablab.hackbench.1",
        "groups": options.groups,
        "loops": options.loops,
        "kind": options.kind(),
        "channel": if options.pipes { "pipe" } else { "socketpair" },
        "messages": options.messages(),
        "seconds": sample.median(),
        "seconds_interval_95": ends,
        "runs": seconds,
    })
}
