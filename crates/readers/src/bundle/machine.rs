//! The kernel's configuration, and how many CPUs there are where the kernel's own lists of them are missing.

use std::collections::{BTreeMap, BTreeSet};

use crate::text::{ID_LIMIT, id_list, number};

/// How the number of CPUs is known where /sys/devices/system/cpu is not in the dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpusFrom {
    /// The CPU lists of the nodes.
    Nodes,
    /// `lscpu`.
    Lscpu,
    /// /proc/cpuinfo.
    Cpuinfo,
    /// The page lists per CPU in /proc/zoneinfo.
    Zoneinfo,
}

/// Options about slabs, memory, nodes and CPUs, by name without `CONFIG_`; `n` for one that is not set.
pub(super) fn config(text: &str) -> BTreeMap<String, String> {
    const ABOUT: [&str; 9] =
        ["SLAB", "SLUB", "SLOB", "MEMCG", "MEM_ALLOC", "NUMA", "NR_CPUS", "PAGE", "NODES_SHIFT"];
    let option = |line: &str| match line.strip_prefix("# ") {
        Some(rest) => rest.strip_suffix(" is not set").map(|name| (name.to_string(), "n".to_string())),
        None => {
            line.split_once('=').map(|(name, value)| (name.to_string(), value.trim_matches('"').to_string()))
        }
    };
    let options = text.lines().filter_map(|line| option(line.trim()));
    let named = options.filter_map(|(name, value)| Some((name.strip_prefix("CONFIG_")?.to_string(), value)));
    named.filter(|(name, _)| ABOUT.iter().any(|word| name.contains(word))).collect()
}

/// Bytes in a page, as the configuration fixes it.
pub(crate) fn config_page_size(config: &BTreeMap<String, String>) -> Option<u64> {
    let shift =
        ["PAGE_SHIFT", "PPC_PAGE_SHIFT", "ARM64_PAGE_SHIFT"].iter().find_map(|name| config.get(*name));
    if let Some(shift) =
        shift.and_then(|shift| number::<u32>(shift)).filter(|shift| (12..=18).contains(shift))
    {
        return Some(1 << shift);
    }
    // `PAGE_SIZE_4KB`, `ARM64_64K_PAGES`, `PPC_64K_PAGES`, `IA64_PAGE_SIZE_16KB`.
    let sizes = [(4, "4K"), (8, "8K"), (16, "16K"), (64, "64K"), (256, "256K")];
    let set = config.iter().filter(|(name, value)| *value == "y" && !name.starts_with("HAVE_"));
    let set = set.map(|(name, _)| name.as_str());
    let mut found = set.filter_map(|name| {
        let size = name.split_once("PAGE_SIZE_").map(|(_, size)| size.trim_end_matches('B'));
        let size = size.or_else(|| name.strip_suffix("_PAGES")?.rsplit_once('_').map(|(_, size)| size))?;
        sizes.iter().find(|(_, known)| *known == size).map(|(kib, _)| kib * 1024)
    });
    found.next()
}

/// CPUs that lscpu counts: `CPU(s): 8`, also those that are offline.
pub(super) fn lscpu(text: &str) -> Option<u32> {
    let value = |name: &str| text.lines().find_map(|line| line.trim().strip_prefix(name)).map(str::trim);
    let counted = value("CPU(s):").and_then(number).filter(|&cpus| 0 < cpus && cpus < ID_LIMIT);
    counted.or_else(|| Some(id_list(value("On-line CPU(s) list:")?)?.len() as u32).filter(|&cpus| cpus > 0))
}

/// CPUs in /proc/cpuinfo: `processor : 0` each, on s390 `processor 0: version`.
pub(super) fn cpuinfo(text: &str) -> Option<u32> {
    let of_line = |line: &str| {
        let rest = line.strip_prefix("processor")?.trim_start();
        let id = rest.strip_prefix(':').unwrap_or_else(|| rest.split(':').next().unwrap_or(""));
        number::<u32>(id.trim()).filter(|&id| id < ID_LIMIT)
    };
    let ids: BTreeSet<u32> = text.lines().filter_map(of_line).collect();
    Some(ids.len() as u32).filter(|&cpus| cpus > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_sizes_of_configurations() {
        #[track_caller]
        fn check(text: &str, expected: Option<u64>) {
            assert_eq!(config_page_size(&config(text)), expected, "{text}");
        }
        check("CONFIG_PAGE_SHIFT=14\nCONFIG_PAGE_SIZE_16KB=y\n", Some(16 << 10));
        check("CONFIG_PPC_PAGE_SHIFT=16\n", Some(64 << 10));
        check("# CONFIG_ARM64_4K_PAGES is not set\nCONFIG_ARM64_64K_PAGES=y\n", Some(64 << 10));
        check("CONFIG_IA64_PAGE_SIZE_16KB=y\n", Some(16 << 10));
        check("CONFIG_HAVE_PAGE_SIZE_4KB=y\nCONFIG_SLUB=y\nCONFIG_SPARSEMEM_VMEMMAP=y\n", None);
        check("CONFIG_PAGE_SHIFT=99\n", None);
    }

    #[test]
    fn only_options_about_memory_are_kept() {
        let config =
            config("# CONFIG_SLUB_STATS is not set\nCONFIG_NR_CPUS=8192\nCONFIG_EXT4_FS=m\n# Slab\n");
        let kept: Vec<_> = config.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(kept, [("NR_CPUS", "8192"), ("SLUB_STATS", "n")]);
    }

    #[test]
    fn cpus() {
        #[track_caller]
        fn check(found: Option<u32>, expected: Option<u32>) {
            assert_eq!(found, expected);
        }
        check(lscpu("Architecture: x86_64\nCPU(s):              8\nOn-line CPU(s) list: 0-6\n"), Some(8));
        check(lscpu("On-line CPU(s) list: 0-6\n"), Some(7));
        check(lscpu("CPU(s): 0\n"), None);
        check(cpuinfo("processor\t: 0\nmodel\t: x\n\nprocessor\t: 1\n"), Some(2));
        check(cpuinfo("processor 0: version = FF\nprocessor 1: version = FF\n"), Some(2));
        check(cpuinfo("Processor : ARMv7\n"), None);
    }
}
