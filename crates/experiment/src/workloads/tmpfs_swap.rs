//! `tmpfs-swap`: two kernel builds at a time in too little memory, one on tmpfs, one on a loop device.

use super::kernel;
use crate::workload::{Estimate, Kind, Metric, Object, Observed, Parameter, Sample, Values, Workload};
use slablab_machines::disks;
use slablab_model::MachineSpec;
use slablab_model::disk::{Disk, DiskKind};
use slablab_sim::block::disk::queue::QueueSpec;
use slablab_sim::memory::Guest;
use slablab_sim::memory::loopback::LoopRules;
use slablab_sim::memory::volume::Keeps;
use slablab_sim::objects::Object as Kernel;
use slablab_sim::programs::kbuild::Kbuild;
use slablab_sim::programs::tmpfs_swap::{Iteration, Second, TmpfsSwap, part_of, run};
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::Failed;
use slablab_slabs::Release;
use slablab_stats::table::Better;
use slablab_vm::Preset as VmPreset;
use slablab_vm::mm::Rules;

/// The workload.
pub(super) const TMPFS_SWAP: Workload = Workload {
    name: "tmpfs-swap",
    about: "two kernel builds at a time, on tmpfs and on ext2 on a loop device on tmpfs, which swap",
    parameters: PARAMETERS,
    metrics: METRICS,
    objects,
    ignores: |_| false,
    check,
    estimate,
    observe,
    suite: &[],
};

/// Iterations that have metrics of their own.
const MOST: usize = 10;

/// Bytes of a page.
const PAGE: u64 = 4_096;

const fn number(
    name: &'static str,
    about: &'static str,
    source: &'static str,
    (least, most): (u64, u64),
    defaults: [u64; 3],
) -> Parameter {
    Parameter { name, about, source, kind: Kind::Number { least, most, defaults } }
}

const fn word(name: &'static str, about: &'static str, words: &'static [&'static str]) -> Parameter {
    word_of(name, about, "2.6.29; the others to ask what it does", words)
}

const fn word_of(
    name: &'static str,
    about: &'static str,
    source: &'static str,
    words: &'static [&'static str],
) -> Parameter {
    Parameter { name, about, source, kind: Kind::Word(words) }
}

const PARAMETERS: &[Parameter] = &[
    word(
        "vm",
        "the policy of page replacement",
        &["vm@2.6.29", "vm@2.6.29,lumpy=no", "vm@2.6.29,kswapd_order=no", "vm@2.6.29,tmpfs_two_visits=no"],
    ),
    word("second", "where the second build works", &["loop", "tmpfs"]),
    number("jobs", "objects at a time: make -j", "no mail says it", (1, 64), [2; 3]),
    number("iterations", "times that both build", "the mail: 10", (1, MOST as u64), [2, 4, 10]),
    number(
        "part",
        "the part 1 / n of tree, archive, image, heaps, memory and swap",
        "ours",
        (1, 64),
        [32, 8, 1],
    ),
    number("memory_mib", "memory of the whole in MiB", "the mail: mem=1GB", (64, 1 << 20), [1_024; 3]),
    number(
        "kernel_mib",
        "of it the kernel's from its boot on, in MiB: its image, a descriptor for each page",
        "from memory: a kernel of 2009 says so at its boot",
        (0, 1 << 20),
        [24; 3],
    ),
    number("swap_mib", "swap of the whole in MiB", "the mail: 35GB", (64, 1 << 20), [35_840; 3]),
    number(
        "image_mib",
        "image on the loop device of the whole in MiB",
        "assumed",
        (512, 1 << 20),
        [1_536; 3],
    ),
    word_of(
        "disk",
        "the disk with swap",
        "no mail names it: a server's disk is assumed",
        &["scsi-15k-2009", "sata-7200-2009"],
    ),
    number("seek_percent", "percent of the disk's times for seeks", "ours", (1, 1_000), [100; 3]),
    number(
        "heap_mib",
        "the compiler's heap in MiB, of the whole",
        "from memory: 15 to 40",
        (1, 1_024),
        [27; 3],
    ),
    number(
        "user_ms",
        "CPU time of an object's programs",
        "the mail: 91 s a build; over 1,450 objects (assumed)",
        (1, 10_000),
        [63; 3],
    ),
    word("overwrite_reads", "a block in swap is read before it is overwritten", &["yes", "no"]),
    word("read_dirties", "a block read from swap gives its slot up and is dirty", &["yes", "no"]),
    word("restricted", "loop0's requests for pages start no I/O and enter no file system", &["yes", "no"]),
    word("tmpfs_frees_slot", "a page of tmpfs that a program reads back gives its slot up", &["yes", "no"]),
    word("tmpfs_dirty", "pages of tmpfs count in the writers' dirty limits", &["no", "yes"]),
    word("tree_nodes", "nodes of the page cache's trees are slab objects", &["yes", "no"]),
    word("shrink", "reclaim frees dentries and inodes of ext2's files", &["yes", "no"]),
    word("discard", "a removed file's blocks leave the image", &["no", "yes"]),
    word("blocks", "which free block a file gets: by ext2's rules, or the lowest one", &["ext2", "lowest"]),
    Parameter {
        name: "compress",
        about: "a run of touches is one step: the same answer, faster",
        source: "ours",
        kind: Kind::Word(&["yes", "no"]),
    },
];

const fn time(name: &'static str, about: &'static str) -> Metric {
    Metric { name, about, better: Some(Better::Lower), unit: "s", per_unit: 1e12, decimals: 2 }
}

const fn count(name: &'static str, about: &'static str) -> Metric {
    Metric { name, about, better: None, unit: "1", per_unit: 1.0, decimals: 0 }
}

const fn ratio(name: &'static str, about: &'static str) -> Metric {
    Metric { name, about, better: None, unit: "1", per_unit: 1e6, decimals: 3 }
}

macro_rules! metrics {
    ($($n:literal)*) => {
        &[
            time("elapsed_ps", "time of all iterations, times `part`"),
            $(
                time(concat!("build1_", $n, "_ps"), concat!("build 1 of iteration ", $n, ", times `part`")),
                time(concat!("user1_", $n, "_ps"), "its CPU time in programs, times `part`"),
                time(concat!("system1_", $n, "_ps"), "its CPU time in the kernel, times `part`"),
                time(concat!("build2_", $n, "_ps"), concat!("build 2 of iteration ", $n, ", times `part`")),
                time(concat!("user2_", $n, "_ps"), "its CPU time in programs, times `part`"),
                time(concat!("system2_", $n, "_ps"), "its CPU time in the kernel, times `part`"),
                time(concat!("total_", $n, "_ps"), concat!("time of iterations 1 to ", $n, ", times `part`")),
                count(concat!("tar_", $n), concat!("1: in iteration ", $n, " build 1 ended before the second tar")),
            )*
            ratio("growth_4_ppm", "build 2 of iteration 4 over that of iteration 2"),
            ratio("growth_8_ppm", "build 2 of iteration 8 over that of iteration 2"),
            count("tars_4", "iterations 3 and 4 in which build 1 ended before the second tar"),
            count("tars_8", "iterations 3 to 8 in which build 1 ended before the second tar"),
            time("user_ps", "CPU time of a build 1 in programs, times `part`"),
            time("system_ps", "CPU time of a build 1 in the kernel, times `part`"),
            count("swap_ins_1", "pages read from swap for build 1, an iteration"),
            count("swap_ins_source", "pages of files and of blocks in use read from swap for build 2, an iteration"),
            count("swap_ins_garbage", "blocks read from swap for build 2 that no file has, or to be overwritten"),
            count("swap_ins_other", "pages of programs read from swap for build 2, an iteration"),
            count("swap_outs", "pages written to swap, an iteration"),
            count("wakes_0", "wake-ups of kswapd for single pages, an iteration"),
            count("wakes_1", "wake-ups of kswapd for order 1, an iteration"),
            count("wakes_2", "wake-ups of kswapd for order 2, an iteration"),
            count("wakes_3", "wake-ups of kswapd for order 3, an iteration"),
            count("low_0", "requests of single pages that found none above the low mark, an iteration"),
            count("low_1", "requests of order 1 that found no block above the low mark, an iteration"),
            count("low_2", "requests of order 2 that found no block above the low mark, an iteration"),
            count("low_3", "requests of order 3 that found no block above the low mark, an iteration"),
            count("direct_0", "rounds of direct reclaim for single pages, an iteration"),
            count("direct_1", "rounds of direct reclaim for order 1, an iteration"),
            count("direct_2", "rounds of direct reclaim for order 2, an iteration"),
            count("direct_3", "rounds of direct reclaim for order 3, an iteration"),
            count("stolen_kswapd", "pages that kswapd reclaimed, an iteration"),
            count("stolen_direct", "pages that allocations reclaimed, an iteration"),
            count("requests1_0", "single pages that build 1 requested, an iteration"),
            count("requests1_1", "blocks of order 1 that build 1 requested, an iteration"),
            count("requests1_2", "blocks of order 2 that build 1 requested, an iteration"),
            count("requests1_3", "blocks of order 3 that build 1 requested, an iteration"),
            count("requests2_0", "single pages that build 2 requested, an iteration"),
            count("requests2_1", "blocks of order 1 that build 2 requested, an iteration"),
            count("requests2_2", "blocks of order 2 that build 2 requested, an iteration"),
            count("requests2_3", "blocks of order 3 that build 2 requested, an iteration"),
            count("text_kib", "KiB of programs read from their disk, an iteration"),
            count("name_slabs", "slabs that names_cache took, an iteration"),
        ]
    };
}

const METRICS: &[Metric] = metrics!(1 2 3 4 5 6 7 8 9 10);

fn objects(release: Release) -> Vec<Object> {
    let objects = [
        (Kernel::Name, "1 for each lookup of a path"),
        (Kernel::File, "1 for each open, in vain or not"),
        (Kernel::Bio, "1 for each 31 pages through the loop device, or less"),
        (Kernel::FileInode, "1 for each file"),
        (Kernel::Dentry, "1 for each file"),
        (Kernel::TreeNode, "1 for each file of 2 pages or more, and for each 64 pages"),
    ];
    super::kernel::rows(release, &objects)
}

fn check(_machine: &MachineSpec, values: &Values) -> Result<(), String> {
    let (memory, part) = (values.number("memory_mib"), values.number("part"));
    match program_kib(values) / part >= 16 << 10 {
        true => Ok(()),
        false => Err(format!(
            "memory_mib = {memory}: expected at least 16 beside kernel_mib = {} for each of part = {part}",
            values.number("kernel_mib")
        )),
    }
}

/// KiB of the whole that are not the kernel's.
fn program_kib(values: &Values) -> u64 {
    values.number("memory_mib").saturating_sub(values.number("kernel_mib")) << 10
}

fn estimate(machine: &MachineSpec, values: &Values) -> Estimate {
    /// A build of the whole without heaps, and its heaps' faults, which fall by the square (measured).
    const BUILD_NS: u64 = 4_000_000_000;
    const HEAPS_NS: u64 = 10_000_000_000;
    let part = values.number("part");
    let build = BUILD_NS / part + HEAPS_NS / (part * part);
    let live = (values.number("memory_mib") / part) << 20;
    let slots = (values.number("swap_mib") / part) << 8;
    let slabs = Estimate::of_operations(machine, 0, live);
    Estimate { host_ns: 2 * build * values.number("iterations"), host_bytes: slabs.host_bytes + slots * 16 }
}

fn observe(setup: &Setup, values: &Values, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
    let part = values.number("part");
    let is = |name: &str| values.word(name) == "yes";
    let mut setup = setup.clone();
    let nodes = setup.spec.nodes.len() as u64;
    for node in &mut setup.spec.nodes {
        node.bytes = program_kib(values) / 4 / part / nodes * PAGE;
    }
    let disk = disk(values);
    let guest = Guest {
        swap_pages: (values.number("swap_mib") << 8) as u32,
        disk: [disk.clone(), disk],
        queue: QueueSpec::named("cfq@2.6.29").expect("a queue of this name"),
        zones: None,
        tree_nodes: is("tree_nodes"),
        ..Guest::default()
    };
    let guest = part_of(guest, values.number("memory_mib") << 10, part as u32);
    let vm = VmPreset::parse(values.word("vm")).expect("the words are presets");
    let [major, minor, patch] = vm.kernel;
    let program = TmpfsSwap {
        second: if values.word("second") == "loop" { Second::Loop } else { Second::Tmpfs },
        kbuild: Kbuild {
            jobs: values.number("jobs") as u32,
            heap_mib: values.number("heap_mib") as u32,
            user: values.number("user_ms") * 1_000_000_000,
            ..Kbuild::default()
        },
        iterations: values.number("iterations") as u32,
        part: part as u32,
        image_mib: values.number("image_mib") as u32,
        rules: LoopRules {
            overwrite_reads: is("overwrite_reads"),
            read_dirties: is("read_dirties"),
            is_restricted: is("restricted"),
        },
        keeps: Keeps {
            discards: is("discard"),
            shrinks: is("shrink"),
            packs: values.word("blocks") == "lowest",
        },
        compresses: is("compress"),
        ..TmpfsSwap::default()
    };
    let rules = Rules {
        tmpfs_read_frees_slot: is("tmpfs_frees_slot"),
        tmpfs_counts_dirty: is("tmpfs_dirty"),
        ..Rules::of(major, minor, patch)
    };
    let (answer, outcome) = run(&setup, seed, &guest, vm.policy(), rules, &program, recorder)?;
    let numbers = numbers(&answer, part);
    let metrics = numbers.into_iter().collect();
    let sample = Sample { metrics, ..kernel::sample(&[], &outcome, &[]) };
    Ok(Observed { sample, profile: Some(outcome.profile) })
}

/// The disk with its times for seeks.
fn disk(values: &Values) -> Disk {
    let named = disks::installed().into_iter().find(|disk| disk.name == values.word("disk"));
    let mut disk = named.expect("the disk comes with the program").disk;
    if let DiskKind::Rotating(arm) = &mut disk.kind {
        for seek in [&mut arm.seek_track, &mut arm.seek_average, &mut arm.seek_full, &mut arm.seek_write] {
            *seek = *seek * values.number("seek_percent") / 100;
        }
    }
    disk
}

/// The numbers of a run. An iteration that was not run has none, nor what is counted up to it.
fn numbers(answer: &[Iteration], part: u64) -> Vec<(String, u64)> {
    let mut numbers = Vec::new();
    let mut add = |name: &str, number: u64| numbers.push((name.to_string(), number));
    for (at, one) in answer.iter().enumerate() {
        let n = at + 1;
        for (build, built) in (1..).zip(&one.builds) {
            add(&format!("build{build}_{n}_ps"), built.elapsed * part);
            add(&format!("user{build}_{n}_ps"), built.cpu.user * part);
            add(&format!("system{build}_{n}_ps"), built.cpu.system * part);
        }
        add(&format!("total_{n}_ps"), one.total * part);
        add(&format!("tar_{n}"), one.is_unpacking.into());
    }
    for n in [4, 8].into_iter().filter(|n| *n <= answer.len()) {
        let build2 = |n: usize| u128::from(answer[n - 1].builds[1].elapsed);
        add(&format!("growth_{n}_ppm"), (build2(n) * 1_000_000 / build2(2).max(1)) as u64);
        let tars = answer[2..n].iter().filter(|one| one.is_unpacking).count();
        add(&format!("tars_{n}"), tars as u64);
    }
    let mean =
        |of: &dyn Fn(&Iteration) -> u64| answer.iter().map(of).sum::<u64>() / answer.len().max(1) as u64;
    add("elapsed_ps", answer.last().map_or(0, |last| last.total * part));
    add("user_ps", mean(&|one| one.builds[0].cpu.user) * part);
    add("system_ps", mean(&|one| one.builds[0].cpu.system) * part);
    add("swap_ins_1", mean(&|one| one.builds[0].swap_ins.iter().sum()));
    for (at, cause) in ["source", "garbage", "other"].into_iter().enumerate() {
        add(&format!("swap_ins_{cause}"), mean(&|one| one.builds[1].swap_ins[at]));
    }
    for order in 0..4 {
        add(&format!("wakes_{order}"), mean(&|one| one.counts.wakes[order]));
        add(&format!("low_{order}"), mean(&|one| one.counts.low[order]));
        add(&format!("direct_{order}"), mean(&|one| one.counts.direct[order]));
        for build in 0..2 {
            let name = format!("requests{}_{order}", build + 1);
            add(&name, mean(&|one| one.builds[build].requests[order]));
        }
    }
    for (at, by) in ["kswapd", "direct"].into_iter().enumerate() {
        add(&format!("stolen_{by}"), mean(&|one| one.counts.stolen[at]));
    }
    add("swap_outs", mean(&|one| one.counts.swap_outs));
    add("text_kib", mean(&|one| one.counts.text_kib));
    add("name_slabs", mean(&|one| one.counts.name_slabs));
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use slablab_sim::kernel::CpuTime;
    use slablab_sim::programs::tmpfs_swap::{Built, Counts};

    #[test]
    fn every_number_is_a_metric_and_parts_are_counted_up() {
        let built = |elapsed| Built {
            elapsed,
            cpu: CpuTime { user: 7, system: 3 },
            requests: std::array::from_fn(|order| elapsed + order as u64),
            swap_ins: [2, 4, 6],
            objects: 1,
        };
        let wakes = std::array::from_fn(|order| order as u64 + 1);
        let counts = Counts { wakes, stolen: [8, 9], ..Counts::default() };
        let one = Iteration { builds: [built(10), built(20)], is_unpacking: true, total: 21, counts };
        let other = Iteration { builds: [built(11), built(30)], is_unpacking: false, total: 52, counts };
        let numbers = numbers(&[one, other], 8);
        for (name, _) in &numbers {
            assert!(METRICS.iter().any(|metric| metric.name == name), "{name}");
        }
        let of = |name: &str| numbers.iter().find(|(one, _)| one == name).map(|(_, number)| *number);
        assert_eq!(
            (of("build1_1_ps"), of("build2_2_ps"), of("total_2_ps")),
            (Some(80), Some(240), Some(416))
        );
        assert_eq!((of("tar_1"), of("tar_2"), of("tar_3")), (Some(1), Some(0), None));
        assert_eq!((of("swap_ins_1"), of("swap_ins_garbage"), of("wakes_3")), (Some(12), Some(4), Some(4)));
        assert_eq!((of("stolen_kswapd"), of("stolen_direct")), (Some(8), Some(9)));
        assert_eq!((of("user_ps"), of("system2_2_ps"), of("requests2_3")), (Some(56), Some(24), Some(28)));
    }

    #[test]
    fn growth_is_over_iteration_2_and_tars_are_counted_from_iteration_3() {
        let iteration = |n: u64, is_unpacking| {
            let builds = [Built::default(), Built { elapsed: n * 100, ..Built::default() }];
            Iteration { builds, is_unpacking, ..Iteration::default() }
        };
        let five: Vec<Iteration> = (1..=5).map(|n| iteration(n, n != 4)).collect();
        let numbers = numbers(&five, 8);
        let of = |name: &str| numbers.iter().find(|(one, _)| one == name).map(|(_, number)| *number);
        assert_eq!((of("growth_4_ppm"), of("tars_4")), (Some(2_000_000), Some(1)));
        assert_eq!((of("growth_8_ppm"), of("tars_8")), (None, None));
    }

    #[test]
    fn the_policies_are_presets() {
        let Kind::Word(words) = PARAMETERS[0].kind else { panic!("vm is a word") };
        for word in words {
            assert!(VmPreset::parse(word).is_ok(), "{word}");
        }
    }
}
