//! The next events, a window of time ahead.

use std::collections::VecDeque;

use slablab_readers::{Event, Item, Kind, Source};

use super::{ORDER_WINDOW_NS, effect};

/// Events held at most: a machine of 1,024 CPUs records fewer in a window.
const LIMIT: usize = 1 << 12;

/// How far ahead an event can be that belongs in front: the order of effects moves events too.
const LOOK_NS: u64 = ORDER_WINDOW_NS + effect::REACH_NS;

/// A source whose next events can be looked at.
pub(super) struct Lookahead<'a, S> {
    source: &'a mut S,
    queue: VecDeque<Item>,
    ended: bool,
}

/// What an event does to an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Deed {
    Alloc,
    Free,
}

/// The address of an event, and the effect of the event on it.
pub(super) fn deed(event: &Event) -> Option<(Deed, u64)> {
    match event.kind {
        Kind::Kmalloc(alloc) | Kind::CacheAlloc(alloc) => alloc.ptr.map(|address| (Deed::Alloc, address)),
        Kind::Kfree(free) | Kind::CacheFree(free) | Kind::KfreeRcu(free) => {
            free.ptr.map(|address| (Deed::Free, address))
        }
        _ => None,
    }
}

impl<'a, S: Source> Lookahead<'a, S> {
    pub(super) fn new(source: &'a mut S) -> Self {
        Lookahead { source, queue: VecDeque::new(), ended: false }
    }

    pub(super) fn source(&self) -> &S {
        self.source
    }

    /// The next item; [`Lookahead::take`] then sees every event at most a window later.
    pub(super) fn next(&mut self) -> Result<Option<Item>, S::Error> {
        while !self.ended && !self.reaches_far_enough() {
            match self.source.next()? {
                Some(item) => self.queue.push_back(item),
                None => self.ended = true,
            }
        }
        Ok(self.queue.pop_front())
    }

    fn reaches_far_enough(&self) -> bool {
        let time = |item: &Item| match item {
            Item::Event(event) => Some(event.time_ns),
            Item::Lost(_) => None,
        };
        match (self.queue.front().and_then(time), self.queue.back().and_then(time)) {
            (Some(first), Some(last)) => last.saturating_sub(first) > LOOK_NS || self.queue.len() >= LIMIT,
            // A loss at either end: what is behind it is another story.
            _ => !self.queue.is_empty(),
        }
    }

    /// Takes the next event of `address` out of the line if it is `wanted`, by another CPU than `event`'s and
    /// at most a window after it.
    pub(super) fn take(&mut self, event: &Event, address: u64, wanted: Deed) -> Option<Event> {
        for (index, item) in self.queue.iter().enumerate() {
            let Item::Event(next) = item else { return None };
            match deed(next) {
                Some((deed, found)) if found == address => {
                    let near = next.time_ns.saturating_sub(event.time_ns) <= ORDER_WINDOW_NS;
                    let fits = near && deed == wanted && next.cpu != event.cpu;
                    let next = *next;
                    return fits.then(|| self.queue.remove(index)).flatten().map(|_| next);
                }
                _ => {}
            }
        }
        None
    }
}
