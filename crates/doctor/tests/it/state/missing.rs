//! Support bundles and old kernels: values in other forms, and missing values.

use super::tars::{Members, folder, read, real};
use slablab_doctor::state::{COLLECT, Missing, State};
use slablab_readers::bundle::CpusFrom;

fn state(name: &str, members: &Members) -> State {
    let path = folder("missing").join(format!("{name}.tar"));
    std::fs::write(&path, members.tar("sosreport-host-2026-11-20-abcdefg/")).unwrap();
    let state = read(&path);
    std::fs::remove_file(path).unwrap();
    state
}

/// A bundle like that of sos: unchanged files of /proc, the output of commands, and only a listing of
/// /sys/kernel/slab.
fn sosreport(run: &str) -> Members {
    let dump = Members::of(&real(run));
    let mut listing = String::from("/sys/kernel/slab:\ntotal 0\ndrwxr-xr-x 145 0 0 0 Nov 20 10:00 .\n");
    for (name, target) in &dump.links {
        let name = name.rsplit('/').next().unwrap();
        listing += &format!("lrwxrwxrwx   1 0 0 0 Nov 20 10:00 {name} -> {target}\n");
    }
    listing += "\n/sys/kernel/slab/:0000016:\ntotal 0\n-r--r--r-- 1 0 0 4096 Nov 20 10:00 aliases\n";
    Members { links: Vec::new(), ..dump.without("sys/").without("proc/version").without("proc/sys") }
        .file("sos_commands/kernel/uname_-a", "Linux host 6.1.0-50-amd64 #1 SMP x86_64 GNU/Linux\n")
        .file("sos_commands/memory/ls_-lanR_.sys.kernel.slab", &listing)
        .file("sos_commands/processor/lscpu", "Architecture: x86_64\nCPU(s):  8\nOn-line CPU(s) list: 0-7\n")
        .file("sos_commands/date/date_--utc", "Fri Nov 20 10:00:00 UTC 2026\n")
        .file(
            "sos_commands/host/uptime",
            " 10:00:00 up 2 days,  1:30,  1 user,  load average: 0.1, 0.2, 0.3\n",
        )
        .file(
            "boot/config-6.1.0-50-amd64",
            "CONFIG_SLUB=y\n# CONFIG_SLUB_STATS is not set\nCONFIG_NR_CPUS=8192\n",
        )
        .file("boot/config-5.10.0-1-amd64", "CONFIG_SLAB=y\n")
}

fn missing<'a>(state: &'a State, file: &str) -> Option<&'a Missing> {
    state.missing.iter().find(|missing| missing.file == file)
}

#[test]
fn a_sosreport_says_what_it_can_and_names_the_rest() {
    let state = state("sos", &sosreport("amd64_smp8_numa4_memless"));
    let expected = read(real("amd64_smp8_numa4_memless"));
    assert_eq!((state.caches.len(), state.bytes()), (145, expected.bytes()));
    // Aliases come from the listing; values do not come at all.
    for (found, expected) in state.caches.iter().zip(&expected.caches) {
        assert_eq!((&found.name, &found.aliases), (&expected.name, &expected.aliases));
        assert_eq!(found.object_size, None, "{}", found.name);
    }
    assert_eq!(state.cpus.map(|cpus| cpus.online), Some(8));
    assert_eq!(state.dump.cpus_counted, Some((8, CpusFrom::Lscpu)));
    assert!(state.assumed.iter().any(|line| line.contains("8 CPUs, by lscpu")), "{:?}", state.assumed);
    assert_eq!((state.taken_s, state.up_s), (Some(1_795_168_800), Some(178_200.0)));
    assert_eq!(state.page_size, 4096);
    let config: Vec<_> =
        state.dump.config.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(config, [("NR_CPUS", "8192"), ("SLUB", "y"), ("SLUB_STATS", "n")]);
    let sysfs = missing(&state, "/sys/kernel/slab").unwrap();
    assert_eq!(sysfs.why, "only its names are in the bundle");
    assert_eq!(sysfs.command.as_deref(), Some(COLLECT));
    let nodes = missing(&state, "/sys/devices/system/node").unwrap();
    assert_eq!(nodes.why, "not in the bundle");
    assert_eq!(state.missing.len(), 2, "{:?}", state.missing);
}

#[test]
fn what_is_empty_or_gone_is_named() {
    let sos = sosreport("amd64_smp8_numa4_memless").file("proc/vmstat", "").without("proc/cmdline");
    let sos = sos.without("sos_commands").without("proc/buddyinfo");
    let state = state("gone", &sos);
    let why = |file| missing(&state, file).map(|missing| missing.why.as_str());
    assert_eq!(why("/proc/vmstat"), Some("empty in the input"));
    assert_eq!(why("/proc/cmdline"), Some("not in the bundle"));
    assert_eq!(why("/proc/buddyinfo"), Some("not in the bundle"));
    assert_eq!(why("/proc/version"), Some("not in the bundle"));
    assert_eq!(why("/sys/kernel/slab"), Some("not in the bundle"));
    assert_eq!(why("/proc/slabinfo"), None);
    // The page lists of the zones know the CPUs still.
    assert_eq!(state.dump.cpus_counted, Some((8, CpusFrom::Zoneinfo)));
    assert_eq!(why("/sys/devices/system/cpu"), None);
}

#[test]
fn kernels_with_slab_have_no_sysfs_to_ask_for() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../readers/corpus/slabinfo");
    let text = std::fs::read_to_string(corpus.join("2.1_statistics")).unwrap();
    let state = state("slab", &Members::default().file("proc/slabinfo", &text));
    assert!(state.caches.iter().all(|cache| cache.attrs.is_none() && cache.size > 0));
    let sysfs = missing(&state, "/sys/kernel/slab").unwrap();
    assert_eq!((sysfs.why.as_str(), &sysfs.command), ("kernels with SLAB have none", &None));
}
