//! What is behind a cache: the lines of code that the kernel counts (/proc/allocinfo), and the module that
//! made it. The files are made here: no machine of the recorded ones has the first of them.

use super::{read, report};
use slablab_doctor::measure::made::{By, Made};
use slablab_doctor::state::State;
use slablab_doctor::{Options, examine};
use std::path::{Path, PathBuf};

/// A dump as a folder with these files.
fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("behind").join(name);
    let _ = std::fs::remove_dir_all(&root);
    for (path, text) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }
    root
}

fn slabinfo(rows: &[(&str, u64, u64, u64, u64)]) -> String {
    let mut text = "slabinfo - version: 2.1\n# name <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables \
                    <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n"
        .to_string();
    for (name, objects, size, each, pages) in rows {
        let slabs = objects.div_ceil(*each);
        let total = slabs * each;
        text += &format!(
            "{name} {objects} {total} {size} {each} {pages} : tunables 0 0 0 : slabdata {slabs} {slabs} 0\n"
        );
    }
    text
}

const MEMINFO: &str = "MemTotal: 16000000 kB\nMemFree: 8000000 kB\nSlab: 300000 kB\nSReclaimable: 100000 kB\nSUnreclaim: 200000 kB\n";
const VERSION: &str = "Linux version 6.12.12-amd64 (x) (gcc) #1 SMP\n";

/// A machine with so many epoll instances, by the files of the kernel. `extra` are further lines of
/// allocinfo.
fn machine(name: &str, epolls: u64, extra: &str) -> State {
    let slabinfo = slabinfo(&[
        ("kmalloc-256", 5_000 + epolls, 256, 16, 1),
        ("filp", 9_000 + epolls, 192, 21, 1),
        ("dentry", 90_000, 192, 21, 1),
    ]);
    let allocinfo = format!(
        "allocinfo - version: 2.0\n#     <size>  <calls> <tag info>\n{} {} fs/eventpoll.c:2110 func:do_epoll_create\n{} {} \
         fs/file_table.c:221 func:alloc_empty_file\n{} 5000 net/core/x.c:7 func:x\n17280000 90000 fs/dcache.c:1 \
         func:__d_alloc accurate:no\n9999 3 mm/slub.c:1 func:alloc_slab_page\n{extra}",
        epolls * 256,
        epolls,
        (9_000 + epolls) * 192,
        9_000 + epolls,
        5_000 * 256,
    );
    let files = [
        ("proc/slabinfo", slabinfo.as_str()),
        ("proc/allocinfo", &allocinfo),
        ("proc/meminfo", MEMINFO),
        ("proc/version", VERSION),
    ];
    read(folder(name, &files))
}

/// The first finding of the growth, and all words of findings.
fn found(now: &State, before: State) -> String {
    let before = [before];
    let report =
        examine(now, &Options { since: &before, hours: Some(1.0), ..Options::default() }).expect("examined");
    report.found.findings.iter().map(|finding| finding.text.as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn growth_has_the_code_whose_calls_grew_by_as_many() {
    let said = found(&machine("now", 40_000, ""), machine("then", 100, ""));
    let code = "Code: kmalloc-256 by do_epoll_create (fs/eventpoll.c:2110), 39,900; filp by alloc_empty_file \
                (fs/file_table.c:221), 39,900";
    assert!(said.contains(code), "{said}");
    // Calls of other sizes, fewer than half, more than the cache's objects, and pages: none of them is its
    // code.
    let others = [
        "10000000 39900 a/b.c:1 func:other_size\n",
        "99990000 390000 a/b.c:2 func:too_many\n",
        "2560000 10000 mm/slub.c:9 func:alloc_slab_page\n",
    ];
    let said = found(&machine("now-others", 40_000, &others.concat()), machine("then-others", 100, ""));
    assert!(said.contains(code) && !said.contains("other_size") && !said.contains("too_many"), "{said}");
}

#[test]
fn without_the_file_of_before_nothing_is_said() {
    let mut then = machine("then-without", 100, "");
    then.dump.alloc_sites.clear();
    let said = found(&machine("now-without", 40_000, ""), then);
    assert!(!said.contains("Code: "), "{said}");
}

#[test]
fn one_snapshot_names_the_code_of_a_large_cache() {
    let state = machine("one", 40_000, "");
    let report = report(&state);
    let said: Vec<&str> = report.found.findings.iter().map(|finding| finding.text.as_str()).collect();
    let said = said.join("\n");
    assert!(
        said.contains("kmalloc-256 are objects of do_epoll_create (fs/eventpoll.c:2110), 40,000"),
        "{said}"
    );
    // filp and dentry have objects of one size: which line is of which cache the sizes do not tell.
    assert!(!said.contains("dentry are objects of alloc_empty_file"), "{said}");
}

#[test]
fn the_module_of_a_cache() {
    let rows = [
        ("foo_conn", 9_000, 256, 16, 1),
        ("nf_conntrack_frob", 900, 208, 19, 1),
        ("nf_conntrack_expect", 900, 208, 19, 1),
        ("dentry", 9_000, 192, 21, 1),
        ("xfs_inode", 900, 1024, 16, 4),
        ("barrel", 900, 64, 64, 1),
        ("dccp_ack_vector", 900, 64, 64, 1),
    ];
    let modules = "foo 12288 0 - Live 0x0 (OE)\nnf_conntrack 188416 4 nf_nat, Live 0x0\nnf 1 0 - Live 0x0\nbar 1 0 - Live 0x0\n";
    let files = [
        ("proc/slabinfo", slabinfo(&rows)),
        ("proc/modules", modules.into()),
        ("proc/version", VERSION.into()),
        ("proc/meminfo", MEMINFO.into()),
        ("sys/kernel/slab/xfs_inode/ctor", "xfs_fs_inode_init_once+0x0/0x80 [xfs]\n".into()),
        ("sys/kernel/slab/dentry/ctor", "init_once+0x0/0x80\n".into()),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let state = read(folder("modules", &files));
    let report = report(&state);
    let expected = [
        ("foo_conn", Some(Made { module: "foo", by: By::Name, out_of_tree: true })),
        // The longest name, and only up to a mark.
        ("nf_conntrack_frob", Some(Made { module: "nf_conntrack", by: By::Name, out_of_tree: false })),
        ("nf_conntrack_expect", Some(Made { module: "nf_conntrack", by: By::Data, out_of_tree: false })),
        ("barrel", None),
        ("xfs_inode", Some(Made { module: "xfs", by: By::Constructor, out_of_tree: false })),
        ("dentry", None),
        ("dccp_ack_vector", None),
    ];
    for (name, made) in expected {
        let line = report.measured.lines.iter().find(|line| line.cache.name == name).expect(name);
        assert_eq!(report.measured.made(line), made, "{name}");
    }
}
