//! The header matches the source. `SLABLAB_WRITE_HEADER=1` writes it, with cbindgen.

use std::path::Path;

#[test]
fn the_header_matches_the_source() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).expect("the configuration reads");
    let made =
        cbindgen::Builder::new().with_config(config).with_src(folder.join("src/objects.rs")).generate();
    let mut text = Vec::new();
    made.expect("cbindgen reads the source").write(&mut text);
    let header = folder.join("include/slablab.h");
    if std::env::var_os("SLABLAB_WRITE_HEADER").is_some() {
        std::fs::write(&header, &text).expect("the header can be written");
    }
    let text = String::from_utf8(text).expect("a header is text");
    let there = std::fs::read_to_string(&header).unwrap_or_default();
    assert!(
        there == text,
        "include/slablab.h differs from the source. To write it: \
         SLABLAB_WRITE_HEADER=1 cargo test -p slablab-c --test header"
    );
}
