//! The data about caches: comparison with real kernels, the rules of the file, and additional files of users.

use slablab_doctor::output::what_answer;
use slablab_doctor::what::{Entry, Known, Merged};
use slablab_slabs::Release;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(below)
}

/// A row of testdata/what/sizes.csv.gz: what a real kernel said.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
struct Row {
    name: String,
    kernel: String,
    arch: String,
    page: u64,
    kind: String,
    bytes: u64,
    slot: String,
    when: String,
    reclaim_account: u8,
}

fn rows() -> Vec<Row> {
    let packed = std::fs::read(root("testdata/what/sizes.csv.gz")).expect("the table is there");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut text).expect("gzip");
    let rows: Vec<Row> =
        csv::Reader::from_reader(text.as_bytes()).deserialize().collect::<Result<_, _>>().expect("rows");
    assert!(rows.len() > 1000, "{} rows", rows.len());
    rows
}

/// What is said of a cache, in one line of single blanks.
fn said(name: &str) -> String {
    let text = what_answer(Known::builtin(), &[name.into()], &[], &[]).text(false);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The entry that has this very name, not a family's.
fn exact(name: &str) -> &'static Entry {
    let entry = Known::builtin().find(name).unwrap_or_else(|| panic!("no entry for {name}"));
    assert!(!entry.is_pattern(), "{name} is known by {} only", entry.name);
    entry
}

#[test]
fn sizes_are_those_of_real_kernels() {
    let mut real: BTreeMap<&str, Vec<Row>> = BTreeMap::new();
    for row in rows() {
        real.entry(&exact(&row.name).name).or_default().push(row);
    }
    for entry in Known::builtin().entries().iter().filter(|entry| !entry.is_pattern()) {
        let mut expected = real.remove(entry.name.as_str()).unwrap_or_default();
        for row in &mut expected {
            assert_eq!(entry.reclaimable, Some(row.reclaim_account == 1), "{}", row.name);
            // Under which of its names the kernel had it is not in the entry.
            row.name = entry.name.clone();
            row.reclaim_account = 0;
        }
        let said = entry.sizes.iter().map(|size| Row {
            name: entry.name.clone(),
            kernel: size.kernel.clone(),
            arch: size.arch.clone(),
            page: size.page,
            kind: if size.bytes.is_some() { "bytes" } else { "at_most" }.into(),
            bytes: size.bytes.or(size.at_most).unwrap_or(0),
            slot: size.slot.clone().unwrap_or_default(),
            when: size.when.clone().unwrap_or_default(),
            reclaim_account: 0,
        });
        let mut said: Vec<Row> = said.collect();
        expected.sort();
        said.sort();
        assert_eq!(said, expected, "{}", entry.name);
    }
    assert!(real.is_empty());
}

#[test]
fn every_entry_says_what_who_and_how() {
    let entries = Known::builtin().entries();
    assert!(entries.len() > 500, "{} entries", entries.len());
    for entry in entries {
        let texts = [&entry.what, &entry.created_by];
        let ways = entry.shrink.iter().map(|method| &method.how).chain(&entry.cannot_shrink);
        let all: Vec<&String> = texts.into_iter().chain(ways).collect();
        assert!(all.len() >= 3, "{} does not say how it shrinks or why not", entry.name);
        for text in all {
            assert!(text.len() > 5 && !text.contains('{'), "{}: {text:?}", entry.name);
        }
        assert!(entry.what.ends_with('.'), "{}: {}", entry.name, entry.what);
        for method in &entry.shrink {
            assert!(method.how.ends_with('.'), "{}: {}", method.id, method.how);
        }
    }
}

/// All commands have right shell syntax. Whether they free objects was tried by hand.
#[test]
fn commands_are_shell() {
    let ways = Known::builtin().entries().iter().flat_map(|entry| &entry.shrink);
    let runs: BTreeSet<&str> = ways.filter_map(|method| method.run.as_deref()).collect();
    assert!(runs.len() > 50, "{} commands", runs.len());
    for run in runs {
        let checked = Command::new("sh").args(["-n", "-c", run]).output().expect("there is a shell");
        assert!(checked.status.success(), "{run}: {}", String::from_utf8_lossy(&checked.stderr));
    }
}

#[test]
fn the_common_caches_have_an_entry_of_their_own() {
    let text = std::fs::read_to_string(root("testdata/what/common.txt")).expect("the list is there");
    assert_eq!(text.lines().count(), 120);
    for name in text.lines() {
        assert!(exact(name).names().any(|other| other == name), "{name}");
    }
}

#[test]
fn names_are_found_by_the_closest_entry() {
    for (name, expected) in [
        ("ext4_inode_cache", Some("ext4_inode_cache")),
        ("ext4_something_new", Some("ext4_*")),
        ("ext4_groupinfo_1k", Some("ext4_groupinfo_*")),
        ("kmalloc-64", Some("kmalloc-64")),
        ("kmalloc-1024", Some("kmalloc-1k")),
        ("kmalloc-cg-3", Some("kmalloc-cg-*")),
        ("kmalloc-3", Some("kmalloc-*")),
        ("kmalloc-", None),
        ("kmalloc-rnd-07-96", Some("kmalloc-rnd-*")),
        ("kmalloc-part-07-96", Some("kmalloc-part-*")),
        ("cred_jar", Some("cred")),
        ("bcachefs_inode_cache", Some("*_inode_cache")),
        ("my_driver", None),
        ("", None),
    ] {
        assert_eq!(Known::builtin().find(name).map(|entry| entry.name.as_str()), expected, "{name}");
    }
}

#[test]
fn mistyped_names_have_a_neighbour() {
    for (name, first) in [
        ("dentri", Some("dentry")),
        ("dentyr", Some("dentry")),
        ("Dentry", Some("dentry")),
        ("task_strcut", Some("task_struct")),
        ("conntrack", Some("nf_conntrack")),
        ("kmalloc64", Some("kmalloc-64")),
        ("zzzzzzzz", None),
        ("", None),
    ] {
        let nearest = Known::builtin().nearest(name, 5);
        assert_eq!(nearest.first().copied(), first, "{name}: {nearest:?}");
        assert!(nearest.len() <= 5);
    }
}

#[test]
fn names_of_merged_caches() {
    for (name, expected) in [
        (":0000192", Some((192, 0))),
        (":a-0000104", Some((104, 1))),
        (":A-0000256", Some((256, 1))),
        (":aA-0000256", Some((256, 2))),
        (":at-0000104", Some((104, 2))),
        (":dDaFAt-0000512", Some((512, 6))),
        (":0001352", Some((1352, 0))),
        (":12345678", Some((12345678, 0))),
        (":-0000192", None),
        (":x-0000192", None),
        (":a0000192", None),
        (":a-", None),
        (":a-+000192", None),
        (":192", None),
        (":", None),
        ("0000192", None),
        ("kmalloc-192", None),
        (":99999999999999999999999", None),
    ] {
        let found = Merged::parse(name).map(|merged| (merged.slab_size, merged.flags.len()));
        assert_eq!(found, expected, "{name}");
    }
    let mut seen = 0;
    for row in rows().iter().filter(|row| !row.slot.is_empty()) {
        let merged = Merged::parse(&row.slot).unwrap_or_else(|| panic!("{row:?}"));
        assert!(merged.slab_size >= row.bytes, "{row:?}");
        assert_eq!(merged.flags.iter().any(|flag| flag.letter == 'a'), row.reclaim_account == 1, "{row:?}");
        seen += 1;
    }
    assert!(seen > 200, "{seen}");
}

#[test]
fn who_shared_slabs_with_whom() {
    let known = Known::builtin();
    let with = known.seen_merged_with(exact("audit_buffer"));
    assert!(with.contains(&"lsm_file_cache"), "{with:?}");
    assert_eq!(known.seen_merged_with(exact("dentry")), Vec::<&str>::new());
    let seen = known.in_slot(":0000024");
    let (_, names) =
        seen.iter().find(|(machine, _)| machine == "6.1 x86_64, 4 K pages").expect("that kernel had it");
    assert_eq!(names, &["audit_buffer", "lsm_file_cache"]);
    for (name, words) in [
        (":0000024", "6.1 x86_64, 4 K pages: audit_buffer, lsm_file_cache"),
        (":dA-0000512", "d: from memory for old DMA devices (ZONE_DMA); A: charged to"),
    ] {
        let text = said(name);
        assert!(text.contains(words), "{text}");
    }
}

/// A file of this test's own.
fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("a file can be written");
    path
}

/// A table that is right, to be broken in one place.
const GOOD: &str =
    "[[cache]]\nname = \"my_cache\"\nsubsystem = \"mine\"\nwhat = \"Things.\"\ncreated_by = \"me\"\n";

/// The error names the file, and has all of `words`.
fn check_error(name: &str, text: &str, words: &[&str]) {
    let path = file(&format!("what-{name}.toml"), text);
    let error = Known::read(&path).expect_err(name).to_string();
    assert!(error.starts_with(&path.display().to_string()), "{name}: {error}");
    for word in words {
        assert!(error.contains(word), "{name}: no {word:?} in {error:?}");
    }
}

#[test]
fn faults_are_named_with_their_line() {
    let with = |more: &str| format!("# mine\n{GOOD}{more}");
    for (name, text, words) in [
        ("no-toml", "a = [".to_string(), &["line 1:"][..]),
        ("key", with("cannot_shrink = \"No.\"\ncolour = 1\n"), &["line 8:", "colour"]),
        ("no-way", with(""), &["line 3:", "my_cache", "shrink", "cannot_shrink"]),
        ("both-ways", with("shrink = [\"sync\"]\ncannot_shrink = \"No.\"\n"), &["line 3:", "either"]),
        ("method", with("shrink = [\n  \"sync\",\n  \"pray\",\n]\n"), &["line 9:", "my_cache", "pray"]),
        ("module", with("shrink = [\"unload\"]\n"), &["line 7:", "unload", "module"]),
        ("twice", with(&format!("cannot_shrink = \"No.\"\n{GOOD}")), &["line 9:", "second", "my_cache"]),
        (
            "also-twice",
            with("also = [\"my_cache\"]\ncannot_shrink = \"No.\"\n"),
            &["line 7:", "second", "my_cache"],
        ),
        (
            "size",
            with(
                "cannot_shrink = \"No.\"\nsizes = [\n  \
                 { kernel = \"6.1\", arch = \"x86_64\", page = 4096 },\n]\n",
            ),
            &["line 9:", "my_cache", "bytes or at_most"],
        ),
        ("empty", with("cannot_shrink = \"No.\"\n").replace("Things.", " "), &["line 3:", "what is empty"]),
        ("stars", with("cannot_shrink = \"No.\"\n").replace("my_cache", "*my*"), &["line 3:", "one *"]),
        (
            "family-with-also",
            with("also = [\"x\"]\ncannot_shrink = \"No.\"\n").replace("my_cache", "my*"),
            &["line 3:", "my*", "pattern"],
        ),
    ] {
        check_error(name, &text, words);
    }
    let nowhere = root("testdata/what/no-such-file.toml");
    let error = Known::read(&nowhere).expect_err("no file").to_string();
    assert!(error.contains("no-such-file.toml"), "{error}");
}

#[test]
fn a_file_of_the_users_own_wins() {
    let text = format!(
        "[method.mine]\nhow = \"Ask {{module}}.\"\n{GOOD}also = [\"cred_jar\"]\nmodule = \"me\"\n\
         shrink = [\"mine\", \"unload\"]\n{}cannot_shrink = \"No.\"\n",
        GOOD.replace("my_cache", "dentry")
    );
    let known = Known::read(&file("what-own.toml", &text)).expect("the file is right");
    let what = |name: &str| known.find(name).map(|entry| (entry.name.as_str(), entry.what.as_str()));
    assert_eq!(what("my_cache"), Some(("my_cache", "Things.")));
    assert_eq!(what("dentry"), Some(("dentry", "Things.")));
    assert_eq!(what("cred_jar"), Some(("my_cache", "Things.")));
    assert_eq!(known.find("cred").map(|entry| entry.also.len()), Some(0));
    assert_eq!(what("inode_cache"), Some(("inode_cache", exact("inode_cache").what.as_str())));
    assert_eq!(known.entries().len(), Known::builtin().entries().len() + 1);
    let ways: Vec<_> = known.find("my_cache").expect("it is there").shrink.iter().collect();
    assert_eq!(ways[0].how, "Ask me.");
    assert_eq!(ways[1].run.as_deref(), Some("modprobe -r me"));
}

#[test]
fn the_example_of_the_documentation_is_right() {
    let text = std::fs::read_to_string(root("../../docs/caches.md")).expect("the page is there");
    let examples: Vec<&str> =
        text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap_or(rest)).collect();
    assert!(!examples.is_empty());
    for example in examples {
        Known::read(&file("what-example.toml", example)).unwrap_or_else(|error| panic!("{error}\n{example}"));
    }
}

/// The words are those of the asker's kernel: its name of the cache, and its files.
#[test]
fn names_of_the_askers_kernel() {
    let entry = Known::builtin().find("kmalloc-1024").unwrap();
    #[track_caller]
    fn check(said: &str, has: &[&str], lacks: &[&str]) {
        has.iter().for_each(|words| assert!(said.contains(words), "no {words:?} in {said}"));
        lacks.iter().for_each(|words| assert!(!said.contains(words), "{words:?} in {said}"));
    }
    let said = |asked: &str, release: Option<Release>| entry.cannot_shrink_in(asked, release).unwrap();
    let (newer, older) =
        ("/sys/kernel/debug/slab/kmalloc-1k/alloc_traces", "/sys/kernel/slab/kmalloc-1024/alloc_calls");
    check(&said("kmalloc-1024", None), &[older, "kmalloc-1024/alloc_traces"], &["kmalloc-1k"]);
    check(
        &said("kmalloc-1024", Some(Release::new(3, 10, 0))),
        &[older, "slub_debug=U,kmalloc-1024 "],
        &["alloc_traces", "slab_debug", "1k"],
    );
    check(
        &said("kmalloc-1k", Some(Release::new(6, 12, 0))),
        &[newer, " slab_debug=U,kmalloc-1k "],
        &["before", "1024"],
    );
    // Where nothing but `cannot_shrink` tells who frees the objects.
    check(&self::said("ebitmap_node"), &["- reclaimable: no: no shrinker frees the objects"], &[]);
}

/// Copies of kmalloc's caches that are chosen by call site or type have a text of their own.
#[test]
fn copies_of_kmalloc_are_known() {
    for (name, words) in [
        ("kmalloc-part-07-96", "One of sixteen copies of the kmalloc caches"),
        ("kmalloc-rnd-07-96", "One of several copies of the kmalloc caches"),
        ("kmalloc-96", "Objects that the kernel asks for by size alone"),
    ] {
        assert!(said(name).contains(words), "{name}: {}", said(name));
    }
}
