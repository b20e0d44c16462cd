//! Packs at once, where a system has no threads.

use super::{Group, Packing};
use crate::batch::Batch;
use crate::error::Error;
use parquet::file::writer::SerializedFileWriter;
use std::io::Write;

/// What packs; `None`: it was stopped.
pub(super) struct Packer<W: Write + Send + 'static>(Option<Packing<W>>);

impl<W: Write + Send + 'static> Packer<W> {
    pub(super) fn start(file: SerializedFileWriter<W>) -> Packer<W> {
        Packer(Some(Packing::new(file)))
    }

    /// Packs a group; its batch comes back empty.
    pub(super) fn give(&mut self, group: Group) -> Result<Batch, Error> {
        self.0.as_mut().ok_or(Error::Stopped)?.pack(group)
    }

    pub(super) fn stop(&mut self) -> Result<SerializedFileWriter<W>, Error> {
        self.0.take().map(|packing| packing.file).ok_or(Error::Stopped)
    }
}
