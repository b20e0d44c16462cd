//! What the two tests of September 2001 share: the machine under a VM of 2.4, the player, and how music is
//! measured.

use crate::workload::{Estimate, Kind, Metric, Object, Parameter, Values};
use slablab_machines::disks;
use slablab_model::{MachineSpec, NodeSpec, Ps};
use slablab_pages::PagesPolicy;
use slablab_sim::block::disk::queue::QueueSpec;
use slablab_sim::memory::Guest;
use slablab_sim::programs::desktop::player::Played;
use slablab_sim::programs::desktop::{self, Answer, Habits, Test};
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::Failed;
use slablab_slabs::Release;
use slablab_stats::table::Better;
use slablab_vm::mm::Rules;
use slablab_vm::preset::Preset;

const MS: Ps = 1_000_000_000;
/// A second.
pub(super) const SECOND: Ps = 1_000 * MS;
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
pub(super) fn objects(_: Release) -> Vec<Object> {
    let object = |cache: &'static str, bytes| Object {
        cache,
        bytes,
        per_operation: "1 for each file that is looked at".into(),
        source: "slabinfo(5) of 2.4",
    };
    vec![object("dentry_cache", 128), object("inode_cache", 480)]
}

/// A run is a second of one core, or some.
pub(super) fn estimate(_: &MachineSpec, _: &Values) -> Estimate {
    Estimate { host_ns: 2_000_000_000, host_bytes: 128 << 20 }
}

/// What a preset and a kernel are joined by, where the kernel is not the preset's.
const ON: &str = " on ";

/// A policy as a word; with its kernel, if that is another one's (as [`Groups`](crate::explain::groups) makes
/// them).
pub(crate) fn with_kernel_of(preset: &Preset) -> String {
    let own = Preset::parse(&preset.to_string()).expect("what is printed can be parsed");
    let [major, minor, patch] = preset.kernel;
    match own.kernel == preset.kernel {
        true => preset.to_string(),
        false => format!("{preset}{ON}{major}.{minor}.{patch}"),
    }
}

/// The policy that [`with_kernel_of`] prints.
fn policy(word: &str) -> Option<Preset> {
    let (preset, kernel) = word.split_once(ON).map_or((word, None), |(preset, on)| (preset, Some(on)));
    let mut preset = Preset::parse(preset).ok()?;
    if let Some(kernel) = kernel {
        let numbers: Option<Vec<u32>> = kernel.split('.').map(|number| number.parse().ok()).collect();
        preset.kernel = numbers?.try_into().ok()?;
    }
    Some(preset)
}

/// Runs a test on the machine with the memory, the disk and the VM that the parameters name.
pub(super) fn run(
    (setup, seed, recorder): (&Setup, u64, &Recorder),
    values: &Values,
    (test, player, habits): (&Test, bool, Habits),
) -> Result<Answer, Failed> {
    let vm = policy(values.word("vm")).expect("the words are presets");
    let [major, minor, patch] = vm.kernel;
    let mut setup = setup.clone();
    let bytes = values.number("memory_mib") << 20;
    let nodes = setup.spec.nodes.len() as u64;
    setup.spec.nodes.iter_mut().for_each(|node| *node = NodeSpec { bytes: bytes / nodes });
    let named = disks::installed().into_iter().find(|disk| disk.name == values.word("disk"));
    let disk = named.expect("the disk comes with the program").disk;
    let guest = Guest {
        zones: None,
        free_pages: Some(bytes / 4_096 * MEM_TOTAL.0 / MEM_TOTAL.1),
        settings: vm.settings,
        swap_pages: SWAP_PAGES,
        disk: [disk.clone(), disk],
        queue: QueueSpec::linus(bytes),
        swap_at: Some(SWAP_AT),
        pages: Some(PagesPolicy::for_release(major, minor, patch)),
        caches: desktop::caches(),
        tick_every: Some(SECOND),
        ..Guest::default()
    };
    let rules = Rules::of(major, minor, patch);
    let player = player.then(|| values.number("buffer_ms") * MS);
    desktop::run(&setup, seed, &guest, vm.policy(), rules, (test, player, habits), recorder)
}

/// The numbers of the music.
pub(super) fn music(played: Played) -> [(&'static str, u64); 3] {
    [(SKIPS.name, played.skips), (GAP_LONGEST.name, played.longest), (GAPS.name, played.silent)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_policies_of_2_4_and_disks() {
        let words = |parameter: &Parameter| match parameter.kind {
            Kind::Word(words) => words,
            _ => panic!("{} is a word", parameter.name),
        };
        for word in words(&VM) {
            let preset = Preset::parse(word).unwrap_or_else(|bad| panic!("{word}: {bad}"));
            assert_eq!(preset.kernel[..2], [2, 4], "{word}");
        }
        let mut other = Preset::parse("vm@2.4.10,slots=until-full").expect("a preset");
        other.kernel = [2, 4, 9];
        let word = with_kernel_of(&other);
        assert_eq!((word.as_str(), policy(&word)), ("vm@2.4.10,slots=until-full on 2.4.9", Some(other)));
        for word in words(&DISK) {
            assert!(disks::installed().iter().any(|disk| disk.name == *word), "{word}");
        }
    }
}
