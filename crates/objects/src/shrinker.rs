//! Shrinkers: what a program registers to be asked when memory is short, or when a cache comes to its limit.
//!
//! A program that keeps objects for later (a cache of its own, a list of spares) says here how to let some of them go. It is
//! asked, in the thread that wants memory and with no lock held, when a cache finds no memory, when a cache is at its limit and
//! the shrinker named it, and by [`shrink_all`]. Nobody is asked twice at once in one thread: what a shrinker frees may well
//! allocate.

use slablab_malloc::process;
use slablab_slabs::CacheId;
use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Asked for so many objects; answers how many it let go.
type Ask = dyn Fn(u64) -> u64 + Send + Sync;

struct Entry {
    number: u64,
    cache: Option<CacheId>,
    ask: Arc<Ask>,
}

struct Registered {
    entries: Vec<Entry>,
    next: u64,
}

static REGISTERED: Mutex<Registered> = Mutex::new(Registered { entries: Vec::new(), next: 0 });

fn registered() -> MutexGuard<'static, Registered> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A registered shrinker; dropping it ends that. A call that runs in another thread then may still end later.
#[derive(Debug)]
#[must_use = "a shrinker is registered until this is dropped"]
pub struct Shrinker(u64);

impl Shrinker {
    /// Registers `ask`, which is told how many objects are wanted and answers how many it let go, in whatever it keeps.
    pub fn register(ask: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Shrinker {
        Self::of(None, ask)
    }

    /// The same, asked too when that cache is at its limit.
    pub(crate) fn of(cache: Option<CacheId>, ask: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Shrinker {
        let ask = Arc::new(ask);
        let mut registered = registered();
        let number = registered.next;
        registered.next += 1;
        registered.entries.push(Entry { number, cache, ask });
        Shrinker(number)
    }
}

impl Drop for Shrinker {
    fn drop(&mut self) {
        let mut registered = registered();
        let found = registered.entries.iter().position(|entry| entry.number == self.0);
        // Dropped without the lock: what it captured is the program's.
        let _entry = found.map(|index| registered.entries.swap_remove(index));
        drop(registered);
    }
}

thread_local! {
    static ASKING: Cell<bool> = const { Cell::new(false) };
}

/// This thread asks; until it is dropped, also when a shrinker panics.
struct Asking;

impl Asking {
    fn begin() -> Option<Asking> {
        (!ASKING.replace(true)).then_some(Asking)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        ASKING.set(false);
    }
}

/// The shrinker registered first after number `after`, of one cache or of any. No memory is needed: there may be none.
fn next(after: Option<u64>, cache: Option<CacheId>) -> Option<(u64, Arc<Ask>)> {
    let registered = registered();
    let wanted = |entry: &&Entry| {
        (cache.is_none() || entry.cache == cache) && after.is_none_or(|after| entry.number > after)
    };
    let entry = registered.entries.iter().filter(wanted).min_by_key(|entry| entry.number)?;
    Some((entry.number, entry.ask.clone()))
}

/// Asks the shrinkers of one cache, or all, for `count` objects. Answers how many were let go.
#[cold]
pub(crate) fn ask(cache: Option<CacheId>, count: u64) -> u64 {
    let Some(_asking) = Asking::begin() else { return 0 };
    let (mut given, mut last) = (0u64, None);
    while given < count
        && let Some((number, ask)) = next(last, cache)
    {
        last = Some(number);
        given = given.saturating_add(ask(count - given));
    }
    given
}

/// Asks every shrinker for all it can let go, and gives back what heaps and caches keep for nobody. Answers the bytes that went
/// back to the system.
pub fn shrink_all() -> u64 {
    ask(None, u64::MAX);
    process::trim()
}
