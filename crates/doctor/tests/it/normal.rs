//! How much a machine takes that has only booted: the built-in table, what it says of boots that it was not
//! made from, and where it says that nothing is known.

use crate::whatif_errors::{boots, in_folder};
use slablab_doctor::Options;
use slablab_doctor::act::verdict::Judgement::{self, NoProblem, NotReclaimable};
use slablab_doctor::examine;
use slablab_doctor::state::State;
use slablab_doctor::whatif::boots::Boot;
use slablab_doctor::whatif::normal::{COLUMNS, Normal, held_out, table};
use slablab_slabs::Release;
use slablab_slabs::order::CpuCounts;
use std::path::Path;
use std::sync::LazyLock;

static ALL: LazyLock<Vec<Boot>> = LazyLock::new(|| {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/boots");
    [boots("dumps"), boots("releases"), in_folder(&own)].into_iter().flatten().collect()
});

fn state(name: &str) -> State {
    let boot = ALL.iter().find(|boot| boot.name == name).unwrap_or_else(|| panic!("no dump {name}"));
    boot.state.clone()
}

/// `cargo run -p slablab-doctor --example whatif_errors -- normal examples/dumps examples/releases
/// crates/doctor/testdata/boots`.
#[test]
fn the_built_in_table_is_that_of_the_boots() {
    let rows = table(&ALL).expect("a table");
    let rows: String = rows.iter().map(|row| row.join(",") + "\n").collect();
    let made = COLUMNS.join(",") + "\n" + &rows;
    assert!(made == include_str!("../../data/normal.csv"), "write data/normal.csv anew");
}

/// Where the table goes beyond the CPUs of its boots, such predictions were in their ranges; where they were
/// not, the table has the boots alone. With sheaves those of more CPUs are, and those of fewer are not.
#[test]
fn predictions_of_other_boots() {
    let all = held_out(&ALL).expect("predictions");
    let inside = |sheaves: bool| -> Vec<bool> {
        let of = all.iter().filter(|one| one.name.contains("_7.") == sheaves);
        of.map(|one| (one.slabs.low..=one.slabs.high).contains(&one.real)).collect()
    };
    assert_eq!(inside(false), [true; 9]);
    assert_eq!(inside(true), [true, false, true, false], "extend the table of kernels with sheaves");
}

/// A machine like that of a dump, with another release, architecture or number of CPUs.
fn with(name: &str, release: &str, cpus: u32) -> State {
    let mut state = state(name);
    state.dump.release = Some(release.into());
    state.release = Release::parse(release);
    state.dump.arch = None;
    state.cpus = state.cpus.map(|counts| CpuCounts { online: cpus, ..counts });
    state
}

#[test]
fn what_is_known_of_which_machine() {
    #[track_caller]
    fn check(release: &str, cpus: u32, expected: Result<u64, &str>) {
        let found = Normal::of(&with("amd64_smp4.before", release, cpus));
        let found = found.map(|normal| normal.slabs.predicted >> 10);
        assert_eq!(found, expected.map_err(String::from), "{release}, {cpus} CPUs");
    }
    check("6.1.0-50-amd64", 4, Ok(15820));
    check("6.8.0-31-amd64", 4, Ok(15820));
    // Between 4 and 8 CPUs.
    check("6.1.0-50-amd64", 6, Ok(17638));
    check("6.12.117+deb12-amd64", 4, Ok(8740));
    check("7.1.13+deb13-amd64", 4, Ok(10246));
    check("6.1.0-50-amd64", 200, Err("boots with 1, 4 and 8 CPUs were measured, and this machine has 200"));
    check("7.1.13+deb13-amd64", 32, Err("boots with 4 and 16 CPUs were measured, and this machine has 32"));
    check("5.14.0-427.el9.x86_64", 4, Err("boots of Linux 6.1 and later were measured, and this is 5.14"));
    check("6.1.0-s390x", 4, Err("no boot of s390x with pages of 4 KiB was measured"));
    check("6.1.77", 4, Err("the input does not tell the architecture"));
    check("6.1.0-50-amd64", 0, Err("the input does not tell how many CPUs there are"));
}

/// A dump whose meminfo has `more` MiB of `SUnreclaim` more, as large kmallocs would be, and `total` MiB of
/// memory.
fn grown(name: &str, more: u64, total: u64) -> State {
    let mut state = state(name);
    for key in ["Slab", "SUnreclaim"] {
        let kib = state.dump.meminfo.get(key).expect("a counter");
        state.dump.meminfo.extend([(key.to_string(), kib + more * 1024)]);
    }
    state.dump.meminfo.extend([("MemTotal".to_string(), total * 1024)]);
    state
}

/// What of a machine's slabs is normal: as much as a boot, some times that, many times that, not known.
#[test]
fn the_verdict_of_a_machine_beside_a_boot() {
    #[track_caller]
    fn check(state: &State, judgement: Judgement, says: &str) {
        let report = examine(state, &Options::default()).expect("a report");
        let text = &report.verdict.text;
        assert_eq!(report.verdict.judgement, judgement, "{text}");
        assert!(text.contains(says), "expected `{says}` in: {text}");
    }
    check(
        &grown("ppc64_smp160.before", 0, 8000),
        NoProblem,
        "are no more than a boot takes: 244 to 351 MiB on 160 CPUs",
    );
    // Ten per cent of memory are never no problem.
    check(&grown("ppc64_smp160.before", 0, 2000), NotReclaimable, "That is no more than a boot takes");
    check(
        &grown("ppc64_smp160.before", 200, 8000),
        NotReclaimable,
        "That is 1.7 times what a boot takes on 160 CPUs",
    );
    check(
        &grown("amd64_smp4.before", 100, 4000),
        NotReclaimable,
        "That is 13 times what a boot takes on 4 CPUs",
    );
    let leak = in_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/leak"));
    let after = leak.iter().find(|boot| boot.name == "after").expect("a dump");
    check(&after.state, NoProblem, "that no shrinker frees are 65 times what a boot takes on 2 CPUs");
    check(&grown("amd64_smp4.after", 0, 1000), NotReclaimable, "modules and services make it 3 to 6 times");
}
