//! What the tests share: the samples in `testdata`, decompressed by the crate's own reader.
#![allow(dead_code)] // Each test file uses a part of it.

use std::io::Read;
use std::path::PathBuf;

use slablab_kernel::compressed::Decompressed;
use slablab_kernel::{Event, Item, Lost, Source};

/// The path of a sample.
pub(crate) fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// A sample's content, decompressed.
pub(crate) fn sample(name: &str) -> Vec<u8> {
    let file = std::fs::File::open(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut content = Vec::new();
    Decompressed::new(file)
        .unwrap()
        .read_to_end(&mut content)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    content
}

/// Everything a source delivers.
pub(crate) fn drain<S: Source>(source: &mut S) -> Result<(Vec<Event>, Vec<Lost>), S::Error> {
    let (mut events, mut losses) = (Vec::new(), Vec::new());
    while let Some(item) = source.next()? {
        match item {
            Item::Event(event) => events.push(event),
            Item::Lost(lost) => losses.push(lost),
        }
    }
    Ok((events, losses))
}
