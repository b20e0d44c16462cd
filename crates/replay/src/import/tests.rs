//! The rules of import: recordings, and the rows that import makes of them.

use std::collections::HashMap;

use slablab_readers::event::{Alloc, Context, Free, Gfp, LossKind, PageAlloc, PageFree, Site, ZERO_SIZE_PTR};
use slablab_readers::{Event, Header, Item, Kind, Lost, Names, Source, Tally};
use slablab_trace::{Batch, Columns, EventKind, Metadata, NONE, Positioned, Reader, Row, Writer, flags};

use super::FREED_LIMIT;
use super::convert::convert;
use super::spool::unnamed;

/// A recording from memory.
#[derive(Default)]
struct Script {
    items: std::vec::IntoIter<Item>,
    header: Header,
    names: Names,
    tally: Tally,
}

impl Source for Script {
    type Error = std::convert::Infallible;

    fn next(&mut self) -> Result<Option<Item>, Self::Error> {
        Ok(self.items.next())
    }
    fn state(&self) -> (&Header, &Names, &Tally) {
        (&self.header, &self.names, &self.tally)
    }
}

/// A line is `time cpu event arguments`: `kmalloc A BYTES`, `alloc A CACHE`, `kfree A`, `free A CACHE`,
/// `pages PFN ORDER`, `pagefree PFN ORDER`, `mark TEXT`, `lost COUNT`. Addresses and frames are hexadecimal,
/// 0 is NULL.
fn script(text: &str) -> Script {
    let mut script = Script::default();
    let mut items = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let (time_ns, cpu, rest) =
            (words[0].parse().unwrap(), words[1].parse().unwrap(), words.get(3).unwrap_or(&""));
        let (first, second) = rest.split_once(' ').unwrap_or((rest, ""));
        let hex = || u64::from_str_radix(first, 16).unwrap();
        let ptr = || Some(hex()).filter(|&ptr| ptr != 0);
        let call_site = Site { addr: Some(0xffff_ffff_8100_0000 + time_ns), symbol: None };
        let mut alloc = |ptr, cache: Option<&str>, bytes| Alloc {
            call_site,
            ptr,
            cache: cache.map(|cache| script.names.intern(cache)),
            dir: None,
            bytes_req: bytes,
            bytes_alloc: bytes,
            gfp: Gfp::default(),
            node: None,
            accounted: None,
        };
        let kind = match words[2] {
            "kmalloc" => Kind::Kmalloc(alloc(ptr(), None, second.parse().unwrap())),
            "alloc" => Kind::CacheAlloc(alloc(ptr(), Some(second), 192)),
            "kfree" => Kind::Kfree(Free { call_site, ptr: ptr(), cache: None, dir: None }),
            "free" => {
                let cache = Some(script.names.intern(second));
                Kind::CacheFree(Free { call_site, ptr: ptr(), cache, dir: None })
            }
            "rcu" => Kind::KfreeRcu(Free { call_site, ptr: ptr(), cache: None, dir: None }),
            "pages" => {
                let order = second.parse().unwrap();
                Kind::PageAlloc(PageAlloc {
                    pfn: Some(hex()),
                    order,
                    gfp: Gfp::default(),
                    migratetype: Some(0),
                })
            }
            "pagefree" => Kind::PageFree(PageFree { pfn: hex(), order: second.parse().unwrap() }),
            "mark" => Kind::Mark(script.names.intern(rest)),
            "lost" => {
                let count = rest.parse().unwrap();
                let (cpu, time_ns) = (Some(cpu), Some(time_ns));
                items.push(Item::Lost(Lost { cpu, time_ns, offset: 77, count, kind: LossKind::Ring }));
                script.tally.lost += count;
                continue;
            }
            other => panic!("no event is called {other}"),
        };
        items.push(Item::Event(Event { time_ns, cpu, pid: 1, comm: None, context: None, stack: None, kind }));
    }
    script.items = items.into_iter();
    script
}

/// Converts; the trace's rows with their caches, and its metadata.
fn rows(source: &mut Script, freed_limit: usize) -> (Vec<(Row, String)>, Metadata) {
    drawn(source, freed_limit, 0)
}

/// The same in another order of effects.
fn drawn(source: &mut Script, freed_limit: usize, draw: u64) -> (Vec<(Row, String)>, Metadata) {
    let writer = Writer::new(unnamed().unwrap()).unwrap().with_group_rows(1000);
    let known = Metadata::default();
    let (file, _) = convert((source, draw), writer, known, freed_limit, |_| {}, &mut |_| {}).unwrap();
    let reader = Reader::new(Positioned::new(file).unwrap()).unwrap();
    let (mut batches, mut batch, mut rows) = (reader.batches(Columns::ALL), Batch::default(), Vec::new());
    while batches.next(&mut batch).unwrap() {
        let cache = |row: Row| (row, batches.texts().cache.get(row.cache).unwrap_or("-").to_string());
        rows.extend((0..batch.len()).map(|index| cache(batch.row(index))));
    }
    (rows, reader.metadata().clone())
}

/// A row as `event id cache flags`.
fn line(row: &Row, cache: &str) -> String {
    let event = EventKind::from_u8(row.event).unwrap().name();
    let id = if row.object == NONE { "-".into() } else { row.object.to_string() };
    let flags = flags::ALL.iter().filter(|(bit, _)| row.flags & bit != 0).map(|(_, name)| format!(" {name}"));
    format!("{event} {id} {cache}{}", flags.collect::<String>())
}

#[track_caller]
fn check(recording: &str, expected: &str) -> Metadata {
    let (rows, metadata) = rows(&mut script(recording), FREED_LIMIT);
    let found: Vec<String> = rows.iter().map(|(row, cache)| line(row, cache)).collect();
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(found, expected);
    metadata
}

#[test]
fn ids_are_dense_and_reused() {
    let metadata = check(
        "10 0 kmalloc a000 64
         20 0 alloc b000 dentry
         30 1 kfree a000
         40 1 kmalloc c000 64
         50 1 free b000 dentry
         60 0 kfree c000",
        "kmalloc 0 -
         kmem_cache_alloc 1 dentry
         kfree 0 -
         kmalloc 0 -
         kmem_cache_free 1 dentry
         kfree 0 -",
    );
    assert_eq!(metadata.statistics.object_ids, 2);
    let counts = metadata.caches[0].counts;
    assert_eq!((counts.allocs, counts.frees, counts.frees_other_cpu, counts.live_max), (1, 1, 1, 1));
    let size = &metadata.import.unwrap().kmalloc[0];
    assert_eq!((size.bytes_alloc, size.counts.allocs, size.counts.live_end), (64, 2, 0));
}

#[test]
fn a_kfree_takes_cache_and_size_of_its_allocation() {
    let (rows, _) =
        rows(&mut script("1 0 alloc a000 dentry\n2 0 kfree a000\n3 0 kmalloc b000 96\n4 1 kfree b000"), 100);
    let of = |index: usize| (rows[index].1.as_str(), rows[index].0.bytes_alloc);
    assert_eq!((of(1), of(3)), (("dentry", 192), ("-", 96)));
}

#[test]
fn what_is_no_object_has_none() {
    let metadata = check(
        "1 0 kfree 0
         2 0 kfree 10
         3 0 kmalloc 0 64
         4 0 kmalloc 10 0
         5 0 mark SB dentry
         6 0 mark hello",
        "kfree - - null
         kfree - - zero_size
         kmalloc - - null
         kmalloc - - zero_size
         mark - dentry
         mark - -",
    );
    let repairs = metadata.import.unwrap().repairs;
    assert_eq!((repairs.null_frees, repairs.zero_size_frees, repairs.failed_allocs), (1, 1, 1));
    assert_eq!(ZERO_SIZE_PTR, 0x10);
}

#[test]
fn an_allocation_of_a_live_address_implies_a_free() {
    let metadata = check(
        "1 0 alloc a000 maple_node
         90000 1 alloc a000 maple_node
         90010 1 free a000 maple_node",
        "kmem_cache_alloc 0 maple_node
         implied_free 0 maple_node
         kmem_cache_alloc 0 maple_node
         kmem_cache_free 0 maple_node",
    );
    assert_eq!(metadata.caches[0].counts.implied_frees, 1);
    assert_eq!(metadata.import.unwrap().repairs.implied_by_alloc, 1);
}

#[test]
fn a_free_to_another_cache_implies_a_free_of_the_first() {
    check(
        "1 0 alloc a000 filp
         2 0 free a000 dentry",
        "kmem_cache_alloc 0 filp
         implied_free 0 filp
         kmem_cache_free 0 dentry unseen freed_before",
    );
}

#[test]
fn an_object_that_waits_for_readers_has_an_event() {
    let metadata = check(
        "1 0 alloc a000 maple_node
         2 0 rcu a000
         90000 1 alloc a000 maple_node",
        "kmem_cache_alloc 0 maple_node
         kfree_rcu 0 maple_node
         kmem_cache_alloc 0 maple_node",
    );
    assert_eq!(metadata.caches[0].counts.implied_frees, 0);
}

#[test]
fn frees_of_unseen_objects_are_old_or_untraced_allocations() {
    let metadata = check(
        "1 0 free a000 dentry
         2 0 alloc b000 dentry
         3 0 kfree c000
         4 0 free a000 dentry",
        "kmem_cache_free 0 dentry unseen
         kmem_cache_alloc 0 dentry
         kfree 1 - unseen
         kmem_cache_free 1 dentry unseen freed_before",
    );
    let counts = metadata.caches[0].counts;
    assert_eq!((counts.frees, counts.unseen_frees, counts.freed_before), (2, 2, 1));
    assert_eq!(metadata.import.unwrap().unknown.unseen_frees, 1);
}

/// Beyond the limit all freed addresses are forgotten: then the second free is one of an old object.
#[test]
fn freed_addresses_are_remembered_up_to_a_limit() {
    #[track_caller]
    fn check(limit: usize, before: bool) {
        let frees: String = (1..10).map(|n| format!("{n} 0 kfree {n}000\n")).collect();
        let (rows, metadata) = rows(&mut script(&format!("{frees}20 0 kfree 1000")), limit);
        assert_eq!(rows[9].0.flags, if before { flags::UNSEEN | flags::FREED_BEFORE } else { flags::UNSEEN });
        assert_eq!(metadata.import.unwrap().repairs.forgotten > 0, !before);
    }
    check(100, true);
    check(4, false);
}

#[test]
fn impossible_orders_are_repaired() {
    // The free of the first object has a clock 400 ns ahead; and an allocation is noted after its free.
    let metadata = check(
        "1000 0 alloc a000 dentry
         2000 0 alloc a000 dentry
         2400 1 free a000 dentry
         8000 0 free a000 dentry
         8500 1 alloc a000 dentry
         9000 1 kmalloc b000 8
         9900 0 free a000 dentry
         9950 1 alloc a000 dentry",
        "kmem_cache_alloc 0 dentry
         kmem_cache_free 0 dentry repaired
         kmem_cache_alloc 0 dentry
         kmem_cache_free 0 dentry
         kmem_cache_alloc 0 dentry
         kmalloc 1 -
         kmem_cache_free 0 dentry
         kmem_cache_alloc 0 dentry",
    );
    assert_eq!(metadata.import.unwrap().repairs.reordered, 1);
    assert_eq!(metadata.caches[0].counts.reordered, 1);
    // An allocation noted after its free, of an address known to be free.
    check(
        "1000 0 alloc a000 dentry
         2000 0 free a000 dentry
         9000 0 free a000 dentry
         9300 1 alloc a000 dentry",
        "kmem_cache_alloc 0 dentry
         kmem_cache_free 0 dentry
         kmem_cache_alloc 0 dentry repaired
         kmem_cache_free 0 dentry",
    );
    // By the same CPU, or too far away: no clock explains it.
    for free in ["2400 0", "3001 1"] {
        check(
            &format!("1000 0 alloc a000 dentry\n2000 0 alloc a000 dentry\n{free} free a000 dentry"),
            "kmem_cache_alloc 0 dentry
             implied_free 0 dentry
             kmem_cache_alloc 0 dentry
             kmem_cache_free 0 dentry",
        );
    }
}

/// The linear map is found after three slabs; from then on pages are known to be empty when freed or
/// allocated.
#[test]
fn pages_freed_under_objects_imply_frees() {
    let slab = |n: u64| {
        let (time, pfn, address) =
            (n * 1_000_000, 0x1000 + n, 0xffff_8880_0000_0000u64 + ((0x1000 + n) << 12) + 0x80);
        format!("{time} 0 pages {pfn:x} 0\n{} 0 alloc {address:x} dentry\n", time + 50)
    };
    let text: String = (1..5).map(slab).collect();
    let metadata = check(
        &format!("{text}9000000 1 pagefree 1001 0\n9000100 1 pagefree 2000 0\n9500000 1 pages 1002 1"),
        "mm_page_alloc - -
         kmem_cache_alloc 0 dentry
         mm_page_alloc - -
         kmem_cache_alloc 1 dentry
         mm_page_alloc - -
         kmem_cache_alloc 2 dentry
         mm_page_alloc - -
         kmem_cache_alloc 3 dentry
         implied_free 0 dentry
         mm_page_free - -
         mm_page_free - -
         implied_free 1 dentry
         implied_free 2 dentry
         mm_page_alloc - -",
    );
    let import = metadata.import.unwrap();
    assert_eq!(import.linear_map, Some(0xffff_8880_0000_0000));
    assert_eq!((import.repairs.implied_by_page, import.repairs.pages_unchecked), (3, 3));
}

/// With a median gap of 1,000 ns, a free takes effect 1,000 ns after it was noted; times in rows stay as
/// recorded.
#[test]
fn a_free_takes_effect_when_its_cpu_gets_on() {
    let round = |n: u64| {
        let time = n * 10_000;
        let lines =
            [(0, 0, "alloc a000"), (1000, 0, "free a000"), (1500, 1, "alloc b000"), (2000, 0, "alloc c000")];
        let tail = [
            (3000, 1, "free b000"),
            (4000, 1, "pagefree 7 0"),
            (5000, 0, "free c000"),
            (6000, 0, "pagefree 8 0"),
        ];
        let line = |(after, cpu, what): (u64, u32, &str)| match what.starts_with("page") {
            true => format!("{} {cpu} {what}\n", time + after),
            false => format!("{} {cpu} {what} dentry\n", time + after),
        };
        lines.into_iter().chain(tail).map(line).collect::<String>()
    };
    let (rows, metadata) = rows(&mut script(&(0..100).map(round).collect::<String>()), 100);
    let times: Vec<u64> = rows[..8].iter().map(|(row, _)| row.time_ns).collect();
    assert_eq!(times, [0, 1500, 1000, 2000, 3000, 4000, 5000, 6000]);
    assert_eq!(metadata.import.unwrap().repairs.behind, 100);
}

#[test]
fn losses_are_carried() {
    let metadata = check(
        "10 0 alloc a000 dentry
         20 1 lost 5
         30 0 free a000 dentry",
        "kmem_cache_alloc 0 dentry
         lost - -
         kmem_cache_free 0 dentry",
    );
    let losses = metadata.losses;
    let first = &losses.list[0];
    assert_eq!((losses.events, losses.records), (5, 1));
    assert_eq!(
        (first.row, first.cpu, first.events, first.kind.as_str(), first.offset_bytes),
        (1, Some(1), 5, "ring", 77)
    );
}

#[test]
fn fields_of_an_event_are_kept() {
    let mut source = script("5 3 alloc a000 dentry");
    let gfp = Gfp { raw: None, names: Some(source.names.intern("GFP_KERNEL|__GFP_ZERO|__GFP_STRANGE")) };
    let Some(Item::Event(event)) = source.items.next() else { unreachable!() };
    let Kind::CacheAlloc(alloc) = event.kind else { unreachable!() };
    let alloc = Alloc { gfp, node: Some(2), accounted: Some(true), bytes_req: 190, ..alloc };
    let context = Some(Context { flags: 0x11, preempt: 2 });
    let comm = Some(source.names.intern("bash"));
    let event = Event { comm, context, pid: 42, kind: Kind::CacheAlloc(alloc), ..event };
    source.items = vec![Item::Event(event)].into_iter();
    let (rows, metadata) = rows(&mut source, 10);
    let kernel = slablab_platform::gfp::Gfp::KERNEL | slablab_platform::gfp::Gfp::ZERO;
    let expected = Row {
        time_ns: 5,
        cpu: 3,
        pid: 42,
        comm: 0,
        context: 0x0211,
        event: EventKind::CacheAlloc as u8,
        address: 0xa000,
        object: 0,
        cache: 0,
        bytes_req: 190,
        bytes_alloc: 192,
        gfp: kernel.0,
        node: 2,
        accounted: 1,
        call_site: 0,
        ..Row::default()
    };
    assert_eq!(rows[0].0, expected);
    assert!(metadata.warnings[0].contains("__GFP_STRANGE"), "{:?}", metadata.warnings);
}

/// Random recordings with events left out: whatever happens, a replay can follow the rows.
#[test]
fn rows_of_any_recording_can_be_followed() {
    for seed in 1..40u64 {
        let mut state = seed;
        let mut random = |limit: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % limit
        };
        let (mut text, mut time) = (String::new(), 0);
        for _ in 0..3000 {
            time += random(2000);
            let (cpu, address) = (random(3), 0xffff_8880_0010_0000 + random(300) * 64);
            let cache = ["dentry", "filp", "maple_node"][random(3) as usize];
            text += &match random(10) {
                0..4 => format!("{time} {cpu} alloc {address:x} {cache}\n"),
                4..8 => format!("{time} {cpu} free {address:x} {cache}\n"),
                8 => format!("{time} {cpu} pages {:x} 0\n", 0x100 + random(5)),
                _ => format!("{time} {cpu} pagefree {:x} 0\n", 0x100 + random(5)),
            };
        }
        let (rows, metadata) = rows(&mut script(&text), if seed % 2 == 0 { 20 } else { 1000 });
        follow(seed, &rows, &metadata);
    }
}

/// A recording in which CPU 0 frees, and does something else 10 to 1,000 ns later, 200 times; and then frees,
/// CPU 1 allocates `later` ns after that, and CPU 0 is silent for 5,000 ns.
fn gaps(later: u64) -> String {
    let pairs = (0..200u64).map(|at| {
        let (time, object) = (at * 10_000, 0xffff_8880_0010_0000 + at * 64);
        format!("{time} 0 free {object:x} filp\n{} 0 alloc {object:x} filp\n", time + 10 * (1 + at % 100))
    });
    let end = 200 * 10_000;
    let probe = format!(
        "{end} 0 free ffff888000200000 dentry\n{} 1 alloc ffff888000300000 dentry\n{} 0 alloc \
         ffff888000200000 dentry\n",
        end + later,
        end + 5000
    );
    pairs.collect::<String>() + &probe
}

/// A free takes effect within the gaps that the recording has; a draw has a share of them.
#[test]
fn each_draw_has_other_delays() {
    /// In how many of 100 draws the other CPU allocates before the free takes effect, and in the first one.
    #[track_caller]
    fn check(later: u64, first: bool, draws: std::ops::RangeInclusive<usize>) {
        let allocates_first = |draw: u64| {
            let (rows, _) = drawn(&mut script(&gaps(later)), FREED_LIMIT, draw);
            let found: Vec<(u64, u16)> = rows.iter().map(|(row, _)| (row.time_ns, row.cpu)).collect();
            let own: Vec<u64> = found.iter().filter(|(_, cpu)| *cpu == 0).map(|(time, _)| *time).collect();
            assert!(own.is_sorted(), "draw {draw} keeps the order of each CPU");
            assert_eq!(found.len(), 403, "draw {draw} has all rows");
            found[400].1 == 1
        };
        assert_eq!(allocates_first(0), first, "{later} ns later");
        let others = (1..=100).filter(|draw| allocates_first(*draw)).count();
        assert!(
            draws.contains(&others),
            "{others} of 100 draws allocate {later} ns later, and before the free"
        );
    }
    // The median gap is 510 ns. A draw's share q of the gaps has (q - 1/4) / q above 250 ns: 40 % on average.
    check(250, true, 30..=50);
    check(750, false, 1..=10);
    check(1500, false, 0..=2);
}

/// Every id is of one live object at most, a free is of the object that was allocated, and ids are dense.
fn follow(seed: u64, rows: &[(Row, String)], metadata: &Metadata) {
    let (mut live, mut most) = (HashMap::new(), 0);
    for (index, (row, cache)) in rows.iter().enumerate() {
        let place = format!("seed {seed}, row {index}: {}", line(row, cache));
        let kind = EventKind::from_u8(row.event).unwrap();
        let object = (row.address, cache.clone());
        if row.flags & flags::UNSEEN != 0 {
            assert!(!live.contains_key(&row.object), "{place}: the id is in use");
            most = most.max(live.len() + 1);
        } else if kind.is_alloc() {
            assert_eq!(live.insert(row.object, object), None, "{place}: the id is in use");
            most = most.max(live.len());
        } else if kind.is_free() {
            assert_eq!(live.remove(&row.object), Some(object), "{place}: another object");
        }
    }
    assert_eq!(metadata.statistics.object_ids, most as u64, "seed {seed}");
    let left: u64 = metadata.caches.iter().map(|cache| cache.counts.live_end).sum();
    assert_eq!(left, live.len() as u64, "seed {seed}");
}

/// `cargo test --release -p slablab-replay -- --ignored --nocapture conversion_speed`
#[test]
#[ignore = "a measurement"]
fn conversion_speed() {
    let count = 4_000_000u64;
    let mut source = Script::default();
    let cache = Some(source.names.intern("dentry"));
    let site = Site { addr: None, symbol: Some(source.names.intern("d_alloc+0x10")) };
    let event = |index: u64| {
        let (round, ptr) = (index / 100_000, Some(0xffff_8880_0000_0000 + index % 100_000 * 192));
        let alloc = Alloc {
            call_site: site,
            ptr,
            cache,
            dir: None,
            bytes_req: 192,
            bytes_alloc: 192,
            gfp: Gfp::default(),
            node: None,
            accounted: None,
        };
        let free = Free { call_site: site, ptr, cache, dir: None };
        let kind = if round.is_multiple_of(2) { Kind::CacheAlloc(alloc) } else { Kind::CacheFree(free) };
        Item::Event(Event {
            time_ns: index * 300,
            cpu: index as u32 % 4,
            pid: 7,
            comm: cache,
            context: None,
            stack: None,
            kind,
        })
    };
    source.items = (0..count).map(event).collect::<Vec<_>>().into_iter();
    let start = std::time::Instant::now();
    let writer = Writer::new(unnamed().unwrap()).unwrap();
    convert((&mut source, 0), writer, Metadata::default(), FREED_LIMIT, |_| {}, &mut |_| {}).unwrap();
    println!("{:.2} M events/s", count as f64 / start.elapsed().as_secs_f64() / 1e6);
}
