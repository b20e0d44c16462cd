//! An open file, as a program holds it.

use crate::ahead::FileAhead;
use crate::ids::{MappingId, RegionId};
use crate::vm::Vm;

/// An open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFile {
    /// Its pages.
    pub mapping: MappingId,
    /// The contents of the page that was read last.
    pub content: u32,
    /// Where it reads ahead.
    pub ahead: FileAhead,
}

impl OpenFile {
    /// A file, just opened.
    pub fn new(mapping: MappingId) -> OpenFile {
        OpenFile { mapping, content: 0, ahead: FileAhead::default() }
    }
}

/// Lends a file's read-ahead to a region for faults, or takes it back: both are one open file with one state.
pub fn lend_ahead(vm: &Vm, region: RegionId, file: &mut OpenFile) {
    vm.with(|state| std::mem::swap(&mut state.spaces.region_mut(region).ahead, &mut file.ahead));
}
