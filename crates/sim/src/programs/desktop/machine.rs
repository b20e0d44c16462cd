//! What the tests of September 2001 share as workloads: the machine under a VM of 2.4, rows of parameters,
//! and how music is measured.

use super::player::Played;
use super::{Answer, Habits, Test, caches, run};
use crate::block::disk::queue::QueueSpec;
use crate::kernel::tally::Failed;
use crate::memory::Guest;
use crate::params::{Kind, Parameter};
use crate::programs::measures::sample;
use crate::programs::program::{Estimate, MS, Metric, Object, Observed, SECOND};
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::NodeSpec;
use slablab_model::disk::Disk;
use slablab_pages::PagesPolicy;
use slablab_stats::table::Better;
use slablab_vm::mm::Rules;
use slablab_vm::preset::Preset;

/// Pages of swap: 256 MB; and where it begins on the disk, behind the files: 4 GiB, in sectors (assumed).
const SWAP_PAGES: u32 = 65_536;
const SWAP_AT: u64 = 8 << 20;

/// Memory that the kernel does not keep for itself, of a machine of 256 MB under 2.4.9-ac14+aging, in kB
/// (M. Josefsson, 25 September 2001: MemTotal), and all. The same part of every machine is assumed.
const MEM_TOTAL: (u64, u64) = (255_788, 262_144);

/// The VM.
pub(super) const VM: Parameter = Parameter {
    name: "vm",
    about: "the VM, as `vm@RELEASE`",
    source: "the mail of September 2001 and its follow-up",
    kind: Kind::Word(&[
        "vm@2.4.10",
        "vm@2.4.8",
        "vm@2.4.9",
        "vm@2.4.9-ac14",
        "vm@2.4.9-ac14+aging",
        "vm@2.4.9-ac14+launder",
        "vm@2.4.9-ac15+aging+launder",
        "vm@2.4.10-pre10",
        "vm@2.4.10-pre11",
        "vm@2.4.10+tweaks",
    ]),
};
/// Memory.
pub(super) const MEMORY: Parameter = Parameter {
    name: "memory_mib",
    about: "MiB of memory, in place of the machine's",
    source: "the mail: 32 to 192; its results are of 192",
    kind: Kind::Number { least: 32, most: 4_096, defaults: [192; 3] },
};
/// The disk.
pub(super) const DISK: Parameter = Parameter {
    name: "disk",
    about: "the disk with files and swap",
    source: "the mail names none: a PC's and a server's disk of the time",
    kind: Kind::Word(&["ide-7200-2001", "scsi-10k-2001"]),
};
/// The player's buffer.
pub(super) const BUFFER: Parameter = Parameter {
    name: "buffer_ms",
    about: "music that the player's buffer holds",
    source: "the mail names none: 0 (mpg123), 370 (64 KiB of a sound card), 3000 (XMMS)",
    kind: Kind::Number { least: 0, most: 60_000, defaults: [370; 3] },
};

/// Times that the card had nothing to play.
pub(super) const SKIPS: Metric = Metric {
    name: "skips",
    about: "times that the sound card had nothing to play",
    better: Some(Better::Lower),
    unit: "1",
    per_unit: 1.0,
    decimals: 0,
};
/// The longest of them.
pub(super) const GAP_LONGEST: Metric =
    Metric { name: "gap_longest_ps", about: "the longest gap in the music", ..seconds() };
/// The buffer that would have sufficed.
pub(super) const NEEDED: Metric = Metric {
    name: "buffer_needed_ps",
    about: "the buffer with which no gap would have been: the longest that the player fell behind",
    ..seconds()
};
/// All of them.
pub(super) const GAPS: Metric = Metric { name: "gaps_ps", about: "all gaps in the music", ..seconds() };
/// CPU time of kswapd.
pub(super) const KSWAPD: Metric = Metric {
    name: "kswapd_ps",
    about: "CPU time of kswapd for pages and entries that it looks at, frees and writes",
    ..seconds()
};
/// Pages to swap.
pub(super) const OUT: Metric = Metric { name: "swapped_out_kib", about: "written to swap", ..kib() };
/// Pages from swap.
pub(super) const IN: Metric = Metric { name: "swapped_in_kib", about: "read from swap", ..kib() };

/// A metric of time.
pub(super) const fn seconds() -> Metric {
    Metric { name: "", about: "", better: Some(Better::Lower), unit: "s", per_unit: 1e12, decimals: 2 }
}

/// A metric of memory.
pub(super) const fn kib() -> Metric {
    Metric { name: "", about: "", better: Some(Better::Lower), unit: "kB", per_unit: 1.0, decimals: 0 }
}

/// Kernel objects: names of files.
pub(super) fn objects() -> Vec<Object> {
    let object = |cache: &'static str, bytes| Object {
        cache,
        bytes,
        per_operation: "1 for each file that is looked at".into(),
        source: "slabinfo(5) of 2.4",
    };
    vec![object("dentry_cache", 128), object("inode_cache", 480)]
}

/// A run is a second of one core, or some.
pub(super) const ESTIMATE: Estimate = Estimate { host_ns: 2_000_000_000, host_bytes: 128 << 20 };

/// The machine of a test: its VM, its MiB of memory, the disk with files and swap.
pub(super) struct Machine<'a> {
    pub(super) vm: &'a Preset,
    pub(super) memory_mib: u64,
    pub(super) disk: &'a Disk,
}

impl Machine<'_> {
    /// Runs a test on the machine, if `buffer_ms` is given with music that a player's buffer holds.
    pub(super) fn run(
        &self,
        (setup, seed, recorder): (&Setup, u64, &Recorder),
        (test, buffer_ms, habits): (&Test, Option<u64>, Habits),
    ) -> Result<Answer, Failed> {
        let [major, minor, patch] = self.vm.kernel;
        let mut setup = setup.clone();
        let bytes = self.memory_mib << 20;
        let nodes = setup.spec.nodes.len() as u64;
        setup.spec.nodes.iter_mut().for_each(|node| *node = NodeSpec { bytes: bytes / nodes });
        let guest = Guest {
            zones: None,
            free_pages: Some(bytes / 4_096 * MEM_TOTAL.0 / MEM_TOTAL.1),
            settings: self.vm.settings,
            swap_pages: SWAP_PAGES,
            disk: [self.disk.clone(), self.disk.clone()],
            queue: QueueSpec::linus(bytes),
            swap_at: Some(SWAP_AT),
            pages: Some(PagesPolicy::for_release(major, minor, patch)),
            caches: caches(),
            tick_every: Some(SECOND),
            ..Guest::default()
        };
        let rules = Rules::of(major, minor, patch);
        let player = buffer_ms.map(|ms| ms * MS);
        run(&setup, seed, &guest, self.vm.policy(), rules, (test, player, habits), recorder)
    }
}

/// The numbers of the music.
pub(super) fn music(played: Played) -> [(&'static str, u64); 4] {
    [
        (SKIPS.name, played.skips),
        (GAP_LONGEST.name, played.longest),
        (GAPS.name, played.silent),
        (NEEDED.name, played.needed),
    ]
}

/// The numbers of swap.
pub(super) fn swap(answer: &Answer) -> [(&'static str, u64); 3] {
    let (out, back) = answer.swapped();
    [(OUT.name, out * 4), (IN.name, back * 4), (KSWAPD.name, answer.kswapd)]
}

/// What a test measured: its `own` numbers, and what the kernel counted.
pub(super) fn observed(metrics: &[Metric], answer: Answer, own: &[(&'static str, u64)]) -> Observed {
    let outcome = answer.outcome.expect("a test that ended has an outcome");
    Observed { sample: sample(metrics, &outcome, own), profile: Some(outcome.profile) }
}
