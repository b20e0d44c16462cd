//! `netperf`: UDP and TCP over loopback.

use super::kernel::{self, ELSEWHERE, FAST_ALLOCS, FAST_FREES, LINES, LOCK_WAIT, SWITCHES};
use crate::experiment::workload::{
    Estimate, Kind, Metric, Object, Observed, Pair, Parameter, Sample, Values, Workload, ppm, ps,
};
use slablab_model::{MachineSpec, Spent};
use slablab_platform::Event;
use slablab_sim::era::Era;
use slablab_sim::objects::Object as Kernel;
use slablab_sim::programs::netperf::{self, Binding, Outcome, Test, bits_per_second};
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::Failed;
use slablab_slabs::Release;
use slablab_stats::table::Better;

/// The workload.
pub(super) const NETPERF: Workload = Workload {
    name: "netperf",
    about: "a client that sends UDP datagrams, or over TCP, to a server on the same host, each on one CPU",
    parameters: PARAMETERS,
    metrics: METRICS,
    objects,
    ignores,
    check,
    estimate,
    observe,
    suite: SUITE,
};

const BINDINGS: [(&str, Binding); 3] = [
    ("same-cpu", Binding::SameCpu),
    ("same-socket", Binding::SameSocket),
    ("other-socket", Binding::OtherSocket),
];

const SUITE: &[Pair] = &[
    Pair {
        machine: "laptop",
        parameters: "binding = [\"same-cpu\", \"same-socket\"]\nbytes = 1024",
        why: "datagrams that one CPU or two allocate and free",
    },
    Pair {
        machine: "numa8-full",
        parameters: "binding = \"other-socket\"\nbytes = 1024",
        why: "datagrams that are freed on another socket",
    },
];

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "test",
        about: "udp-stream: the client sends, the server receives; udp-rr: one request and one response at a \
                time, of `bytes` bytes each; tcp-stream and tcp-rr: the same over TCP",
        source: "netperf's tests UDP_STREAM, UDP_RR, TCP_STREAM and TCP_RR",
        kind: Kind::Word(&["udp-stream", "udp-rr", "tcp-stream", "tcp-rr"]),
    },
    Parameter {
        name: "bytes",
        about: "bytes of data of a datagram",
        source: "mmtests: 64 to 16384; Intel's UDP-U-4k: 4096; udp-rr: 1",
        kind: Kind::Number { least: 1, most: 60_000, defaults: [64; 3] },
    },
    Parameter {
        name: "binding",
        about: "the server's CPU; the client's is CPU 0",
        source: "N. Piggin, 16 January 2009: the three of its tables",
        kind: Kind::Word(&[BINDINGS[0].0, BINDINGS[1].0, BINDINGS[2].0]),
    },
    Parameter {
        name: "rcvbuf",
        about: "the server's SO_RCVBUF in bytes; 0 leaves the kernel's default",
        source: "Intel's UDP-U-4k: 32768; netperf's default: the kernel's",
        kind: Kind::Number { least: 0, most: 1 << 30, defaults: [0; 3] },
    },
    Parameter {
        name: "warm_up_us",
        about: "time before the window. A client on the server's CPU sends for a whole slice first",
        source: "assumed: longer than two slices of 2.6.29",
        kind: Kind::Number { least: 0, most: 100_000_000, defaults: [80_000, 100_000, 1_000_000] },
    },
    Parameter {
        name: "window_us",
        about: "time that is counted",
        source: "netperf's default: 10 s, a full run's; mmtests and Intel: 60 s",
        kind: Kind::Number { least: 100, most: 100_000_000, defaults: [10_000, 40_000, 10_000_000] },
    },
    Parameter {
        name: "think_cycles",
        about: "cycles of a process in its own program for each datagram",
        source: "assumed",
        kind: Kind::Number { least: 0, most: 1_000_000, defaults: [50; 3] },
    },
];

const METRICS: &[Metric] = &[
    Metric {
        name: "received_bps",
        about: "data that is received in a second; udp-rr: data of responses",
        better: Some(Better::Higher),
        unit: "Mbit/s",
        per_unit: 1e6,
        decimals: 3,
    },
    Metric {
        name: "sent_bps",
        about: "data that the client sends in a second, lost or not",
        better: Some(Better::Higher),
        unit: "Mbit/s",
        per_unit: 1e6,
        decimals: 3,
    },
    Metric {
        name: "received_per_s",
        about: "datagrams that are received in a second; udp-rr: transactions",
        better: Some(Better::Higher),
        unit: "1/s",
        per_unit: 1.0,
        decimals: 0,
    },
    Metric::percent("lost_ppm", "datagrams that found the buffer full", Some(Better::Lower)),
    FAST_ALLOCS,
    FAST_FREES,
    ELSEWHERE,
    Metric { about: "part of the busy CPUs' time in waits for locks", ..LOCK_WAIT },
    Metric::each("locks_milli", "locks of the allocators taken for one datagram, SLUB's slab_lock too"),
    LINES,
    SWITCHES,
];

fn objects(release: Release) -> Vec<Object> {
    let head = Kernel::SkBuff.row(Era { release }).map(|row| Object {
        cache: row.name,
        bytes: row.bytes,
        per_operation: "1 for each datagram: the client allocates it, the server frees it, or the client \
                        if it is lost"
            .into(),
        source: row.source,
    });
    let data = Object {
        cache: "kmalloc of the data",
        bytes: 0,
        per_operation: "1 for each datagram: `bytes`, 64 of headers, in whole lines, and 320 of shared info"
            .into(),
        source: "published: 128 bytes are of class 512, 1024 of 2048, 4096 of 8192; the headers are assumed",
    };
    head.into_iter().chain([data]).collect()
}

fn ignores(cost: &str) -> bool {
    cost == "page_fault"
}

fn check(machine: &MachineSpec, values: &Values) -> Result<(), String> {
    if values.word("binding") != BINDINGS[0].0 && machine.cpu_node.len() < 2 {
        return Err(format!("binding = {}: the machine has one CPU", values.word("binding")));
    }
    let (rcvbuf, bytes) = (values.number("rcvbuf"), values.number("bytes"));
    // A datagram counts at most twice this: its data's class has at most twice the bytes.
    let least = bytes + 640;
    match rcvbuf == 0 || rcvbuf >= least {
        true => Ok(()),
        false => Err(format!("rcvbuf = {rcvbuf}: expected 0, or at least {least} for bytes = {bytes}")),
    }
}

fn estimate(machine: &MachineSpec, values: &Values) -> Estimate {
    /// A datagram takes at least this long on the client, and so long on the host (measured).
    const LEAST_NS: u64 = 700;
    const HOST_NS: u64 = 1_500;
    let us = values.number("warm_up_us") + values.number("window_us");
    let slabs = Estimate::of_operations(machine, 0, 4 << 20);
    Estimate { host_ns: us * 1_000 / LEAST_NS * HOST_NS, ..slabs }
}

/// A repeat draws when the client begins, and the lengths of pieces of work.
fn observe(setup: &Setup, values: &Values, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
    let binding = BINDINGS.iter().find(|(name, _)| *name == values.word("binding"));
    let load = netperf::Netperf {
        test: match values.word("test") {
            "udp-rr" => Test::RequestResponse,
            "tcp-stream" => Test::TcpStream,
            "tcp-rr" => Test::TcpRequestResponse,
            _ => Test::Stream,
        },
        bytes: values.number("bytes") as u32,
        binding: binding.map_or(Binding::SameCpu, |(_, binding)| *binding),
        receive_buffer: values.number("rcvbuf") as u32,
        warm_up: ps(values.number("warm_up_us") * 1_000),
        window: ps(values.number("window_us") * 1_000),
        think: values.number("think_cycles"),
    };
    let outcome = netperf::run_recorded(setup, &load, seed, recorder)?;
    Ok(Observed { sample: sample(&outcome, load.bytes), profile: Some(outcome.kernel.profile) })
}

fn sample(outcome: &Outcome, bytes: u32) -> Sample {
    let Outcome { kernel, sent, received, lost } = outcome;
    let busy: u64 = kernel.spent.iter().flatten().sum();
    let waits: u64 = kernel.spent.iter().map(|spent| spent[Spent::LockWait as usize]).sum();
    // Locks and caches are counted over the whole run: so are the datagrams that they are divided by.
    // SLUB's slab_lock is a bit of a word, so it has no rank: its event counts it.
    let allocs = |cache: &str| kernel.cache(cache).map_or(0, |cache| cache.allocs);
    let heads = match allocs("skbuff_fclone_cache") {
        0 => allocs("skbuff_head_cache").max(1),
        segments => segments,
    };
    let ranked = kernel
        .locks
        .iter()
        .filter(|(name, _)| !name.starts_with("udp ") && !name.starts_with("tcp "))
        .map(|(_, times)| times.taken);
    let events = kernel.caches.iter().flat_map(|cache| &cache.events);
    let bits: u64 = events.filter(|(event, _)| *event == Event::LockSlab).map(|(_, count)| *count).sum();
    let per_s = |datagrams: u64| bits_per_second(datagrams, 1, kernel.elapsed) / 8;
    let own = [
        ("received_bps", bits_per_second(*received, bytes, kernel.elapsed)),
        ("sent_bps", bits_per_second(*sent, bytes, kernel.elapsed)),
        ("received_per_s", per_s(*received)),
        ("lost_ppm", ppm(*lost, *sent)),
        // Only two CPUs have work: of the time of all, waits would be a part of the idle CPUs' time too.
        (LOCK_WAIT.name, ppm(waits, busy)),
        ("locks_milli", (ranked.sum::<u64>() + bits) * 1_000 / heads),
    ];
    kernel::sample(METRICS, kernel, &own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::workload::{Size, Value, Valued};
    use std::collections::BTreeMap;

    #[test]
    fn a_binding_needs_cpus_and_a_datagram_a_buffer() {
        #[track_caller]
        fn check(cpus: u16, binding: &str, [rcvbuf, bytes]: [u64; 2], expected: Result<(), &str>) {
            let machine = MachineSpec::uniform(cpus, 1, 1 << 30);
            let mut values: BTreeMap<_, _> =
                PARAMETERS.iter().map(|parameter| (parameter.name, parameter.default(Size::Quick))).collect();
            values.insert("binding", Value::Word(binding.into()));
            values.insert("rcvbuf", Value::Number(rcvbuf));
            values.insert("bytes", Value::Number(bytes));
            let found = super::check(&machine, &Values(values));
            assert_eq!(found.as_ref().map_err(String::as_str), expected.as_ref().map_err(|text| *text));
        }
        check(1, "same-cpu", [0, 60_000], Ok(()));
        check(2, "same-socket", [32_768, 4_096], Ok(()));
        check(1, "other-socket", [0, 64], Err("binding = other-socket: the machine has one CPU"));
        let small = "rcvbuf = 4096: expected 0, or at least 4736 for bytes = 4096";
        check(2, "same-socket", [4_096, 4_096], Err(small));
    }

    #[test]
    fn objects_are_those_of_the_release() {
        let bytes = |minor, patch| objects(Release::new(2, minor, patch))[0].bytes;
        assert_eq!([bytes(4, 0), bytes(6, 29)], [160, 232]);
    }
}
