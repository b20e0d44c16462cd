//! What all heaps and caches of the process share: the page allocator, the numbers of caches, upkeep. `unsafe`: keeps what it
//! shares in statics, and calls tenants that may leave.
//!
//! A *tenant* is a heap or an object cache. It has [`NUMBERS`] cache numbers from `tenant * NUMBERS` on, so the number that a
//! page frame carries leads to its tenant; the process's own heap is tenant 0 or 1. Upkeep has no thread: whoever comes to a slow
//! path runs deferred work, and now and then lets the next tenant give back what it keeps for nobody.

mod inside;

use crate::heap::Over;
use crate::world::Native;
use inside::{Inside, less};
use slablab_native::report::{self, Line};
use slablab_native::{Object, Sleep, Start, Wishes, system};
use slablab_pages::Pages;
use slablab_pages::policy::{MinFree, PagesPolicy, PcpRule, ZoneRule};
use slablab_platform::{CpuId, Gfp, NodeId, Time, Topology, Work};
use slablab_slabs::preset::Choice;
use slablab_slabs::{Geometry, Metadata, Usage};
use std::cell::{Cell, UnsafeCell};
use std::fmt;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::*};

/// Cache numbers of a tenant.
pub const NUMBERS: u32 = 256;
/// Most tenants at a time.
const TENANTS: usize = 4096;
/// The process's own heap, of the engine whose frees look for nothing else first.
pub(crate) const OWN: u32 = 0;
/// The process's own heap, of another engine.
const OWN_OTHER: u32 = 1;

/// Whether the process's own heap has a tenant's number.
pub fn is_own(tenant: u32) -> bool {
    tenant <= OWN_OTHER
}

/// What upkeep reaches. Calls may come from any thread at any time between [`settle`] and the end of [`leave`].
pub trait Tenant: Sync {
    /// Runs deferred work of one of its caches.
    fn work(&self, cpu: CpuId, work: Work);
    /// Takes what a thread's slot held: the thread ended.
    fn thread_exit(&self, cpu: CpuId);
    /// Gives back what one of its caches keeps for nobody, each time another one's; 0 to `turn` were asked before.
    fn shrink(&self, turn: u32);
    /// Gives back what all its caches keep for nobody.
    fn shrink_all(&self);
    /// Calls `each` with what every one of its caches holds, and with the bytes of an object.
    fn each_usage(&self, each: &mut dyn FnMut(&Usage, u32));
    /// Prints its caches in slabinfo's columns.
    fn print_stats(&self);
    /// Writes the name of one of its caches.
    fn write_name(&self, cache: u32, to: &mut dyn fmt::Write) -> fmt::Result;
}

struct Place {
    state: AtomicU8,
    /// Calls that run now.
    users: AtomicU32,
    tenant: UnsafeCell<Option<&'static dyn Tenant>>,
}

const FREE: u8 = 0;
const TAKEN: u8 = 1;
const SETTLED: u8 = 2;
/// Left by a tenant whose objects were forgotten: the numbers are nobody else's.
const GONE: u8 = 3;

// SAFETY: `tenant` is written while the state is `TAKEN`, by the one who took the place, and read while it is `SETTLED`.
unsafe impl Sync for Place {}

static PLACES: [Place; TENANTS] =
    [const { Place { state: AtomicU8::new(FREE), users: AtomicU32::new(0), tenant: UnsafeCell::new(None) } };
        TENANTS];
/// Tenants have numbers below this; it grows.
static USED: AtomicU32 = AtomicU32::new(1);

/// A tenant that has its numbers, and that no upkeep reaches yet.
#[derive(Debug)]
pub struct Seat(u32);

impl Seat {
    /// Its first cache's number.
    pub fn first(&self) -> u32 {
        self.0 * NUMBERS
    }
}

/// Numbers for a new tenant. `None` when there are too many.
pub fn take() -> Option<Seat> {
    let number = (OWN_OTHER as usize + 1..TENANTS).find(|number| claim(*number as u32))?;
    Some(Seat(number as u32))
}

pub(crate) fn take_own(first: bool) -> Seat {
    let number = if first { OWN } else { OWN_OTHER };
    assert!(claim(number), "the process's heap starts once");
    Seat(number)
}

fn claim(number: u32) -> bool {
    let taken = PLACES[number as usize].state.compare_exchange(FREE, TAKEN, Acquire, Relaxed).is_ok();
    if taken {
        USED.fetch_max(number + 1, Relaxed);
    }
    taken
}

/// Lets upkeep reach a tenant from now on.
///
/// # Safety
/// The tenant stays until [`leave`] returned.
pub unsafe fn settle(seat: &Seat, tenant: &dyn Tenant) {
    let place = &PLACES[seat.0 as usize];
    // SAFETY: the place is this seat's; the caller says how long the tenant stays.
    unsafe { *place.tenant.get() = Some(std::mem::transmute::<&dyn Tenant, &'static dyn Tenant>(tenant)) };
    place.state.store(SETTLED, SeqCst);
}

/// Waits until no call to the tenant runs, and none will until it settles again. Not to be called from one of them.
pub fn unsettle(seat: &Seat) {
    let place = &PLACES[seat.0 as usize];
    place.state.store(TAKEN, SeqCst);
    // A thread may have taken a work of this tenant off the queue, and not have called the tenant yet.
    WORKING.wait();
    while place.users.load(SeqCst) > 0 {
        system::pause();
    }
    // SAFETY: nobody reads a place that is not settled.
    unsafe { *place.tenant.get() = None };
}

/// Calls `end`, which does the works of a tenant that unsettled, until no upkeep has one of them in hand.
pub fn end_works(end: impl Fn()) {
    loop {
        let returned = RETURNED.load(SeqCst);
        end();
        WORKING.wait();
        if RETURNED.load(SeqCst) == returned {
            return;
        }
    }
}

/// The same as [`unsettle`], and gives the numbers up: no slab carries one of them any more.
pub fn leave(seat: Seat) {
    unsettle(&seat);
    PLACES[seat.0 as usize].state.store(FREE, Release);
}

/// The same as [`unsettle`] for good, of a tenant that leaves objects behind: its numbers stay its own, its works are not done.
pub fn abandon(seat: &Seat) {
    unsettle(seat);
    PLACES[seat.0 as usize].state.store(GONE, Release);
}

/// In a fork's child: the other threads, which may have been inside a tenant or had a work in hand, are not there.
pub(crate) fn alone() {
    WORKING.reset();
    PLACES.iter().take(USED.load(Relaxed) as usize).for_each(|place| place.users.store(0, SeqCst));
    let hook = *ON_CHILD.lock();
    if let Some(hook) = hook {
        hook();
    }
}

/// The function that [`alone`] calls last.
static ON_CHILD: Sleep<Option<fn()>> = Sleep::new(None);

/// Has `hook` called in every fork's child. There is one hook: a second call replaces it.
pub fn on_child(hook: fn()) {
    *ON_CHILD.lock() = Some(hook);
}

/// Calls a tenant, if it is there.
fn with<R>(number: u32, f: impl FnOnce(&dyn Tenant) -> R) -> Option<R> {
    let place = PLACES.get(number as usize)?;
    if place.state.load(Relaxed) != SETTLED {
        return None;
    }
    // Counted before the state is looked at: whoever leaves changes the state before it looks at the count.
    place.users.fetch_add(1, SeqCst);
    let result = (place.state.load(SeqCst) == SETTLED).then(|| {
        // SAFETY: settled, and it stays while this call is counted.
        let tenant = unsafe { (*place.tenant.get()).expect("a settled tenant") };
        f(tenant)
    });
    less(&place.users);
    result
}

fn for_each(f: impl Fn(&dyn Tenant)) {
    for number in 0..USED.load(Relaxed) {
        with(number, &f);
    }
}

/// Room for the page allocator.
struct Room(UnsafeCell<MaybeUninit<Pages<Native>>>);

// SAFETY: written once, by the thread that starts, before anybody else has it.
unsafe impl Sync for Room {}

static PAGES: Room = Room(UnsafeCell::new(MaybeUninit::uninit()));

/// Starts the native world and the page allocator, and answers whether there is memory. The thread that starts the process's
/// heap calls it, again if its last try failed.
pub(crate) fn start(wanted: Wishes) -> bool {
    if STARTED.load(Acquire) {
        return true;
    }
    if Native::start_with(wanted) != Start::Runs {
        return false;
    }
    let mut pages = PagesPolicy::for_release(6, 18, 0);
    pages.pcp = PcpRule::NONE;
    pages.zones = Some(ZoneRule::One);
    pages.min_free = MinFree::Kib(0);
    // Untouched memory is a page fault each.
    pages.resident_first = true;
    // One label for all: nothing here can be moved.
    pages.max_order = Some(Native::largest_order());
    pages.pageblock_order = pages.max_order;
    // SAFETY: the one who starts is alone here.
    unsafe { (*PAGES.0.get()).write(Pages::new(pages)) };
    STARTED.store(true, Release);
    true
}

/// Whether [`PAGES`] was written.
static STARTED: AtomicBool = AtomicBool::new(false);

/// The page allocator; `None` before the process's heap started.
#[inline]
pub fn pages() -> Option<&'static Pages<Native>> {
    // SAFETY: written.
    STARTED.load(Acquire).then(|| unsafe { (*PAGES.0.get()).assume_init_ref() })
}

/// Free memory that stays for the next request, in bytes.
const KEEP_BYTES: u64 = 4 << 20;
/// Blocks of so many frames go back first, 64 KiB on pages of 4 KiB; smaller ones only if that was not enough.
const REPORT_ORDER: u8 = 4;
/// A huge page on pages of 4 KiB.
const HUGE_ORDER: u8 = 9;
/// How often the next cache is asked to shrink: all of them in two thirds of a second.
const TURN_EVERY_NS: u64 = 5_000_000;
/// Turns that are made up for after a time without slow paths: all caches once.
const TURNS_MOST: u64 = crate::classes::COUNT as u64;
/// How long one caller shrinks caches.
const CALLER_NS: u64 = 500_000;

/// When turns were last counted, in nanoseconds; how many are due; and how many there were.
static LOOKED_NS: AtomicU64 = AtomicU64::new(0);
static DUE: AtomicU64 = AtomicU64::new(0);
static TURN: AtomicU32 = AtomicU32::new(0);
/// Frames in use or resident: the least since caches last took their turns for growth.
static LEAST_HELD: AtomicU64 = AtomicU64::new(0);
/// Whether the turns that are due are for growth.
static GROWING: AtomicBool = AtomicBool::new(false);
/// Threads that may have a work in hand.
static WORKING: Inside = Inside::new();
/// Works whose tenant was not to be reached, and which wait again; and how long.
static RETURNED: AtomicU32 = AtomicU32::new(0);
const RETRY_NS: u64 = 1_000_000;

/// Looks after what no caller waits for: deferred work, caches that may keep too much, free memory. For slow paths.
#[inline]
pub fn upkeep() {
    if Native::work_waits() {
        let working = WORKING.enter();
        while let Some((cpu, work)) = Native::due() {
            // A tenant that leaves does its works itself. It looks for them until none came back: so the order.
            let number = work.cache / NUMBERS;
            let done = with(number, |tenant| tenant.work(cpu, work)).is_some();
            let taken = |place: &Place| ![FREE, GONE].contains(&place.state.load(SeqCst));
            if !done && PLACES.get(number as usize).is_some_and(taken) {
                Native::defer(cpu, RETRY_NS, work);
                RETURNED.fetch_add(1, SeqCst);
            }
        }
        drop(working);
    }
    // The clock is looked at now and then; what is due goes on at once.
    if !Native::tick() && DUE.load(Relaxed) == 0 {
        return;
    }
    let (now, looked) = (Native::now(), LOOKED_NS.load(Relaxed));
    let turns = now.saturating_sub(looked) / TURN_EVERY_NS;
    if turns > 0 && LOOKED_NS.compare_exchange(looked, now, Relaxed, Relaxed).is_ok() {
        let _ = DUE.fetch_update(Relaxed, Relaxed, |due| Some((due + turns).min(TURNS_MOST)));
    }
    if has_grown() {
        GROWING.store(true, Relaxed);
        DUE.store(TURNS_MOST, Relaxed);
    }
    if DUE.load(Relaxed) > 0 {
        take_turns(now + CALLER_NS);
    }
}

/// Whether the process holds an eighth more memory, and at least [`KEEP_BYTES`] more, than the least it held since the last
/// `true`. Then every cache takes a turn at once: the objects that it keeps for later may be the memory that is short now.
fn has_grown() -> bool {
    let Some(pages) = pages() else { return false };
    let used = |node| pages.total_frames(NodeId(node)).saturating_sub(pages.free_frames(NodeId(node)));
    let held = (0..Native::nodes()).map(used).sum::<u64>() + pages.resident_free_frames();
    let least = LEAST_HELD.fetch_min(held, Relaxed).min(held);
    let grown = held - least > (least / 8).max(KEEP_BYTES >> Native::page_shift());
    if grown {
        LEAST_HELD.store(held, Relaxed);
    }
    grown
}

/// Lets caches shrink whose turn it is, until some time.
#[cold]
fn take_turns(until_ns: u64) {
    while DUE.fetch_update(Relaxed, Relaxed, |due| due.checked_sub(1)).is_ok() {
        let turn = TURN.fetch_add(1, Relaxed);
        for_each(|tenant| tenant.shrink(turn));
        if Native::now() > until_ns {
            break;
        }
    }
    // A growing process allocates again the pages that its caches have just freed: given back, each would be a page fault.
    let grows = match DUE.load(Relaxed) {
        0 => GROWING.swap(false, Relaxed),
        _ => GROWING.load(Relaxed),
    };
    if !grows {
        give_back();
    }
}

/// Gives free memory beyond what should stay back to the system.
pub(crate) fn give_back() {
    give_back_but(KEEP_BYTES);
}

/// Gives free memory back to the system, all but `keep` bytes. Answers the bytes given back.
fn give_back_but(keep: u64) -> u64 {
    let (Some(pages), shift) = (pages(), Native::page_shift()) else { return 0 };
    if pages.resident_free_frames() <= keep >> shift {
        return 0;
    }
    // Down to half, so that the next free does not come here again.
    // A huge page that is given back in part is one no more.
    let (order, whole) =
        if Native::has_huge_pages() && keep > 0 { (HUGE_ORDER, true) } else { (REPORT_ORDER, false) };
    let large = pages.report_free(order, keep >> shift >> 1, Native::discard);
    // Small blocks are many calls to the kernel: only if they are what there is.
    let small = match !whole && pages.resident_free_frames() > keep >> shift << 1 {
        true => pages.report_free(0, keep >> shift, Native::discard),
        false => 0,
    };
    (large + small) << shift
}

/// Gives back all that can be given back. Answers the bytes.
pub fn trim() -> u64 {
    for_each(|tenant| tenant.shrink_all());
    give_back_but(0)
}

/// What a thread's slot held is anybody's from now on.
pub(crate) fn thread_exit(cpu: CpuId) {
    for_each(|tenant| tenant.thread_exit(cpu));
}

/// Prints what there is, in slabinfo's columns.
pub(crate) fn print_stats(engine: &dyn fmt::Display) {
    Line::say(format_args!(
        "{engine}, {}, {} slots used, pages of {} bytes{}",
        Native::slots(),
        Native::slots_used(),
        system::page_size(),
        if Native::has_huge_pages() { ", huge pages" } else { "" },
    ));
    Line::print(format_args!(
        "# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : slabdata <active_slabs> <num_slabs>"
    ));
    for_each(|tenant| tenant.print_stats());
}

/// What all heaps and object caches of the process hold. Not exact while other threads run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Bytes of page frames in slabs and blocks, and of free ones that the system backs with memory.
    pub heap_bytes: u64,
    /// Bytes of live objects, each as large as its class, and of blocks of page frames; without what is metadata.
    pub live_bytes: u64,
    /// Free objects in slabs.
    pub free_objects: u64,
    /// Bytes of free page frames that the system backs with memory.
    pub free_frame_bytes: u64,
    /// Blocks with a mapping of their own, and their bytes.
    pub mappings: u64,
    /// Bytes of those mappings.
    pub mapping_bytes: u64,
}

/// What all heaps and object caches of the process hold.
pub fn totals() -> Totals {
    let Some(pages) = pages() else { return Totals::default() };
    let shift = Native::page_shift();
    let of_nodes = |frames: fn(&Pages<Native>, NodeId) -> u64| -> u64 {
        (0..Native::nodes()).map(|node| frames(pages, NodeId(node))).sum()
    };
    let used = of_nodes(Pages::total_frames).saturating_sub(of_nodes(Pages::free_frames));
    let mut totals = Totals::default();
    let slab_frames;
    let sums = Cell::new((0, 0, 0));
    for_each(|tenant| {
        tenant.each_usage(&mut |usage, object_bytes| {
            let (frames, live, free) = sums.get();
            let live_objects = usage.live_objects();
            let free_objects = usage.total_objects.saturating_sub(live_objects);
            sums.set((
                frames + usage.frames,
                live + live_objects * u64::from(object_bytes),
                free + free_objects,
            ));
        });
    });
    (slab_frames, totals.live_bytes, totals.free_objects) = sums.get();
    // Frames that are in no slab are in blocks.
    totals.live_bytes += used.saturating_sub(slab_frames) << shift;
    totals.live_bytes = totals.live_bytes.saturating_sub(crate::heap::metadata_bytes());
    totals.free_frame_bytes = pages.resident_free_frames() << shift;
    totals.heap_bytes = (used << shift) + totals.free_frame_bytes;
    (totals.mappings, totals.mapping_bytes) = crate::mappings::totals();
    totals
}

/// Prints a cache in slabinfo's columns, unless it is empty.
pub fn print_cache(name: fmt::Arguments<'_>, usage: &Usage, geometry: &Geometry) {
    if usage.slabs > 0 {
        Line::columns(
            name,
            17,
            format_args!(
                "{:>8} {:>8} {:>8} {:>4} {:>4} : slabdata {:>8} {:>8}",
                usage.live_objects(),
                usage.total_objects,
                geometry.size,
                geometry.objects,
                1u32 << geometry.order,
                usage.slabs,
                usage.slabs,
            ),
        );
    }
}

/// Metadata memory from the process's heap, for tenants without classes of their own.
pub struct FromHeap;

impl<W: Over> Metadata<W> for FromHeap {
    fn alloc(&self, bytes: u32, gfp: Gfp) -> Option<Object> {
        crate::entry::metadata()?.alloc(bytes, gfp)
    }
    fn free(&self, object: Object) {
        crate::entry::metadata().expect("what gave it is there").free(object);
    }
}

/// The name of a cache by its number, for reports.
pub struct Named(pub u32);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.0;
        let known = with(number / NUMBERS, |tenant| tenant.write_name(number, f));
        known.unwrap_or_else(|| write!(f, "a cache that is gone, number {number}"))
    }
}

/// What the environment chose; `None` before the process's heap started.
pub fn choice() -> Option<Choice> {
    crate::entry::choice()
}

/// Ends the process with a report of what a caller did wrong.
#[cold]
pub fn misuse(what: fmt::Arguments<'_>) -> ! {
    report::misuse(what)
}

/// Writes `slablab: ...` to standard error.
pub fn say(what: fmt::Arguments<'_>) {
    Line::say(what);
}
