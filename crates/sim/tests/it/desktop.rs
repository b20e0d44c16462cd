//! The tests of September 2001 on small machines: what they must do under every VM, and what a player hears.

use crate::machine::costs;
use slablab_model::disk::{Disk, DiskKind, Fixed};
use slablab_model::{Hardware, MachineSpec};
use slablab_pages::PagesPolicy;
use slablab_sim::block::disk::queue::QueueSpec;
use slablab_sim::memory::Guest;
use slablab_sim::programs::desktop::apps::{Apps, Variant};
use slablab_sim::programs::desktop::make::Make;
use slablab_sim::programs::desktop::server::Server;
use slablab_sim::programs::desktop::streams::Streams;
use slablab_sim::programs::desktop::{Answer, Habits, Test, caches, run};
use slablab_sim::record::Recorder;
use slablab_sim::setup::{Boot, Setup};
use slablab_slabs::Preset;
use slablab_vm::Preset as VmPreset;
use slablab_vm::mm::Rules;

const MS: u64 = 1_000_000_000;
/// Inodes of 20,000 files and of their directories, of 15 files each.
const INODES: u64 = 21_334;
const APPS: Test = Test::Apps(Apps {
    variant: Variant::Standard,
    mozilla: false,
    files: 20_000,
    pixel: 3,
    copies: 0,
    suite: 5,
    pause: 1_000 * MS,
});
/// Programs touch all of their texts, so that memory is short soon.
const HEAVY: Habits = Habits { text: 100, ..Habits::USUAL };

/// A test on a machine of so many MiB, with a disk that takes `request` for each request.
fn test(vm: &str, mib: u64, request: u64, test: &Test, player: Option<u64>) -> Answer {
    test_with(vm, mib, request, test, player, Habits::USUAL)
}

fn test_with(vm: &str, mib: u64, request: u64, test: &Test, player: Option<u64>, habits: Habits) -> Answer {
    let spec = MachineSpec { memoryless_nodes: false, ..MachineSpec::uniform(1, 1, mib << 20) };
    let hardware = Hardware { core: vec![0], llc: vec![0], socket: vec![0], costs: costs() };
    let preset = Preset::parse("slab@2.4").expect("a preset");
    let setup = Setup { spec, hardware, preset, boot: Boot::default(), placement: None };
    let policy = VmPreset::parse(vm).expect("a preset");
    let [major, minor, patch] = policy.kernel;
    let kind = DiskKind::Fixed(Fixed { request, kib: 0, write_limit: None });
    let disk = Disk { bytes: 1 << 34, depth: 1, rotational: true, kind };
    let guest = Guest {
        zones: None,
        settings: policy.settings,
        swap_pages: 65_536,
        disk: [disk.clone(), disk],
        queue: QueueSpec::linus(mib << 20),
        swap_at: Some(8 << 20),
        pages: Some(PagesPolicy::for_release(major, minor, patch)),
        caches: caches(),
        tick_every: Some(1_000 * MS),
        ..Guest::default()
    };
    let rules = Rules::of(major, minor, patch);
    let answer = run(&setup, 1, &guest, policy.policy(), rules, (test, player, habits), &Recorder::default());
    answer.unwrap_or_else(|failed| panic!("{vm}: {failed}"))
}

/// Where memory is enough, nothing is swapped, everything is resident, and all names stay.
#[test]
fn applications_that_fit_stay() {
    for vm in ["vm@2.4.9-ac14", "vm@2.4.10"] {
        let answer = test(vm, 512, MS, &APPS, None);
        assert_eq!(answer.swapped(), (0, 0), "{vm}");
        // Of 32 clusters 3 pages each, and GIMP's heap and image; of a daemon's 24 clusters 6 pages, and 48.
        let of = |name: &str| answer.resident("rotate", name);
        assert_eq!((of("mail"), of("gimp").0), ((96 * 3 + 2_048, 1_536 + 2_048), 128 * 3 + 1_536 + 14_400));
        assert_eq!((of("daemon"), of("cron")), ((9 * 192, 9 * 512), (3 * 192, 3 * 512)), "{vm}");
        let names: Vec<(u64, u64)> = answer.steps.iter().map(|step| step.names).collect();
        assert_eq!((names[0], &names[1..]), ((0, 0), &[(INODES, 20_000); 6][..]), "{vm}");
    }
}

/// Where it is not, pages are swapped out and come back when they are used; two runs are alike.
#[test]
fn applications_that_do_not_fit_swap() {
    let all = ["2.4.8", "2.4.9", "2.4.9-ac14", "2.4.9-ac14+aging", "2.4.9-ac15+aging+launder"];
    for vm in all.into_iter().chain(["2.4.10-pre11", "2.4.10", "2.4.10+tweaks"]) {
        let run = || test_with(&format!("vm@{vm}"), 128, MS, &APPS, None, HEAVY);
        let answer = run();
        let (out, back) = answer.swapped();
        assert!(out > 0 && back > 0 && answer.kswapd > 0, "{vm}: {out} out, {back} in");
        let at_rotation = &answer.step("rotate").expect("a step").processes;
        assert!(at_rotation.iter().any(|of| of.resident < of.pages), "{vm}");
        let all = answer.counters.iter().find(|(name, _)| *name == "pswpout").map(|(_, pages)| *pages);
        assert_eq!(Some(answer.out_by_second.iter().sum::<u64>()), all, "{vm}");
        if ["2.4.9-ac14", "2.4.10"].contains(&vm) {
            let again = run();
            assert_eq!((&answer.steps, &answer.counters), (&again.steps, &again.counters), "{vm}");
        }
    }
}

/// A daemon that runs keeps what it touches in memory, or brings it back; one that is idle loses it.
#[test]
fn daemons_that_run_stay() {
    let habits = Habits { running: 6, wakes: 2_000 * MS, ..HEAVY };
    let answer = test_with("vm@2.4.10", 128, MS, &APPS, None, habits);
    let [(idle, all), (running, of_all)] = ["daemon", "cron"].map(|name| answer.resident("rotate", name));
    assert_eq!((all, of_all), (6 * 512, 6 * 512));
    assert!(running > 6 * 192 / 4 && idle < running / 2, "{idle} of idle daemons, {running} of others");
}

/// What is closed touches a part of what it needs: more of it comes back from swap.
#[test]
fn closing_touches_memory() {
    let [little, much] = [10, 50].map(|close| {
        let answer = test_with("vm@2.4.10", 128, MS, &APPS, None, Habits { close, ..HEAVY });
        answer.step("close").expect("a step").swapped.1
    });
    assert!(3 * little < 2 * much, "{little} pages, then {much}");
}

/// slocate fills memory with names, and an inode needs no more than one page at once.
#[test]
fn names_leave_when_memory_is_short() {
    let apps = Test::Apps(Apps {
        variant: Variant::Standard,
        mozilla: false,
        files: 100_000,
        pixel: 4,
        copies: 0,
        suite: 5,
        pause: 0,
    });
    let answer = test_with("vm@2.4.8", 128, MS, &apps, None, HEAVY);
    let [after, end] = ["slocate", "close"].map(|step| answer.step(step).expect("a step").names);
    assert!(after.0 > 90_000 && end.0 < after.0, "inodes: {after:?}, then {end:?}");
}

/// Where the disk takes no time, a player without a buffer waits at most for a CPU; on a slow disk it waits
/// for the streams, and a buffer bridges some of that.
#[test]
fn a_buffer_bridges_waits_for_the_disk() {
    let streams = Test::Streams(Streams { clients: 1, mib: 128 });
    let [idle, busy, buffered] = [(0, 0), (20 * MS, 0), (20 * MS, 60_000 * MS)]
        .map(|(request, buffer)| test("vm@2.4.10", 64, request, &streams, Some(buffer)).played());
    assert!(idle.music > 250 * MS && idle.longest < 100 * MS, "{idle:?}");
    assert!(busy.skips > 0 && busy.longest > 100 * MS, "{busy:?}");
    assert!(buffered.silent < busy.silent, "{buffered:?} {busy:?}");
}

/// 2.4.9 waits for each write of a buffer that reclaim starts, so who waits is a choice with an effect.
#[test]
fn who_waits_for_buffers_matters() {
    let streams = Test::Streams(Streams { clients: 1, mib: 32 });
    let [all, users] = ["vm@2.4.9", "vm@2.4.9,waits=users"].map(|vm| test(vm, 40, 5 * MS, &streams, None));
    assert_ne!(all.elapsed, users.elapsed);
}

/// The inode of a directory whose page is in memory stays; those of files, which nobody reads, can go.
#[test]
fn a_page_holds_its_inode() {
    let apps = Test::Apps(Apps {
        variant: Variant::Standard,
        mozilla: false,
        files: 100_000,
        pixel: 4,
        copies: 0,
        suite: 5,
        pause: 0,
    });
    let answer = test_with("vm@2.4.9-ac14+aging", 128, MS, &apps, None, HEAVY);
    let [image, close] = ["image", "close"].map(|step| answer.step(step).expect("a step").names);
    assert!(image.1 == 0 && (1..=100_000_u64.div_ceil(15)).contains(&image.0), "{image:?}");
    assert_eq!(close, (0, 0), "the pages are gone");
}

/// A stream of writes passes a read only as far as the read's patience goes, which each block of the stream
/// takes: the read waits for a full queue, 128 requests, and for 30 more.
#[test]
fn a_stream_of_writes_does_not_starve_a_read() {
    let streams = Test::Streams(Streams { clients: 1, mib: 128 });
    for vm in ["vm@2.4.8", "vm@2.4.10"] {
        let played = test(vm, 64, 10 * MS, &streams, Some(0)).played();
        assert!(played.skips > 0 && played.longest < (128 + 30) * 10 * MS, "{vm}: {played:?}");
    }
}

/// A server whose memory holds all files is as fast as its link; another one waits for the disk.
#[test]
fn a_server_waits_for_its_link_or_its_disk() {
    let server = Test::Server(Server { clients: 2, rounds: 1, mib: 16 });
    let ended = |mib, request| test("vm@2.4.10", mib, request, &server, None).ended;
    // 64 MiB over the link at 12.5 MB/s.
    let link = (64 << 20) * 80_000;
    let [fast, slow] = [ended(256, MS), ended(32, 20 * MS)];
    assert!(fast.len() == 2 && (link..link + link / 20).contains(&fast[1]), "{fast:?}, {link} on the link");
    assert!(slow[0] <= slow[1] && slow[1] > 2 * link, "{slow:?}");
}

/// A build takes at least its CPU time, touches the pages of its objects, and its music needs the disk.
#[test]
fn a_build_beside_music_computes_and_faults() {
    let make = Test::Make(Make { objects: 20, jobs: 4 });
    let answer = test("vm@2.4.10", 256, MS, &make, Some(370 * MS));
    let step = answer.step("make").expect("a step");
    assert!((20 * 241 * MS..40 * 241 * MS).contains(&step.elapsed), "{step:?}");
    let of = |name: &str| answer.counters.iter().find(|(one, _)| *one == name).map_or(0, |(_, n)| *n);
    assert!(of("pgfault") >= 20 * (935 + 901), "{}", of("pgfault"));
    // In KiB: 176,400 bytes a second.
    let music = answer.played().music / MS * 176_400 / 1_000 / 1_024;
    assert!(of("pgpgin") > music && answer.played().skips == 0, "{} of {music}", of("pgpgin"));
}
