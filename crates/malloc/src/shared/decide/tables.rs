//! The tables of docs/native.md, as tests read them.

/// log2 of the bytes of a page.
pub(super) const SHIFT: u32 = 12;

/// The cells of the rows of the page's table that has this head.
fn rows(head: &str) -> Vec<Vec<String>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/native.md");
    let page = std::fs::read_to_string(path).expect("the page is there");
    let table = page.lines().skip_while(|line| *line != head).skip(2);
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    let rows: Vec<_> = table.take_while(|line| line.starts_with('|')).map(cells).collect();
    assert!(!rows.is_empty(), "{head}: no such table");
    rows
}

/// Each case gets what the first row that fits it says, and each row is the first for some case. `any`
/// fits all.
pub(super) fn check(head: &str, cases: impl Iterator<Item = (Vec<String>, Vec<String>)>) {
    let rows = rows(head);
    let mut used = vec![false; rows.len()];
    for (facts, decision) in cases {
        let fits =
            |row: &Vec<String>| row.iter().zip(&facts).all(|(cell, fact)| cell == "any" || cell == fact);
        let at = rows.iter().position(fits).unwrap_or_else(|| panic!("{head}: no row for {facts:?}"));
        assert_eq!(rows[at][facts.len()..], decision, "{head}: {facts:?}");
        used[at] = true;
    }
    assert!(used.iter().all(|used| *used), "{head}: a row is for no case: {used:?}");
}

/// Each row of numbers, in MiB, gives what its last cells say.
pub(super) fn check_numbers(head: &str, decide: impl Fn(&[u64]) -> Vec<String>) {
    for row in rows(head) {
        let facts: Vec<u64> = row.iter().map_while(|cell| cell.parse().ok()).collect();
        let decision = decide(&facts);
        assert_eq!(row[row.len() - decision.len()..], decision, "{head}: {row:?}");
    }
}

pub(super) fn texts<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).into()
}

pub(super) fn frames(mib: u64) -> u64 {
    mib << (20 - SHIFT)
}
