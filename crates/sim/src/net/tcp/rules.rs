//! Sizes of TCP's buffers by release.

use crate::kernel::Task;
use crate::kernel::era::Era;
use crate::kernel::objects::{Held, Object};

/// Sizes of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Most bytes of a segment.
    pub segment: u32,
    /// Bytes of a head that has data, of one that has none, and bytes of data in a head.
    pub data_head: u32,
    /// Bytes of the head of an acknowledgement.
    pub bare_head: u32,
    /// Bytes of data in a head.
    pub linear: u32,
    /// log2 of the pages of a block for data.
    pub page_order: u8,
    /// Bytes that wait for their acknowledgement, and bytes that wait for their reader, with what they count
    /// beside the data: defaults, grown by use (assumed; the kernel grows them up to 4 MiB and more).
    pub send_buffer: u32,
    /// See `send_buffer`.
    pub receive_buffer: u32,
    /// Heads have a cache of their own; from 6.3.
    pub small_head: bool,
    /// A softirq leaves packets for a sleeping reader to that reader; until 4.13 (from memory).
    pub reader_works: bool,
    /// A reader leaves buffers to the CPU that allocated them; from 5.19.
    pub leaves: bool,
}

/// Bytes of a head without data.
const BARE_HEAD: u32 = 640;

impl Rules {
    /// Those of a release.
    pub fn of(era: Era) -> Rules {
        let new = era.since(3, 7, 0);
        Rules {
            segment: if new { 65_483 } else { 16_384 },
            data_head: if new { BARE_HEAD } else { 4_096 },
            bare_head: BARE_HEAD,
            linear: if new { 0 } else { 3_520 },
            page_order: if new { 3 } else { 0 },
            send_buffer: if new { 2_626_560 } else { 131_072 },
            receive_buffer: if new { 6_291_456 } else { 87_380 },
            small_head: era.since(6, 3, 0),
            reader_works: !era.since(4, 14, 0),
            leaves: era.since(5, 19, 0),
        }
    }

    /// Allocates a head.
    pub(super) fn head(&self, task: &Task, bytes: u32) -> Held {
        if self.small_head && bytes <= BARE_HEAD {
            return task.alloc(Object::SmallHead);
        }
        task.alloc_bytes(bytes)
    }

    /// How far the window is open with a receive buffer that holds `charged`.
    pub(super) fn open(&self, charged: u32) -> u64 {
        let open = u64::from(self.receive_buffer.saturating_sub(charged)) * 3 / 4;
        if open < u64::from(self.segment) { 0 } else { open }
    }
}
