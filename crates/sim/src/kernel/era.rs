//! What differs between releases outside the allocator and the scheduler: sizes of buffers, rules of waking.
//!
//! | rule | until | from | source |
//! |---|---|---|---|
//! | a queued message of 100 bytes counts | 3.1: 360 bytes | 3.2: 768 bytes | aligned data and `sk_buff`; with shared info, rounded as kmalloc does |
//! | send buffer of a socket | 2.6.29: 124,928 bytes | later: 212,992 bytes | 256 times (`sizeof(sk_buff)` + 256), from `net/core/sock.c`; the release of the change is assumed to be 3.2 |
//! | pipes wake | 5.4: all waiters at each write | 5.5: one reader when it was empty, one writer when it was full | `fs/pipe.c` |
//! | kernel stacks are of | 3.14: 8 KiB | 3.15: 16 KiB | x86_64 (from memory) |

use crate::sched;
use slablab_slabs::{Preset, Release};

/// The rules of one release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Era {
    /// The release.
    pub release: Release,
}

/// Bytes of a line to which socket data is aligned.
const DATA_ALIGN: u32 = 64;
/// Bytes of `skb_shared_info`, aligned.
const SHARED_INFO: u32 = 320;
/// Bytes of an `sk_buff` in what a message counts: as it is, and aligned.
const SK_BUFF: (u32, u32) = (232, 256);

impl Era {
    /// The release of a preset; a posting's is the release it was written for.
    pub fn of(preset: &Preset) -> Era {
        let release = match preset.release() {
            Release { major, minor, .. } if major > 1000 => {
                Release::new(2, 6, if (major, minor) < (2009, 7) { 29 } else { 31 })
            }
            release => release,
        };
        Era { release }
    }

    /// Whether this is the given release or a later one.
    pub fn since(self, major: u16, minor: u16, patch: u16) -> bool {
        self.release >= Release::new(major, minor, patch)
    }

    /// The scheduler.
    ///
    /// # Errors
    /// A release whose scheduler is not built.
    pub fn scheduler(self) -> Result<sched::Policy, sched::NotBuilt> {
        sched::Policy::for_release((self.release.major, self.release.minor, self.release.patch))
    }

    /// Bytes that kmalloc is asked for, for socket data of `bytes` bytes.
    pub fn data_bytes(self, bytes: u32) -> u32 {
        bytes.max(1).next_multiple_of(DATA_ALIGN) + SHARED_INFO
    }

    /// What a message of `bytes` bytes counts against the send buffer. `allocated` is the size of the class
    /// that holds its data.
    pub fn truesize(self, bytes: u32, allocated: u32) -> u32 {
        if self.since(3, 2, 0) {
            allocated + SK_BUFF.1
        } else {
            bytes.max(1).next_multiple_of(DATA_ALIGN) + SK_BUFF.0
        }
    }

    /// Bytes that a socket may have sent and the peer has not read.
    pub fn send_buffer(self) -> u32 {
        if self.since(3, 2, 0) { 212_992 } else { 256 * (SK_BUFF.0 + 256) }
    }

    /// Whether a pipe wakes one waiter when it is of use, instead of all at each write.
    pub fn pipes_wake_one(self) -> bool {
        self.since(5, 5, 0)
    }

    /// log2 of the pages of a kernel stack, with pages of `1 << page_shift` bytes.
    pub fn stack_order(self, page_shift: u32) -> u8 {
        let bytes_shift = if self.since(3, 15, 0) { 14 } else { 13 };
        (bytes_shift - page_shift.min(bytes_shift)) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What 100 bytes count, the send buffer, messages that fit, and messages left when writers wake.
    #[track_caller]
    fn check(preset: &str, expected: [u32; 4]) {
        let era = Era::of(&Preset::parse(preset).expect("a preset"));
        let truesize = era.truesize(100, 512);
        let found = [
            truesize,
            era.send_buffer(),
            era.send_buffer().div_ceil(truesize),
            era.send_buffer() / 4 / truesize,
        ];
        assert_eq!(found, expected, "{preset}");
    }

    #[test]
    fn messages_that_a_socket_holds() {
        check("slab@2.6.29", [360, 124_928, 348, 86]);
        check("slqb@2009-01", [360, 124_928, 348, 86]);
        check("slub@6.18", [768, 212_992, 278, 69]);
    }
}
