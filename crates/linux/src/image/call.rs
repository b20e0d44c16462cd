//! Calls into an image, and the image's calls of the program. `unsafe`: runs the code of a kernel tree.
//!
//! ```text
//! enter ─▶ slablab_enter ─▶ the tree ─▶ host_* (thunks.S) ─▶ functions below ─▶ Outside
//!   ▲            │                                                │
//!   └── result ◀─┴──────────── slablab_escape ◀── finding, panic ─┘
//! ```
//!
//! A call that ends by a finding leaves the tree's frames on the stack as they are: its image is not used any
//! more.
#![allow(unsafe_code)]

use super::Finding;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What the program does for a running call.
pub(crate) trait Outside {
    /// A block of 2^`order` frames: its first frame and its node.
    fn pages_alloc(&self, gfp: u32, order: u32, node: Option<u16>) -> Option<(u32, u16)>;
    fn pages_free(&self, pfn: u64, order: u32);
    /// `caller` is where the tree's code takes it.
    fn lock(&self, lock: u64, caller: u64);
    fn try_lock(&self, lock: u64, caller: u64) -> bool;
    fn unlock(&self, lock: u64);
    /// `function(head)` is due when the readers that run now have ended.
    fn after_grace_period(&self, head: u64, function: u64);
    /// Runs what waits for a grace period.
    fn barrier(&self);
    /// Words of the kernel.
    fn said(&self, kind: u32, text: String, caller: u64);
    fn jiffies(&self) -> u64;
    fn random(&self) -> u32;
    /// Work of the image is due on a CPU.
    fn defer(&self, cpu: u16, work: u64, delay_ns: u64);
    /// The block that begins with this frame is of another cache than the one that the call is of: of this
    /// one, or 0 for one of the image's own.
    fn is_of(&self, pfn: u64, cache: u64);
    /// Takes what the image's code has reported up to here.
    fn reported(&self);
    /// The base of GS of the CPU that the call goes on with, if it slept and was moved to another one.
    fn moved(&self) -> Option<u64> {
        None
    }
}

/// A call, as thunks.S knows it.
#[repr(C)]
pub(crate) struct Call<'a> {
    /// The base of GS: the CPU.
    pub(crate) gs: u64,
    function: u64,
    arguments: [u64; 5],
    result: u64,
    /// The stack at the call; the tree's frames are below.
    pub(crate) stack: Cell<u64>,
    left: Cell<u64>,
    /// The base of GS that it goes on with, or 0.
    moved: Cell<u64>,
    /// A word of the shim's own: what it has seen of the call (slab.c, slob.c).
    own: Cell<u64>,
    // What follows is not known to the image.
    outside: &'a dyn Outside,
    escape: u64,
    payload: RefCell<Option<Box<dyn Any + Send>>>,
}

/// How a call ended.
pub(crate) enum Ended {
    With(u64),
    /// It was left: by a fault of the tree, or by a finding that a function of the program made.
    Left(Option<Box<dyn Any + Send>>),
}

/// The functions of an image that the program calls by address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ways {
    pub(crate) enter: u64,
    pub(crate) escape: u64,
}

/// Runs `function` of the image on the CPU whose base of GS is `gs`.
pub(crate) fn enter(ways: Ways, gs: u64, function: u64, arguments: [u64; 5], outside: &dyn Outside) -> Ended {
    let mut call = Call {
        gs,
        function,
        arguments,
        result: 0,
        stack: Cell::new(0),
        left: Cell::new(0),
        moved: Cell::new(0),
        own: Cell::new(0),
        outside,
        escape: ways.escape,
        payload: RefCell::new(None),
    };
    // SAFETY: `ways` and `function` are of one image, which lies in memory as long as `self.ways` is known;
    // slablab_enter keeps the registers that a C function keeps and returns once. What the tree does to
    // memory is the risk of whoever runs a tree (docs/linux.md): it is code that the user chose to run.
    unsafe {
        let enter: extern "C" fn(*mut Call<'_>) = std::mem::transmute(ways.enter as usize);
        enter(&raw mut call);
    }
    match call.left.get() {
        0 => Ended::With(call.result),
        _ => Ended::Left(call.payload.take()),
    }
}

/// The functions that an image calls, in the order of host.h. The call is the last of six arguments.
pub(crate) fn table() -> [u64; 13] {
    let of = |function: HostFunction| function as usize as u64;
    [
        of(pages_alloc),
        of(pages_free),
        of(lock),
        of(try_lock),
        of(unlock),
        of(after_grace_period),
        of(barrier),
        of(report),
        of(jiffies),
        of(random),
        of(defer),
        of(is_of),
        of(reports),
    ]
}

type HostFunction = extern "C" fn(u64, u64, u64, u64, u64, *const Call<'static>) -> u64;

/// Runs a function of the program. A panic must not unwind the tree's frames: it is kept, and the call left.
fn serve(call: *const Call<'static>, f: impl FnOnce(&dyn Outside) -> u64) -> u64 {
    // SAFETY: thunks.S hands over the running call, which is on the stack of `enter`.
    let call = unsafe { &*call };
    let served = || {
        call.outside.reported();
        f(call.outside)
    };
    match catch_unwind(AssertUnwindSafe(served)) {
        Ok(result) => {
            call.outside.moved().into_iter().for_each(|gs| call.moved.set(gs));
            result
        }
        Err(payload) => {
            *call.payload.borrow_mut() = Some(payload);
            leave(call)
        }
    }
}

fn leave(call: &Call<'_>) -> ! {
    // SAFETY: as in `enter`. Frames above `enter` on this stack hold nothing that is to be dropped: the
    // tree's have no destructors, and `serve` has moved its payload.
    unsafe {
        let escape: extern "C" fn(*const Call<'_>) -> ! = std::mem::transmute(call.escape as usize);
        escape(std::ptr::from_ref(call))
    }
}

macro_rules! host {
    ($($name:ident($outside:ident $(, $argument:ident)*) $body:expr;)*) => {$(
        extern "C" fn $name(a: u64, b: u64, c: u64, _: u64, _: u64, call: *const Call<'static>) -> u64 {
            let _ = (a, b, c);
            serve(call, |$outside| {
                host!(@bind a b c; $($argument)*);
                $body
            })
        }
    )*};
    (@bind $a:ident $b:ident $c:ident;) => {};
    (@bind $a:ident $b:ident $c:ident; $one:ident) => { let $one = $a; };
    (@bind $a:ident $b:ident $c:ident; $one:ident $two:ident) => { let ($one, $two) = ($a, $b); };
    (@bind $a:ident $b:ident $c:ident; $one:ident $two:ident $three:ident) => {
        let ($one, $two, $three) = ($a, $b, $c);
    };
}

host! {
    pages_alloc(outside, gfp, order, node) {
        let node = u16::try_from(node as i32).ok();
        let block = outside.pages_alloc(gfp as u32, order as u32, node);
        block.map_or(0, |(pfn, node)| u64::from(pfn) | u64::from(node) << 32)
    };
    pages_free(outside, pfn, order) { outside.pages_free(pfn, order as u32); 0 };
    lock(outside, lock, caller) { outside.lock(lock, caller); 0 };
    try_lock(outside, lock, caller) u64::from(outside.try_lock(lock, caller));
    unlock(outside, lock) { outside.unlock(lock); 0 };
    after_grace_period(outside, head, function) { outside.after_grace_period(head, function); 0 };
    barrier(outside) { outside.barrier(); 0 };
    report(outside, kind, text, caller) { outside.said(kind as u32, text_at(text), caller); 0 };
    jiffies(outside) outside.jiffies();
    random(outside) u64::from(outside.random());
    defer(outside, cpu, work, ns) { outside.defer(cpu as u16, work, ns); 0 };
    is_of(outside, pfn, cache) { outside.is_of(pfn, cache); 0 };
    // Whoever is called takes the reports first.
    reports(_outside) 0;
}

/// A text of the image.
pub(crate) fn text_at(address: u64) -> String {
    // SAFETY: the shim hands over texts that end with 0.
    let text = unsafe { std::ffi::CStr::from_ptr(address as usize as *const std::ffi::c_char) };
    text.to_string_lossy().trim_end().to_string()
}

/// Ends the running call with a finding. Called by functions of the program.
pub(crate) fn found(finding: Finding) -> ! {
    std::panic::resume_unwind(Box::new(finding))
}
