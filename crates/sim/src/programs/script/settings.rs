//! Files of /proc/sys/vm and /sys that a script may write: which there are, since which release, which values
//! they take, and what they change.
//!
//! A value that the kernel would refuse is an error before the run: the recording program would note it and
//! go on. Releases and limits are from memory.

use crate::kernel::Task;
use crate::kernel::era::Era;
use crate::kernel::tally::Failed;
use crate::memory::{Here, Memory};
use slablab_pages::Tuning;
use slablab_vm::shrinker::drop_slab;
use slablab_vm::{DirtyLimit, Settings, compact, mm};
use std::ops::RangeInclusive;
use std::rc::Rc;

/// Bytes of a page.
const PAGE: u64 = 4_096;
/// Least pages of a group: a program needs some at once, with their tables.
const LIMIT_LEAST: u64 = 64;
/// Nanoseconds of a hundredth of a second.
const CENTISECOND: u64 = 10_000_000;

/// What settings depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// The kernel's release.
    pub(super) era: Era,
    /// KiB of the machine's memory.
    pub(super) memory_kib: u64,
    /// Its page replacement has generations (`lru_gen`) when the script begins.
    pub(super) has_generations: bool,
    /// A script can turn them on and off.
    pub(super) can_switch: bool,
}

/// A file: its path, the release that brought it, and what a write does.
struct File {
    path: &'static str,
    since: (u16, u16, u16),
    value: Value,
}

/// The values of a file.
enum Value {
    /// Numbers that are kept, and what a write changes.
    Number(RangeInclusive<u64>, fn(&Memory, u64)),
    /// Numbers that ask for something at once, and what a write does.
    Ask(RangeInclusive<u64>, fn(&Rc<Memory>, &Task, u64)),
    /// Bytes that all programs may have together, or `max`.
    Limit,
    /// Words that say what the model does anyway.
    Words(&'static [&'static str]),
    /// Whether generations are on, and which parts of them.
    Generations,
}

const fn file(path: &'static str, since: (u16, u16, u16), value: Value) -> File {
    File { path, since, value }
}

fn change(memory: &Memory, change: impl FnOnce(&mut Settings)) {
    memory.vm.with(|state| change(&mut state.settings));
}

fn tune(memory: &Memory, change: impl FnOnce(&mut Tuning)) {
    let pages = memory.kernel.heap.pages();
    let mut tuning = pages.tuning();
    change(&mut tuning);
    pages.tune(tuning);
}

/// The file that turns generations on and off.
pub(super) const GENERATIONS: &str = "/sys/kernel/mm/lru_gen/enabled";

const ANY: RangeInclusive<u64> = 0..=u32::MAX as u64;

/// The newest row of a path whose release is not later than the kernel's holds.
const FILES: &[File] = &[
    file("/proc/sys/vm/swappiness", (2, 6, 0), Value::Number(0..=100, set_swappiness)),
    file("/proc/sys/vm/swappiness", (5, 8, 0), Value::Number(0..=200, set_swappiness)),
    // A window of more than 256 pages is not modelled.
    file(
        "/proc/sys/vm/page-cluster",
        (2, 2, 0),
        Value::Number(0..=8, |of, value| change(of, |settings| settings.page_cluster = value as u32)),
    ),
    file(
        "/proc/sys/vm/vfs_cache_pressure",
        (2, 6, 0),
        Value::Number(ANY, |of, value| change(of, |settings| settings.vfs_cache_pressure = value as u32)),
    ),
    file(
        "/proc/sys/vm/dirty_ratio",
        (2, 6, 0),
        Value::Number(0..=100, |of, percent| {
            change(of, |settings| settings.dirty_limit = Some(DirtyLimit::Percent(percent as u32)));
        }),
    ),
    file(
        "/proc/sys/vm/dirty_background_ratio",
        (2, 6, 0),
        Value::Number(0..=100, |of, percent| {
            change(of, |settings| settings.dirty_background = Some(DirtyLimit::Percent(percent as u32)));
        }),
    ),
    file(
        "/proc/sys/vm/dirty_bytes",
        (2, 6, 29),
        Value::Number(2 * PAGE..=1 << 50, |of, bytes| {
            change(of, |settings| settings.dirty_limit = Some(DirtyLimit::Pages(bytes.div_ceil(PAGE))));
        }),
    ),
    file(
        "/proc/sys/vm/dirty_background_bytes",
        (2, 6, 29),
        Value::Number(1..=1 << 50, |of, bytes| {
            change(of, |settings| settings.dirty_background = Some(DirtyLimit::Pages(bytes.div_ceil(PAGE))));
        }),
    ),
    file(
        "/proc/sys/vm/dirty_expire_centisecs",
        (2, 6, 0),
        Value::Number(ANY, |of, value| {
            change(of, |settings| settings.dirty_expire = value * CENTISECOND);
        }),
    ),
    file(
        "/proc/sys/vm/dirty_writeback_centisecs",
        (2, 6, 0),
        Value::Number(0..=8_640_000, |of, value| {
            of.set_writeback_every(value * CENTISECOND * 1_000);
        }),
    ),
    file(
        "/proc/sys/vm/drop_caches",
        (2, 6, 16),
        Value::Ask(1..=4, |memory, task, value| {
            task.syscall(|| drop_caches(memory, &Here::new(memory, task), value as u32));
        }),
    ),
    file(
        "/proc/sys/vm/min_free_kbytes",
        (2, 6, 0),
        Value::Number(ANY, |of, value| {
            tune(of, |tuning| tuning.min_free_kib = value as u32);
        }),
    ),
    file("/proc/sys/vm/watermark_scale_factor", (4, 6, 0), Value::Number(1..=1_000, set_scale_factor)),
    file("/proc/sys/vm/watermark_scale_factor", (5, 18, 0), Value::Number(1..=3_000, set_scale_factor)),
    file(
        "/proc/sys/vm/watermark_boost_factor",
        (5, 0, 0),
        Value::Number(0..=65_535, |of, value| {
            tune(of, |tuning| tuning.boost_factor = value as u16);
        }),
    ),
    file(
        "/proc/sys/vm/zone_reclaim_mode",
        (2, 6, 16),
        Value::Number(0..=7, |of, mode| {
            change(of, |settings| settings.zone_reclaim_mode = Some(mode as u8));
            of.kernel.heap.pages().set_reclaims_near(mode > 0);
        }),
    ),
    file(
        "/proc/sys/vm/min_unmapped_ratio",
        (2, 6, 18),
        Value::Number(0..=100, |of, percent| {
            change(of, |settings| settings.min_unmapped_ratio = percent as u8);
        }),
    ),
    file(
        "/proc/sys/vm/min_slab_ratio",
        (2, 6, 19),
        Value::Number(0..=100, |of, percent| change(of, |settings| settings.min_slab_ratio = percent as u8)),
    ),
    file(
        "/proc/sys/vm/compact_memory",
        (2, 6, 35),
        Value::Ask(1..=1, |memory, task, _| {
            let here = Here::new(memory, task);
            task.syscall(|| memory.nodes().for_each(|node| compact::whole(&memory.vm, &here, node)));
        }),
    ),
    file("/sys/fs/cgroup/script/memory.max", (4, 5, 0), Value::Limit),
    // Nothing counts what is mapped: with 0 and 1 a kernel refuses no mapping that fits memory and swap.
    file("/proc/sys/vm/overcommit_memory", (2, 4, 0), Value::Words(&["0", "1"])),
    // Counters are exact at any time.
    file("/proc/sys/vm/stat_refresh", (4, 7, 0), Value::Words(&["1"])),
    file(
        "/sys/block/vda/queue/read_ahead_kb",
        (2, 6, 10),
        Value::Number(0..=1 << 20, |of, kib| {
            change(of, |settings| settings.read_ahead_pages = Some((kib * 1_024 / PAGE) as u32));
        }),
    ),
    // The disk with swap: `page-cluster` says how swap is read ahead.
    file("/sys/block/vdb/queue/read_ahead_kb", (2, 6, 10), Value::Number(0..=1 << 20, |_, _| {})),
    file(GENERATIONS, (6, 1, 0), Value::Generations),
    file(
        "/sys/kernel/mm/lru_gen/min_ttl_ms",
        (6, 1, 0),
        Value::Number(ANY, |of, value| {
            change(of, |settings| settings.min_ttl_ms = Some(value as u32));
        }),
    ),
    // No program of a script asks for huge pages.
    file("/sys/kernel/mm/transparent_hugepage/enabled", (2, 6, 38), Value::Words(&["never", "madvise"])),
];

fn set_swappiness(memory: &Memory, value: u64) {
    change(memory, |settings| settings.swappiness = value as u32);
}

fn set_scale_factor(memory: &Memory, value: u64) {
    tune(memory, |tuning| tuning.scale_factor = value as u16);
}

/// The file of a path that a release has.
fn find(path: &str, era: Era) -> Option<&'static File> {
    let is_there = |of: &&File| of.path == path && era.since(of.since.0, of.since.1, of.since.2);
    FILES.iter().rev().find(is_there)
}

/// A number as the kernel reads it: decimal, or hexadecimal after 0x.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Whether a line of a script can be run.
///
/// # Errors
/// What is not modelled, and what is.
pub(super) fn check(path: &str, value: &str, known: &Known) -> Result<(), String> {
    let Some(of) = find(path, known.era) else {
        let later = FILES.iter().find(|of| of.path == path);
        return Err(match later {
            Some(File { since: (a, b, c), .. }) => {
                let (patch, release) =
                    (if *c > 0 { format!(".{c}") } else { String::new() }, known.era.release);
                format!("{path} came with {a}.{b}{patch}: the kernel is of {release}")
            }
            None => format!("{path} is not modelled: expected one of {}", paths(known.era).join(", ")),
        });
    };
    let expected = |what: String| Err(format!("{path} {value}: expected {what}"));
    match &of.value {
        Value::Words(words) if words.contains(&value) => Ok(()),
        Value::Words(words) => expected(format!("{}, which the model does", words.join(" or "))),
        Value::Limit => match limit(value) {
            None => expected("bytes, as 64M, or max".into()),
            Some(Some(pages)) if pages < LIMIT_LEAST => expected(format!("at least {} KiB", LIMIT_LEAST * 4)),
            Some(_) => Ok(()),
        },
        Value::Generations => check_generations(value, known).or_else(expected),
        Value::Number(values, _) | Value::Ask(values, _) => {
            let most = if path.ends_with("min_free_kbytes") { known.memory_kib / 2 } else { *values.end() };
            match number(value) {
                None => Err(format!("{path} is a number, but {value:?} is none")),
                Some(number) if (*values.start()..=most).contains(&number) => Ok(()),
                Some(_) => expected(format!("{} to {most}", values.start())),
            }
        }
    }
}

/// Pages of a limit: bytes, perhaps with K, M or G, rounded down; `Some(None)`: `max`.
fn limit(value: &str) -> Option<Option<u64>> {
    if value == "max" {
        return Some(None);
    }
    let units = [("K", 10), ("M", 20), ("G", 30), ("k", 10), ("m", 20), ("g", 30)];
    let unit = units.iter().find_map(|(unit, shift)| Some((value.strip_suffix(unit)?, *shift)));
    let (digits, shift) = unit.unwrap_or((value, 0));
    let bytes = number(digits)?.checked_mul(1 << shift)?;
    Some(Some(bytes / PAGE))
}

/// The bits of `y`, `n`, or a mask.
fn generation_bits(value: &str) -> Option<u8> {
    match value {
        "y" | "Y" => Some(7),
        "n" | "N" => Some(0),
        _ => number(value).and_then(|bits| u8::try_from(bits & 7).ok()),
    }
}

fn check_generations(value: &str, known: &Known) -> Result<(), String> {
    let bits = generation_bits(value).ok_or("y, n or a number")?;
    if known.can_switch || (bits & 1 == 1) == known.has_generations {
        return Ok(());
    }
    let only = if known.has_generations { "y" } else { "n" };
    Err(format!("{only}: the run's policy has no other one of its kernel; expected perhaps --vm vm@6.1"))
}

/// The paths that a release has.
fn paths(era: Era) -> Vec<&'static str> {
    let mut paths: Vec<&str> =
        FILES.iter().map(|of| of.path).filter(|path| find(path, era).is_some()).collect();
    paths.dedup();
    paths
}

/// Whether a machine can have a value in this file before a script: those that keep a number.
pub fn is_setting(path: &str) -> bool {
    FILES.iter().any(|of| of.path == path && matches!(of.value, Value::Number(..)))
}

/// Writes the settings that the guest has before the script.
///
/// # Errors
/// A file or a value that the kernel has not.
pub(super) fn boot(memory: &Memory, known: &Known) -> Result<(), Failed> {
    for (path, value) in &memory.guest.set {
        check(path, &value.to_string(), known).map_err(Failed::Machine)?;
        if let Some(File { value: Value::Number(_, set), .. }) = find(path, known.era) {
            set(memory, u64::from(*value));
        }
    }
    Ok(())
}

/// Writes a value that [`check`] allows.
pub(super) fn set(memory: &Rc<Memory>, task: &Task, path: &str, value: &str) {
    let of = find(path, memory.kernel.era).expect("settings are checked before the run");
    let number = || number(value).expect("values are checked before the run");
    match &of.value {
        Value::Number(_, set) => set(memory, number()),
        Value::Ask(_, ask) => ask(memory, task, number()),
        Value::Generations => {
            let bits = generation_bits(value).expect("values are checked before the run");
            memory.vm.with(|state| {
                state.settings.lru_gen = Some(bits);
                memory.vm.policy.switch(state, bits & 1 == 1);
            });
        }
        Value::Limit => {
            let pages = limit(value).expect("values are checked before the run");
            memory.vm.with(|state| state.settings.group_pages = pages);
            task.syscall(|| memory.shrink_group(&Here::new(memory, task), task));
        }
        Value::Words(_) => {}
    }
}

/// `drop_caches`: 1, clean pages of files; 2, slab objects; 3, both.
pub(super) fn drop_caches(memory: &Rc<Memory>, here: &Here, what: u32) {
    if what & 1 != 0 {
        mm::drop_pagecache(&memory.vm, here);
    }
    if what & 2 != 0 {
        drop_slab(&memory.vm, here);
    }
}
