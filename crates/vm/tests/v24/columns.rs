//! The kernels' columns, as a table of expectations; and the grammar of knobs.

use super::room::column;
use slablab_vm::Preset;
use slablab_vm::knob::Policy;
use slablab_vm::v24::Choices;

/// Columns of the table of the reference, section 0, in its order.
const COLUMNS: [&str; 6] = ["2.4.8", "2.4.9", "2.4.9-ac14", "2.4.9-ac14+aging", "2.4.10", "2.4.10-pre11"];

/// Its rows: a knob, and the choice of each column.
const ROWS: &[(&str, [&str; 6])] = &[
    ("lists", ["three", "three", "three", "three", "two", "two"]),
    ("age", ["exponential", "exponential", "exponential", "linear", "none", "none"]),
    ("age_start", ["2", "2", "2", "5", "2", "2"]),
    ("age_advance", ["3", "3", "3", "3", "3", "3"]),
    ("age_max", ["64", "64", "64", "64", "64", "64"]),
    ("start", ["inactive"; 6]),
    ("touch", ["age", "second", "lookup", "explicit", "referenced", "referenced"]),
    ("drop_behind", ["no", "no", "window", "until-inactive", "no", "no"]),
    ("anon", ["at-slot"; 6]),
    ("victims", ["idle", "idle", "idle", "old", "idle", "idle"]),
    ("zone_test", ["first", "first", "first", "after-age", "no", "class"]),
    ("target", ["pressure", "pressure", "pressure", "quarter", "twice-active", "no"]),
    ("vfs", ["sixty-fourth", "sixty-fourth", "all", "all", "priority", "priority"]),
    ("slots", ["until-full", "until-full", "until-full", "until-full", "exclusive", "exclusive"]),
    ("waits", ["users", "always", "users", "users", "mask", "mask"]),
];

/// All knobs of a column with their values.
fn knobs(release: &str) -> Vec<(&'static str, String)> {
    let choices = column(release);
    Choices::KNOBS.iter().map(|knob| (knob.name, knob.setting(&choices).to_string())).collect()
}

#[test]
fn the_columns_are_the_presets() {
    for (row, expected) in ROWS {
        let word = |release| {
            let knobs = knobs(release);
            knobs.into_iter().find(|(name, _)| name == row).unwrap_or_else(|| panic!("no knob {row}")).1
        };
        assert_eq!(COLUMNS.map(word), expected.map(str::to_owned), "{row}");
    }
}

/// A preset of one patch differs in what the patch changes, and in nothing else.
#[test]
fn a_patch_changes_what_it_says() {
    for (before, after, changed) in [
        ("2.4.9-ac14", "2.4.9-ac14+launder", vec!["launder"]),
        ("2.4.9-ac14+aging", "2.4.9-ac15+aging+launder", vec!["launder", "balance"]),
        ("2.4.9", "2.4.10-pre10", vec![]),
        (
            "2.4.10",
            "2.4.10+tweaks",
            vec!["fault_activates", "victims", "target", "activate_mapped", "refill_references"],
        ),
    ] {
        let differ = knobs(before).into_iter().zip(knobs(after)).filter(|(a, b)| a != b);
        assert_eq!(differ.map(|(a, _)| a.0).collect::<Vec<_>>(), changed, "{after}");
    }
}

/// Every column becomes every other one by its knobs, and says so.
#[test]
fn knobs_make_every_column() {
    for from in Choices::PRESETS {
        for to in Choices::PRESETS {
            let pairs = knobs(from.release).into_iter().zip(knobs(to.release));
            let changed = pairs.filter(|(was, is)| was != is).map(|(_, (knob, is))| format!(",{knob}={is}"));
            let text = format!("vm@{}{}", from.release, changed.collect::<String>());
            let preset = Preset::parse(&text).unwrap_or_else(|bad| panic!("{text}: {bad}"));
            assert_eq!(preset.to_string(), text);
            assert_eq!(preset.policy().name(), text);
            let own = preset.settings().filter(|own| Choices::KNOBS.iter().any(|knob| knob.name == own.name));
            let own: Vec<_> = own.map(|own| (own.name, own.to_string())).collect();
            assert_eq!(own, knobs(to.release));
        }
    }
}
