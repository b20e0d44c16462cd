//! Tidy recordings and counters.

use crate::common::{drain, sample};
use slablab_readers::event::{Alloc, Site};
use slablab_readers::tidy::Tidy;
use slablab_readers::{Kind, Name, Source, counters};

/// Counts of (kmalloc, kmem_cache_alloc, kfree, kmem_cache_free, page alloc, page free, mark).
fn kinds(events: &[slablab_readers::Event]) -> [usize; 7] {
    let mut counts = [0; 7];
    for event in events {
        counts[match event.kind {
            Kind::Kmalloc(_) => 0,
            Kind::CacheAlloc(_) => 1,
            Kind::Kfree(_) => 2,
            Kind::CacheFree(_) | Kind::KfreeRcu(_) => 3,
            Kind::PageAlloc(_) => 4,
            Kind::PageFree(_) => 5,
            Kind::Mark(_) => 6,
        }] += 1;
    }
    counts
}

#[test]
fn both_dialects_give_every_event() {
    #[track_caller]
    fn check(file: &str, expected: [usize; 7], skipped: u64) {
        let data = sample(file);
        let mut source = Tidy::new(&data[..]).unwrap();
        let (events, losses) = drain(&mut source).unwrap();
        assert_eq!(kinds(&events), expected, "{file}");
        assert_eq!((losses.len(), source.tally().skipped), (0, skipped));
    }
    // Expected: zcat FILE | cut -d, -f5 (or -f6) | sort | uniq -c
    check("testdata/hackbench.events.csv.gz", [81, 1516, 241, 606, 423, 133, 0], 0);
    check("testdata/trace_s1.events.csv.gz", [1316, 1384, 1289, 272, 330, 26, 30], 352);
}

#[test]
fn fields_are_those_of_the_row() {
    let data = sample("testdata/hackbench.events.csv.gz");
    let mut tidy = Tidy::new(&data[..]).unwrap();
    let (events, _) = drain(&mut tidy).unwrap();
    let name = |text: &str| -> Option<Name> { Some(tidy.names().find(text).unwrap()) };
    // 9.0,0,4255,recording.sh,kmem_cache_alloc,0xffff888100d04000,names_cache,4096,4096,,GFP_KERNEL,-1,...
    let event = &events[2];
    assert_eq!((event.time_ns, event.cpu, event.pid, event.comm), (9_000, 0, 4255, name("recording.sh")));
    let Kind::CacheAlloc(alloc) = event.kind else { panic!("{event:?}") };
    let site = Site { addr: None, symbol: name("getname_flags.part.0+0x24") };
    assert_eq!(
        (alloc.ptr, alloc.cache, alloc.call_site),
        (Some(0xffff888100d04000), name("names_cache"), site)
    );
    assert_eq!((alloc.bytes_req, alloc.bytes_alloc, alloc.node, alloc.dir), (4096, 4096, Some(-1), None));
    assert_eq!(alloc.gfp.names, name("GFP_KERNEL"));
    assert_eq!(alloc.accounted, None, "the cache may be accounted as a whole");
    assert_eq!(tidy.header().gfp.parse("GFP_KERNEL").unwrap().to_string().matches("__GFP").count(), 4);
}

#[test]
fn joined_caches_marks_and_null_are_kept() {
    let data = sample("testdata/trace_s1.events.csv.gz");
    let mut tidy = Tidy::new(&data[..]).unwrap();
    let (events, _) = drain(&mut tidy).unwrap();
    let text = |name: Option<Name>| name.map(|name| tidy.names().text(name)).unwrap_or("");
    let Kind::Kmalloc(Alloc { ptr, cache, accounted, .. }) = events[0].kind else {
        panic!("{:?}", events[0])
    };
    assert_eq!((ptr, text(cache), accounted), (Some(0xff11000030232400), "kmalloc-1k", Some(false)));
    assert_eq!(events[0].time_ns, 6_866_959_000);
    let Kind::Kfree(free) = events[2].kind else { panic!("{:?}", events[2]) };
    assert_eq!((free.ptr, free.cache), (None, None));
    let marks: Vec<_> = events
        .iter()
        .filter_map(|event| match event.kind {
            Kind::Mark(mark) => Some(text(Some(mark))),
            _ => None,
        })
        .collect();
    assert_eq!(marks[..3], ["PH before_begin", "SB TCPv6", "SB RAWv6"]);
    let page = events.iter().find_map(|event| match event.kind {
        Kind::PageAlloc(page) => Some(page),
        _ => None,
    });
    let page = page.unwrap();
    assert_eq!((page.pfn, page.order, page.migratetype), (Some(0x3281f), 0, Some(0)));
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    #[track_caller]
    fn check(row: &str, expected: &str) {
        let header =
            "t_us,cpu,pid,comm,event,ptr_or_pfn,cache,bytes_req,bytes_alloc,order,gfp,node,call_site";
        let text = format!("{header}\n{row}\n");
        let error = Tidy::new(text.as_bytes()).and_then(|mut tidy| drain(&mut tidy)).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    check("1.0,0,1,a,kfree,0xzz,,,,,,,f", "line 2: expected a hexadecimal address, found `0xzz`");
    check("x,0,1,a,kfree,0x10,,,,,,,f", "line 2: expected a decimal number, found `x`");
    check("1.0,0,1,a,kmalloc,0x10,,,,,,,f", "line 2: expected a number, found ``");
    check("1.0,0,1", "line 2: expected one field for each column of the header, found `1.0,0,1\n`");
    let error = Tidy::new(&b"a,b\n"[..]).err().unwrap().to_string();
    assert_eq!(error, "line 1: expected t_us, found `a,b`");
}

#[test]
fn counters_are_read_whole() {
    let stats = counters::parse_stats(&sample("testdata/counters/slub_stats.csv.gz")[..]).unwrap();
    let of =
        |cache: &str, stat: &str| stats.iter().find(|row| row.cache == cache && row.stat == stat).unwrap();
    let row = of("RAWv6", "alloc_fastpath");
    assert_eq!((&*row.label, row.before, row.after, row.settled, row.delta), ("trace_s1", 7, 7, Some(7), 0));
    assert!(stats.iter().all(|row| row.after as i64 - row.before as i64 == row.delta));

    // Each counter is the sum of its CPUs.
    let percpu =
        counters::parse_stats_percpu(&sample("testdata/counters/slub_stats_percpu.csv.gz")[..]).unwrap();
    assert!(percpu.len() > 100);
    let sum = |row: &counters::StatPerCpu| row.after.total.value - row.before.total.value;
    assert!(percpu.iter().all(|row| sum(row) == of(&row.cache, &row.stat).delta as u64));

    let consts = counters::parse_const(&sample("testdata/counters/slub_const.csv")[..]).unwrap();
    assert_eq!(
        (consts.len(), &consts[0].aliases[..]),
        (89, &["blkdev_ioc".to_string(), "ep_head".into()][..])
    );
    assert_eq!((consts[0].objs_per_slab, consts[0].cpu_partial, consts[0].cache_dma), (256, 120, None));

    let state = counters::parse_state(&sample("testdata/counters/slub_state.csv.gz")[..]).unwrap();
    let row = state.iter().find(|row| row.phase == "before" && row.cache == ":0000064").unwrap();
    assert_eq!((row.slabs.total.value, row.slabs.node(2), row.objects_partial.node(1)), (9, 3, 16));
    let count = row.slabs_cpu_partial.cpus[1];
    assert_eq!((count.0, count.1.value, count.1.slabs), (3, 32, Some(1)));
    assert!(state.iter().all(|row| row.slabs.nodes_sum() == row.slabs.total.value));

    let slabinfos =
        counters::parse_slabinfos(&sample("testdata/counters/slabstat_slabinfo.csv.gz")[..]).unwrap();
    let phases: Vec<_> = slabinfos.iter().map(|at| (&*at.label, &*at.phase)).collect();
    assert_eq!(phases, [("trace_s1", "before"), ("trace_s1", "after")]);
    assert!(slabinfos[1].slabinfo.row("skbuff_head_cache").unwrap().cpu.unwrap().allochit > 1000);
}
