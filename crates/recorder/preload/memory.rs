//! What the kernel says of the process's memory: its size, and the mappings of its code.
//!
//! Code that a chain leads through belongs to a file that the reader of the recording looks names up in. So
//! the mappings are copied, once more when a chain has an address that the copy before does not.

use super::process::{CODE, Locked, known};
use super::system::{AT_FDCWD, O_RDONLY, Open, Path};
use core::sync::atomic::Ordering::*;

/// The time between two looks at the size, in ns.
const LOOK_NS: u64 = 1_000_000;
/// The time between two copies of the mappings, in ns: code that is made as the program runs is in no copy.
const COPY_NS: u64 = 100_000_000;
/// Bytes that are copied at once.
const PIECE: usize = 4096;

/// Whether all addresses are in code whose mappings are known, or it is too early to look again.
pub(crate) fn is_known(frames: &[usize], time_ns: u64) -> bool {
    let Some(state) = known() else { return true };
    if time_ns < state.mapped_ns.load(Relaxed) {
        return true;
    }
    let code = &state.code[..state.code_count.load(Acquire).min(CODE)];
    let holds = |at: usize| code.iter().any(|(from, to)| from.load(Relaxed) <= at && at < to.load(Relaxed));
    frames.iter().all(|&at| holds(at))
}

impl Locked {
    /// The pages of the process that are in memory and no file's: those of its code are not what an allocator
    /// could give back. `None`: the last look was just before.
    pub(crate) fn resident(&self, time_ns: u64) -> Option<usize> {
        let state = self.state;
        if time_ns < state.resident_ns.load(Relaxed) {
            return None;
        }
        state.resident_ns.store(time_ns.saturating_add(LOOK_NS), Relaxed);
        let mut text = [0; 128];
        let length = open(b"/proc/self/statm")?.read(&mut text);
        // The second number is all that is resident, the third what of it is a file's or shared.
        let mut words = text[..length].split(|byte| *byte == b' ').skip(1).map(number);
        Some(words.next()?.saturating_sub(words.next()?))
    }

    /// Copies the mappings to the process's file of them.
    pub(crate) fn keep_maps(&self, time_ns: u64) {
        let state = self.state;
        state.mapped_ns.store(time_ns.saturating_add(COPY_NS), Relaxed);
        let (Some(from), Some(to)) = (open(b"/proc/self/maps"), self.maps()) else { return };
        let mut piece = [0; PIECE];
        let mut lines = Lines::default();
        let mut count = 0;
        loop {
            let length = from.read(&mut piece);
            if length == 0 {
                break;
            }
            to.write(&piece[..length]);
            for byte in &piece[..length] {
                if let Some((begin, end)) = lines.code(*byte).filter(|_| count < CODE) {
                    state.code[count].0.store(begin, Relaxed);
                    state.code[count].1.store(end, Relaxed);
                    count += 1;
                }
            }
        }
        // A line that no copy has: the next one begins behind it.
        to.write(b"\n");
        state.code_count.store(count, Release);
    }
}

fn number(digits: &[u8]) -> usize {
    let digits = digits.iter().filter(|byte| byte.is_ascii_digit());
    digits.fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0'))
}

fn open(name: &[u8]) -> Option<Open> {
    let mut path = Path::EMPTY;
    path.put(name);
    Open::at(AT_FDCWD, &path, O_RDONLY)
}

/// The lines of /proc/self/maps, byte by byte: `begin-end rwxp ..`.
#[derive(Default)]
struct Lines {
    /// Words that ended in this line, and letters of the second one.
    word: usize,
    letter: usize,
    begin: usize,
    number: usize,
}

impl Lines {
    /// The mapping of a line, when its third letter says that it is code.
    fn code(&mut self, byte: u8) -> Option<(usize, usize)> {
        match (self.word, byte) {
            (_, b'\n') => *self = Lines::default(),
            (0, b'-') => (self.begin, self.number) = (self.number, 0),
            (_, b' ') => self.word += 1,
            (0, digit) => {
                let digit = if digit <= b'9' {
                    digit.wrapping_sub(b'0')
                } else {
                    (digit | 0x20).wrapping_sub(b'a' - 10)
                };
                self.number = self.number << 4 | usize::from(digit & 15);
            }
            (1, letter) => {
                self.letter += 1;
                if self.letter == 3 && letter == b'x' {
                    return Some((self.begin, self.number));
                }
            }
            _ => {}
        }
        None
    }
}
