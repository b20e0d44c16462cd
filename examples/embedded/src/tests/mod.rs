//! A program that is interrupted everywhere, over four engines.
//!
//! Every allocation is filled with a number of its own and looked at when it is freed, so two that overlap
//! are seen. What these tests cannot show: an interrupt between two instructions that ask the platform
//! nothing.

pub(crate) mod machine;

use crate::{Heap, Kernel, MEMORY_BYTES, cpu, memory};
use core::alloc::Layout;
use machine::{Struck, When, booted, interrupted};
use slablab_platform::conformance::checks;
use slablab_platform::{CpuId, Memory};
use slablab_slabs::engines::slab::{SlabEngine, SlabPolicy};
use slablab_slabs::engines::slqb::{Slqb, SlqbPolicy};
use slablab_slabs::engines::slub::{Slub, SlubPolicy};
use slablab_slabs::{Engine, Misuse};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::vec::Vec;
use std::{assert, assert_eq, println};

/// Sizes from the smallest class to blocks of pages.
const SIZES: [usize; 7] = [16, 100, 600, 1024, 4096, 8192, 20_000];
/// Steps of the program.
const STEPS: u64 = 60;

/// A heap in use, and who holds what of it.
struct Used<E: Engine<Kernel>> {
    heap: Heap<E>,
    task: RefCell<Vec<Held>>,
    interrupts: RefCell<Vec<Held>>,
    numbers: Cell<u8>,
    refused: Cell<u64>,
}

/// An allocation, and what its bytes are.
struct Held {
    at: *mut u8,
    bytes: usize,
    number: u8,
}

impl<E: Engine<Kernel> + 'static> Used<E> {
    fn new(policy: &E::Policy) -> Rc<Self> {
        Rc::new(Used {
            heap: Heap::new(policy),
            task: RefCell::default(),
            interrupts: RefCell::default(),
            numbers: Cell::new(0),
            refused: Cell::new(0),
        })
    }

    fn alloc(&self, bytes: usize) -> Option<Held> {
        let Some(object) = self.heap.alloc(Layout::from_size_align(bytes, 8).expect("a layout")) else {
            self.refused.set(self.refused.get() + 1);
            return None;
        };
        let number = self.numbers.get().wrapping_add(1);
        self.numbers.set(number);
        Kernel::fill(object, bytes as u32, number);
        Some(Held { at: object.as_ptr(), bytes, number })
    }

    fn free(&self, held: Held) {
        let object = memory::Object::new(held.at).expect("an address");
        let other = Kernel::differs(object, held.bytes as u32, held.number);
        assert_eq!(other, None, "{:p} of {} bytes was written over", held.at, held.bytes);
        self.heap.free(held.at).expect("it was allocated");
    }

    /// What the task does: slabs are made and emptied, blocks of pages come and go.
    fn program(&self) {
        let mut random = 7u64;
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as usize % below
        };
        for _ in 0..STEPS {
            let held = self.task.borrow().len();
            if next(5) < 3 || held == 0 {
                let allocated = self.alloc(SIZES[next(SIZES.len())]);
                self.task.borrow_mut().extend(allocated);
            } else {
                let freed = self.task.borrow_mut().swap_remove(next(held));
                self.free(freed);
            }
        }
        self.heap.shrink();
        self.heap.idle();
    }

    /// What an interrupt does: it keeps a few, and frees what earlier ones kept.
    fn interrupt(&self) {
        assert!(cpu::in_interrupt(), "a handler is told that it is one");
        for bytes in [16, 600, 4096] {
            let allocated = self.alloc(bytes);
            let mut held = self.interrupts.borrow_mut();
            held.extend(allocated);
            if held.len() > 5 {
                let freed = held.remove(0);
                self.free(freed);
            }
        }
    }

    /// Frees everything, ends the heap, and sees that all pages are back.
    fn end(&self) {
        self.task.take().into_iter().chain(self.interrupts.take()).for_each(|held| self.free(held));
        Kernel::stop(true);
        let backing = self.heap.backing();
        // Sheaves are objects of other classes: twice, so that those see them come back.
        for class in self.heap.classes.iter().chain(&self.heap.classes) {
            class.cpu_down(&backing, CpuId(0));
            class.shrink(&backing);
        }
        // A class's main sheaves go with it.
        let gone = |class: &E| class.destroy(&backing).is_ok();
        let left: Vec<&E> = self.heap.classes.iter().filter(|class| !gone(class)).collect();
        for class in left {
            assert_eq!(class.destroy(&backing), Ok(()), "objects of {:?} that nobody has", class.id());
        }
        while Kernel::due().is_some() {}
        assert_eq!(self.heap.free_frames() as usize * memory::PAGE, MEMORY_BYTES, "pages are lost");
        Kernel::stop(false);
    }
}

/// The program with interrupts. Answers what struck.
fn run<E: Engine<Kernel> + 'static>(policy: &E::Policy, when: When) -> Struck {
    crate::world::forget();
    let used = Used::<E>::new(policy);
    let handler = {
        let used = used.clone();
        Rc::new(move || used.interrupt())
    };
    let struck = interrupted(when, handler, || used.program());
    assert_eq!(used.refused.get(), 0, "there is memory for all");
    used.end();
    struck
}

/// Interrupts the program once at every question it asks; then at every one of them; and some in between.
fn check<E: Engine<Kernel> + 'static>(name: &str, policy: &E::Policy) {
    booted(|| {
        let calm = run::<E>(policy, When { first: 0, every: 0 });
        assert!(calm.questions > 1_000, "{name}: only {} questions", calm.questions);
        let (mut at_once, mut late, mut past) = (0, 0, 0);
        for first in 1..=calm.questions {
            let struck = run::<E>(policy, When { first, every: 0 });
            assert_eq!(struck.at_once + struck.late, 1, "{name}: question {first} of {}", calm.questions);
            at_once += struck.at_once;
            late += struck.late;
            past += struck.refused;
        }
        println!(
            "{name}: {} questions; {at_once} interrupts came at once, {late} waited, {past} times a slot was held",
            calm.questions
        );
        assert!(
            at_once > 100 && late > 100 && past > 0,
            "{name}: {at_once} at once, {late} late, {past} held"
        );
        for every in 1..50 {
            run::<E>(policy, When { first: every, every });
        }
    });
}

#[test]
fn slub_with_cpu_slabs() {
    check::<Slub<Kernel>>("slub@6.1", &SlubPolicy::V6_1);
}

#[test]
fn slub_with_sheaves() {
    check::<Slub<Kernel>>("slub@7.1", &SlubPolicy::V7_1);
}

#[test]
fn slqb() {
    check::<Slqb<Kernel>>("slqb", &SlqbPolicy::V2009_09);
}

#[test]
fn slab() {
    check::<SlabEngine<Kernel>>("slab", &SlabPolicy::V6_1);
}

#[test]
fn the_world_keeps_the_contract() {
    let applying = checks::<Kernel>().iter().filter(|check| check.applies());
    let ran = applying.map(|check| booted(|| check.run().unwrap_or_else(|broken| panic!("{broken}"))));
    assert!(ran.count() > 30);
}

#[test]
fn without_memory_the_answer_is_none_and_nothing_is_lost() {
    booted(|| {
        let used = Used::<Slub<Kernel>>::new(&SlubPolicy::V6_1);
        let handler = {
            let used = used.clone();
            Rc::new(move || used.interrupt())
        };
        interrupted(When { first: 3, every: 11 }, handler, || {
            for bytes in SIZES.into_iter().rev().cycle().take(30) {
                while let Some(held) = used.alloc(bytes) {
                    used.task.borrow_mut().push(held);
                }
                // Every third is freed; then it goes on.
                let mut kept = used.task.take();
                let freed = kept.extract_if(.., |held| held.at.addr() / 16 % 3 == 0).collect::<Vec<_>>();
                used.task.borrow_mut().extend(kept);
                freed.into_iter().for_each(|held| used.free(held));
            }
        });
        assert!(used.refused.get() > 30, "refused {} times", used.refused.get());
        used.end();
    });
}

#[test]
fn misuse_is_told() {
    booted(|| {
        let used = Used::<Slub<Kernel>>::new(&SlubPolicy::V6_1);
        let heap = &used.heap;
        let of = |bytes: usize| {
            heap.alloc(Layout::from_size_align(bytes, 8).expect("a layout")).expect("memory").as_ptr()
        };
        let (small, large) = (of(100), of(20_000));
        assert_eq!(heap.free(small.wrapping_add(8)), Err(Misuse::NotAnObject));
        assert_eq!(heap.free(large.wrapping_add(4096)), Err(Misuse::NotAnObject));
        assert_eq!(heap.free((&raw const used).cast_mut().cast()), Err(Misuse::NotInSlab));
        assert_eq!(heap.free(core::ptr::null_mut()), Err(Misuse::NotInSlab));
        assert_eq!((heap.free(small), heap.free(large)), (Ok(()), Ok(())));
        assert_eq!(heap.free(large), Err(Misuse::NotInSlab));
        used.end();
    });
}

#[test]
fn layouts_are_kept_and_impossible_ones_refused() {
    booted(|| {
        let used = Used::<Slub<Kernel>>::new(&SlubPolicy::V6_1);
        for (bytes, align) in
            [(1, 1), (1, 64), (100, 128), (24, 4096), (5000, 4096), (9000, 4096), (200_000, 16)]
        {
            let layout = Layout::from_size_align(bytes, align).expect("a layout");
            let object = used.heap.alloc(layout).expect("memory");
            assert!(object.addr().get().is_multiple_of(align), "{layout:?}: {object:p}");
            used.heap.free(object.as_ptr()).expect("it was allocated");
        }
        for (bytes, align) in [(9000, 8192), (1 << 19, 8), (isize::MAX as usize - 7, 8)] {
            let layout = Layout::from_size_align(bytes, align).expect("a layout");
            assert_eq!(used.heap.alloc(layout), None, "{layout:?}");
        }
        used.end();
    });
}
