//! Counts the threads that are inside a piece of code, so that another thread can wait for them.
//!
//! There are two counters. Threads enter by the one that [`Inside::current`] names. A thread that waits lets
//! the others enter by the second counter, waits until the first is 0, and does the same once more with the
//! two exchanged: so it waits for the threads that were inside when it began, and never for those that
//! entered later. This is how the kernel's sleepable read-copy-update waits for readers.

use slablab_native::system;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};

/// The threads inside.
pub(crate) struct Inside {
    counts: [AtomicU32; 2],
    /// The index of the counter by which threads enter now.
    current: AtomicU32,
    /// A thread waits: others that want to wait do so after it, as each exchanges the counters.
    is_waited_for: AtomicBool,
}

/// The threads that may have a deferred work of some tenant in hand.
pub(super) static WORKERS: Inside = Inside::new();

/// A thread inside, until it is dropped.
pub(crate) struct Entered<'a>(&'a AtomicU32);

impl Inside {
    pub(crate) const fn new() -> Inside {
        let (current, is_waited_for) = (AtomicU32::new(0), AtomicBool::new(false));
        Inside { counts: [AtomicU32::new(0), AtomicU32::new(0)], current, is_waited_for }
    }

    /// SeqCst: a thread that enters counts itself before it looks at anything, and a thread that waits
    /// changed what the other looks at before it reads the counters.
    pub(crate) fn enter(&self) -> Entered<'_> {
        let count = &self.counts[self.current.load(SeqCst) as usize % 2];
        count.fetch_add(1, SeqCst);
        Entered(count)
    }

    /// Waits for the threads that are inside now. Must not be called by one of them.
    pub(crate) fn wait(&self) {
        while self.is_waited_for.swap(true, SeqCst) {
            system::pause();
        }
        // Twice: a thread may have read `current` before the first exchange, and have counted itself after
        // it.
        for _ in 0..2 {
            let before = self.current.fetch_xor(1, SeqCst) as usize % 2;
            while self.counts[before].load(SeqCst) > 0 {
                system::pause();
            }
        }
        self.is_waited_for.store(false, SeqCst);
    }

    /// In a fork's child, whose one thread is not waiting: the threads that were inside or waited are not
    /// there.
    pub(crate) fn reset(&self) {
        self.counts.iter().for_each(|count| count.store(0, SeqCst));
        self.is_waited_for.store(false, SeqCst);
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        less(self.0);
    }
}

/// Subtracts one. The count stays 0 if a fork reset it since this thread added one.
pub(crate) fn less(count: &AtomicU32) {
    let _ = count.fetch_update(SeqCst, SeqCst, |count| count.checked_sub(1));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;
    use std::time::Duration;

    /// Two threads take turns so that at least one is inside at any time. A third waits only for those that
    /// were inside when it began to wait.
    #[test]
    fn a_wait_ends_while_other_threads_keep_entering() {
        static INSIDE: Inside = Inside::new();
        static DONE: AtomicBool = AtomicBool::new(false);
        let (to_second, from_first) = mpsc::sync_channel(0);
        let (to_first, from_second) = mpsc::sync_channel(0);
        let relay = |give: mpsc::SyncSender<()>, take: mpsc::Receiver<()>, begins: bool| {
            move || {
                let mut holds = begins;
                while !DONE.load(SeqCst) {
                    // Enters before the other thread leaves: it leaves after this message.
                    let entered = INSIDE.enter();
                    if !holds && take.recv().is_err() {
                        return;
                    }
                    std::thread::sleep(Duration::from_micros(200));
                    if give.send(()).is_err() {
                        return;
                    }
                    holds = false;
                    drop(entered);
                }
            }
        };
        let threads = [
            std::thread::spawn(relay(to_second, from_second, true)),
            std::thread::spawn(relay(to_first, from_first, false)),
        ];
        let (done, waits) = mpsc::channel();
        std::thread::spawn(move || {
            INSIDE.wait();
            done.send(()).expect("the test waits");
        });
        let ended = waits.recv_timeout(Duration::from_secs(5));
        DONE.store(true, SeqCst);
        threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
        assert!(ended.is_ok(), "after 5 s it still waited for threads that entered later");
    }
}
