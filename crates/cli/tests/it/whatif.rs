//! `slablab whatif` as a user meets it.

use crate::common::{self, argument, check_order, text};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Output;

fn dump(run: &str) -> String {
    argument(&format!("examples/dumps/{run}.before.tar.xz"))
}

fn slablab(args: &[&str]) -> Output {
    common::slablab(&["whatif"], args)
}

#[track_caller]
fn check_error(args: &[&str], words: &[&str]) {
    common::check_error(&["whatif"], args, words);
}

/// Exit code 0 or 3 (something was not in the dump), nothing on standard error, and all of `words` in this
/// order.
#[track_caller]
fn check(args: &[&str], words: &[&str]) -> String {
    let output = slablab(args);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{args:?}: {}", text(&output.stderr));
    assert!(output.stderr.is_empty(), "{args:?}: {}", text(&output.stderr));
    let said = text(&output.stdout);
    check_order(args, &said, words);
    said
}

#[test]
fn a_table_for_people_is_80_wide() {
    let of = |args: &[&str], words: &[&str]| {
        let said = check(args, words);
        let longest = said.lines().filter(|line| !line.contains('/')).map(|line| line.chars().count()).max();
        assert!(longest <= Some(80), "{longest:?}: {said}");
    };
    let large = dump("ppc64_smp160");
    of(
        &[&large, "--max-order", "0"],
        &["max_order=0", "kmalloc-64k", "3>0", "8>1", "All caches", "predicted: "],
    );
    of(
        &[&large, "--max-order", "0", "-N", "2"],
        &["kmalloc-64k", "pgtable-2^9", "... and 141 more", "All caches"],
    );
    of(
        &[&large, "--page-size", "4K", "--cpus", "4096"],
        &["page_size=4K", "cpus=4096", "predicted:", "waste is the tails", "for each CPU"],
    );
    of(
        &[&large, "--max-order", "0", "--against", &dump("ppc64_smp160_maxorder0")],
        &[
            "of 143 caches in both, 143 have the predicted order, 143",
            "\"no change\" +64.6 %",
            "Largest errors",
        ],
    );
    of(
        &[&large, "--max-order", "0,1", "--policy", "single,patel-v3"],
        &[
            "today",
            "policy=single max_order=0",
            "policy=single max_order=1",
            "policy=patel-v3 max_order=0",
            "policy=patel-v3 max_order=1",
        ],
    );
}

#[test]
fn json_has_today_beside_the_change() {
    let large = dump("ppc64_smp160");
    let of = |args: &[&str]| -> Value { serde_json::from_str(&check(args, &[])).expect("JSON") };
    let json = of(&[&large, "--max-order", "0", "--format", "json"]);
    assert_eq!(json["schema"], "slablab.whatif.1");
    assert_eq!(json["page_size_bytes"], 65536);
    let rows = json["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 143);
    let row = rows.iter().find(|row| row["cache"] == "kmalloc-64k").expect("kmalloc-64k");
    for (key, value) in [
        ("order", 3),
        ("order_whatif", 0),
        ("objs_per_slab", 8),
        ("objs_per_slab_whatif", 1),
        ("slabs", 160),
        ("total_bytes", 160 * 8 * 65536),
        ("slab_size_bytes", 65536),
        ("slab_size_whatif_bytes", 65536),
        ("waste_bytes", 0),
    ] {
        assert_eq!(row[key], value, "{key}: {row}");
    }
    let sum = |key: &str| rows.iter().map(|row| row[key].as_u64().expect("a number")).sum::<u64>();
    let variant = &json["variants"][0];
    assert_eq!(variant["today"]["total_bytes"], sum("total_bytes"));
    assert_eq!(variant["total"]["total_bytes"], sum("total_whatif_bytes"));
    assert_eq!(variant["total"]["slabs"], sum("slabs_whatif"));
    assert_eq!(variant["change"]["max_order"], 0);
    let lists = of(&[&large, "--max-order", "0,1", "--page-size", "4K,64K", "--format", "json"]);
    assert_eq!(lists["variants"].as_array().map(Vec::len), Some(4));
    assert_eq!(lists["rows"].as_array().map(Vec::len), Some(4 * 143));
    let csv = check(
        &[&large, "--max-order", "0,1", "--format", "csv"],
        &["whatif,cache,ordinal,", "order,order_whatif"],
    );
    assert_eq!(csv.lines().count(), 1 + 2 * 143);
}

/// `--input` twice: what the kernel allocates for each CPU, and a prediction by that.
#[test]
fn two_inputs_tell_what_each_cpu_has() {
    let (few, many) = (dump("ppc64_smp16_maxorder0"), dump("ppc64_smp160_maxorder0"));
    let both = ["--input", few.as_str(), "--input", many.as_str()];
    let with = |more: &[&'static str]| -> Vec<String> {
        both.iter().chain(more).map(|word| word.to_string()).collect()
    };
    let run = |more: &[&'static str], words: &[&str]| {
        let args = with(more);
        check(&args.iter().map(String::as_str).collect::<Vec<_>>(), words)
    };
    run(
        &[],
        &[
            "For each CPU 6.1 on ppc64le with pages of 64K allocates",
            "by dumps with 16,",
            "kmalloc-128k",
            "1.0",
            "thread_stack",
        ],
    );
    let csv = run(&["--format", "csv"], &["release,arch,page_size_bytes,cpus,cache,objects_per_cpu"]);
    assert!(csv.contains("\n6.1,ppc64le,65536,16 160,kmalloc-128k,1.000,1.000,1.000,no\n"), "{csv}");
    let json: Value = serde_json::from_str(&run(&["--format", "json"], &[])).expect("JSON");
    assert_eq!((&json["schema"], &json["cpus"][1]), (&"slablab.per-cpu.1".into(), &160.into()));
    run(&["--cpus", "160"], &["cpus=160", "predicted:", "90 % of measured", "What the kernel allocates"]);
    // The same dump as INPUT and --input; and dumps that tell nothing together.
    run(&["--cpus", "64", "-N", "1"], &["What the kernel allocates for each CPU is that of"]);
    // The nearest by the ratio predicts: 160 CPUs for 64, and 16 for 160, which that dump has already.
    run(&["--cpus", "64", "-N", "1"], &["ppc64_smp160_maxorder0"]);
    run(&["--cpus", "160", "-N", "1"], &["ppc64_smp16_maxorder0"]);
    check(&[&few, "--input", &many, "--cpus", "64"], &["What the kernel allocates for each CPU is that of"]);
    let other = dump("amd64_smp4");
    check_error(&["--input", &few, "--input", &other, "--cpus", "8"], &["x86_64", "expected 6.1 on ppc64le"]);
    check_error(&["--input", &few, "--input", &few, "--cpus", "8"], &["--input", "all dumps have 16 CPUs"]);
    check_error(&["--input", &few, "--input", &many, "--format", "mail"], &["expected table, json or csv"]);
    let page = common::folder("whatif-per-cpu").join("page.html");
    check(&["--input", &few, "--input", &many, "--html", page.to_str().expect("UTF-8")], &["For each CPU"]);
    let page = std::fs::read_to_string(page).expect("it was written");
    assert!(page.contains("thread_stack") && page.contains("For each CPU 6.1 on ppc64le"), "{page}");
}

/// The range says where it is from; another release gets none of boots.
#[test]
fn a_range_says_what_it_contains() {
    let small = dump("amd64_smp4");
    check(&[&small, "--max-order", "0"], &["90 % of measured", "order, up to 8 CPUs"]);
    let said = check(
        &[&small, "--engine", "slub@6.12"],
        &["unknown: what releases before 6.12", "clamped becomes single", "6.12 allocates is not"],
    );
    assert!(!said.contains("0 % at most"), "{said}");
    let json: Value =
        serde_json::from_str(&check(&[&small, "--cpus", "8", "--format", "json"], &[])).expect("JSON");
    let (range, total) = (&json["variants"][0]["range"], &json["variants"][0]["total"]);
    assert_eq!((&range["coverage"], &range["question"]), (&0.9.into(), &"cpus".into()));
    let bytes = |key: &str| total[key].as_f64().expect("a number");
    let factor = range["factor"].as_f64().expect("a number");
    assert!((bytes("total_high_bytes") / bytes("total_bytes") - factor).abs() < 1e-6);
    assert!((bytes("total_bytes") / bytes("total_low_bytes") - factor).abs() < 1e-6);
}

/// Another release, or another capacity of sheaves, of a kernel from 6.12 on.
#[test]
fn releases_and_capacities() {
    let of = |name: &str| format!("{}/../../examples/releases/{name}.tar.xz", env!("CARGO_MANIFEST_DIR"));
    let (old, new) = (of("amd64_6.18.15_smp4.after"), of("amd64_7.3.4_smp4.after"));
    check(&[&old, "--release", "7.0"], &["With engine=slub@7.0 slabs would take", "more."]);
    check(&[&old, "--release", "7.0,6.1"], &["best, engine=slub@7.0", "engine=slub@6.1", " ? "]);
    // What is not known is no number of today.
    check(&[&old, "--release", "6.1"], &["is not predicted", ">?", " ?"]);
    check(&[&new, "--sheaf-capacity", "x2"], &["sheaf_capacity=x2", "more."]);
    check_error(&[&old, "--sheaf-capacity", "x2"], &["--sheaf-capacity", "6.18", "--release 7.0"]);
    check_error(&[&new, "--sheaf-capacity", "none"], &["--sheaf-capacity", "1 to 1020"]);
    check_error(&[&old, "--release", "8"], &["--release 8"]);
    check_error(&[&old, "--release", "6.1", "--format", "mail"], &["--format mail", "not predicted"]);
}

#[test]
fn a_bare_slabinfo_is_enough() {
    let folder = std::env::temp_dir().join(format!("slablab-whatif-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path: PathBuf = folder.join("slabinfo");
    let slabinfo = "slabinfo - version: 2.1\n\
        # name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n\
        names_cache           64     64   4096    8    8 : tunables    0    0    0 : slabdata      8      8      0\n";
    std::fs::write(&path, slabinfo).expect("a file");
    let path = path.to_str().expect("UTF-8");
    check_error(&[path, "--max-order", "0", "--input-page-size", "4K"], &["how many CPUs", "--input-cpus"]);
    check(
        &[path, "--max-order", "0", "--input-page-size", "4K", "--input-cpus", "4"],
        &[
            "names_cache",
            "3>0",
            "8>1",
            "assumed: as wide",
            "the kernel's release",
            "does not count CPU slabs",
        ],
    );
    // Slabs of order 1 cannot be with the default slub_max_order: 16 objects of 2048 bytes would be in order
    // 3.
    let small = slabinfo.replace("64     64   4096    8    8", "32     32   2048    4    2");
    let other: PathBuf = folder.join("small");
    std::fs::write(&other, small).expect("a file");
    check(
        &[other.to_str().expect("UTF-8"), "--max-order", "3", "--input-page-size", "4K", "--input-cpus", "4"],
        &["1>3", "4>16", "slub_max_order=1, by today's"],
    );
    check_error(&[path, "--debug", "Z", "--input-cpus", "4"], &["/sys/kernel/slab", "--debug"]);
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

#[test]
fn what_is_wrong_is_said_with_what_was_expected() {
    let small = dump("amd64_smp1");
    check_error(&[&small, "--policy", "patel-v9"], &["--policy", "patel-v3", "online-cpus"]);
    check_error(&[&small, "--max-order", "11"], &["--max-order", "0 to 10"]);
    check_error(&[&small, "--page-size", "5000"], &["--page-size", "expected 4K"]);
    check_error(&[&small, "--merge", "maybe"], &["--merge", "on or off"]);
    check_error(&[&small, "--debug", "Q"], &["--debug", "letters of FZPU"]);
    check_error(&[&small, "--engine", "slib@7"], &["--engine", "near it"]);
    check_error(&[&small, "--engine", "slob@6.1"], &["--engine", "no slabs"]);
    check_error(&[&small, "--max-order", "0,1", "--against", &small], &["--against", "one change"]);
    check_error(&["/no/such/dump"], &["/no/such/dump"]);
}
