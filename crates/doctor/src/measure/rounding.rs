//! What kmalloc's classes cost: bytes asked for and bytes given, of the kmallocs of a recording that
//! were not freed in it.
//!
//! Neither /proc/slabinfo nor sysfs has the requested sizes. A recording has them for the objects that were
//! allocated while it ran. Older objects may have other sizes, so the result does not include them.

use slablab_report::error::{Error, Result};
use slablab_trace::{Batch, Columns, EventKind, Losses, NONE, Reader};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// kmallocs that a recording saw and that were not freed in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Rounding {
    /// The recording.
    pub path: PathBuf,
    /// Objects.
    pub objects: u64,
    /// Bytes asked for.
    pub requested: u64,
    /// Bytes given.
    pub allocated: u64,
    /// By the bytes given: number of objects, and bytes asked for.
    pub classes: BTreeMap<u32, (u64, u64)>,
    /// Events the recording lost: an allocation whose free was lost seems to live on.
    pub losses: Losses,
}

impl Rounding {
    /// Reads a recording to its end.
    ///
    /// # Errors
    /// A trace that is damaged.
    pub fn read(path: &Path, reader: &Reader) -> Result<Rounding> {
        let columns = Columns::EVENT | Columns::OBJECT | Columns::BYTES_REQ | Columns::BYTES_ALLOC;
        let error = |error: slablab_trace::Error| Error::new(path, error);
        let (mut batches, mut batch) = (reader.batches(columns), Batch::default());
        // By dense object id: bytes asked for and given, nothing for other objects.
        let mut live: Vec<Option<(u32, u32)>> = Vec::new();
        while batches.next(&mut batch).map_err(error)? {
            for index in 0..batch.len() {
                let object = batch.object[index];
                if object == NONE {
                    continue;
                }
                let object = object as usize;
                if live.len() <= object {
                    live.resize(object + 1, None);
                }
                live[object] = match EventKind::from_u8(batch.event[index]) {
                    Some(EventKind::Kmalloc) => Some((batch.bytes_req[index], batch.bytes_alloc[index])),
                    Some(_) => None,
                    None => live[object],
                };
            }
        }
        let mut classes: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for (requested, allocated) in live.into_iter().flatten() {
            let class = classes.entry(allocated).or_default();
            *class = (class.0 + 1, class.1 + u64::from(requested));
        }
        Ok(Rounding {
            path: path.to_path_buf(),
            objects: classes.values().map(|(objects, _)| objects).sum(),
            requested: classes.values().map(|(_, requested)| requested).sum(),
            allocated: classes.iter().map(|(allocated, (objects, _))| u64::from(*allocated) * objects).sum(),
            classes,
            losses: reader.metadata().losses.clone(),
        })
    }

    /// Bytes given beyond those asked for.
    pub fn bytes(&self) -> u64 {
        self.allocated.saturating_sub(self.requested)
    }
}
