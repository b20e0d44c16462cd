//! Predictions of other releases, beside boots of the same guest under both (examples/releases).

use crate::whatif_errors::boots;
use slablab_doctor::output::whatif_answer;
use slablab_doctor::state::State;
use slablab_doctor::whatif::boots::Boot;
use slablab_doctor::whatif::released::{Released, released};
use slablab_doctor::whatif::{Change, Prediction, SheafCapacity, predict};
use slablab_slabs::Preset;
use std::sync::LazyLock;

static ALL: LazyLock<Vec<Boot>> = LazyLock::new(|| boots("releases"));

fn state_of(name: &str) -> &'static State {
    &ALL.iter().find(|boot| boot.name == name).unwrap_or_else(|| panic!("no dump {name}")).state
}

fn release(text: &str) -> Change {
    Change { engine: Some(Preset::parse(text).expect("a preset")), ..Change::default() }
}

fn predicted(from: &str, change: &Change) -> Prediction {
    predict(state_of(from), change).unwrap_or_else(|error| panic!("{error}"))
}

/// The claims of docs/results/whatif.md, each with the figure that it would fail at.
#[test]
fn errors_are_those_of_the_page() {
    let all = released(&ALL).expect("predictions");
    let of = |loaded: bool, old: bool| -> Vec<&Released> {
        let old_one = |one: &&Released| [&one.from, &one.to].iter().any(|name| name.contains("6.12"));
        all.iter().filter(|one| one.loaded == loaded && old_one(one) == old).collect()
    };
    let check = |loaded: bool, old: bool, count: usize, median: f64, worst: f64, inside: usize| {
        let chosen = of(loaded, old);
        let mut errors: Vec<f64> = chosen.iter().map(|one| 100.0 * one.error().abs()).collect();
        errors.sort_by(f64::total_cmp);
        let within = chosen.iter().filter(|one| one.is_inside()).count();
        let case = format!("loaded {loaded}, 6.12 {old}: {errors:.1?}, {within} inside");
        assert_eq!(errors.len(), count, "{case}");
        assert!(errors[errors.len() / 2] <= median && errors[errors.len() - 1] <= worst, "{case}");
        assert!(within >= inside, "{case}");
    };
    check(false, false, 8, 3.3, 7.0, 8);
    check(true, false, 8, 1.0, 4.6, 8);
    // 6.12 lacks caches and objects that 6.18 has, by a tenth of what is there after boot.
    check(false, true, 6, 11.0, 13.1, 2);
    check(true, true, 6, 3.5, 7.8, 4);
}

/// What the memory of sheaves is made of, cache by cache: objects that CPUs refill, and the sheaves
/// themselves. The boots of 7.0 had what stands behind each.
#[test]
fn caches_have_what_their_cpus_refill() {
    #[track_caller]
    fn check(from: &str, to: &str, cache: &str, slabs: u64) {
        let prediction = predicted(from, &release(to));
        let row = prediction.rows.iter().find(|row| row.cache == cache).expect("the cache");
        assert_eq!(row.whatif.slabs, slabs, "{from} to {to}: {cache}, today {}", row.today.slabs);
    }
    let boot = "amd64_6.18.15_smp4.before";
    check(boot, "slub@7.0", "filp", 12); // 12: four refills of 60
    check(boot, "slub@7.0", "inode_cache", 9); // 9: 8 slabs of objects in use
    check(boot, "slub@7.0", "kmem_cache_node", 6); // 6: without sheaves, and without CPU slabs
    check(boot, "slub@6.12", "filp", 4); // neither release has sheaves of it
    check("amd64_7.0.13_smp4.before", "slub@6.18", "filp", 4); // 4
    let wide = "amd64_7.0.13_smp16_numa8_mem2.before";
    check(wide, "slub@7.1", "filp", 23); // 25: CPUs of nodes without memory refill too
    check(wide, "slub@7.0", "filp", 14); // the same kernel
}

/// Where the model does not know, it says so; and it never says that nothing changes.
#[test]
fn unknown_is_said() {
    #[track_caller]
    fn check(from: &str, change: &Change, words: &str) {
        let prediction = predicted(from, change);
        let answer = whatif_answer(state_of(from), std::slice::from_ref(&prediction), None, None, 3);
        let text = answer.text(false);
        assert!(text.contains(words), "{change}: {words}: {text}");
        assert!(!text.contains("+0.0 %"), "{change}: {text}");
    }
    let boot = "amd64_6.18.15_smp4.before";
    check(boot, &release("slub@6.1"), "unknown: what releases before 6.12 allocate");
    check(boot, &release("slab@6.1"), "unknown: what another engine keeps");
    check(boot, &Change { cpus: Some(8), ..release("slub@7.0") }, "unknown: another release is predicted on");
    check(boot, &release("slub@7.1"), "differ");
    check("amd64_7.3.4_smp4.before", &release("slub@7.2"), "differ");
}

/// Another capacity: parked objects and the sheaves grow with it, and nothing changes at today's.
#[test]
fn other_capacities() {
    let capacity = |text: &str| SheafCapacity::parse(text).map(Some);
    let bytes = |text: &str| {
        let change = Change { sheaf_capacity: capacity(text).expect("a capacity"), ..Change::default() };
        predicted("amd64_7.3.4_smp4.after", &change).whatif.bytes
    };
    let today = state_of("amd64_7.3.4_smp4.after").bytes();
    assert_eq!(bytes("x1"), today);
    assert!(bytes("x4") > bytes("x2") && bytes("x2") > today, "{} {}", bytes("x2"), bytes("x4"));
    assert!(bytes("2") < today);
    for (text, words) in [("0", "1 to 1020"), ("x65", "x1 to x64"), ("many", "expected objects in a sheaf")] {
        assert!(capacity(text).expect_err("no capacity").contains(words), "{text}");
    }
    let old = Change { sheaf_capacity: Some(SheafCapacity::Factor(2)), ..Change::default() };
    let error = predict(state_of("amd64_6.18.15_smp4.before"), &old).expect_err("6.18 has no such sheaves");
    assert!(error.to_string().contains("6.18"), "{error}");
}
