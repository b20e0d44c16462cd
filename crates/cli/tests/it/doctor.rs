//! `slablab doctor` as a user meets it.

use crate::common::{self, argument, check_order, text};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Output;

/// A bundled dump.
fn dump(name: &str) -> String {
    argument(&format!("examples/dumps/{name}.tar.xz"))
}

/// A folder of this test, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("slablab-doctor-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("written");
        path.to_str().expect("UTF-8").to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn slablab(args: &[&str]) -> Output {
    common::slablab(&["doctor"], args)
}

#[track_caller]
fn check_error(args: &[&str], words: &[&str]) {
    common::check_error(&["doctor"], args, words);
}

/// Exit code, and all of `words` on standard output in this order, wherever lines are broken; nothing on
/// standard error.
#[track_caller]
fn check(args: &[&str], code: i32, words: &[&str]) -> String {
    let output = slablab(args);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {said}{}", text(&output.stderr));
    assert!(output.stderr.is_empty(), "{args:?}: {}", text(&output.stderr));
    let joined = said.split_whitespace().collect::<Vec<_>>().join(" ");
    check_order(args, &joined, words);
    said
}

/// Names of the caches in a table, in their order.
fn listed(args: &[&str], count: usize) -> Vec<String> {
    let said = check(args, 0, &["Cache"]);
    let rows = said.lines().skip_while(|line| !line.starts_with(" Cache ")).skip(1).take(count);
    rows.map(|line| line.split_whitespace().next().expect("a name").to_string()).collect()
}

#[test]
fn text_for_people() {
    let plain = dump("amd64_smp4.after");
    let words = [
        "Linux 6.1.0-50-amd64, 4 CPUs, 1 node, 4 K pages, 145 caches",
        "in use",
        "parked with CPUs, at least",
        "loss 12,323,296 28.0",
        "free in slabs",
        "all caches 43,986,944 100.0",
        "outside caches 1,294,336",
        "meminfo Slab 45,281,280",
        "Cache",
        "shmem_inode_cache",
        "... and 130 more, by cache size",
        "Findings",
        "What this kernel lets you do, as root",
        "- Now, one cache; saves",
        "Costs:",
        "echo 1 > /sys/kernel/slab/shmem_inode_cache/shrink",
    ];
    let said = check(&[&plain], 0, &words);
    assert!(said.starts_with("Not reclaimable: "), "the verdict is first: {said}");
    for name in
        ["amd64_smp4.after", "amd64_smp4_debugFZPU.after", "amd64_612_smp4_mods.after", "ppc64_smp160.after"]
    {
        for options in [&["-a", "-N", "600"][..], &["-B"], &["-L"]] {
            let said = check(&[&[dump(name).as_str()], options].concat(), 0, &["Findings"]);
            // Paths of an input and commands to paste are not broken.
            let pasted = |line: &str| {
                line.contains("/sys/kernel/slab") || line.starts_with("sudo") || line.contains(".tar.xz")
            };
            for line in said.lines().filter(|line| !pasted(line)) {
                assert!(line.chars().count() <= 80 || !line.contains(' '), "{name}: {line:?} is too wide");
                assert_eq!(line.trim_end(), line, "{name}: {line:?} ends in blanks");
            }
        }
    }
}

#[test]
fn orders_of_the_list() {
    let plain = dump("amd64_smp4.after");
    assert_eq!(listed(&[&plain, "-N", "3"], 3), ["shmem_inode_cache", "inode_cache", "dentry"]);
    assert_eq!(listed(&[&plain, "-s", "c", "-N", "1"], 1), ["shmem_inode_cache"]);
    assert_eq!(listed(&[&plain, "-L", "-N", "1"], 1), listed(&[&plain, "-s", "L", "-N", "1"], 1));
    assert_eq!(listed(&[&plain, "-s", "n", "-N", "1"], 1), ["Acpi-Operand"]);
    assert_eq!(listed(&[&plain, "-s", "s", "-N", "1"], 1), ["task_struct"]);
    // Every key sorts one snapshot but `r`, and several differ.
    let tops: BTreeSet<String> = "abclnopsuL"
        .chars()
        .map(|key| listed(&[&plain, "-s", &key.to_string(), "-N", "1"], 1).remove(0))
        .collect();
    assert!(tops.len() > 5, "{tops:?}");
    check_error(&[&plain, "-s", "z"], &["-s z", "a active objects", "L loss", "r growth"]);
    let host = argument("crates/readers/testdata/host_618/before.tar.xz");
    check(
        &[&host, "-a", "-N", "4"],
        0,
        &["Other names of merged caches", "buffer_head: ext4_fc_dentry_update"],
    );
}

/// What does not fit is left out and named; `--wide` has it.
#[test]
fn all_columns_are_wide() {
    let (before, after) = (dump("amd64_smp4.before"), dump("amd64_smp4.after"));
    let growth = [after.as_str(), "--since", &before, "--hours", "0.5"];
    let narrow = check(&growth, 0, &["Grown K", "per h K", "Not shown: O, O/S, %Ef, Objsize (--wide)."]);
    assert!(!narrow.contains("Objsize  "), "{narrow}");
    let wide = ["%Ef", "Objsize", "O/S", "Grown K", "Objs grown", "per h K"];
    let said = check(&[&growth[..], &["--wide"]].concat(), 0, &wide);
    assert!(!said.contains("Not shown"), "{said}");
}

#[test]
fn json_adds_up() {
    let said =
        check(&[&dump("ppc64_smp160.after"), "--format", "json"], 0, &["\"schema\": \"slablab.doctor.1\""]);
    let value: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    let number = |value: &serde_json::Value, key: &str| {
        value[key].as_i64().unwrap_or_else(|| panic!("no {key} in {value}"))
    };
    for split in value["caches"].as_array().expect("caches").iter().chain([&value["total"]]) {
        let loss = ["free", "tail", "alignment", "pointer", "debugging", "raced"]
            .map(|part| number(split, &format!("{part}_bytes")));
        assert_eq!(loss.iter().sum::<i64>(), number(split, "loss_bytes"), "{split}");
        assert_eq!(
            number(split, "in_use_bytes") + number(split, "loss_bytes"),
            number(split, "slab_bytes"),
            "{split}"
        );
    }
    assert_eq!(number(&value["meminfo"], "slab_bytes"), 451_648 << 10);
    assert_eq!(number(&value["meminfo"], "outside_caches_bytes"), -896 << 10);
    for finding in value["findings"].as_array().expect("findings") {
        assert!(
            finding["text"].as_str().expect("text").chars().any(|char| char.is_ascii_digit()),
            "{finding}"
        );
    }
    let knobs = value["knobs"].as_array().expect("knobs");
    assert!(knobs.iter().any(|knob| knob["name"] == "order" && knob["when"] == "read-only"), "{knobs:?}");
    for action in value["actions"].as_array().expect("actions") {
        assert!(number(action, "saves_low_bytes") <= number(action, "saves_high_bytes"), "{action}");
        assert!(knobs.iter().any(|knob| knob["knob"] == action["knob"]), "{action}");
    }
}

#[test]
fn csv_has_a_row_per_cache() {
    let folder = Folder::new("csv");
    let out = folder.file("out.csv", "");
    check(&[&dump("amd64_612_smp4_mods.after"), "--format", "csv", "-o", &out], 0, &[]);
    let text = std::fs::read_to_string(&out).expect("written");
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 1 + 518);
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{text}");
    let column = |name: &str| rows[0].iter().position(|column| *column == name).expect("a column");
    let sum = |name: &str| {
        rows[1..].iter().map(|row| row[column(name)].parse::<i64>().expect("a number")).sum::<i64>()
    };
    assert_eq!(sum("slab_bytes"), 64_584 << 10);
    assert_eq!(sum("in_use_bytes") + sum("loss_bytes"), sum("slab_bytes"));
    let parts = ["free", "tail", "alignment", "pointer", "debugging", "raced"];
    assert_eq!(parts.map(|part| sum(&format!("{part}_bytes"))).iter().sum::<i64>(), sum("loss_bytes"));
}

/// A sample of the exposition format: `name{label="value",...} number`, escapes resolved.
fn sample(line: &str) -> (String, Vec<(String, String)>, f64) {
    let (name, rest) = line.split_at(line.find(['{', ' ']).expect("a name ends"));
    let mut labels = Vec::new();
    let mut rest = rest;
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (key, value) = rest.split_once("=\"").expect("a label");
            let (mut text, mut chars) = (String::new(), value.char_indices());
            let end = loop {
                match chars.next().expect("a label's end") {
                    (at, '"') => break at,
                    (_, '\\') => match chars.next().expect("an escape").1 {
                        'n' => text.push('\n'),
                        escaped @ ('\\' | '"') => text.push(escaped),
                        other => panic!("\\{other} in {line}"),
                    },
                    (_, char) => text.push(char),
                }
            };
            labels.push((key.to_string(), text));
            rest = &value[end + 1..];
            match rest.strip_prefix(',') {
                Some(more) => rest = more,
                None => break,
            }
        }
        rest = rest.strip_prefix('}').expect("labels end");
    }
    let value = rest.strip_prefix(' ').expect("a blank before the value").parse().expect("a number");
    (name.to_string(), labels, value)
}

#[test]
fn metrics_are_told_apart() {
    let folder = Folder::new("metrics");
    let slabinfo = "slabinfo - version: 2.1\n\
        # name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n\
        mlx5_fs_fgs 10 32 128 32 1 : tunables 0 0 0 : slabdata 1 1 0\n\
        mlx5_fs_fgs 20 32 128 32 1 : tunables 0 0 0 : slabdata 1 1 0\n\
        od\"d\\name 30 32 128 32 1 : tunables 0 0 0 : slabdata 1 1 0\n";
    let slabinfo = folder.file("slabinfo", slabinfo);
    for (args, code, caches) in [
        (&[slabinfo.as_str(), "--page-size", "4096"][..], 3, 3),
        (&[&dump("amd64_612_smp4_mods.after")], 0, 518),
    ] {
        let said =
            check(&[args, &["--format", "prometheus"]].concat(), code, &["# HELP slablab_cache_slab_bytes"]);
        let (mut series, mut typed) = (BTreeSet::new(), BTreeSet::new());
        for line in said.lines() {
            if let Some(comment) = line.strip_prefix("# ") {
                let words: Vec<&str> = comment.splitn(3, ' ').collect();
                match words[0] {
                    "HELP" => assert!(!words[2].is_empty(), "{line}"),
                    "TYPE" => assert!(words[2] == "gauge" && typed.insert(words[1].to_string()), "{line}"),
                    other => panic!("{other} in {line}"),
                }
                continue;
            }
            let (name, labels, value) = sample(line);
            assert!(typed.contains(&name), "{line} before its type");
            assert!(value.is_finite(), "{line}");
            assert!(series.insert((name, labels)), "{line} is there twice");
        }
        let of_bytes = series.iter().filter(|(name, _)| name == "slablab_cache_slab_bytes").count();
        assert_eq!(of_bytes, caches);
        if caches == 3 {
            let named = |cache: &str, ordinal: &str| {
                let labels = vec![
                    ("cache".to_string(), cache.to_string()),
                    ("ordinal".to_string(), ordinal.to_string()),
                ];
                series.contains(&("slablab_cache_active_objects".to_string(), labels))
            };
            assert!(
                named("mlx5_fs_fgs", "0") && named("mlx5_fs_fgs", "1") && named("od\"d\\name", "0"),
                "{said}"
            );
        }
    }
}

/// What a snapshot that was cut off lacks did not grow from nothing, wherever it was cut.
#[test]
fn a_cut_snapshot_is_no_growth() {
    let [start, end] =
        ["start", "end"].map(|at| argument(&format!("examples/data/hackbench-6.18.slabinfo-{at}.txt")));
    let whole = std::fs::read_to_string(start).expect("bundled");
    let folder = Folder::new("cut");
    let lines = |count: usize| whole.lines().take(count).map(|line| format!("{line}\n")).collect::<String>();
    let middle = whole[..9000].to_string();
    for (text, words) in [
        (
            lines(3),
            &["Unknown: no cache grew by ", "the one cache that both snapshots have", "it has 1 of "][..],
        ),
        (lines(60), &["caches that both snapshots have", "cut.txt is cut off: it has 58 of "]),
        (
            lines(200),
            &[
                "caches that both snapshots have",
                "cut.txt is cut off: it has 198 of ",
                "growth is unknown of ",
            ],
        ),
        (middle, &["caches that both snapshots have", "cut.txt is cut off: it has "]),
    ] {
        let said = check(&[&end, "--since", &folder.file("cut.txt", &text), "--cpus", "2"], 3, words);
        assert!(!said.contains("Climbing"), "{said}");
    }
}

#[test]
fn growth_and_thresholds() {
    let (before, after) = (dump("amd64_smp4.before"), dump("amd64_smp4.after"));
    let words =
        ["two snapshots fit any line", "Grown K", "growth is over 0.500 hours and 2 snapshots, by --hours"];
    check(&[&after, "--since", &before, "--hours", "0.5", "-s", "r"], 0, &words);
    check(&[&after, "--since", &before], 0, &["growth has no rate", "--hours"]);
    check_error(&[&after, "--hours", "0.5"], &["--since"]);
    check_error(&[&after, "--since", &before, "--hours=0"], &["--hours", "above 0"]);
    check_error(
        &[&after, "--since", &dump("ppc64_smp160.after")],
        &["ppc64_smp160", "65536 bytes; expected 4096"],
    );
    check_error(&[&after, "--since", "/nowhere.tar"], &["/nowhere.tar"]);
    // The loss is 12,034 KiB; it grew by 27,136.
    check(&[&after, "--fail-over", "12035K"], 0, &[]);
    check(&[&after, "--fail-over", "12034K"], 1, &["12,323,296"]);
    check(&[&after, "--fail-over", "11M"], 1, &[]);
    check(&[&after, "--since", &before, "--fail-over", "26M"], 1, &[]);
    check(&[&after, "--since", &before, "--fail-over", "27M"], 0, &[]);
    for wrong in ["10X", "", "-1", "1.5M", "99999999999G"] {
        check_error(
            &[&after, &format!("--fail-over={wrong}")],
            &["--fail-over", "expected a number of bytes"],
        );
    }
}

#[test]
fn a_slabinfo_alone_is_incomplete() {
    let folder = Folder::new("alone");
    let slabinfo =
        std::fs::read_to_string(argument("examples/data/hackbench-6.18.slabinfo-end.txt")).expect("there");
    let file = folder.file("slabinfo.txt", &slabinfo);
    let words = [
        "2 CPUs",
        "loss",
        "makes what is missing readable: sudo sh -c",
        "their loss is against objsize",
        "/sys/kernel/slab: the input is a slabinfo alone",
    ];
    let said = check(&[&file, "--page-size", "4096", "--cpus", "2"], 3, &words);
    assert!(!said.contains("lets you do"), "advice without a release: {said}");
    assert_eq!(said.matches("sudo sh -c").count(), 1, "one command once: {said}");
    check_error(
        &[&folder.file("bad", "slabinfo - version: 2.1\ndentry five\n"), "--page-size", "4096"],
        &["bad", "line 2"],
    );
    check_error(&["/nowhere/at/all"], &["/nowhere/at/all"]);
}

#[test]
fn a_recording_tells_what_kmalloc_rounds() {
    let (before, recording) = (
        argument("examples/data/hackbench-6.18.before.tar.xz"),
        argument("examples/data/hackbench-6.18.perf.data.xz"),
    );
    let words = [
        "kmalloc rounding, in use: 175 objects that the recording allocated and did not free asked for 13,959 bytes and got \
         17,872, 3,913 more",
        "Findings",
    ];
    check(&[&before, "--recording", &recording], 0, &words);
    check_error(&[&before, "--recording", "/nowhere.perf.data"], &["/nowhere.perf.data"]);
}

/// A text with a message and a table, from a file: the answer, and that it is incomplete.
#[test]
fn pasted_texts() {
    let text = argument("crates/readers/testdata/pasted/ebitmap.txt");
    check(&[&text], 3, &["8 caches", "ebitmap_node", "a suspect of a leak", "the text has 8 of 129 caches"]);
    let folder = Folder::new("pasted");
    let rows = std::fs::read_to_string(common::bundled("crates/readers/testdata/pasted/sorted.txt"))
        .expect("a text");
    let later = rows.replace("47807  50589", "90000 100800").replace("2409   2409", "4800   4800");
    let two = folder.file("two.txt", &format!("monday\n{rows}\nfriday\n{later}"));
    check(&[&two, "--hours", "96"], 3, &["dentry grew by 9.3 MiB", "the last of 2 snapshots"]);
    let json = check(
        &[&argument("crates/readers/testdata/pasted/unable.txt"), "--format", "json"],
        3,
        &["messages"],
    );
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(value["messages"][0]["cache"], "kmalloc-1024");
    assert_eq!(value["all_caches"], false);
}

fn leak(name: &str) -> String {
    argument(&format!("crates/doctor/testdata/leak/{name}.tar.xz"))
}

/// The made leak of docs/leak.md, whichever snapshot comes first.
#[test]
fn a_leak_leads() {
    let (before, after) = (leak("before"), leak("after"));
    let words = [
        "Climbing and not reclaimable",
        "Findings - sock_inode_cache",
        "UNIX or UNIX-STREAM (in slabinfo: signal_cache)",
        "Who: 16 processes python3",
        "What this kernel lets you do, as root - Now, what holds them",
        "ss -s",
        "Cgroup",
        "/session-server",
        "Recl",
        "SUnreclaim",
        "too short a time for growth an hour",
    ];
    check(&[&after, "--since", &before], 0, &words);
    check(&[&before, "--since", &after], 0, &words);
    check(&[&after], 0, &["SReclaimable", "of it held, no shrinker", "SUnreclaim", "held"]);
    let other = dump("amd64_smp4.before");
    check_error(&[&after, "--since", &other], &["amd64_smp4.before", "another", "--force"]);
    check(&[&after, "--since", &other, "--force"], 0, &["slab memory grew by 1.5 GiB"]);
    check_error(&[&after, "--force"], &["--since"]);
}

#[test]
fn colour_is_asked_for() {
    let plain = dump("amd64_smp4.after");
    let painted = slablab(&[&plain, "--color", "always"]);
    let said = text(&painted.stdout);
    assert!(
        said.contains("\u{1b}[1mFindings\u{1b}[0m") && said.starts_with("\u{1b}[1;33mNot reclaimable"),
        "{said}"
    );
    for args in [&["--color", "never"][..], &[], &["--color", "always", "--format", "json"]] {
        let said = text(&slablab(&[&[plain.as_str()], args].concat()).stdout);
        assert!(!said.contains('\u{1b}'), "{args:?}: {said}");
    }
    check_error(&[&plain, "--color", "sometimes"], &["sometimes", "auto"]);
}

#[test]
fn no_lines_are_said() {
    check(&[&dump("amd64_smp4.after"), "-N", "0"], 0, &["Caches: none of 145 listed (-N 0)"]);
}
