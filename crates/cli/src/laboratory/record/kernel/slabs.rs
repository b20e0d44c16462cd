//! Every slab at the recording's start and at its end.

use serde_json::{Value, json};
use slablab_recorder::kernel::Slabs;
use std::time::Instant;

/// What takes snapshots, and what it took; or why none can be taken.
pub(super) struct Snapshots {
    slabs: Result<Slabs, String>,
    taken: Vec<Taken>,
}

/// A snapshot.
struct Taken {
    /// Its text, compressed.
    packed: Vec<u8>,
    /// How it was, for the description of the recording.
    about: Value,
    ms: u128,
}

/// Which snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    Start = 0,
    End = 1,
}

impl Snapshots {
    /// Before the recorder begins: what this needs of memory is not part of the recording.
    pub(super) fn new(wanted: bool) -> Snapshots {
        let slabs = if wanted { Slabs::open() } else { Err("--no-snapshot".into()) };
        Snapshots { slabs, taken: Vec::new() }
    }

    /// Takes one. Without it the recording goes on as it is.
    pub(super) fn take(&mut self) {
        let Ok(slabs) = &mut self.slabs else { return };
        let began = Instant::now();
        let taken = slabs.snapshot().and_then(|snapshot| {
            let text = snapshot.text();
            let packed = zstd::bulk::compress(text.as_bytes(), 1).map_err(|error| error.to_string())?;
            let sum = |of: fn(&slablab_recorder::kernel::CacheSlabs) -> u64| {
                snapshot.caches.iter().map(of).sum::<u64>()
            };
            let about = json!({
                "began_ns": snapshot.began_ns,
                "ended_ns": snapshot.ended_ns,
                "caches": snapshot.caches.len(),
                "slabs": snapshot.slabs(),
                "unsettled": sum(|cache| cache.unsettled),
                "missed": sum(|cache| cache.missed),
                "text_bytes": text.len(),
                "bytes": packed.len(),
            });
            Ok(Taken { packed, about, ms: began.elapsed().as_millis() })
        });
        match taken {
            Ok(taken) => self.taken.push(taken),
            // One alone is of no use to anybody: the start is, the end is not without it.
            Err(why) => self.slabs = Err(why),
        }
    }

    /// The compressed text of a snapshot; empty if it was not taken.
    pub(super) fn packed(&self, at: At) -> &[u8] {
        self.taken.get(at as usize).map_or(&[], |taken| &taken.packed)
    }

    /// For the description of the recording.
    pub(super) fn about(&self) -> Value {
        let of = |at: At| self.taken.get(at as usize).map(|taken| taken.about.clone());
        json!({
            "by": self.slabs.is_ok().then_some("bpf"),
            "start": of(At::Start),
            "end": of(At::End),
            "why_not": self.slabs.as_ref().err(),
        })
    }

    /// For people: which way the slabs were read, and what it took.
    pub(super) fn sentence(&self) -> String {
        match (&self.slabs, &self.taken[..]) {
            (Ok(_), [start, end]) => {
                let of = |name: &str| {
                    start.about[name].as_u64().unwrap_or(0) + end.about[name].as_u64().unwrap_or(0)
                };
                let mut said = format!(
                    "{} at the start, {} at the end, by BPF: {} and {} ms, {:.1} MB",
                    start.about["slabs"],
                    end.about["slabs"],
                    start.ms,
                    end.ms,
                    of("bytes") as f64 / 1e6
                );
                if of("unsettled") + of("missed") > 0 {
                    said += &format!("; {} changed meanwhile, {} missed", of("unsettled"), of("missed"));
                }
                said
            }
            (Ok(_), _) => "none".into(),
            (Err(why), _) => format!("not read: {why}"),
        }
    }
}
