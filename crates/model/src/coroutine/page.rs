//! Coroutines of a page: the browser has a stack for each, and the page's worker switches (`slablab-page`,
//! `worker.js`). `unsafe`: calls from and to JavaScript.
//!
//! A stack of WebAssembly is the browser's, but for what has an address: that is in the module's memory, and
//! the worker moves the pointer to it with each switch.

use std::cell::{Cell, RefCell};

/// Memory for what has an address.
pub(crate) struct Stack(Vec<u128>);

/// Code that can be suspended, and continues there. What one has that is dropped before it ends stays: the
/// module lives for one question.
pub(crate) struct Coroutine(Box<State>);

struct State {
    code: RefCell<Option<Box<dyn FnOnce()>>>,
    stack: Stack,
    ended: Cell<bool>,
}

#[link(wasm_import_module = "coroutines")]
unsafe extern "C" {
    /// Begins or continues a coroutine; comes back when it is suspended or ends.
    safe fn resume(state: *const ());
    /// Suspends the running coroutine.
    safe fn suspend_running();
    /// Says that a coroutine that is suspended, or did not begin, is not continued.
    safe fn forget(state: *const ());
}

/// Suspends the running coroutine.
pub(crate) fn suspend() {
    suspend_running();
}

/// Where a coroutine's stack begins: its end, as stacks grow down.
// SAFETY: no other function of the module has this name.
#[unsafe(no_mangle)]
extern "C" fn slablab_coroutine_stack(state: &State) -> *const u128 {
    state.stack.0.as_ptr_range().end
}

/// Runs a coroutine's code.
// SAFETY: as for `slablab_coroutine_stack`.
#[unsafe(no_mangle)]
extern "C" fn slablab_coroutine_begin(state: &State) {
    let code = state.code.take().expect("a coroutine begins once");
    code();
    state.ended.set(true);
}

impl Stack {
    /// A stack of so many bytes.
    pub(crate) fn new(bytes: usize) -> Stack {
        Stack(vec![0; bytes / size_of::<u128>()])
    }
}

impl Coroutine {
    /// Code that runs when it is continued first.
    pub(crate) fn new(stack: Stack, f: impl FnOnce() + 'static) -> Coroutine {
        let code = RefCell::new(Some(Box::new(f) as Box<dyn FnOnce()>));
        Coroutine(Box::new(State { code, stack, ended: Cell::new(false) }))
    }

    fn state(&self) -> *const () {
        (&raw const *self.0).cast()
    }

    /// Continues it until it is suspended or ends. Gives whether it ended.
    pub(crate) fn resume(&mut self) -> bool {
        resume(self.state());
        self.0.ended.get()
    }

    /// The stack of one that ended.
    pub(crate) fn into_stack(mut self) -> Stack {
        Stack(std::mem::take(&mut self.0.stack.0))
    }
}

impl Drop for Coroutine {
    fn drop(&mut self) {
        if !self.0.ended.get() {
            forget(self.state());
        }
    }
}
