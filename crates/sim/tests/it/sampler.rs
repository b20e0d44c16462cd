//! Samples of a memory: at their times, with what was there then, and without a trace in the run.

use crate::pressure::{script, setup};
use slablab_sim::memory::Guest;
use slablab_sim::memory::sampler::{Frames, Sample};
use slablab_sim::programs::script::{Answer, run, run_recorded};
use slablab_sim::record::{Limits, Recorder, Recording};
use slablab_vm::Preset as VmPreset;
use slablab_vm::mm::Rules;

const MS: u64 = 1_000_000_000;
/// Memory and a file that do not fit together; dirty pages, a pause, a second process's worth of CPU.
const MIXED: &str = "seed 7\nanon a 18\nfile f 6\nshm s 2\nphase fill\nacc x1 a seq m w\nacc x1 s seq m w\n\
                     phase file\nacc x1 f seq s r\nacc 800 f uni s w\nphase again\nacc 2000 a uni m r\n\
                     phase rest\nsleep 40\ncompute 15\nfsync f\n";

fn guest() -> Guest {
    Guest { min_free_kib: Some(512), ..Guest::default() }
}

fn sampled(vm: &str, every: u64) -> (Answer, Recording) {
    let policy = VmPreset::parse(vm).expect("a preset").policy();
    let recorder = Recorder::new(Limits::default()).sampled(every);
    let (rules, script) = (Rules::of(6, 1, 0), script(MIXED));
    let answer = run_recorded(&setup(4_400), 1, &recorder, &guest(), policy, rules, &script);
    (answer.expect("it ends"), recorder.take())
}

#[test]
fn a_sampled_run_is_the_same_run() {
    for vm in ["vm@6.1", "vm@6.12,lru_gen", "vm@2.6.29"] {
        let policy = VmPreset::parse(vm).expect("a preset").policy();
        let plain = run(&setup(4_400), 1, &guest(), policy, Rules::of(6, 1, 0), &script(MIXED));
        let (mut answer, _) = sampled(vm, MS);
        assert!(answer.samples.len() > 100, "{vm}: {} samples", answer.samples.len());
        answer.samples.clear();
        assert_eq!(answer, plain.expect("it ends"), "{vm}");
    }
}

/// What a sample says is between what phases say that end before and after it.
#[test]
fn samples_are_of_their_times() {
    let (answer, _) = sampled("vm@6.1", 10 * MS);
    let (samples, phases) = (&answer.samples, &answer.records[0].phases);
    let (last, others) = samples.split_last().expect("samples");
    for (at, sample) in others.iter().enumerate() {
        assert_eq!(sample.at, at as u64 * 10 * MS);
    }
    assert!(last.at > others[others.len() - 1].at && last.at - others[others.len() - 1].at <= 10 * MS);
    for phase in phases {
        let of = |name: &str| phase.end.vmstat.iter().find(|(of, _)| *of == name).expect("a counter").1;
        for sample in samples {
            for name in ["pgfault", "pswpin", "pswpout", "pgpgin", "pgpgout", "pgscan_kswapd"] {
                let is_before = sample.at <= phase.uptime_ns * 1_000;
                let (sampled, ended) = (sample.count(name), of(name));
                assert!(
                    if is_before { sampled <= ended } else { sampled >= ended },
                    "{name}: {sampled} at {}, {ended} at {} of {}",
                    sample.at,
                    phase.uptime_ns,
                    phase.label
                );
            }
        }
    }
    // Within a sleep nothing but write-back happens: the CPU is idle, and later it computes alone.
    let at = |ps: u64| &samples[(ps / (10 * MS)) as usize];
    let rest = phases[2].uptime_ns * 1_000;
    let (asleep, awake) = (at(rest + 20 * MS), at(rest + 40 * MS));
    let busy = awake.cpu.busy - asleep.cpu.busy;
    assert!(busy < 5 * MS, "{} of 20 ms", busy / MS);
    assert_eq!(last.cpu.user - awake.cpu.user, 15 * MS, "what the program computes");
}

#[test]
fn samples_add_up() {
    let (answer, recording) = sampled("vm@6.1", MS / 4);
    let samples = &answer.samples;
    let mut before = &samples[0];
    for sample in samples {
        let Frames { total, pages, .. } = sample.frames;
        assert_eq!(sample.frames.uses().iter().sum::<u64>(), total, "at {}", sample.at);
        assert_eq!(sample.kib("MemFree") + 4 * sample.frames.uses()[..7].iter().sum::<u64>(), 4 * total);
        assert_eq!(sample.kib("Cached"), 4 * (pages.file + pages.tmpfs));
        let cpu = sample.cpu;
        assert!(cpu.user <= cpu.busy && cpu.busy + cpu.waited <= cpu.all + MS, "{cpu:?}");
        assert!(cpu.busy >= before.cpu.busy && cpu.waited >= before.cpu.waited, "{cpu:?}");
        before = sample;
    }
    // The process has all of its memory in frames or in swap, and sees the file beside it.
    let end = answer.records[0].phases[3].uptime_ns * 1_000;
    let full = samples.iter().rev().find(|sample| sample.at <= end).expect("a sample");
    let [process] = &full.processes[..] else { panic!("one process: {:?}", full.processes) };
    assert_eq!(process.virtual_pages, (18 + 6 + 2) * 256);
    assert!(process.resident + process.swapped >= 18 * 256 && process.swapped > 0, "{process:?}");
    assert!(samples.iter().any(|sample| sample.blocked > 0), "nobody waits for a disk");
    assert!(samples.iter().any(|sample| sample.daemons[0].is_awake), "kswapd never runs");
    let last = &samples[samples.len() - 1];
    let user: u64 = answer.records[0].phases.iter().map(|phase| phase.user_ns * 1_000).sum();
    assert_eq!(last.cpu.user, user, "programs' CPU time");
    let ran: u64 = last.daemons.iter().map(|daemon| daemon.ran).sum();
    assert!(last.daemons[0].ran > 0 && ran + user <= last.cpu.busy, "{:?}", last.daemons);
    requests_are_slices(last, &recording);
}

/// Each request of a disk is a slice, and kswapd's time awake holds its CPU time.
fn requests_are_slices(last: &Sample, recording: &Recording) {
    let slices = |group: &str, name: &str| {
        let track = recording.tracks.iter().position(|of| of.0 == group && of.1 == name).expect("a track");
        let of = recording.slices.iter().filter(move |slice| slice.track.0 as usize == track);
        of.map(|slice| slice.to - slice.from)
    };
    for (name, stat) in &last.disks {
        assert_eq!(slices("Disk requests", name).count() as u64, stat[0] + stat[4], "{name}");
    }
    let awake: u64 = slices("Reclaim and writeback", "kswapd0").sum();
    assert!(awake >= last.daemons[0].ran - MS, "{awake} of {:?}", last.daemons);
    let values = |name: &str| {
        let track = recording.tracks.iter().position(|of| of.1 == name).expect("a track");
        recording.values.iter().filter(move |value| value.track.0 as usize == track).count()
    };
    assert!(values("anonymous") > 100 && values("swap") > 100 && values("swap requests") > 100);
}
