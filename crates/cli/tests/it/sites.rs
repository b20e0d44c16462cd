//! `slablab sites` as a program: inputs told apart, names, what leads the answer, exit codes.

use crate::common::{argument, check_error, check_narrow, check_order, folder, slablab, text};

const RECORDING: &str = "crates/readers/testdata/callchain.perf.data.xz";
const LOST: &str = "crates/readers/testdata/lost.perf.data.xz";
const NAMED: &str = "crates/readers/testdata/trace_dat/v6.trace.dat.xz";

/// What `sites` prints, with this exit code.
#[track_caller]
fn sites(args: &[&str], code: i32) -> String {
    let output = slablab(&["sites"], args);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn a_recording_is_ranked() {
    let said = sites(&[&argument(NAMED), "--top", "3"], 0);
    check_order(
        &[NAMED],
        &said,
        &["allocations in the recording", "recorded on 6.18.44", "call sites; of", "live K", "more sites"],
    );
    check_narrow(&said);
    let wide = sites(&[&argument(NAMED), "--top", "3", "--wide"], 0);
    check_order(&[NAMED], &wide, &["site", "waste K", "allocs/s", "median", "90 %", "node", "task"]);
    assert!(said.contains("+0x"), "a trace.dat has names: {said}");
    let json = sites(&[&argument(RECORDING), "--format", "json"], 0);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((json["schema"].as_str(), json["of"].as_str()), (Some("slablab.sites.1"), Some("recording")));
    assert!(json["stacks"].as_array().unwrap().len() > 20);
    let folded = sites(&[&argument(RECORDING), "--format", "folded", "--weight", "allocs"], 0);
    let deep = folded.lines().filter(|line| line.matches(';').count() > 4).count();
    assert!(deep > 20, "{folded}");
    let sum: u64 = folded.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    let allocs: u64 =
        json["sites"].as_array().unwrap().iter().map(|site| site["allocs"].as_u64().unwrap()).sum();
    assert_eq!(sum, allocs, "each allocation is in one path");
}

/// Lost events are said below the sentence of every answer, and first on a page.
#[test]
fn what_is_lost_leads() {
    let page = folder("sites-lost").join("who.html");
    let said = sites(&[&argument(LOST), "--html", page.to_str().unwrap()], 3);
    let led = ["INCOMPLETE: the recording lost 1472 events", "recorded on "];
    check_order(&[LOST], &said, &[&["allocations in the recording"][..], &led].concat());
    let page = std::fs::read_to_string(page).unwrap();
    check_order(
        &[LOST],
        &page,
        &["<h1>", "class=\"warning\"", "INCOMPLETE: the recording lost 1472", "class=\"lede\""],
    );
    let replay = slablab(&["replay", &argument(LOST)], &["--engine", "slub@6.18"]);
    check_order(&[LOST], &text(&replay.stdout), &[&["Under slub@6.18 "][..], &led].concat());
    assert_eq!(replay.status.code(), Some(3));
}

/// A perf.data that was cut off: named, read with the formats of another recording, and told first.
#[test]
fn a_cut_recording_is_read_up_to_there() {
    let folder = folder("sites-cut");
    let packed = std::fs::read(argument("crates/readers/testdata/hackbench_head.perf.data.xz")).unwrap();
    let half = folder.join("half.perf.data.xz");
    std::fs::write(&half, &packed[..packed.len() / 2]).unwrap();
    let (half, out) = (half.to_str().unwrap(), folder.join("half.trace.parquet"));
    check_error(&["sites"], &[half], &["half.perf.data.xz: cut off after ", " MB", "--formats"]);
    let import =
        ["import", half, "--formats", &argument("crates/readers/testdata/hackbench_head.perf.data.xz")];
    let output = slablab(&import, &["-o", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let led = "\nINCOMPLETE: the recording is cut off after ";
    check_order(&import, &text(&output.stderr), &["The trace has ", led]);
    for verb in ["sites", "replay"] {
        let output = slablab(&[verb, out.to_str().unwrap()], &["--top", "2"]);
        let said = text(&output.stdout);
        check_order(&[verb], &said, &[led, "recorded on "]);
        assert_eq!(output.status.code(), Some(3), "{verb}");
    }
}

#[test]
fn symbols_name_addresses() {
    let folder = folder("sites-names");
    let list = folder.join("kallsyms");
    // The recording's kernel begins at 0xffffffff81000000; one function is all of its text.
    std::fs::write(&list, "ffffffff81000000 T _text\nffffffff81000010 T everything\n").unwrap();
    let list = list.to_str().unwrap();
    let said = sites(&[&argument(RECORDING), "--kallsyms", list], 0);
    assert!(said.contains("everything+0x") && said.contains("names of call sites are from"), "{said}");
    std::fs::write(list, "ffffffff81000123 T _text\n").unwrap();
    check_error(&["sites", &argument(RECORDING)], &["--kallsyms", list], &["another kernel", "--force"]);
    std::fs::write(list, "0000000000000000 T _text\n").unwrap();
    check_error(&["sites", &argument(RECORDING)], &["--kallsyms", list], &["all addresses are 0"]);
}

#[test]
fn allocinfo_is_ranked_by_growth() {
    let folder = folder("sites-allocinfo");
    let (before, now) = (folder.join("before"), folder.join("now"));
    let head = "allocinfo - version: 1.0\n#     <size>  <calls> <tag info>\n";
    let line = "   8388608     4737 mm/slub.c:2259 func:alloc_slab_page\n";
    std::fs::write(&before, format!("{head}{line}   1048576  10 fs/dcache.c:1 func:__d_alloc\n")).unwrap();
    std::fs::write(
        &now,
        format!("{head}{line}   1048576  10 fs/dcache.c:1 func:__d_alloc\n  524288 2 drivers/x.c:7 [x] func:leak\n"),
    )
    .unwrap();
    let (before, now) = (before.to_str().unwrap(), now.to_str().unwrap());
    let said = sites(&[now], 0);
    check_order(
        &[now],
        &said,
        &["holds most", "3 lines of code hold 1536 K", "alloc_slab_page", "__d_alloc", "leak", "not added"],
    );
    let said = sites(&[now, "--since", before], 0);
    check_order(
        &[now],
        &said,
        &["grew most: by 512", "+512 K\n  since", "drivers/x.c:7", "leak", "512", "alloc_slab_page"],
    );
    let csv = sites(&[now, "--since", before, "--format", "csv"], 0);
    assert!(csv.lines().nth(1).unwrap().starts_with("drivers/x.c:7,leak,x,524288,2,524288,2"), "{csv}");
    check_error(&["sites", now], &["--kallsyms", before], &["--kallsyms is for a recording"]);
    check_error(&["sites", now], &["--format", "folded"], &["--format folded is for a recording"]);
    check_error(&["sites", &argument(NAMED)], &["--since", before], &["--since is for a /proc/allocinfo"]);
    check_error(&["sites", now], &["--top", "0"], &["--top"]);
}

#[test]
fn debugging_lists_are_ranked() {
    let caches = folder("sites-traces").join("sys/kernel/debug/slab");
    let dentry = caches.join("dentry");
    std::fs::create_dir_all(&dentry).unwrap();
    let lists =
        "   12 d_alloc+0x1d/0x1a0 age=250/500/1000 pid=1-345 cpus=0-1 nodes=0\n\t__slab_alloc+0x6d/0x90\n";
    std::fs::write(dentry.join("alloc_traces"), lists).unwrap();
    let slab = caches.parent().unwrap().parent().unwrap().join("slab/dentry");
    std::fs::create_dir_all(&slab).unwrap();
    std::fs::write(slab.join("slab_size"), "192\n").unwrap();
    for input in [&caches, &dentry, &dentry.join("alloc_traces")] {
        let said = sites(&[input.to_str().unwrap(), "--hz", "250"], 0);
        check_order(
            &[""],
            &said,
            &["most of\nall.", "dentry: 12 objects allocated by", "d_alloc+0x1d", "12", "1.0", "2.0", "4.0"],
        );
    }
    let json = sites(&[caches.to_str().unwrap(), "--format", "json"], 0);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let entry = &json["lists"][0]["sites"][0];
    assert_eq!((entry["bytes"].as_u64(), entry["age_most_jiffies"].as_u64()), (Some(12 * 192), Some(1000)));
    assert_eq!(entry["stack"][0], "__slab_alloc+0x6d");
}
