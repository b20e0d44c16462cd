//! What a state does not say, why, what that costs, and the one command that would make it readable.

use super::machine::Missing;
use slablab_readers::bundle::Dump;
use std::io;

/// What an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Live,
    Directory,
    Bundle,
    Text,
    Slabinfo,
    Pasted,
}

impl Origin {
    /// Why a file is not there.
    pub(super) fn without(self) -> &'static str {
        match self {
            Origin::Live => "this kernel has none",
            Origin::Directory => "not in the directory",
            Origin::Bundle => "not in the bundle",
            Origin::Text | Origin::Pasted => "not in the text",
            Origin::Slabinfo => "the input is a slabinfo alone",
        }
    }
}

/// A shell command that writes all files that this module reads into one text, on any machine. If this
/// program is on the machine, `slablab doctor --save FILE` writes them too.
pub const COLLECT: &str = "sudo sh -c 'grep -rs . /proc/[bmsz]*info /proc/vmstat /proc/cmdline /proc/version /proc/uptime \
                           /proc/sys/kernel/arch /proc/sys/kernel/hostname /proc/sys/kernel/random/boot_id \
                           /proc/sys/fs/dentry-state /proc/net/protocols /sys/devices/system/cpu/p* /sys/devices/system/cpu/online \
                           /sys/devices/system/node /sys/kernel/slab /boot/config-$(uname -r); ls -l \
                           /sys/kernel/slab; \
                           LC_ALL=C date -u' | gzip > slabs.txt.gz";

/// One file, or folder of files, that a state is made of.
struct Want {
    file: &'static str,
    costs: &'static str,
    has: fn(&Dump) -> bool,
}

impl Want {
    /// Whether the file at `path` in a dump is of this one.
    fn is(&self, path: &str) -> bool {
        path.starts_with(self.file.trim_start_matches('/'))
    }
}

const WANTS: [Want; 11] = [
    Want {
        file: "/proc/slabinfo",
        costs: "the slabs as they were before the dump: reading /sys/kernel/slab allocates slabs itself",
        has: |dump| dump.slabinfo.is_some(),
    },
    Want {
        file: "/sys/kernel/slab",
        costs: "sizes of objects without padding, and what waits in slabs of CPUs and on nodes",
        has: has_attributes,
    },
    Want {
        file: "/proc/meminfo",
        costs: "slab memory beside all memory, and large kmallocs",
        has: |dump| !dump.meminfo.is_empty(),
    },
    Want {
        file: "/sys/devices/system/cpu",
        costs: "CPUs, which the kernel sizes slabs by",
        has: |dump| {
            !(dump.cpus_possible.is_empty() && dump.cpus_present.is_empty() && dump.cpus_online.is_empty())
                || dump.cpus_counted.is_some()
        },
    },
    Want {
        file: "/sys/devices/system/node",
        costs: "nodes, and which of them have memory",
        has: |dump| !dump.nodes.is_empty(),
    },
    Want {
        file: "/proc/version",
        costs: "the kernel's release, and with it what it lets its user change",
        has: |dump| dump.release.is_some(),
    },
    Want {
        file: "/proc/zoneinfo",
        costs: "watermarks, and free pages of CPUs",
        has: |dump| !dump.zones.is_empty(),
    },
    Want {
        file: "/proc/buddyinfo",
        costs: "whether there are free blocks for slabs of more than a page",
        has: |dump| !dump.buddyinfo.is_empty(),
    },
    Want { file: "/proc/vmstat", costs: "what reclaim did", has: |dump| !dump.vmstat.is_empty() },
    Want {
        file: "/proc/cmdline",
        costs: "boot parameters that are set already",
        has: |dump| dump.cmdline.is_some(),
    },
    Want {
        file: "/boot/config",
        costs: "how the kernel was built: merging, statistics, hardening",
        has: |dump| !dump.config.is_empty(),
    },
];

fn has_attributes(dump: &Dump) -> bool {
    dump.caches.iter().any(|cache| cache.slab_size.is_some())
}

/// What `dump` does not say. A slabinfo alone lacks all the rest: that is said in three lines, not in ten.
pub(super) fn missing(dump: &Dump, origin: Origin, refused: &[(String, io::Error)]) -> Vec<Missing> {
    let lacking = WANTS.iter().filter(|want| !(want.has)(dump) || refusal(want, refused).is_some());
    let mut missing: Vec<Missing> = lacking.map(|want| of(want, dump, origin, refused)).collect();
    if origin == Origin::Slabinfo && missing.len() > 2 {
        missing.truncate(2);
        missing.push(Missing {
            file: "other files of /proc and /sys".into(),
            why: origin.without().into(),
            costs: "the kernel's release, its CPUs and nodes, and what its user may change".into(),
            command: Some(COLLECT.into()),
        });
    }
    missing
}

fn of(want: &Want, dump: &Dump, origin: Origin, refused: &[(String, io::Error)]) -> Missing {
    let refusal = refusal(want, refused);
    let (why, command) = match (refusal, origin) {
        (Some(error), Origin::Live) if error.kind() == io::ErrorKind::PermissionDenied => {
            ("no permission".to_string(), Some("sudo slablab doctor".to_string()))
        }
        (Some(error), _) => (error.kind().to_string(), Some(COLLECT.to_string())),
        (None, Origin::Live) => (origin.without().to_string(), None),
        (None, _) if want.file == "/sys/kernel/slab" && is_slab(dump) => {
            ("kernels with SLAB have none".to_string(), None)
        }
        (None, _) if want.file == "/sys/kernel/slab" && dump.listed => {
            ("only its names are in the bundle".to_string(), Some(COLLECT.to_string()))
        }
        (None, _) if dump.empty.iter().any(|path| want.is(path)) => {
            ("empty in the input".to_string(), Some(COLLECT.to_string()))
        }
        (None, _) => (origin.without().to_string(), Some(COLLECT.to_string())),
    };
    Missing { file: want.file.to_string(), why, costs: want.costs.to_string(), command }
}

/// Why a file of `want` could not be read. If this user may not read some files of a folder, the whole folder
/// is refused.
fn refusal<'a>(want: &Want, refused: &'a [(String, io::Error)]) -> Option<&'a io::Error> {
    refused.iter().find(|(name, _)| want.is(name)).map(|(_, error)| error)
}

/// Whether the kernel's allocator is SLAB, whose caches are tuned by limits that SLUB does not have.
fn is_slab(dump: &Dump) -> bool {
    let rows = || dump.slabinfo.iter().flat_map(|slabinfo| &slabinfo.rows);
    dump.config.get("SLAB").is_some_and(|value| value == "y") || rows().any(|row| row.limit > 0)
}
