//! What processes of a script tell each other, and wait for.

use std::cell::Cell;
use std::rc::Rc;

/// What parent and child tell each other.
#[derive(Default)]
pub(super) struct Child {
    /// `ready` that no `until` has met.
    pub(super) ready: Cell<u32>,
    /// `go` that no `ready` has met.
    pub(super) go: Cell<u32>,
    pub(super) has_ended: Cell<bool>,
}

/// What a process sleeps for.
#[derive(Clone)]
pub(super) enum Awaited {
    /// `go` of its parent.
    Go(Rc<Child>),
    /// `ready` of a child, or the child's end.
    Ready(Rc<Child>),
    /// The end of a child.
    End(Rc<Child>),
}

impl Awaited {
    /// The reason, as the kernel shows it.
    pub(super) fn what(&self) -> &'static str {
        match self {
            Awaited::Go(_) => "for its parent, process",
            Awaited::Ready(_) => "for a child to be ready, process",
            Awaited::End(_) => "for the end of a child, process",
        }
    }

    /// Whether it has come.
    pub(super) fn has_come(&self) -> bool {
        match self {
            Awaited::Go(child) => child.go.get() > 0,
            Awaited::Ready(child) => child.ready.get() > 0 || child.has_ended.get(),
            Awaited::End(child) => child.has_ended.get(),
        }
    }

    /// The command that sleeps, as a script has it.
    pub(super) fn command(&self) -> &'static str {
        match self {
            Awaited::Go(_) => "at `ready`, for `go` of its parent",
            Awaited::Ready(_) => "at `until`, for `ready` of a child",
            Awaited::End(_) => "at `join`, for the end of a child",
        }
    }
}
