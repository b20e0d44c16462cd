//! One machine in every form an input can have, and what is no input.

use super::tars::{Members, folder, gz, read, real, try_read, xz};
use slablab_doctor::state::{self, Input, State};
use slablab_readers::bundle::Dump;
use slablab_slabs::Release;
use std::path::Path;

/// What does not depend on the form: dates of files are those of the form.
fn essence(state: &State) -> (Vec<state::Cache>, u64, Option<Release>, Dump) {
    let dump = Dump { changed_s: None, date_s: None, ..state.dump.clone() };
    (state.caches.clone(), state.page_size, state.release, dump)
}

#[test]
fn every_form_says_the_same() {
    #[track_caller]
    fn check(run: &str) {
        let expected = read(real(run));
        let members = Members::of(&real(run));
        let folder = folder("forms").join(run);
        std::fs::create_dir_all(&folder).unwrap();
        let tar = members.tar("sosreport-host-2026-11-20-abcdefg/");
        let forms = [
            ("plain.tar", tar.clone()),
            ("dump.tar.gz", gz(&tar)),
            ("dump.tar.xz", xz(&tar)),
            ("dump.tar.zst", zstd::encode_all(&tar[..], 1).unwrap()),
            ("dump.txt", members.text()),
            ("dump.txt.gz", gz(&members.text())),
        ];
        for (name, bytes) in forms {
            let path = folder.join(name);
            std::fs::write(&path, bytes).unwrap();
            let state = read(&path);
            assert!(essence(&state) == essence(&expected), "{run}: {name} differs");
            // The twentieth of November, ten o'clock.
            assert_eq!(state.taken_s, Some(1_795_168_800), "{run}: {name}");
            std::fs::remove_file(path).unwrap();
        }
        members.unpack(&folder.join("unpacked/sosreport"));
        assert!(essence(&read(folder.join("unpacked"))) == essence(&expected), "{run}: directory differs");
    }
    check("amd64_smp8_numa4_memless");
    check("ppc64_smp16_memless");
    check("host_618");
}

/// A state of one file, with what the user says about it.
fn bare(path: &Path, page_size: Option<u64>, cpus: Option<u32>) -> Result<State, String> {
    let input = Input { path: Some(path.to_path_buf()), page_size, cpus };
    state::read(&input).map_err(|error| error.to_string())
}

#[test]
fn a_slabinfo_alone_is_enough() {
    let members = Members::of(&real("ppc64_smp16_memless"));
    let (_, text) = members.files.iter().find(|(name, _)| name == "proc/slabinfo").unwrap();
    let folder = folder("slabinfo");
    let csv = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../readers/testdata/ppc64_smp16_memless/slabinfo_before.csv.xz");
    let expected = read(real("ppc64_smp16_memless"));
    for (name, bytes) in
        [("plain", text.clone()), ("packed", xz(text)), ("tidy", std::fs::read(csv).unwrap())]
    {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        let state = bare(&path, None, None).unwrap();
        assert_eq!((state.page_size, state.cpus, state.bytes()), (65536, None, expected.bytes()), "{name}");
        let said = |words: &str| state.assumed.iter().any(|line| line.contains(words));
        assert!(said("A page has 65536 bytes: what most slabs fit."), "{name}: {:?}", state.assumed);
        assert!(said("how many CPUs there are; --cpus says it"), "{name}: {:?}", state.assumed);
        let state = bare(&path, Some(65536), Some(16)).unwrap();
        assert_eq!(state.cpus.map(|cpus| (cpus.possible, cpus.present, cpus.online)), Some((16, 16, 16)));
        assert!(state.assumed.is_empty(), "{name}: {:?}", state.assumed);
        // What is said counts, and that it does not fit is said.
        let state = bare(&path, Some(4096), None).unwrap();
        assert_eq!(state.bytes(), expected.bytes() / 16);
        assert!(state.assumed[0].contains("4096 bytes, as said; the input looks like 65536"), "{name}");
    }
}

#[test]
fn slabinfos_of_2_4_are_states_too() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../readers/corpus/slabinfo/1.1");
    assert!(bare(&path, None, None).unwrap_err().contains("does not tell the page size"));
    let state = bare(&path, Some(4096), Some(2)).unwrap();
    let cache = state.cache("UDP Lite").unwrap();
    assert_eq!((cache.objects_per_slab, cache.slabs), (0, 0));
    // A slabinfo alone lacks nearly everything: that takes three lines.
    assert_eq!(state.missing.len(), 3, "{:?}", state.missing);
}

#[test]
fn what_is_no_input_is_said() {
    #[track_caller]
    fn check(name: &str, bytes: &[u8], page_size: Option<u64>, cpus: Option<u32>, expected: &str) {
        let path = folder("no_input").join(name);
        std::fs::write(&path, bytes).unwrap();
        let error = bare(&path, page_size, cpus).map(|state| state.caches.len()).unwrap_err();
        assert_eq!(error, format!("{}: {expected}", path.display()));
    }
    let unknown = "expected a tar of the kernel's files or a support bundle, the output of `grep -r . /proc/slabinfo \
                   /sys/kernel/slab`, or a text with /proc/slabinfo, slabtop's list, `vmstat -m`, /proc/meminfo or a \
                   message of the kernel about slabs: begins like none of them";
    let empty = "the file is empty: expected the files of a kernel (a tar, a support bundle, the output of `grep -r .`) \
                 or a text with /proc/slabinfo or messages about slabs";
    check("empty", b"", None, None, empty);
    check("blank", b"\n \n", None, None, empty);
    check("binary", b"\x7fELF\0\0\0", None, None, unknown);
    check(
        "shell",
        b"#!/bin/sh\n",
        None,
        None,
        "none of the 1 lines is of slabtop, vmstat -m, /proc/slabinfo, /proc/meminfo or a message of the kernel \
         about slabs; the first is line 1: `#!/bin/sh`",
    );
    let header = b"slabinfo - version: 2.1\n";
    check(
        "no_page_size",
        header,
        None,
        None,
        "does not tell the page size; say it with --page-size, as 4K or 64K",
    );
    check("page_size", header, Some(3), None, "page size 3: expected a power of two from 4096 to 262144");
    check("cpus", header, Some(4096), Some(0), "0 CPUs: expected a number from 1 to 65535");
    check(
        "slabinfo",
        b"slabinfo - version: 2.1\ndentry 1 2 3\n",
        None,
        None,
        "line 2: expected a cache name and five numbers before ` : `, found `dentry 1 2 3`",
    );
    let tar = Members::default().file("etc/motd", "hello").tar("");
    check(
        "other.tar",
        &tar,
        None,
        None,
        "expected proc/slabinfo or sys/kernel/slab among 1 files, found neither: not a dump, or read \
         without the \
         permission to see them",
    );
    let cut = [&gz(&tar)[..20]].concat();
    let path = folder("no_input").join("cut.tar.gz");
    std::fs::write(&path, cut).unwrap();
    assert!(
        try_read(&path).unwrap_err().contains("the compressed data ends early at byte 20"),
        "{:?}",
        try_read(&path).err()
    );
    let nothing = folder("nothing");
    assert!(
        try_read(&nothing).unwrap_err().contains("expected proc/slabinfo or sys/kernel/slab among 0 files")
    );
    assert!(try_read(nothing.join("none")).unwrap_err().contains("No such file"));
}
