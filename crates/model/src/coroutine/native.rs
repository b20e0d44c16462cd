//! Coroutines on stacks of their own. `unsafe`: the running coroutine finds its own `Yielder` through a
//! pointer.

use corosensei::stack::DefaultStack;
use corosensei::{CoroutineResult, Yielder};
use std::cell::Cell;

/// A stack that a coroutine runs on.
pub(crate) struct Stack(DefaultStack);

/// Code that can be suspended, and continues there.
pub(crate) struct Coroutine(corosensei::Coroutine<(), (), (), DefaultStack>);

type Yields = Yielder<(), ()>;

thread_local! {
    /// The running coroutine's own.
    static YIELDER: Cell<*const Yields> = const { Cell::new(std::ptr::null()) };
}

/// When a coroutine is suspended, ends or panics, the code that continued it runs on: outside of coroutines,
/// or in another one, whose yielder this is.
struct Outer(*const Yields);

impl Drop for Outer {
    fn drop(&mut self) {
        YIELDER.set(self.0);
    }
}

/// Suspends the running coroutine.
pub(crate) fn suspend() {
    let yielder = YIELDER.get();
    assert!(!yielder.is_null(), "outside of a coroutine nothing can wait");
    // SAFETY: the first line of the running coroutine's function set the pointer to its own yielder. The line
    // below set it again after each suspension. `Outer` put it back after each coroutine that ran inside of
    // this one. So the yielder is that of the coroutine that runs now. The function that borrows the yielder
    // returns after the code that runs here does.
    unsafe { (*yielder).suspend(()) };
    YIELDER.set(yielder);
}

impl Stack {
    /// A stack of so many bytes of address space. Memory is used as it is touched.
    pub(crate) fn new(bytes: usize) -> Stack {
        let stack = DefaultStack::new(bytes);
        Stack(stack.unwrap_or_else(|error| panic!("no memory for the stack of one more call: {error}")))
    }
}

impl Coroutine {
    /// Code that runs when it is continued first.
    pub(crate) fn new(Stack(stack): Stack, f: impl FnOnce() + 'static) -> Coroutine {
        Coroutine(corosensei::Coroutine::with_stack(stack, move |yielder: &Yields, ()| {
            YIELDER.set(yielder);
            f();
        }))
    }

    /// Continues it until it is suspended, panics or ends. Gives whether it ended.
    pub(crate) fn resume(&mut self) -> bool {
        let _outer = Outer(YIELDER.get());
        matches!(self.0.resume(()), CoroutineResult::Return(()))
    }

    /// The stack of one that ended.
    pub(crate) fn into_stack(self) -> Stack {
        Stack(self.0.into_stack())
    }
}
