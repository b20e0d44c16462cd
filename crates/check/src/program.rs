//! Random programs over one cache, and a simple reference that checks them.
//!
//! The same [`Program`] type serves the oracle, the schedules of shuttle and, as bytes, a fuzzer. The
//! reference has no slabs: it keeps the address ranges of live objects in a map. It reports two objects that
//! overlap, a misaligned object, an object on the wrong node, and an object that is left at the end. It
//! cannot show that a policy is right, only that objects do not damage each other.

mod reference;
mod runner;

pub(crate) use runner::FromCache;
pub use runner::{Beside, Difference, Ran, Runner};

/// One step. Each number is taken modulo the number of CPUs, nodes or live objects that exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variant's line names its fields")]
pub enum Op {
    /// CPU `cpu` allocates an object, from `node` if it is given, and from no other node if `insist` is set.
    Alloc { cpu: u8, node: Option<u8>, insist: bool },
    /// CPU `cpu` frees the `which`-th live object.
    Free { cpu: u8, which: u16 },
    /// CPU `cpu` allocates `count` objects in one bulk.
    AllocBulk { cpu: u8, count: u8 },
    /// CPU `cpu` frees up to `count` live objects in one bulk.
    FreeBulk { cpu: u8, count: u8 },
    /// CPU `cpu` frees the `which`-th live object after a grace period.
    FreeRcu { cpu: u8, which: u16 },
    /// CPU `cpu` prefills a sheaf with at least `count` objects. Allocations from it must not fail later.
    Lend { cpu: u8, count: u8 },
    /// CPU `cpu` allocates up to `count` objects from the newest prefilled sheaf.
    UseLent { cpu: u8, count: u8 },
    /// CPU `cpu` returns the oldest prefilled sheaf.
    Return { cpu: u8 },
    /// CPU `cpu` shrinks the cache.
    Shrink { cpu: u8 },
    /// CPU `cpu` goes offline if another CPU is online. If `cpu` is offline, it comes online. While a CPU is
    /// offline, the next online CPU does its steps.
    Plug { cpu: u8 },
    /// `ms` milliseconds pass, all grace periods end, and due work runs.
    Pass { ms: u16 },
    /// CPU `cpu` frees an object of another cache to this cache.
    Misuse { cpu: u8 },
    /// CPU `cpu` frees `count` live objects in one bulk, with a wrong address in front of the `at`-th object.
    MisuseBulk { cpu: u8, count: u8, at: u8 },
}

/// A sequence of steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program(pub Vec<Op>);

impl Program {
    /// A random program of `len` steps from `seed`. Phases with more allocations alternate with phases with
    /// more frees, so that slabs become full and empty.
    pub fn random(seed: u64, len: usize) -> Program {
        let mut random = Random(seed);
        let mut ops = Vec::with_capacity(len);
        let mut growing = true;
        for _ in 0..len {
            if random.below(60) == 0 {
                growing = !growing;
            }
            ops.push(Op::random(&mut random, growing));
        }
        Program(ops)
    }

    /// A program from bytes, for a fuzzer.
    pub fn from_bytes(bytes: &[u8]) -> Program {
        let op = |chunk: &[u8]| {
            let seed = chunk.iter().fold(0, |seed, byte| seed << 8 | *byte as u64);
            Op::random(&mut Random(seed), chunk[0] & 1 == 0)
        };
        Program(bytes.chunks(4).map(op).collect())
    }
}

impl Op {
    fn random(random: &mut Random, growing: bool) -> Op {
        let cpu = random.below(256) as u8;
        let which = random.below(65536) as u16;
        match random.below(100) {
            dice if dice < if growing { 58 } else { 22 } => Op::Alloc {
                cpu,
                node: (random.below(4) == 0).then(|| random.below(256) as u8),
                insist: random.below(4) == 0,
            },
            dice if dice < 80 => Op::Free { cpu, which },
            dice if dice < 85 => Op::FreeRcu { cpu, which },
            dice if dice < 88 => Op::AllocBulk { cpu, count: random.below(40) as u8 },
            dice if dice < 91 => Op::FreeBulk { cpu, count: random.below(40) as u8 },
            91 => Op::Lend { cpu, count: random.below(100) as u8 },
            92 | 93 => Op::UseLent { cpu, count: random.below(40) as u8 },
            94 => Op::Return { cpu },
            95 => Op::Shrink { cpu },
            96 => Op::Plug { cpu },
            97 => Op::Pass { ms: random.below(4000) as u16 },
            98 => Op::MisuseBulk { cpu, count: random.below(160) as u8, at: random.below(256) as u8 },
            _ => Op::Misuse { cpu },
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }
}
