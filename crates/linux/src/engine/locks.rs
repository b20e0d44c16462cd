//! Locks of the tree's code in a world that charges: a lock of the world for each, found by its address. Its
//! word lies where the tree's does, so that what lies beside it moves with it.

use crate::image::Image;
use slablab_platform::rank::{Barn, Debug, NodeList};
use slablab_platform::{Lock, Platform, Site};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;

/// A lock of the world, by what it is of: the order in which locks are taken is checked.
pub(super) enum Kept<P: Platform> {
    /// `list_lock` of a cache's node.
    Node(P::Lock<NodeList, ()>),
    /// That of a barn, or of another object that the tree made for itself.
    Barn(P::Lock<Barn, ()>),
    /// One that lies in no slab.
    Other(P::Lock<Debug, ()>),
}

type GuardOf<'a, P, R> = <<P as Platform>::Lock<R, ()> as Lock<()>>::Guard<'a>;

/// A lock that is held.
pub(super) enum Held<'a, P: Platform + 'a> {
    Node(GuardOf<'a, P, NodeList>),
    Barn(GuardOf<'a, P, Barn>),
    Other(GuardOf<'a, P, Debug>),
}

impl<P: Platform> Kept<P> {
    /// A lock of the kind that shim/caches.c names.
    pub(super) fn new(kind: u64, site: Site) -> Kept<P> {
        P::made_at(site, || match kind {
            0 => Kept::Other(Lock::new(())),
            1 => Kept::Node(Lock::new(())),
            _ => Kept::Barn(Lock::new(())),
        })
    }

    pub(super) fn is_of_node(&self) -> bool {
        matches!(self, Kept::Node(_))
    }

    /// Takes the lock: here a call may be suspended.
    pub(super) fn lock(&self) -> Held<'_, P> {
        match self {
            Kept::Node(lock) => Held::Node(lock.lock()),
            Kept::Barn(lock) => Held::Barn(lock.lock()),
            Kept::Other(lock) => Held::Other(lock.lock()),
        }
    }

    pub(super) fn try_lock(&self) -> Option<Held<'_, P>> {
        Some(match self {
            Kept::Node(lock) => Held::Node(lock.try_lock()?),
            Kept::Barn(lock) => Held::Barn(lock.try_lock()?),
            Kept::Other(lock) => Held::Other(lock.try_lock()?),
        })
    }
}

/// Locks in the first room; each next one has twice as many.
const FIRST: u32 = 64;
const ROOMS: usize = 24;

type Room<P> = OnceCell<Box<[OnceCell<Kept<P>>]>>;

/// All locks of an image. None moves or goes while a call may hold it.
pub(super) struct Locks<P: Platform> {
    known: RefCell<HashMap<u64, u32>>,
    rooms: [Room<P>; ROOMS],
    count: Cell<u32>,
}

impl<P: Platform> Locks<P> {
    pub(super) fn new() -> Locks<P> {
        Locks { known: RefCell::default(), rooms: [const { OnceCell::new() }; ROOMS], count: Cell::new(0) }
    }

    /// The lock at an address; `make` makes one that is not known.
    pub(super) fn at(&self, address: u64, make: impl FnOnce() -> Kept<P>) -> &Kept<P> {
        let known = self.known.borrow().get(&address).copied();
        let index = known.unwrap_or_else(|| {
            let index = self.count.get();
            self.count.set(index + 1);
            self.known.borrow_mut().insert(address, index);
            index
        });
        let room = (index / FIRST + 1).ilog2();
        let first = FIRST * ((1 << room) - 1);
        let room =
            self.rooms[room as usize].get_or_init(|| (0..FIRST << room).map(|_| OnceCell::new()).collect());
        room[(index - first) as usize].get_or_init(make)
    }
}

/// Where a lock lies.
pub(super) fn site_of<P: Platform>(image: &Image, address: u64) -> Site {
    super::costs::site::<P>(image, address).unwrap_or(Site::Own(address, P::cpu_node(P::cpu())))
}
