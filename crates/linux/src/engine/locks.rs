//! Locks of the tree's code in a world that charges: a lock of the world for each, found by its address. Its
//! word lies where the tree's does, so that what lies beside it moves with it.

use crate::image::Image;
use slablab_platform::rank::{Alien, Barn, Debug, Heap, NodeList};
use slablab_platform::{Event, Lock, Platform, Site};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;

/// What a lock of the tree is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockOf {
    /// A cache's node: its `list_lock`.
    Node,
    /// A barn, or another object that the tree made for itself.
    Barn,
    /// SLAB's array of another node's objects.
    Alien,
    /// All of SLOB.
    Heap,
    /// Nothing that lies in a slab.
    Other,
}

/// What a lock is of, and whether that is the cache's whose call takes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LockKind {
    pub(super) of: LockOf,
    pub(super) is_own: bool,
}

impl LockKind {
    /// From the number that the shim gives (host.h).
    pub(super) fn of(number: u64) -> LockKind {
        let of = match number & 7 {
            1 => LockOf::Node,
            2 => LockOf::Barn,
            3 => LockOf::Alien,
            4 => LockOf::Heap,
            _ => LockOf::Other,
        };
        LockKind { of, is_own: number & 8 != 0 }
    }

    pub(super) fn event(self) -> Event {
        match self.of {
            LockOf::Barn => Event::LockBarn,
            LockOf::Alien => Event::LockAlien,
            LockOf::Heap => Event::LockHeap,
            LockOf::Node | LockOf::Other => Event::LockNodeList,
        }
    }
}

/// A lock of the world, by what it is of: the order in which locks are taken is checked.
pub(super) enum Kept<P: Platform> {
    /// `list_lock` of a cache's node.
    Node(P::Lock<NodeList, ()>),
    /// That of a barn, or of another object that the tree made for itself.
    Barn(P::Lock<Barn, ()>),
    /// That of an array for another node's objects.
    Alien(P::Lock<Alien, ()>),
    /// SLOB's.
    Heap(P::Lock<Heap, ()>),
    /// One that lies in no slab.
    Other(P::Lock<Debug, ()>),
}

type GuardOf<'a, P, R> = <<P as Platform>::Lock<R, ()> as Lock<()>>::Guard<'a>;

/// A lock that is held.
pub(super) enum Held<'a, P: Platform + 'a> {
    Node(GuardOf<'a, P, NodeList>),
    Barn(GuardOf<'a, P, Barn>),
    Alien(GuardOf<'a, P, Alien>),
    Heap(GuardOf<'a, P, Heap>),
    Other(GuardOf<'a, P, Debug>),
}

impl<P: Platform> Kept<P> {
    pub(super) fn new(of: LockOf, site: Site) -> Kept<P> {
        P::made_at(site, || match of {
            LockOf::Other => Kept::Other(Lock::new(())),
            LockOf::Node => Kept::Node(Lock::new(())),
            LockOf::Barn => Kept::Barn(Lock::new(())),
            LockOf::Alien => Kept::Alien(Lock::new(())),
            LockOf::Heap => Kept::Heap(Lock::new(())),
        })
    }

    /// Takes the lock: here a call may be suspended.
    pub(super) fn lock(&self) -> Held<'_, P> {
        match self {
            Kept::Node(lock) => Held::Node(lock.lock()),
            Kept::Barn(lock) => Held::Barn(lock.lock()),
            Kept::Alien(lock) => Held::Alien(lock.lock()),
            Kept::Heap(lock) => Held::Heap(lock.lock()),
            Kept::Other(lock) => Held::Other(lock.lock()),
        }
    }

    pub(super) fn try_lock(&self) -> Option<Held<'_, P>> {
        Some(match self {
            Kept::Node(lock) => Held::Node(lock.try_lock()?),
            Kept::Barn(lock) => Held::Barn(lock.try_lock()?),
            Kept::Alien(lock) => Held::Alien(lock.try_lock()?),
            Kept::Heap(lock) => Held::Heap(lock.try_lock()?),
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
