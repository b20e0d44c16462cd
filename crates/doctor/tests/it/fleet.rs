//! Many dumps: the answer does not depend on where they are cut into parts, nor on the way of a part as text.

use slablab_doctor::fleet::{By, Fleet, Part, dumps, part, read, whole};
use slablab_doctor::output::fleet_answer;
use slablab_doctor::whatif::Change;
use std::path::{Path, PathBuf};

fn said(fleet: &Fleet) -> String {
    let answer = fleet_answer(fleet, 20);
    format!("{}{:?}", answer.text(true), answer.text_of("json", false))
}

#[test]
fn parts_are_joined_to_the_same_answer() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/dumps");
    let mut paths: Vec<PathBuf> = dumps(&[folder]).expect("a folder");
    paths.truncate(12);
    // One that cannot be read, and one that is there twice.
    paths.push(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md"));
    paths.push(paths[3].clone());
    let changes = [Change { max_order: Some(0), ..Change::default() }];
    let none = |_: u64, _: u64| {};
    let expected = said(&read(&paths, By::Cpus, &changes, &none));
    for size in [1, 3, 5, 14] {
        let parts = paths.chunks(size).map(|paths| {
            let text = serde_json::to_string(&part(paths, By::Cpus, &changes, &none)).expect("text");
            serde_json::from_str::<Part>(&text).expect("a part")
        });
        assert_eq!(said(&whole(parts.collect(), &changes)), expected, "{size} dumps in a part");
    }
}
