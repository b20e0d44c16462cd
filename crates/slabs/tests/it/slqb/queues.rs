//! Queues, batches, remote frees and reaping on machines whose nodes all have memory (docs/theory/slqb.md 4
//! to 6, 9).

use super::*;

#[test]
fn local_work_stays_in_the_queue() {
    let both = &[JANUARY, SEPTEMBER];
    check(&Case::new(
        "ping-pong",
        two_nodes(),
        both,
        &[PingPong(0, 1000)],
        &[
            Counted(Event::AllocFastpath, 999),
            Counted(Event::FreeFastpath, 1000),
            Counted(Event::SlqbAlloc, 1000),
            Counted(Event::SlqbFree, 1000),
            Counted(Event::SlqbAllocSlabNew, 1),
            Pages(1, 1),
            Parked(1, 1),
            FreeInPages(63),
        ],
    ));
    check(&Case::new(
        "one object per miss, pages freed at once",
        two_nodes(),
        both,
        // The 1025th free flushes the 256 newest objects: four whole pages.
        &[Alloc(0, 1280), Free(0, 1025)],
        &[
            Counted(Event::SlqbAllocSlabNew, 20),
            Counted(Event::SlqbAllocSlabFill, 1260),
            Counted(Event::AllocFastpath, 0),
            Counted(Event::FreeFastpath, 1024),
            Counted(Event::SlqbFree, 1025),
            Counted(Event::SlqbFlushFreeList, 1),
            Counted(Event::SlqbFlushFreeListObjects, 256),
            Counted(Event::SlqbFlushFreeListRemote, 0),
            // Objects 769 to 1024: object 768 stays in the first of those pages, and object 1024 is the first
            // of its page.
            Counted(Event::SlqbFlushSlabFree, 3),
            Counted(Event::SlqbFlushSlabPartial, 5),
            Counted(Event::FreeSlab, 3),
            Pages(17, 17),
            PartialPages(2),
            Parked(769, 769),
            Live(255),
        ],
    ));
    check(&Case {
        size: 4096,
        ..Case::new(
            "a queue of pages",
            two_nodes(),
            both,
            &[Alloc(0, 300), Free(0, 300)],
            // The queue has 257 objects and flushes a batch of 64. Then it has room for 43 more.
            &[Pages(236, 236), Parked(236, 236), PartialPages(0), Counted(Event::SlqbFlushFreeList, 1)],
        )
    });
}

#[test]
fn a_flush_takes_the_newest_objects() {
    Machine::new(two_nodes()).expect("the spec is right").enter(|| {
        let mut heap = Heap::new(SEPTEMBER, &CacheSpec::of_size(64));
        heap.step(Alloc(0, 1025));
        let objects = heap.held.clone();
        heap.step(Free(0, 1025));
        assert_eq!(heap.alloc(0, None), objects[768], "objects 769 to 1024 were flushed");
        assert_eq!(heap.alloc(0, None), objects[767]);
        heap.end();
    });
}

#[test]
fn producer_and_consumer() {
    let both = &[JANUARY, SEPTEMBER];
    check(&Case::new(
        "same node: a batch per 256 objects, one lock of remote_free on each side",
        two_nodes(),
        both,
        &[Feed(0, 1, 1025 + 100 * 256)],
        &[
            Counted(Event::SlqbAllocSlabNew, 17),
            Counted(Event::SlqbAllocSlabFill, 1025 - 17),
            Counted(Event::AllocFastpath, 100 * 255),
            Counted(Event::FreeFastpath, 1024 + 100 * 255),
            Counted(Event::SlqbFlushFreeList, 101),
            Counted(Event::SlqbFlushFreeListRemote, 101 * 256),
            Counted(Event::SlqbFlushRfreeList, 101),
            Counted(Event::SlqbFlushRfreeListObjects, 101 * 256),
            Counted(Event::SlqbClaimRemoteList, 100),
            Counted(Event::SlqbClaimRemoteListObjects, 100 * 256),
            Counted(Event::LockRemoteFree, 201),
            Counted(Event::SlqbFreeRemote, 0),
            Pages(17, 17),
            Live(0),
        ],
    ));
    check(&Case::new(
        "different nodes: a batch per 256 frees, nothing queued",
        two_nodes(),
        both,
        &[Feed(0, 2, 100 * 256)],
        &[
            Counted(Event::SlqbFreeRemote, 100 * 256),
            Counted(Event::FreeFastpath, 0),
            Counted(Event::SlqbFree, 0),
            Counted(Event::SlqbFlushFreeList, 0),
            Counted(Event::SlqbFlushRfreeList, 100),
            Counted(Event::SlqbClaimRemoteList, 99),
            Counted(Event::SlqbAllocSlabNew, 4),
            Counted(Event::LockRemoteFree, 199),
            Pages(4, 4),
            Parked(256, 256),
        ],
    ));
    check(&Case::new(
        "page_lock is taken per miss, not per object of a flush",
        two_nodes(),
        &[SEPTEMBER],
        // 1024 misses; 16 of them also claim before they take a page. The flushed batch takes one lock.
        &[Alloc(0, 1025), Free(0, 1025)],
        &[Counted(Event::LockPageList, 1025 + 17 + 1)],
    ));
    check(&Case::new(
        "January has no page_lock",
        two_nodes(),
        &[JANUARY],
        &[Alloc(0, 1025), Free(0, 1025)],
        &[Counted(Event::LockPageList, 0)],
    ));
}

#[test]
fn frees_bypass_an_owner_that_does_not_claim() {
    // CPU 0 allocates 10,000 objects and stops. CPU 2, on the other node, frees them: 39 batches and 16
    // objects.
    let steps = &[Alloc(0, 10_000), Free(2, 10_000)];
    check(&Case::new(
        "September frees past the owner above half of hiwater",
        two_nodes(),
        &[SEPTEMBER],
        steps,
        &[
            Parked(3 * 256 + 16, 3 * 256 + 16),
            Counted(Event::SlqbFlushRfreeList, 39),
            Counted(Event::LockRemoteFree, 3),
            Pages(13, 13),
        ],
    ));
    check(&Case::new(
        "January hands everything over",
        two_nodes(),
        &[JANUARY],
        steps,
        &[Parked(10_000, 10_000), Counted(Event::LockRemoteFree, 39), Pages(157, 157), FreeInPages(48)],
    ));
    check(&Case::new(
        "the owner claims all objects when it allocates again, and flushes a batch of the excess",
        two_nodes(),
        &[JANUARY],
        &[Alloc(0, 10_000), Free(2, 10_000), Alloc(0, 1)],
        &[
            Counted(Event::SlqbClaimRemoteListObjects, 39 * 256),
            Counted(Event::SlqbFlushFreeList, 1),
            Parked(38 * 256 - 1 + 16, 38 * 256 - 1 + 16),
        ],
    ));
    check(&Case {
        size: 8,
        ..Case::new(
            "a claim takes as many objects as a hot list can count; the rest stays flagged",
            two_nodes(),
            &[JANUARY],
            // 48 batches of 2048. The first claim takes 65534 objects and flushes a batch; the second takes
            // the rest.
            &[Alloc(0, 100_000), Free(2, 100_000), Alloc(0, 65_534 - 2048 + 1)],
            &[
                Counted(Event::SlqbClaimRemoteList, 2),
                Counted(Event::SlqbClaimRemoteListObjects, 48 * 2048),
                Counted(Event::SlqbFlushFreeListObjects, 2 * 2048),
                Live(65_534 - 2048 + 1),
            ],
        )
    });
    check(&Case::new(
        "an offline CPU still owns its pages and its queue",
        two_nodes(),
        &[SEPTEMBER],
        &[Alloc(0, 2000), Free(0, 100), Down(0), Free(1, 1900), Reap(3)],
        &[
            // CPU 1's queue takes 1024 objects and sends three batches to CPU 0 at once. The reaper flushes
            // the rest.
            Parked(100 + 768, 100 + 768 + 256),
            Live(0),
        ],
    ));
    check(&Case::new(
        "shrink empties the queue of an offline CPU",
        two_nodes(),
        &[JANUARY, SEPTEMBER],
        &[Alloc(0, 2000), Free(0, 100), Down(0), Free(1, 1900), Shrink, Up(0)],
        &[Parked(0, 0), Pages(0, 0)],
    ));
}

#[test]
fn a_hand_over_below_a_batch_is_not_flagged() {
    let both = &[JANUARY, SEPTEMBER];
    check(&Case::new(
        "the remote list has one destination: an object of another CPU sends the first 100",
        two_nodes(),
        both,
        &[Alloc(0, 100), Alloc(1, 1), Free(2, 101), Alloc(0, 28)],
        &[
            Counted(Event::SlqbFlushRfreeList, 1),
            Counted(Event::SlqbFlushRfreeListObjects, 100),
            Counted(Event::SlqbClaimRemoteList, 0),
            Parked(101, 101),
        ],
    ));
    check(&Case::new(
        "less than a batch after a claim is not flagged either",
        two_nodes(),
        both,
        // CPU 0 claims a batch and uses it up. Then 100 objects come back, less than a batch.
        &[Alloc(0, 356), Alloc(1, 1), Free(2, 256), Alloc(0, 256), Free(2, 101), Alloc(0, 1)],
        &[
            Counted(Event::SlqbClaimRemoteList, 1),
            Counted(Event::SlqbFlushRfreeList, 2),
            Counted(Event::SlqbFlushRfreeListObjects, 356),
            Parked(101, 101),
        ],
    ));
    check(&Case::new(
        "the reaper claims unflagged objects into the queue and flushes a batch",
        two_nodes(),
        both,
        &[Alloc(0, 100), Alloc(1, 1), Free(2, 101), Reap(1)],
        // The reaper visited CPU 1 before CPU 2 sent its one object.
        &[Counted(Event::SlqbClaimRemoteListObjects, 100), Parked(1, 1)],
    ));
}

#[test]
fn the_reaper_takes_a_batch_every_three_seconds() {
    let both = &[JANUARY, SEPTEMBER];
    let fill =
        |steps, expected| check(&Case::new("1024 objects need 4 visits", two_nodes(), both, steps, expected));
    fill(&[Alloc(0, 1024), Free(0, 1024)], &[Parked(1024, 1024), Pages(16, 16)]);
    fill(&[Alloc(0, 1024), Free(0, 1024), Reap(1)], &[Parked(768, 768), Pages(12, 12)]);
    fill(&[Alloc(0, 1024), Free(0, 1024), Reap(3)], &[Parked(256, 256), Pages(4, 4)]);
    fill(&[Alloc(0, 1024), Free(0, 1024), Reap(4)], &[Parked(0, 0), Pages(0, 0)]);
    check(&Case::new(
        "no reaper",
        two_nodes(),
        &["slqb@2009-09,reap_ms=0"],
        &[Alloc(0, 1024), Free(0, 1024), Reap(9)],
        &[Parked(1024, 1024)],
    ));
    check(&Case::new(
        "the visit sends the remote list",
        two_nodes(),
        both,
        &[Alloc(0, 10), Free(2, 10), Reap(2)],
        &[Parked(0, 0), Counted(Event::SlqbFlushRfreeListObjects, 10)],
    ));
    check(&Case::new(
        "the visit also flushes the node's list",
        two_nodes(),
        both,
        // The first visit sends the ten objects to the list of node 1; the second puts them into their page.
        // One object stays in CPU 2's page.
        &[AllocOn(0, 1, 10), Alloc(2, 1), Free(2, 10), Reap(2)],
        &[Parked(0, 0), Pages(1, 1), Live(1)],
    ));
    check(&Case::new(
        "visits stop while the CPU is offline and continue when it is online",
        two_nodes(),
        both,
        &[Alloc(0, 1024), Free(0, 1024), Down(0), Reap(5), Up(0), Reap(1)],
        &[Parked(768, 768)],
    ));
}
