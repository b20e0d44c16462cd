//! Where the time of a run went, by CPU and by lock.

use crate::heap::Heap;
use crate::locks::{
    EntryLock, FileTableLock, MmapLock, OpenFilesLock, PipeMutex, QueueLock, ReceiveQueue, TcpSocket,
    UdpReceiveQueue,
};
use slablab_model::{LockTimes, Ps, Spent, Timed};
use slablab_platform::{CpuId, Rank, rank};
use slablab_slabs::FunctionCosts;
use std::collections::BTreeMap;

/// Where the time of each CPU went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// How long the counted part took.
    pub elapsed: Ps,
    /// The CPUs that take part.
    pub cpus: Vec<CpuId>,
    /// How each of them spent the time, by [`Spent`]; what is missing to `elapsed` is idle time.
    pub spent: Vec<[Ps; Spent::COUNT]>,
    /// How long each of them waited for the locks of a rank, by the rank's name; only ranks with waits.
    pub waits: Vec<(&'static str, Vec<Ps>)>,
    /// What each function cost of an engine that reports its own code, by name.
    pub functions: BTreeMap<String, FunctionCosts>,
}

/// A rank's level, its name, how long calls on a CPU waited for its locks, and what its locks did.
type Waited = (u8, &'static str, fn(CpuId) -> Ps, fn() -> LockTimes);

const fn waited<R: Rank>() -> Waited {
    (R::LEVEL, R::NAME, Timed::lock_waits::<R>, Timed::lock_times::<R>)
}

/// The ranks of all locks of a simulated kernel.
const RANKS: &[Waited] = &[
    waited::<rank::Alien>(),
    waited::<rank::NodeList>(),
    waited::<rank::Heap>(),
    waited::<rank::PageList>(),
    waited::<rank::RemoteFree>(),
    waited::<rank::Barn>(),
    waited::<rank::Zone>(),
    waited::<rank::Debug>(),
    waited::<ReceiveQueue>(),
    waited::<PipeMutex>(),
    waited::<UdpReceiveQueue>(),
    waited::<QueueLock>(),
    waited::<MmapLock>(),
    waited::<FileTableLock>(),
    waited::<OpenFilesLock>(),
    waited::<EntryLock>(),
    waited::<TcpSocket>(),
];

/// The name of the locks of a level.
pub(crate) fn lock_name(level: u8) -> String {
    let rank = RANKS.iter().find(|rank| rank.0 == level);
    rank.map_or_else(|| format!("lock of level {level}"), |rank| rank.1.into())
}

/// What the locks of each rank did since the machine's start, by the rank's name.
pub(crate) fn lock_times() -> Vec<(&'static str, LockTimes)> {
    RANKS.iter().map(|(_, name, _, times)| (*name, times())).collect()
}

impl Profile {
    /// The times of these CPUs from the machine's start until `at`, and what the functions of the heap's
    /// engine cost.
    pub(crate) fn until(at: Ps, cpus: impl IntoIterator<Item = CpuId>, heap: &dyn Heap) -> Profile {
        let cpus: Vec<CpuId> = cpus.into_iter().collect();
        let spent = cpus.iter().map(|cpu| Timed::spent(*cpu)).collect();
        let of = |(_, name, waits, _): &Waited| (*name, cpus.iter().map(|cpu| waits(*cpu)).collect());
        let waits = RANKS.iter().map(of).collect();
        let mut functions = BTreeMap::new();
        heap.functions(&mut |name, costs| {
            functions.insert(name.to_string(), costs);
        });
        Profile { elapsed: at, spent, waits, cpus, functions }
    }

    /// What came after `then`, which is of the same CPUs.
    pub(crate) fn since(mut self, then: &Profile) -> Profile {
        self.elapsed -= then.elapsed;
        for (now, then) in self.spent.iter_mut().flatten().zip(then.spent.iter().flatten()) {
            *now -= then;
        }
        let before = then.waits.iter().flat_map(|(_, waits)| waits);
        for (now, then) in self.waits.iter_mut().flat_map(|(_, waits)| waits).zip(before) {
            *now -= then;
        }
        for (name, then) in &then.functions {
            self.functions.entry(name.clone()).and_modify(|now| *now -= *then);
        }
        self.functions.retain(|_, costs| costs.ps > 0);
        self.waits.retain(|(_, waits)| waits.iter().any(|wait| *wait > 0));
        self
    }

    /// Time of all CPUs of one kind.
    pub fn sum(&self, kind: Spent) -> Ps {
        self.spent.iter().map(|spent| spent[kind as usize]).sum()
    }

    /// Time in which the CPUs did nothing.
    pub fn idle(&self) -> Ps {
        let busy = |spent: &[Ps; Spent::COUNT]| spent.iter().sum::<Ps>();
        self.spent.iter().map(|spent| self.elapsed.saturating_sub(busy(spent))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wait is recorded by its level: two ranks of one level would have one name.
    #[test]
    fn each_level_has_one_lock() {
        for (at, rank) in RANKS.iter().enumerate() {
            assert!(RANKS[..at].iter().all(|other| other.0 != rank.0), "{} is level {}", rank.1, rank.0);
            assert_eq!(lock_name(rank.0), rank.1);
        }
    }
}
