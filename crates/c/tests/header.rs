//! The header matches the source. `SLABLAB_WRITE_HEADER=1` writes it, with cbindgen.

use std::path::Path;

#[test]
fn the_header_matches_the_source() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).expect("the configuration reads");
    // cbindgen expands no macro of the crate: what `exports!` puts before each function is put there here.
    let source = ["src/objects.rs", "src/heaps.rs"].map(|file| {
        let source = std::fs::read_to_string(folder.join(file)).expect("the source reads");
        let (before, exported) =
            source.split_once("exports! { \"C\":\n").expect("the source exports functions");
        let exported = exported.trim_end().strip_suffix('}').expect("the exports end the file");
        // A module's text must begin a file.
        let before = before.lines().filter(|line| !line.starts_with("//!")).collect::<Vec<_>>().join("\n");
        before + "\n" + &exported.replace("\nfn ", "\n#[unsafe(no_mangle)] pub extern \"C\" fn ")
    });
    // The types of pointers and functions are for this crate alone.
    let pointers = [
        ("Cache", "*mut kmem_cache"),
        ("Heap", "*mut slab_heap"),
        ("Text", "*const c_char"),
        ("Given", "*mut c_void"),
        ("Objects", "*mut *mut c_void"),
        ("Option<Constructor>", "Option<unsafe extern \"C\" fn(*mut c_void)>"),
        ("Option<Destructor>", "Option<unsafe extern \"C\" fn(*mut c_void)>"),
        ("Option<Ask>", "Option<unsafe extern \"C\" fn(size_t, *mut c_void) -> size_t>"),
    ];
    let source = pointers.iter().fold(source.concat(), |source, (ours, pointer)| {
        source
            .replace(&format!(": {ours},"), &format!(": {pointer},"))
            .replace(&format!(": {ours})"), &format!(": {pointer})"))
    });
    let expanded = Path::new(env!("CARGO_TARGET_TMPDIR")).join("objects.rs");
    std::fs::write(&expanded, source).expect("the source can be written");
    let made = cbindgen::Builder::new().with_config(config).with_src(expanded).generate();
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
