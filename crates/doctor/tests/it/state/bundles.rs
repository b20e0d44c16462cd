//! Bundles of other programs: SUSE's supportconfig, and a core dump by way of scripts/vmcore.py.

use crate::pasted::sample_text;
use slablab_doctor::state::{Input, read};
use std::path::Path;

/// A bundle of SUSE's, as folder and as tar in bzip2.
#[test]
fn supportconfig() {
    let slabinfo = format!("slabinfo - version: 2.1\n# name <active_objs>\n{}", sample_text("sorted.txt"));
    let section =
        |kind: &str, what: &str, content: &str| format!("#==[ {kind} ]=====#\n# {what}\n{content}\n\n");
    let texts = [
        (
            "basic-environment.txt",
            section("Command", "/bin/date", "Sat Nov 21 06:42:04 UTC 2026")
                + &section(
                    "Command",
                    "/bin/uname -a",
                    "Linux host 5.14.21-150500-default #1 SMP x86_64 GNU/Linux",
                ),
        ),
        ("hardware.txt", section("Command", "/usr/bin/lscpu", "CPU(s):              8")),
        (
            "memory.txt",
            section("Command", "/usr/bin/free -k", "total used")
                + &section("File", "/proc/meminfo", "Slab: 90000 kB"),
        ),
        ("proc.txt", section("Command", "/bin/cat /proc/slabinfo", &slabinfo)),
    ];
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("supportconfig");
    let _ = std::fs::remove_dir_all(&folder);
    let inside = folder.join("scc_host_261121_0642");
    std::fs::create_dir_all(&inside).unwrap();
    let mut tar = tar::Builder::new(Vec::new());
    for (name, text) in &texts {
        std::fs::write(inside.join(name), text).unwrap();
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, format!("scc_host_261121_0642/{name}"), text.as_bytes()).unwrap();
    }
    let archive = folder.join("scc_host_261121_0642.tbz");
    let mut packed = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    std::io::Write::write_all(&mut packed, &tar.into_inner().unwrap()).unwrap();
    std::fs::write(&archive, packed.finish().unwrap()).unwrap();
    for path in [folder.clone(), inside, archive] {
        let state = read(&Input { path: Some(path.clone()), ..Input::default() });
        let state = state.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(state.caches.len(), 10, "{}", path.display());
        assert_eq!(state.dump.release.as_deref(), Some("5.14.21-150500-default"));
        assert_eq!(state.cpus.map(|cpus| cpus.online), Some(8));
        assert_eq!(state.dump.meminfo["Slab"], 90000);
        assert_eq!(state.taken_s, Some(1_795_243_324));
    }
}

/// scripts/vmcore.py, with a stand-in for drgn that has two caches.
#[test]
fn vmcore_script() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tar = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vmcore.tar");
    let output = std::process::Command::new("python3")
        .args(["-B", "-W", "error"])
        .arg(root.join("../../scripts/vmcore.py"))
        .arg("--")
        .arg(&tar)
        .env("PYTHONPATH", root.join("testdata/drgn"))
        .output()
        .expect("python3 is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let state = read(&Input { path: Some(tar), ..Input::default() }).unwrap();
    let dentry = state.cache("dentry").unwrap();
    assert_eq!(
        (dentry.active_objects, dentry.total_objects, dentry.slabs, dentry.order),
        (2050, 2100, 100, 0)
    );
    assert_eq!(dentry.attrs.as_ref().unwrap().reclaim_account, Some(true));
    assert_eq!(state.cache("skbuff_small").unwrap().name, "kmalloc-512");
    assert_eq!(state.dump.meminfo["SUnreclaim"], 80);
    assert_eq!(state.dump.cpus_online, [0, 1, 2, 5]);
    assert_eq!(state.dump.cmdline.as_deref(), Some("quiet nokaslr"));
    assert_eq!(state.page_size, 4096);
}
