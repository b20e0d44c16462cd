//! The table `[costs]` of a machine file: a price or size, and where the number is from.
//!
//! ```toml
//! [costs]
//! l1 = { ns = 1.2, source = "assumed" }
//! l1_bytes = { bytes = "32K", source = "the processor's data sheet" }
//! tlb_entries = { number = 1536, source = "assumed" }
//! handover = { kind = "queued", source = "the kernel's release" }
//! l2 = { ns = 4, source = "a table of three such processors", within = 1.05 }
//! transfer = { 10 = { ns = 80, source = "assumed" }, 32 = { ns = 190, source = "assumed" } }
//! ```

use crate::doc::{Bad, Doc, Read, Value, shown};
use slablab_model::{Costs, Handover, Ps};
use toml::de::{DeTable, DeValue};

/// A cost of a machine, as files name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Its name in a file, which is the field's in [`Costs`].
    pub name: &'static str,
    /// Its unit: `ns`, `bytes`, `number`, `kind`, or `ns by distance`.
    pub unit: &'static str,
}

/// Where a cost in [`Costs`] is, by its kind.
enum Place<'a> {
    Time(&'a mut Ps),
    ByDistance(&'a mut Vec<(u32, Ps)>),
    Bytes(&'a mut u64),
    Number(&'a mut u32),
    Kind(&'a mut Handover),
    Release(&'a mut Option<(u16, u16)>),
}

macro_rules! unit {
    (Time) => {
        "ns"
    };
    (ByDistance) => {
        "ns by distance"
    };
    (Bytes) => {
        "bytes"
    };
    (Number) => {
        "number"
    };
    (Kind) => {
        "kind"
    };
    (Release) => {
        "release"
    };
}

macro_rules! costs {
    ($($name:ident: $kind:ident,)*) => {
        /// All costs, in the order of [`Costs`].
        pub const COSTS: &[Cost] = &[$(Cost { name: stringify!($name), unit: unit!($kind) },)*];

        fn place<'a>(costs: &'a mut Costs, name: &str) -> Option<Place<'a>> {
            match name {
                $(stringify!($name) => Some(Place::$kind(&mut costs.$name)),)*
                _ => None,
            }
        }
    };
}

costs! {
    cycle: Time,
    line_bytes: Number,
    l1_bytes: Bytes,
    l2_bytes: Bytes,
    llc_bytes: Bytes,
    l1: Time,
    l2: Time,
    llc: Time,
    transfer_core: Time,
    transfer_llc: Time,
    transfer: ByDistance,
    memory: ByDistance,
    misses_at_once: Number,
    window: Number,
    local_exchange: Time,
    locked_exchange: Time,
    exchange16: Time,
    interrupts: Time,
    zero_kib: Time,
    copy_kib: Time,
    tlb_miss: Time,
    tlb_entries: Number,
    tlb_page_bytes: Bytes,
    handover: Kind,
    syscall: Time,
    switch_mm: Time,
    switch_thread: Time,
    wake_local: Time,
    wake_remote: Time,
    ipi: Time,
    ipi_send: Time,
    idle_exit: Time,
    page_fault: Time,
    fork: Time,
    exit: Time,
    socket_send: Time,
    socket_receive: Time,
    pipe_write: Time,
    pipe_read: Time,
    udp_send: Time,
    udp_receive: Time,
    tcp_send: Time,
    tcp_receive: Time,
    messages_release: Release,
}

/// Costs that a file may leave out. Without `tlb_page_bytes` the kernel's direct map has pages of 2 MiB;
/// without a time of a message the kernel charges assumed cycles; without `misses_at_once` independent misses
/// do not overlap, and without `window` as many as that.
const OPTIONAL: [&str; 13] = [
    "tlb_page_bytes",
    "socket_send",
    "socket_receive",
    "pipe_write",
    "pipe_read",
    "udp_send",
    "udp_receive",
    "tcp_send",
    "tcp_receive",
    "messages_release",
    "ipi_send",
    "misses_at_once",
    "window",
];
/// The times of messages, among the optional costs.
const MESSAGES: std::ops::Range<usize> = 1..9;

/// Longest time of one cost: a second.
const NS_MAX: f64 = 1e9;
const HANDOVERS: [(&str, Handover); 3] =
    [("test-and-set", Handover::TestAndSet), ("ticket", Handover::Ticket), ("queued", Handover::Queued)];

/// Where one number of [`Costs`] is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The cost's name.
    pub cost: &'static str,
    /// The node distance, for a cost that depends on it.
    pub distance: Option<u32>,
    /// The document, measurement or command; or `assumed`, perhaps with a reason.
    pub text: String,
    /// Within which factor the true cost is with 95 % certainty, in thousandths, if the file says so.
    pub within_milli: Option<u32>,
}

impl Source {
    /// Whether nobody measured the number.
    pub fn is_assumed(&self) -> bool {
        self.text.split([' ', ':', ',']).next() == Some("assumed")
    }
}

/// What a machine's parts cost, and where each number is from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Priced {
    /// The numbers.
    pub costs: Costs,
    /// One entry for each number.
    pub sources: Vec<Source>,
}

impl Priced {
    /// The times: those that `reproduce` draws.
    pub fn times(&self) -> impl Iterator<Item = &Source> {
        let is_time = |source: &&Source| {
            COSTS.iter().any(|cost| cost.name == source.cost && cost.unit.starts_with("ns"))
        };
        self.sources.iter().filter(is_time)
    }

    /// The times that nobody measured.
    pub fn assumed(&self) -> impl Iterator<Item = &Source> {
        self.times().filter(|source| source.is_assumed())
    }

    /// Costs with one time multiplied by `numerator / denominator`.
    ///
    /// # Panics
    /// If `denominator` is 0.
    pub fn scaled(&self, source: &Source, numerator: u64, denominator: u64) -> Costs {
        let mut costs = self.costs.clone();
        let scale = |time: &mut Ps| *time = time.saturating_mul(numerator) / denominator;
        match place(&mut costs, source.cost) {
            Some(Place::Time(time)) => scale(time),
            Some(Place::ByDistance(times)) => {
                times
                    .iter_mut()
                    .filter(|(at, _)| Some(*at) == source.distance)
                    .for_each(|(_, time)| scale(time));
            }
            _ => {}
        }
        costs
    }
}

/// Reads the table `[costs]`, whose value is `whole`.
pub(crate) fn read(doc: &Doc<'_>, whole: &Value<'_>) -> Read<Priced> {
    let table = doc.table(whole, "costs", "a table [costs]")?;
    let names: Vec<&str> = COSTS.iter().map(|cost| cost.name).collect();
    doc.known(table, &names)?;
    let missing: Vec<&str> =
        names.iter().copied().filter(|name| table.get(*name).is_none() && !OPTIONAL.contains(name)).collect();
    if !missing.is_empty() {
        return Err(doc.bad(whole, format!("[costs] has no {}: expected every cost", missing.join(", "))));
    }
    let mut priced = Priced::default();
    for cost in COSTS {
        let Some(value) = table.get(cost.name) else { continue };
        let place = place(&mut priced.costs, cost.name).expect("every cost has a place");
        let source =
            |distance, (text, within_milli)| Source { cost: cost.name, distance, text, within_milli };
        match place {
            Place::ByDistance(prices) => {
                for (distance, ns, from) in by_distance(doc, cost.name, value)? {
                    prices.push((distance, ns));
                    priced.sources.push(source(Some(distance), from));
                }
            }
            place => {
                let from = one(doc, cost, value, place)?;
                priced.sources.push(source(None, from));
            }
        }
    }
    check(doc, table, &priced.costs)?;
    Ok(priced)
}

/// What contradicts itself.
fn check(doc: &Doc<'_>, table: &DeTable<'_>, costs: &Costs) -> Read<()> {
    let bad = |name: &str, what: &str| Err(doc.bad(&table[name], format!("{name}: {what}")));
    if costs.cycle == 0 {
        return bad("cycle", "expected more than 0 ns");
    }
    if !costs.line_bytes.is_power_of_two() || !(16..=4096).contains(&costs.line_bytes) {
        return bad("line_bytes", "expected a power of two from 16 to 4096");
    }
    if costs.tlb_entries == 0 {
        return bad("tlb_entries", "expected at least 1");
    }
    if table.get("tlb_page_bytes").is_some()
        && (!costs.tlb_page_bytes.is_power_of_two() || costs.tlb_page_bytes < 4096)
    {
        return bad("tlb_page_bytes", "expected a power of two from 4096 on");
    }
    let message = OPTIONAL[MESSAGES].iter().find(|name| table.get(**name).is_some());
    if let Some(name) = message
        && costs.messages_release.is_none()
    {
        return bad(name, "expected messages_release too: the kernel under which it was measured");
    }
    Ok(())
}

/// The text of a source, and the factor within which the cost is, if it is stated.
type Told = (String, Option<u32>);

/// Reads `{ ns = .., source = ".." }` or another unit, and returns the source.
fn one(doc: &Doc<'_>, cost: &Cost, value: &Value<'_>, place: Place<'_>) -> Read<Told> {
    let unit = cost.unit;
    let (number, source) = priced(doc, cost.name, unit, value)?;
    match place {
        Place::Time(time) => *time = ps(doc, cost.name, number)?,
        Place::Bytes(bytes) => *bytes = doc.bytes(number, cost.name)?,
        Place::Number(target) => *target = doc.number(number, cost.name, 0..=u32::MAX as u64)? as u32,
        Place::Kind(kind) => *kind = doc.word(number, cost.name, &HANDOVERS)?,
        Place::Release(place) => *place = Some(release(doc, cost.name, number)?),
        Place::ByDistance(_) => unreachable!("{} depends on the distance", cost.name),
    }
    Ok(source)
}

/// The number and the source of a cost; a time may say within which factor it is.
fn priced<'v, 'i>(
    doc: &Doc<'i>,
    name: &str,
    unit: &str,
    value: &'v Value<'i>,
) -> Read<(&'v Value<'i>, Told)> {
    let optional: &[&str] = if unit == "ns" { &["within"] } else { &[] };
    let (number, text, table) = entry_with(doc, name, unit, value, optional)?;
    let within = table.get("within").map(|given| doc.factor(given, "within")).transpose()?;
    Ok((number, (text, within.map(|factor| (factor * 1e3).round() as u32))))
}

/// The number and the source of one inline table.
pub(crate) fn entry<'v, 'i>(
    doc: &Doc<'i>,
    name: &str,
    unit: &str,
    value: &'v Value<'i>,
) -> Read<(&'v Value<'i>, String)> {
    let (number, text, _) = entry_with(doc, name, unit, value, &[])?;
    Ok((number, text))
}

/// The number and the source of one inline table that may have these parts too, and the table.
fn entry_with<'v, 'i>(
    doc: &Doc<'i>,
    name: &str,
    unit: &str,
    value: &'v Value<'i>,
    optional: &[&str],
) -> Read<(&'v Value<'i>, String, &'v DeTable<'i>)> {
    let expected = format!("{{ {unit} = .., source = \"..\" }}");
    let table = doc.table(value, name, &expected)?;
    doc.known(table, &[&[unit, "source"], optional].concat())?;
    let part = |part: &str| {
        table.get(part).ok_or_else(|| doc.bad(value, format!("{name} has no {part}: expected {expected}")))
    };
    Ok((part(unit)?, doc.text(part("source")?, "source")?, table))
}

fn by_distance(doc: &Doc<'_>, name: &str, value: &Value<'_>) -> Read<Vec<(u32, Ps, Told)>> {
    let table = doc.table(value, name, "{ 10 = { ns = .., source = \"..\" }, .. }, by node distance")?;
    let mut prices = Vec::new();
    for (key, price) in table {
        let distance = key.get_ref().parse::<u32>().ok().filter(|distance| (10..=255).contains(distance));
        let Some(distance) = distance else {
            let given = key.get_ref();
            return Err(doc.bad(price, format!("{name}: {given} is no node distance: expected 10 to 255")));
        };
        let (number, source) = priced(doc, name, "ns", price)?;
        prices.push((distance, ps(doc, name, number)?, source));
    }
    prices.sort();
    if prices.first().is_none_or(|(distance, ..)| *distance != 10) {
        return Err(
            doc.bad(value, format!("{name} has no price at distance 10: expected 10 = {{ ns = .. }}"))
        );
    }
    Ok(prices)
}

/// A kernel's release: major and minor number.
fn release(doc: &Doc<'_>, name: &str, value: &Value<'_>) -> Read<(u16, u16)> {
    let text = doc.text(value, name)?;
    let numbers =
        text.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    numbers
        .ok_or_else(|| doc.bad(value, format!("{name}: expected a release such as \"6.18\", found {text:?}")))
}

/// A time in whole picoseconds.
fn ps(doc: &Doc<'_>, name: &str, value: &Value<'_>) -> Read<Ps> {
    let ns: Option<f64> = match value.get_ref() {
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(|n| n as f64)
        }
        DeValue::Float(number) => number.as_str().parse().ok(),
        _ => None,
    };
    // NaN is in no range.
    let ns = ns.filter(|ns| (0.0..=NS_MAX).contains(ns)).ok_or_else(|| -> Bad {
        let found = shown(value.get_ref());
        doc.bad(value, format!("{name}: expected nanoseconds from 0 to {NS_MAX}, found {found}"))
    })?;
    Ok((ns * 1000.0).round() as Ps)
}
