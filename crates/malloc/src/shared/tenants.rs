//! The registry of tenants: the heaps and object caches that upkeep, forks and statistics reach. `unsafe`:
//! calls tenants that may leave.
//!
//! ```text
//! register     a free place: cache numbers for a new tenant
//! publish      upkeep may call the tenant from now on
//! withdraw     waits until no call runs, and none will begin; reports may still ask for the tenant's name;
//!              then publish again, or
//!   release      the numbers are free for another tenant
//!   leak         objects of the tenant stay, and so do its numbers
//! ```

use super::inside::{WORKERS, less};
use super::note::{self, Note, TENANTS};
use slablab_platform::{CpuId, Work};
use slablab_slabs::{Geometry, Idle, Usage};
use std::cell::UnsafeCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::*};

/// How many cache numbers a tenant has.
pub const NUMBERS: u32 = 256;
/// The tenant number of the process's own heap if it is SLUB with nothing around it.
pub(crate) const OWN: u32 = 0;
/// The tenant number of the process's own heap if it is another one.
const OWN_OTHER: u32 = 1;

/// Whether a tenant number is the process's own heap's.
pub fn is_own(tenant: u32) -> bool {
    tenant <= OWN_OTHER
}

/// A heap or an object cache. Any thread may call it at any time between [`publish`] and the end of
/// [`withdraw`].
pub trait Tenant: Sync {
    /// Runs deferred work of one of its caches.
    fn work(&self, cpu: CpuId, work: Work);
    /// Frees what the slot of a thread that ended holds.
    fn thread_exit(&self, cpu: CpuId);
    /// Has one of its caches give back the free memory that it keeps: another one for each `turn`, which
    /// counts from 0. True if the cache did a part of it, and another call with this turn goes on.
    fn shrink(&self, turn: u32, idle: Idle) -> bool;
    /// Has all its caches give back the free memory that they keep.
    fn shrink_all(&self);
    /// Bytes of the objects that the barns of its caches keep for later.
    fn barn_bytes(&self) -> u64;
    /// Calls `each` for each of its caches, with what the cache holds and the bytes of an object.
    fn each_usage(&self, each: &mut dyn FnMut(&Usage, u32));
    /// Calls `each` for each of its caches, with the cache's name.
    fn each_cache(&self, each: &mut EachCache<'_>);
    /// Where another process finds its caches.
    fn note(&self) -> Note;
    /// Writes the name of one of its caches.
    fn write_name(&self, cache: u32, to: &mut dyn fmt::Write) -> fmt::Result;
}

/// What [`Tenant::each_cache`] calls: with the cache's name, what the cache holds, and its layout.
pub type EachCache<'a> = dyn FnMut(fmt::Arguments<'_>, &Usage, &Geometry) + 'a;

/// A place in the registry.
///
/// Invariant: `tenant` is written only while the state is `REGISTERED`, by the thread that has the
/// [`Registration`] to itself; it is read only while the state is `PUBLISHED` or `WITHDRAWN`, by threads that
/// `calls` counts. The registration's thread waits for those after each change of the state
/// ([`Place::change`]).
struct Place {
    state: AtomicU8,
    /// Calls to the tenant that run now, its name's among them.
    calls: AtomicU32,
    tenant: UnsafeCell<Held>,
}

/// What keeps a tenant. A place without one is all zeros, so that the registry is not part of the library's
/// file.
#[repr(u8)]
enum Held {
    /// There is no tenant.
    Nothing = 0,
    /// The process: the tenant stays.
    Process(&'static dyn Tenant),
    /// The registry, and the tenant's owner.
    Shared(Arc<dyn Tenant + Send>),
}

const FREE: u8 = 0;
const REGISTERED: u8 = 1;
const PUBLISHED: u8 = 2;
/// Its tenant is being destroyed: only reports call it, for its name.
const WITHDRAWN: u8 = 4;
/// Its tenant is gone and left objects behind: no other tenant gets the numbers.
const LEAKED: u8 = 3;

// SAFETY: the invariant of `Place`.
unsafe impl Sync for Place {}

impl Place {
    /// Changes the state, and waits for the calls that the state before may have let in.
    fn change(&self, state: u8) {
        // SeqCst: pairs with `call_if`, which counts itself before it reads the state.
        self.state.store(state, SeqCst);
        while self.calls.load(SeqCst) > 0 {
            slablab_native::system::pause();
        }
    }

    /// Forgets a withdrawn tenant, and leaves the place in `state`.
    fn forget_tenant(&self, state: u8) {
        self.change(REGISTERED);
        // SAFETY: the invariant of `Place`: the state is `REGISTERED`, and no call is counted.
        unsafe { *self.tenant.get() = Held::Nothing };
        self.state.store(state, Release);
    }
}

static PLACES: [Place; TENANTS] = [const {
    Place { state: AtomicU8::new(FREE), calls: AtomicU32::new(0), tenant: UnsafeCell::new(Held::Nothing) }
}; TENANTS];
/// Every registered tenant's number is below this. It only grows.
static USED: AtomicU32 = AtomicU32::new(1);

/// A tenant's cache numbers.
#[derive(Debug)]
pub struct Registration(u32);

impl Registration {
    /// The number of the tenant's first cache.
    pub fn first(&self) -> u32 {
        self.0 * NUMBERS
    }

    fn place(&self) -> &'static Place {
        &PLACES[self.0 as usize]
    }
}

/// Cache numbers for a new tenant. `None` if there are as many tenants as there can be.
pub fn register() -> Option<Registration> {
    let number = (OWN_OTHER as usize + 1..TENANTS).find(|number| claim(*number as u32))?;
    Some(Registration(number as u32))
}

/// Cache numbers for the process's own heap: the first ones if `is_slub`, which its fast path compares with a
/// constant.
pub(crate) fn register_own(is_slub: bool) -> Registration {
    let number = if is_slub { OWN } else { OWN_OTHER };
    assert!(claim(number), "the process's heap starts once");
    Registration(number)
}

fn claim(number: u32) -> bool {
    let state = &PLACES[number as usize].state;
    let claimed = state.compare_exchange(FREE, REGISTERED, Acquire, Relaxed).is_ok();
    if claimed {
        USED.fetch_max(number + 1, Relaxed);
    }
    claimed
}

/// Lets upkeep call a tenant from now on. The registry drops its part of the tenant in [`release`] and
/// [`leak`].
pub fn publish(registration: &mut Registration, tenant: Arc<dyn Tenant + Send>) {
    publish_held(registration, Held::Shared(tenant));
}

/// Lets upkeep call a tenant that lives as long as the process.
pub fn publish_static(registration: &mut Registration, tenant: &'static dyn Tenant) {
    publish_held(registration, Held::Process(tenant));
}

fn publish_held(registration: &mut Registration, tenant: Held) {
    let place = registration.place();
    debug_assert_ne!(place.state.load(Relaxed), PUBLISHED, "published twice");
    place.change(REGISTERED);
    let note = match &tenant {
        Held::Process(tenant) => tenant.note(),
        Held::Shared(tenant) => tenant.note(),
        Held::Nothing => Note::default(),
    };
    // SAFETY: the invariant of `Place`: the state is `REGISTERED`, the registration is the caller's alone
    // (`&mut`), and no call is counted.
    unsafe { *place.tenant.get() = tenant };
    // SeqCst: pairs with `call_if`, which counts itself before it reads the state.
    place.state.store(PUBLISHED, SeqCst);
    note::publish(registration.0, note);
}

/// Waits until no call to the tenant runs, and none but [`Tenant::write_name`] will begin until it is
/// published again. Must not be called by the tenant.
pub fn withdraw(registration: &mut Registration) {
    note::withdraw(registration.0);
    let place = registration.place();
    place.change(WITHDRAWN);
    // A thread may have taken a work of this tenant off the queue, and not have called the tenant yet.
    WORKERS.wait();
    place.change(WITHDRAWN);
}

/// Withdraws a tenant, and frees its numbers: no slab carries one of them any more.
pub fn release(mut registration: Registration) {
    withdraw(&mut registration);
    registration.place().forget_tenant(FREE);
}

/// Withdraws for good a tenant that leaves objects behind. Its numbers stay its own; its deferred works are
/// not done.
pub fn leak(registration: &mut Registration) {
    withdraw(registration);
    registration.place().forget_tenant(LEAKED);
}

/// Whether a tenant has this number, published or not: then its deferred works are to be done.
pub(super) fn is_registered(number: u32) -> bool {
    let state = PLACES.get(number as usize).map(|place| place.state.load(SeqCst));
    matches!(state, Some(REGISTERED | PUBLISHED | WITHDRAWN))
}

/// In a fork's child: the other threads, which may have been inside a tenant or have had a work in hand, are
/// not there.
pub(super) fn forget_other_threads() {
    WORKERS.reset();
    PLACES.iter().take(USED.load(Relaxed) as usize).for_each(|place| place.calls.store(0, SeqCst));
}

/// Calls a published tenant. `None` if the number is no published tenant's.
pub(super) fn call<R>(number: u32, f: impl FnOnce(&dyn Tenant) -> R) -> Option<R> {
    call_if(number, |state| state == PUBLISHED, f)
}

/// Calls a tenant whose place is in one of the wanted states, which are `PUBLISHED` and `WITHDRAWN` or one of
/// them. Takes no lock.
fn call_if<R>(number: u32, wanted: fn(u8) -> bool, f: impl FnOnce(&dyn Tenant) -> R) -> Option<R> {
    let place = PLACES.get(number as usize)?;
    if !wanted(place.state.load(Relaxed)) {
        return None;
    }
    // SeqCst: counted before the state is read. `Place::change` writes the state before it reads the count.
    place.calls.fetch_add(1, SeqCst);
    let held = wanted(place.state.load(SeqCst)).then(|| {
        // SAFETY: the invariant of `Place`: published or withdrawn, and this call is counted.
        unsafe { &*place.tenant.get() }
    });
    let result = match held {
        Some(Held::Process(tenant)) => Some(f(*tenant)),
        Some(Held::Shared(tenant)) => Some(f(&**tenant)),
        Some(Held::Nothing) | None => None,
    };
    less(&place.calls);
    result
}

/// Calls every published tenant.
pub(super) fn each(mut f: impl FnMut(&dyn Tenant)) {
    for number in 0..USED.load(Relaxed) {
        call(number, &mut f);
    }
}

/// The name of a cache by its number, for reports: `malloc-112`, or an object cache's own name. Displaying it
/// allocates nothing and takes no lock.
pub struct Named(pub u32);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_cache_name(self.0, f)
    }
}

/// Writes the name of a cache by its number, as [`Named`] displays it.
pub(crate) fn write_cache_name(cache: u32, to: &mut dyn fmt::Write) -> fmt::Result {
    // Blocks of page frames have the numbers from here on (`crate::heap::LARGE`).
    if cache >> 24 != 0 {
        return to.write_str("a large block, live or freed");
    }
    let has_name = |state| matches!(state, PUBLISHED | WITHDRAWN);
    match call_if(cache / NUMBERS, has_name, |tenant| tenant.write_name(cache, to)) {
        Some(written) => written,
        None => write!(to, "a destroyed cache, number {cache}"),
    }
}
