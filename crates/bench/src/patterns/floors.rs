//! Floors: the machine's cost of the steps that allocators consist of.

use super::{Contestant, Group, Run, Workload};
use crate::clock::measured;
use crate::freelist::{Listed, fill};
use crate::subject::Role;
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::*};

pub(super) fn workloads() -> Vec<Workload> {
    let table: [(&str, &str, u64, Run); 7] = [
        ("loop", "an empty turn", 20_000_000, |task| {
            Ok(measured(task.ops, |ops| {
                for turn in 0..ops {
                    black_box(turn);
                }
            }))
        }),
        ("tls-list-pair", "a list per thread: one pop, then one push", 10_000_000, |task| {
            fill(4, 64);
            Ok(measured(task.ops, |ops| (0..ops).for_each(|_| drop(Listed::pop()))))
        }),
        ("tls-list-four", "a list per thread: four pops, then four pushes; per pair", 10_000_000, |task| {
            fill(4, 64);
            Ok(measured(task.ops, |ops| {
                for _ in 0..ops / 4 {
                    drop([Listed::pop(), Listed::pop(), Listed::pop(), Listed::pop()]);
                }
            }))
        }),
        ("add", "an addition in memory", 10_000_000, |task| {
            let word = AtomicU64::new(0);
            Ok(measured(task.ops, |ops| {
                for _ in 0..ops {
                    let word = black_box(&word);
                    word.store(word.load(Relaxed) + 1, Relaxed);
                }
            }))
        }),
        ("atomic-add", "an atomic addition without contention", 5_000_000, |task| {
            let word = AtomicU64::new(0);
            Ok(measured(task.ops, |ops| {
                for _ in 0..ops {
                    black_box(&word).fetch_add(1, Relaxed);
                }
            }))
        }),
        ("mutex", "a mutex locked and unlocked without contention", 2_000_000, |task| {
            let word = Mutex::new(0u64);
            Ok(measured(task.ops, |ops| {
                (0..ops).for_each(|_| *black_box(&word).lock().expect("no thread panics") += 1);
            }))
        }),
        ("page", "the first touch of a page of new memory", 50_000, |task| {
            /// Larger than the size from which the C library always maps and unmaps.
            const BYTES: usize = 64 << 20;
            const PAGE: usize = 4096;
            Ok(measured(task.ops.clamp(8, (BYTES / PAGE) as u64), |pages| {
                let mut memory = vec![0u8; BYTES];
                memory.chunks_mut(PAGE).take(pages as usize).for_each(|page| page[0] = 1);
                black_box(&mut memory);
            }))
        }),
    ];
    let workload = |(name, about, ops, run): (&'static str, &'static str, u64, Run)| Workload {
        name,
        about,
        group: Group::Floors,
        ops,
        cpus: 1,
        contestants: vec![Contestant { name: "machine", role: Role::Floor, evidence: "no allocator", run }],
    };
    table.into_iter().map(workload).collect()
}
