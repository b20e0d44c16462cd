//! From samples to costs and to a machine file, with samples of a machine that does not exist; and one short
//! run on this host, whose times are not judged.

use slablab_calibrate::costs::{Basis, Cost, Value, costs, doubts};
use slablab_calibrate::file::toml;
use slablab_calibrate::host::{Cpu, Host, Node};
use slablab_calibrate::rig::{self, Calibration, Options, Watcher};
use slablab_calibrate::series::{Samples, Series, Transport};
use slablab_machines::{Machine, MachineFile};
use std::time::Duration;

/// Two nodes of two CPUs, each with its own last-level cache.
fn host() -> Host {
    let cpu = |id: u16| {
        let node = id / 2;
        Cpu { id, siblings: vec![id], sharers: vec![2 * node, 2 * node + 1], socket: node, node }
    };
    let node = |id: u16, distances: [u32; 2]| {
        let cpus = vec![2 * id, 2 * id + 1];
        Node { id, cpus, bytes: 64 << 30, distances: distances.to_vec() }
    };
    Host {
        model: "A \"quoted\"\nCPU".into(),
        kernel: "6.18".into(),
        page_size: 4096,
        cpus: (0..4).map(cpu).collect(),
        nodes: vec![node(0, [10, 32]), node(1, [32, 10])],
        line_bytes: 64,
        caches: [Some(32 << 10), Some(1 << 20), Some(32 << 20)],
        allowed: vec![0, 1, 2, 3],
        ..Host::default()
    }
}

/// What a machine would measure; each series has blocks around its value, and one that was disturbed.
fn samples() -> Samples {
    let mut samples = Samples::default();
    let mut add = |series, ns: f64| {
        [0.98, 1.0, 1.0, 1.02, 40.0].into_iter().for_each(|factor| samples.push(series, ns * factor));
    };
    for (series, ns) in [
        (Series::Cycle, 0.25),
        (Series::LoadL1, 1.2),
        (Series::LoadL2, 4.5),
        (Series::LoadLlc, 15.0),
        (Series::LoadMemory(10), 100.0),
        (Series::LocalExchange16, 3.0),
        (Series::LockedExchange, 5.0),
        (Series::LockedExchange16, 7.0),
        (Series::ZeroMemory, 20.0),
        (Series::CopyCached, 15.0),
        (Series::SystemCall, 80.0),
        (Series::WriteAlone, 200.0),
        (Series::WakeSame, 500.0),
        (Series::WakeBusy, 700.0),
        (Series::WakeOther, 1000.0),
        (Series::PipeByte, 400.0),
        (Series::RoundTripThread, 2600.0),
        (Series::RoundTripProcess, 3000.0),
        (Series::BarrierAlone, 100.0),
        (Series::BarrierOther, 1100.0),
        (Series::LatencyShort, 2000.0),
        (Series::LatencyLong, 6000.0),
        (Series::FaultMapped, 250.0),
        (Series::Fork, 60_000.0),
        (Series::Exit, 40_000.0),
        (Series::Send(Transport::SocketPair), 690.0),
        (Series::Receive(Transport::SocketPair), 720.0),
        (Series::Send(Transport::Udp), 2337.0),
        (Series::Transfer(0, 1), 25.0),
        (Series::Transfer(1, 0), 25.0),
        (Series::Transfer(2, 3), 25.0),
        (Series::Transfer(0, 2), 150.0),
    ] {
        add(series, ns);
    }
    for power in 5..=13 {
        let pages = 1 << power;
        add(Series::Lines(pages), 4.0);
        add(Series::Pages(pages), if pages <= 2048 { 6.0 } else { 24.0 });
    }
    samples
}

fn time(costs: &[Cost], name: &str, distance: Option<u32>) -> f64 {
    let found = costs.iter().find(|cost| cost.name == name && cost.distance == distance);
    match found.unwrap_or_else(|| panic!("no {name} {distance:?}")).value {
        Value::Ns(ns) => ns,
        other => panic!("{name} is {other:?}"),
    }
}

#[track_caller]
fn check_whole(costs: &[Cost]) {
    for cost in costs {
        if let Value::Ns(ns) = cost.value {
            assert!(ns.is_finite() && (0.0..=1e9).contains(&ns), "{cost:?}");
        }
    }
}

#[test]
fn medians_and_differences_are_costs() {
    let costs = costs(&host(), &samples());
    check_whole(&costs);
    for (name, expected) in [
        ("cycle", 0.25),
        ("l1", 1.2),
        ("l2", 4.5),
        ("llc", 15.0),
        ("transfer_llc", 25.0),
        ("local_exchange", 3.0),
        ("interrupts", 37.0 * 0.25),
        ("tlb_miss", 20.0),
        ("wake_local", 300.0),
        ("wake_remote", 500.0),
        ("switch_thread", 2600.0 / 2.0 - 400.0 - 300.0),
        ("switch_mm", 3000.0 / 2.0 - 400.0 - 300.0),
        ("ipi", 1100.0 - 100.0 - 25.0),
        ("ipi_send", 300.0),
        ("idle_exit", 4000.0),
        ("exit", 40_000.0 - 800.0),
    ] {
        let found = time(&costs, name, None);
        assert!((found - expected).abs() < 1e-6, "{name}: {found}, expected {expected}");
    }
    assert_eq!(time(&costs, "transfer", Some(32)), 150.0);
    assert_eq!(time(&costs, "memory", Some(10)), 100.0);
    let entries = costs.iter().find(|cost| cost.name == "tlb_entries").expect("it is a cost");
    assert_eq!(entries.value, Value::Number(2048));
    assert_eq!(doubts(&host(), &samples()), [""; 0], "nothing is out of order");
}

#[test]
fn what_was_not_measured_is_assumed() {
    let costs = costs(&host(), &samples());
    let basis = |name: &str, distance| {
        let found = costs.iter().find(|cost| cost.name == name && cost.distance == distance);
        found.map(|cost| cost.basis.clone()).expect("it is a cost")
    };
    assert_eq!(basis("l1", None), Basis::Measured);
    assert_eq!(basis("line_bytes", None), Basis::Read);
    for (name, distance) in [
        ("interrupts", None),
        ("transfer_core", None),
        ("handover", None),
        ("memory", Some(32)),
        ("transfer", Some(10)),
    ] {
        assert!(matches!(basis(name, distance), Basis::Assumed(_)), "{name} {distance:?}");
    }
    let none = slablab_calibrate::costs::costs(&Host::default(), &Samples::default());
    check_whole(&none);
    assert!(none.iter().all(|cost| cost.basis != Basis::Measured), "{none:?}");
    assert!(none.iter().all(|cost| cost.value != Value::Ns(0.0)), "{none:?}");
}

/// A median of blocks whose quartiles differ more than five times is what else ran on the host.
#[test]
fn noise_is_no_cost() {
    for (series, name, distance) in
        [(Series::LoadMemory(10), "memory", Some(10)), (Series::SystemCall, "syscall", None)]
    {
        let basis = |factor: f64| {
            let mut samples = samples();
            let usual = samples.median(series).expect("a series");
            // As many quiet blocks as disturbed ones.
            (0..40).for_each(|at| samples.push(series, if at < 20 { usual } else { usual * factor }));
            let costs = costs(&host(), &samples);
            let found = costs.into_iter().find(|cost| cost.name == name && cost.distance == distance);
            found.expect("it is a cost").basis
        };
        assert_eq!(basis(4.0), Basis::Measured, "{name}");
        assert!(matches!(basis(30.0), Basis::Assumed(why) if why.contains("quartiles")), "{name}");
    }
}

#[test]
fn contradictions_are_told() {
    let swapped = |small: Series, ns: f64, large: Series| {
        let mut samples = samples();
        (0..100).for_each(|_| samples.push(small, ns));
        let doubts = doubts(&host(), &samples);
        assert!(doubts.len() == 1, "{small} above {large}: {doubts:?}");
    };
    swapped(Series::LoadL2, 20.0, Series::LoadLlc);
    swapped(Series::Transfer(0, 1), 90.0, Series::Transfer(1, 0));
}

#[test]
fn samples_that_are_no_times_are_left_out() {
    let mut samples = Samples::default();
    [f64::NAN, f64::INFINITY, 0.0, -5.0, 3.0].into_iter().for_each(|ns| samples.push(Series::Fork, ns));
    let spread = samples.spread(Series::Fork).expect("one is a time");
    assert_eq!((spread.median, spread.blocks), (3.0, 1));
}

/// The file is read, and says what the run says.
#[track_caller]
fn check_file(run: &Calibration) -> Machine {
    let text = toml(run);
    let file = MachineFile::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let machine = file.machine().unwrap_or_else(|error| panic!("{error}\n{text}"));
    let written = costs(&run.host, &run.samples);
    assert_eq!(machine.priced.sources.len(), written.len());
    let assumed = written.iter().filter(|cost| matches!(cost.basis, Basis::Assumed(_)));
    let times = assumed.filter(|cost| matches!(cost.value, Value::Ns(_))).count();
    assert_eq!(machine.priced.assumed().count(), times, "assumed times keep their reasons\n{text}");
    machine
}

#[test]
fn a_machine_file_has_every_cost() {
    let machine = check_file(&Calibration { host: host(), samples: samples(), ..Calibration::default() });
    assert_eq!(machine.name, "a-quoted-cpu-4cpus");
    assert_eq!(machine.spec.distance, [[10, 32], [32, 10]]);
    assert_eq!((machine.hardware.llc, machine.hardware.socket), (vec![0, 0, 1, 1], vec![0, 0, 1, 1]));
    let costs = machine.hardware.costs;
    assert_eq!((costs.l1, costs.l2, costs.llc), (1_200, 4_500, 15_000));
    assert_eq!(costs.memory, [(10, 100_000), (32, 320_000)]);
    assert_eq!((costs.l1_bytes, costs.line_bytes, costs.tlb_entries), (32 << 10, 64, 2048));
    assert_eq!((costs.socket_send, costs.socket_receive, costs.udp_send), (690_000, 720_000, 2_337_000));
    assert_eq!((costs.udp_receive, costs.pipe_write), (0, 0), "what was not measured is not in the file");
    assert_eq!(costs.messages_release, Some((6, 18)));
}

#[test]
fn the_kernel_of_messages_is_the_hosts() {
    let release = |kernel: &str| Host { kernel: kernel.into(), ..host() }.release();
    assert_eq!(release("6.18.44-fc x86_64"), Some((6, 18)));
    assert_eq!(release("7.1-rc3"), Some((7, 1)));
    assert_eq!(release(""), None);
}

/// Counts calls; stops the run at the last one it allows.
struct After(std::cell::Cell<u64>);

impl Watcher for After {
    fn at(&self, _: u64, _: u64) -> bool {
        self.0.set(self.0.get().saturating_sub(1));
        self.0.get() > 0
    }
}

#[test]
fn a_short_run_on_this_host() {
    let options = Options { time: Duration::ZERO };
    let run = rig::run(options, &After(u64::MAX.into())).expect("it runs").expect("it is not stopped");
    let text = slablab_calibrate::output::calibration_answer(&run).text(true);
    for series in
        [Series::LoadL1, Series::LoadL2, Series::LockedExchange, Series::SystemCall, Series::FaultMapped]
    {
        assert!(run.samples.median(series).is_some(), "{series} was not measured\n{text}");
    }
    check_whole(&costs(&run.host, &run.samples));
    check_file(&run);
    let stopped = rig::run(options, &After(30.into())).expect("it runs");
    assert!(stopped.is_none(), "the watcher stopped it");
}

/// Runs of hackbench in one sentence; an interval needs five of them.
#[test]
fn hackbench_is_answered_in_one_sentence() {
    use slablab_calibrate::hackbench::Options;
    use slablab_calibrate::output::hackbench_answer;
    let options = Options { groups: 1, loops: 10, threads: false, pipes: true };
    let check = |options: Options, seconds: &[f64], sentence: &str, range: &str| {
        let answer = hackbench_answer(options, seconds);
        assert_eq!(answer.sentence(), sentence);
        let text = answer.text(false);
        assert!(text.contains(range) && text.contains("10 loops, 4,000 messages of 100 bytes"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(answer.csv().map(|csv| csv.lines().count()), Some(1 + seconds.len()));
    };
    check(
        options,
        &[0.012, 0.010, 0.011],
        "40 processes exchange 4,000 messages in 0.011 s, 2,750 ns for each (median of 3 runs).",
        "shortest 0.010 s, longest 0.012 s\n",
    );
    let threads = Options { threads: true, pipes: false, ..options };
    check(
        threads,
        &[0.02; 5],
        "40 threads exchange 4,000 messages in 0.020 s, 5,000 ns for each (median of 5 runs).",
        "95 % interval of the median 0.020 to",
    );
}

/// A calibration in one sentence, with those of the known costs that were measured.
#[test]
fn a_calibration_is_answered_in_one_sentence() {
    let run = rig::Calibration { host: host(), ..rig::Calibration::default() };
    let answer = slablab_calibrate::output::calibration_answer(&run);
    let all = costs(&run.host, &run.samples).len();
    assert!(
        answer.sentence().starts_with(&format!("Of {all} costs of a machine file 0 were measured here, "))
    );
    assert!(answer.sentence().ends_with(" are assumed."), "{}", answer.sentence());
    let text = answer.text(false);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("Not shown: from") && answer.text(true).contains("assumed: "), "{text}");
}
