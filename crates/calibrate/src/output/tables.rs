//! The tables of a calibration.

use crate::costs::{Basis, Cost, Value, by_relation, digits};
use crate::host::Relation;
use crate::rig::Calibration;
use crate::series::{Series, Spread, Transport};
use slablab_report::column::{Columns, Style};
use slablab_report::html::{self, Cell};
use slablab_report::text::Table;

/// The most CPUs of which a table shows every pair.
const PAIRS_MAX: usize = 16;

/// Columns that are left out on a narrow terminal, in this order.
pub(super) const LEFT_OUT: [&str; 4] = ["from", "blocks", "GB/s", "pairs"];

/// The columns of the costs.
pub(super) fn columns() -> Columns<Cost> {
    Columns::default()
        .key("cost", |cost: &Cost| Cell::Text(cost.name.into()))
        .key("distance", |cost| cost.distance.map_or(Cell::Empty, |distance| Cell::Count(distance.into())))
        .add("value", "value", "value", |cost| Cell::Text(value(cost).0))
        .add("unit", "", "unit", |cost| Cell::Text(value(cost).1.into()))
        .words()
        .add("basis", "basis", "basis", |cost| {
            Cell::Text(
                match cost.basis {
                    Basis::Measured => "measured",
                    Basis::Read => "read",
                    Basis::Assumed(_) => "assumed",
                }
                .into(),
            )
        })
        .words()
        .add("from", "from", "from", |cost| {
            Cell::Text(match &cost.basis {
                Basis::Measured => cost.comment.clone(),
                Basis::Read => "the kernel's files".into(),
                Basis::Assumed(why) => format!("assumed: {why}"),
            })
        })
        .words()
}

/// A cost's number, as tables print it, and its unit.
fn value(cost: &Cost) -> (String, &'static str) {
    match cost.value {
        Value::Ns(ns) => (digits(ns), "ns"),
        Value::Bytes(bytes) => ((bytes >> 10).to_string(), "KiB"),
        Value::Number(number) => (number.to_string(), ""),
        Value::Kind(kind) => (kind.into(), ""),
        Value::Release(major, minor) => (format!("{major}.{minor}"), ""),
    }
}

fn name(cost: &Cost) -> Cell {
    Cell::Text(cost.distance.map_or(cost.name.into(), |distance| format!("{} {distance}", cost.name)))
}

const KEYS: [&str; 4] = ["value", "unit", "basis", "from"];

pub(super) fn costs(costs: &[Cost]) -> Table {
    columns().text(("costs of the machine file", &name), &KEYS, costs, Style::Units).numbers(1..2)
}

pub(super) fn costs_page(costs: &[Cost]) -> html::Table {
    columns().html(("cost", &name), &KEYS, costs)
}

/// What it takes a line to come from another CPU: of every pair of CPUs, or in short if there are many.
pub(super) fn pairs(run: &Calibration) -> Vec<Table> {
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
        return vec![table];
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
        table
    };
    let trips = |one: u16, other: u16| Series::PingPong(one.min(other), one.max(other));
    vec![grid("written by, loaded by: ns", Series::Transfer), grid("ping-pong, half a trip: ns", trips)]
}

const TRANSPORTS: [Transport; 4] = [Transport::SocketPair, Transport::Pipe, Transport::Udp, Transport::Tcp];

pub(super) fn messages(run: &Calibration) -> Table {
    let mut table = Table::new(["100 bytes, one thread: ns", "send", "receive", "both"]);
    for transport in TRANSPORTS {
        let send = run.samples.median(Series::Send(transport));
        let receive = run.samples.median(Series::Receive(transport));
        let both = send.zip(receive).map(|(send, receive)| send + receive);
        let cells = [send, receive, both].map(|ns| ns.map_or_else(|| "-".to_string(), digits));
        table.row(std::iter::once(transport.to_string()).chain(cells));
    }
    table
}

/// Series that have a table of their own, or are many.
fn is_elsewhere(series: Series) -> bool {
    use Series::*;
    matches!(series, Transfer(..) | PingPong(..) | Send(_) | Receive(_) | Pages(_) | Lines(_))
}

pub(super) fn measured(run: &Calibration) -> Table {
    let mut table = Table::new(["measured, ns", "low quartile", "median", "high quartile", "blocks", "GB/s"]);
    for series in run.samples.series().filter(|series| !is_elsewhere(*series)) {
        let Some(spread) = run.samples.spread(series) else { continue };
        let Spread { low, median, high, blocks } = spread;
        let is_stream = matches!(series, Series::CopyMemory | Series::ReadMemory | Series::ZeroMemory);
        let rate = if is_stream { format!("{:.1}", 1024.0 / median) } else { "".into() };
        let numbers = [digits(low), digits(median), digits(high), blocks.to_string(), rate];
        table.row(std::iter::once(series.to_string()).chain(numbers));
    }
    table
}
