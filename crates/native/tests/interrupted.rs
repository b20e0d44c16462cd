//! Hot operations are interrupted at every instruction, and no object is lost. `unsafe`: single steps and
//! breakpoints in this process itself.
//!
//! With slots per thread, each operation is run in single steps, once for each of its instructions; after
//! that instruction a signal handler uses the same slot in one of several ways. With slots per CPU, single
//! steps would abort a sequence again and again, so each operation is run in single steps once, to learn
//! the addresses of its sequence's instructions, and then once for each address with a breakpoint there:
//! the signal interrupts the sequence, the kernel aborts it, and the handler uses the same slot in one of
//! several ways before the operation starts again. In both cases every object is in one place afterwards.
//! Slots at fixed places are interrupted, and others. This cannot show sequences of another machine, or
//! interference by another CPU (storm.rs does).
#![cfg(all(target_arch = "x86_64", target_env = "gnu"))]
#![expect(unsafe_code, reason = "breakpoints and signal handlers")]

mod again;

mod program;
use program::Native;
use slablab_native::{Object, Served};
use slablab_platform::{
    CpuId, Event, Frames, HotArray, HotList, Local, Memory, NodeId, PerCpu, Pfn, Platform, Shortcut,
    Topology, Want,
};
use std::arch::asm;
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

/// With a value of as many bytes as slots at fixed places have.
type Slots = <Native as Platform>::PerCpu<[u64; 10]>;

const OBJECT_BYTES: u32 = 128;
const OBJECTS: usize = 12;
/// How many of the objects are in the slot when an operation begins.
const INSIDE: usize = 6;
const TAG: u64 = 7;
const TAGGED: Want = Want { mask: u64::MAX, value: TAG };

/// The descriptor of a sequence (`struct rseq_cs`).
#[repr(C, align(32))]
struct Sequence {
    version: u32,
    flags: u32,
    start: usize,
    bytes: usize,
    abort: usize,
}

unsafe extern "C" {
    #[link_name = "__start___rseq_cs"]
    static FIRST: Sequence;
    #[link_name = "__stop___rseq_cs"]
    static END: Sequence;
}

/// Every sequence of this program.
fn sequences() -> &'static [Sequence] {
    let (first, end) = (&raw const FIRST, &raw const END);
    // SAFETY: the linker defines both symbols, around the descriptors that the assembler wrote.
    unsafe { std::slice::from_raw_parts(first, end.offset_from_unsigned(first)) }
}

/// The cache under test, and its objects.
struct Bench {
    slots: Slots,
    objects: Vec<Object>,
    storage: [Object; 3],
    /// An array in no slot: the address of its storage, and its size.
    spare: [AtomicUsize; 2],
}

/// An operation on the bench. Objects go from the slot to the vector `out`, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    PopIf,
    PushIf,
    Pop,
    Push,
    /// Exchanges the slot's array for the spare.
    Swap,
    /// Holds the slot of this thread's CPU, and releases it.
    Hold,
    /// Pops all objects.
    Drain,
    /// Pushes objects until the list is full.
    Fill,
    /// Changes the list's tag, so that it meets no condition.
    Retag,
    /// Moves to the other of two CPUs. The thread states its CPU itself (`Native::go_to`).
    Move,
    Nothing,
}

impl Bench {
    /// A bench in the page frame with this index.
    fn new(frame: u32, slots: Slots) -> Bench {
        let node = (0..Native::nodes()).map(NodeId).find(|node| Native::node_frames(*node).1 > 0);
        let pfn = Pfn(Native::node_frames(node.expect("a node has memory")).0.0 + frame);
        assert!(Native::commit_descriptors(pfn, 1) && Native::commit_frames(pfn, 1));
        Native::map_slab(pfn, 0, OBJECT_BYTES, 0);
        let object = |index: usize| Native::address(pfn, index as u64 * u64::from(OBJECT_BYTES));
        let storage = [0, 1, 2].map(|array| object(OBJECTS + array));
        storage.iter().for_each(|array| Native::storage_attach(*array, OBJECT_BYTES / 8));
        let spare = [AtomicUsize::new(storage[2].addr()), AtomicUsize::new(0)];
        Bench { slots, objects: (0..OBJECTS).map(object).collect(), storage, spare }
    }

    /// Moves to the first CPU, and puts objects into the list and the array of its slot. Returns the other
    /// objects.
    fn set_up(&self) -> Vec<Object> {
        self.empty_all();
        self.spare[0].store(self.storage[2].addr(), Relaxed);
        for (cpu, storage) in [(1, self.storage[1]), (0, self.storage[0])] {
            Native::go_to(CpuId(cpu));
            let mut slot = self.slots.local().expect("the slot is free");
            slot.set_list(HotList { head: None, count: 0, tag: TAG });
            slot.set_array(HotArray { storage: Some(storage), size: 0, capacity: INSIDE as u32 + 1 });
        }
        let (inside, out) = self.objects.split_at(INSIDE);
        for (index, object) in inside.iter().enumerate() {
            let put = match index % 2 {
                0 => self.slots.push_if(TAGGED, 100, *object, Event::FreeFastpath),
                _ => self.slots.push(*object, Event::FreeFastpath),
            };
            assert!(put);
        }
        out.to_vec()
    }

    /// Pops all objects of both CPUs' slots.
    fn empty_all(&self) -> Vec<Object> {
        let on = |cpu: u16| {
            Native::go_to(CpuId(cpu));
            self.empty()
        };
        let mut all = [on(0), on(1)].concat();
        if self.spare[1].load(Relaxed) > 0 {
            self.swap();
            all.extend(self.empty());
        }
        all
    }

    /// Exchanges the array of this thread's slot for the spare. `false` with slots per CPU.
    fn swap(&self) -> bool {
        let swapped = self.slots.swap_array(|_, main| {
            let swap = |word: usize, value: usize| self.spare[word].swap(value, Relaxed);
            let storage = Object::at(std::ptr::with_exposed_provenance_mut(swap(0, main.storage?.addr())));
            Some((HotArray { storage, size: swap(1, main.size as usize) as u32, ..main }, ()))
        });
        swapped.is_some()
    }

    /// Pops all objects of this CPU's slot.
    fn empty(&self) -> Vec<Object> {
        let list = std::iter::from_fn(|| self.slots.pop_if(Want::ANY, Event::AllocFastpath));
        let array = std::iter::from_fn(|| self.slots.pop(Event::AllocFastpath));
        list.chain(array).collect()
    }

    /// Asserts that every object is in `out` or in a slot, once.
    fn assert_all_there(&self, mut out: Vec<Object>, when: impl FnOnce() -> String) {
        out.extend(self.empty_all());
        let mut found: Vec<usize> = out.iter().map(|object| object.addr()).collect();
        found.sort_unstable();
        let all: Vec<usize> = self.objects.iter().map(|object| object.addr()).collect();
        assert_eq!(found, all, "{}", when());
    }

    /// Does a step. A small function, because single steps go through it.
    #[inline(never)]
    fn step(&self, step: Step, out: &mut Vec<Object>) {
        match step {
            Step::PopIf => out.extend(self.slots.pop_if(TAGGED, Event::AllocFastpath)),
            Step::Pop => out.extend(self.slots.pop(Event::AllocFastpath)),
            Step::PushIf => {
                let object = out.pop().expect("an object is out of the slot");
                if !self.slots.push_if(TAGGED, INSIDE as u32, object, Event::FreeFastpath) {
                    out.push(object);
                }
            }
            Step::Push => {
                let object = out.pop().expect("an object is out of the slot");
                if !self.slots.push(object, Event::FreeFastpath) {
                    out.push(object);
                }
            }
            Step::Swap => {
                self.swap();
            }
            Step::Hold => {
                if let Some(slot) = self.slots.local() {
                    assert_eq!(slot.cpu(), Native::cpu(), "the CPU of the held slot");
                }
            }
            Step::Drain => out.extend(self.empty()),
            Step::Fill => {
                while let Some(object) = out.pop() {
                    if !self.slots.push_if(Want::ANY, 100, object, Event::FreeFastpath) {
                        out.push(object);
                        break;
                    }
                }
            }
            Step::Retag => {
                if let Some(mut slot) = self.slots.local() {
                    let list = slot.list();
                    slot.set_list(HotList { tag: TAG + 1, ..list });
                }
            }
            Step::Move => Native::go_to(CpuId(1 - Native::cpu().0)),
            Step::Nothing => {}
        }
    }
}

/// What the handler does at the breakpoint.
struct Plan {
    /// Addresses of instructions that single steps found.
    seen: BTreeSet<usize>,
    /// The handler's step, and the handler's objects.
    step: Step,
    out: Vec<Object>,
}

static PLAN: Mutex<Plan> = Mutex::new(Plan { seen: BTreeSet::new(), step: Step::Nothing, out: Vec::new() });
/// Slots at no fixed place, and at one.
static BENCHES: OnceLock<[Bench; 2]> = OnceLock::new();
/// The bench under test.
static CURRENT: AtomicUsize = AtomicUsize::new(0);
/// The breakpoint's address, 0 for none; the byte that the breakpoint replaced.
static BREAK: AtomicUsize = AtomicUsize::new(0);
static HIDDEN: AtomicUsize = AtomicUsize::new(0);
static STEPPING: AtomicBool = AtomicBool::new(false);
/// Single steps until the handler does its step, with slots per thread. At 0 the handler does nothing.
static LEFT: AtomicUsize = AtomicUsize::new(0);
static ABORTED: AtomicUsize = AtomicUsize::new(0);

fn bench() -> &'static Bench {
    &BENCHES.get().expect("there are two")[CURRENT.load(Relaxed)]
}

/// The word in which this thread stores which sequence it is in.
fn sequence_word() -> *mut u64 {
    // SAFETY: slots belong to CPUs, so the C library has the constant; the first word of a thread's block is
    // its address.
    unsafe {
        let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()).cast::<isize>();
        let thread: *mut u8;
        asm!("mov {}, fs:[0]", out(reg) thread, options(nostack, readonly));
        thread.byte_offset(*offset + 8).cast()
    }
}

extern "C" fn trap(_signal: i32, _info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes the context of the interrupted code.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let at = registers[libc::REG_RIP as usize] as usize;
    match LEFT.load(Relaxed) {
        0 => {}
        1 => {
            LEFT.store(0, Relaxed);
            let Plan { step, out, .. } = &mut *PLAN.lock().expect("one thread");
            return bench().step(*step, out);
        }
        left => return LEFT.store(left - 1, Relaxed),
    }
    let aborted = sequences().iter().find(|sequence| sequence.abort == at);
    if STEPPING.load(Relaxed) {
        let seen = &mut PLAN.lock().expect("one thread").seen;
        if let Some(sequence) = aborted {
            // Continue at the sequence's start without a stored descriptor, so that the kernel aborts no
            // more.
            registers[libc::REG_RIP as usize] = sequence.start as i64;
            // SAFETY: this thread's word.
            unsafe { *sequence_word() = 0 };
            seen.insert(sequence.start);
        } else if sequences().iter().any(|s| (s.start..s.start + s.bytes).contains(&at)) {
            seen.insert(at);
        }
        return;
    }
    let place = BREAK.swap(0, Relaxed);
    poke(place, HIDDEN.load(Relaxed) as u8);
    let Some(_) =
        aborted.filter(|sequence| (sequence.start..sequence.start + sequence.bytes).contains(&place))
    else {
        eprintln!("the breakpoint at {place:#x} was reached, and the kernel did not abort the sequence");
        std::process::abort();
    };
    ABORTED.fetch_add(1, Relaxed);
    let Plan { step, out, .. } = &mut *PLAN.lock().expect("one thread");
    bench().step(*step, out);
}

/// Writes a byte of this program.
fn poke(at: usize, byte: u8) {
    let at: *mut u8 = std::ptr::with_exposed_provenance_mut(at);
    // SAFETY: `make_writable` made the program's sequences writable.
    unsafe { at.write_volatile(byte) };
}

fn make_writable(sequence: &Sequence) {
    let page = sequence.start & !4095;
    let bytes = (sequence.start + sequence.bytes).next_multiple_of(4096) - page;
    let all = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let page = std::ptr::with_exposed_provenance_mut(page);
    // SAFETY: whole pages of this program keep their contents.
    assert_eq!(unsafe { libc::mprotect(page, bytes, all) }, 0, "the program's code can be made writable");
}

/// Runs `f` in single steps.
fn in_single_steps(f: impl FnOnce()) {
    const TRAP_FLAG: u64 = 1 << 8;
    STEPPING.store(true, Relaxed);
    // SAFETY: the flag makes every instruction end with a signal, which is handled.
    unsafe { asm!("pushfq", "or qword ptr [rsp], {flag}", "popfq", flag = const TRAP_FLAG) };
    f();
    // SAFETY: as above.
    unsafe { asm!("pushfq", "and qword ptr [rsp], {flag}", "popfq", flag = const !TRAP_FLAG as i32) };
    STEPPING.store(false, Relaxed);
}

/// With slots per thread: interrupts `step` with `other` after each of its instructions. Returns the number
/// of instructions.
fn check_steps(bench: &Bench, step: Step, other: Step) -> usize {
    let plan = || PLAN.lock().expect("one thread");
    for place in 1.. {
        let mut out = bench.set_up();
        let theirs = out.split_off(2);
        *plan() = Plan { seen: BTreeSet::new(), step: other, out: theirs };
        LEFT.store(place, Relaxed);
        in_single_steps(|| bench.step(step, &mut out));
        let over = LEFT.swap(0, Relaxed) > 0;
        out.append(&mut plan().out);
        bench.assert_all_there(out, || {
            format!("{step:?} interrupted after {place} instructions by {other:?}")
        });
        if over {
            assert!(place > 20, "{step:?}: {place} single steps");
            return place - 1;
        }
    }
    unreachable!("a step ends")
}

/// With slots per CPU: interrupts `step` with `other` at each instruction of its sequence. Returns the number
/// of instructions.
fn check(bench: &Bench, step: Step, other: Step) -> usize {
    let plan = || PLAN.lock().expect("one thread");
    let mut out = bench.set_up();
    in_single_steps(|| bench.step(step, &mut out));
    let places = std::mem::take(&mut plan().seen);
    assert!(places.len() >= 5, "{step:?}: {} instructions", places.len());
    for place in &places {
        let mut out = bench.set_up();
        let theirs = out.split_off(2);
        *plan() = Plan { seen: BTreeSet::new(), step: other, out: theirs };
        ABORTED.store(0, Relaxed);
        // SAFETY: an instruction of this program.
        HIDDEN.store(unsafe { *std::ptr::with_exposed_provenance::<u8>(*place) } as usize, Relaxed);
        BREAK.store(*place, Relaxed);
        poke(*place, 0xcc);
        bench.step(step, &mut out);
        assert_eq!(ABORTED.load(Relaxed), 1, "{step:?} at {place:#x}: aborted once");
        out.append(&mut plan().out);
        bench.assert_all_there(out, || format!("{step:?} interrupted at {place:#x} by {other:?}"));
    }
    places.len()
}

#[test]
fn interrupted() {
    Native::enter_pretending(|| {
        let sequences_are_used = matches!(Native::slots(), Served::Cpu | Served::Concurrency);
        if sequences_are_used {
            sequences().iter().for_each(make_writable);
        }
        // SAFETY: the handler's type fits its flags.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = trap as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            assert_eq!(libc::sigaction(libc::SIGTRAP, &action, std::ptr::null_mut()), 0);
        }
        let _ = BENCHES.set([Bench::new(0, Slots::new(64)), Bench::new(1, Slots::of_cache(0, 64))]);
        LEFT.store(100, Relaxed);
        in_single_steps(|| assert!(!bench().objects.is_empty()));
        if LEFT.swap(0, Relaxed) == 100 {
            return println!("{}: skipped: no single steps here (valgrind)", Native::slots());
        }
        let others = [
            Step::Nothing,
            Step::PopIf,
            Step::PushIf,
            Step::Pop,
            Step::Push,
            Step::Swap,
            Step::Hold,
            Step::Drain,
            Step::Fill,
            Step::Retag,
            Step::Move,
        ];
        let check = if sequences_are_used { check } else { check_steps };
        for (current, place) in ["no fixed place", "a fixed place"].iter().enumerate() {
            CURRENT.store(current, Relaxed);
            for step in [Step::PopIf, Step::PushIf, Step::Pop, Step::Push, Step::Hold, Step::Swap] {
                let uses_array = matches!(step, Step::Pop | Step::Push | Step::Hold | Step::Swap);
                // A sequence does the same at any place, and a list has no top.
                let is_new = current == 0 || uses_array && !sequences_are_used;
                if !is_new || sequences_are_used && step == Step::Swap {
                    continue;
                }
                let counts = others.map(|other| check(bench(), step, other));
                println!(
                    "{}, at {place}: {step:?} interrupted at each of {} instructions, in {} ways",
                    Native::slots(),
                    counts[0],
                    others.len()
                );
            }
        }
    });
}

#[test]
fn interrupted_per_cpu() {
    again::per_cpu("interrupted");
}
