//! Which files a dump is made of, where they are in it, and how large they may be.

use super::supportconfig::FILES;
use crate::cgroups;

/// Files that a dump is made of; a `*` stands for any text inside one path component.
pub const WANTED: &[&str] = &[
    "proc/slabinfo",
    "proc/meminfo",
    "proc/zoneinfo",
    "proc/buddyinfo",
    "proc/pagetypeinfo",
    "proc/vmstat",
    "proc/cmdline",
    "proc/version",
    "proc/uptime",
    "proc/cpuinfo",
    "proc/config.gz",
    "proc/sys/kernel/osrelease",
    "proc/sys/kernel/arch",
    "proc/sys/kernel/hostname",
    "proc/sys/kernel/random/boot_id",
    "proc/sys/fs/dentry-state",
    "proc/net/protocols",
    "proc/allocinfo",
    "proc/modules",
    "proc/cgroups",
    "slablab/containers",
    "slablab/holders",
    "sos_commands/host/hostname",
    "boot/config-*",
    "sos_commands/kernel/uname_-a",
    "sos_commands/kernel/lsmod",
    "sos_commands/date/date",
    "sos_commands/date/date_--utc",
    "sos_commands/general/date",
    "sos_commands/general/uptime",
    "sos_commands/host/uptime",
    "sos_commands/processor/lscpu",
    "sos_commands/systemd/timedatectl",
    "sos_commands/*/ls_*.sys.kernel.slab",
    "sys/devices/system/cpu/possible",
    "sys/devices/system/cpu/present",
    "sys/devices/system/cpu/online",
    "sys/devices/system/node/online",
    "sys/devices/system/node/has_memory",
    "sys/devices/system/node/*/cpulist",
    "sys/devices/system/node/*/distance",
    "sys/devices/system/node/*/meminfo",
    "sys/kernel/slab/*/*",
    // Where SLUB put its directories at first.
    "sys/slab/*/*",
    // Of supportconfig.
    "basic-environment.txt",
    "boot.txt",
    "hardware.txt",
    "memory.txt",
    "proc.txt",
];

/// Whether the file at `path` is one of [`WANTED`], or of a memory cgroup at any depth.
pub(super) fn is_wanted(path: &str) -> bool {
    if cgroup_file(path).is_some() {
        return true;
    }
    let mut parts = [""; 6];
    let mut count = 0;
    for part in below_root(path) {
        if count == parts.len() {
            return false;
        }
        parts[count] = part;
        count += 1;
    }
    let parts = &parts[..count];
    // Most members of a large bundle end here: every wanted file is below one of these.
    if !parts.first().is_some_and(|first| is_root(first)) {
        return false;
    }
    WANTED.iter().any(|wanted| {
        wanted.split('/').count() == parts.len()
            && wanted.split('/').zip(parts).all(|(wanted, part)| fits(wanted, part))
    })
}

/// The path of a memory cgroup below the root of its hierarchy, and the name of its file, if `path` is one of
/// [`cgroups::FILES`]. Version 1 has a folder `memory` above all.
pub fn cgroup_file(path: &str) -> Option<(String, &str)> {
    let parts: Vec<&str> = below_root(path).collect();
    let ["sys", "fs", "cgroup", below @ .., file] = &parts[..] else { return None };
    if !cgroups::FILES.contains(file) || below.len() > CGROUP_DEPTH {
        return None;
    }
    let below = match below {
        ["memory", below @ ..] => below,
        // The other hierarchies of version 1 have files of these names too, and nothing of memory.
        [first, ..] if OTHER_HIERARCHIES.contains(first) => return None,
        below => below,
    };
    Some((format!("/{}", below.join("/")), file))
}

/// Levels of cgroups that are read.
const CGROUP_DEPTH: usize = 64;
/// Hierarchies of version 1 beside `memory`, and version 2 beside version 1.
const OTHER_HIERARCHIES: [&str; 13] = [
    "blkio",
    "cpu",
    "cpuacct",
    "cpu,cpuacct",
    "cpuset",
    "devices",
    "freezer",
    "hugetlb",
    "net_cls",
    "perf_event",
    "pids",
    "systemd",
    "unified",
];

/// Whether `part` fits a component of [`WANTED`].
pub fn fits(wanted: &str, part: &str) -> bool {
    let Some((first, rest)) = wanted.split_once('*') else { return wanted == part };
    let Some(part) = part.strip_prefix(first) else { return false };
    rest.is_empty() || part.ends_with(rest)
}

fn is_root(part: &str) -> bool {
    matches!(part, "proc" | "sys" | "sos_commands" | "boot" | "slablab") || FILES.contains(&part)
}

/// The components of `path` from `proc`, `sys`, `boot` or `sos_commands` on, which may be up to two
/// directories down.
pub(super) fn below_root(path: &str) -> impl Iterator<Item = &str> {
    let parts = || path.split('/').filter(|part| !matches!(*part, "" | "."));
    let depth = parts().take(3).position(is_root).unwrap_or(0);
    parts().skip(depth)
}

/// The most bytes that a file at `path` may have: some times what the largest machine's kernel writes. A file
/// of /sys/kernel/slab is one page at most, but an archiver may have taken its size from the directory.
pub(super) fn limit(path: &str) -> u64 {
    let mut parts = below_root(path);
    match (parts.next(), parts.next()) {
        // 4,096 CPUs and 64 nodes make 40 MB of zoneinfo and 12 MB of cpuinfo; a million per-cgroup caches
        // 150 MB.
        (Some("proc"), Some("slabinfo" | "zoneinfo" | "cpuinfo")) => 64 << 20,
        // All files of /proc are in one text.
        (Some(part), None) if FILES.contains(&part) => 64 << 20,
        (Some("proc" | "boot" | "sos_commands" | "slablab"), _) => 4 << 20,
        _ => 256 << 10,
    }
}
