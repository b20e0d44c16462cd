//! Queues by name: an elevator and what surrounds it, by release.

use super::bio::Limits;
use super::elevator::{CfqSpec, DeadlineSpec, ElevatorSpec, LinusSpec};
use super::pool::PoolSpec;
use super::queue::{PlugSpec, QueueSpec};
use slablab_model::Ps;

const MS: Ps = 1_000_000_000;
/// Sectors of 16 MiB, how far CFQ goes back.
const BACK_SECTORS: u64 = 32_768;
/// Patience of reads and writes of 2.4.8 to 2.4.10.
const LINUS: LinusSpec = LinusSpec { read: 8_192, write: 16_384 };
/// Below this much memory a queue of 2.4 has half the requests.
const SMALL_BYTES: u64 = 32 << 20;

const CFQ: CfqSpec = CfqSpec {
    slice: [100 * MS, 40 * MS],
    slice_step: [20 * MS, 8 * MS],
    idle: 8 * MS,
    idle_seeky: 2 * MS,
    quantum: 4,
    expire: [125 * MS, 250 * MS],
    async_requests: 2,
    back: (BACK_SECTORS, 2),
    seeky: 8_192,
    tagged: 5,
};

const DEADLINE: DeadlineSpec = DeadlineSpec { expire: [500 * MS, 5_000 * MS], batch: 16, starved: 2 };

const POOL_2_6: PoolSpec =
    PoolSpec::Batching { limit: 128, congested: 113, cleared: 103, more: 32, window: 20 * MS };
const PLUG_2_6: PlugSpec = PlugSpec::Timed { requests: 4, after: 3 * MS };
const LIMITS_2_4: Limits = Limits { sectors: 255, segments: 128 };
/// All I/O of 2.4 comes as buffers of one block, which the elevator puts together; each of them costs the
/// requests that it passes patience.
const BUFFER_2_4: u32 = 8;
const LIMITS_2_6: Limits = Limits { sectors: 1_024, segments: 128 };
/// virtio-blk of QEMU 7.2: a queue of 256, two of a request's segments are its head and its status; and
/// `max_sectors_kb` is 1,280 (from memory).
const LIMITS_6_1: Limits = Limits { sectors: 2_560, segments: 254 };
/// Twice a tag set of 128 (`nr_requests` of a queue with an elevator); async writes may have three quarters
/// (mq-deadline's `async_depth`, from memory).
const TAGS_DEADLINE: PoolSpec = PoolSpec::Tags { limit: 256, asyncs: 192 };
const TAGS_NONE: PoolSpec = PoolSpec::Tags { limit: 256, asyncs: 256 };
/// Requests that a task's plug holds (`BLK_MAX_REQUEST_COUNT`, from memory).
const PLUG_6_1: PlugSpec = PlugSpec::Task { most: 32 };

/// The names of queues: the elevator and the release.
pub const QUEUES: [&str; 7] = [
    "linus@2.4.10",
    "linus-small@2.4.10",
    "cfq@2.6.29",
    "deadline@2.6.29",
    "noop@2.6.29",
    "mq-deadline@6.1",
    "none@6.1",
];

impl QueueSpec {
    /// The queue of this name; `None` if there is none.
    pub fn named(name: &str) -> Option<QueueSpec> {
        let deadline = ElevatorSpec::Deadline(DEADLINE);
        let (pool, limits) = (POOL_2_6, LIMITS_2_6);
        let old = |elevator| QueueSpec { elevator, pool, plug: PLUG_2_6, limits, bio: limits.sectors };
        let limits = LIMITS_6_1;
        let new = |elevator, pool| QueueSpec { elevator, pool, plug: PLUG_6_1, limits, bio: limits.sectors };
        Some(match name {
            "linus@2.4.10" => QueueSpec::linus(u64::MAX),
            "linus-small@2.4.10" => QueueSpec::linus(SMALL_BYTES),
            "cfq@2.6.29" => old(ElevatorSpec::Cfq(CFQ)),
            "deadline@2.6.29" => old(deadline),
            "noop@2.6.29" => old(ElevatorSpec::None { merges: true }),
            "mq-deadline@6.1" => new(deadline, TAGS_DEADLINE),
            "none@6.1" => new(ElevatorSpec::None { merges: false }, TAGS_NONE),
            _ => return None,
        })
    }

    /// The queue of 2.4.8 to 2.4.10 on a machine with so many bytes of memory.
    pub fn linus(memory: u64) -> QueueSpec {
        let each = if memory <= SMALL_BYTES { 32 } else { 64 };
        QueueSpec {
            elevator: ElevatorSpec::Linus(LINUS),
            pool: PoolSpec::Batched { each, batch: 16 },
            plug: PlugSpec::Waiter,
            limits: LIMITS_2_4,
            bio: BUFFER_2_4,
        }
    }

    /// The queue on a disk that does not rotate: 2.6.29 does not plug it.
    pub fn without_rotation(self) -> QueueSpec {
        match self.plug {
            PlugSpec::Timed { .. } => QueueSpec { plug: PlugSpec::Never, ..self },
            _ => self,
        }
    }
}
