//! Shrinkers: functions of the program that the process calls when memory is short, or when a cache is at its
//! limit.
//!
//! A program that keeps objects for later (a cache of its own, a list of spares) registers a function that
//! lets some of them go. The function runs in the thread that wants memory, with no lock held: when a cache
//! finds no memory, when a cache is at its limit and the shrinker was registered for that cache, and in
//! [`shrink_all`]. A thread that is inside a shrinker's function calls no other one: the function may
//! allocate.
//!
//! [`REGISTERED`] is a lock inside of the fork gate, so that no fork copies it while a thread holds it. No
//! memory is allocated or freed under it: memory may be short, and the allocator takes locks of its own.

use slablab_malloc::shared;
use slablab_native::{Sleep, system};
use slablab_slabs::CacheId;
use std::cell::Cell;
use std::sync::Arc;

/// A shrinker's function: takes the number of objects that are wanted, returns the number that it let go.
type Ask = dyn Fn(u64) -> u64 + Send + Sync;

struct Entry {
    number: u64,
    /// The cache whose limit calls the function; `None` if only a lack of memory does.
    cache: Option<CacheId>,
    ask: Arc<Ask>,
    /// Threads that are inside the function.
    calls: u32,
    /// [`Shrinker`]'s drop waits for those threads: no call begins any more.
    leaves: bool,
}

struct Registered {
    /// In no order.
    entries: Vec<Entry>,
    /// The number of the next entry. 0 stands for no entry.
    next: u64,
}

static REGISTERED: Sleep<Registered> = Sleep::new(Registered { entries: Vec::new(), next: 1 });

thread_local! {
    /// The number of the entry whose function this thread is inside; 0 for none.
    static INSIDE: Cell<u64> = const { Cell::new(0) };
}

/// A registered shrinker. Dropping it unregisters the function, and waits for every call that runs in another
/// thread. The function itself may drop it: its own call is not waited for.
#[derive(Debug)]
#[must_use = "dropping a shrinker unregisters it"]
pub struct Shrinker(u64);

impl Shrinker {
    /// Registers `ask`. It is called with the number of objects that are wanted, and returns the number that
    /// it let go, of any cache.
    pub fn register(ask: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Shrinker {
        Self::of(None, ask)
    }

    /// Registers `ask`, and calls it also when `cache` is at its limit.
    pub(crate) fn of(cache: Option<CacheId>, ask: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Shrinker {
        shared::on_child(forget_other_threads);
        let mut entry = Entry { number: 0, cache, ask: Arc::new(ask), calls: 0, leaves: false };
        loop {
            // A statement of its own: the lock is free again before memory is asked for.
            let registered = REGISTERED.lock().entries.len();
            let larger = Vec::with_capacity(2 * registered + 4);
            match insert(entry, larger) {
                Ok(number) => return Shrinker(number),
                // Other threads registered more meanwhile.
                Err(back) => entry = back,
            }
        }
    }
}

/// Adds an entry without allocating: to the list as it is, or to `larger` if the list is full. Gives the
/// entry back if `larger` is too small. The vector that is left over is dropped after the lock.
fn insert(mut entry: Entry, mut larger: Vec<Entry>) -> Result<u64, Entry> {
    let mut registered = REGISTERED.lock();
    if registered.entries.len() == registered.entries.capacity() {
        if larger.capacity() <= registered.entries.len() {
            return Err(entry);
        }
        larger.append(&mut registered.entries);
        std::mem::swap(&mut registered.entries, &mut larger);
    }
    entry.number = registered.next;
    registered.next += 1;
    registered.entries.push(entry);
    Ok(registered.next - 1)
}

impl Drop for Shrinker {
    fn drop(&mut self) {
        // What the function captured is dropped without the lock: it is the program's.
        while leave(self.0).is_none() {
            system::pause();
        }
    }
}

/// Takes an entry off the list once no other thread is inside its function; `None` while one is.
fn leave(number: u64) -> Option<Entry> {
    let mut registered = REGISTERED.lock();
    let index = registered.entries.iter().position(|entry| entry.number == number)?;
    let entry = &mut registered.entries[index];
    entry.leaves = true;
    let own = u32::from(INSIDE.get() == number);
    (entry.calls <= own).then(|| registered.entries.swap_remove(index))
}

/// In a fork's child: no other thread is inside a function any more.
fn forget_other_threads() {
    let inside = INSIDE.get();
    for entry in &mut REGISTERED.lock().entries {
        entry.calls = u32::from(entry.number == inside);
    }
}

/// A call of one entry's function, from before it begins until after it ended or panicked.
struct Call {
    number: u64,
    ask: Option<Arc<Ask>>,
}

impl Call {
    /// Begins a call of the entry registered first after number `after`, of one cache or of any. Allocates
    /// nothing.
    fn begin_next(after: u64, cache: Option<CacheId>) -> Option<Call> {
        let mut registered = REGISTERED.lock();
        let wanted = |entry: &&mut Entry| {
            !entry.leaves && (cache.is_none() || entry.cache == cache) && entry.number > after
        };
        let entry = registered.entries.iter_mut().filter(wanted).min_by_key(|entry| entry.number)?;
        entry.calls += 1;
        INSIDE.set(entry.number);
        Some(Call { number: entry.number, ask: Some(entry.ask.clone()) })
    }

    fn run(&self, count: u64) -> u64 {
        self.ask.as_ref().map_or(0, |ask| ask(count))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        // Before the call is over for `leave`: what the function captured may end here, if it unregistered
        // itself.
        drop(self.ask.take());
        INSIDE.set(0);
        let mut registered = REGISTERED.lock();
        if let Some(entry) = registered.entries.iter_mut().find(|entry| entry.number == self.number) {
            entry.calls -= 1;
        }
    }
}

/// Calls the shrinkers of one cache, or all, until `count` objects were let go. Returns how many were.
#[cold]
pub(crate) fn ask(cache: Option<CacheId>, count: u64) -> u64 {
    let (mut given, mut last) = (0u64, 0);
    // A function that allocates does not come here again.
    while INSIDE.get() == 0
        && given < count
        && let Some(call) = Call::begin_next(last, cache)
    {
        last = call.number;
        given = given.saturating_add(call.run(count - given));
    }
    given
}

/// Asks every shrinker for all that it can let go, and has every heap and object cache give back the free
/// memory that it keeps. Returns the bytes that went back to the system.
pub fn shrink_all() -> u64 {
    ask(None, u64::MAX);
    shared::trim()
}
