//! A slab's free objects as a map, a bit for each, beside the descriptors of the page frames
//! (`freelist=map`). No kernel has it.
//!
//! A list of links is read object by object, each a load that depends on the one before, of memory that
//! nobody used for long. A new list touches every page of its slab. Here neither a refill nor a flush nor a
//! new slab touches an object, and of a slab's free objects those with the lowest addresses go first.
//!
//! | step | who | what |
//! |---|---|---|
//! | free | any CPU | sets the objects' bits, then takes them off the slab's `inuse` |
//! | take | the holder of the `list_lock` that the slab is listed under, or the CPU that took the slab off its list | clears bits, then adds the objects to `inuse` |
//!
//! So for everybody but the CPU that takes, a slab has at least as many bits as its word has free objects,
//! and a CPU that sees no object in use sees every bit. A bit that is set already is an object that was freed
//! twice. Which bits were counted nobody can tell: a CPU that takes may take the bit of a free that has not
//! counted it yet, and leaves another.
//!
//! The word's head is `Some(0)` while it counts free objects: the tables of [`super::state`] need no more.

use super::{FreeList, SlabUpdate, Slub, Tally};
use crate::backing::Backing;
use crate::damage::damaged;
use crate::report::Misuse;
use crate::slab::{Chain, Slab};
use slablab_platform::{Event, MAP_BYTES, PerCpu, Platform, Word};

/// Objects that a word of the map has bits for.
const WORD_OBJECTS: u32 = u64::BITS;

/// What is wrong, and with which object.
pub(super) type Wrong<P> = (Misuse, <P as slablab_platform::Frames>::Ptr);

/// Freed objects of one slab on their way to the slab's map. The bits of one word are collected, and set in
/// the map when an object of another word comes.
pub(super) struct Freed<P: Platform> {
    slab: Slab<P>,
    word: u32,
    bits: u64,
    /// How many objects there are, without those found that were free already.
    count: u32,
    /// The first object found that was free already, by its number.
    twice: Option<u32>,
}

impl<P: Platform> Freed<P> {
    pub(super) fn none_of(slab: Slab<P>) -> Self {
        Freed { slab, word: 0, bits: 0, count: 0, twice: None }
    }

    /// Adds the object `offset` bytes into the slab.
    #[inline]
    pub(super) fn add(&mut self, cache: &Slub<P>, offset: u32) {
        let number = cache.starts.index(offset);
        let (word, bit) = (number / WORD_OBJECTS, 1 << (number % WORD_OBJECTS));
        if word != self.word {
            self.set(cache);
            self.word = word;
        }
        if self.bits & bit > 0 {
            self.twice = self.twice.or(Some(number));
        } else {
            self.count += 1;
        }
        self.bits |= bit;
    }

    /// Sets the collected bits in the map.
    fn set(&mut self, cache: &Slub<P>) {
        if self.bits == 0 {
            return;
        }
        let before = cache.set(self.slab, self.word, self.bits);
        if before > 0 {
            self.count -= before.count_ones();
            self.twice = self.twice.or(Some(self.word * WORD_OBJECTS + before.trailing_zeros()));
        }
        self.bits = 0;
    }
}

/// Some bit of `bits`, which has one: the first from a random place on. `random` is the state of a generator
/// (Marsaglia's xorshift, 2003).
fn any_bit(bits: u64, random: &mut u64) -> u32 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    let from = (*random >> 32) as u32 % u64::BITS;
    (bits.rotate_right(from).trailing_zeros() + from) % u64::BITS
}

impl<P: Platform> Slub<P> {
    /// Whether slabs have maps. Objects that are smaller than what a bit stands for keep links.
    #[inline]
    pub(super) fn has_map(&self) -> bool {
        self.policy.freelist == FreeList::Map && self.geometry.size >= MAP_BYTES
    }

    /// The number of an object in its slab.
    pub(super) fn number(&self, slab: Slab<P>, object: P::Ptr) -> u32 {
        self.starts.index(slab.bytes_to(object))
    }

    fn numbered(&self, slab: Slab<P>, number: u32) -> P::Ptr {
        P::address(slab.pfn(), u64::from(number) * u64::from(self.geometry.size))
    }

    /// Makes the map of a slab that no other CPU can find yet. `is_free` says of a word's objects which are
    /// free.
    pub(super) fn make_map(&self, slab: Slab<P>, objects: u32, is_free: impl Fn(u32) -> u64) {
        for word in 0..objects.div_ceil(WORD_OBJECTS) {
            let left = objects - word * WORD_OBJECTS;
            let all = if left >= WORD_OBJECTS { u64::MAX } else { (1 << left) - 1 };
            P::with_map(slab.pfn(), word, |map| map.store(all & is_free(word)));
        }
    }

    /// As `take_from_slab`, by the map.
    pub(super) fn take_from_map(
        &self,
        slab: Slab<P>,
        want: u32,
        put: &mut impl FnMut(P::Ptr),
    ) -> (u32, bool) {
        let mut word = slab.word();
        let count = word.free().min(want);
        if count == 0 {
            self.listed_full(slab);
        }
        self.clear(slab, word.objects.into(), count, put);
        loop {
            let left = word.free() - count;
            match slab.exchange(word, word.taken(count, (left > 0).then_some(0))) {
                Ok(()) => return (count, left == 0),
                Err(found) => {
                    self.slots.count(Event::CmpxchgDoubleFail, 1);
                    word = found;
                }
            }
        }
    }

    /// Clears `count` bits, of which the map has at least so many, and passes their objects to `put`: the
    /// lowest ones, lowest first, or in random order where the cache wants that.
    fn clear(&self, slab: Slab<P>, objects: u32, count: u32, put: &mut impl FnMut(P::Ptr)) {
        let words = objects.div_ceil(WORD_OBJECTS);
        let mut random = self.new.shuffled.then(|| u64::from(P::random()) << 32 | 1);
        let first = random.map_or(0, |random| (random >> 32) as u32 % words);
        let mut left = count;
        for word in (first..words).chain(0..first) {
            let object = |bit: u32| self.numbered(slab, word * WORD_OBJECTS + bit);
            let mut taken = self.clear_some(slab, word, left, random.as_mut());
            left -= taken.count_ones();
            while taken > 0 {
                let bit = match &mut random {
                    Some(random) => any_bit(taken, random),
                    None => taken.trailing_zeros(),
                };
                taken &= !(1 << bit);
                put(object(bit));
            }
            if left == 0 {
                return;
            }
        }
        damaged::<P>(
            self.id,
            format_args!("{slab:?} has {left} free objects less in its map than its word counts"),
        )
    }

    /// Clears up to `most` bits of a word of the map, the lowest or random ones; returns them.
    fn clear_some(&self, slab: Slab<P>, word: u32, most: u32, mut random: Option<&mut u64>) -> u64 {
        P::with_map(slab.pfn(), word, |map| {
            let mut bits = map.load();
            while bits > 0 {
                let mut stay = bits;
                for _ in 0..bits.count_ones().min(most) {
                    stay &= match &mut random {
                        Some(random) => !(1 << any_bit(stay, random)),
                        None => stay - 1,
                    };
                }
                match map.compare_exchange(bits, stay) {
                    Ok(_) => return bits & !stay,
                    Err(found) => bits = found,
                }
            }
            0
        })
    }

    /// Sets bits of a word of the map; returns those that were set already.
    fn set(&self, slab: Slab<P>, word: u32, bits: u64) -> u64 {
        P::with_map(slab.pfn(), word, |map| {
            let mut before = map.load();
            while let Err(found) = map.compare_exchange(before, before | bits) {
                before = found;
            }
            before & bits
        })
    }

    /// Notes in its slab's map that an object is free. The caller then takes it off the slab's `inuse`.
    pub(super) fn note_free(&self, slab: Slab<P>, object: P::Ptr) -> Result<(), Misuse> {
        let number = self.number(slab, object);
        match self.set(slab, number / WORD_OBJECTS, 1 << (number % WORD_OBJECTS)) {
            0 => Ok(()),
            _ => Err(Misuse::AlreadyFree),
        }
    }

    /// Takes `count` freed objects off a slab's `inuse`, if the slab stays on its list: it has a free object
    /// already, and keeps one in use. False, and nothing changed, if the slab has to move, or if another CPU
    /// changed its word first.
    fn push_count(&self, slab: Slab<P>, count: u32, tally: Tally) -> bool {
        let word = slab.word();
        let stays = word.head.is_some() && !word.frozen && u32::from(word.inuse) > count;
        let Some(pushed) = word.pushed(0, count).filter(|_| stays) else { return false };
        if self.policy.update == SlabUpdate::BitLock || slab.exchange(word, pushed).is_err() {
            return false;
        }
        self.slots.count(tally.slow, count.into());
        true
    }

    /// Frees objects of one slab. An object that is free already is named; the others are free then.
    pub(super) fn free_to_map(
        &self,
        backing: &Backing<'_, P>,
        mut freed: Freed<P>,
        tally: Tally,
    ) -> Result<(), Wrong<P>> {
        freed.set(self);
        let Freed { slab, count, twice, .. } = freed;
        if count > 0 && !self.push_count(slab, count, tally) {
            let any = self.numbered(slab, 0);
            self.push_chain(backing, slab, slab.state(), Chain { head: any, tail: any, count }, tally)
                .map_err(|misuse| (misuse, any))?;
        }
        match twice {
            Some(number) => Err((Misuse::AlreadyFree, self.numbered(slab, number))),
            None => Ok(()),
        }
    }
}
