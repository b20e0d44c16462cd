//! How far a build is.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// A part of a build, in the order in which they are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Another build of the same tree is not over.
    Waiting,
    /// The files of a commit.
    Checkout,
    /// Kconfig.
    Configuration,
    /// The tree's objects.
    Objects,
    /// The allocator's objects with reports of their accesses.
    Instrumented,
    /// The shim.
    Shim,
    /// Stubs and images.
    Link,
}

impl Part {
    /// A few words for a line of progress.
    pub fn words(self) -> &'static str {
        match self {
            Part::Waiting => "waiting for another build of this tree",
            Part::Checkout => "checkout",
            Part::Configuration => "configuration",
            Part::Objects => "objects",
            Part::Instrumented => "instrumented objects",
            Part::Shim => "shim",
            Part::Link => "link",
        }
    }
}

/// What is done of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The part.
    pub part: Part,
    /// Files made.
    pub done: u64,
    /// Files to make, which is an estimate if kbuild prepares the tree, too.
    pub whole: u64,
}

/// Tells the caller how far the build is, and measures its parts.
pub(crate) struct Listener<'a> {
    to: &'a mut dyn FnMut(Step) -> ControlFlow<()>,
    last: Option<(Part, Instant)>,
    parts: BTreeMap<Part, Duration>,
}

impl<'a> Listener<'a> {
    pub(crate) fn new(to: &'a mut dyn FnMut(Step) -> ControlFlow<()>) -> Listener<'a> {
        Listener { to, last: None, parts: BTreeMap::new() }
    }

    /// Tells a step. False: the caller says to stop.
    pub(crate) fn at(&mut self, part: Part, done: u64, whole: u64) -> bool {
        let now = Instant::now();
        // What passed until now was the part that was told before.
        if let Some((last, since)) = self.last.replace((part, now)) {
            *self.parts.entry(last).or_default() += now - since;
        }
        (self.to)(Step { part, done, whole }).is_continue()
    }

    /// Seconds of each part so far, in the order of the parts.
    pub(super) fn parts(&self) -> impl Iterator<Item = (Part, f64)> {
        self.parts.iter().map(|(part, time)| (*part, time.as_secs_f64()))
    }
}
