//! The native world's protocols between threads, under loom: the ownership of slots, the gate that
//! prevents a fork while a thread is inside a section, and how a purge asks all threads.
//!
//! This is a model, not the code: `crates/native/src/thread.rs` has its state in statics and in memory that
//! loom cannot observe. Each function has the name of its original, and does the same steps with the same
//! orderings. loom runs every schedule within three preemptions, with two or three threads and one or two
//! rounds each. The kernel's barrier on all threads (membarrier) is modelled as a fence at the place of the
//! compiler's fence. So these tests say nothing about the kernel's implementation. Each protocol also runs
//! with one step left out, and loom must find that wrong.
#![cfg(feature = "tools")]

use loom::cell::Cell;
use loom::sync::atomic::{AtomicU8, AtomicU32, Ordering::*, fence};
use loom::thread;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Runs `body` in every schedule. Returns the number of schedules.
///
/// # Errors
/// The text of the first failure.
fn explore(body: impl Fn() + Send + Sync + 'static) -> Result<u64, String> {
    let executions = Arc::new(AtomicU64::new(0));
    let counter = executions.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 10_000;
    let ended = catch_unwind(AssertUnwindSafe(|| {
        builder.check(move || {
            counter.fetch_add(1, Ordering::Relaxed);
            body();
        });
    }));
    let text = |panic: Box<dyn std::any::Any + Send>| {
        let said = panic.downcast_ref::<String>().cloned();
        said.or(panic.downcast_ref::<&str>().map(|said| said.to_string())).unwrap_or_default()
    };
    ended.map(|()| executions.load(Ordering::Relaxed)).map_err(text)
}

/// Checks that `right` passes, and that every variant in `wrong` fails.
fn check<S: Copy + Send + Sync + 'static>(name: &str, right: S, wrong: &[S], body: fn(S)) {
    let executions = explore(move || body(right)).unwrap_or_else(|found| panic!("{name}: {found}"));
    println!("{name}: {executions} executions");
    assert!(executions > 10, "{name}: {executions} executions");
    for (index, fault) in wrong.iter().copied().enumerate() {
        let found = explore(move || body(fault));
        assert!(found.is_err(), "{name}: fault {index} was not found in {found:?} executions");
    }
}

const FREE: u8 = 0;
const LIVE: u8 = 1;
const CLAIMED: u8 = 2;

/// Slots, and the number of objects in each. Only a slot's owner accesses its objects, without atomic
/// operations; loom reports an access that is not ordered.
struct Slots {
    states: [AtomicU8; 2],
    objects: [Cell<u32>; 2],
    how: HandOver,
}

/// The steps by which a slot changes its owner.
#[derive(Clone, Copy)]
struct HandOver {
    take: Ordering,
    leave: Ordering,
    /// Whether a claim checks that the slot has no owner.
    asks: bool,
}

const HAND_OVER: HandOver = HandOver { take: Acquire, leave: Release, asks: true };

impl Slots {
    fn new(how: HandOver) -> Rc<Slots> {
        let states = [AtomicU8::new(FREE), AtomicU8::new(FREE)];
        Rc::new(Slots { states, objects: [Cell::new(0), Cell::new(0)], how })
    }

    fn enter_first(&self) -> Option<usize> {
        (0..2).find(|slot| self.states[*slot].compare_exchange(FREE, LIVE, self.how.take, Relaxed).is_ok())
    }

    fn leave(&self, slot: usize) {
        self.states[slot].store(FREE, self.how.leave);
    }

    /// `Claim::new`, the holder's work, and the drop: takes the objects out.
    fn claim(&self, slot: usize) -> u32 {
        let state = &self.states[slot];
        if self.how.asks {
            if state.compare_exchange(FREE, CLAIMED, self.how.take, Relaxed).is_err() {
                return 0;
            }
        } else {
            state.store(CLAIMED, Relaxed);
        }
        let objects = self.objects[slot].get();
        self.objects[slot].set(0);
        state.store(FREE, self.how.leave);
        objects
    }

    fn put(&self, slot: usize) {
        self.objects[slot].set(self.objects[slot].get() + 1);
    }
}

/// The life of a thread: it takes a slot, leaves an object in it, ends, and empties the slot that it left
/// (`exit` and its hook).
fn life(slots: &Slots) -> u32 {
    let Some(slot) = slots.enter_first() else { return 0 };
    slots.put(slot);
    slots.leave(slot);
    slots.claim(slot)
}

#[test]
fn a_slot_has_one_owner_at_a_time() {
    let wrong = [
        HandOver { take: Relaxed, ..HAND_OVER },
        HandOver { leave: Relaxed, ..HAND_OVER },
        HandOver { asks: false, ..HAND_OVER },
    ];
    check("two threads end, one shrinks", HAND_OVER, &wrong, |how| {
        let slots = Slots::new(how);
        let lives: Vec<_> = (0..2)
            .map(|_| {
                let slots = slots.clone();
                thread::spawn(move || life(&slots))
            })
            .collect();
        let mut out = slots.claim(0) + slots.claim(1);
        out += lives.into_iter().map(|life| life.join().expect("it ended")).sum::<u32>();
        out += slots.claim(0) + slots.claim(1);
        // There are two slots, so each thread got one, unless the main thread was claiming it at that moment.
        // Then the thread put no object.
        assert!((1..=2).contains(&out) || out == 0 && slots.objects.iter().all(|left| left.get() == 0));
        assert!(
            slots.states.iter().all(|state| state.load(Relaxed) == FREE),
            "a slot that no thread released"
        );
    });
}

/// The gate, one thread's counter of sections, and what sections protect.
struct Gate {
    gate: AtomicU32,
    sections: AtomicU32,
    protected: Cell<u32>,
    how: Barrier,
}

/// How other threads see the counter before the thread reads the gate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Barrier {
    /// The kernel's barrier, or a fence if the kernel has none.
    Everywhere,
    /// Only the forking thread has a fence: the protocol without `membarrier`.
    OneSided,
    /// A thread that finds the gate closed enters anyway.
    NoGate,
    /// The thread reads the gate without acquiring the writes before its opening.
    LooseGate,
    /// The end of a section is not ordered after the writes in it.
    LooseEnd,
}

impl Gate {
    fn barrier(&self) {
        if self.how != Barrier::OneSided {
            fence(SeqCst);
        }
    }

    /// One section of a thread, from `Section::enter` to its drop. `inside` runs in it, and may enter another
    /// one.
    fn section(&self, inside: &dyn Fn()) {
        let depth = self.sections.load(Relaxed);
        self.sections.store(depth + 1, Relaxed);
        self.barrier();
        let order = if self.how == Barrier::LooseGate { Relaxed } else { Acquire };
        if depth == 0 && self.how != Barrier::NoGate && self.gate.load(order) != 0 {
            self.wait();
        }
        self.protected.set(self.protected.get() + 1);
        inside();
        self.protected.set(self.protected.get() + 1);
        let order = if self.how == Barrier::LooseEnd { Relaxed } else { Release };
        self.sections.store(self.sections.load(Relaxed) - 1, order);
    }

    fn wait(&self) {
        fence(SeqCst);
        while self.gate.load(SeqCst) != 0 {
            self.sections.store(0, SeqCst);
            while self.gate.load(Acquire) != 0 {
                thread::yield_now();
            }
            self.sections.store(1, SeqCst);
            self.barrier();
        }
    }

    /// `before_fork`, the fork, `after_fork`. Returns the state that the child sees.
    fn fork(&self) -> u32 {
        while self.gate.compare_exchange(0, 1, SeqCst, SeqCst).is_err() {
            thread::yield_now();
        }
        fence(SeqCst);
        while self.sections.load(Acquire) > 0 {
            thread::yield_now();
        }
        let found = self.protected.get();
        self.gate.store(0, Release);
        found
    }
}

#[test]
fn a_fork_waits_for_every_section() {
    let wrong = [Barrier::OneSided, Barrier::NoGate, Barrier::LooseGate, Barrier::LooseEnd];
    check("one thread in sections, one forks", Barrier::Everywhere, &wrong, |how| {
        let gate = Rc::new(Gate {
            gate: AtomicU32::new(0),
            sections: AtomicU32::new(0),
            protected: Cell::new(0),
            how,
        });
        let theirs = gate.clone();
        let works = thread::spawn(move || {
            // A nested section continues although the gate is closed.
            theirs.section(&|| theirs.section(&|| ()));
        });
        let found = gate.fork();
        assert!(found == 0 || found == 4, "a child sees a half-done section: {found}");
        works.join().expect("it ended");
        assert_eq!(gate.protected.get(), 4);
    });
}

/// What threads and purges share: how often all threads were asked to empty their slots, what each thread did
/// last, and the words by which another process asks (`ASKED` and `emptied` of thread.rs; `WORDS` and `TAKEN`
/// of crates/malloc/src/shared/purge.rs).
struct Purges {
    asked: AtomicU32,
    emptied: [AtomicU32; 2],
    /// A thread's slot, which it alone uses.
    objects: [Cell<u32>; 2],
    word: AtomicU32,
    taken: AtomicU32,
    answered: AtomicU32,
    bytes: AtomicU32,
    purges: AtomicU32,
    how: Asking,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asking {
    Right,
    /// A thread that was asked twice counts one time.
    CountsOne,
    /// A thread that was asked notes it, and empties nothing.
    KeepsAll,
    /// The thread that asks counts as one that did not empty its slot.
    AsksItself,
    /// Two threads may take one request of another process.
    TakesTwice,
    /// A thread that sees that a request was taken may not see the request.
    LooseTaken,
    /// The answer is not ordered before its number.
    LooseAnswer,
}

impl Purges {
    fn new(how: Asking) -> Rc<Purges> {
        let zero = || AtomicU32::new(0);
        let (emptied, objects) = ([zero(), zero()], [Cell::new(1), Cell::new(1)]);
        let [asked, word, taken, answered, bytes, purges] = std::array::from_fn(|_| zero());
        Rc::new(Purges { asked, emptied, objects, word, taken, answered, bytes, purges, how })
    }

    fn ask_all(&self, me: usize) {
        let before = self.asked.fetch_add(1, Relaxed);
        if self.how != Asking::AsksItself {
            self.emptied[me].store(before + 1, Relaxed);
        }
    }

    fn asked(&self, me: usize) -> bool {
        let asked = self.asked.load(Relaxed);
        let emptied = self.emptied[me].load(Relaxed);
        let is_asked = emptied != asked;
        let noted = match self.how {
            Asking::CountsOne if is_asked => emptied + 1,
            _ => asked,
        };
        self.emptied[me].store(noted, Relaxed);
        is_asked
    }

    fn asked_left(&self) -> usize {
        let asked = self.asked.load(Relaxed);
        self.emptied.iter().filter(|emptied| emptied.load(Relaxed) != asked).count()
    }

    /// `purge`: the caller's slot is emptied with the caches. The number of other threads that were not.
    fn purge(&self, me: usize) -> usize {
        self.ask_all(me);
        self.objects[me].set(0);
        self.purges.fetch_add(1, Relaxed);
        self.asked_left()
    }

    fn on_slow_path(&self, me: usize) {
        if self.asked(me) && self.how != Asking::KeepsAll {
            self.objects[me].set(0);
        }
        let (load, swap) =
            if self.how == Asking::LooseTaken { (Relaxed, Relaxed) } else { (Acquire, AcqRel) };
        if self.word.load(Relaxed) == self.taken.load(load) {
            return;
        }
        let asked = self.word.load(Relaxed);
        let is_mine = match self.how {
            Asking::TakesTwice => {
                self.taken.store(asked, Relaxed);
                true
            }
            _ => self.taken.swap(asked, swap) != asked,
        };
        if is_mine {
            self.purge(me);
            self.bytes.store(7, Relaxed);
            let order = if self.how == Asking::LooseAnswer { Relaxed } else { Release };
            self.answered.store(asked, order);
        }
    }
}

/// Two threads purge at once. Afterwards each one's next slow path knows of both.
#[test]
fn threads_that_were_asked_empty_their_slots() {
    let wrong = [Asking::CountsOne, Asking::KeepsAll, Asking::AsksItself];
    check("one thread asks twice, one allocates", Asking::Right, &wrong, |how| {
        let purges = Purges::new(how);
        let theirs = purges.clone();
        let allocates = thread::spawn(move || {
            theirs.on_slow_path(1);
            theirs.objects[1].set(theirs.objects[1].get() + 1);
            theirs.on_slow_path(1);
        });
        let left = [purges.purge(0), purges.purge(0)];
        assert!(left.into_iter().all(|left| left <= 1), "the thread that asks counts itself: {left:?}");
        allocates.join().expect("it ended");
        let left = purges.asked_left();
        purges.on_slow_path(1);
        assert_eq!(purges.asked_left(), 0, "a slow path after both purges knows of both");
        assert!(left == 0 || purges.objects[1].get() == 0, "it knew of both, and kept its objects");
        assert!(!purges.asked(1), "it is asked once more");
    });
}

#[test]
fn one_thread_answers_another_process() {
    let wrong = [Asking::TakesTwice, Asking::LooseTaken, Asking::LooseAnswer];
    check("two threads find a request", Asking::Right, &wrong, |how| {
        let purges = Purges::new(how);
        let theirs = purges.clone();
        let other = thread::spawn(move || theirs.on_slow_path(1));
        purges.word.store(1, Relaxed);
        purges.on_slow_path(0);
        if purges.answered.load(Acquire) == 1 {
            assert_eq!(purges.bytes.load(Relaxed), 7, "the answer is there before its number");
        }
        other.join().expect("it ended");
        assert_eq!(purges.purges.load(Relaxed), 1, "one request, one purge");
    });
}
