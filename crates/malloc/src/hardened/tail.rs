//! The last word of an object or large block: whether it is live, its size, and the canary.
//!
//! | word | the object |
//! |---|---|
//! | 0 | is free, as all its other bytes are 0 |
//! | canary XOR slack in the upper 16 bits | is live; slack: the unused bytes between the requested size and this word |
//!
//! The canary of an address is a product of it with secrets of the process, so the canaries of two addresses
//! differ, and one that leaked does not fit elsewhere. Its lowest byte, the first behind the object, is never
//! 0: a terminating zero one byte too far is the commonest overflow. (Other allocators have a zero there,
//! which stops a string's read from leaking the canary.) The unused bytes stay zeros while the object is
//! live.

use super::bytes;
use crate::classes;
use slablab_native::{Object, system};

/// Bytes of the word.
pub(super) const TAIL: usize = 8;
/// Where the slack is in the word.
const SLACK_SHIFT: u32 = 48;

/// Bytes of an object of a class before its tail.
static ROOMS: [u16; classes::COUNT] = {
    let mut rooms = [0; classes::COUNT];
    let mut class = 0;
    while class < classes::COUNT {
        rooms[class] = (classes::size(class) as usize - TAIL) as u16;
        class += 1;
    }
    rooms
};

/// Bytes of an object of a class before its tail.
#[inline(always)]
pub(super) fn room(class: usize) -> usize {
    ROOMS[class].into()
}

/// The secrets of a process's canaries.
pub(super) struct Keys {
    added: u64,
    factor: u64,
}

/// What a tail says.
pub(super) enum Says {
    /// The object is live: its requested bytes.
    Live(usize),
    /// The object is free.
    Free,
    /// The word is neither.
    Damaged,
}

impl Keys {
    pub(super) fn new() -> Keys {
        Keys { added: system::secret(), factor: system::secret() | 1 }
    }

    /// The canary of the object at an address, without slack.
    #[inline(always)]
    pub(super) fn canary(&self, object: Object) -> u64 {
        self.mixed(object.addr() as u64) | 1
    }

    /// A number that nobody without the secrets can compute from `value`.
    #[inline(always)]
    pub(super) fn mixed(&self, value: u64) -> u64 {
        let product = u128::from(value ^ self.added) * u128::from(self.factor);
        (product >> 64) as u64 ^ product as u64
    }

    /// The tail of a live object with room for `room` bytes, of which `requested` were asked for.
    #[inline(always)]
    pub(super) fn tail(&self, object: Object, room: usize, requested: usize) -> u64 {
        self.canary(object) ^ ((room - requested) as u64) << SLACK_SHIFT
    }

    /// What the tail of an object with room for `room` bytes says, of which `slack_most` may be unused.
    #[inline(always)]
    pub(super) fn read(&self, object: Object, room: usize, slack_most: usize) -> Says {
        let tail = bytes::word(object, room);
        let other = tail ^ self.canary(object);
        let slack = (other >> SLACK_SHIFT) as usize;
        if other << (64 - SLACK_SHIFT) == 0 && slack <= slack_most {
            Says::Live(room - slack)
        } else if tail == 0 {
            Says::Free
        } else {
            Says::Damaged
        }
    }
}
