//! Rows of slabinfo are joined with directories of sysfs: none is lost, and none is counted twice.

use super::tars::{Members, folder, read, real};
use slablab_doctor::state::State;
use std::path::{Path, PathBuf};

/// Everything a dump must keep: slabinfo's rows and bytes, every directory, every alias. Gives caches,
/// aliases, KiB.
#[track_caller]
fn check_whole(path: &Path) -> (usize, usize, u64) {
    let (state, shown) = (read(path), path.display());
    let rows = &state.dump.slabinfo.as_ref().unwrap().rows;
    let bytes: u64 = rows.iter().map(|row| row.num_slabs * row.pagesperslab * state.page_size).sum();
    assert_eq!(state.caches.len(), rows.len(), "{shown}: a cache of each row, and no other");
    assert_eq!(state.bytes(), bytes, "{shown}: bytes of slabinfo");
    assert_eq!(directories(&state), expected_directories(&state), "{shown}: each directory once");
    for cache in &state.dump.caches {
        for alias in &cache.aliases {
            let found = state.cache(alias).unwrap_or_else(|| panic!("{shown}: alias {alias} is lost"));
            let mut names = std::iter::once(&found.name).chain(&found.aliases);
            assert!(names.any(|name| name == alias), "{shown}: {alias} is no name of {}", found.name);
        }
    }
    for cache in state.caches.iter().filter(|cache| cache.attrs.is_some()) {
        let attrs = cache.attrs.as_ref().unwrap();
        assert!(attrs.slab_size.is_none_or(|size| size == cache.size), "{shown}: {}", cache.name);
    }
    let aliases = state.dump.caches.iter().map(|cache| cache.aliases.len()).sum();
    (state.caches.len(), aliases, bytes >> 10)
}

fn directories(state: &State) -> Vec<&str> {
    let attrs = state.caches.iter().filter_map(|cache| cache.attrs.as_ref());
    let mut names: Vec<&str> = attrs.map(|attrs| attrs.name.as_str()).collect();
    names.sort();
    names
}

fn expected_directories(state: &State) -> Vec<&str> {
    let mut names: Vec<&str> = state.dump.caches.iter().map(|cache| cache.name.as_str()).collect();
    names.sort();
    names
}

#[test]
fn dumps_are_joined_without_loss() {
    #[track_caller]
    fn check(run: &str, expected: (usize, usize, u64)) {
        assert_eq!(check_whole(&real(run)), expected);
    }
    check("amd64_smp8_numa4_memless", (145, 110, 19440));
    check("ppc64_smp16_memless", (143, 100, 73472));
    check("host_618", (235, 194, 458444));
}

#[test]
fn directories_are_found_without_their_links() {
    /// Expects three counts: merged caches found by their numbers, those among them that share their numbers
    /// with others, and caches that have the directory that they have with links.
    #[track_caller]
    fn check(run: &str, expected: (usize, usize, usize)) {
        let with_links = read(real(run));
        let tar = folder("lost_links").join(format!("{run}.tar"));
        std::fs::write(&tar, Members { links: Vec::new(), ..Members::of(&real(run)) }.tar("")).unwrap();
        let state = read(&tar);
        assert_eq!(check_whole(&tar).2, with_links.bytes() >> 10);
        let (found, shared, right) = expected;
        let said = format!("{found} merged caches were found by their numbers, {shared} of them");
        assert!(state.assumed.iter().any(|line| line.contains(&said)), "{said}: {:?}", state.assumed);
        let name = |state: &State, at: usize| state.caches[at].attrs.as_ref().map(|attrs| attrs.name.clone());
        let same = (0..state.caches.len()).filter(|&at| name(&state, at) == name(&with_links, at)).count();
        assert_eq!(same, right, "of {} caches", state.caches.len());
    }
    check("amd64_smp8_numa4_memless", (56, 0, 145));
    check("ppc64_smp16_memless", (51, 4, 139));
    check("host_618", (96, 18, 224));
}

/// A slabinfo with one row for each name, of objects of 64 bytes in two slabs.
fn slabinfo(names: &[&str]) -> String {
    let row = |name: &&str| format!("{name} 100 128 64 64 1 : tunables 0 0 0 : slabdata 2 2 0\n");
    format!("slabinfo - version: 2.1\n{}", names.iter().map(row).collect::<String>())
}

/// A directory of such a cache.
fn directory(members: Members, path: &str, size: u64) -> Members {
    let attributes = [
        ("slab_size", size.to_string()),
        ("object_size", (size - 4).to_string()),
        ("objs_per_slab", (4096 / size).to_string()),
        ("order", "0".into()),
        ("slabs", "2 N0=2".into()),
        ("total_objects", (8192 / size).to_string()),
        ("objects", "100 N0=100".into()),
    ];
    let add = |members: Members, (name, value): &(&str, String)| {
        members.file(&format!("{path}/{name}"), &format!("{value}\n"))
    };
    attributes.iter().fold(members, add)
}

/// Names of caches with the directory each has, if any.
#[track_caller]
fn check_joined(name: &str, members: Members, expected: &[(&str, Option<&str>)], assumed: &[&str]) {
    let tar = folder(name).join("dump.tar");
    std::fs::write(&tar, members.tar("")).unwrap();
    let state = read(&tar);
    let of = |cache: &slablab_doctor::state::Cache| cache.attrs.as_ref().map(|attrs| attrs.name.clone());
    let found: Vec<(String, Option<String>)> =
        state.caches.iter().map(|cache| (cache.name.clone(), of(cache))).collect();
    let expected: Vec<(String, Option<String>)> =
        expected.iter().map(|(name, at)| (name.to_string(), at.map(str::to_string))).collect();
    assert_eq!(found, expected);
    for words in assumed {
        assert!(state.assumed.iter().any(|line| line.contains(words)), "{words}: {:?}", state.assumed);
    }
}

#[test]
fn equal_names_do_not_mix() {
    // The second of the two has the size of the directory.
    let other = "kcopyd_job 1 32 128 32 1 : tunables 0 0 0 : slabdata 1 1 0\n";
    let text = format!("{}{other}", slabinfo(&["kcopyd_job"]));
    let members = Members::default().file("proc/slabinfo", &text);
    let members = directory(members, "sys/kernel/slab/kcopyd_job", 128);
    check_joined("equal", members, &[("kcopyd_job", None), ("kcopyd_job", Some("kcopyd_job"))], &[]);
}

#[test]
fn names_may_have_spaces_and_colons() {
    let names = ["UDP Lite", "xfs:log ticket"];
    let members = Members::default().file("proc/slabinfo", &slabinfo(&names));
    let add = |members, name: &&str| directory(members, &format!("sys/kernel/slab/{name}"), 64);
    let members = names.iter().fold(members, add);
    let expected = [("UDP Lite", Some("UDP Lite")), ("xfs:log ticket", Some("xfs:log ticket"))];
    check_joined("spaces", members.clone(), &expected, &[]);
    let text = folder("spaces_text").join("dump.txt");
    std::fs::write(&text, members.text()).unwrap();
    assert_eq!(directories(&read(&text)), names);
}

#[test]
fn caches_of_cgroups_are_not_counted_twice() {
    let said = "Caches of cgroups are counted with the cache they belong to";
    let members = Members::default().file("proc/slabinfo", &slabinfo(&["dentry", "(odd)"]));
    let members = directory(members, "sys/kernel/slab/dentry", 64);
    // In 3.8 to 3.14 they are in the folder of their parent, in later kernels they are below the parent.
    let beside = directory(members.clone(), "sys/kernel/slab/dentry(12:user.slice)", 64);
    let expected = [("dentry", Some("dentry")), ("(odd)", None)];
    check_joined("cgroups_beside", beside.clone(), &expected, &[said]);
    let below = directory(members, "sys/kernel/slab/dentry/cgroup/dentry(12:user.slice)", 64);
    check_joined("cgroups_below", below.clone(), &expected, &[said]);
    let unpacked = folder("cgroups_unpacked");
    below.unpack(&unpacked);
    assert!(read(&unpacked).assumed.iter().any(|line| line.contains(said)));
    // Without slabinfo the caches are not counted yet.
    let alone = beside.without("proc");
    let expected = [("dentry", Some("dentry")), ("dentry(12:user.slice)", Some("dentry(12:user.slice)"))];
    check_joined("cgroups_alone", alone, &expected, &["whose reading adds slabs"]);
}

#[test]
fn directories_of_2_6_23_are_found() {
    let mut members = directory(Members::default(), "sys/slab/:0000064", 64);
    members.links =
        ["pid_1", "anon_vma", "cfq"].map(|name| (format!("sys/slab/{name}"), ":0000064".into())).into();
    // The kernel's own tool calls a merged cache by its shortest name.
    check_joined("old", members, &[("cfq", Some(":0000064"))], &[]);
}

#[test]
fn a_merged_directory_that_fits_no_row_is_said_and_not_counted() {
    let members = Members::default().file("proc/slabinfo", &slabinfo(&["dentry"]));
    let members = directory(members, "sys/kernel/slab/:0000128", 128);
    check_joined(
        "left_out",
        members,
        &[("dentry", None)],
        &["1 merged directories of /sys/kernel/slab belong"],
    );
}

#[test]
#[ignore = "reads the folder of recorded machines that SLABLAB_TRUTH names"]
fn every_recorded_machine_is_joined_without_loss() {
    let Ok(truth) = std::env::var("SLABLAB_TRUTH") else {
        return eprintln!("SLABLAB_TRUTH is not set: left out");
    };
    let mut folders = vec![PathBuf::from(truth)];
    let mut dumps = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(".tar.xz") {
                let (caches, aliases, kib) = check_whole(&path);
                println!("{}: {caches} caches, {aliases} aliases, {kib} KiB", path.display());
                dumps += 1;
            }
        }
    }
    assert!(dumps > 0);
}
