//! Puts the page together: its parts, the compiled module, and a few inputs as examples, in one file that
//! opens from anywhere.
//!
//! ```text
//! assemble MODULE.wasm FOLDER-OF-EXAMPLES OUT.html
//! ```

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::error::Error;
use std::io::Write;
use std::path::Path;

/// Title, question, and the files it needs, under `examples/`.
const EXAMPLES: [(&str, &str, &[&str]); 4] = [
    (
        "a machine that was loaded",
        r#"{"verb": "doctor", "input": "after.tar.xz", "since": ["before.tar.xz"]}"#,
        &["releases/amd64_6.18.15_smp4.after.tar.xz", "releases/amd64_6.18.15_smp4.before.tar.xz"],
    ),
    (
        "slub_max_order of 0, 1, 2",
        r#"{"verb": "whatif", "input": "after.tar.xz", "change": {"max-order": "0,1,2"}}"#,
        &["releases/amd64_6.18.15_smp4.after.tar.xz"],
    ),
    (
        "the same under 7.0 and 7.3",
        r#"{"verb": "whatif", "input": "after.tar.xz", "change": {"release": "7.0,7.3"}}"#,
        &["releases/amd64_6.18.15_smp4.after.tar.xz"],
    ),
    ("what dentry and kmalloc-1k are", r#"{"verb": "what", "names": ["dentry", "kmalloc-1k"]}"#, &[]),
];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [module, examples, out] = &arguments[..] else {
        return Err("expected MODULE.wasm, the folder of examples, and OUT.html".into());
    };
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(&std::fs::read(module).map_err(|error| format!("{module}: {error}"))?)?;
    let module = STANDARD.encode(packed.finish()?);
    let bundled: Vec<Value> =
        EXAMPLES.iter().map(|example| bundle(Path::new(examples), example)).collect::<Result<_, _>>()?;
    // In a script, `</` would end it.
    let bundled = serde_json::to_string(&bundled)?.replace("</", "<\\/");
    let mut page = include_str!("../page/page.html").to_string();
    let parts = [
        ("@EXAMPLES@", bundled.as_str()),
        ("@WORKER@", include_str!("../page/worker.js")),
        ("@MODULE@", &module),
        ("@PAGE@", include_str!("../page/page.js")),
    ];
    for (mark, part) in parts {
        page = page.replacen(mark, part, 1);
    }
    std::fs::write(out, &page).map_err(|error| format!("{out}: {error}"))?;
    println!("{out}: {} bytes, {} of them the module", page.len(), module.len());
    Ok(())
}

/// An example with its files. They have the last two words of their names: `after.tar.xz`.
fn bundle(folder: &Path, example: &(&str, &str, &[&str])) -> Result<Value, Box<dyn Error>> {
    let (title, question, paths) = example;
    let question: Value = serde_json::from_str(question)?;
    let mut files = serde_json::Map::new();
    for path in *paths {
        let at = folder.join(path);
        let bytes = std::fs::read(&at).map_err(|error| format!("{path}: {error}"))?;
        let name =
            path.rsplit('.').take(3).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join(".");
        files.insert(name, STANDARD.encode(bytes).into());
    }
    Ok(json!({ "title": title, "question": question, "files": files }))
}
