//! A limit of memory (`SLABLAB_LIMIT`): near it the process gives back what it keeps, before the kernel ends
//! the process.
//!
//! The limit is soft: no request is refused because of it. Threads on slow paths look, and requests of page
//! frames; [`decide::purges`] says when.

use super::cgroup::{self, Folder, Memory};
use super::decide::{self, Limited};
use super::{purge, upkeep};
use crate::mappings;
use crate::world::Native;
use slablab_platform::{Time, Topology};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

/// What the environment asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    None,
    /// Bytes of the heap and of blocks with a mapping of their own.
    Bytes(u64),
    /// What the process's cgroup may use.
    Cgroup,
    /// What the cgroup of [`Wish::folder`] may use.
    Folder,
}

/// [`Kind`] with its folder.
pub(crate) struct Wish {
    pub(crate) kind: Kind,
    folder: Folder,
}

impl Wish {
    pub(crate) const NONE: Wish = Wish { kind: Kind::None, folder: Folder::NONE };

    /// A value of `SLABLAB_LIMIT`: bytes with or without K, M or G; `cgroup`; `cgroup:FOLDER`.
    pub(crate) fn parse(value: &str) -> Option<Wish> {
        if value == "cgroup" {
            return Some(Wish { kind: Kind::Cgroup, ..Wish::NONE });
        }
        if let Some(path) = value.strip_prefix("cgroup:") {
            let folder = Folder::new(&[path]).filter(|_| path.starts_with('/'))?;
            return Some(Wish { kind: Kind::Folder, folder });
        }
        let unit = match value.chars().last()? {
            'K' => 10,
            'M' => 20,
            'G' => 30,
            _ => 0,
        };
        let digits = if unit == 0 { value } else { &value[..value.len() - 1] };
        let bytes = digits.parse::<u64>().ok()?.checked_mul(1 << unit)?;
        (bytes > 0).then_some(Wish { kind: Kind::Bytes(bytes), ..Wish::NONE })
    }
}

/// The limit in bytes; 0 where the folder's cgroup has it.
static BYTES: AtomicU64 = AtomicU64::new(0);
static FOLDER: OnceLock<Folder> = OnceLock::new();
/// Whether there is a limit: one load where there is none.
static IS_ON: AtomicBool = AtomicBool::new(false);
/// Whether a thread looks.
static LOOKS: AtomicBool = AtomicBool::new(false);

/// Between two looks, unless the heap grows.
const LOOK_NS: u64 = 20_000_000;
/// The heap grew by this part of the limit: that is a reason to look.
const GROWN_FRACTION: u64 = 128;

/// At the last look: the time, the bytes of the heap, the limit, how long tasks had waited.
static LOOKED_NS: AtomicU64 = AtomicU64::new(0);
static LOOKED_HEAP: AtomicU64 = AtomicU64::new(0);
static LIMIT: AtomicU64 = AtomicU64::new(0);
static WAITED_US: AtomicU64 = AtomicU64::new(0);
/// After the last purge: the time, and what was used then.
static PURGED_NS: AtomicU64 = AtomicU64::new(0);
static LEFT: AtomicU64 = AtomicU64::new(0);

/// Sets the limit. Called once, when the heap started. `false`: the process has no cgroup with a limit file.
#[inline]
pub(crate) fn start(wish: &Wish) -> bool {
    matches!(wish.kind, Kind::None) || begin(wish)
}

/// [`start`] with a limit. A function of its own: few processes have one, and need its code resident.
#[cold]
#[inline(never)]
fn begin(wish: &Wish) -> bool {
    let folder = match wish.kind {
        Kind::None => return true,
        Kind::Bytes(bytes) => {
            BYTES.store(bytes, Relaxed);
            None
        }
        Kind::Folder => Some(wish.folder),
        Kind::Cgroup => match cgroup::own() {
            Some(folder) => Some(folder),
            None => return false,
        },
    };
    if let Some(folder) = folder {
        let _ = FOLDER.set(folder);
    }
    IS_ON.store(true, Relaxed);
    true
}

/// Looks whether the process comes near its limit, with a request of so many bytes; then gives memory back.
/// The calling thread holds no lock.
#[inline]
pub(super) fn look(request: u64) {
    if IS_ON.load(Relaxed) {
        look_cold(request);
    }
}

#[cold]
fn look_cold(request: u64) {
    let (heap, now) = (upkeep::held_frames() << Native::page_shift(), Native::now());
    let grown = (heap + request).saturating_sub(LOOKED_HEAP.load(Relaxed));
    let elapsed_ns = now.saturating_sub(LOOKED_NS.load(Relaxed));
    if elapsed_ns < LOOK_NS && grown <= LIMIT.load(Relaxed) / GROWN_FRACTION || LOOKS.swap(true, Acquire) {
        return;
    }
    LOOKED_NS.store(now, Relaxed);
    LOOKED_HEAP.store(heap, Relaxed);
    if let Some(memory) = memory(heap) {
        decide(memory, request, now, elapsed_ns);
    }
    LOOKS.store(false, Release);
}

/// What is used, and what may be. `None` if the cgroup has no limit now.
fn memory(heap: u64) -> Option<Memory> {
    match BYTES.load(Relaxed) {
        0 => FOLDER.get()?.memory(),
        limit_bytes => {
            let used_bytes = heap + mappings::totals().1;
            Some(Memory { limit_bytes, used_bytes, waited_us: 0 })
        }
    }
}

fn decide(memory: Memory, request: u64, now: u64, elapsed_ns: u64) {
    let waited_us = memory.waited_us.saturating_sub(WAITED_US.swap(memory.waited_us, Relaxed));
    LIMIT.store(memory.limit_bytes, Relaxed);
    let of = Limited {
        limit: memory.limit_bytes,
        used: memory.used_bytes + request,
        idle: upkeep::idle_frames() << Native::page_shift(),
        left: LEFT.load(Relaxed),
        since_ns: now.saturating_sub(PURGED_NS.load(Relaxed)),
        waits: decide::waits(waited_us, elapsed_ns),
    };
    upkeep::keep_little(decide::is_near(&of));
    if decide::purges(&of) {
        let purged = purge::purge();
        PURGED_NS.store(now, Relaxed);
        LEFT.store(memory.used_bytes.saturating_sub(purged.given_back), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_variable() {
        let kind = |value: &str| Wish::parse(value).map(|wish| wish.kind);
        for (value, expected) in [
            ("1", Some(1)),
            ("512M", Some(512 << 20)),
            ("2G", Some(2 << 30)),
            ("64K", Some(64 << 10)),
            ("0", None),
            ("", None),
            ("M", None),
            ("1T", None),
            ("-1", None),
            ("99999999999G", None),
        ] {
            assert_eq!(kind(value), expected.map(Kind::Bytes), "{value}");
        }
        assert_eq!(kind("cgroup"), Some(Kind::Cgroup));
        assert_eq!(kind("cgroup:/sys/fs/cgroup/a"), Some(Kind::Folder));
        assert_eq!(kind("cgroup:a"), None);
    }
}
