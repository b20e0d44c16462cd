//! docs/trace-format.md and the code say the same.

use slablab_trace::{COLUMNS, EventKind, Form, MAJOR, MINOR, Metadata, flags};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/trace-format.md");

/// The page names every column, event and flag with its type or number, and every key of the footer.
#[test]
fn the_page_has_every_column_event_flag_and_key() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with('|'))
        .map(|line| line.split('|').map(|cell| cell.trim().trim_matches('`')).collect())
        .collect();
    let listed = |first: &str, second: &str| rows.iter().any(|row| row[1] == first && row[2] == second);
    for column in COLUMNS {
        let form = match column.form {
            Form::Number { bits, signed: true } => format!("int{bits}"),
            Form::Number { bits, signed: false } => format!("uint{bits}"),
            Form::Text => "string".into(),
        };
        assert!(listed(column.name, &form), "no row \"| `{}` | {form}\"", column.name);
    }
    for kind in EventKind::ALL {
        assert!(listed(&(*kind as u8).to_string(), kind.name()), "event {} is not listed", kind.name());
    }
    for (bit, name) in flags::ALL {
        assert!(listed(&bit.to_string(), name), "flag {name} is not listed");
    }
    assert!(page.contains(&format!("This is version {MAJOR}.{MINOR}.")));
    let metadata = Metadata {
        release: Some(String::new()),
        architecture: Some(String::new()),
        page_size_bytes: Some(0),
        config: [(String::new(), String::new())].into(),
        command_line: Some(String::new()),
        clock: Some(String::new()),
        build_id: Some(String::new()),
        symbols: vec![Default::default()],
        pairing_only: true,
        cut_off: Some(Default::default()),
        source: Some(Default::default()),
        import: Some(Default::default()),
        warnings: vec![String::new()],
        ..Metadata::default()
    };
    let json = serde_json::to_value(&metadata).unwrap();
    let footer = page.split("## Footer").nth(1).unwrap().split("## Versions").next().unwrap();
    for key in json.as_object().unwrap().keys() {
        assert!(footer.contains(&format!("`{key}`")), "the footer's key {key} is not listed");
    }
}
