//! What the program itself gives to a build.

use super::built::FORMAT;
use super::config::TEXTS;
use super::objects::LIBRARY;
use super::shim::FILES;
use super::sources::hex;
use sha2::{Digest, Sha256};

/// Names the program's part of a build: a build with another one is not up to date.
pub(crate) fn recipe() -> String {
    let mut hash = Sha256::new();
    hash.update(format!("{FORMAT}\n{}\n", LIBRARY.join("\n")));
    FILES.iter().for_each(|(name, text)| hash.update(format!("{name}\n{text}\n")));
    TEXTS.iter().for_each(|text| hash.update(text));
    hex(hash.finalize().as_slice())
}
