//! Call chains of samples, as names: a recording repeats some thousand of them millions of times.

use std::fmt::Write;

use rustc_hash::FxHashMap;

use crate::bytes::uint;
use crate::event::{Name, Names};

/// Marks between the frames of a chain (`PERF_CONTEXT_*`) are the addresses from this one on.
const MARKS: u64 = -4095i64 as u64;
/// `PERF_CONTEXT_KERNEL`: the frames that follow are the kernel's.
const KERNEL: u64 = -128i64 as u64;

/// The chains met so far.
#[derive(Default)]
pub(super) struct Stacks {
    known: FxHashMap<Box<[u8]>, Option<Name>>,
    bytes: usize,
    text: String,
    frames: Vec<u64>,
}

impl Stacks {
    /// Bytes of chains remembered. Chains beyond that are named anew each time.
    const LIMIT: usize = 64 << 20;

    /// The kernel's frames of `chain`, from the outermost to the innermost; `None` if it has none. Frames of
    /// programs are left out: they are addresses of processes that have ended.
    #[inline]
    pub(super) fn name(&mut self, chain: &[u8], big_endian: bool, names: &mut Names) -> Option<Name> {
        if chain.is_empty() {
            return None;
        }
        if let Some(&name) = self.known.get(chain) {
            return name;
        }
        self.add(chain, big_endian, names)
    }

    #[cold]
    fn add(&mut self, chain: &[u8], big_endian: bool, names: &mut Names) -> Option<Name> {
        // Without a mark a chain is the kernel's, if its addresses are.
        let mut of_kernel = true;
        self.frames.clear();
        for frame in chain.chunks_exact(8).map(|frame| uint(frame, big_endian)) {
            match frame {
                MARKS.. => of_kernel = frame == KERNEL,
                frame if of_kernel && frame >> 63 == 1 => self.frames.push(frame),
                _ => {}
            }
        }
        self.text.clear();
        for frame in self.frames.iter().rev() {
            let separator = if self.text.is_empty() { "" } else { ";" };
            write!(self.text, "{separator}{frame:#x}").expect("a string takes everything");
        }
        let name = (!self.text.is_empty()).then(|| names.intern(&self.text));
        if self.bytes + chain.len() <= Self::LIMIT {
            self.bytes += chain.len();
            self.known.insert(chain.into(), name);
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_the_kernels_part_of_a_chain_from_outside_in() {
        #[track_caller]
        fn check(chain: &[u64], expected: Option<&str>) {
            for big_endian in [false, true] {
                let bytes = |frame: &u64| if big_endian { frame.to_be_bytes() } else { frame.to_le_bytes() };
                let chain: Vec<u8> = chain.iter().flat_map(bytes).collect();
                let (mut stacks, mut names) = (Stacks::default(), Names::new());
                for _ in 0..2 {
                    let name = stacks.name(&chain, big_endian, &mut names);
                    assert_eq!(name.map(|name| names.text(name)), expected);
                }
            }
        }
        const USER: u64 = -512i64 as u64;
        let (outer, inner) = (0xffff_ffff_8100_0130, 0xffff_ffff_8163_49cd);
        check(&[], None);
        check(&[KERNEL, inner, outer], Some("0xffffffff81000130;0xffffffff816349cd"));
        check(&[KERNEL, inner, USER, 0x401000, 0x402000], Some("0xffffffff816349cd"));
        check(&[USER, 0x401000], None);
        check(&[inner, outer], Some("0xffffffff81000130;0xffffffff816349cd"));
    }
}
