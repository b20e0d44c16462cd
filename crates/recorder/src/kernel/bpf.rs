//! bpf(2): two small programs that read the kernel's memory. `unsafe`: the call takes addresses, and gives
//! memory that the kernel writes.
//!
//! Both are of the type that a system call runs (since 5.14), so nothing is attached to the kernel, and all
//! of it is gone with this process. `bpf_probe_read_kernel` answers any address, with an error for memory
//! that is not there.

use super::words::word_at;
use memmap2::{MmapMut, MmapOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Bytes that one call reads, at most.
pub(super) const PIECE: usize = 1 << 16;

/// Bytes of the arguments in front of them.
const HEAD: usize = 64;

/// Commands of bpf(2).
const MAP_CREATE: i64 = 0;
const PROG_LOAD: i64 = 5;
const PROG_TEST_RUN: i64 = 10;

/// Kinds of maps, and the flag of one that a process can map.
const ARRAY: u32 = 2;
const PERCPU_ARRAY: u32 = 6;
const MMAPABLE: u32 = 1 << 10;

/// The type of programs that a system call runs; they may sleep.
const SYSCALL: u32 = 31;
const SLEEPABLE: u32 = 1 << 4;

/// Helpers of programs, by their numbers.
const LOOKUP: i32 = 1;
const CURRENT_TASK: i32 = 35;
const READ_KERNEL: i32 = 113;
const LOOKUP_PERCPU: i32 = 195;

/// The arguments of the call, which the kernel may write.
struct Attributes([u8; 128]);

impl Attributes {
    fn of(words: &[(usize, u32)]) -> Attributes {
        let mut attributes = Attributes([0; 128]);
        words.iter().for_each(|(at, word)| attributes.0[*at..at + 4].copy_from_slice(&word.to_ne_bytes()));
        attributes
    }

    fn address<T>(mut self, at: usize, of: &[T]) -> Attributes {
        self.0[at..at + 8].copy_from_slice(&(of.as_ptr() as u64).to_ne_bytes());
        self
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }

    /// The addresses in it are those of slices that outlive the call.
    fn call(&mut self, command: i64) -> io::Result<i64> {
        // SAFETY: the attributes are 128 bytes that live through the call, and every address in them is that
        // of a slice of the caller.
        let result = unsafe { libc::syscall(libc::SYS_bpf, command, self.0.as_mut_ptr(), self.0.len()) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
    }

    fn create(&mut self, command: i64) -> io::Result<OwnedFd> {
        let fd = self.call(command)? as i32;
        // SAFETY: the call made this descriptor, and nothing else has its number.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

/// One instruction: what, registers, distance, constant.
const fn insn(what: u8, to: u8, from: u8, distance: i16, constant: i32) -> u64 {
    let registers = to | from << 4;
    what as u64 | (registers as u64) << 8 | (distance as u16 as u64) << 16 | (constant as u32 as u64) << 32
}

const fn copy(to: u8, from: u8) -> u64 {
    insn(0xbf, to, from, 0, 0)
}

const fn set(to: u8, constant: i32) -> u64 {
    insn(0xb7, to, 0, 0, constant)
}

const fn call(helper: i32) -> u64 {
    insn(0x85, 0, 0, 0, helper)
}

/// A word of memory at a register.
const fn load(to: u8, at: u8, distance: i16) -> u64 {
    insn(0x79, to, at, distance, 0)
}

const fn store(at: u8, distance: i16, from: u8) -> u64 {
    insn(0x7b, at, from, distance, 0)
}

const EXIT: u64 = insn(0x95, 0, 0, 0, 0);

/// A map into a register.
fn map(to: u8, map: BorrowedFd<'_>) -> [u64; 2] {
    [insn(0x18, to, 1, 0, map.as_raw_fd()), 0]
}

/// The element 0 of a map into register 0; ends with 1 if there is none. `more` is set before the call.
fn element(of: BorrowedFd<'_>, helper: i32, more: &[u64]) -> Vec<u64> {
    let key = [insn(0x62, 10, 0, -4, 0), copy(2, 10), insn(0x07, 2, 0, 0, -4)];
    let found = [insn(0x55, 0, 0, 2, 0), set(0, 1), EXIT];
    [&key[..], &map(1, of), more, &[call(helper)], &found].concat()
}

/// What a program says of a CPU and of itself.
pub(super) struct Here {
    /// The address of a CPU's element of the map of elements for each CPU.
    pub(super) element: u64,
    /// The address of that map.
    pub(super) map: u64,
    /// The task that runs the program.
    pub(super) task: u64,
}

/// Reads the kernel's memory.
pub(super) struct Peek {
    window: MmapMut,
    read: OwnedFd,
    here: OwnedFd,
    _each: OwnedFd,
}

impl Peek {
    /// Loads the programs.
    ///
    /// # Errors
    /// What the kernel says: no permission, or no such programs.
    pub(super) fn new() -> io::Result<Peek> {
        let create = |kind, bytes: usize, flags| {
            Attributes::of(&[(0, kind), (4, 4), (8, bytes as u32), (12, 1), (16, flags)]).create(MAP_CREATE)
        };
        let memory = create(ARRAY, HEAD + PIECE, MMAPABLE)?;
        let each = create(PERCPU_ARRAY, 8, 0)?;
        let (shared, each_fd) = (memory.as_fd(), each.as_fd());
        // Arguments: the address and the number of bytes.
        let read = [
            &element(shared, LOOKUP, &[])[..],
            &[copy(1, 0), insn(0x07, 1, 0, 0, HEAD as i32), load(2, 0, 8), load(3, 0, 0)],
            &[insn(0x25, 2, 0, 2, PIECE as i32), call(READ_KERNEL), EXIT, set(0, 2), EXIT],
        ]
        .concat();
        // Argument: the CPU.
        let here = [
            &element(shared, LOOKUP, &[])[..],
            &[copy(6, 0)],
            &element(each_fd, LOOKUP_PERCPU, &[load(3, 6, 0)]),
            &[store(6, HEAD as i16, 0)],
            &map(1, each_fd),
            &[store(6, HEAD as i16 + 8, 1), call(CURRENT_TASK), store(6, HEAD as i16 + 16, 0)],
            &[set(0, 0), EXIT],
        ]
        .concat();
        let (read, here) = (loaded(&read)?, loaded(&here)?);
        Ok(Peek { window: window(&memory)?, read, here, _each: each })
    }

    /// `bytes` bytes at an address, at most [`PIECE`]; `None` if not all of them are there.
    pub(super) fn bytes(&mut self, address: u64, bytes: usize) -> Option<&[u8]> {
        self.ask([address, bytes as u64]);
        run(&self.read).ok().filter(|answer| *answer == 0)?;
        self.window.get(HEAD..HEAD + bytes)
    }

    fn ask(&mut self, arguments: [u64; 2]) {
        for (bytes, argument) in self.window.chunks_exact_mut(8).zip(arguments) {
            bytes.copy_from_slice(&argument.to_ne_bytes());
        }
    }

    /// What a program says that runs for `cpu`; `None` without such a CPU.
    pub(super) fn here(&mut self, cpu: u32) -> Option<Here> {
        self.ask([u64::from(cpu), 0]);
        run(&self.here).ok().filter(|answer| *answer == 0)?;
        let answer = &self.window[HEAD..];
        Some(Here { element: word_at(answer, 0), map: word_at(answer, 8), task: word_at(answer, 16) })
    }
}

fn loaded(program: &[u64]) -> io::Result<OwnedFd> {
    let license = b"GPL\0";
    Attributes::of(&[(0, SYSCALL), (4, program.len() as u32), (44, SLEEPABLE)])
        .address(8, program)
        .address(16, license)
        .create(PROG_LOAD)
}

/// Without a context of its own, which the kernel would allocate.
fn run(program: &OwnedFd) -> io::Result<u32> {
    let mut attributes = Attributes::of(&[(0, program.as_raw_fd() as u32)]);
    attributes.call(PROG_TEST_RUN)?;
    Ok(attributes.word(4))
}

/// The memory of a map.
fn window(map: &OwnedFd) -> io::Result<MmapMut> {
    // SAFETY: the kernel keeps the map's memory as long as it is mapped. Programs write it, which run in
    // calls of [`Peek`] alone; each takes the window mutably, so no slice of it is left then.
    unsafe { MmapOptions::new().len(HEAD + PIECE).map_mut(map) }
}
