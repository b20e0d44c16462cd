//! Words that steer a terminal or a spreadsheet, in every argument, file name and label: none reaches the
//! output as it is.

use crate::common::{self, bundled, folder};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Output;

/// Sets a terminal's title, changes its colour by C1, reverses the rest of the line.
const STEERS: &str = "\u{1b}]0;OWNED\u{7}\u{9b}31m\u{202e}";

/// Begins a formula, and has what separates and quotes cells.
const CELLS: &str = "=cmd|x,y,z\"q";

/// As one argument.
fn word() -> String {
    format!("{CELLS}{STEERS}")
}

/// The characters of `bytes` that no output may have.
fn steering(bytes: &[u8]) -> BTreeSet<char> {
    let text = String::from_utf8_lossy(bytes);
    let is_bidi =
        |char| matches!(char, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().filter(|char| (char.is_control() && !"\n\t".contains(*char)) || is_bidi(*char)).collect()
}

#[track_caller]
fn check_output(args: &[String], output: &Output) {
    for (stream, bytes) in [("standard output", &output.stdout), ("standard error", &output.stderr)] {
        let found = steering(bytes);
        assert!(found.is_empty(), "{args:?}: {stream} has {found:?}:\n{:?}", String::from_utf8_lossy(bytes));
    }
    let code = output.status.code();
    assert!(matches!(code, Some(0..=3)), "{args:?}: {code:?}: {:?}", String::from_utf8_lossy(&output.stderr));
}

fn run(args: &[String]) -> Output {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    common::slablab(&[], &args)
}

/// Every verb, verbs of verbs included, with its options that take a value, from the pages for man.
fn verbs() -> Vec<(Vec<String>, Vec<String>)> {
    let at = folder("hostile-man");
    let made = common::slablab(&["man", "--all"], &[at.to_str().expect("UTF-8")]);
    assert_eq!(made.status.code(), Some(0));
    let mut found = Vec::new();
    for file in std::fs::read_dir(&at).expect("a folder").flatten() {
        let page = std::fs::read_to_string(file.path()).expect("a page");
        let name = file.file_name().to_string_lossy().trim_end_matches(".1").replace("slablab", "");
        let verb: Vec<String> = name.split('-').filter(|word| !word.is_empty()).map(String::from).collect();
        // `\fB\-\-engine\fR \fI<ENGINE>\fR`
        let options = page.lines().filter(|line| line.contains("\\fI<"));
        let long =
            |line: &str| Some(line.split("\\fB\\-\\-").nth(1)?.split("\\fR").next()?.replace("\\-", "-"));
        found.push((verb, options.filter_map(long).map(|name| format!("--{name}")).collect()));
    }
    found
}

/// Each option of each verb with the word as its value, and the word as the verb's argument: most are
/// refused, and the message quotes it.
#[test]
fn no_argument_is_quoted_raw() {
    let verbs = verbs();
    let count: usize = verbs.iter().map(|(_, options)| options.len()).sum();
    assert!(verbs.len() > 25 && count > 100, "{} verbs with {count} options", verbs.len());
    let mut quoted = 0;
    for (verb, options) in verbs {
        let with = |more: &[String]| [&verb[..], more].concat();
        let mut all: Vec<Vec<String>> = vec![with(&[word()]), with(&[format!("--{}", word())])];
        // A word behind the options, so that nothing runs whose argument may be left out.
        all.extend(options.iter().map(|option| with(&[option.clone(), word(), word(), word(), word()])));
        for args in &all {
            let output = run(args);
            quoted += usize::from(String::from_utf8_lossy(&output.stderr).contains("OWNED"));
            check_output(args, &output);
        }
    }
    assert!(quoted > 100, "only {quoted} messages quote the word");
}

/// A copy of a file of the project, with the word in its name.
fn named(at: &Path, name: &str, end: &str) -> String {
    let path = at.join(format!("{}{end}", word().replace('/', "")));
    std::fs::copy(bundled(name), &path).expect("a copy");
    path.to_str().expect("UTF-8").to_string()
}

fn written(at: &Path, end: &str, text: &str) -> String {
    let path: PathBuf = at.join(format!("{}{end}", word()));
    std::fs::write(&path, text).expect("a file");
    path.to_str().expect("UTF-8").to_string()
}

/// Runs a command in each format, with the answer on standard output and in a page.
#[track_caller]
fn check(args: &[&str], formats: &[&str]) {
    for format in formats {
        let args: Vec<String> =
            args.iter().chain(&["--format", format]).map(|word| word.to_string()).collect();
        let output = run(&args);
        check_output(&args, &output);
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 3)), "{args:?}: {:?}", String::from_utf8_lossy(&output.stderr));
        assert!(!output.stdout.is_empty(), "{args:?}");
    }
}

const ENGINE: [&str; 2] = ["--engine", "slub@6.18"];

#[test]
fn no_name_of_a_recording_is_shown_raw() {
    let at = folder("hostile-recording");
    let recording = &named(&at, "examples/data/hackbench-6.18.perf.data.xz", ".perf.data.xz");
    let [start, end] = ["start", "end"].map(|when| {
        named(&at, &format!("examples/data/hackbench-6.18.slabinfo-{when}.txt"), &format!("{when}.txt"))
    });
    let trace = &at.join(format!("{}.parquet", word())).to_str().expect("UTF-8").to_string();
    check(&["import", recording, "-o", trace], &["json"]);
    let imported = run(&["import", recording, "-o", trace].map(String::from));
    check_output(&["import".into()], &imported);
    let page = &at.join("page.html").to_str().expect("UTF-8").to_string();
    check(&[&["replay", recording, "--html", page][..], &ENGINE].concat(), &["table", "json", "csv"]);
    assert!(steering(&std::fs::read(page).expect("a page")).is_empty());
    check(&[&["replay", trace, "--before", &start][..], &ENGINE].concat(), &["table"]);
    check(&["verify", trace, "--before", &start, "--after", &end], &["table", "json", "csv"]);
    check(&["sites", trace], &["table", "json", "csv", "folded"]);
    check(&["explain", trace, "slub@6.18", "slub@7.0", "--exact", "2", "--samples", "4"], &["table", "json"]);
}

#[test]
fn no_name_of_a_dump_is_shown_raw() {
    let at = folder("hostile-dump");
    let dump = &named(&at, "examples/dumps/ppc64_smp160.before.tar.xz", ".tar.xz");
    let other = "examples/dumps/ppc64_smp16.before.tar.xz";
    check(&["doctor", dump], &["table", "json", "csv", "prometheus"]);
    check(&["whatif", dump, "--max-order", "0"], &["table", "json", "csv"]);
    check(&["whatif", "--input", other, "--input", dump], &["table", "json", "csv"]);
    let row = " 1000 8000 256 16 1 : tunables 0 0 0 : slabdata 500 500 0\n";
    let text = format!("slabinfo - version: 2.1\n# name\n{}{row}", word().replace(' ', ""));
    let slabinfo = &written(&at, "slabinfo", &text);
    check(&["doctor", slabinfo, "--page-size", "4K", "--cpus", "4"], &["table", "json", "csv", "prometheus"]);
    let data = &written(&at, ".toml", "");
    check_output(&["what".into()], &run(&["what", "dentry", "--data", data].map(String::from)));
    check_output(&["what".into()], &run(&["what".into(), "dentry".into(), word()]));
}

#[test]
fn no_label_of_a_script_is_shown_raw() {
    let at = folder("hostile-script");
    let label = word().replace(' ', "");
    let script = &written(&at, ".t", &format!("anon mem 4\nphase {label}\nacc x1 mem seq m w\n"));
    let run_it = ["pressure", "run", script];
    check(&run_it, &["table", "json", "csv", "mmtests"]);
    for view in ["--vmstat", "--meminfo", "--ps"] {
        let args = [&run_it[..], &[view]].concat().into_iter().map(String::from).collect::<Vec<_>>();
        check_output(&args, &run(&args));
    }
    let csv = common::slablab(&run_it, &["--format", "csv"]).stdout;
    let cell = format!("\"'{}\\x1b]0;OWNED\\x07\\x9b31m\\u202e\"", CELLS.replace('"', "\"\""));
    let csv = common::text(&csv);
    assert!(csv.contains(&cell), "no {cell} in {csv}");
    let record =
        common::text(&std::fs::read(bundled("crates/readers/corpus/vmrecord/slabfill")).expect("a record"));
    let record = &written(&at, ".rec", &record.replacen("anon_fill", &label, 1));
    check(&["pressure", "show", record], &["table", "json", "csv"]);
}

#[test]
fn no_word_of_an_experiment_is_shown_raw() {
    let at = folder("hostile-experiment");
    let toml = format!(
        "name = \"mine\"\ntitle = {title:?}\nmachines = [\"laptop\"]\nengines = [\"slub@6.18\", \"slub@7.0\"]\n\
         workload = \"micro\"\n[parameters]\npattern = \"pair\"\n",
        title = "TITLE"
    );
    let title = "\\u001b]0;OWNED\\u0007\\u009b31m\\u202e=cmd,x";
    let experiment = &written(&at, ".toml", &toml.replace("TITLE", title));
    check(&["run", experiment, "--describe"], &["table", "json"]);
    let formats = ["table", "json", "csv", "markdown", "mmtests", "avgstd"];
    check(&["run", experiment, "--quick", "--repeats", "2"], &formats);
    let result = common::slablab(&["run"], &[experiment, "--quick", "--repeats", "2", "--format", "json"]);
    let result = &written(&at, ".json", &common::text(&result.stdout));
    check(&["compare", result, result], &["text", "json", "csv"]);
}
