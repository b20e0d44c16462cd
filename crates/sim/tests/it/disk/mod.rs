//! Disks: elevators as scripts, waits behind a streaming writer, slices, and random programs.

mod device;
mod elevators;
mod pools;
mod random;
mod streams;

use slablab_model::Ps;
use slablab_model::disk::{Card, Disk, DiskKind, Fixed, Flash, Rotating};

pub(crate) const MS: Ps = 1_000_000_000;

/// A disk of 2001 by round numbers: 7,200 turns a minute, 24 to 12 MB/s.
pub(crate) fn ide() -> Rotating {
    Rotating {
        turn: 8_333_333_333,
        heads: 4,
        seek_track: MS,
        seek_average: 9 * MS,
        seek_full: 18 * MS,
        seek_write: MS,
        outer: 24_000_000,
        inner: 12_000_000,
        interface: 66_000_000,
        overhead: MS / 5,
        ahead: 128 << 10,
        write_cache: 0,
    }
}

/// One disk of each kind: with and without tags, with and without a write cache.
pub(crate) fn disks() -> Vec<(&'static str, Disk)> {
    let disk = |depth, rotational, kind| Disk { bytes: 20 << 30, depth, rotational, kind };
    let card = Card {
        read: MS,
        write: MS,
        read_rate: 20_000_000,
        write_rate: 10_000_000,
        unit: 4 << 20,
        open_units: 2,
        unit_copy: 100 * MS,
    };
    let flash = Flash { read: MS / 10, write: MS / 50, read_rate: 3_000_000_000, write_rate: 2_000_000_000 };
    let fixed = Fixed { request: MS / 10, kib: MS / 100, write_limit: Some(24_000_000) };
    vec![
        ("ide", disk(1, true, DiskKind::Rotating(Rotating { write_cache: 2 << 20, ..ide() }))),
        ("ide without cache", disk(1, true, DiskKind::Rotating(ide()))),
        ("scsi", disk(16, true, DiskKind::Rotating(ide()))),
        ("scsi with cache", disk(16, true, DiskKind::Rotating(Rotating { write_cache: 64 << 10, ..ide() }))),
        ("card", disk(1, false, DiskKind::Card(card))),
        ("flash", disk(32, false, DiskKind::Flash(flash))),
        ("fixed", disk(4, true, DiskKind::Fixed(fixed))),
    ]
}
