//! What a run counts between two moments.

use super::Kernel;
use crate::heap::CacheNumber;
use crate::kernel::tally::{CacheTally, Outcome};
use crate::record::profile::Profile;
use slablab_model::{LockTimes, Timed};
use slablab_platform::{CpuId, Event, Rank, Topology, rank};

/// The counts at one moment.
pub struct Mark {
    profile: Profile,
    counts: [u64; 6],
    lines_moved: u64,
}

/// What the locks of a rank did so far.
pub(crate) fn locks_of<R: Rank>() -> (&'static str, LockTimes) {
    (R::NAME, Timed::lock_times::<R>())
}

impl Kernel {
    /// The counts now. A recording begins here.
    pub fn mark(&self) -> Mark {
        self.restart_recording();
        self.counts()
    }

    fn counts(&self) -> Mark {
        let tally = self.tally.borrow();
        Mark {
            profile: Profile::until(Timed::clock(), (0..Timed::cpus()).map(CpuId), &*self.heap),
            counts: [
                tally.switches,
                tally.preemptions,
                tally.wakeups,
                tally.migrations,
                tally.system_calls,
                tally.messages,
            ],
            lines_moved: Timed::lines_moved(),
        }
    }

    /// Counts a message that was read.
    #[inline]
    pub(crate) fn count_message(&self) {
        self.tally.borrow_mut().messages += 1;
    }

    /// What happened since `since`; caches and locks from the start.
    pub fn outcome(&self, since: &Mark) -> Outcome {
        let now = self.counts();
        let counts: [u64; 6] = std::array::from_fn(|at| now.counts[at] - since.counts[at]);
        let [switches, preemptions, wakeups, migrations, system_calls, messages] = counts;
        let profile = now.profile.since(&since.profile);
        let (mapped, mapped_max) = Timed::mapped_frames();
        Outcome {
            elapsed: profile.elapsed,
            spent: profile.spent.clone(),
            profile,
            switches,
            preemptions,
            wakeups,
            migrations,
            system_calls,
            messages,
            allocating: self.tally.borrow().allocating,
            lines_moved: now.lines_moved - since.lines_moved,
            caches: self.cache_tallies(),
            locks: vec![
                locks_of::<rank::Alien>(),
                locks_of::<rank::NodeList>(),
                locks_of::<rank::Heap>(),
                locks_of::<rank::PageList>(),
                locks_of::<rank::RemoteFree>(),
                locks_of::<rank::Barn>(),
                locks_of::<rank::Zone>(),
            ],
            slab_bytes_booted: self.booted_bytes,
            slab_bytes: (mapped << Timed::page_shift(), mapped_max << Timed::page_shift()),
        }
    }

    fn cache_tallies(&self) -> Vec<CacheTally> {
        let tally = self.tally.borrow();
        let with_events = |(number, cache): (usize, &CacheTally)| {
            let number = CacheNumber(number as u16);
            let count = |event: &Event| (*event, self.heap.counted(number, *event));
            let events = Event::ALL.iter().map(count).filter(|(_, count)| *count > 0).collect();
            CacheTally { events, ..cache.clone() }
        };
        let used = tally.caches.iter().enumerate().filter(|(_, cache)| cache.allocs > 0);
        used.map(with_events).collect()
    }
}
