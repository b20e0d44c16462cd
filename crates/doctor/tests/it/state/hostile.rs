//! Archives made to do harm: nothing outside of memory changes, and each ends in a state or in one clear
//! error.

use super::tars::{Members, append, folder, gz, header, real, try_read, xz};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tar::{Builder, EntryType};

const SLABINFO: &str = "slabinfo - version: 2.1\ndentry 100 128 64 64 1 : tunables 0 0 0 : slabdata 2 2 0\n";

/// Everything below a folder, with sizes.
fn listing(folder: &Path) -> Vec<(PathBuf, u64)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<(PathBuf, u64)> =
        entries.map(|path| (path.clone(), path.symlink_metadata().unwrap().len())).collect();
    found.sort();
    found
}

/// Reads an archive. The result must be this number of caches or an error with these words. It must come
/// soon, and no folder may have changed.
#[track_caller]
fn check(name: &str, archive: &[u8], expected: Result<usize, &str>) {
    let inside = folder(&format!("hostile/{name}")).join("inside");
    std::fs::create_dir_all(&inside).unwrap();
    let path = inside.join("dump.tar");
    std::fs::write(&path, archive).unwrap();
    let around = [inside.clone(), inside.join(".."), PathBuf::from(".")];
    let before: Vec<_> = around.iter().map(|folder| listing(folder)).collect();
    let started = Instant::now();
    let found = try_read(&path);
    assert!(started.elapsed() < Duration::from_secs(60), "{name}: took {:?}", started.elapsed());
    let after: Vec<_> = around.iter().map(|folder| listing(folder)).collect();
    assert_eq!(after, before, "{name}: files changed");
    match (found, expected) {
        (Ok(state), Ok(caches)) => assert_eq!(state.caches.len(), caches, "{name}"),
        (Err(error), Err(words)) => assert!(error.contains(words), "{name}: {error}"),
        (Ok(state), Err(words)) => panic!("{name}: {} caches, expected `{words}`", state.caches.len()),
        (Err(error), Ok(_)) => panic!("{name}: {error}"),
    }
    std::fs::remove_file(&path).unwrap();
    assert!(peak_memory() < 512 << 20, "{name}: {} MiB", peak_memory() >> 20);
}

/// The most memory this process has used, in bytes; 0 where the system does not say.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse::<u64>().ok()).map_or(0, |kb| kb << 10)
}

fn with(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    members.iter().for_each(|(name, content)| append(&mut builder, name, content));
    builder.into_inner().unwrap()
}

/// The blocks of one header with nothing behind them.
fn bare(name: &str, kind: EntryType, size: u64) -> Vec<u8> {
    let mut header = header(kind, size);
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.set_cksum();
    header.as_bytes().to_vec()
}

/// `times` copies of `bytes` as zstd frames one behind the other: a large archive in a small file.
fn repeated(bytes: &[u8], times: usize) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap().repeat(times)
}

fn slabinfo_tar() -> Vec<u8> {
    with(&[("proc/slabinfo", SLABINFO.as_bytes())])
}

/// Archives end with two blocks of zeros: this is one without them.
fn open_end(mut tar: Vec<u8>) -> Vec<u8> {
    tar.truncate(tar.len() - 1024);
    tar
}

#[test]
fn paths_out_of_the_archive_are_only_names() {
    let evil: [(&str, &[u8]); 5] = [
        ("../../escaped", b"x"),
        ("/tmp/../escaped", b"x"),
        ("proc/../../escaped", b"x"),
        ("sys/kernel/slab/../order", b"1"),
        ("proc/slabinfo", SLABINFO.as_bytes()),
    ];
    check("traversal", &with(&evil), Ok(1));
}

#[test]
fn links_are_not_followed() {
    let mut builder = Builder::new(Vec::new());
    for (kind, name, target) in [
        (EntryType::Symlink, "proc/slabinfo", "/etc/passwd"),
        (EntryType::Link, "proc/meminfo", "/etc/passwd"),
        (EntryType::Symlink, "sys/kernel/slab", "/etc"),
        // In a circle, and to themselves.
        (EntryType::Symlink, "sys/kernel/slab/a", "b"),
        (EntryType::Symlink, "sys/kernel/slab/b", "a"),
        (EntryType::Symlink, "sys/kernel/slab/c", "c"),
        (EntryType::Symlink, "sys/kernel/slab/d", ".."),
    ] {
        builder.append_link(&mut header(kind, 0), name, target).unwrap();
    }
    let links = builder.into_inner().unwrap();
    check("links", &links, Err("does not tell the page size"));
    let both = [open_end(links), slabinfo_tar()].concat();
    check("links_and_slabs", &both, Ok(1));
}

#[test]
fn bombs_are_passed_over_or_refused() {
    // Ten gibibytes in a file that the reader does not need, after and before the files that it needs.
    let zeros = repeated(&vec![0; 64 << 20], 160);
    let bomb = bare("var/log/zeros", EntryType::Regular, 10 << 30);
    let mut archive = zstd::encode_all(&bomb[..], 1).unwrap();
    archive.extend(&zeros);
    archive.extend(zstd::encode_all(&slabinfo_tar()[..], 1).unwrap());
    check("unwanted", &archive, Ok(1));
    // And as a file that is wanted.
    let mut archive = zstd::encode_all(&bare("proc/zoneinfo", EntryType::Regular, 10 << 30)[..], 1).unwrap();
    archive.extend(&zeros);
    check("wanted", &archive, Err("proc/zoneinfo: expected at most 67108864 bytes, found 10737418240"));
    // Not even its own size is true.
    let liar = [open_end(slabinfo_tar()), bare("var/log/zeros", EntryType::Regular, u64::MAX >> 1)].concat();
    check("liar", &liar, Ok(1));
    // Zeros before the first header are no archive.
    check("nothing_but_zeros", &zeros, Err("begins like none of them"));
    check("twice", &gz(&gz(&slabinfo_tar())), Err("begins like none of them"));
}

#[test]
fn a_million_members_end() {
    let chunk = |name: fn(usize) -> String, content: &[u8], count: usize| {
        let mut builder = Builder::new(Vec::new());
        (0..count).for_each(|number| append(&mut builder, &name(number), content));
        open_end(builder.into_inner().unwrap())
    };
    let end = zstd::encode_all(&slabinfo_tar()[..], 1).unwrap();
    let unwanted = repeated(&chunk(|number| format!("var/log/{number}"), b"", 1000), 1000);
    check("unwanted_members", &[&unwanted[..], &end].concat(), Ok(1));
    // The same thousand attributes over and over: the last one counts.
    let wanted = repeated(&chunk(|number| format!("sys/kernel/slab/{number}/order"), b"1", 1000), 1000);
    check("wanted_members", &[&wanted[..], &end].concat(), Ok(1));
    let caches = chunk(|number| format!("sys/kernel/slab/{number}/order"), b"1", 70_000);
    check("caches", &repeated(&caches, 1), Err("expected at most 65536 caches"));
    let nodes = chunk(|number| format!("sys/devices/system/node/node{number}/cpulist"), b"1", 5000);
    check("nodes", &repeated(&nodes, 1), Err("expected at most 4096 nodes"));
    // Many files that may be large each.
    let large = vec![b'\n'; 4 << 20];
    let many = chunk(|_| "proc/cmdline".into(), &large, 1);
    check(
        "large_files",
        &repeated(&many, 60),
        Err("proc/cmdline: expected at most 201326592 bytes in all files"),
    );
}

#[test]
fn the_last_of_several_members_counts() {
    let first = SLABINFO.replace("dentry", "first");
    let both = [("proc/slabinfo", first.as_bytes()), ("./proc/slabinfo", SLABINFO.as_bytes())];
    let path = folder("duplicates").join("dump.tar");
    std::fs::write(&path, with(&both)).unwrap();
    let state = try_read(&path).unwrap();
    let names: Vec<_> = state.caches.iter().map(|cache| &*cache.name).collect();
    assert_eq!(names, ["dentry"]);
}

#[test]
fn names_of_a_gibibyte_are_refused() {
    for kind in [EntryType::GNULongName, EntryType::GNULongLink, EntryType::XHeader] {
        let long = bare("long", kind, 1 << 30);
        let archive = [zstd::encode_all(&long[..], 1).unwrap(), repeated(&[b'a'; 1 << 20], 1024)].concat();
        check("long_name", &archive, Err("expected a name shorter than 64 KiB"));
    }
    // The map of a sparse file, continued without end.
    let mut sparse = header(EntryType::GNUSparse, 0);
    sparse.as_mut_bytes()[482] = 1;
    sparse.set_cksum();
    let mut more = [0u8; 512];
    more[504] = 1;
    let archive = [&open_end(slabinfo_tar())[..], sparse.as_bytes(), &more.repeat(100_000)].concat();
    check("sparse", &archive, Ok(1));
}

#[test]
fn what_is_cut_off_gives_what_it_has() {
    let whole = Members::of(&real("amd64_smp8_numa4_memless")).tar("sos/");
    let caches = try_read(real("amd64_smp8_numa4_memless")).unwrap().caches.len();
    type Pack = fn(&[u8]) -> Vec<u8>;
    let packs: [(&str, Pack); 4] = [
        ("tar", <[u8]>::to_vec),
        ("gz", gz),
        ("xz", xz),
        ("zst", |bytes| zstd::encode_all(bytes, 1).unwrap()),
    ];
    for (name, pack) in packs {
        let packed = pack(&whole);
        let path = folder("cut_off").join(format!("dump.{name}"));
        let mut with_slabs = 0;
        for part in 0..16 {
            std::fs::write(&path, &packed[..packed.len() * part / 16]).unwrap();
            let Ok(state) = try_read(&path) else { continue };
            with_slabs += 1;
            assert_eq!(state.caches.len(), caches, "{name} {part}");
            let first = &state.missing[0];
            assert_eq!(first.file, "the rest of the input", "{name} {part}: {first:?}");
        }
        assert!(with_slabs > 8, "{name}: slabinfo is the first file, and read {with_slabs} times of 16");
    }
}

#[test]
fn numbers_that_no_machine_has_are_refused() {
    let row = |numbers: &str| {
        let text = format!("slabinfo - version: 2.1\ndentry {numbers}\n");
        with(&[("proc/slabinfo", text.as_bytes()), ("boot/config-1", b"CONFIG_PAGE_SHIFT=12\n")])
    };
    let expected = "cache dentry: expected caches of less than 64 PiB together";
    let huge = u64::MAX;
    check("slabs", &row(&format!("1 1 64 64 1 : tunables 0 0 0 : slabdata 1 {huge} 0")), Err(expected));
    check("objects", &row(&format!("1 {huge} 64 64 1 : tunables 0 0 0 : slabdata 1 1 0")), Err(expected));
    check("active", &row(&format!("{huge} 1 64 64 1 : tunables 0 0 0 : slabdata 1 1 0")), Err(expected));
    check("size", &row(&format!("1 1 {huge} 64 1 : tunables 0 0 0 : slabdata 1 1 0")), Err(expected));
    check(
        "objects_of_slab",
        &row(&format!("1 1 64 {huge} 1 : tunables 0 0 0 : slabdata 1 1 0")),
        Err(expected),
    );
    check("pages", &row(&format!("1 1 64 64 {huge} : tunables 0 0 0 : slabdata 1 1 0")), Err(expected));
    let counts = with(&[
        ("proc/slabinfo", SLABINFO.as_bytes()),
        ("sys/kernel/slab/dentry/cpu_slabs", b"18446744073709551615 N0=18446744073709551615"),
    ]);
    check("counts", &counts, Err("cache dentry: expected counts below 281474976710656 in dentry"));
}

/// SplitMix64 (Steele, Lea, Flood 2014).
fn random(state: &mut u64) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ z >> 31) as usize
}

#[test]
fn mutated_dumps_give_sums_or_errors() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../readers/corpus/input/dump.txt");
    let whole = std::fs::read(corpus).unwrap();
    let path = folder("mutated").join("dump.txt");
    let (mut seed, mut states) = (1, 0);
    for _ in 0..500 {
        let mut text = whole.clone();
        for _ in 0..=random(&mut seed) % 3 {
            let digits: Vec<usize> = (0..text.len()).filter(|&at| text[at].is_ascii_digit()).collect();
            let at = digits[random(&mut seed) % digits.len()];
            let new: &[u8] = [&b"18446744073709551615"[..], b"0", b"", b"7", b":"][random(&mut seed) % 5];
            text.splice(at..=at, new.iter().copied());
        }
        std::fs::write(&path, text).unwrap();
        let Ok(state) = try_read(&path) else { continue };
        states += 1;
        let sum =
            state.caches.iter().try_fold(0u64, |sum, cache| sum.checked_add(cache.bytes(state.page_size)));
        assert_eq!(sum, Some(state.bytes()));
    }
    assert!((50..500).contains(&states), "{states} of 500 are states still");
}
