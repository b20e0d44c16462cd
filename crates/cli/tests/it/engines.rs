//! docs/engines/README.md: its tables are what its commands print.

use crate::common::{bundled, slablab, text};
use serde_json::Value;

/// 1234567 as 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let start = digits.len() % 3;
    let groups =
        digits.as_bytes()[start..].chunks(3).map(|group| String::from_utf8_lossy(group).into_owned());
    let first = (start > 0).then(|| digits[..start].to_string());
    first.into_iter().chain(groups).collect::<Vec<_>>().join(",")
}

/// An engine's row of the page, from the answer of `--format json`.
fn row(engine: &Value) -> String {
    let total = &engine["total"];
    let number = |key: &str| total.get(key).map_or(0, |value| value.as_u64().expect("a number"));
    let sum = |keys: &[&str]| grouped(keys.iter().map(|key| number(key)).sum());
    let percent = |key: &str| format!("{:.1} %", total[key].as_f64().expect("a number"));
    let kib = |key: &str| grouped(number(key) / 1024) + " K";
    let cells = [
        format!("`{}`", engine["engine"].as_str().expect("a text")),
        percent("allocs_fast_percent"),
        percent("frees_fast_percent"),
        sum(&["slab_pages_taken"]),
        sum(&["slabs_taken", "slabs_returned"]),
        sum(&["lock_node_list", "lock_page_list", "lock_heap"]),
        sum(&["lock_alien", "lock_barn", "lock_remote_free", "lock_slab"]),
        sum(&["lock_zone"]),
        kib("slab_peak_bytes"),
        kib("slab_end_bytes"),
        kib("live_bytes"),
    ];
    format!("| {} |", cells.join(" | "))
}

/// Every command of the page whose recording is in the project, with the rows of the table below it.
#[test]
fn the_tables_are_what_the_commands_print() {
    let page = std::fs::read_to_string(bundled("docs/engines/README.md")).expect("the page is there");
    let mut held = 0;
    for block in page.split("```sh\n").skip(1) {
        let (command, below) = block.split_once("```").expect("the block ends");
        let words: Vec<&str> = command.split(['\\', ' ', '\n']).filter(|word| !word.is_empty()).collect();
        let [program, "replay", recording, ..] = words[..] else { panic!("{command:?} is no replay") };
        assert_eq!(program, "slablab");
        if recording.starts_with("TRUTH/") {
            continue;
        }
        let output = slablab(&words[1..], &["--format", "json"]);
        let json: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|bad| panic!("{command}: {bad}: {}", text(&output.stderr)));
        let printed: Vec<String> = json["engines"].as_array().expect("a list").iter().map(row).collect();
        let said: Vec<&str> = below.lines().filter(|line| line.starts_with("| `")).collect();
        assert_eq!(said, printed, "{command}: what the page says, and what the program prints");
        held += 1;
    }
    assert_eq!(held, 2, "commands whose recording is in the project");
}
