//! The simulated kernel: blocking and waking at sockets and pipes, sharing of CPUs, frees on other CPUs.

use crate::machine::setup;
use slablab_model::{Ps, Timed};
use slablab_platform::{CpuId, Topology};
use slablab_sim::kernel::{Task, with_kernel};
use slablab_sim::net::pipe::Pipe;
use slablab_sim::net::udp::Receiver;
use slablab_sim::net::unix;
use slablab_sim::objects::Held;
use slablab_sim::tally::{Failed, Outcome};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const MS: Ps = 1_000_000_000;

/// Runs `program` as the first task of a machine with `cpus` CPUs until all tasks have ended.
fn on(preset: &str, cpus: u16, program: impl FnOnce(&Task) + 'static) -> Result<Outcome, Failed> {
    with_kernel(&setup(preset, cpus, 1), 1, |kernel| {
        let start = kernel.mark();
        kernel.start(kernel.new_process(), None, program);
        kernel.run()?;
        Ok(kernel.outcome(&start))
    })
}

/// Messages of 100 bytes that were written while no task read, and messages that were read, one each
/// millisecond, until the writer went on.
#[track_caller]
fn check_blocking(
    preset: &str,
    expected: (u32, u32),
    make: impl FnOnce(&Task) -> (Box<dyn Fn(&Task)>, Box<dyn Fn(&Task)>) + 'static,
) {
    let (written, found) = (Rc::new(Cell::new(0)), Rc::new(Cell::new((0, 0))));
    let result = found.clone();
    on(preset, 2, move |task| {
        let (write, read) = make(task);
        let of_writer = written.clone();
        task.thread(move |task| {
            for _ in 0..1_000 {
                task.syscall(|| write(task));
                of_writer.set(of_writer.get() + 1);
            }
        });
        task.sleep(10 * MS);
        let full = written.get();
        for reads in 1..=1_000 {
            task.syscall(|| read(task));
            task.sleep(MS);
            if written.get() > full && result.get() == (0, 0) {
                result.set((full, reads));
            }
        }
    })
    .expect("all messages arrive");
    assert_eq!(found.get(), expected, "{preset}");
}

#[test]
fn a_sender_blocks_at_a_full_buffer_and_wakes_at_a_quarter() {
    let check = |preset, expected| {
        check_blocking(preset, expected, |task| {
            let (from, to) = unix::pair(task, 0);
            let write = move |task: &Task| from.send(task, 100, 0);
            let read = move |task: &Task| assert_eq!(to.receive(task, 100, |_, _| {}), 100);
            (Box::new(write), Box::new(read))
        });
    };
    // 348 messages of 360 bytes reach 124,928; at 86 messages 30,960 bytes are a quarter at most.
    check("slab@2.6.29", (348, 348 - 86));
    check("slqb@2009-01", (348, 348 - 86));
    // 278 of 768 bytes reach 212,992; 69 are 52,992.
    check("slub@6.18", (278, 278 - 69));
}

#[test]
fn a_pipe_holds_40_messages_a_page_and_a_writer_wakes_at_a_free_page() {
    let check = |preset, expected| {
        check_blocking(preset, expected, |task| {
            let pipe = Rc::new(Pipe::new(task, 0));
            let to = pipe.clone();
            let write = move |task: &Task| to.write(task, 100, 0);
            let read = move |task: &Task| assert_eq!(pipe.read(task, 100, |_, _| {}), 100);
            (Box::new(write), Box::new(read))
        });
    };
    check("slab@2.6.29", (640, 40));
    check("slub@6.18", (640, 40));
}

#[test]
fn a_write_to_a_pipe_wakes_all_readers_until_5_4_and_one_from_5_5() {
    #[track_caller]
    fn check(preset: &str, expected: u64) {
        let found = on(preset, 4, |task| {
            let pipe = Rc::new(Pipe::new(task, 0));
            for _ in 0..3 {
                let pipe = pipe.clone();
                task.thread(move |task| {
                    task.syscall(|| pipe.read(task, 100, |_, _| {}));
                });
            }
            for _ in 0..3 {
                task.sleep(MS);
                task.syscall(|| pipe.write(task, 100, 0));
            }
        });
        // The writer's own three sleeps are wake-ups too.
        assert_eq!(found.expect("three messages for three readers").wakeups - 3, expected, "{preset}");
    }
    check("slab@2.6.29", 3 + 2 + 1);
    check("slub@6.18", 3);
}

#[test]
fn tasks_that_wait_for_ever_are_reported_with_what_they_wait_for() {
    let failed = on("slub@6.18", 2, |task| {
        let (_from, to) = unix::pair(task, 7);
        task.thread(|task| task.sleep(MS));
        task.syscall(|| to.receive(task, 100, |_, _| {}));
    });
    assert_eq!(failed, Err(Failed::Stuck(vec!["task 0 on CPU 0: to read from socket 8".into()])));
}

#[test]
fn a_machine_without_memory_ends_with_its_table() {
    let mut small = setup("slub@6.18", 1, 1);
    small.spec.nodes[0].bytes = 4 << 20;
    let failed = with_kernel(&small, 1, |kernel| {
        kernel.start(kernel.new_process(), None, |task| {
            std::iter::repeat_with(|| task.alloc_bytes(1024)).for_each(drop);
        });
        kernel.run()
    });
    let Err(Failed::OutOfMemory { events, caches }) = failed else { panic!("{failed:?}") };
    assert!((3_000..4_096).contains(&events), "{events} objects of 1 KiB in 4 MiB");
    let largest = caches.iter().max_by_key(|(_, _, bytes)| *bytes).expect("a cache has slabs");
    assert_eq!((largest.0.as_str(), largest.1), ("kmalloc-1k", events));
}

/// Two tasks that compute for 200 ms each on one CPU: how far one is when the other ends, in percent.
#[test]
fn two_tasks_share_a_cpu_fairly() {
    #[track_caller]
    fn check(preset: &str) {
        let done = Rc::new(RefCell::new([0u64; 2]));
        let least = Rc::new(Cell::new(100));
        let result = least.clone();
        on(preset, 1, move |task| {
            for me in 0..2 {
                let (done, least) = (done.clone(), least.clone());
                task.thread(move |task| {
                    for _ in 0..200 {
                        task.compute(MS);
                        done.borrow_mut()[me] += 1;
                    }
                    let other = done.borrow()[1 - me];
                    least.set(least.get().min(other * 100 / 200));
                });
            }
        })
        .expect("they end");
        assert!(result.get() >= 75, "{preset}: {} %", result.get());
    }
    ["slab@2.6.29", "slub@5.10", "slub@6.1", "slub@6.18"].into_iter().for_each(check);
}

/// Eight tasks of 100 ms each, started by one: the time on 4 CPUs, in ms.
#[test]
fn idle_cpus_take_their_share() {
    #[track_caller]
    fn check(preset: &str) {
        let ended = Rc::new(Cell::new(0));
        let result = ended.clone();
        on(preset, 4, move |task| {
            for _ in 0..8 {
                let ended = ended.clone();
                task.thread(move |task| {
                    task.compute(100 * MS);
                    ended.set(ended.get().max(Timed::clock()));
                });
            }
        })
        .expect("they end");
        let ms = result.get() / MS;
        assert!((200..260).contains(&ms), "{preset}: {ms} ms");
    }
    ["slab@2.6.29", "slub@5.10", "slub@6.1", "slub@6.18"].into_iter().for_each(check);
}

/// All tasks are made on CPU 0 of a machine whose CPUs 1 to 3 are idle, and may run anywhere only later.
#[test]
fn idle_cpus_pull_tasks_that_wait() {
    #[track_caller]
    fn check(preset: &str) {
        let ended = Rc::new(Cell::new(0));
        let result = ended.clone();
        let outcome = on(preset, 4, move |task| {
            for _ in 0..4 {
                let ended = ended.clone();
                task.thread(move |task| {
                    task.pin(CpuId(0));
                    task.unpin();
                    task.compute(100 * MS);
                    ended.set(ended.get().max(Timed::clock()));
                });
            }
        })
        .expect("they end");
        let ms = result.get() / MS;
        assert!((100..250).contains(&ms), "{preset}: {ms} ms");
        assert!(outcome.migrations >= 3, "{preset}: {} migrations", outcome.migrations);
    }
    ["slab@2.6.29", "slub@5.10", "slub@6.1", "slub@6.18"].into_iter().for_each(check);
}

/// A pinned sender and reader: every sk_buff and its data are freed on the reader's CPU.
#[test]
fn the_reader_frees_what_the_sender_allocated() {
    #[track_caller]
    fn check(preset: &str, reader: u16, elsewhere: u64) {
        let outcome = on(preset, 2, move |task| {
            let (from, to) = unix::pair(task, 0);
            task.thread(move |task| {
                task.pin(CpuId(reader));
                for _ in 0..500 {
                    task.syscall(|| to.receive(task, 100, |_, _| {}));
                }
            });
            task.pin(CpuId(0));
            (0..500).for_each(|tag| task.syscall(|| from.send(task, 100, tag)));
        });
        let outcome = outcome.expect("all messages arrive");
        let heads = outcome.cache("skbuff_head_cache").expect("sk_buffs were allocated");
        assert_eq!((heads.allocs, heads.frees, heads.freed_elsewhere), (500, 500, elsewhere), "{preset}");
    }
    for preset in ["slab@2.6.29", "slqb@2009-01", "slub@6.18"] {
        check(preset, 1, 500);
        check(preset, 0, 0);
    }
}

/// A sender and a slow reader, each on its CPU: what the buffer cannot hold is freed on the sender's CPU, and
/// the datagrams of the buffer arrive in order. How many it holds, for a `SO_RCVBUF` of 32,768.
#[test]
fn datagrams_that_a_receiver_cannot_hold_are_freed_by_the_sender() {
    #[track_caller]
    fn check(preset: &str, bytes: u32, held: u64, class: Option<&str>) {
        let lost = Rc::new(Cell::new(0));
        let result = lost.clone();
        let outcome = on(preset, 2, move |task| {
            let socket = Rc::new(Receiver::new(&task.kernel, 0, 32_768));
            task.pin(CpuId(0));
            let sent: Vec<bool> =
                (0..1_000).map(|tag| task.syscall(|| socket.send(task, bytes, tag))).collect();
            assert_eq!(sent.iter().filter(|sent| !**sent).count() as u64, socket.lost());
            result.set(socket.lost());
            task.thread(move |task| {
                task.pin(CpuId(1));
                let arrived = 1_000 - socket.lost() as u32;
                (0..arrived).for_each(|tag| assert_eq!(task.syscall(|| socket.receive(task)), (tag, bytes)));
            });
        });
        let outcome = outcome.expect("the datagrams that were not lost arrive");
        let heads = outcome.cache("skbuff_head_cache").expect("datagrams have a head");
        assert_eq!((1_000 - lost.get(), heads.freed_elsewhere), (held, held), "{preset} {bytes}");
        let data = outcome.caches.iter().find(|cache| cache.name != heads.name && cache.allocs >= 1_000);
        assert_eq!(data.map(|cache| cache.name.as_str()), class, "{preset} {bytes}");
    }
    check("slub@6.18", 100, 65_536 / 768, Some("kmalloc-512"));
    check("slub@6.18", 4_096, 65_536 / (8_192 + 256), Some("kmalloc-8k"));
    check("slub@2.6.29", 4_096, 65_536 / (4_160 + 232), None);
}

/// kmalloc's way into the page allocator and kfree's back take 110 cycles each: what a pair of 8,192 bytes
/// takes beyond a block asked of the page allocator. `None`: a class serves it, for less than a block.
#[test]
fn kmalloc_pays_for_its_way_to_blocks() {
    #[track_caller]
    fn check(preset: &str, cycles: Option<u64>) {
        let took = Rc::new(Cell::new([0; 3]));
        let found = took.clone();
        let outcome = on(preset, 1, move |task| {
            let timed = |work: &dyn Fn()| {
                let start = Timed::clock();
                work();
                Timed::clock() - start
            };
            let pair = |alloc: &dyn Fn() -> Held| {
                let pairs = (0..4).map(|_| timed(&|| task.free(alloc())));
                pairs.last().expect("four pairs")
            };
            let kmalloc = pair(&|| task.alloc_bytes(8_192));
            let block = pair(&|| task.alloc_pages(1));
            found.set([kmalloc, block, timed(&|| Timed::cycles(cycles.unwrap_or(0)))]);
        });
        outcome.expect("it ends");
        let [kmalloc, block, way] = took.get();
        match cycles {
            Some(_) => assert_eq!(kmalloc, block + way, "{preset}"),
            None => assert!(kmalloc < block, "{preset}: {kmalloc} and {block} ps"),
        }
    }
    check("slub@2.6.29", Some(220));
    check("slab@2.6.29", None);
    check("slub@6.18", None);
}

/// Objects that are freed after a grace period are freed by a CPU that is idle by then.
#[test]
fn an_idle_cpu_frees_after_the_grace_period() {
    let outcome = on("slab@2.6.29", 2, |task| {
        let held = task.alloc_bytes(64);
        task.free_after_grace(held);
    });
    let outcome = outcome.expect("it ends");
    let counts: Vec<_> = outcome.caches.iter().map(|cache| (cache.allocs, cache.frees)).collect();
    assert_eq!(counts, [(1, 1)], "{:?}", outcome.caches);
    assert!(outcome.elapsed >= 10 * MS, "{} ps", outcome.elapsed);
}

/// Grace periods of 10 ms follow each other: what is freed during one waits for the end of the next,
/// together.
#[test]
fn frees_during_a_grace_period_wait_for_the_same_end() {
    let ended = |first: Ps, second: Ps| {
        let outcome = on("slab@2.6.29", 2, move |task| {
            for at in [first, second] {
                task.sleep(at);
                let held = task.alloc_bytes(64);
                task.free_after_grace(held);
            }
        });
        outcome.expect("it ends").elapsed
    };
    let [together, apart] = [ended(MS, 5 * MS), ended(MS, 11 * MS)];
    assert!((20 * MS..21 * MS).contains(&together), "{together} ps");
    assert!((30 * MS..31 * MS).contains(&apart), "{apart} ps");
}

/// A task that sleeps wakes up in time though a task that is pinned to its CPU computes there.
#[test]
fn a_sleeper_wakes_beside_a_pinned_task() {
    #[track_caller]
    fn check(preset: &str, before: Ps) {
        let woke = Rc::new(Cell::new(0));
        let found = woke.clone();
        on(preset, 4, move |task| {
            let here = Timed::cpu();
            task.thread(move |task| {
                task.pin(here);
                task.compute(10 * MS);
            });
            task.sleep(MS / 2);
            found.set(Timed::clock());
        })
        .expect("both tasks end");
        assert!(woke.get() < before, "{preset}: woke at {} us", woke.get() / 1_000_000);
    }
    // 2.6.29 searches no idle CPU: one has to pull the task.
    check("slub@2.6.29", 9 * MS);
    check("slub@5.10", MS);
    check("slub@6.18", MS);
}
