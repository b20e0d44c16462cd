//! Random programs over one cache, and a dumb reference that watches them.
//!
//! One [`Program`] feeds the oracle, the schedules of shuttle and, as bytes, a fuzzer. The reference knows
//! nothing of slabs: it keeps the live ranges of addresses in a map, and says when two overlap, one is
//! misaligned, one is on the wrong node, or something is left at the end. It cannot show that a policy is
//! right, only that memory is.

mod reference;
mod runner;

pub use runner::{Ran, Runner};

/// One step. Numbers are taken modulo what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variant's line names its fields")]
pub enum Op {
    /// An object on a CPU, perhaps from a node, perhaps insisting on it.
    Alloc { cpu: u8, node: Option<u8>, insist: bool },
    /// The `which`-th live object is freed on a CPU.
    Free { cpu: u8, which: u16 },
    /// Several objects at once.
    AllocBulk { cpu: u8, count: u8 },
    /// Several live objects at once.
    FreeBulk { cpu: u8, count: u8 },
    /// The `which`-th live object is freed when its readers have ended.
    FreeRcu { cpu: u8, which: u16 },
    /// So many objects in advance, of which none may fail later.
    Lend { cpu: u8, count: u8 },
    /// Objects of a lent sheaf.
    UseLent { cpu: u8, count: u8 },
    /// The oldest lent sheaf is handed back.
    Return { cpu: u8 },
    /// Everything that can go back goes back.
    Shrink { cpu: u8 },
    /// A CPU goes down, if others are up; one that is down goes up. What steps want of it while it is down,
    /// the next CPU that is up does.
    Plug { cpu: u8 },
    /// Time passes, readers end, due work runs.
    Pass { ms: u16 },
    /// Another cache's object is freed to this one.
    Misuse { cpu: u8 },
    /// `count` live objects are freed in one bulk, with a wrong address in front of the `at`-th of them.
    MisuseBulk { cpu: u8, count: u8, at: u8 },
}

/// A sequence of steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program(pub Vec<Op>);

impl Program {
    /// A program of `len` steps by a seed. It swings between growing and shrinking, so that slabs fill and
    /// empty.
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

    /// A program from bytes: what a fuzzer has.
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
