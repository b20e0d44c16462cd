//! Which files of a kernel tree the build of an allocator can read.

/// Folders of which only the files of Kconfig and kbuild are needed.
const UNUSED: [&str; 15] = [
    "Documentation",
    "LICENSES",
    "block",
    "crypto",
    "drivers",
    "fs",
    "io_uring",
    "ipc",
    "net",
    "rust",
    "samples",
    "security",
    "sound",
    "tools/perf",
    "tools/testing",
];

/// The folder of architectures, of which one is needed.
const ARCHITECTURES: &str = "arch/";

/// The one that is needed. User-mode Linux has files of x86 in a folder of its own.
const OURS: &str = "arch/x86/";

/// Whether a build may read the file at this path of a tree.
pub fn is_needed(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    if ["Kconfig", "Makefile", "Kbuild"].iter().any(|start| name.starts_with(start)) {
        return true;
    }
    if path.starts_with(ARCHITECTURES) {
        return path.starts_with(OURS);
    }
    !UNUSED.iter().any(|folder| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_build_reads_is_needed() {
        let check = |path: &str, expected: bool| assert_eq!(is_needed(path), expected, "{path}");
        check("mm/slub.c", true);
        check("Makefile", true);
        check("drivers/net/Kconfig", true);
        check("drivers/net/Kconfig.debug", true);
        check("drivers/net/loopback.c", false);
        check("arch/x86/lib/hweight.S", true);
        check("arch/arm64/mm/init.c", false);
        check("arch/arm64/Kconfig", true);
        check("tools/objtool/check.c", true);
        check("tools/perf/perf.c", false);
        check("netlink.h", true);
    }
}
