//! What safe Rust cannot say. `unsafe`: instructions, fork, shared mappings, a call of the C library.
//!
//! Every function here is safe to call. The rest of the crate has no `unsafe`.

use memmap2::{MmapMut, UncheckedAdvice};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, set_parent_process_death_signal, waitpid};
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;

/// Two words that `cmpxchg16b` takes as one.
#[cfg(target_arch = "x86_64")]
#[repr(align(16))]
pub(crate) struct Pair(pub(crate) [u64; 2]);

/// Compares and exchanges 8 bytes without the lock prefix: other CPUs may see a torn update.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn local_exchange(word: &mut u64, old: u64, new: u64) -> u64 {
    let found;
    // SAFETY: the instruction reads and writes the 8 bytes of `word`, which the caller lends alone.
    unsafe {
        std::arch::asm!("cmpxchg [{word}], {new}", word = in(reg) word, new = in(reg) new,
            inout("rax") old => found, options(nostack));
    }
    found
}

macro_rules! exchange16 {
    ($(#[$doc:meta])* $name:ident, $instruction:literal) => {
        $(#[$doc])*
        #[cfg(target_arch = "x86_64")]
        #[inline(always)]
        fn $name(pair: &mut Pair, old: [u64; 2], new: [u64; 2]) {
            // SAFETY: the caller checked that the CPU has the instruction. It reads and writes the 16 bytes
            // of `pair`, which are aligned to 16 and lent alone. rbx, which the compiler keeps for itself,
            // gets its value back.
            unsafe {
                std::arch::asm!("xchg rsi, rbx", $instruction, "mov rbx, rsi", in("rdi") pair.0.as_mut_ptr(),
                    inout("rsi") new[0] => _, inout("rax") old[0] => _, inout("rdx") old[1] => _,
                    in("rcx") new[1], options(nostack));
            }
        }
    };
}

exchange16!(
    /// Compares and exchanges 16 bytes without the lock prefix.
    exchange16_local,
    "cmpxchg16b [rdi]"
);
exchange16!(
    /// Compares and exchanges 16 bytes atomically.
    exchange16_locked,
    "lock cmpxchg16b [rdi]"
);

/// Exchanges 16 bytes `rounds` times, atomically if `locked`. Returns whether this CPU can.
#[cfg(target_arch = "x86_64")]
pub(crate) fn exchange16(pair: &mut Pair, rounds: u64, locked: bool) -> bool {
    if !std::arch::is_x86_feature_detected!("cmpxchg16b") {
        return false;
    }
    let exchange = if locked { exchange16_locked } else { exchange16_local };
    for _ in 0..rounds {
        let [low, high] = pair.0;
        exchange(pair, [low, high], [low.wrapping_add(1), high]);
    }
    true
}

/// The words of a mapping.
pub(crate) fn words(map: &mut MmapMut) -> &mut [u64] {
    // SAFETY: any bytes are a u64, and the borrow of `map` is the borrow of its words.
    let (before, words, after) = unsafe { map.align_to_mut::<u64>() };
    assert!(before.is_empty() && after.is_empty(), "a mapping is whole pages");
    words
}

/// Pages that stay with their file when this process forgets them, and that children of this process share.
pub(crate) struct SharedPages(MmapMut);

impl SharedPages {
    /// Pages of a new file that has no name.
    pub(crate) fn new(bytes: usize) -> io::Result<SharedPages> {
        let file = File::from(memfd_create(c"slablab-calibrate", MemfdFlags::CLOEXEC)?);
        ftruncate(&file, bytes as u64)?;
        // SAFETY: the file has no name, and only this process and its children map it. All of them access its
        // bytes as the atomics of `words` alone.
        let map = unsafe { MmapMut::map_mut(&file)? };
        Ok(SharedPages(map))
    }

    /// The pages as words that several processes access.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: any bytes are an AtomicU64; nothing accesses the mapping in another way (see `new`).
        let (_, words, _) = unsafe { self.0.align_to::<AtomicU64>() };
        words
    }

    /// Drops this process's page table entries: the next access to each page is a fault that finds the page.
    pub(crate) fn forget(&self) -> io::Result<()> {
        // SAFETY: the pages are a file's: they keep their contents, so no reference sees a change.
        unsafe { self.0.unchecked_advise(UncheckedAdvice::DontNeed) }
    }
}

/// Makes this thread one that never preempts another when it is woken (SCHED_BATCH).
pub(crate) fn never_preempt() -> io::Result<()> {
    // The kernel's call: musl has none of its own.
    let priority: libc::c_int = 0;
    // SAFETY: the kernel's parameter is one number, which the call only reads.
    match unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_BATCH, &raw const priority) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A child process. It ends when this value is dropped, and when the thread that forked it ends.
pub(crate) struct Child(Option<Pid>);

impl Child {
    /// Forks a process that runs `work` and ends with the exit code that `work` returns.
    pub(crate) fn fork(work: impl FnOnce() -> i32) -> io::Result<Child> {
        let parent = rustix::process::getpid();
        // SAFETY: the child has a copy of this process and the forking thread alone. A lock that another
        // thread held would stay locked. The C library's allocator gets its locks back after a fork, and
        // `work` takes no other lock that threads of this process share: it uses pipes, sockets and clocks.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                let _ = set_parent_process_death_signal(Some(Signal::KILL));
                // The parent may have ended before the line above.
                let orphan = rustix::process::getppid() != Some(parent);
                let code = if orphan { 1 } else { catch_unwind(AssertUnwindSafe(work)).unwrap_or(101) };
                // SAFETY: ends this process without the destructors and buffers that belong to the parent.
                unsafe { libc::_exit(code) }
            }
            pid => Ok(Child(Pid::from_raw(pid))),
        }
    }

    /// The process's number, which is also that of its group if it made one.
    pub(crate) fn pid(&self) -> Pid {
        self.0.expect("a child that was not waited for has its number")
    }

    /// Waits for the end. Returns the exit code; `None` after a signal.
    pub(crate) fn wait(mut self) -> io::Result<Option<i32>> {
        let pid = self.0.take();
        loop {
            match waitpid(pid, WaitOptions::empty()) {
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(status) => return Ok(status.and_then(|(_, status)| status.exit_status())),
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(pid) = self.0.take() {
            let _ = kill_process(pid, Signal::KILL);
            while let Err(rustix::io::Errno::INTR) = waitpid(Some(pid), WaitOptions::empty()) {}
        }
    }
}
