//! Many more threads than CPUs use the slots of one cache. `unsafe`: signals and affinity.
//!
//! Every object has a word that names its owner. Threads pop, push, hold their slot, claim other slots, are
//! interrupted by a signal handler that does the same, and move from CPU to CPU. A thread that gets an object
//! checks that the object was in a slot. The value of a held slot is incremented without an atomic operation,
//! and the sum must be the number of holds. At the end every object is found once.
#![expect(unsafe_code, reason = "signals and affinity")]

mod again;

mod program;
use program::Native;
use slablab_native::{Object, Served};
use slablab_platform::{
    CpuId, Event, Frames, HotArray, HotList, Local, Memory, NodeId, PerCpu, Pfn, Platform, Topology, Want,
};
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// With a value of as many bytes as slots at fixed places have. The first word counts holds.
type Slots = <Native as Platform>::PerCpu<[u64; 10]>;

const OBJECT_BYTES: u32 = 64;
const OBJECTS: u32 = 1024;
const STEPS: u32 = 100_000;
/// How often the claiming thread takes the object away from the popping thread.
const CLAIMS: u32 = 500;
/// Most addresses in an array, and most objects on a list.
const CAPACITY: u32 = 4;
const LIMIT: u32 = 5;

/// Owners of an object: a slot; none, because a handler could not give the object back; a handler. Any other
/// number is a thread's.
const IN_A_SLOT: u32 = 0;
const LEFT: u32 = u32::MAX;
const HANDLER: u32 = u32::MAX - 1;

struct Storm {
    slots: Slots,
    first: Object,
    owners: Vec<AtomicU32>,
    /// How often a slot was held: the sum of the slots' values.
    holds: AtomicU64,
    interrupts: AtomicU64,
    claims: AtomicU64,
    /// The kernel's numbers of the threads; how many threads are still working.
    threads: Mutex<Vec<i32>>,
    working: AtomicU32,
}

/// With slots at no fixed place, and at one.
static STORMS: [OnceLock<Storm>; 2] = [const { OnceLock::new() }; 2];

fn storm_at(place: usize) -> &'static Storm {
    STORMS[place].get_or_init(|| match place {
        0 => Storm::new(0, Slots::new(8)),
        _ => Storm::new(1 << 8, Slots::of_cache(0, 8)),
    })
}

impl Storm {
    /// A storm in the page frames from this index on.
    fn new(frame: u32, slots: Slots) -> Storm {
        let node = (0..Native::nodes()).map(NodeId).find(|node| Native::node_frames(*node).1 > 0);
        let pfn = Pfn(Native::node_frames(node.expect("a node has memory")).0.0 + frame);
        assert!(Native::commit_descriptors(pfn, 1 << 8) && Native::commit_frames(pfn, 1 << 8));
        Native::map_slab(pfn, 8, OBJECT_BYTES, 0);
        Storm {
            slots,
            first: Native::address(pfn, 0),
            owners: (0..OBJECTS).map(|_| AtomicU32::new(LEFT)).collect(),
            holds: AtomicU64::new(0),
            interrupts: AtomicU64::new(0),
            claims: AtomicU64::new(0),
            threads: Mutex::new(Vec::new()),
            working: AtomicU32::new(0),
        }
    }

    /// The object with a number. The arrays follow the last object.
    fn object(&self, index: u32) -> Object {
        let at = self.first.as_ptr().wrapping_add((index * OBJECT_BYTES) as usize);
        Object::at(at).expect("an address")
    }

    fn owner(&self, object: Object) -> &AtomicU32 {
        &self.owners[(object.addr() - self.first.addr()) / OBJECT_BYTES as usize]
    }

    fn got(&self, object: Object, me: u32) {
        let before = self.owner(object).swap(me, AcqRel);
        if before != IN_A_SLOT {
            eprintln!("thread {me} got {object:?}, which belongs to {before}");
            std::process::abort();
        }
    }

    /// Waits until the claiming thread released an object.
    fn wait_until_left(&self, object: Object) {
        for _ in 0..1_000_000 {
            if self.owner(object).load(Acquire) == LEFT {
                return;
            }
            std::thread::yield_now();
        }
        eprintln!("{object:?} is lost");
        std::process::abort();
    }

    fn pop(&self, list: bool, me: u32) -> Option<Object> {
        let object = match list {
            true => self.slots.pop_if(Want::ANY, Event::AllocFastpath),
            false => self.slots.pop(Event::AllocFastpath),
        }?;
        self.got(object, me);
        Some(object)
    }

    /// Pushes an object; `false` if the slot refused it.
    fn push(&self, list: bool, object: Object, me: u32) -> bool {
        self.owner(object).store(IN_A_SLOT, Release);
        let pushed = match list {
            true => self.slots.push_if(Want::ANY, LIMIT, object, Event::FreeFastpath),
            false => self.slots.push(object, Event::FreeFastpath),
        };
        if !pushed {
            self.owner(object).store(me, Release);
        }
        pushed
    }

    /// Takes all objects of a held slot, and leaves it with an empty list and array.
    fn empty(
        &self,
        slot: &mut <Slots as PerCpu<Object, [u64; 10]>>::Local<'_>,
        me: u32,
        mut each: impl FnMut(Object),
    ) {
        let count = slot[0];
        self.holds.fetch_add(1, Relaxed);
        let (list, array) = (slot.list(), slot.array());
        let mut next = list.head;
        for _ in 0..list.count {
            let object = next.expect("the list has `count` objects");
            next = Native::link(object, 8);
            self.got(object, me);
            each(object);
        }
        for index in 0..array.size {
            let address = Native::storage_load(
                array.storage.expect("an array with objects has storage"),
                HotArray::<Object>::HEADER + index,
            );
            let object = address.expect("an address below the size");
            self.got(object, me);
            each(object);
        }
        slot.set_list(HotList::EMPTY);
        let storage = array.storage.unwrap_or_else(|| self.object(OBJECTS + u32::from(slot.cpu().0)));
        slot.set_array(HotArray { storage: Some(storage), size: 0, capacity: CAPACITY });
        slot[0] = count + 1;
    }

    fn program(&self, me: u32) {
        let mut random = u64::from(me) * 2 + 1;
        let mut next = |below: u32| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random >> 33) as u32 % below
        };
        let mut mine: Vec<Object> = Vec::with_capacity(OBJECTS as usize);
        for _ in 0..STEPS {
            let list = next(2) == 0;
            match next(1000) {
                0..=39 => {
                    if let Some(mut slot) = self.slots.local() {
                        self.empty(&mut slot, me, |object| mine.push(object));
                    }
                }
                40..=69 => {
                    if let Some(mut slot) = self.slots.claim(CpuId(next(u32::from(Native::cpus())) as u16)) {
                        self.claims.fetch_add(1, Relaxed);
                        self.empty(&mut slot, me, |object| mine.push(object));
                    }
                }
                70 => go_to(next(64)),
                71..=72 => std::thread::yield_now(),
                73..=93 => {
                    // An object that no slot or thread has: all objects at first, later those that handlers
                    // could not give back.
                    let index = next(OBJECTS);
                    let left = self.owners[index as usize].compare_exchange(LEFT, me, AcqRel, Relaxed);
                    mine.extend(left.is_ok().then(|| self.object(index)));
                }
                94..=529 => mine.extend(self.pop(list, me)),
                _ => {
                    if let Some(object) = mine.pop()
                        && !self.push(list, object, me)
                    {
                        mine.push(object);
                    }
                }
            }
        }
        mine.into_iter().for_each(|object| self.owner(object).store(LEFT, Release));
    }

    /// Runs the program in a thread that is interrupted by signals.
    fn thread(&'static self, me: u32) {
        // SAFETY: asks for this thread's number.
        self.threads.lock().expect("no thread fails").push(unsafe { libc::gettid() });
        IN_STORM.set(Some(self));
        self.program(me);
        // A signal that is still pending must do nothing.
        IN_STORM.set(None);
        Native::release_slot();
        self.working.fetch_sub(1, Relaxed);
    }

    /// Sends signals to all threads until they are done.
    fn send_signals(&self) {
        while self.working.load(Relaxed) > 0 {
            std::thread::sleep(Duration::from_micros(20));
            for thread in self.threads.lock().expect("no thread fails").iter() {
                // SAFETY: a thread of this process, or one that ended.
                unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), *thread, libc::SIGUSR1) };
            }
        }
    }

    /// In a signal handler: takes an object from list and array and pushes each to the other, or takes all
    /// objects of the slot.
    fn interrupt(&self) {
        let turn = self.interrupts.fetch_add(1, Relaxed);
        let leave = |object| self.owner(object).store(LEFT, Release);
        if turn.is_multiple_of(8) {
            if let Some(mut slot) = self.slots.local() {
                self.empty(&mut slot, HANDLER, leave);
            }
            return;
        }
        for list in [true, false] {
            if let Some(object) = self.pop(list, HANDLER)
                && !self.push(!list, object, HANDLER)
            {
                leave(object);
            }
        }
    }
}

thread_local! {
    /// The storm whose program this thread is running.
    static IN_STORM: Cell<Option<&'static Storm>> = const { Cell::new(None) };
}

extern "C" fn interrupted(_signal: i32) {
    if let Some(storm) = IN_STORM.get() {
        storm.interrupt();
    }
}

/// Binds this thread to one CPU, or to all.
fn go_to(choice: u32) {
    // SAFETY: sets of zeros are valid, and the kernel reads and writes at most their size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
        match choice % (cpus + 1) {
            all if all == cpus => (0..cpus).for_each(|cpu| libc::CPU_SET(cpu as usize, &mut set)),
            cpu => libc::CPU_SET(cpu as usize, &mut set),
        }
        // The kernel refuses a CPU that this process may not use; the thread then stays where it is.
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

#[test]
fn storm() {
    Native::enter_fresh(|| {
        run(storm_at(0));
        run(storm_at(1));
    });
}

fn run(storm: &'static Storm) {
    // SAFETY: the handler's type fits.
    unsafe { libc::signal(libc::SIGUSR1, interrupted as *const () as usize) };
    let threads = 4 * std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    storm.working.store(threads, Relaxed);
    std::thread::scope(|scope| {
        for me in 1..=threads {
            scope.spawn(move || storm.thread(me));
        }
        storm.send_signals();
    });
    Native::release_slot();
    let mut found = storm.owners.iter().filter(|owner| owner.load(Acquire) == LEFT).count();
    let (mut holds, total) = (0, storm.holds.load(Relaxed));
    for cpu in (0..Native::cpus()).map(CpuId).filter(|cpu| storm.slots.used(*cpu)) {
        let mut slot = storm.slots.claim(cpu).expect("the slot is free");
        holds += slot[0];
        storm.empty(&mut slot, 1, |_| found += 1);
    }
    assert_eq!(holds, total, "a slot was held twice at once");
    assert_eq!(found, OBJECTS as usize, "objects found at the end");
    println!(
        "{}: {threads} threads, {holds} holds, {} claims, {} signals",
        Native::slots(),
        storm.claims.load(Relaxed),
        storm.interrupts.load(Relaxed)
    );
}

/// One thread pops the only object; another claims the slot. Before each pop the object's page is given back,
/// so that the sequence waits for a page fault between what it reads and what it stores.
#[test]
fn fence() {
    Native::enter_fresh(|| {
        if !matches!(Native::slots(), Served::Cpu | Served::Concurrency) {
            return println!("{}: skipped", Native::slots());
        }
        let storm = storm_at(0);
        let (object, claimed) = (storm.object(0), AtomicU32::new(0));
        let mut popped = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while claimed.load(Acquire) < CLAIMS {
                    for cpu in (0..Native::cpus()).map(CpuId) {
                        let Some(mut slot) = storm.slots.claim(cpu) else { continue };
                        storm.empty(&mut slot, 2, |object| {
                            claimed.fetch_add(1, AcqRel);
                            storm.owner(object).store(LEFT, Release);
                        });
                    }
                }
            });
            while claimed.load(Acquire) < CLAIMS {
                if !storm.push(true, object, 1) {
                    continue;
                }
                // SAFETY: a page of free memory; the link in it is none, which is what the page reads as.
                unsafe { libc::madvise(object.as_ptr().cast(), 1, libc::MADV_DONTNEED) };
                match storm.pop(true, 1) {
                    Some(_) => popped += 1,
                    None => storm.wait_until_left(object),
                }
            }
        });
        println!("{}: the object was popped {popped} times and claimed {CLAIMS} times", Native::slots());
    });
}

#[test]
fn fence_per_cpu() {
    again::per_cpu("fence");
}

#[test]
fn storm_per_cpu() {
    again::per_cpu("storm");
}
