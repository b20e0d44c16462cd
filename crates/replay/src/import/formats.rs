//! The formats of events, from elsewhere than the recording.

use std::path::Path;

use slablab_readers::compressed::Decompressed;
use slablab_readers::event::FormatText;
use slablab_readers::perfdata::PerfData;
use slablab_readers::{Source, kmem, tracepoint::Format};
use slablab_report::error::{At, Error, Result};
use slablab_report::{Limit, files, read_text_at_most};

/// The formats of kmem events that `path` has: a perf.data, or a folder of tracefs.
pub(super) fn read(path: &Path) -> Result<Vec<FormatText>> {
    if !path.is_dir() {
        let open = || Decompressed::new(files::open(path)?);
        let recording = PerfData::reopen(open).at(path)?;
        return Ok(recording.header().formats.clone());
    }
    let mut found = Vec::new();
    for folder in [path.to_path_buf(), path.join("kmem"), path.join("events/kmem")] {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let file = entry.at(&folder)?.path().join("format");
            if !file.is_file() {
                continue;
            }
            let text = read_text_at_most(&file, Limit::mib("the format of an event", 1))?;
            if Format::parse(&text).is_ok_and(|format| kmem::is_known(&format.name)) {
                found.push(FormatText { system: "kmem".into(), text });
            }
        }
    }
    if found.is_empty() {
        let what = "no formats of kmem events: expected a perf.data of the recorded kernel, or its folder \
                    /sys/kernel/tracing/events/kmem";
        return Err(Error::new(path, what));
    }
    Ok(found)
}
