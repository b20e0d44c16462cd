//! Packs on a thread. Three batches exist at most: one being filled, one waiting, one being packed.

use super::{Group, Packing};
use crate::batch::Batch;
use crate::error::Error;
use parquet::file::writer::SerializedFileWriter;
use std::io::Write;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

/// The thread that packs.
pub(super) struct Packer<W: Write + Send + 'static> {
    groups: Option<SyncSender<Group>>,
    empty: Receiver<Batch>,
    thread: Option<JoinHandle<Result<SerializedFileWriter<W>, Error>>>,
}

impl<W: Write + Send + 'static> Packer<W> {
    pub(super) fn start(file: SerializedFileWriter<W>) -> Packer<W> {
        let (groups, waiting) = sync_channel(1);
        let (done, empty) = channel();
        let named = std::thread::Builder::new().name("slablab-pack".into());
        let thread = named.spawn(move || pack(Packing::new(file), waiting, done));
        let thread = thread.expect("the system has another thread for us");
        Packer { groups: Some(groups), empty, thread: Some(thread) }
    }

    /// Hands over a group; an empty batch comes back.
    pub(super) fn give(&mut self, group: Group) -> Result<Batch, Error> {
        let groups = self.groups.as_ref().expect("not stopped");
        match groups.send(group) {
            Ok(()) => Ok(self.empty.try_recv().unwrap_or_default()),
            // The thread has ended, which it does before its time only with an error.
            Err(_) => self.stop().and(Err(Error::Stopped)),
        }
    }

    pub(super) fn stop(&mut self) -> Result<SerializedFileWriter<W>, Error> {
        self.groups = None;
        let thread = self.thread.take().ok_or(Error::Stopped)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl<W: Write + Send + 'static> Drop for Packer<W> {
    fn drop(&mut self) {
        if self.thread.is_some() && !std::thread::panicking() {
            // What it wrote is of no use, and neither is its error.
            let _ = self.stop();
        }
    }
}

fn pack<W: Write + Send>(
    mut packing: Packing<W>,
    groups: Receiver<Group>,
    done: Sender<Batch>,
) -> Result<SerializedFileWriter<W>, Error> {
    for group in groups {
        let batch = packing.pack(group)?;
        // Nobody may be waiting for it any more.
        let _ = done.send(batch);
    }
    Ok(packing.file)
}
